#include "passes/structure/liveness.h"

#include <algorithm>
#include <cstddef>

namespace tensorlint::structure {
namespace {

IdVector<ValueId, bool> used_values(const Model& model) {
  IdVector<ValueId, bool> used(model.values.size());
  for (const ValueId value : model.operand_list) used[value] = true;
  for (const Graph& graph : model.graphs)
    for (const ValueId value : graph.outputs) used[value] = true;
  return used;
}

IdVector<NodeId, bool> live_nodes(const Model& model) {
  IdVector<NodeId, bool> live(model.nodes.size());
  std::vector<NodeId> pending;
  const auto need = [&](ValueId value) {
    const NodeId producer = model.value(value).producer;
    if (producer == NodeId::kNone || live[producer]) return;
    live[producer] = true;
    pending.push_back(producer);
  };
  // What a body yields counts as needed even where its node is not: the node outside is the one to name.
  for (const Graph& graph : model.graphs)
    for (const ValueId value : graph.outputs) need(value);
  while (!pending.empty()) {
    const Node& node = model.node(pending.back());
    pending.pop_back();
    for (const ValueId value : model.operands(node)) need(value);
  }
  return live;
}

bool has_broken_links(const dataflow::Analysis& analysis) {
  const Model& model = analysis.model();
  const auto is_undefined = [&](ValueId value) {
    return value != ValueId::kAbsent && model.value(value).origin == ValueOrigin::kUndefined;
  };
  const auto lacks_operands = [](const dataflow::NodeViolation& violation) {
    return violation.kind() == ops::ConstraintKind::kOperandCount;
  };
  return std::ranges::any_of(model.operand_list, is_undefined) ||
         std::ranges::any_of(analysis.early_uses(), &dataflow::EarlyUse::in_cycle) ||
         std::ranges::any_of(analysis.violations(), lacks_operands);
}

}  // namespace

Liveness find_liveness(const dataflow::Analysis& analysis) {
  return {.used = used_values(analysis.model()),
          .live = live_nodes(analysis.model()),
          .has_broken_links = has_broken_links(analysis)};
}

}  // namespace tensorlint::structure
