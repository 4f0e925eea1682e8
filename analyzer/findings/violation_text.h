#pragma once

#include <string>

#include "passes/dataflow/analysis.h"

namespace tensorlint::findings {

/// The message of a violation with the names of the node's operands and results, escaped for display.
std::string violation_text(const dataflow::Analysis& analysis, const dataflow::NodeViolation& violation);

/// The case in which a `may` violation comes true; empty where there is none.
std::string witness_text(const dataflow::Analysis& analysis, const dataflow::NodeViolation& violation);

}  // namespace tensorlint::findings
