#include "analyzer/rules/structure_faults.h"

#include "base/escape.h"

namespace tensorlint::rules {

FindingBuilder report_fault(Reporter& out, const StructureFault& fault) {
  std::string message = escape_for_display(fault.message, 1000);
  const bool has_node = fault.node != NodeId::kNone;
  FindingBuilder finding =
      has_node ? out.report(fault.node, std::move(message)) : out.report_graph(fault.graph, std::move(message));
  finding.value(fault.value);
  if (fault.kind == StructureFault::Kind::kDuplicateDefinition && fault.value != ValueId::kAbsent) {
    const Value& first = out.analysis().model().value(fault.value);
    if (first.producer != NodeId::kNone && first.producer != fault.node) {
      finding.note_at(first.producer, "defined first here");
    } else if (first.origin == ValueOrigin::kInput || first.origin == ValueOrigin::kInitializer) {
      finding.note(first.origin == ValueOrigin::kInput ? "defined first as an input"
                                                       : "defined first as an initializer");
    }
  }
  if (!has_node && finding) finding.place(out.locations().in_text(fault.position));
  return finding;
}

void report_faults(const ModelView& view, Reporter& out, bool (*is_meant)(const StructureFault&)) {
  for (const StructureFault& fault : view.model().faults)
    if (is_meant(fault)) report_fault(out, fault);
}

}  // namespace tensorlint::rules
