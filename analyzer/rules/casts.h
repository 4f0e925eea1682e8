#pragma once

#include <span>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// Where casting one operand to another's dtype mends a violation.
struct CastFix {
  Operand operand;
  DType to;
};

/// The integer or bool operand of a violation, and the floating dtype of the other operands of its node; nullopt where
/// the dtypes are not known or not of these kinds.
std::optional<CastFix> cast_to_float(const ViolationCase& violation);

/// Inserts a Cast of a value right before a node, for all operands of the node that are this value.
std::vector<GraphEdit> insert_cast(const dataflow::Analysis& analysis, NodeId before, ValueId value, DType to);

/// Inserts a Squeeze of the last axis of a value right before a node, for all operands of the node that are this value.
std::vector<GraphEdit> insert_squeeze_of_last_axis(const dataflow::Analysis& analysis, NodeId before, ValueId value);

/// All operands of a node that are `from` get the name `to`; of more edits than a fix may have it makes a few too many,
/// so that they are left out.
void redirect_operands(const dataflow::Analysis& analysis, NodeId node, ValueId from, const std::string& to,
                       std::vector<GraphEdit>& edits);

/// Takes away a node that only `readers` read, which now read something else.
void remove_with_last_readers(const dataflow::Analysis& analysis, NodeId node, std::span<const NodeId> readers,
                              std::vector<GraphEdit>& edits);

/// The dtype of a tensor that is certainly of one floating-point type.
std::optional<DType> float_of(const Operand& operand);

/// Proposes the cast before the failing node; safe where the operand's range fits the dtype without rounding.
void propose_cast(FindingBuilder& finding, const ViolationCase& violation, const CastFix& fix);

/// The value is carried from one iteration of a loop to the next, and what the node makes of it may be what it becomes:
/// its dtype is given by the loop's operand.
bool updates_state(const dataflow::Analysis& analysis, NodeId node, ValueId value);

/// A failed precondition is about the value: what is wrong there explains what is odd about the value.
bool is_in_violation(const dataflow::Analysis& analysis, ValueId value);

/// Every integer in the range is a number of the floating dtype.
bool is_exact_in(const Range& range, DType dtype);

}  // namespace tensorlint::rules
