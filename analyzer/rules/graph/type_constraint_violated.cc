#include <fmt/format.h>

#include <algorithm>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class TypeConstraintViolated : public Rule {
 public:
  TypeConstraintViolated()
      : Rule({"TL-G605", "type-constraint-violated", "graph", findings::Severity::kError,
              "an operand of a type that the operator does not take"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kTypeConstraint ? Specificity::kGeneric : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    FindingBuilder finding = report_violation(violation, out);
    if (violation.at.operands.empty() || !takes_only_bool(violation, violation.at.operands.front())) return;
    const Operand operand = violation.call().operand(static_cast<std::size_t>(violation.at.operands.front()));
    finding.fix(fmt::format("cast {} to bool", operand.name()), findings::Applicability::kUnsafe,
                insert_cast(violation.analysis, violation.at.node, operand.value(), DType::kBool));
  }

 private:
  /// A condition or mask of numbers: of them every one but 0 is true.
  static bool takes_only_bool(const ViolationCase& violation, int index) {
    if (index < 0 || !violation.has_node()) return false;
    const NodeCall call = violation.call();
    const auto at = static_cast<std::size_t>(index);
    const OpSchema* schema = call.op().schema;
    const Operand operand = call.operand(at);
    if (schema == nullptr || schema->inputs.empty() || !operand.present() ||
        operand.fact().kind != ValueKind::kTensor ||
        !operand.fact().dtypes.proves(DTypeSet::integers() | DTypeSet::floats()))
      return false;
    const FormalParameter& formal = schema->inputs[std::min(at, schema->inputs.size() - 1)];
    return schema->types[formal.type].allowed.tensor == DTypeSet(DType::kBool);
  }
};

const RegisterRule<TypeConstraintViolated> kRegisterTypeConstraintViolated;

}  // namespace
}  // namespace tensorlint::rules
