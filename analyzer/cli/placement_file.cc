#include "analyzer/cli/placement_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <toml++/toml.h>

#include "passes/placement/device_name.h"

namespace tensorlint::cli {
namespace {

Error at(const std::string& path, const toml::source_region& source, std::string message) {
  const Position position{.line = source.begin.line, .column = static_cast<std::uint32_t>(source.begin.column)};
  return {fmt::format("{}:{}:{}: {}", path, source.begin.line, source.begin.column, message), position};
}

/// One row `[[place]]`.
Result<PlacementRule> read_row(const std::string& path, const toml::table& row) {
  PlacementRule rule;
  rule.line = row.source().begin.line;
  for (const auto& [key, node] : row) {
    const auto text = node.value<std::string>();
    if (!node.is_string() || !text) return at(path, node.source(), fmt::format("`{}` is no text", std::string_view(key)));
    if (key == "device") {
      const auto device = canonical_device(*text);
      if (!device) return at(path, node.source(), fmt::format("`{}` names no device; write cpu, cuda:0, ...", *text));
      rule.device = *device;
    } else if (key == "nodes") {
      rule.nodes = *text;
    } else if (key == "values") {
      rule.values = *text;
    } else if (key == "modules") {
      rule.modules = *text;
    } else {
      return at(path, node.source(), fmt::format("unknown key `{}`; a row has device, nodes, values, modules", std::string_view(key)));
    }
  }
  if (rule.device.empty()) return at(path, row.source(), "the row names no device");
  if (rule.nodes.empty() && rule.values.empty() && rule.modules.empty()) return at(path, row.source(), "the row has none of nodes, values, modules");
  return rule;
}

}  // namespace

Result<std::vector<PlacementRule>> read_placement_file(const std::string& path) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) return Error{fmt::format("{} is a folder, not a placement file", path), {}};
  toml::table file;
  try {
    file = toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    return at(path, error.source(), std::string(error.description()));
  }
  std::vector<PlacementRule> rules;
  for (const auto& [key, node] : file) {
    if (key != "place") return at(path, node.source(), fmt::format("unknown key `{}`; a placement file has rows [[place]]", std::string_view(key)));
    const toml::array* rows = node.as_array();
    if (rows == nullptr) return at(path, node.source(), "`place` is no list of rows; write [[place]]");
    for (const toml::node& row : *rows) {
      if (!row.is_table()) return at(path, row.source(), "a row of `place` is no table; write [[place]]");
      auto rule = read_row(path, *row.as_table());
      if (!rule) return rule.error();
      rules.push_back(std::move(*rule));
    }
  }
  return rules;
}

}  // namespace tensorlint::cli
