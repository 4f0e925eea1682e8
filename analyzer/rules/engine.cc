#include "analyzer/rules/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/findings/violation_text.h"
#include "analyzer/rules/consequences.h"
#include "analyzer/rules/contradictions.h"
#include "analyzer/rules/violation_rules.h"
#include "base/id_vector.h"

namespace tensorlint::rules {
namespace {

/// The loss that a node belongs to: the first one where several claim it.
class LossOfNode {
 public:
  explicit LossOfNode(std::span<const losses::LossSite> losses) {
    for (const losses::LossSite& loss : losses)
      for (const NodeId node : loss.nodes) sites_.emplace(node, &loss);
  }
  const losses::LossSite* operator()(NodeId node) const {
    const auto found = sites_.find(node);
    return found == sites_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<NodeId, const losses::LossSite*> sites_;
};

/// Words all violations; those that follow from others are listed in `followers`.
void report_violations(const passes::PassResults& known, const RuleSelection& selection, Reporter& out,
                       std::vector<Follower>& followers) {
  const dataflow::Analysis& analysis = known.analysis();
  if (analysis.violations().empty()) return;
  const LossOfNode site_of(known.losses());
  const structure::OpsetNeeds& opsets = known.opset_needs();
  const Contradictions contradictions(analysis);
  Consequences consequences(analysis);
  consequences.follow_all();
  ViolationReporter reporter(selection, out);
  for (const dataflow::NodeViolation& violation : analysis.violations()) {
    if (analysis.facts().meter().is_spent()) {
      if (!selection.is_restricted()) out.count(violation);
      continue;
    }
    ViolationCase found{.analysis = analysis,
                        .at = violation,
                        .loss = site_of(violation.node),
                        .named_loss = {},
                        .needed_opset = opsets.explaining(violation)};
    if (found.loss == nullptr) found.named_loss = loss_named_at(out.locations(), violation.node);
    if (contradictions.is_note(violation) || !reporter.report(found)) continue;
    if (const std::string cause = contradictions.cause(violation); !cause.empty()) out.last().cause(cause);
    for (const dataflow::NodeViolation* contradiction : contradictions.behind(violation))
      if (FindingBuilder last = out.last())
        last.note_at(contradiction->node, findings::violation_text(analysis, *contradiction));
    if (const NodeId source = consequences.source_of(violation); source != NodeId::kNone)
      followers.push_back({violation.node, source});
  }
}

/// Unknown operators are held against all names that they may have been meant to be.
constexpr std::uint64_t kStepsOfUnknownName = 1000;

void check_nodes(const dataflow::Analysis& analysis, const RuleSelection& selection, Reporter& out) {
  const Model& model = analysis.model();
  // Functions import opsets of their own, and each has its own entry of an operator that all of them use.
  std::map<std::tuple<NameId, NameId, const ops::OpEntry*>, std::vector<const Rule*>> rules_of;
  IdVector<OperatorId, const std::vector<const Rule*>*> wanted(model.operators.size());
  std::vector<const Rule*> running;
  std::ranges::copy_if(all_rules(), std::back_inserter(running),
                       [&](const Rule* rule) { return selection.runs(rule->info()); });
  bool any = false;
  for (const OperatorId id : ids_below<OperatorId>(model.operators.size())) {
    const Operator& op = model.operators[id];
    if (op.function != GraphId::kNone) continue;
    const ops::OpEntry* entry = ops::find_entry(model.text(op.domain), model.text(op.name), op.opset);
    const auto [it, is_new] = rules_of.try_emplace({op.domain, op.name, entry});
    if (is_new) analysis.meter().charge(2 * all_rules().size() + (entry == nullptr ? kStepsOfUnknownName : 0));
    if (analysis.meter().is_spent()) return;
    for (const Rule* rule : is_new ? std::span<const Rule* const>(running) : std::span<const Rule* const>())
      if (rule->wants(model.text(op.domain), model.text(op.name), entry)) it->second.push_back(rule);
    wanted[id] = &it->second;
    any = any || !it->second.empty();
  }
  if (!any) return;
  for (const NodeId id : analysis.nodes()) {
    const std::vector<const Rule*>* const rules = wanted[model.node(id).op];
    if (rules == nullptr || rules->empty() || !analysis.is_visited(id) || analysis.refers_to_call(id)) continue;
    const NodeCall call(analysis, id);
    for (const Rule* rule : *rules) {
      out.set_rule(rule->info());
      rule->check(call, out);
    }
  }
}

bool is_about_shape_violation(const findings::Finding& finding) {
  return finding.code.starts_with("TL-S") || finding.code.starts_with("TL-L");
}

}  // namespace

const findings::RuleNames& rule_names() {
  static const findings::RuleNames names = [] {
    std::vector<findings::RuleNames::Rule> rules;
    for (const Rule* rule : all_rules()) rules.push_back({rule->info().code, rule->info().name, rule->info().group});
    return findings::RuleNames(std::move(rules));
  }();
  return names;
}

bool RuleSelection::select(std::string_view pattern) {
  chosen_ = true;
  const findings::RuleCodes& codes = rule_names().codes_of(pattern);
  selected_ |= codes;
  return !codes.empty();
}

bool RuleSelection::ignore(std::string_view pattern) {
  const findings::RuleCodes& codes = rule_names().codes_of(pattern);
  ignored_ |= codes;
  return !codes.empty();
}

bool RuleSelection::set_severity(std::string_view pattern, findings::Severity severity) {
  const findings::RuleCodes& codes = rule_names().codes_of(pattern);
  for (const Rule* rule : all_rules()) {
    const std::string_view code = rule->info().code;
    if (!codes.contains(code)) continue;
    const auto known = severities_.find(code);
    if (known == severities_.end() || codes.size() <= known->second.rules) severities_[code] = {severity, codes.size()};
  }
  return !codes.empty();
}

std::optional<findings::Severity> RuleSelection::severity(std::string_view code) const {
  const auto found = severities_.find(code);
  return found == severities_.end() ? std::nullopt : std::optional(found->second.severity);
}

passes::PassSet passes_needed(const dataflow::Analysis& analysis, const RuleSelection& selection,
                              bool copies_at_run_time) {
  passes::PassSet needed{passes::Pass::kAnalysis};
  // What the choice of the rule that reports a violation rests on.
  if (!analysis.violations().empty()) needed |= {passes::Pass::kLosses, passes::Pass::kOpsetNeeds};
  for (const Rule* rule : all_rules())
    if (selection.runs(rule->info())) needed |= rule->needs();
  return copies_at_run_time ? needed : needed.without(passes::Pass::kRuntimeCost);
}

RuleResults run_rules(const passes::PassResults& known, const RuleSelection& selection, bool copies_at_run_time) {
  const dataflow::Analysis& analysis = known.analysis();
  findings::LocationResolver places(analysis.model(), selection.source_root(), known.meter());
  // A comment may take a finding away: as many are kept as without it.
  const std::size_t limit = selection.limit() + analysis.model().comments.size();
  Reporter out(analysis, places, [&selection](std::string_view code) { return selection.severity(code); }, limit);
  std::vector<Follower> followers;
  const bool is_partial = known.meter().is_partial();
  known.meter().begin_reports();
  report_violations(known, selection, out, followers);
  check_nodes(analysis, selection, out);
  const passes::PassSet searches = passes::PassResults::searches();
  for (const Rule* rule : all_rules()) {
    if (!selection.runs(rule->info()) || known.meter().is_spent()) continue;
    if (is_partial && rule->needs().intersects(searches)) continue;
    out.set_rule(rule->info());
    if (rule->needs().has(passes::Pass::kLosses))
      for (const losses::LossSite& loss : known.losses())
        if (!known.meter().is_spent()) rule->check_loss(analysis, loss, out);
    rule->check_model(ModelView(known, rule->needs(), copies_at_run_time), out);
  }
  RuleResults results;
  results.findings = out.take();
  findings::sort_and_deduplicate(results.findings);
  results.followers = std::move(followers);
  results.omitted = out.omitted();
  results.omitted_places = out.omitted_places();
  results.is_partial = known.is_partial();
  return results;
}

void drop_followers(const std::vector<Follower>& followers, std::vector<findings::Finding>& findings) {
  if (followers.empty()) return;
  std::set<std::uint64_t> reported;
  for (const findings::Finding& finding : findings)
    if (is_about_shape_violation(finding)) reported.insert(finding.order);
  std::map<std::uint64_t, std::uint64_t> sources;
  for (const Follower& follower : followers)
    sources.emplace(static_cast<std::uint64_t>(follower.node), static_cast<std::uint64_t>(follower.source));
  std::erase_if(findings, [&](const findings::Finding& finding) {
    const auto source = sources.find(finding.order);
    return source != sources.end() && is_about_shape_violation(finding) && reported.contains(source->second);
  });
}

}  // namespace tensorlint::rules
