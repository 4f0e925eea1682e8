#include <fmt/format.h>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class FloatClassIndex : public Rule {
 public:
  FloatClassIndex()
      : Rule({"TL-D104", "float-class-index", "dtype", findings::Severity::kError,
              "a classification loss gets floating-point numbers as class indices"}) {}

  int claim(const FailureCase& failure) const override {
    if (failure.kind() != ops::ConstraintKind::kTypeConstraint) return 0;
    const auto loss = failure.loss_kind();
    if (!loss || !ops::takes_class_indices(*loss) || failure.loss == nullptr) return 0;
    const std::vector<Operand> operands = failure.operands();
    const bool is_target = !operands.empty() && operands.front().value() == failure.loss->target;
    return is_target && operands.front().fact().dtypes.proves(DTypeSet::floats()) ? kForLoss + 1 : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
    const Operand target = failure.operands().front();
    word(failure,
         fmt::format("{} gets class indices {} of dtype {}", ops::to_text(*failure.loss_kind()), target.name(),
                     target.fact().dtypes.to_text()),
         out)
        .fix(fmt::format("cast {} to int64", target.name()), findings::Applicability::kUnsafe,
             insert_cast(failure.model(), failure.at.node, target.value(), DType::kInt64));
  }
};

const RegisterRule<FloatClassIndex> kRegister;

}  // namespace
}  // namespace tensorlint::rules
