#include <fmt/format.h>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class IndexDtype : public Rule {
 public:
  IndexDtype()
      : Rule({"TL-D105", "index-dtype", "dtype", findings::Severity::kError, "indices of a dtype that cannot index"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kTypeConstraint && names_indices(failure) ? kForOperator : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
    const Operand index = failure.operands().front();
    word(failure, failure.message(), out)
        .fix(fmt::format("cast {} to int64", index.name()), findings::Applicability::kUnsafe,
             insert_cast(failure.model(), failure.at.node, index.value(), DType::kInt64));
  }

 private:
  /// The culprit is what the operator's schema calls indices.
  static bool names_indices(const FailureCase& failure) {
    if (!failure.has_node() || failure.failure().operands.empty() || failure.operands().empty()) return false;
    const dataflow::Analysis::NodeApplication call(failure.analysis, failure.at.node);
    const FormalParameter* formal = call->formal_operand(static_cast<std::size_t>(failure.failure().operands.front()));
    return formal != nullptr && formal->name == "indices";
  }
};

const RegisterRule<IndexDtype> kRegister;

}  // namespace
}  // namespace tensorlint::rules
