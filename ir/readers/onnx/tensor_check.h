#pragma once

#include <optional>
#include <string>

#include "base/file_bytes.h"
#include "ir/graph/model.h"

namespace tensorlint::onnx {

/// What is wrong with a tensor as it stands: unknown or missing dtype, negative or overflowing dims, data in a field
/// that is not the dtype's, more or less data than dims ask for. Elements of packed varints are counted, values never
/// looked at. `name`: as it appears in the message. `mapping`: as of WeightParts.
std::optional<std::string> tensor_fault(const Tensor& tensor, std::string_view name, const FileBytes* mapping);

}  // namespace tensorlint::onnx
