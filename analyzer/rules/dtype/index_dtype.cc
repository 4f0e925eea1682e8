#include <fmt/format.h>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class IndexDtype : public Rule {
 public:
  IndexDtype()
      : Rule({"TL-D105", "index-dtype", "dtype", findings::Severity::kError, "indices of a dtype that cannot index"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kTypeConstraint && names_indices(violation)
               ? Specificity::kForOperator
               : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    const Operand index = violation.operands().front();
    report_violation(violation, out)
        .fix(fmt::format("cast {} to int64", index.name()), findings::Applicability::kUnsafe,
             insert_cast(violation.model(), violation.at.node, index.value(), DType::kInt64));
  }

 private:
  /// The culprit is what the operator's schema calls indices.
  static bool names_indices(const ViolationCase& violation) {
    if (!violation.has_node() || violation.at.operands.empty() || violation.operands().empty()) return false;
    const dataflow::Analysis::NodeApplication call(violation.analysis, violation.at.node);
    const FormalParameter* formal = call->formal_operand(static_cast<std::size_t>(violation.at.operands.front()));
    return formal != nullptr && formal->name == "indices";
  }
};

const RegisterRule<IndexDtype> kRegister;

}  // namespace
}  // namespace tensorlint::rules
