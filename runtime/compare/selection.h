#pragma once

#include "runtime/compare/tensor_test.h"

namespace tensorlint::compare {

/// Holds recorded positions along `axis` of `operand` against those of the reference, by what lies there: of equal
/// elements any may be selected, and of elements that rounding may have put in another order. A position that is beyond
/// the axis, or selected twice from one line, is a fault whatever lies there. `positions` are int64 and of one shape.
TensorTest test_selection(const Estimate& operand, std::size_t axis, const runtime::HostTensor& positions,
                          const runtime::HostTensor& other, runtime::Memory& memory);

}  // namespace tensorlint::compare
