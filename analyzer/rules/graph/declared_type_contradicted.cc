#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

std::string declared_text(const Model& model, const TypeDecl& type) {
  std::vector<std::string> dims;
  for (const DimDecl& dim : type.dims)
    dims.push_back(dim.has_extent               ? std::to_string(dim.extent)
                   : dim.name == NameId::kEmpty ? "?"
                                                : escape_for_display(model.text(dim.name), 64));
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

class DeclaredTypeContradicted : public Rule {
 public:
  DeclaredTypeContradicted()
      : Rule({"TL-G617", "declared-type-contradicted", "graph", findings::Severity::kError,
              "a declared type or shape that contradicts what the nodes compute"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kDeclaredType || is_shape(violation) ? Specificity::kGeneric
                                                                                         : Specificity::kNone;
  }

  /// Inputs with a constant as their default. ONNX Runtime refuses another shape here, too; what value_info says of
  /// other initializers it does not read.
  void check_model(const ModelView& view, Reporter& out) const override {
    const Model& model = view.model();
    for (const ValueId id : view.analysis().inputs(GraphId::kMain)) {
      const Value& value = model.value(id);
      if (value.initializer == nullptr || value.type == nullptr || value.type->kind != TypeKind::kTensor) continue;
      const Tensor& tensor = *value.initializer;
      const TypeDecl& type = *value.type;
      const std::string name = quoted_for_people(model.text(value.name));
      const bool known = is_known_dtype(type.element_code) && is_known_dtype(tensor.dtype_code);
      if (known && type.element_code != tensor.dtype_code) {
        out.report_value(id, fmt::format("{} is declared as {} but its initializer is {}", name,
                                         to_text(static_cast<DType>(type.element_code)),
                                         to_text(static_cast<DType>(tensor.dtype_code))));
      } else if (type.ranked && !std::ranges::equal(type.dims, tensor.dims, [](const DimDecl& a, std::int64_t b) {
                   return !a.has_extent || a.extent < 0 || a.extent == b;
                 })) {
        out.report_value(id, fmt::format("{} is declared with shape {} but its initializer has shape [{}]", name,
                                         declared_text(model, type), fmt::join(tensor.dims, ", ")));
      }
    }
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    using findings::Severity;
    report_violation(violation, out,
                     !is_shape(violation)        ? info().severity
                     : is_of_exporter(violation) ? Severity::kInfo
                                                 : Severity::kWarning);
  }

 private:
  /// PyTorch's exporter writes what its own inference of ONNX operators gives for values inside of the graph, which for
  /// losses without a reduction is wrong (torch 2.13); whoever exports can do nothing about it.
  static bool is_of_exporter(const ViolationCase& violation) {
    if (violation.model().producer_name != "pytorch" || !violation.has_node()) return false;
    const Model& model = violation.model();
    return std::ranges::none_of(violation.analysis.results(violation.at.node), [&](ValueId result) {
      return result != ValueId::kAbsent && model.value(result).is_output;
    });
  }

  // ONNX Runtime refuses another dtype; of another shape it warns, and computes what the nodes say.
  static bool is_shape(const ViolationCase& violation) { return ops::is_about_declared_shape(violation.kind()); }
};

const RegisterRule<DeclaredTypeContradicted> kRegisterDeclaredTypeContradicted;

}  // namespace
}  // namespace tensorlint::rules
