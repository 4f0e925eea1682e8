#include "analyzer/cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "base/output.h"

namespace tensorlint::cli {
namespace {

struct Registry {
  std::vector<std::unique_ptr<Command>> owned;
  std::vector<Command*> sorted;
};

Registry& registry() {
  static Registry registry;
  return registry;
}

}  // namespace

int refuse(std::string_view message) {
  write_stderr(fmt::format("tensorlint: {}\n", escape_for_display(message, 2000)));
  return kExitNotChecked;
}

std::span<Command* const> all_commands() { return registry().sorted; }

void detail::register_command(std::unique_ptr<Command> command) {
  Registry& all = registry();
  const auto at = std::ranges::lower_bound(all.sorted, command->name(), {}, &Command::name);
  all.sorted.insert(at, command.get());
  all.owned.push_back(std::move(command));
}

std::string listed(std::span<const std::string_view> words, std::string_view last) {
  if (words.size() < 2) return fmt::format("{}", fmt::join(words, ""));
  return fmt::format("{} {} {}", fmt::join(words.first(words.size() - 1), ", "), last, words.back());
}

std::string unknown_format(std::string_view format, std::span<const std::string_view> formats,
                           std::span<const std::string_view> planned) {
  const std::string built = listed(formats, "and");
  if (std::ranges::find(planned, format) != planned.end())
    return fmt::format("the format {} is not built yet; there are {}", format, built);
  return fmt::format("unknown format `{}`; there are {}", format, built);
}

}  // namespace tensorlint::cli
