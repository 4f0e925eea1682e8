#include "analyzer/cli/why.h"

#include <fmt/format.h>

#include "analyzer/cli/check.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/output.h"
#include "analyzer/reports/why.h"

namespace tensorlint::cli {

int run_why(const WhyOptions& options) {
  const auto settings = settings_of(options.model, options.settings);
  if (!settings) return refuse(settings.error().message);
  const Result<Model> model = load_model(options.model);
  if (!model) return refuse(fmt::format("{}: {}", options.model, model.error().message));
  ValueId value = ValueId::kAbsent;
  for (std::size_t graph = 0; graph < model->graphs.size() && value == ValueId::kAbsent; ++graph)
    value = model->find_value(static_cast<GraphId>(graph), options.value);
  if (value == ValueId::kAbsent) return refuse(fmt::format("{} has no value `{}`", options.model, options.value));
  const Analysis analysis = analyse(*model, settings->analysis);
  const auto error = write_stdout(why_text(analysis, value));
  return error ? refuse(error->message) : kExitClean;
}

}  // namespace tensorlint::cli
