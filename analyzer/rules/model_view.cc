#include <algorithm>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

const std::vector<bool>& ModelView::used() {
  if (!used_.empty()) return used_;
  used_.resize(model().values.size());
  for (const ValueId value : model().operand_list) used_[static_cast<std::size_t>(value)] = true;
  for (const Graph& graph : model().graphs)
    for (const ValueId value : graph.outputs) used_[static_cast<std::size_t>(value)] = true;
  return used_;
}

const std::vector<bool>& ModelView::live() {
  if (!live_.empty() || model().nodes.empty()) return live_;
  live_.resize(model().nodes.size());
  std::vector<NodeId> pending;
  const auto need = [&](ValueId value) {
    const NodeId producer = model().value(value).producer;
    if (producer == NodeId::kNone || live_[static_cast<std::size_t>(producer)]) return;
    live_[static_cast<std::size_t>(producer)] = true;
    pending.push_back(producer);
  };
  // What a body hands out counts as needed even where its node is not: the node outside is the one to name.
  for (const Graph& graph : model().graphs)
    for (const ValueId value : graph.outputs) need(value);
  while (!pending.empty()) {
    const Node& node = model().node(pending.back());
    pending.pop_back();
    for (const ValueId value : model().operands(node)) need(value);
  }
  return live_;
}

bool ModelView::has_broken_links() {
  if (broken_links_) return *broken_links_;
  const auto is_undefined = [this](ValueId value) {
    return value != ValueId::kAbsent && model().value(value).origin == ValueOrigin::kUndefined;
  };
  const auto lacks_operands = [](const dataflow::NodeViolation& violation) {
    return violation.kind() == ops::ConstraintKind::kOperandCount;
  };
  broken_links_ = std::any_of(model().operand_list.begin(), model().operand_list.end(), is_undefined) ||
                  std::any_of(analysis().early_uses().begin(), analysis().early_uses().end(),
                              [](const dataflow::EarlyUse& use) { return use.in_cycle; }) ||
                  std::any_of(analysis().violations().begin(), analysis().violations().end(), lacks_operands);
  return *broken_links_;
}

}  // namespace tensorlint::rules
