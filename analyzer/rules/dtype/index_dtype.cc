#include <fmt/format.h>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class IndexDtype : public Rule {
 public:
  IndexDtype()
      : Rule({"TL-D105", "index-dtype", "dtype", findings::Severity::kError, "indices of a dtype that cannot index"}) {}

  Specificity match(const ViolationCase& violation) const override {
    if (violation.kind() != ops::ConstraintKind::kTypeConstraint) return Specificity::kNone;
    if (integer_labels(violation)) return Specificity::kMostSpecific;
    return names_indices(violation) ? Specificity::kForOperator : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    if (const auto labels = integer_labels(violation)) {
      const bool fits = !labels->fact().dtypes.contains(DType::kUint64);
      report_violation(violation,
                       fmt::format("{} gets class indices {} of dtype {}, it takes int32 and int64",
                                   violation.call().op_name(), labels->name(), labels->fact().dtypes.to_text()),
                       out)
          .fix(fmt::format("cast {} to int64", labels->name()),
               fits ? findings::Applicability::kSafe : findings::Applicability::kUnsafe,
               insert_cast(violation.analysis, violation.at.node, labels->value(), DType::kInt64));
      return;
    }
    const Operand index = violation.operands().front();
    report_violation(violation, out)
        .fix(fmt::format("cast {} to int64", index.name()), findings::Applicability::kUnsafe,
             insert_cast(violation.analysis, violation.at.node, index.value(), DType::kInt64));
  }

 private:
  /// The labels of a classification loss, integers of another width: as floats they would be no labels any more.
  static std::optional<Operand> integer_labels(const ViolationCase& violation) {
    if (violation.loss == nullptr || violation.loss->evidence != losses::LossEvidence::kOperator ||
        !ops::takes_class_indices(violation.loss->kind))
      return std::nullopt;
    for (const Operand& operand : violation.operands())
      if (operand.value() == violation.loss->target &&
          operand.fact().dtypes.proves(DTypeSet::integers() | DType::kBool))
        return operand;
    return std::nullopt;
  }

  /// The culprit is what the operator's schema calls indices.
  static bool names_indices(const ViolationCase& violation) {
    if (!violation.has_node() || violation.at.operands.empty() || violation.operands().empty()) return false;
    const dataflow::Analysis::NodeApplication call(violation.analysis, violation.at.node);
    const FormalParameter* formal = call->formal_operand(static_cast<std::size_t>(violation.at.operands.front()));
    return formal != nullptr && formal->name == "indices";
  }
};

const RegisterRule<IndexDtype> kRegisterIndexDtype;

}  // namespace
}  // namespace tensorlint::rules
