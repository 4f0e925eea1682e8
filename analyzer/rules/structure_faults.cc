#include "analyzer/rules/structure_faults.h"

#include "analyzer/findings/escape.h"

namespace tensorlint {

void report_faults(ModelView& view, Reporter& out, bool (*is_meant)(const StructureFault&)) {
  const Model& model = view.model();
  for (const StructureFault& fault : model.faults) {
    if (!is_meant(fault)) continue;
    std::string message = escape_for_people(fault.message, 1000);
    FindingBuilder finding = fault.node != NodeId::kNone ? out.report(fault.node, std::move(message)) : out.report_graph(fault.graph, std::move(message));
    finding.value(fault.value);
    if (fault.node == NodeId::kNone) finding.place(out.places().in_text(fault.position));
  }
}

}  // namespace tensorlint
