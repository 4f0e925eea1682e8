#include "passes/losses/loss_sites.h"

#include <algorithm>
#include <cstddef>

#include "passes/losses/loss_pattern_matcher.h"

namespace tensorlint::losses {

namespace {

/// False for functions that nothing calls, and bodies in them. The function of one of our own losses says what its call
/// is known to be already.
CalledGraphs called_graphs(const Model& model) {
  CalledGraphs called(model.graphs.size(), true);
  for (const GraphId id : model.graphs.ids())
    if (model.graph(id).kind == GraphKind::kFunction) called[id] = false;
  for (const Operator& op : model.operators)
    if (op.function != GraphId::kNone) called[op.function] = true;
  for (const GraphId id : model.graphs.ids())
    if (const GraphId parent = model.graph(id).parent; parent != GraphId::kNone) called[id] = called[parent];
  return called;
}

}  // namespace

std::vector<LossSite> find_losses(const dataflow::Analysis& analysis) { return LossPatternMatcher(analysis).find(); }

std::vector<LossSite> LossPatternMatcher::find() {
  const CalledGraphs is_called = called_graphs(model_);
  for (const NodeId id : analysis_.nodes()) {
    const Node& node = model_.node(id);
    if (!is_called[node.graph]) continue;
    if (const ops::OpEntry* entry = analysis_.entry(node); entry != nullptr && entry->loss()) {
      add_operator(id, *entry);
      continue;
    }
    switch (expressions_.op(id)) {
      case Opcode::kSub:
        if (!add_cross_entropy_of_two(id) && !add_divergence(id)) add_difference(id);
        break;
      case Opcode::kAdd:
        add_cross_entropy_of_two(id);
        break;
      case Opcode::kLog:
      case Opcode::kLogSoftmax:
        add_cross_entropy(id);
        break;
      default:
        break;
    }
  }
  add_summed(is_called);
  std::ranges::stable_sort(sites_, {}, &LossSite::anchor);
  return std::move(sites_);
}

void LossPatternMatcher::add(LossKind kind, LossEvidence evidence, NodeId anchor, ValueId prediction, ValueId target,
                             Nodes nodes) {
  if (anchor == NodeId::kNone || prediction == ValueId::kAbsent || target == ValueId::kAbsent) return;
  nodes.push_back(anchor);
  std::erase(nodes, NodeId::kNone);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  sites_.push_back({.kind = kind,
                    .evidence = evidence,
                    .anchor = anchor,
                    .prediction = prediction,
                    .target = target,
                    .prediction_source = expressions_.source(prediction),
                    .target_source = expressions_.source(target),
                    .nodes = std::move(nodes),
                    .output = ValueId::kAbsent,
                    .path = {}});
}

void LossPatternMatcher::add_operator(NodeId id, const ops::OpEntry& entry) {
  const OpSchema* schema = model_.op(model_.node(id)).schema;
  if (schema == nullptr) schema = find_any_version(entry.domain(), entry.name());  // the opset lacks the operator
  const auto operand = [&](ops::OperandRole role) {
    const int index = schema == nullptr ? -1 : ops::operand_with(*schema, entry, role);
    return index < 0 ? ValueId::kAbsent : expressions_.operand(id, static_cast<std::size_t>(index));
  };
  add(*entry.loss(), LossEvidence::kOperator, id, operand(ops::OperandRole::kPrediction),
      operand(ops::OperandRole::kTarget), {});
}

}  // namespace tensorlint::losses
