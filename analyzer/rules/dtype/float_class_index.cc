#include <fmt/format.h>

#include "analyzer/rules/casts.h"
#include "analyzer/rules/loss/prediction.h"

namespace tensorlint::rules {
namespace {

class FloatClassIndex : public Rule {
 public:
  FloatClassIndex()
      : Rule({"TL-D104", "float-class-index", "dtype", findings::Severity::kError,
              "a classification loss gets floating-point numbers as class indices"}) {}

  Specificity match(const ViolationCase& violation) const override {
    if (violation.kind() != ops::ConstraintKind::kTypeConstraint) return Specificity::kNone;
    const auto loss = violation.loss_kind();
    if (!loss || !ops::takes_class_indices(*loss) || violation.loss == nullptr) return Specificity::kNone;
    const std::vector<Operand> operands = violation.operands();
    const bool is_target = !operands.empty() && operands.front().value() == violation.loss->target;
    return is_target && operands.front().fact().dtypes.proves(DTypeSet::floats()) ? Specificity::kMostSpecific
                                                                                  : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    const Operand target = violation.operands().front();
    if (has_class_probabilities(violation)) {
      report_violation(violation,
                       fmt::format("{} takes class indices; {} has a {} for each score, as class probabilities do",
                                   ops::to_text(*violation.loss_kind()), target.name(), target.fact().dtypes.to_text()),
                       out)
          .fix(fmt::format("write the loss out before exporting: -({} * log_softmax(scores)).sum(class axis).mean()",
                           target.name()));
      return;
    }
    report_violation(violation,
                     fmt::format("{} gets class indices {} of dtype {}", ops::to_text(*violation.loss_kind()),
                                 target.name(), target.fact().dtypes.to_text()),
                     out)
        .fix(fmt::format("cast {} to int64", target.name()), findings::Applicability::kUnsafe,
             insert_cast(violation.analysis, violation.at.node, target.value(), DType::kInt64));
  }
};

const RegisterRule<FloatClassIndex> kRegisterFloatClassIndex;

}  // namespace
}  // namespace tensorlint::rules
