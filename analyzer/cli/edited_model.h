#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/graph/edit.h"
#include "ir/writers/onnx/writer.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::cli {

/// An edited model, read and analysed again.
struct EditedModel {
  EditedBytes edited;                        ///< refers to what was edited
  std::shared_ptr<const std::string> bytes;  ///< the same in one piece; null from check_edits
  std::unique_ptr<Model> model;              ///< of these
  std::unique_ptr<dataflow::Analysis> analysis;
};

/// Carries edits out in the format of `model`, which has been read from `file`.
Result<EditedModel> edit_model(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                               const dataflow::AnalysisOptions& options);

/// The same for a binary file whose edited bytes are only to be written: large weights are not copied, so that the
/// memory taken does not grow with them. `model` of the result has zeros in tensors of at least 1 MiB, which no
/// analysis reads.
Result<EditedModel> check_edits(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                                const dataflow::AnalysisOptions& options);

}  // namespace tensorlint::cli
