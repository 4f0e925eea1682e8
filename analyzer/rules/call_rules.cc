#include "analyzer/rules/call_rules.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "analyzer/findings/grouping.h"
#include "analyzer/rules/violation_rules.h"
#include "passes/losses/loss_call.h"
#include "passes/structure/opset_needs.h"

namespace tensorlint::rules {
namespace {

/// Nothing is dropped: what a program repeats is reported once.
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

}  // namespace

CallRules::CallRules(const dataflow::Analysis& analysis, RuleSelection selection)
    : analysis_(analysis), selection_(std::move(selection)), consequences_(analysis) {
  forget_nodes();
}

void CallRules::forget_nodes() {
  locations_ = std::make_unique<findings::LocationResolver>(analysis_.model(), selection_.source_root());
  reporter_ = std::make_unique<Reporter>(
      analysis_, *locations_, [this](std::string_view code) { return selection_.severity(code); }, kNoLimit);
}

const std::vector<const Rule*>& CallRules::rules_of(OperatorId id) {
  const Model& model = analysis_.model();
  while (!rules_.contains(id)) {
    const Operator& op = model.operators[rules_.next_id()];
    const ops::OpEntry* entry = analysis_.entry(rules_.next_id());
    std::vector<const Rule*>& wanted = rules_.emplace_back();
    for (const Rule* rule : all_rules())
      if (op.function == GraphId::kNone && selection_.runs(rule->info()) &&
          rule->wants(model.text(op.domain), model.text(op.name), entry))
        wanted.push_back(rule);
  }
  return rules_[id];
}

std::vector<findings::Finding> CallRules::check(NodeId id, std::span<const dataflow::NodeViolation> violations) {
  const Node& node = analysis_.model().node(id);
  const std::vector<const Rule*>& rules = rules_of(node.op);
  const ops::OpEntry* entry = analysis_.entry(node);
  std::optional<losses::LossSite> loss;
  if (entry != nullptr && entry->loss()) loss = losses::loss_of_call(analysis_, id);
  consequences_.follow(id, violations);
  if (violations.empty() && rules.empty() && !loss) return {};

  report_violations(violations, loss ? &*loss : nullptr);
  const NodeCall call(analysis_, id);
  for (const Rule* rule : rules) {
    reporter_->set_rule(rule->info());
    rule->check(call, *reporter_);
  }
  if (loss) check_loss(*loss);
  return take();
}

void CallRules::report_violations(std::span<const dataflow::NodeViolation> violations, const losses::LossSite* loss) {
  ViolationReporter reporter(selection_, *reporter_);
  for (const dataflow::NodeViolation& violation : violations) {
    if (const NodeId source = consequences_.source_of(violation); source != NodeId::kNone) continue;
    const bool is_loss = loss != nullptr && loss->anchor == violation.node;
    reporter.report({.analysis = analysis_,
                     .at = violation,
                     .loss = is_loss ? loss : nullptr,
                     .named_loss = is_loss ? std::nullopt : loss_named_at(*locations_, violation.node),
                     .needed_opset = structure::OpsetNeeds::needed_for(analysis_.model(), violation)});
  }
}

void CallRules::check_loss(const losses::LossSite& loss) {
  for (const Rule* rule : all_rules()) {
    if (!selection_.runs(rule->info())) continue;
    reporter_->set_rule(rule->info());
    rule->check_loss(analysis_, loss, *reporter_);
  }
}

std::vector<findings::Finding> CallRules::check_placement(const passes::PassResults& known) {
  for (const Rule* rule : all_rules()) {
    if (!rule->needs().has(passes::Pass::kPlacement) || !selection_.runs(rule->info())) continue;
    reporter_->set_rule(rule->info());
    rule->check_model(ModelView(known, rule->needs(), /*copies_at_run_time=*/false), *reporter_);
  }
  return take();
}

std::vector<findings::Finding> CallRules::take() {
  std::vector<findings::Finding> found = reporter_->take();
  findings::sort_and_deduplicate(found);
  std::erase_if(found, [this](const findings::Finding& finding) {
    std::vector<std::string> keys = findings::mistake_keys(finding);
    if (std::ranges::any_of(keys, [this](const std::string& key) { return said_.contains(key); })) return true;
    for (std::string& key : keys) said_.insert(std::move(key));
    return false;
  });
  return found;
}

}  // namespace tensorlint::rules
