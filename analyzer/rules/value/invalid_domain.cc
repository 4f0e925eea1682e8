#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class InvalidDomain : public Rule {
 public:
  InvalidDomain()
      : Rule({"TL-V504", "invalid-domain", "value", findings::Severity::kError,
              "a value for which the operator is not defined"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kDomain ? Specificity::kGeneric : Specificity::kNone;
  }

  /// The logarithms of a loss of probabilities are probability-out-of-range's.
  void report(const ViolationCase& violation, Reporter& out) const override {
    const bool is_logarithm = violation.has_node() && violation.call().is(ops::Opcode::kLog);
    const bool is_of_loss = violation.loss != nullptr && violation.loss->kind == ops::LossKind::kBinaryCrossEntropy;
    if (!is_logarithm || !is_of_loss) report_violation(violation, out);
  }
};

const RegisterRule<InvalidDomain> kRegister;

}  // namespace
}  // namespace tensorlint::rules
