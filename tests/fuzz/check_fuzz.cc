#include <string>
#include <utility>

#include "analyzer/findings/input_report.h"
#include "analyzer/pipeline/pipeline.h"
#include "analyzer/reports/json.h"
#include "analyzer/reports/show.h"
#include "analyzer/reports/text.h"
#include "base/escape.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"
#include "tests/fuzz/fuzz_target.h"

namespace tensorlint::fuzz {
namespace {

void require_clean(std::string_view report) {
  while (!report.empty()) {
    const std::size_t end = std::min(report.find('\n'), report.size());
    const std::string_view line = report.substr(0, end);
    require(escape_for_display(line, line.size()) == line, "a report has no control characters");
    report.remove_prefix(std::min(end + 1, report.size()));
  }
}

}  // namespace

void check(std::string_view bytes) {
  Result<Model> model = starts_as_binary(bytes) ? read_onnx_bytes(bytes, "no_such_folder/model.onnx")
                                                : read_onnx_text(bytes, "no_such_folder/m.onnxtxt");
  findings::InputReport report;
  report.path = "m";
  if (!model) {
    report.error = model.error().message;
  } else {
    pipeline::Pipeline pipeline(std::move(*model), {});
    pipeline.check(/*with_cost=*/true);
    pipeline::CheckResults results = pipeline.check();
    const passes::PassResults& known = pipeline.results();
    report.checked = true;
    report.nodes = pipeline.model().nodes.size();
    report.counts = results.counts;
    report.findings = std::move(results.findings);
    require_clean(
        text_of([&](const TextSink& out) { reports::show_text(known.analysis(), known.placement(), {}, out); }));
    std::string document;
    reports::show_json(known.analysis(), known.placement(), known.losses(),
                       {.one_line = true, .all_symbols = true, .filter = {}},
                       [&](std::string_view part) { document += part; });
    require_clean(document);
  }
  const std::span inputs(&report, 1);
  require_clean(text_of([&](const TextSink& out) { reports::check_text(inputs, {}, out); }));
  require_clean(text_of([&](const TextSink& out) { reports::check_json(inputs, false, out); }));
}

}  // namespace tensorlint::fuzz
