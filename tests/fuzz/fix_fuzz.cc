#include <string>

#include "analyzer/fixes/fixer.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/reports/diff.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/printer.h"
#include "ir/writers/onnx/writer.h"
#include "tests/fuzz/fuzz_target.h"

namespace tensorlint::fuzz {

void fix(std::string_view bytes) {
  const Result<Model> model = read_onnx_bytes(bytes, "model.onnx");
  if (!model) return;
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  const pipeline::CheckResults found = pipeline::Pipeline(analysis, {}).check();
  const fixes::FixPlan plan = fixes::plan_fixes(*model, found.findings, true);
  if (plan.edits.empty()) return;
  const Result<EditedBytes> edited = edit_onnx(bytes, *model, plan.edits);
  if (!edited) {
    require(!edited.error().message.empty(), "an error says something");
    return;
  }
  const std::string fixed_bytes = edited->joined();
  const Result<Model> fixed = read_onnx_bytes(fixed_bytes, "model.onnx");
  if (!fixed) std::fprintf(stderr, "%s\n", fixed.error().message.c_str());
  require(fixed.ok(), "what is written can be read");
  const dataflow::Analysis after = dataflow::analyse(*fixed, {});
  fixes::drop_stale_declarations(analysis, after);
  static constexpr TextOptions kDiffText{.max_elements = 16};
  const auto print = [](const Model& of) { return [&](const TextSink& out) { to_text(of, kDiffText, out); }; };
  reports::unified_diff(print(*model), print(*fixed), "a", "b", [](std::string_view) {});
}

}  // namespace tensorlint::fuzz
