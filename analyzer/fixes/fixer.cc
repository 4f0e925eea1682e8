#include "analyzer/fixes/fixer.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

namespace tensorlint::fixes {
namespace {

/// What the edits that are taken already change: operands and attributes of nodes, and whole nodes.
class Targets {
 public:
  explicit Targets(const Model& model) : model_(model) {}

  /// False, and nothing is taken, where one of the edits meets what is taken. Insertions never meet each other.
  bool take(const std::vector<GraphEdit>& edits) {
    std::set<std::pair<NodeId, std::string>> parts;
    std::set<NodeId> around, whole;
    for (const GraphEdit& edit : edits) {
      if (const auto* operand = std::get_if<SetOperand>(&edit))
        parts.emplace(operand->node, std::to_string(operand->index));
      if (const auto* attribute = std::get_if<SetAttribute>(&edit))
        parts.emplace(attribute->node, "@" + attribute->attribute.name);
      if (const auto* insert = std::get_if<InsertNode>(&edit)) add_with_owners(insert->before, around);
      if (const auto* removal = std::get_if<RemoveNode>(&edit)) whole.insert(removal->node);
      if (const auto* move = std::get_if<MoveNode>(&edit)) {
        whole.insert(move->node);
        if (move->before != NodeId::kNone) add_with_owners(move->before, around);
      }
    }
    for (const auto& [node, part] : parts) add_with_owners(node, around);
    // What happens in the bodies of a whole node goes with it.
    for (const NodeId node : whole) add_owners(node, around);
    const auto meets = [](const auto& wanted, const auto& taken) {
      return std::ranges::any_of(wanted, [&](const auto& one) { return taken.contains(one); });
    };
    if (meets(parts, parts_) || meets(around, whole_) || meets(whole, around_) || meets(whole, whole_)) return false;
    parts_.merge(parts);
    around_.merge(around);
    whole_.merge(whole);
    return true;
  }

 private:
  void add_with_owners(NodeId node, std::set<NodeId>& nodes) const {
    nodes.insert(node);
    add_owners(node, nodes);
  }

  void add_owners(NodeId node, std::set<NodeId>& nodes) const {
    while ((node = model_.graph(model_.node(node).graph).owner) != NodeId::kNone) nodes.insert(node);
  }

  const Model& model_;
  std::set<std::pair<NodeId, std::string>> parts_;
  std::set<NodeId> around_, whole_;  // nodes that are changed or stand around changes; nodes that go or move
};

}  // namespace

FixPlan plan_fixes(const Model& model, const std::vector<findings::Finding>& findings, bool unsafe) {
  // A model is held several times while it is edited, with all names that edits put into it.
  constexpr std::size_t kMostBytes = std::size_t{1} << 21;
  std::size_t plan_bytes = 0;
  FixPlan plan;
  Targets taken(model);
  const auto plan_place = [&](const findings::Finding& finding) {
    const auto with_edits =
        std::ranges::find_if(finding.fixes, [](const findings::Fix& fix) { return !fix.edits.empty(); });
    if (with_edits == finding.fixes.end()) return;
    const auto usable = std::ranges::find_if(finding.fixes, [&](const findings::Fix& fix) {
      return !fix.edits.empty() && (unsafe || fix.applicability == findings::Applicability::kSafe);
    });
    if (usable == finding.fixes.end()) {
      ++plan.unsafe_left;
      return;
    }
    std::size_t bytes = 0;
    for (const GraphEdit& edit : usable->edits) bytes += bytes_of(edit) - sizeof edit;
    if ((plan_bytes > 0 && plan_bytes + bytes > kMostBytes) || !taken.take(usable->edits)) return;
    plan_bytes += bytes;
    plan.edits.insert(plan.edits.end(), usable->edits.begin(), usable->edits.end());
    plan.fixed.push_back(&finding);
    plan.fixes_used.push_back(&*usable);
  };
  for (const findings::Finding& finding : findings) {
    plan_place(finding);
    for (const findings::Finding& place : finding.also) plan_place(place);
  }
  return plan;
}

std::vector<GraphEdit> drop_stale_declarations(const dataflow::Analysis& before, const dataflow::Analysis& after) {
  const auto contradicted = [](const dataflow::Analysis& analysis) {
    std::set<std::pair<GraphId, std::string>> names;
    for (const dataflow::NodeViolation& violation : analysis.violations()) {
      const ops::ConstraintKind kind = violation.kind();
      if (kind != ops::ConstraintKind::kDeclaredType && !ops::is_about_declared_shape(kind)) continue;
      const Model& model = analysis.model();
      for (const ValueId result : model.results(model.node(violation.node)))
        if (result != ValueId::kAbsent && !model.value(result).is_output)
          names.emplace(model.value(result).graph, model.name_of(result));
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

}  // namespace tensorlint::fixes
