#pragma once

#include <string>
#include <string_view>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// The one rule that words a violation: the one that fits it best.
const Rule* best_match(const ViolationCase& violation);

/// What the exporter wrote about a node where it may name a loss.
std::string_view loss_metadata_of(findings::LocationResolver& locations, NodeId node);

/// Another side of what failed at the node before: of the same aspect, and about the same operands or some of them. A
/// product whose operands are swapped disagrees in its inner extents and in its batch.
bool continues(const dataflow::NodeViolation& violation, const dataflow::NodeViolation* previous);

/// A key that nodes share which are all written for a newer opset than the imported one, or all for an older one.
std::string import_cause(const Model& model, const dataflow::NodeViolation& violation);

/// Adds another side to the finding that was made last.
void report_continued(const ViolationCase& violation, Reporter& out);

}  // namespace tensorlint::rules
