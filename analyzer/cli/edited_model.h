#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph/edit.h"
#include "ir/result.h"
#include "ir/writers/onnx/writer.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::cli {

/// An edited model, read and analysed again.
struct EditedModel {
  EditedBytes edited;                        ///< refers to what was edited
  std::shared_ptr<const std::string> bytes;  ///< the same in one piece
  std::unique_ptr<Model> model;              ///< of `bytes`
  std::unique_ptr<Analysis> analysis;
};

/// Carries edits out in the format of `model`, which has been read from `file`.
Result<EditedModel> edit_model(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                               const AnalysisOptions& options);

}  // namespace tensorlint::cli
