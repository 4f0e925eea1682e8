#include "analyzer/rules/loss/prediction.h"

#include <algorithm>

namespace tensorlint::rules {

NodeId producer_behind_identities(const dataflow::Analysis& analysis, ValueId value) {
  constexpr int kLongestChain = 64;
  const Model& model = analysis.model();
  for (int step = 0; step < kLongestChain && value != ValueId::kAbsent; ++step) {
    const NodeId producer = model.value(value).producer;
    if (producer == NodeId::kNone) return NodeId::kNone;
    const NodeCall call(analysis, producer);
    const bool floats = call.is(ops::Opcode::kCast) && call.operand(0).present() &&
                        call.operand(0).fact().dtypes.proves(DTypeSet::floats()) &&
                        analysis.fact(call.result()).dtypes.proves(DTypeSet::floats());
    if (!call.is(ops::Opcode::kIdentity) && !call.is(ops::Opcode::kDropout) && !floats) return producer;
    value = call.operand(0).value();
  }
  return NodeId::kNone;
}

bool is_clamped(const dataflow::Analysis& analysis, ValueId value) {
  const Model& model = analysis.model();
  return std::any_of(model.nodes.begin(), model.nodes.end(), [&](const Node& node) {
    const auto operands = model.operands(node);
    if (std::find(operands.begin(), operands.end(), value) == operands.end()) return false;
    const ops::Opcode opcode = opcode_of(analysis.entry(node));
    return opcode == ops::Opcode::kClip || opcode == ops::Opcode::kMin || opcode == ops::Opcode::kMax;
  });
}

}  // namespace tensorlint::rules
