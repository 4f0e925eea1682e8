#include "analyzer/rules/loss/prediction.h"

#include <algorithm>
#include <string_view>

namespace tensorlint::rules {

NodeId producer_behind_identities(const dataflow::Analysis& analysis, ValueId value) {
  constexpr int kLongestChain = 64;
  const Model& model = analysis.model();
  for (int step = 0; step < kLongestChain && value != ValueId::kAbsent; ++step) {
    const NodeId producer = model.value(value).producer;
    if (producer == NodeId::kNone) return NodeId::kNone;
    const NodeCall call(analysis, producer);
    const bool floats = call.is("Cast") && call.operand(0).present() &&
                        call.operand(0).fact().dtypes.proves(DTypeSet::floats()) &&
                        analysis.fact(call.result()).dtypes.proves(DTypeSet::floats());
    if (!call.is("Identity") && !floats) return producer;
    value = call.operand(0).value();
  }
  return NodeId::kNone;
}

bool is_clamped(const dataflow::Analysis& analysis, ValueId value) {
  const Model& model = analysis.model();
  return std::any_of(model.nodes.begin(), model.nodes.end(), [&](const Node& node) {
    const auto operands = model.operands(node);
    if (std::find(operands.begin(), operands.end(), value) == operands.end()) return false;
    const Operator& op = model.op(node);
    const std::string_view name = model.text(op.name);
    return op.domain == NameId::kEmpty && (name == "Clip" || name == "Min" || name == "Max");
  });
}

}  // namespace tensorlint::rules
