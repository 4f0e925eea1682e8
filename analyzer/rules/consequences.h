#pragma once

#include <cstddef>
#include <vector>

#include "base/id_vector.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::rules {

/// Which violations follow from an earlier one. Results of what fails for certain are tainted, so that nothing more is
/// said of them; what fails for some extents only goes on with the shape that it asks for, and where this is wrong, all
/// that is computed from it seems to be. Empty, at no cost, where nothing may fail.
class Consequences {
 public:
  explicit Consequences(const dataflow::Analysis& analysis);

  /// The violation that `violation`, one of the analysis', follows from; null for a mistake of its own.
  const dataflow::NodeViolation* source_of(const dataflow::NodeViolation& violation) const;

 private:
  bool fixes_shape(const Node& node) const;

  const dataflow::Analysis& analysis_;
  IdVector<ValueId, const dataflow::NodeViolation*> sources_;  ///< what a value's shape may be wrong for
};

}  // namespace tensorlint::rules
