#pragma once

#include <string>

#include "analyzer/rules/rule.h"
#include "passes/placement/placement.h"

namespace tensorlint {

/// Reports the failures of a placement that have one of these causes, with where both sides come from and the witness.
void report_placement_failures(ModelView& view, Reporter& out, std::initializer_list<PlacementCause> causes);

/// "in the second iteration", "in iteration 7"
std::string iteration_text(std::int64_t iteration);

}  // namespace tensorlint
