#pragma once

#include <string>
#include <string_view>

#include "analyzer/findings/finding.h"

namespace tensorlint::findings {

/// 16 hex digits that stay the same when nodes and values are numbered anew, when other nodes come or go, and when the
/// wording of a message changes: made of the rule, the graph, the operator, the names of node and value without their
/// numbers, the module and the line of the user's program (its text, not its number). Equal findings share a
/// fingerprint; who compares counts them.
std::string fingerprint(const Finding& finding);

/// A name without its numbers: "/layers.3/Add_12" and "/layers.4/Add_7" are the same.
std::string without_numbers(std::string_view name);

}  // namespace tensorlint::findings
