#include <algorithm>

#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {
/// Heads [T, N, h * d] to [T, N * h, d], where N and d are equal by chance, so that this looks like a transposition: an
/// axis is cut into parts that join the one before it. The joined axis comes apart there again, or counts the matrices
/// of a product. On the way back it is the batch that comes out of it.
bool MisreadViews::joins_parts(NodeId view) const {
  const ValueId from = expressions_.operand(view, 0);
  const auto before = cone_.dims(from), after = cone_.dims(expressions_.result(view));
  if (before.size() > kMaxRank || after.size() > kMaxRank) return false;
  DimPool& pool = cone_.pool();
  std::vector<std::size_t> x, y;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (cone_.is_long(from, i)) x.push_back(i);
  for (std::size_t i = 0; i < after.size(); ++i)
    if (!pool.is_constant(after[i], 1)) y.push_back(i);
  if (x.size() != y.size()) return false;
  std::size_t first = 0;
  while (first < x.size() && pool.equal(before[x[first]], after[y[first]])) ++first;
  if (first + 1 >= x.size()) return false;
  const Dim whole = before[x[first]], joined = after[y[first]];
  for (std::size_t i = first + 2; i < x.size(); ++i)
    if (!pool.equal(before[x[i]], after[y[i]])) return false;
  if (!pool.equal(whole, after[y[first + 1]]) || !pool.equal(joined, before[x[first + 1]])) return false;
  if (pool.exact_div(joined, whole)) return is_joined(expressions_.result(view), y[first], whole);
  const auto axes = cone_.origins().of(from);
  if (!pool.exact_div(whole, joined) || x[first] >= axes.size()) return false;
  // An axis that is longer than the samples that are in it has been joined.
  return std::ranges::any_of(axes[x[first]], [&](const AxisSource& source) {
    const auto dims = cone_.dims(source.value);
    return source.axis < dims.size() && cone_.is_input(source.value) && pool.equal(dims[source.axis], joined);
  });
}

/// An axis of which a view takes the outer part apart again, or which comes to the front of others and counts matrices
/// that are multiplied.
bool MisreadViews::is_joined(ValueId value, std::size_t axis, Dim outer) const {
  constexpr std::size_t kMaxWay = 24;
  DimPool& pool = cone_.pool();
  std::vector<std::pair<ValueId, std::size_t>> pending{{value, axis}};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWay; ++i) {
    const auto [at, joined] = pending[i];
    const auto dims = cone_.dims(at);
    for (const NodeId user : expressions_.users(at)) {
      if (!cone_.has(user) || expressions_.is_spent()) continue;
      const Opcode opcode = expressions_.op(user);
      const auto parts = cone_.dims(expressions_.result(user));
      expressions_.charge(1 + parts.size());
      if (opcode == Opcode::kReshape && joined < dims.size() && parts.size() <= kMaxRank && dims.size() <= kMaxRank) {
        Dim ahead = pool.constant(1), passed = pool.constant(1);
        for (std::size_t k = 0; k < joined; ++k) ahead = pool.mul(ahead, dims[k]);
        const Dim end = pool.mul(ahead, dims[joined]);
        bool starts = false;
        for (const Dim part : parts) {
          starts = starts || (pool.equal(passed, ahead) && pool.equal(part, outer));
          passed = pool.mul(passed, part);
          if (starts && pool.equal(passed, end)) return true;
        }
      }
      const std::size_t operand = cone_.operand_index(user, at);
      if (opcode == Opcode::kMatMul && axis > 0 && joined == 0 && dims.size() == 3 &&
          cone_.dims(expressions_.operand(user, 1 - operand)).size() == dims.size())
        return true;
      const AxisStep step = cone_.way().follow(user, operand, joined);
      if (step.fate == AxisFate::kKept) pending.emplace_back(expressions_.result(user), step.axis);
    }
  }
  return false;
}

}  // namespace tensorlint::losses
