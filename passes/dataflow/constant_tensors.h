#pragma once

#include "passes/dataflow/analysis.h"

namespace tensorlint::dataflow {

/// The initializer, or what a Constant holds as a tensor, of the dims that the value has by its fact, none of which is
/// 0: products of them are the number of elements. Null for anything else.
const Tensor* constant_tensor(const Analysis& analysis, ValueId value);

/// Whether its numbers may be read: small ones, which are no weights, and as many others as the meter has room for.
bool may_read(const Analysis& analysis, const Tensor& tensor);

}  // namespace tensorlint::dataflow
