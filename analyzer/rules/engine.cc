#include "analyzer/rules/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <unordered_map>

#include "analyzer/findings/grouping.h"
#include "analyzer/findings/violation_text.h"
#include "analyzer/rules/consequences.h"
#include "analyzer/rules/contradictions.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

const Rule* best_match(const ViolationCase& violation) {
  const Rule* best = nullptr;
  Specificity best_fit = Specificity::kNone;
  for (const Rule* rule : all_rules()) {
    const Specificity fit = rule->match(violation);
    if (fit <= best_fit) continue;
    best = rule;
    best_fit = fit;
  }
  return best;
}

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

/// Another side of what failed at the node before: of the same aspect, and about the same operands or some of them. A
/// product whose operands are swapped disagrees in its inner extents and in its batch.
bool continues(const dataflow::NodeViolation& violation, const dataflow::NodeViolation* previous) {
  if (previous == nullptr || previous->node != violation.node || violation.node == NodeId::kNone) return false;
  const ops::Violation &first = *previous, &second = violation;
  if (first.aspect() != second.aspect()) return false;
  if (first.certainty == ops::Certainty::kMay && second.certainty == ops::Certainty::kMust) return false;
  if (first.operands.empty() || second.operands.empty()) return false;
  const std::set<int> a(first.operands.begin(), first.operands.end()),
      b(second.operands.begin(), second.operands.end());
  return std::ranges::includes(a, b) || std::ranges::includes(b, a);
}

/// A node whose violation follows from that of another one.
struct Follower {
  NodeId node = NodeId::kNone;
  NodeId source = NodeId::kNone;
};

/// Words all violations; those that follow from others are listed in `followers`.
void report_violations(const passes::PassResults& known, const RuleSelection& selection, Reporter& out,
                       std::vector<Follower>& followers) {
  const dataflow::Analysis& analysis = known.analysis();
  if (analysis.violations().empty()) return;
  const LossOfNode site_of(known.losses());
  const structure::OpsetNeeds& opsets = known.opset_needs();
  const Contradictions contradictions(analysis);
  const Consequences consequences(analysis);
  const dataflow::NodeViolation* previous = nullptr;
  const Rule* previous_rule = nullptr;
  for (const dataflow::NodeViolation& violation : analysis.violations()) {
    ViolationCase found{.analysis = analysis,
                        .at = violation,
                        .loss = site_of(violation.node),
                        .loss_metadata = {},
                        .needed_opset = opsets.explaining(violation)};
    if (found.loss == nullptr) {
      found.loss_metadata = out.locations().metadata(violation.node, "namespace");
      if (!losses::loss_named(found.loss_metadata))
        found.loss_metadata = out.locations().metadata(violation.node, "pkg.torch.onnx.class_hierarchy");
    }
    if (contradictions.is_note(violation)) continue;
    const Rule* rule = best_match(found);
    assert(rule != nullptr && "each kind of constraint has a rule");
    if (!selection.runs(rule->info())) continue;
    if (rule == previous_rule && continues(violation, previous)) {
      if (FindingBuilder last = out.last()) last.note("the same operands also fail here: " + found.message());
      continue;
    }
    out.set_rule(rule->info());
    rule->report(found, out);
    previous = &violation;
    previous_rule = rule;
    if (const std::string cause = contradictions.cause(violation); !cause.empty()) out.last().cause(cause);
    for (const dataflow::NodeViolation* contradiction : contradictions.behind(violation))
      if (FindingBuilder last = out.last())
        last.note_at(contradiction->node, findings::violation_text(analysis, *contradiction));
    if (const dataflow::NodeViolation* source = consequences.source_of(violation))
      followers.push_back({violation.node, source->node});
  }
}

void check_nodes(const dataflow::Analysis& analysis, const RuleSelection& selection, Reporter& out) {
  const Model& model = analysis.model();
  std::vector<std::vector<const Rule*>> wanted(model.operators.size());
  bool any = false;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    if (op.function != GraphId::kNone) continue;
    const ops::OpEntry* entry = ops::find_entry(model.text(op.domain), model.text(op.name), op.opset);
    for (const Rule* rule : all_rules())
      if (selection.runs(rule->info()) && rule->wants(model.text(op.domain), model.text(op.name), entry))
        wanted[i].push_back(rule);
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

bool is_about_shape_violation(const findings::Finding& finding) {
  return finding.code.starts_with("TL-S") || finding.code.starts_with("TL-L");
}

/// Takes away what follows from a violation that is reported. What follows from a suppressed one stays: whoever
/// suppresses says that the node works, and then what comes after fails by itself.
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

/// Takes away what the suppressions cover and reports the comments that cover nothing.
void apply_suppressions(const dataflow::Analysis& analysis, const RuleSelection& selection, Reporter& out,
                        RuleResults& results) {
  const CommentSuppressions comments = suppressions_of(analysis.model());
  results.suppressed.assign(selection.suppressions().size(), 0);
  std::vector<bool> used(comments.good.size(), false);
  std::erase_if(results.findings, [&](const findings::Finding& finding) {
    for (std::size_t i = 0; i < comments.good.size(); ++i) {
      if (!comments.good[i].covers(finding)) continue;
      used[i] = true;
      ++results.suppressed_by_comments;
      return true;
    }
    for (std::size_t i = 0; i < selection.suppressions().size(); ++i) {
      if (!selection.suppressions()[i].covers(finding)) continue;
      ++results.suppressed[i];
      return true;
    }
    return false;
  });
  const RuleInfo& rule = find_rule("unused-suppression")->info();
  if (!selection.allows(rule)) return;
  out.set_rule(rule);
  for (const BadSuppression& bad : comments.bad)
    out.report_graph(GraphId::kMain, bad.message).place(out.locations().in_text({.line = bad.place.line, .column = 0}));
  for (std::size_t i = 0; i < used.size(); ++i) {
    const Suppression& comment = comments.good[i];
    // A rule that did not run tells nothing.
    const bool asked =
        std::ranges::all_of(comment.codes, [&](std::string_view code) { return selection.allows(code); });
    if (used[i] || !asked) continue;
    out.report_graph(GraphId::kMain,
                     fmt::format("the suppression of {} suppresses nothing", quoted_for_people(comment.rules)))
        .place(out.locations().in_text({.line = comment.place.line, .column = 0}))
        .fix("remove the comment", findings::Applicability::kSafe, {RemoveComment{comment.place.line}});
  }
}

}  // namespace

std::vector<std::string_view> rules_matching(std::string_view pattern) {
  std::vector<std::string_view> codes;
  for (const Rule* rule : all_rules()) {
    const RuleInfo& info = rule->info();
    const bool is_code_prefix = pattern.size() >= 4 && pattern.starts_with("TL-") && info.code.starts_with(pattern);
    if (info.name == pattern || info.group == pattern || is_code_prefix) codes.push_back(info.code);
  }
  return codes;
}

std::span<const std::string_view> rule_words() {
  static const std::vector<std::string_view> words = [] {
    std::set<std::string_view> distinct;
    for (const Rule* rule : all_rules()) distinct.insert({rule->info().name, rule->info().group});
    return std::vector<std::string_view>(distinct.begin(), distinct.end());
  }();
  return words;
}

bool RuleSelection::select(std::string_view pattern) {
  chosen_ = true;
  const auto codes = rules_matching(pattern);
  selected_.insert(codes.begin(), codes.end());
  return !codes.empty();
}

bool RuleSelection::ignore(std::string_view pattern) {
  const auto codes = rules_matching(pattern);
  ignored_.insert(codes.begin(), codes.end());
  return !codes.empty();
}

bool RuleSelection::set_severity(std::string_view pattern, findings::Severity severity) {
  const auto codes = rules_matching(pattern);
  for (const std::string_view code : codes) {
    const auto known = severities_.find(code);
    if (known == severities_.end() || codes.size() <= known->second.rules)
      severities_.insert_or_assign(code, Override{severity, codes.size()});
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
  findings::LocationResolver places(analysis.model(), selection.source_root());
  Reporter out(
      analysis, places, [&selection](std::string_view code) { return selection.severity(code); }, selection.limit());
  std::vector<Follower> followers;
  report_violations(known, selection, out, followers);
  check_nodes(analysis, selection, out);
  for (const Rule* rule : all_rules()) {
    if (!selection.runs(rule->info())) continue;
    out.set_rule(rule->info());
    rule->check_model(ModelView(known, rule->needs(), copies_at_run_time), out);
  }
  RuleResults results;
  results.findings = out.take();
  findings::sort_and_deduplicate(results.findings);
  results.left_out = std::erase_if(results.findings,
                                   [&](const findings::Finding& finding) { return !selection.allows(finding.code); });
  apply_suppressions(analysis, selection, out, results);
  drop_followers(followers, results.findings);
  std::vector<findings::Finding> added = out.take();
  results.findings.insert(results.findings.end(), std::make_move_iterator(added.begin()),
                          std::make_move_iterator(added.end()));
  findings::sort_and_deduplicate(results.findings);
  findings::group_by_cause(results.findings);
  results.counts = findings::count(results.findings);
  results.counts += out.omitted();
  results.omitted_places = out.omitted_places();
  return results;
}

}  // namespace tensorlint::rules
