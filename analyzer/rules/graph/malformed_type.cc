#include <fmt/format.h>

#include "analyzer/rules/structure_faults.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

class MalformedType : public Rule {
 public:
  MalformedType()
      : Rule({"TL-G620", "malformed-type", "graph", findings::Severity::kError, "a declared type that is invalid",
              kFilesOnly}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    report_faults(view, out,
                  [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kMalformedType; });
    const Model& model = view.model();
    if (model.graph(GraphId::kMain).byte_length == 0) return;  // text leaves types out
    for (const ValueId id : view.analysis().inputs(GraphId::kMain)) {
      const Value& value = model.value(id);
      const bool typed = value.type != nullptr && value.type->kind != TypeKind::kNone;
      if (!typed && !value.has_default())
        out.report_value(id,
                         fmt::format("input {} is declared without a type", quoted_for_people(model.text(value.name))));
    }
  }
};

const RegisterRule<MalformedType> kRegisterMalformedType;

}  // namespace
}  // namespace tensorlint::rules
