#include "runtime/compare/selection.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::compare {

using runtime::HostTensor;
using runtime::HostValue;

namespace {

/// Elements of an operand with what rounding may have done to them, as lines along an axis.
class Lines {
 public:
  Lines(const Estimate& operand, std::size_t axis, runtime::Memory& memory)
      : shape_(runtime::split_at(operand.value.tensor().extents(), axis)),
        elements_(runtime::to_float64(operand.value.tensor(), memory)) {
    for (const HostValue& replica : operand.replicas)
      if (replica.is_tensor() && replica.tensor().extents() == operand.value.tensor().extents())
        replicas_.push_back(runtime::to_float64(replica.tensor(), memory));
  }

  const runtime::AxisSplit& shape() const { return shape_; }

  /// Whether either may be what the line is selected for.
  bool are_alike(std::size_t outer, std::size_t inner, std::int64_t a, std::int64_t b) {
    const double x = at(elements_, outer, inner, a), y = at(elements_, outer, inner, b);
    if (x == y || (std::isnan(x) && std::isnan(y))) return true;
    if (replicas_.empty()) return false;
    // What comes before both and falls behind one of them moves by its own error, which is any element's.
    if (largest_of_ != std::pair(outer, inner)) {
      largest_of_ = std::pair(outer, inner);
      largest_ = 0;
      for (std::size_t k = 0; k < shape_.extent; ++k)
        largest_ = std::max(largest_, spread(outer, inner, static_cast<std::int64_t>(k)));
    }
    return std::fabs(x - y) <= kDeviations * (spread(outer, inner, b) + largest_);
  }

 private:
  double at(const HostTensor& tensor, std::size_t outer, std::size_t inner, std::int64_t position) const {
    const std::size_t index = (outer * shape_.extent + static_cast<std::size_t>(position)) * shape_.inner + inner;
    return tensor.as<double>()[index];
  }
  double spread(std::size_t outer, std::size_t inner, std::int64_t position) const {
    const double centre = at(elements_, outer, inner, position);
    double squares = 0;
    for (const HostTensor& replica : replicas_) {
      const double off = at(replica, outer, inner, position) - centre;
      squares += off * off;
    }
    return std::sqrt(squares / static_cast<double>(replicas_.size()));
  }

  runtime::AxisSplit shape_;
  HostTensor elements_;
  std::vector<HostTensor> replicas_;
  std::optional<std::pair<std::size_t, std::size_t>> largest_of_;  // the line whose largest spread is known
  double largest_ = 0;
};

}  // namespace

TensorTest test_selection(const Estimate& operand, std::size_t axis, const HostTensor& positions,
                          const HostTensor& other, runtime::Memory& memory) {
  TensorTest test;
  test.count = other.size();
  Lines lines(operand, axis, memory);
  const auto& [outer, extent, inner] = lines.shape();
  const std::size_t selected = test.count == 0 ? 0 : test.count / (outer * inner);
  const std::int64_t* const right = positions.as<std::int64_t>().data();
  const std::int64_t* const recorded = other.as<std::int64_t>().data();
  std::vector<std::int64_t> line(selected);
  for (std::size_t o = 0; o < outer && test.count > 0; ++o) {
    for (std::size_t i = 0; i < inner; ++i) {
      const auto element = [&](std::size_t k) { return (o * selected + k) * inner + i; };
      for (std::size_t k = 0; k < selected; ++k) line[k] = recorded[element(k)];
      std::ranges::sort(line);
      for (std::size_t k = 0; k < selected; ++k) {
        const std::int64_t mine = right[element(k)], theirs = recorded[element(k)];
        if (mine == theirs) continue;
        ++test.differing;
        const bool is_once = std::ranges::upper_bound(line, theirs) - std::ranges::lower_bound(line, theirs) == 1;
        const bool is_there = std::min(mine, theirs) >= 0 && std::max(mine, theirs) < static_cast<std::int64_t>(extent);
        if (is_once && is_there && lines.are_alike(o, i, mine, theirs)) continue;
        const double error = std::fabs(static_cast<double>(theirs) - static_cast<double>(mine));
        if (test.beyond++ > 0 && error <= test.worst_error) continue;
        test.worst = element(k), test.worst_error = error, test.ratio = HUGE_VAL;
        test.reference = static_cast<double>(mine), test.other = static_cast<double>(theirs);
      }
    }
  }
  test.verdict = test.beyond > 0 ? Verdict::kBug : test.differing > 0 ? Verdict::kExplained : Verdict::kIdentical;
  return test;
}

}  // namespace tensorlint::compare
