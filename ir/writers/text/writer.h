#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "ir/graph/edit.h"
#include "ir/writers/onnx/writer.h"

namespace tensorlint {

/// Splices edits into a model in text. Comments and layout stay; a new node gets a line of its own, indented like the
/// node that it stands before, and a node that is taken away or moved takes its line and the comment behind it along.
/// `model` has been read from `file`.
/// Errors: metadata of a node or constant, an import or metadata where the model has no header for it, an import into a
/// function, a node that is not there.
Result<EditedBytes> edit_onnx_text(std::string_view file, const Model& model, std::span<const GraphEdit> edits);

}  // namespace tensorlint
