#include "analyzer/rules/structure_faults.h"

#include "analyzer/findings/escape.h"

namespace tensorlint {

void report_fault(Reporter& out, const StructureFault& fault) {
  std::string message = escape_for_people(fault.message, 1000);
  const bool has_node = fault.node != NodeId::kNone;
  FindingBuilder finding = has_node ? out.report(fault.node, std::move(message)) : out.report_graph(fault.graph, std::move(message));
  finding.value(fault.value);
  if (!has_node) finding.place(out.places().in_text(fault.position));
}

void report_faults(ModelView& view, Reporter& out, bool (*is_meant)(const StructureFault&)) {
  for (const StructureFault& fault : view.model().faults)
    if (is_meant(fault)) report_fault(out, fault);
}

}  // namespace tensorlint
