#include "analyzer/cli/executed_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "analyzer/cli/command.h"
#include "analyzer/cli/inputs.h"
#include "analyzer/cli/other_program.h"
#include "base/escape.h"
#include "base/output.h"
#include "base/text.h"

namespace tensorlint::cli {
namespace {

constexpr std::string_view kProgram = "tensorlint-run";
constexpr std::size_t kShownErrors = 5;

/// Why a model is not run: its errors, the first few of them; empty where it has none.
Result<std::string> errors_of(const std::string& path, const SettingsOptions& options,
                              const std::function<void(const CheckedModel&)>& use) {
  const auto settings = settings_of(path, options);
  if (!settings) return settings.error();
  Result<pipeline::Pipeline> pipeline = load(path, *settings, options.declarations);
  if (!pipeline) return pipeline.error();
  std::string text;
  std::size_t errors = 0;
  const pipeline::CheckResults results = pipeline->check();
  for (const findings::Finding& finding : results.findings) {
    if (finding.severity != findings::Severity::kError || ++errors > kShownErrors) continue;
    text += fmt::format("error[{} {}]: {}\n", finding.code, finding.rule, escape_for_display(finding.message, 2000));
  }
  if (errors == 0) {
    use({pipeline->model(), dataflow::Allowances::is_expensive(pipeline->results().meter())});
    return text;
  }
  if (errors > kShownErrors) text += fmt::format("and {} more\n", errors - kShownErrors);
  return text + fmt::format("tensorlint: {} has {}: `tensorlint check` shows where, `--force` runs it anyway",
                            escape_for_display(path, 2000), counted(errors, "error"));
}

/// The folder of this program.
std::string own_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

}  // namespace

int refuse_errors(const std::string& path, const SettingsOptions& settings,
                  const std::function<void(const CheckedModel&)>& use) {
  const Result<std::string> errors = errors_of(path, settings, use);
  if (!errors) return refuse(errors.error().message);
  if (errors->empty()) return kExitClean;
  write_stderr(*errors + "\n");
  return kExitNotChecked;
}

int start_runtime(std::vector<std::string> arguments) {
  const std::string program = fmt::format("{}/{}", own_folder(), kProgram);
  arguments.insert(arguments.begin(), program);
  const std::vector<char*> pointers = pointers_to(arguments);
  ::execv(program.c_str(), pointers.data());
  return refuse(
      fmt::format("{} cannot be started: {}; it is installed beside tensorlint", program, std::strerror(errno)));
}

}  // namespace tensorlint::cli
