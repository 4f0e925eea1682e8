#pragma once

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// Proposes what brings the operands of a failing node together: Transfers to where most of them are, put before the
/// outermost loop in which the operand stays the same, or a place for an initializer that only this node reads.
/// Proposes nothing where that is not clear: slices of a scan output, and claims that a later iteration breaks.
void propose_transfers(FindingBuilder& finding, const ModelView& view, const placement::PlacementViolation& violation);

}  // namespace tensorlint::rules
