#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

class OperatorNotInOpset : public Rule {
 public:
  OperatorNotInOpset()
      : Rule({"TL-G602", "operator-not-in-opset", "graph", findings::Severity::kError,
              "an operator that the imported opset does not have"}) {}

  /// A version that is not known yet: a newer release of ONNX, or a slip.
  void check_model(const ModelView& view, Reporter& out) const override {
    const Model& model = view.model();
    if (model.opset_imports.empty()) return;
    for (const OpsetImport& import : model.opset_imports.front()) {
      const std::string_view domain = model.text(import.domain);
      const int newest = newest_opset(domain);
      if (newest <= 0 || import.version <= newest) continue;
      out.report_graph(
          findings::Severity::kWarning, GraphId::kMain,
          fmt::format(
              "the model imports opset {}{}, the newest that is known is {}: its operators are taken to be the same",
              import.version, domain.empty() ? std::string() : " of " + quoted_for_people(domain), newest));
    }
  }

  Specificity match(const ViolationCase& violation) const override {
    if (violation.needed_opset > 0) return Specificity::kMostSpecific;
    return violation.kind() == ops::ConstraintKind::kNotInOpset ? Specificity::kGeneric : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    const Operator& op = violation.call().op();
    if (violation.needed_opset == 0) {
      // Every node that calls the operator has the same mistake: said once.
      if (out.first(violation.call().op_name())) report_violation(violation, out);
      return;
    }
    // All nodes that are written for a later opset have the import's mistake. What comes first may be its consequence
    // only.
    const Model& model = violation.model();
    const std::string_view domain = model.text(op.domain);
    if (!out.first(fmt::format("import {} {}", model.graph(violation.call().node().graph).opsets, domain))) return;
    std::string message = violation.message();
    if (violation.kind() != ops::ConstraintKind::kNotInOpset)
      message = fmt::format("the model imports opset {}{}, and is written for opset {}: {}", op.opset,
                            domain.empty() ? std::string() : " of " + quoted_for_people(domain), violation.needed_opset,
                            message);
    report_violation(violation, std::move(message), out)
        .note(fmt::format("operators, operands and attributes fit from opset {} on", violation.needed_opset))
        .fix(fmt::format("import opset {}, or convert the model to opset {}", violation.needed_opset, op.opset));
  }
};

const RegisterRule<OperatorNotInOpset> kRegisterOperatorNotInOpset;

}  // namespace
}  // namespace tensorlint::rules
