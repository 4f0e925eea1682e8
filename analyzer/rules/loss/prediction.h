#pragma once

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// The node that computed a value before Identity, Dropout and Cast between floating dtypes; kNone where there is
/// none.
NodeId producer_behind_identities(const dataflow::Analysis& analysis, ValueId value);

/// A Clip, Min or Max takes the value: what goes on is bounded, whatever the value is. Costs a walk over the nodes.
bool is_clamped(const dataflow::Analysis& analysis, ValueId value);

}  // namespace tensorlint::rules
