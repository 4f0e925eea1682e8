#pragma once

#include "base/result.h"
#include "ir/graph/model.h"
#include "ir/writers/onnx/writer.h"

namespace tensorlint {

/// The whole model as a binary ONNX file, made from the graph: of a model read from any format or built in memory. Of a
/// binary model also what Model has no place for (doc strings, training information, quantisation annotations, unknown
/// fields) of model, graphs, functions, nodes and tensors, as it stands there; not that of attributes, declarations and
/// types (doc strings, denotations). Declarations follow the values' order. Fields that hold their default are left out
/// where ONNX makes no difference. Tensor data are views into the model, so the result is valid as long as `model`;
/// external data keep their reference as written. Errors: graphs nested deeper than readers accept (64), or a message
/// above protobuf's limit of 2 GiB.
Result<EditedBytes> write_onnx(const Model& model);

}  // namespace tensorlint
