// The program: start-up, the parser, and which command runs. Names and exit codes of the commands are a contract.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/cli/command.h"
#include "analyzer/cli/usage.h"
#include "base/output.h"
#include "base/version.h"

namespace tensorlint::cli {
namespace {

struct Planned {
  const char* name;
  const char* what;
};

// Part of the contract, and built later: said so instead of being taken for a typing error.
constexpr std::array kPlannedCommands{Planned{"preflight", "check a training script"}};

/// The growing arrays of one model stay in the heap, which the process hands back as a whole when it ends: mapping and
/// unmapping each size that they go through takes a twentieth of the time of a check.
void tune_allocator() {
#ifdef __GLIBC__
  ::mallopt(M_TOP_PAD, 1 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

void add_command(CLI::App& app, Command& command, bool with_options) {
  CLI::App* const parser = app.add_subcommand(std::string(command.name()), std::string(command.summary()));
  if (!with_options) return;
  Options options(*parser);
  command.add_options(options);
  parser->set_help_flag("-h,--help", "print this help");  // the last of the list
  // Parsed, but shown in no help text: they help nobody yet.
  for (const char* const option : command.unbuilt_options())
    parser->add_option_function<std::string>(option, [](const std::string&) {})->group("");
}

void add_planned_commands(CLI::App& app) {
  for (const Planned& planned : kPlannedCommands) {
    if (std::ranges::find(all_commands(), planned.name, &Command::name) != all_commands().end()) continue;
    CLI::App* const parser = app.add_subcommand(planned.name, fmt::format("{} (not built yet)", planned.what));
    parser->set_help_flag("-h,--help", "print this help");
    parser->allow_extras();
  }
}

/// Runs the command that has been parsed.
int run_parsed(const CLI::App& app) {
  const CLI::App& parser = *app.get_subcommands().front();
  const auto command = std::ranges::find(all_commands(), parser.get_name(), &Command::name);
  if (command == all_commands().end()) return refuse(fmt::format("the command {} is not built yet", parser.get_name()));
  for (const char* const option : (*command)->unbuilt_options())
    if (parser.count(option) > 0) return refuse(fmt::format("the option {} is not built yet", option));
  return (*command)->run();
}

int run(int argc, char** argv) {
  CLI::App app{"Finds dtype, shape, device and index-range bugs in tensor programs without running them.",
               "tensorlint"};
  app.set_version_flag("-V,--version", fmt::format("tensorlint {}", kVersion), "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(1);
  const std::string first = argc > 1 ? argv[1] : "-";
  // The options of all commands take as long to set up as a small model to check.
  const bool is_named = std::ranges::find(all_commands(), first, &Command::name) != all_commands().end();
  for (Command* const command : all_commands()) add_command(app, *command, !is_named || command->name() == first);
  add_planned_commands(app);
  app.footer(
      "Exit codes: 0 no findings, 1 findings, 2 wrong usage or an input that could not be checked, 3 internal error, "
      "130 interrupted.\n"
      "`tensorlint COMMAND --help` lists the options of a command, `tensorlint explain RULE` explains a rule.");

  // Before the parser, for which `--help` after any word is a wish for help.
  if (!first.starts_with('-') &&
      std::ranges::none_of(app.get_subcommands({}), [&](const CLI::App* each) { return each->check_name(first); }))
    return refuse(unknown_command(app, first));
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& request) {
    std::ostringstream text;  // of --help or --version
    app.exit(request, text);
    const auto error = write_stdout(text.str());
    return error ? refuse(error->message) : kExitClean;
  } catch (const CLI::ParseError& error) {
    if (argc < 2) {
      write_stderr(app.help());
      return kExitNotChecked;
    }
    return refuse(usage_error(app, error, argv[1]));
  }
  return run_parsed(app);
}

}  // namespace
}  // namespace tensorlint::cli

namespace {

/// `help` and `help COMMAND` as people know them from other programs, and `version`.
std::vector<char*> with_familiar_words(int argc, char** argv) {
  static char help[] = "--help", version[] = "--version";
  std::vector<char*> words(argv, argv + argc);
  if (argc == 2 && std::string_view(argv[1]) == "version") words[1] = version;
  if ((argc == 2 || argc == 3) && std::string_view(argv[1]) == "help") {
    words[1] = help;
    if (argc == 3) std::swap(words[1], words[2]);
  }
  words.push_back(nullptr);
  return words;
}

}  // namespace

int main(int argc, char** argv) {
  tensorlint::reserve_standard_streams();
  tensorlint::cli::tune_allocator();
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the user's limit is an error of write(), and taken away again
  // Behind `--` stand flags for the compiler, which only C++ inputs need.
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--")
      return tensorlint::cli::refuse("C++ inputs, and with them flags after `--`, are not built yet");
  try {
    return tensorlint::cli::run(argc, with_familiar_words(argc, argv).data());
  } catch (const std::exception& fault) {
    tensorlint::write_stderr(fmt::format("tensorlint: internal error: {}\n", fault.what()));
    return tensorlint::cli::kExitInternal;
  }
}
