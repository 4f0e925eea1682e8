#include "analyzer/rules/structure_faults.h"

namespace tensorlint::rules {
namespace {

class MissingOpsetImport : public Rule {
 public:
  MissingOpsetImport()
      : Rule({"TL-G618", "missing-opset-import", "graph", findings::Severity::kError,
              "a node of a domain that the model does not import"}) {}

  int claim(const FailureCase& failure) const override {
    const bool not_imported =
        failure.kind() == ops::ConstraintKind::kNotInOpset && failure.has_node() && failure.call().op().opset == 0;
    return not_imported ? kForOperator : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
    // Every node of the domain has the same mistake: said once.
    if (out.first(failure.model().text(failure.call().op().domain))) word(failure, failure.message(), out);
  }

  void check_model(ModelView& view, Reporter& out) const override {
    report_faults(view, out,
                  [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kMissingOpsetImport; });
  }
};

const RegisterRule<MissingOpsetImport> kRegister;

}  // namespace
}  // namespace tensorlint::rules
