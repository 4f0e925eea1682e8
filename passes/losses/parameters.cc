#include "passes/losses/parameters.h"

#include <algorithm>
#include <cstddef>

namespace tensorlint::losses {

/// One walk for all losses. Nodes that come before what they use make it miss something, nothing else.
bool Parameters::reach(ValueId value) {
  if (reached_.empty()) {
    const Model& model = analysis_.model();
    reached_.resize(model.values.size());
    for (std::size_t i = 1; i < model.values.size(); ++i) {
      const Value& known = model.values[i];
      if (known.origin != ValueOrigin::kInitializer || known.initializer == nullptr) continue;
      const bool floats = analysis_.fact(static_cast<ValueId>(i)).dtypes.proves(DTypeSet::floats());
      reached_[i] = floats && known.initializer->element_count().value_or(2) > 1;
    }
    for (const Node& node : model.nodes) {
      const auto operands = model.operands(node);
      if (std::none_of(operands.begin(), operands.end(),
                       [&](ValueId operand) { return reached_[static_cast<std::size_t>(operand)]; }))
        continue;
      for (const ValueId result : model.results(node))
        reached_[static_cast<std::size_t>(result)] = result != ValueId::kAbsent;
    }
  }
  return reached_[static_cast<std::size_t>(value)];
}

}  // namespace tensorlint::losses
