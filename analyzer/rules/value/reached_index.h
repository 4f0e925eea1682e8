#pragma once

#include "analyzer/rules/rule.h"
#include "passes/dataflow/reached_values.h"

namespace tensorlint::rules {

/// How certain it is that the operand has the index, and where its values come from.
void explain_index(FindingBuilder& finding, const Operand& operand, const dataflow::ReachedIndex& reached);

}  // namespace tensorlint::rules
