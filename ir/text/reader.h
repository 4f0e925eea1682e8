#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/graph/model.h"

namespace tensorlint {

/// A model in ONNX text, the syntax of onnx.parser (onnx 1.23) and, beyond it:
/// - quoted names wherever a name stands: of attributes, operators, domains (`"my-domain".Op`) and subgraphs (`body =
/// "g 1" (x) => ...`);
/// - lists of tensors, graphs and types keep their items;
/// - a sparse constant is its type and, in braces, values and indices:
///   `sparse_tensor(float[3, 4]) w = {float[2] {1, 2}, int64[2] {0, 5}}`;
/// - elements of float16 and bfloat16 constants may be floats (`1.0`); integers are bit patterns there, as in
/// onnx.parser;
/// - `undefined` and `dtype_99` stand for element types that have no name.
/// `#` comments stand anywhere and are kept in Model::comments. The syntax knows no metadata of nodes and values.
/// Positions have byte offset, line and column, both from 1, the column in bytes. Constants are read into raw data.
/// Errors: what was expected and what was found, at the place it was found; graphs that nest more than 64 deep, types
/// more than 16, more than 1,024 opset imports, so many tiny pieces that the model would take more than 16 MiB and 36
/// bytes a byte.
Result<Model> read_onnx_text(std::string_view text, std::string path);

/// The same of a file. Errors: also those of FileBytes, and a file that is larger than 1 GiB.
Result<Model> read_onnx_text_file(const std::string& path);

}  // namespace tensorlint
