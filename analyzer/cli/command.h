#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "analyzer/cli/options.h"

namespace tensorlint::cli {

/// Exit codes of the command line: a contract.
inline constexpr int kExitClean = 0, kExitFindings = 1, kExitNotChecked = 2, kExitInternal = 3, kExitInterrupted = 130;

/// Prints "tensorlint: MESSAGE" to standard error; returns kExitNotChecked.
int refuse(std::string_view message);

/// A command is one file; it registers itself with RegisterCommand. It keeps its options as members.
class Command {
 public:
  /// `summary`: one line of `tensorlint --help`. Both have static storage duration.
  Command(std::string_view name, std::string_view summary) : name_(name), summary_(summary) {}
  virtual ~Command() = default;
  std::string_view name() const { return name_; }
  std::string_view summary() const { return summary_; }

  virtual void add_options(Options& options) = 0;
  /// Options that belong to the contract and are not built yet: said so instead of being taken for a typing error.
  virtual std::span<const char* const> unbuilt_options() const { return {}; }
  /// After the command line has been read; gives the exit code.
  virtual int run() = 0;

 private:
  std::string_view name_, summary_;
};

/// All commands, sorted by name.
std::span<Command* const> all_commands();

namespace detail {
void register_command(std::unique_ptr<Command> command);
}

template <typename T>
struct RegisterCommand {
  RegisterCommand() { detail::register_command(std::make_unique<T>()); }
};

/// The message about `format`, which is none of `formats`. `planned`: names that belong to the contract and are not
/// built yet.
std::string unknown_format(std::string_view format, std::span<const std::string_view> formats,
                           std::span<const std::string_view> planned = {});

/// "a, b and c".
std::string listed(std::span<const std::string_view> words, std::string_view last);

}  // namespace tensorlint::cli
