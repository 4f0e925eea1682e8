#pragma once

#include <utility>
#include <vector>

#include "passes/dataflow/analysis.h"

namespace tensorlint::losses {

/// Which values are computed from parameters.
class Parameters {
 public:
  explicit Parameters(const dataflow::Analysis& analysis) : analysis_(analysis) {}

  /// The value is a parameter, or computed from one.
  bool reach(ValueId value);
  /// The prediction is what parameters go into. (a, b) where both or neither do: programs write prediction first.
  std::pair<ValueId, ValueId> tell_apart(ValueId a, ValueId b) {
    return !reach(a) && reach(b) ? std::pair(b, a) : std::pair(a, b);
  }

 private:
  const dataflow::Analysis& analysis_;
  IdVector<ValueId, bool> reached_;  // made on first use
};

}  // namespace tensorlint::losses
