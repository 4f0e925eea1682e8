#include "passes/losses/loss_sites.h"

#include <algorithm>
#include <cstddef>

#include "passes/losses/finder.h"
#include "passes/losses/loss_names.h"

namespace tensorlint::losses {

std::vector<LossSite> find_losses(const dataflow::Analysis& analysis) { return Finder(analysis).find(); }

std::vector<LossSite> Finder::find() {
  std::vector<std::optional<LossKind>> by_operator;
  for (const Operator& op : model_.operators)
    by_operator.push_back(loss_operator(model_.text(op.domain), model_.text(op.name)));
  for (std::size_t n = 0; n < model_.nodes.size(); ++n) {
    const auto id = static_cast<NodeId>(n);
    if (const auto kind = by_operator[static_cast<std::size_t>(model_.nodes[n].op)]) {
      add_operator(id, *kind);
      continue;
    }
    switch (terms_.op(id)) {
      case LossOp::kSub:
        if (!add_cross_entropy_of_two(id) && !add_divergence(id)) add_difference(id);
        break;
      case LossOp::kAdd:
        add_cross_entropy_of_two(id);
        break;
      case LossOp::kLog:
      case LossOp::kLogSoftmax:
        add_cross_entropy(id);
        break;
      default:
        break;
    }
  }
  return std::move(sites_);
}

void Finder::add(LossKind kind, LossEvidence evidence, NodeId meeting, ValueId prediction, ValueId target,
                 Nodes nodes) {
  if (meeting == NodeId::kNone || prediction == ValueId::kAbsent || target == ValueId::kAbsent) return;
  nodes.push_back(meeting);
  std::erase(nodes, NodeId::kNone);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  sites_.push_back({.kind = kind,
                    .evidence = evidence,
                    .meeting = meeting,
                    .prediction = prediction,
                    .target = target,
                    .prediction_source = terms_.source(prediction),
                    .target_source = terms_.source(target),
                    .nodes = std::move(nodes)});
}

void Finder::add_operator(NodeId id, LossKind kind) {
  const auto operands = model_.operands(model_.node(id));
  if (operands.size() >= 2) add(kind, LossEvidence::kOperator, id, operands[0], operands[1], {});
}

}  // namespace tensorlint::losses
