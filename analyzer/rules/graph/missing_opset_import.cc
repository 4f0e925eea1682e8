#include <optional>
#include <string_view>

#include "analyzer/rules/structure_faults.h"

namespace tensorlint::rules {
namespace {

class MissingOpsetImport : public Rule {
 public:
  MissingOpsetImport()
      : Rule({"TL-G618", "missing-opset-import", "graph", findings::Severity::kError,
              "a node of a domain that the model does not import"}) {}

  Specificity match(const ViolationCase& violation) const override {
    const bool not_imported = violation.kind() == ops::ConstraintKind::kNotInOpset && violation.has_node() &&
                              violation.call().op().opset == 0;
    return not_imported ? Specificity::kForOperator : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    // Every node of the domain has the same mistake: said once.
    const std::string_view domain = violation.model().text(violation.call().op().domain);
    if (!out.first(domain)) return;
    // onnxruntime 1.31 takes its newest version of these, and runs the model; onnx.checker refuses it.
    const bool runs = domain.empty() || domain == "ai.onnx.ml" || domain == "com.microsoft";
    report_violation(violation, out, runs ? std::optional(findings::Severity::kWarning) : std::nullopt);
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    report_faults(view, out,
                  [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kMissingOpsetImport; });
  }
};

const RegisterRule<MissingOpsetImport> kRegisterMissingOpsetImport;

}  // namespace
}  // namespace tensorlint::rules
