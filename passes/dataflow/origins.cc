#include "passes/dataflow/origins.h"

#include <algorithm>
#include <span>
#include <vector>

#include "ir/graph/region_op.h"

namespace tensorlint::dataflow {
namespace {

bool agree(const Fact& x, const Fact& y, Aspect aspect) {
  switch (aspect) {
    case Aspect::kDtype:
      return x.kind == y.kind && x.dtypes == y.dtypes;
    case Aspect::kShape:
      return x.shape == y.shape && x.shape != ShapeId::kUnranked;
    case Aspect::kValue:
      return x.range == y.range && x.content == y.content;
  }
  return false;
}

Origin begin_at(const Model& model, ValueId value) {
  const Value& self = model.value(value);
  return {value, self.origin == ValueOrigin::kNode ? self.producer : NodeId::kNone};
}

}  // namespace

ValueId handed_on_from(const Analysis& analysis, ValueId value, Aspect aspect) {
  const Model& model = analysis.model();
  const Value& self = model.value(value);
  if (self.origin != ValueOrigin::kNode) return ValueId::kAbsent;
  const Node& node = model.node(self.producer);
  // A condition or trip count may be alike, and is never what a result comes from.
  const std::size_t control = region_op(model, node).control_operands;
  const std::span<const ValueId> operands =
      model.operands(node).subspan(std::min<std::size_t>(control, node.operand_count));
  for (const ValueId operand : Walk(operands, analysis.meter()))
    if (operand != ValueId::kAbsent && agree(analysis.fact(operand), analysis.fact(value), aspect)) return operand;
  return ValueId::kAbsent;
}

Origin origin_of(const Analysis& analysis, ValueId value, Aspect aspect) { return Origins(analysis).of(value, aspect); }

Origin Origins::of(ValueId value, Aspect aspect) {
  const auto key = [aspect](ValueId of) {
    return static_cast<std::uint64_t>(of) << 8 | static_cast<std::uint64_t>(aspect);
  };
  std::vector<ValueId> way;
  Origin origin;
  // The number of nodes bounds the walk on cyclic graphs.
  for (std::size_t steps = 0;; ++steps) {
    if (const auto known = known_.find(key(value)); known != known_.end()) {
      origin = known->second;
      break;
    }
    way.push_back(value);
    constexpr std::uint64_t kStepsOfValue = 16;
    analysis_.facts().meter().charge(kStepsOfValue);
    const ValueId source = handed_on_from(analysis_, value, aspect);
    if (analysis_.meter().is_spent()) return begin_at(analysis_.model(), value);  // not kept: nobody looked further
    if (source == ValueId::kAbsent || steps > analysis_.model().nodes.size()) {
      origin = begin_at(analysis_.model(), value);
      break;
    }
    value = source;
  }
  for (const ValueId passed : way) known_.try_emplace(key(passed), origin);
  return origin;
}

}  // namespace tensorlint::dataflow
