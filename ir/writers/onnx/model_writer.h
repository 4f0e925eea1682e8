#pragma once

#include "ir/graph/model.h"
#include "ir/result.h"
#include "ir/writers/onnx/writer.h"

namespace tensorlint {

/// The whole model as a binary ONNX file: the same graphs, nodes, values and constants, of a model read from any format
/// or built in memory. What Model does not hold is not written: doc strings, denotations, training information,
/// quantisation annotations and fields that nobody knows. Tensor data are views into the model, so the result is valid as
/// long as `model`. External data keep their reference as written.
/// Errors: graphs nested deeper than readers accept (64), or a message above protobuf's limit of 2 GiB.
Result<EditedBytes> write_onnx(const Model& model);

}  // namespace tensorlint
