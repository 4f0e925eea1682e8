#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file_bytes.h"
#include "ir/constants/tensor.h"

namespace tensorlint {

/// What is wrong with a sparse tensor, given that `values` and `indices` by themselves are well-formed; nullopt where
/// nothing is. Values are a list; int64 indices in range, ascending, each once, as positions in the flattened tensor
/// [count] or as coordinates [count, rank]. What is in external data is not looked at.
/// `mapping`: as of WeightParts.
/// Source: onnx.SparseTensorProto and onnx.checker.
std::optional<std::string> sparse_fault(const SparseTensor& tensor, std::string_view name, const FileBytes* mapping);

}  // namespace tensorlint
