#pragma once

#include "runtime/compare/tensor_test.h"

namespace tensorlint::compare {

/// Holds recorded positions along `axis` of `operand` against those of the reference, by what lies there: of equal
/// elements any may be selected, and of elements that rounding may have put in another order. A position that is beyond
/// the axis, or selected twice from one line, is a fault whatever lies there. `positions` are int64 and of one shape.
TensorTest test_selection(const Estimate& operand, std::size_t axis, const runtime::HostTensor& positions,
                          const runtime::HostTensor& other, runtime::Memory& memory);

/// Holds a recorded result of a node against that of the reference for these inputs: positions by what they select,
/// others by test_tensor.
TensorTest test_result(const NodeReference& reference, const Model& model, NodeId node,
                       const NodeReference::Inputs& inputs, const Expected& expected, const runtime::HostTensor& other,
                       runtime::Memory& memory, const TestOptions& options = {});

}  // namespace tensorlint::compare
