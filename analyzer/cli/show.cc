#include "analyzer/cli/show.h"

#include <fmt/format.h>

#include <string_view>

#include "analyzer/cli/check.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/reports/show.h"
#include "base/escape.h"
#include "base/output.h"

namespace tensorlint::cli {
namespace {

bool matches_any(const Model& model, const reports::ShowFilter& filter) {
  findings::LocationResolver locations(model);
  for (std::size_t n = 0; n < model.nodes.size(); ++n)
    if (filter.matches(model, static_cast<NodeId>(n), locations)) return true;
  return false;
}

std::string no_match(const reports::ShowFilter& filter) {
  if (filter.module.empty()) return fmt::format("no node matches `{}`", filter.node);
  if (filter.node.empty()) return fmt::format("no node is in a module that matches `{}`", filter.module);
  return fmt::format("no node matches `{}` in a module that matches `{}`", filter.node, filter.module);
}

/// The text of one model; what is wrong with it otherwise.
Result<std::string> show_one(const std::string& argument, const ShowOptions& options) {
  const std::string path = input_path(argument);
  const auto settings = settings_of(path, options.settings);
  if (!settings) return settings.error();
  const Result<Model> model = load_model(path);
  if (!model) return Error{fmt::format("{}: {}", path, model.error().message), {}};
  if (const auto unknown = unknown_names(options.settings.declarations, *model); !unknown.empty())
    return Error{fmt::format("{} has no value `{}` in its main graph", path, unknown.front()), {}};
  const dataflow::Analysis analysis = dataflow::analyse(*model, settings->analysis);
  const placement::Placement placement = placement::place(analysis, settings->placement);
  const reports::ShowFilter filter{.node = options.node, .module = options.module};
  if (filter.any() && !matches_any(*model, filter)) return Error{fmt::format("{}: {}", path, no_match(filter)), {}};
  if (options.format != "json") return reports::show_text(analysis, placement, filter);
  return reports::show_json(
      analysis, placement,
      {.one_line = options.models.size() > 1, .all_symbols = options.all_symbols, .filter = filter});
}

}  // namespace

int run_show(const ShowOptions& options) {
  if (options.format != "text" && options.format != "json")
    return refuse(fmt::format("unknown format `{}`; there are text and json", options.format));
  int code = kExitClean;
  for (const std::string& path : options.models) {
    const Result<std::string> text = show_one(path, options);
    const std::string gap = &path == options.models.data() ? "" : "\n";
    const std::string heading = options.models.size() > 1 && options.format == "text"
                                    ? fmt::format("{}== {}\n", gap, escape_for_people(path, 2000))
                                    : "";
    if (!text) {
      code = refuse(text.error().message);
    } else if (const auto error = write_stdout(heading + *text)) {
      return refuse(error->message);
    }
  }
  return code;
}

}  // namespace tensorlint::cli
