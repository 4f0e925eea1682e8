#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "runtime/compare/comparison.h"

namespace tensorlint::compare {

/// Writes a node of `model` by itself into a folder, which is made where there is none:
///   model.onnx        the node; what it reads are inputs, but for weights that the model holds
///   test_data_set_0   its inputs, and outputs as they should be, in the layout of ONNX's tests
///   recorded          its inputs and recorded outputs, by name
/// Errors: files that cannot be written, a model above protobuf's limit.
std::optional<Error> write_reproduction(Model model, const Reproduction& what, const std::string& folder,
                                        runtime::Memory& memory);

}  // namespace tensorlint::compare
