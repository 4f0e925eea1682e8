#include <string>

#include "analyzer/rules/structure_faults.h"

namespace tensorlint {
namespace {

class DuplicateDefinition : public Rule {
 public:
  DuplicateDefinition() : Rule({"TL-G608", "duplicate-definition", "graph", Severity::kError, "a name, function or opset that is defined twice"}) {}

  void check_model(ModelView& view, Reporter& out) const override {
    for (const StructureFault& fault : view.model().faults) {
      const bool meant = fault.kind == StructureFault::Kind::kDuplicateDefinition || fault.kind == StructureFault::Kind::kDuplicateFunction ||
                         fault.kind == StructureFault::Kind::kDuplicateOpsetImport;
      // A node that stands there twice defines all of its results again.
      const bool same_node = meant && fault.node != NodeId::kNone && !out.first(std::to_string(static_cast<std::uint32_t>(fault.node)));
      if (meant && !same_node) report_fault(out, fault);
    }
  }
};

const RegisterRule<DuplicateDefinition> kRegister;

}  // namespace
}  // namespace tensorlint
