#include "analyzer/cli/edited_model.h"

#include <fmt/format.h>

#include "analyzer/cli/inputs.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "ir/writers/text/writer.h"

namespace tensorlint::cli {

Result<EditedModel> edit_model(std::string_view file, const Model& model, std::span<const GraphEdit> edits,
                               const AnalysisOptions& options) {
  const bool is_text = is_text_model(model.path, file);
  Result<EditedBytes> edited = is_text ? edit_onnx_text(file, model, edits) : edit_onnx(file, model, edits);
  if (!edited) return edited.error();
  EditedModel out{.edited = std::move(*edited), .bytes = nullptr, .model = nullptr, .analysis = nullptr};
  out.bytes = std::make_shared<const std::string>(out.edited.joined());
  Result<Model> again =
      is_text ? read_onnx_text(*out.bytes, model.path) : read_onnx_bytes(*out.bytes, model.path, out.bytes);
  if (!again) return Error{fmt::format("the edited model cannot be read: {}", again.error().message), {}};
  out.model = std::make_unique<Model>(std::move(*again));
  out.analysis = std::make_unique<Analysis>(analyse(*out.model, options));
  return out;
}

}  // namespace tensorlint::cli
