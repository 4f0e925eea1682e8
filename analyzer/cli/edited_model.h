#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "analyzer/pipeline/pipeline.h"
#include "base/file_bytes.h"
#include "base/result.h"
#include "ir/graph/edit.h"
#include "ir/writers/onnx/writer.h"

namespace tensorlint::cli {

/// An edited model, read again.
struct EditedModel {
  EditedBytes edited;           ///< refers to the file that was edited
  std::string_view bytes;       ///< the same in one piece, without large weights of a binary one
  pipeline::Pipeline pipeline;  ///< of the model that these are; it keeps `bytes`

  const Model& model() const { return pipeline.model(); }
};

/// Carries edits out in the format of `model`, which has been read from `file`. Weights of a binary file are not
/// copied: the memory taken does not grow with them, and the model of the result reads them in the file.
///
/// `mapping`: of the file that weights lie in; null: in memory.
///
/// `earlier`: of a model that has been edited before, with `file` as its bytes, what these are; the result refers to
/// the same file.
Result<EditedModel> edit_model(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                               const pipeline::Options& options, const FileBytes* mapping = nullptr,
                               const EditedBytes* earlier = nullptr);

}  // namespace tensorlint::cli
