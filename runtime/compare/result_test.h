#pragma once

#include "runtime/compare/tensor_test.h"

namespace tensorlint::compare {

/// Holds recorded result `result` of a node against that of the reference for these inputs: positions by what they
/// select, others by test_tensor.
TensorTest test_result(const NodeReference& reference, const Model& model, NodeId node, std::size_t result,
                       const NodeReference::Inputs& inputs, const Expected& expected, const runtime::HostTensor& other,
                       runtime::Memory& memory, const TestOptions& options = {});

}  // namespace tensorlint::compare
