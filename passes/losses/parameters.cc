#include "passes/losses/parameters.h"

#include <algorithm>
#include <cstddef>

namespace tensorlint::losses {

/// One walk for all losses. Nodes that come before what they use make it miss something, nothing else.
bool Parameters::reach(ValueId value) {
  if (reached_.empty()) {
    const Model& model = analysis_.model();
    reached_.resize(model.values.size());
    for (const ValueId id : analysis_.values()) {
      const Value& known = model.value(id);
      if (known.origin != ValueOrigin::kInitializer || known.initializer == nullptr) continue;
      const bool floats = analysis_.fact(id).dtypes.proves(DTypeSet::floats());
      reached_[id] = floats && known.initializer->element_count().value_or(2) > 1;
    }
    for (const NodeId node : analysis_.nodes()) {
      if (std::ranges::none_of(analysis_.operands(node), [&](ValueId operand) { return reached_[operand]; })) continue;
      for (const ValueId result : analysis_.results(node)) reached_[result] = result != ValueId::kAbsent;
    }
  }
  return reached_[value];
}

}  // namespace tensorlint::losses
