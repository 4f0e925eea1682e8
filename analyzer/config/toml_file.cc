#include "analyzer/config/toml_file.h"

#include <fmt/format.h>

#include "analyzer/config/small_file.h"

namespace tensorlint {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

}  // namespace

Error toml_error(const std::string& path, const toml::source_region& source, std::string_view message) {
  const Position position{.line = source.begin.line, .column = static_cast<std::uint32_t>(source.begin.column)};
  return {fmt::format("{}:{}:{}: {}", path, source.begin.line, source.begin.column, message), position};
}

Result<toml::table> read_toml_file(const std::string& path) {
  const Result<std::string> text = read_small_file(path, kMaxBytes);
  if (!text) return Error{fmt::format("{}: {}", path, text.error().message), {}};
  try {
    return toml::parse(*text, path);
  } catch (const toml::parse_error& error) {
    return toml_error(path, error.source(), error.description());
  }
}

}  // namespace tensorlint
