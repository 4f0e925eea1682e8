#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "analyzer/cli/command.h"
#include "analyzer/cli/edited_model.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/model_data.h"
#include "analyzer/findings/input_report.h"
#include "analyzer/fixes/fixer.h"
#include "analyzer/reports/diff.h"
#include "analyzer/rules/engine.h"
#include "base/escape.h"
#include "base/file_bytes.h"
#include "base/output.h"
#include "base/text.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/printer.h"
#include "ir/text/reader.h"

namespace tensorlint::cli {
namespace {

struct FixOptions {
  std::string input, output;
  bool in_place = false, unsafe = false, diff = false, copy_data = false;
  SettingsOptions settings;
};

/// Fixing goes on while fixes bring new findings to light that can be fixed too.
constexpr int kMaxRounds = 16;
constexpr TextOptions kDiffText{.max_elements = 16};

std::string people(std::string_view text) { return escape_for_display(text, 2000); }

/// Where a finding is, in a sentence; nothing for one about the whole model.
std::string place_of(const findings::Finding& finding) {
  if (!finding.node.empty()) return fmt::format(" at node {}", people(finding.node));
  return finding.graph.empty() ? "" : fmt::format(" in graph {}", people(finding.graph));
}

std::string counted_fixes(std::size_t count) { return count == 0 ? "no fixes" : counted(count, "fix", "fixes"); }

/// Carries the edits out and takes away the declarations that they made wrong. `earlier`: see edit_model.
Result<EditedModel> apply(std::string_view file, const dataflow::Analysis& before, std::vector<GraphEdit> edits,
                          const pipeline::Options& options, const FileBytes* mapping,
                          const EditedBytes* earlier = nullptr) {
  Result<EditedModel> outcome = edit_model(file, before.model(), edits, options, mapping, earlier);
  if (!outcome) return outcome;
  const std::vector<GraphEdit> stale =
      fixes::drop_stale_declarations(before, outcome->pipeline.run({passes::Pass::kAnalysis}).analysis());
  if (stale.empty()) return outcome;
  edits.insert(edits.end(), stale.begin(), stale.end());
  return edit_model(file, before.model(), edits, options, mapping, earlier);
}

/// A model with its fixes applied, and what is left to do.
struct Repair {
  std::unique_ptr<pipeline::Pipeline> pipeline;  ///< of the input, while it has no fix
  std::optional<EditedModel> outcome;
  pipeline::CheckResults left;
  fixes::FixPlan plan;
  std::vector<std::string> fixed;  ///< a line each
};

/// What a fix brings to light, such as operands that a failure before them kept from being compared, is fixed in the
/// next round, while the allowance of the input is enough to examine all of its result.
Result<Repair> repair(std::string_view file, Model model, pipeline::Options options, bool unsafe,
                      const FileBytes* mapping) {
  Repair repair;
  repair.pipeline = std::make_unique<pipeline::Pipeline>(std::move(model), options);
  const passes::PassResults& results = repair.pipeline->results();
  options.analysis.meter = results.shared_meter();  // all rounds are work for one input
  options.external_folder = results.options().external_folder;
  const Meter& meter = *options.analysis.meter;
  double taken = meter.share();
  repair.left = repair.pipeline->check();
  // A round edits and examines once, or twice where declarations become wrong.
  const auto is_enough_left = [&] {
    const double before = std::exchange(taken, meter.share());
    return repair.left.is_partial || taken + 2 * (taken - before) < 1;
  };
  repair.plan = fixes::plan_fixes(repair.pipeline->model(), repair.left.findings, unsafe);
  for (int round = 0; round < kMaxRounds && !repair.plan.edits.empty() && is_enough_left(); ++round) {
    for (std::size_t i = 0; i < repair.plan.fixed.size(); ++i)
      repair.fixed.push_back(fmt::format("fixed {}{}: {} ({})\n", repair.plan.fixed[i]->rule,
                                         place_of(*repair.plan.fixed[i]), people(repair.plan.fixes_used[i]->message),
                                         findings::to_text(repair.plan.fixes_used[i]->applicability)));
    std::optional<EditedModel>& outcome = repair.outcome;
    Result<EditedModel> next =
        outcome ? apply(outcome->bytes, outcome->pipeline.results().analysis(), repair.plan.edits, options, mapping,
                        &outcome->edited)
                : apply(file, repair.pipeline->results().analysis(), repair.plan.edits, options, mapping);
    if (!next) return next.error();
    outcome = std::move(*next);
    repair.pipeline.reset();  // two analyses at a time are enough
    repair.left = outcome->pipeline.check();
    repair.plan = fixes::plan_fixes(outcome->model(), repair.left.findings, unsafe);
  }
  return repair;
}

/// What is left after fixing, as `check` would count it with the model in the place of the input.
struct Left {
  std::vector<findings::Finding> findings;
  std::size_t in_baseline = 0;  ///< places that are known
  int exit_code = kExitClean;
};

/// Takes the findings out of the repair.
Left left_of(Repair& repair, const std::string& input, const config::Baseline* baseline,
             const findings::FailOn& fail_on) {
  Left left{.findings = std::move(repair.left.findings)};
  findings::SeverityCounts counts = repair.left.counts;
  if (baseline != nullptr) {
    counts -= findings::count(left.findings);
    left.in_baseline = baseline->take_out(input, left.findings).found;
    counts += findings::count(left.findings);
  }
  // `check` has an allowance of its own for what was fixed, and may find more in it.
  const bool may_be_more = repair.outcome && repair.left.is_partial && fail_on.least;
  if (may_be_more || fail_on.fails(counts)) left.exit_code = kExitFindings;
  return left;
}

std::string report_of(const Repair& repair, const Left& left) {
  std::string text;
  for (const std::string& line : repair.fixed) text += line;
  for (const findings::Finding& finding : left.findings)
    if (finding.severity != findings::Severity::kInfo)
      text += fmt::format("left: {} [{} {}]{}: {}\n", findings::to_text(finding.severity), finding.code, finding.rule,
                          place_of(finding), people(finding.message));
  if (left.in_baseline > 0) text += fmt::format("left: {} in the baseline\n", left.in_baseline);
  if (repair.plan.unsafe_left > 0)
    text += fmt::format("{} can be fixed with --unsafe, which may change values\n",
                        counted(repair.plan.unsafe_left, "finding"));
  if (!repair.plan.edits.empty())
    text += fmt::format("{} more can be fixed in a second run\n", counted(repair.plan.fixed.size(), "finding"));
  if (repair.left.is_partial) text += fmt::format("{}\n", findings::kPartialText);
  if (!repair.outcome) text += "nothing to fix\n";
  return text;
}

/// Applies the fixes of a model's findings, checks the result again and writes it. Exit codes are those of check, for
/// what is left after fixing.
int run_fix(const FixOptions& given) {
  FixOptions options = given;
  options.input = input_path(given.input);
  const bool from_stdin = options.input == kStandardInput;
  if (from_stdin && options.in_place) return refuse("--in-place needs a file; standard input has none");
  if (options.in_place == !options.output.empty() && !(options.diff && options.output.empty() && !options.in_place))
    return refuse("fix needs either -o OUT or --in-place (or --diff alone, which writes nothing)");
  const auto settings = settings_of(options.input, options.settings);
  if (!settings) return refuse(settings.error().message);

  const Result<ModelBytes> bytes = open_model(options.input);
  if (!bytes) return refuse(bytes.error().message);
  const bool to_stdout = options.output == "-";
  if (to_stdout && options.diff) return refuse("--diff and `-o -` both write to standard output");
  if (!options.output.empty() && !to_stdout && is_text_model(options.output) != bytes->is_text)
    return refuse("the result is written in the format of the input: .onnxtxt or binary");
  const std::string_view file = bytes->bytes;
  Result<Model> read = bytes->read(options.input);
  if (!read) return refuse(fmt::format("{}: {}", options.input, read.error().message));
  const std::string& target = options.in_place ? options.input : options.output;

  if (const auto unknown = check_names(options.settings.declarations, *read, options.input))
    return refuse(unknown->message);
  pipeline::Options pipeline_options = *settings;
  pipeline_options.filter.baseline = nullptr;  // what is known can be fixed too
  Result<Repair> repaired =
      repair(file, std::move(*read), std::move(pipeline_options), options.unsafe, bytes->file.get());
  if (!repaired) return refuse(fmt::format("{}: {}", options.input, repaired.error().message));
  const std::optional<EditedModel>& outcome = repaired->outcome;
  std::optional<Model> original;  // read again: it is not kept beside the analyses of two models
  if (options.diff && outcome) {
    if (read = bytes->read(options.input); !read)
      return refuse(fmt::format("{}: {}", options.input, read.error().message));
    original = std::move(*read);
  }
  if (bytes->file != nullptr)
    if (const auto changed = bytes->file->check_unchanged()) return refuse(changed->message);

  const Left left = left_of(*repaired, options.input, settings->filter.baseline.get(), settings->fail_on);
  std::string text = report_of(*repaired, left);
  const std::span<const std::string_view> parts = outcome ? outcome->edited.parts() : std::span(&file, 1);
  if (to_stdout) {  // the report makes room for the model
    for (const std::string_view part : parts)
      if (const auto error = write_stdout(part)) return refuse(error->message);
    write_stderr(text);
    return left.exit_code;
  }
  std::error_code none;
  if (target.empty() || (!outcome && std::filesystem::equivalent(target, options.input, none))) {
    if (!target.empty()) text += fmt::format("{} is unchanged\n", people(target));
  } else {
    // Who asked for OUT goes on with OUT, so it is written without fixes too.
    const Result<std::string> copied = write_model(outcome ? outcome->model() : repaired->pipeline->model(), parts,
                                                   target, options.copy_data, [&](std::string_view piece) {
                                                     if (bytes->file != nullptr) bytes->file->release(piece);
                                                   });
    if (!copied) return refuse(copied.error().message);
    text += *copied;
    text += fmt::format("wrote {} with {}\n", people(target), counted_fixes(repaired->fixed.size()));
  }
  const auto report = [&](const TextSink& out) {
    if (original) {
      const auto print = [&](const Model& model) {
        return [&](const TextSink& lines) {
          // The first elements of each tensor are shown: blocks of the file are mapped around them.
          to_text(model, kDiffText, [&](std::string_view text) {
            lines(text);
            if (bytes->file != nullptr) bytes->file->release(bytes->bytes);
          });
        };
      };
      reports::unified_diff(print(*original), print(outcome->model()), options.input,
                            target.empty() ? options.input : target, out);
    }
    out(text);
  };
  if (const auto error = write_stdout(report)) return refuse(error->message);
  return left.exit_code;
}

class FixCommand : public Command {
 public:
  FixCommand() : Command("fix", "apply the fixes of a model's findings") {}

  void add_options(Options& options) override {
    options.argument("INPUT", options_.input, "a model, or - for standard input");
    options.text("-o", options_.output, "OUT", "write the fixed model to this file; - for standard output");
    options.flag("--in-place", options_.in_place, "replace the model");
    options.flag("--unsafe", options_.unsafe, "also apply fixes that may round, reorder or change the meaning");
    options.flag("--diff", options_.diff, "print the changes as a diff");
    add_copy_data(options, options_.copy_data, "to the folder of OUT");
    add_placement_file(options, options_.settings);
    add_model_settings(options, options_.settings);
  }

  int run() override { return run_fix(options_); }

 private:
  FixOptions options_;
};

const RegisterCommand<FixCommand> kRegisterFixCommand;

}  // namespace
}  // namespace tensorlint::cli
