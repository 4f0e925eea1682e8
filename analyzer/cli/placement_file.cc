#include "analyzer/cli/placement_file.h"

#include <fmt/format.h>

#include <string_view>

#include "analyzer/config/toml_file.h"
#include "passes/placement/device_name.h"

namespace tensorlint::cli {
namespace {

/// One row `[[place]]`.
Result<placement::PlacementRule> read_row(const std::string& path, const toml::table& row) {
  placement::PlacementRule rule;
  rule.line = row.source().begin.line;
  for (const auto& [key, node] : row) {
    const auto text = node.value<std::string>();
    if (!node.is_string() || !text)
      return config::toml_error(path, node.source(), fmt::format("`{}` is not a string", std::string_view(key)));
    if (key == "device") {
      const auto device = placement::canonical_device(*text);
      if (!device)
        return config::toml_error(path, node.source(),
                                  fmt::format("`{}` is not a device; expected cpu, cuda:0, ...", *text));
      rule.device = *device;
    } else if (key == "nodes") {
      rule.nodes = *text;
    } else if (key == "values") {
      rule.values = *text;
    } else if (key == "modules") {
      rule.modules = *text;
    } else {
      return config::toml_error(
          path, node.source(),
          fmt::format("unknown key `{}`; a row has device, nodes, values, modules", std::string_view(key)));
    }
  }
  if (rule.device.empty()) return config::toml_error(path, row.source(), "the row has no device");
  if (rule.nodes.empty() && rule.values.empty() && rule.modules.empty())
    return config::toml_error(path, row.source(), "the row needs nodes, values or modules");
  return rule;
}

}  // namespace

Result<std::vector<placement::PlacementRule>> read_placement_file(const std::string& path, bool is_named_by_found) {
  const auto file = config::read_toml_file(path, is_named_by_found ? config::kMaxFoundTomlBytes : config::kMaxTomlBytes,
                                           is_named_by_found);
  if (!file) return file.error();
  std::vector<placement::PlacementRule> rules;
  for (const auto& [key, node] : *file) {
    if (key != "place")
      return config::toml_error(
          path, node.source(),
          fmt::format("unknown key `{}`; a placement file has rows [[place]]", std::string_view(key)));
    const toml::array* rows = node.as_array();
    if (rows == nullptr)
      return config::toml_error(path, node.source(), "`place` is not a list of tables: write [[place]]");
    for (const toml::node& row : *rows) {
      if (!row.is_table())
        return config::toml_error(path, row.source(), "an entry of `place` is not a table: write [[place]]");
      auto rule = read_row(path, *row.as_table());
      if (!rule) return rule.error();
      rules.push_back(std::move(*rule));
    }
  }
  return rules;
}

}  // namespace tensorlint::cli
