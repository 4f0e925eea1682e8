#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/cli/command.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/reports/why.h"
#include "base/did_you_mean.h"
#include "base/escape.h"
#include "base/output.h"

namespace tensorlint::cli {
namespace {

struct WhyOptions {
  std::string model, value;
  std::optional<std::size_t> depth;  ///< a tree of so many nodes; without it a list
  SettingsOptions settings;
};

constexpr std::size_t kMaxCandidates = 20'000, kLongestCandidate = 128;

/// What was perhaps meant by a name that no value has.
std::string hint(const Model& model, const std::string& name) {
  for (const Node& node : model.nodes) {
    if (name.empty() || model.text(node.name) != name) continue;
    for (const ValueId result : model.results(node))
      if (result != ValueId::kAbsent)
        return fmt::format("; a node has that name, its first result is {}", quoted_for_people(model.name_of(result)));
  }
  std::vector<std::string_view> candidates;
  for (std::size_t i = 1; i < model.values.size() && candidates.size() < kMaxCandidates; ++i)
    if (const std::string_view candidate = model.name_of(static_cast<ValueId>(i));
        candidate.size() <= kLongestCandidate)
      candidates.push_back(candidate);
  const std::string nearest = did_you_mean(name, candidates);
  return nearest.empty() ? "; `tensorlint show` lists them" : nearest;
}

/// Prints how the facts of a value were derived. A name of the main graph wins; else the first body or function that
/// has it.
int run_why(const WhyOptions& options) {
  const std::string path = input_path(options.model);
  const auto settings = settings_of(path, options.settings);
  if (!settings) return refuse(settings.error().message);
  Result<pipeline::Pipeline> pipeline = load(path, *settings, options.settings.declarations);
  if (!pipeline) return refuse(pipeline.error().message);
  const Model& model = pipeline->model();
  ValueId value = ValueId::kAbsent;
  for (std::size_t graph = 0; graph < model.graphs.size() && value == ValueId::kAbsent; ++graph)
    value = model.find_value(static_cast<GraphId>(graph), options.value);
  if (value == ValueId::kAbsent)
    return refuse(fmt::format("{} has no value `{}`{}", path, options.value, hint(model, options.value)));
  const passes::PassResults& known = pipeline->run({passes::Pass::kAnalysis, passes::Pass::kPlacement});
  const reports::WhySources from{known.analysis(), known.placement(), options.settings.source_root};
  const auto error =
      write_stdout(options.depth ? reports::why_tree(from, value, *options.depth) : reports::why_text(from, value));
  return error ? refuse(error->message) : kExitClean;
}

class Why : public Command {
 public:
  Why() : Command("why", "explain how dtype, shape and range of a value were derived") {}

  void add_options(Options& options) override {
    options.argument("MODEL", options_.model, "a model, or - for standard input");
    options.argument("VALUE", options_.value, "name of the value");
    options.number("--depth", options_.depth, "N", "print a tree, this many nodes deep");
    add_source_root(options, options_.settings);
    add_placement_file(options, options_.settings);
    add_model_settings(options, options_.settings);
  }

  int run() override { return run_why(options_); }

 private:
  WhyOptions options_;
};

const RegisterCommand<Why> kRegisterWhy;

}  // namespace
}  // namespace tensorlint::cli
