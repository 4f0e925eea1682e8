#include "passes/structure/opset_needs.h"

#include <algorithm>
#include <span>

#include "ir/ops/inference.h"

namespace tensorlint::structure {
namespace {

bool fits(const OpSchema& schema, const Node& node, std::span<const Attribute> attributes) {
  if (node.operand_count < schema.min_inputs || node.operand_count > schema.max_inputs) return false;
  if (node.result_count < schema.min_outputs || node.result_count > schema.max_outputs) return false;
  const auto is_known = [&](const Attribute& attribute) {
    const FormalAttribute* formal = schema.attribute(attribute.name);
    return formal != nullptr && formal->kind == attribute.kind;
  };
  if (!std::ranges::all_of(attributes, is_known)) return false;
  return std::ranges::all_of(schema.attributes, [&](const FormalAttribute& formal) {
    return !formal.required ||
           std::ranges::any_of(attributes, [&](const Attribute& attribute) { return attribute.name == formal.name; });
  });
}

/// What the versions of an operator differ in.
bool is_about_version(ops::ConstraintKind kind) {
  return kind == ops::ConstraintKind::kNotInOpset || kind == ops::ConstraintKind::kOperandCount ||
         kind == ops::ConstraintKind::kUnknownAttribute || kind == ops::ConstraintKind::kAttribute;
}

}  // namespace

std::int64_t OpsetNeeds::needed_for(const Model& model, const dataflow::NodeViolation& violation) {
  const ops::ConstraintKind kind = violation.kind();
  if (violation.node == NodeId::kNone || !is_about_version(kind)) return 0;
  const Node& node = model.node(violation.node);
  const Operator& op = model.op(node);
  if (op.function != GraphId::kNone || op.opset <= 0) return 0;
  // What the imported schema takes fails for another reason: a value that the operator does not allow, a body.
  if (op.schema != nullptr && kind != ops::ConstraintKind::kNotInOpset &&
      fits(*op.schema, node, model.attributes(node)))
    return 0;
  const std::string_view domain = model.text(op.domain), name = model.text(op.name);
  const int newest = newest_opset(domain);
  if (op.opset >= newest) return 0;
  for (std::int64_t opset = op.opset + 1; opset <= newest; ++opset) {
    const OpSchema* schema = find_schema(domain, name, static_cast<int>(opset));
    if (schema == nullptr || schema->deprecated || schema->since_version != opset) continue;
    if (fits(*schema, node, model.attributes(node))) return opset;
  }
  return 0;
}

OpsetNeeds::OpsetNeeds(const dataflow::Analysis& analysis) : model_(analysis.model()) {
  for (const dataflow::NodeViolation& violation : analysis.violations()) {
    const std::int64_t needed = needed_for(model_, violation);
    if (needed == 0) continue;
    const Node& node = model_.node(violation.node);
    std::int64_t& known = needed_[{model_.graph(node.graph).opsets, model_.op(node).domain}];
    known = std::max(known, needed);
  }
  // A node that the needed opset would break shows that the model is not written for it.
  for (const Node& node : model_.nodes) {
    if (needed_.empty()) return;
    const Operator& op = model_.op(node);
    const auto found = needed_.find({model_.graph(node.graph).opsets, op.domain});
    if (found == needed_.end() || op.function != GraphId::kNone || op.schema == nullptr) continue;
    const OpSchema* then = find_schema(model_.text(op.domain), model_.text(op.name), static_cast<int>(found->second));
    const auto attributes = model_.attributes(node);
    if (then != op.schema && fits(*op.schema, node, attributes) &&
        (then == nullptr || then->deprecated || !fits(*then, node, attributes)))
      needed_.erase(found);
  }
}

std::int64_t OpsetNeeds::explaining(const dataflow::NodeViolation& violation) const {
  if (needed_.empty() || violation.node == NodeId::kNone) return 0;
  const Node& node = model_.node(violation.node);
  const Operator& op = model_.op(node);
  const auto found = needed_.find({model_.graph(node.graph).opsets, op.domain});
  if (found == needed_.end()) return 0;
  const OpSchema* then = find_schema(model_.text(op.domain), model_.text(op.name), static_cast<int>(found->second));
  if (then == nullptr || then == op.schema) return 0;
  // What that version does not take either is a mistake of its own.
  return !is_about_version(violation.kind()) || fits(*then, node, model_.attributes(node)) ? found->second : 0;
}

bool OpsetNeeds::fits_an_older_version(const Model& model, const dataflow::NodeViolation& violation) {
  if (violation.node == NodeId::kNone || !is_about_version(violation.kind())) return false;
  const Node& node = model.node(violation.node);
  const Operator& op = model.op(node);
  if (op.function != GraphId::kNone || op.schema == nullptr || fits(*op.schema, node, model.attributes(node)))
    return false;
  const std::string_view domain = model.text(op.domain), name = model.text(op.name);
  for (int opset = op.schema->since_version - 1; opset > 0;) {
    const OpSchema* schema = find_schema(domain, name, opset);
    if (schema == nullptr) return false;
    if (fits(*schema, node, model.attributes(node))) return true;
    opset = schema->since_version - 1;
  }
  return false;
}

OpsetNeeds::Mismatch OpsetNeeds::mismatch(const Model& model, const dataflow::NodeViolation& violation) {
  if (needed_for(model, violation) > 0) return Mismatch::kWrittenForNewer;
  return fits_an_older_version(model, violation) ? Mismatch::kWrittenForOlder : Mismatch::kNone;
}

}  // namespace tensorlint::structure
