// The command line of tensorlint. Names, exit codes and JSON are a contract: what is named here stays.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/cli/check.h"
#include "analyzer/cli/explain.h"
#include "analyzer/cli/fix.h"
#include "analyzer/cli/place.h"
#include "analyzer/cli/rules.h"
#include "analyzer/cli/show.h"
#include "analyzer/cli/why.h"
#include "base/output.h"
#include "base/suggestion.h"
#include "base/version.h"

namespace tensorlint::cli {
namespace {

struct Unbuilt {
  const char* name;
  const char* what;
};

// Part of the contract, and built later: said so instead of being taken for a typing error.
constexpr std::array kUnbuiltCommands{Unbuilt{"run", "execute a model"},
                                      Unbuilt{"compare", "which node diverges first"},
                                      Unbuilt{"preflight", "check a training script"}};
constexpr std::array kUnbuiltOptions{"--torch-version"};

/// The hint at what was meant, or at the help.
std::string or_help(const std::string& hint, const std::string& help) { return hint.empty() ? "; " + help : hint; }

void add_settings(CLI::App* command, SettingsOptions& settings) {
  Declarations& declarations = settings.declarations;
  command
      ->add_option("--config", settings.config,
                   "configuration (default: the nearest tensorlint.toml at or above the model)")
      ->type_name("FILE");
  command->add_option("--signatures", settings.signatures, "TOML file with the signatures of custom operators")
      ->type_name("FILE");
  command->add_option("--input", declarations.inputs, "type of an input: 'ids=int64[B, 512]', 'x=float32'")
      ->allow_extra_args(false)
      ->type_name("NAME=TYPE");
  command->add_option("--range", declarations.ranges, "values of an input: labels=0:9, p=0:")
      ->allow_extra_args(false)
      ->type_name("NAME=lo:hi");
  command->add_option("--device", declarations.devices, "device of all tensors, or of one value: cuda:0, mask=cpu")
      ->allow_extra_args(false)
      ->type_name("[VALUE=]NAME");
}

/// The growing arrays of one model stay in the heap, which the process hands back as a whole when it ends: mapping and
/// unmapping each size that they go through takes a twentieth of the time of a check.
void keep_memory() {
#ifdef __GLIBC__
  ::mallopt(M_TOP_PAD, 1 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  return fmt::format(
      "unknown command `{}`{}", word,
      or_help(suggestion(word, std::vector<std::string_view>(names.begin(), names.end())), "see `tensorlint --help`"));
}

/// What is wrong with the command line, and where to read how it is meant.
std::string usage_fault(const CLI::App& app, const CLI::ParseError& error, const std::string& first) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  const CLI::App& command = parsed.empty() ? app : *parsed.front();
  const std::string help = fmt::format("see `tensorlint {}--help`", parsed.empty() ? "" : command.get_name() + " ");
  const bool is_option = parsed.empty() && first.starts_with('-');
  if (is_option || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> extras = is_option ? std::vector{first} : command.remaining();
    // An option's name before its `=`; an argument without a name is one too many.
    const auto wrong =
        std::ranges::find_if(extras, [](const std::string& extra) { return extra.size() > 1 && extra[0] == '-'; });
    if (wrong == extras.end())
      return fmt::format("unexpected argument `{}`; {}", extras.empty() ? "" : extras.back(), help);
    const std::string option = wrong->substr(0, wrong->find('='));
    std::vector<std::string> names;
    for (const CLI::Option* each : command.get_options())
      for (const std::string& name : each->get_lnames()) names.push_back("--" + name);
    return fmt::format("{} has no option `{}`{}", parsed.empty() ? "tensorlint" : command.get_name(), option,
                       or_help(suggestion(option, std::vector<std::string_view>(names.begin(), names.end())), help));
  }
  const std::string said = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && said.starts_with('-')) {
    const std::string option = said.substr(0, said.find(':'));
    return fmt::format("{} {}; {}", option,
                       said.find("At Most") == std::string::npos ? "needs a value" : "is given more than once", help);
  }
  return fmt::format("{}; {}", said, help);
}

int run(int argc, char** argv) {
  CLI::App app{"Finds dtype, shape, device and index-range bugs in tensor programs without running them.",
               "tensorlint"};
  app.set_version_flag("-V,--version", fmt::format("tensorlint {}", kVersion), "print the version");
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(1);

  const CLI::Validator whole_number(
      [](const std::string& text) {
        const bool good =
            !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string::npos;
        return good ? std::string() : fmt::format("expected a number from 0 to 999999999, not `{}`", text);
      },
      "");
  CheckOptions check;
  std::string placement = "explicit";
  std::array<std::string, kUnbuiltOptions.size()> unbuilt_values;
  CLI::App* check_command = app.add_subcommand("check", "find bugs in models");
  check_command->add_option("INPUT", check.inputs, "files, folders, globs, or - for standard input")
      ->required()
      ->type_name("");
  check_command
      ->add_option("--format", check.formats,
                   "text (default) or json; =FILE writes it to a file, for several formats at once")
      ->allow_extra_args(false)
      ->type_name("FORMAT");
  check_command->add_option("-o", check.output, "write the report to this file")->type_name("FILE");
  check_command
      ->add_option("--select", check.settings.select, "only these rules: names, codes, groups, separated by commas")
      ->allow_extra_args(false)
      ->type_name("RULE,...");
  check_command->add_option("--ignore", check.settings.ignore, "leave these rules out")
      ->allow_extra_args(false)
      ->type_name("RULE,...");
  check_command
      ->add_option("--fail-on", check.settings.fail_on,
                   "least severity that makes the exit code 1: error, warning (default), info, never")
      ->type_name("SEVERITY");
  check_command->add_option("--max-findings", check.settings.max_findings, "findings shown per input (default 1000)")
      ->check(whole_number)
      ->type_name("N");
  check_command->add_option("--jobs", check.jobs, "inputs checked at the same time (default: all processors)")
      ->check(whole_number)
      ->type_name("N");
  check_command->add_flag("-q,--quiet", check.quiet, "print only findings: no summary, no progress");
  check_command
      ->add_option("--target", check.settings.target,
                   "whose rules hold: onnxruntime (default), which sorts nodes by itself, or onnx")
      ->type_name("onnx|onnxruntime");
  check_command->add_flag("--timings", check.timings, "print how long each step took");
  check_command->add_option("--placement", placement, "explicit (default), or runtime")->type_name("MODE");
  check_command
      ->add_option("--provider", check.settings.providers,
                   "with --placement runtime: nodes run where this provider has a kernel; cuda, or a table's file")
      ->allow_extra_args(false)
      ->type_name("NAME|FILE");
  check_command
      ->add_option("--placement-file", check.settings.placement_file, "TOML file that says where nodes and values live")
      ->type_name("FILE");
  check_command
      ->add_option(
          "--source-root", check.settings.source_root,
          "folder of the programs that models were exported from, where it is not the working folder or theirs")
      ->type_name("DIR");
  check_command->add_option("--baseline", check.settings.baseline, "report only findings that are not in this file")
      ->type_name("FILE");
  check_command->add_option("--write-baseline", check.write_baseline, "write all findings to this file, for --baseline")
      ->type_name("FILE");
  add_settings(check_command, check.settings);
  for (std::size_t i = 0; i < kUnbuiltOptions.size(); ++i)
    check_command->add_option(kUnbuiltOptions[i], unbuilt_values[i], "not built yet");

  ShowOptions show;
  CLI::App* show_command = app.add_subcommand("show", "print a model with dtype, shape and range of every value");
  show_command
      ->add_option("MODEL", show.models, "models, or - for standard input; JSON of several is one document a line")
      ->required()
      ->type_name("");
  show_command->add_option("--format", show.format, "text (default) or json")->type_name("text|json");
  show_command
      ->add_option("--placement-file", show.settings.placement_file, "TOML file that says where nodes and values live")
      ->type_name("FILE");
  add_settings(show_command, show.settings);
  show_command->add_option("--node", show.node, "only nodes with such a name, `*` for any text")->type_name("GLOB");
  show_command->add_option("--module", show.module, "only nodes in such a module: 'encoder.layers.0', '*.attention'")
      ->type_name("GLOB");
  show_command->add_flag("--all-symbols", show.all_symbols,
                         "JSON: name extents that nothing names: \"?7\" instead of null");

  FixOptions fix;
  CLI::App* fix_command = app.add_subcommand("fix", "apply the fixes of a model's findings");
  fix_command->add_option("INPUT", fix.input, "a model, or - for standard input")->required()->type_name("");
  fix_command->add_option("-o", fix.output, "write the fixed model to this file; - for standard output")
      ->type_name("OUT");
  fix_command->add_flag("--in-place", fix.in_place, "replace the model");
  fix_command->add_flag("--unsafe", fix.unsafe, "also fixes that may round, reorder or mean something else");
  fix_command->add_flag("--diff", fix.diff, "print what changes, as text");
  fix_command->add_flag("--copy-data", fix.copy_data, "copy the files that hold the model's weights to where OUT is");
  fix_command
      ->add_option("--placement-file", fix.settings.placement_file, "TOML file that says where nodes and values live")
      ->type_name("FILE");
  add_settings(fix_command, fix.settings);

  PlaceOptions place;
  CLI::App* place_command =
      app.add_subcommand("place", "split a model between CPU and accelerator, with a node for every copy");
  place_command->add_option("INPUT", place.input, "an .onnx file")->required()->type_name("");
  place_command->add_option("-o", place.output, "write the placed model to this file; without it, only print the cost")
      ->type_name("OUT");
  place_command->add_flag("--copy-data", place.copy_data,
                          "copy the files that hold the model's weights to where it goes");
  place_command
      ->add_option("--provider", place.settings.providers,
                   "whose kernels the nodes may run on: cuda (default), or a table's file")
      ->allow_extra_args(false)
      ->type_name("NAME|FILE");
  place_command
      ->add_option("--placement-file", place.settings.placement_file, "TOML file that says where nodes and values live")
      ->type_name("FILE");
  add_settings(place_command, place.settings);

  WhyOptions why;
  CLI::App* why_command = app.add_subcommand("why", "explain how dtype, shape and range of a value were derived");
  why_command->add_option("MODEL", why.model, "a model, or - for standard input")->required()->type_name("");
  why_command->add_option("VALUE", why.value, "name of the value")->required()->type_name("");
  why_command->add_option("--depth", why.depth, "print a tree, this many nodes deep")
      ->check(whole_number)
      ->type_name("N");
  add_settings(why_command, why.settings);

  RulesOptions rules;
  CLI::App* rules_command = app.add_subcommand("rules", "list all rules");
  rules_command->add_option("--format", rules.format, "text (default) or json")->type_name("text|json");
  std::string rule;
  CLI::App* explain_command = app.add_subcommand("explain", "print the page of a rule");
  explain_command->add_option("RULE", rule, "name or code of the rule")->required()->type_name("");

  std::array<CLI::App*, kUnbuiltCommands.size()> unbuilt_commands{};
  for (std::size_t i = 0; i < kUnbuiltCommands.size(); ++i) {
    unbuilt_commands[i] =
        app.add_subcommand(kUnbuiltCommands[i].name, fmt::format("{} (not built yet)", kUnbuiltCommands[i].what));
    unbuilt_commands[i]->allow_extras();
  }

  app.footer(
      "Exit codes: 0 no findings, 1 findings, 2 wrong usage or an input that could not be checked, 3 internal error, "
      "130 interrupted.\n"
      "`tensorlint COMMAND --help` lists the options of a command, `tensorlint explain RULE` explains a rule.");

  // Options that are not built yet are part of the contract, but help nobody.
  for (CLI::App* command : app.get_subcommands({})) command->set_help_flag("-h,--help", "print this help");
  for (const char* option : kUnbuiltOptions) check_command->get_option(option)->group("");

  // Before the parser, for which `--help` after any word is a wish for help.
  const std::string first = argc > 1 ? argv[1] : "-";
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
    return refuse(usage_fault(app, error, argv[1]));
  }

  for (std::size_t i = 0; i < kUnbuiltCommands.size(); ++i)
    if (unbuilt_commands[i]->parsed())
      return refuse(fmt::format("the command {} is not built yet", kUnbuiltCommands[i].name));
  if (check_command->parsed()) {
    for (const char* option : kUnbuiltOptions)
      if (check_command->count(option) > 0) return refuse(fmt::format("the option {} is not built yet", option));
    if (placement != "explicit" && placement != "runtime")
      return refuse(fmt::format("--placement takes explicit or runtime, not `{}`", placement));
    check.runtime_placement = placement == "runtime";
    if (!check.settings.providers.empty() && !check.runtime_placement)
      return refuse("--provider goes with --placement runtime");
    return run_check(check);
  }
  if (show_command->parsed()) return run_show(show);
  if (why_command->parsed()) return run_why(why);
  if (place_command->parsed()) {
    if (place.settings.providers.empty()) place.settings.providers.emplace_back("cuda");
    return run_place(place);
  }
  if (fix_command->parsed()) return run_fix(fix);
  if (rules_command->parsed()) return run_rules(rules);
  return run_explain(rule);
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
  tensorlint::cli::reserve_standard_streams();
  tensorlint::cli::keep_memory();
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the user's limit is an error of write(), and taken away again
  // Behind `--` stand flags for the compiler, which only C++ inputs need.
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--")
      return tensorlint::cli::refuse("C++ inputs, and with them flags after `--`, are not built yet");
  try {
    return tensorlint::cli::run(argc, with_familiar_words(argc, argv).data());
  } catch (const std::exception& fault) {
    tensorlint::cli::write_stderr(fmt::format("tensorlint: internal error: {}\n", fault.what()));
    return tensorlint::cli::kExitInternal;
  }
}
