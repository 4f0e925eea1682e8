#include "analyzer/rules/violation_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <set>
#include <string>

#include "passes/structure/opset_needs.h"

namespace tensorlint::rules {
namespace {

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
  if (std::ranges::includes(a, b) || std::ranges::includes(b, a)) return true;
  // Several operands that do not fit one: who is wrong is not known.
  return first.constraint == second.constraint &&
         std::ranges::any_of(a, [&](int operand) { return b.contains(operand); });
}

/// A key that nodes share which are all written for a newer opset than the imported one, or all for an older one.
std::string import_cause(const Model& model, const dataflow::NodeViolation& violation) {
  const structure::OpsetNeeds::Mismatch mismatch = structure::OpsetNeeds::mismatch(model, violation);
  if (mismatch == structure::OpsetNeeds::Mismatch::kNone) return {};
  const Node& node = model.node(violation.node);
  return fmt::format("import {} {} {}", model.graph(node.graph).opsets, static_cast<int>(mismatch),
                     model.text(model.op(node).domain));
}

}  // namespace

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

std::optional<ops::LossKind> loss_named_at(findings::LocationResolver& locations, NodeId node) {
  const auto named = losses::loss_named(locations.metadata(node, "namespace"));
  return named ? named : losses::loss_named(locations.metadata(node, "pkg.torch.onnx.class_hierarchy"));
}

bool ViolationReporter::report(const ViolationCase& violation) {
  const Rule* rule = best_match(violation);
  assert(rule != nullptr && "each kind of constraint has a rule");
  if (!selection_.runs(rule->info())) return false;
  if (rule == previous_rule_ && continues(violation.at, previous_)) {
    if (FindingBuilder last = out_.last()) last.note("also here: " + violation.message());
    return false;
  }
  out_.set_rule(rule->info(), violation.at.engines_differ ? findings::Severity::kWarning : findings::Severity::kError);
  const std::size_t omitted_before = out_.omitted().total();
  rule->report(violation, out_);
  previous_ = &violation.at;
  previous_rule_ = rule;
  if (!out_.last() && out_.omitted().total() == omitted_before) return false;
  if (const std::string cause = import_cause(violation.analysis.model(), violation.at); !cause.empty())
    out_.last().cause(cause);
  return true;
}

}  // namespace tensorlint::rules
