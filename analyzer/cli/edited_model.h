#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "analyzer/pipeline/pipeline.h"
#include "base/result.h"
#include "ir/graph/edit.h"
#include "ir/writers/onnx/writer.h"

namespace tensorlint::cli {

/// An edited model, read again.
struct EditedModel {
  EditedBytes edited;                        ///< refers to what was edited
  std::shared_ptr<const std::string> bytes;  ///< the same in one piece; null from check_edits
  pipeline::Pipeline pipeline;               ///< of the model that these are

  const Model& model() const { return pipeline.model(); }
};

/// Carries edits out in the format of `model`, which has been read from `file`.
Result<EditedModel> edit_model(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                               const pipeline::Options& options);

/// The same for a binary file whose edited bytes are only to be written: large weights are not copied, so that the
/// memory taken does not grow with them. The model of the result has zeros in tensors of at least 1 MiB, which no
/// analysis reads.
Result<EditedModel> check_edits(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                                const pipeline::Options& options);

}  // namespace tensorlint::cli
