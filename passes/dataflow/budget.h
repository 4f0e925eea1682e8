#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/meter.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::dataflow {

/// What is left of the work that a model may cost. Visits are counted in small inferences (kVisitsPerNode); where they
/// are spent, the rest of the model becomes unknown. Contents are counted in elements; where they are spent, only small
/// ones are computed with. Visits are work as well: where the input's meter is spent, so are they.
class Budget {
 public:
  /// `max_visits`: 0 for what a model of `nodes` may cost.
  explicit Budget(Meter& meter, std::size_t nodes, std::uint64_t max_visits = 0)
      : meter_(&meter),
        visits_(max_visits != 0 ? max_visits : std::max<std::uint64_t>(kVisitsAtLeast, kVisitsPerNode * nodes)),
        elements_(
            max_visits != 0
                ? static_cast<std::int64_t>(std::min<std::uint64_t>(kContentsAtLeast, kElementsPerVisit * max_visits))
                : std::max<std::int64_t>(kContentsAtLeast, static_cast<std::int64_t>(kVisitsPerNode * nodes))) {}

  /// The model has got `nodes` by now.
  void grow(std::size_t nodes) {
    const std::uint64_t visits = kVisitsPerNode * nodes;
    if (visits <= granted_) return;
    visits_ += visits - granted_;
    granted_ = visits;
    if (const auto elements = static_cast<std::int64_t>(visits); elements > granted_elements_)
      elements_ += elements - std::exchange(granted_elements_, elements);
  }

  std::uint64_t visits() const { return visits_; }
  std::uint64_t spent() const { return granted_ - visits_; }
  bool is_spent() const { return visits_ == 0 || meter_->is_spent(); }
  /// False where less is left; then nothing is.
  bool take(std::uint64_t visits) {
    meter_->charge(kStepsPerVisit * visits);
    const bool enough = visits_ >= visits && !meter_->is_spent();
    visits_ = enough ? visits_ - visits : 0;
    return enough;
  }
  void charge(std::uint64_t visits) {
    meter_->charge(kStepsPerVisit * visits);
    visits_ -= std::min(visits_, visits);
  }

  /// Leaves so many visits, at most what there are; the rest is to be given back.
  std::uint64_t leave(std::uint64_t visits) { return std::exchange(visits_, visits) - visits; }
  void give_back(std::uint64_t visits) { visits_ += visits; }

  bool has_contents() const { return elements_ > 0; }
  /// An inference over so many elements of contents and shapes that made new dimension expressions.
  void charge_contents(std::int64_t elements, std::uint32_t new_dims) {
    meter_->charge(2 * static_cast<std::uint64_t>(elements));
    elements_ -= elements + kElementsPerDim * static_cast<std::int64_t>(new_dims);
  }

 private:
  static constexpr std::int64_t kContentsAtLeast = 1 << 20;
  static constexpr std::int64_t kElementsPerDim = 16;
  static constexpr std::uint64_t kElementsPerVisit = 16;
  static constexpr std::uint64_t kStepsPerVisit = 64;

  Meter* meter_;
  std::uint64_t visits_, granted_ = visits_;
  std::int64_t elements_, granted_elements_ = elements_;
};

}  // namespace tensorlint::dataflow
