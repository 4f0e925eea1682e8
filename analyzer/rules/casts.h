#pragma once

#include "analyzer/rules/rule.h"

namespace tensorlint {

/// Where casting one operand to another's dtype mends a failure.
struct CastFix {
  Operand operand;
  DType to;
};

/// The integer or bool operand of a failure, and the floating dtype of the other operands of its node; nullopt where the
/// dtypes are not known or not of these kinds.
std::optional<CastFix> cast_to_float(const FailureCase& failure);

/// Proposes the cast; safe where the operand's range fits the dtype without rounding.
void propose_cast(FindingBuilder& finding, const CastFix& fix);

/// Every integer in the range is a number of the floating dtype.
bool is_exact_in(const Range& range, DType dtype);

}  // namespace tensorlint
