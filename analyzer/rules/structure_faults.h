#pragma once

#include "analyzer/rules/rule.h"

namespace tensorlint {

/// Reports what the reader found wrong with the structure of the file, for one rule.
void report_faults(ModelView& view, Reporter& out, bool (*is_meant)(const StructureFault&));

}  // namespace tensorlint
