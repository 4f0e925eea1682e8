#include "analyzer/cli/signature_file.h"

#include <fmt/format.h>

#include <string_view>

#include "analyzer/config/toml_file.h"
#include "ir/schema/schema.h"

namespace tensorlint::cli {
namespace {

Result<std::vector<std::string>> read_types(const std::string& path, std::string_view key, const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return config::toml_error(path, node.source(), fmt::format("`{}` is not a list of types", key));
  std::vector<std::string> types;
  for (const toml::node& item : *list) {
    const auto text = item.value<std::string>();
    if (!item.is_string() || !text)
      return config::toml_error(path, item.source(), fmt::format("`{}` has an entry that is not a string", key));
    types.push_back(*text);
  }
  return types;
}

/// One row `[[operator]]`, added to the signatures.
std::optional<Error> read_row(const std::string& path, const toml::table& row, ops::Signatures& signatures) {
  std::string domain, name;
  std::vector<std::string> inputs, outputs;
  for (const auto& [key, node] : row) {
    if (key == "domain" || key == "name") {
      const auto text = node.value<std::string>();
      if (!node.is_string() || !text)
        return config::toml_error(path, node.source(), fmt::format("`{}` is not a string", std::string_view(key)));
      (key == "domain" ? domain : name) = *text;
    } else if (key == "inputs" || key == "outputs") {
      auto types = read_types(path, key, node);
      if (!types) return types.error();
      (key == "inputs" ? inputs : outputs) = std::move(*types);
    } else {
      return config::toml_error(
          path, node.source(),
          fmt::format("unknown key `{}`; a row has domain, name, inputs, outputs", std::string_view(key)));
    }
  }
  if (name.empty()) return config::toml_error(path, row.source(), "the row has no operator name");
  if (outputs.empty()) return config::toml_error(path, row.source(), fmt::format("operator `{}` has no outputs", name));
  auto signature = ops::make_signature(inputs, outputs);
  if (!signature)
    return config::toml_error(path, row.source(), fmt::format("operator `{}`: {}", name, signature.error().message));
  if (normalised_domain(domain).empty()) domain.clear();
  if (!signatures.emplace(std::pair(domain, name), std::move(*signature)).second)
    return config::toml_error(path, row.source(), fmt::format("operator `{}` is declared twice", name));
  return std::nullopt;
}

}  // namespace

Result<ops::Signatures> read_signature_file(const std::string& path) {
  const auto file = config::read_toml_file(path);
  if (!file) return file.error();
  ops::Signatures signatures;
  for (const auto& [key, node] : *file) {
    const toml::array* rows = node.as_array();
    if (key != "operator" || rows == nullptr)
      return config::toml_error(
          path, node.source(),
          fmt::format("unknown key `{}`; a file of signatures has rows [[operator]]", std::string_view(key)));
    for (const toml::node& row : *rows) {
      if (!row.is_table())
        return config::toml_error(path, row.source(), "an entry of `operator` is not a table: write [[operator]]");
      if (auto error = read_row(path, *row.as_table(), signatures)) return std::move(*error);
    }
  }
  return signatures;
}

}  // namespace tensorlint::cli
