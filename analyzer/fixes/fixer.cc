#include "analyzer/fixes/fixer.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace tensorlint {
namespace {

/// What a set of edits changes in place: operands and attributes of nodes. Insertions never meet.
using Targets = std::set<std::pair<NodeId, std::string>>;

Targets targets_of(const std::vector<GraphEdit>& edits) {
  Targets targets;
  for (const GraphEdit& edit : edits) {
    if (const auto* operand = std::get_if<SetOperand>(&edit)) targets.emplace(operand->node, std::to_string(operand->index));
    if (const auto* attribute = std::get_if<SetAttribute>(&edit)) targets.emplace(attribute->node, "@" + attribute->attribute.name);
  }
  return targets;
}

}  // namespace

FixPlan plan_fixes(const std::vector<Finding>& findings, bool unsafe) {
  FixPlan plan;
  Targets taken;
  for (const Finding& finding : findings) {
    const auto with_edits = std::ranges::find_if(finding.fixes, [](const Fix& fix) { return !fix.edits.empty(); });
    if (with_edits == finding.fixes.end()) continue;
    const auto usable = std::ranges::find_if(finding.fixes, [&](const Fix& fix) {
      return !fix.edits.empty() && (unsafe || fix.applicability == Applicability::kSafe);
    });
    if (usable == finding.fixes.end()) {
      ++plan.unsafe_left;
      continue;
    }
    const Targets wanted = targets_of(usable->edits);
    if (std::ranges::any_of(wanted, [&](const auto& target) { return taken.contains(target); })) {
      ++plan.conflicting;
      continue;
    }
    taken.insert(wanted.begin(), wanted.end());
    plan.edits.insert(plan.edits.end(), usable->edits.begin(), usable->edits.end());
    plan.fixed.push_back(&finding);
    plan.fixes_used.push_back(&*usable);
  }
  return plan;
}

std::vector<GraphEdit> drop_stale_declarations(const Analysis& before, const Analysis& after) {
  const auto contradicted = [](const Analysis& analysis) {
    std::set<std::pair<GraphId, std::string>> names;
    for (const NodeFailure& failure : analysis.failures()) {
      const ConstraintKind kind = failure.failure.constraint->kind;
      if (kind != ConstraintKind::kDeclaredType && kind != ConstraintKind::kDeclaredShape) continue;
      const Model& model = analysis.model();
      for (const ValueId result : model.results(model.node(failure.node)))
        if (result != ValueId::kAbsent && !model.value(result).is_output) names.emplace(model.value(result).graph, model.name_of(result));
    }
    return names;
  };
  // Fixes add no graphs, so the ids of graphs are those of the model before.
  const auto known = contradicted(before);
  std::vector<GraphEdit> edits;
  for (const auto& [graph, name] : contradicted(after))
    if (!known.contains({graph, name})) edits.push_back(DropValueInfo{graph, name});
  return edits;
}

}  // namespace tensorlint
