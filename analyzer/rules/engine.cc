#include "analyzer/rules/engine.h"

#include <algorithm>
#include <cassert>
#include <unordered_map>

namespace tensorlint {
namespace {

template <typename Visit>
bool for_each_match(std::string_view pattern, Visit visit) {
  bool any = false;
  for (const Rule* rule : all_rules()) {
    const RuleInfo& info = rule->info();
    const bool is_code_prefix = pattern.size() >= 4 && pattern.starts_with("TL-") && info.code.starts_with(pattern);
    if (info.name != pattern && info.group != pattern && !is_code_prefix) continue;
    visit(info);
    any = true;
  }
  return any;
}

const Rule* best_claim(const FailureCase& failure) {
  const Rule* best = nullptr;
  int best_fit = 0;
  for (const Rule* rule : all_rules()) {
    const int fit = rule->claim(failure);
    if (fit <= best_fit) continue;
    best = rule;
    best_fit = fit;
  }
  return best;
}

/// The loss that a node belongs to: the first one where several claim it.
class LossOfNode {
 public:
  explicit LossOfNode(std::span<const LossSite> losses) {
    for (const LossSite& loss : losses)
      for (const NodeId node : loss.nodes) sites_.emplace(node, &loss);
  }
  const LossSite* operator()(NodeId node) const {
    const auto found = sites_.find(node);
    return found == sites_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<NodeId, const LossSite*> sites_;
};

void report_failures(const Analysis& analysis, std::span<const LossSite> losses, const RuleSelection& selection, Reporter& out) {
  if (analysis.failures().empty()) return;
  const LossOfNode site_of(losses);
  for (const NodeFailure& failure : analysis.failures()) {
    FailureCase found{.analysis = analysis, .at = failure, .loss = site_of(failure.node), .loss_metadata = {}};
    if (found.loss == nullptr) {
      found.loss_metadata = out.places().metadata(failure.node, "namespace");
      if (!loss_named(found.loss_metadata)) found.loss_metadata = out.places().metadata(failure.node, "pkg.torch.onnx.class_hierarchy");
    }
    const Rule* rule = best_claim(found);
    assert(rule != nullptr && "each kind of failure has a rule");
    if (!selection.allows(rule->info())) continue;
    out.set_rule(rule->info());
    rule->report(found, out);
  }
}

void check_nodes(const Analysis& analysis, const RuleSelection& selection, Reporter& out) {
  const Model& model = analysis.model();
  std::vector<std::vector<const Rule*>> wanted(model.operators.size());
  bool any = false;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    if (op.function != GraphId::kNone) continue;
    const OpEntry* entry = find_entry(model.text(op.domain), model.text(op.name), op.opset);
    for (const Rule* rule : all_rules())
      if (selection.allows(rule->info()) && rule->wants(model.text(op.domain), model.text(op.name), entry)) wanted[i].push_back(rule);
    any = any || !wanted[i].empty();
  }
  if (!any) return;
  for (std::size_t n = 0; n < model.nodes.size(); ++n) {
    const std::vector<const Rule*>& rules = wanted[static_cast<std::size_t>(model.nodes[n].op)];
    if (rules.empty() || !analysis.is_visited(static_cast<NodeId>(n))) continue;
    const NodeCall call(analysis, static_cast<NodeId>(n));
    for (const Rule* rule : rules) {
      out.set_rule(rule->info());
      rule->check(call, out);
    }
  }
}

}  // namespace

bool RuleSelection::select(std::string_view pattern) {
  chosen_ = true;
  return for_each_match(pattern, [this](const RuleInfo& info) { selected_.insert(info.code); });
}

bool RuleSelection::ignore(std::string_view pattern) {
  return for_each_match(pattern, [this](const RuleInfo& info) { ignored_.insert(info.code); });
}

RuleResults run_rules(const Analysis& analysis, const RuleSelection& selection, const Placement* placement, const RuntimeCost* cost) {
  Places places(analysis.model());
  Reporter out(analysis, places);
  const std::vector<LossSite> losses = find_losses(analysis);
  report_failures(analysis, losses, selection, out);
  check_nodes(analysis, selection, out);
  ModelView view(analysis, losses, placement, cost);
  for (const Rule* rule : all_rules()) {
    if (!selection.allows(rule->info())) continue;
    out.set_rule(rule->info());
    rule->check_model(view, out);
  }
  RuleResults results;
  results.findings = out.take();
  sort_and_deduplicate(results.findings);
  results.counts = count(results.findings);
  results.counts += out.omitted();
  return results;
}

}  // namespace tensorlint
