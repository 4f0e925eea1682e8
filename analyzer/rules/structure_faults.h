#pragma once

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// Reports one thing that is wrong with the structure of the file.
FindingBuilder report_fault(Reporter& out, const StructureFault& fault);

/// Reports those that the reader found and that one rule means.
void report_faults(const ModelView& view, Reporter& out, bool (*is_meant)(const StructureFault&));

}  // namespace tensorlint::rules
