#pragma once

#include <string>

#include "passes/dataflow/analysis.h"

namespace tensorlint {

/// How the facts of a value came about: the chain of nodes behind it, each with operands and results, back to where its
/// dtype and shape began, and the reason where something is not known. Ends after 40 nodes. For people.
std::string why_text(const Analysis& analysis, ValueId value);

}  // namespace tensorlint
