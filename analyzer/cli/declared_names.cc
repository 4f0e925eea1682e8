#include "analyzer/cli/declared_names.h"

#include <fmt/format.h>

#include <string_view>
#include <tuple>

namespace tensorlint::cli {
namespace {

/// All values that a row names.
std::vector<const config::ConfigEntry*> entries_of(const config::ConfigDeclarations& row) {
  std::vector<const config::ConfigEntry*> entries;
  for (const auto* list : {&row.inputs, &row.ranges, &row.devices})
    for (const config::ConfigEntry& entry : *list) entries.push_back(&entry);
  return entries;
}

}  // namespace

void DeclaredNames::note(const Model& model, const DeclaredValues& values, const InputSettings& settings) {
  if (values.empty() && settings.rows->empty()) return;
  const bool is_empty = model.values.size() <= static_cast<std::size_t>(kFirstValue);
  const auto has = [&](const std::string& name) {
    return !is_empty && model.find_value(GraphId::kMain, name) != ValueId::kAbsent;
  };
  const std::lock_guard lock(mutex_);
  for (const auto& [name, declaration] : values)
    if (has(name)) known_.insert(name);
  for (const std::uint32_t number : *settings.rows) {
    Row& row = rows_[{settings.config, number}];
    const bool is_new = row.is_known.empty();
    if (!is_new && (is_empty || row.unknown == 0)) continue;
    const std::vector<const config::ConfigEntry*> entries = entries_of(settings.config->says->declarations[number]);
    if (is_new) {
      row.is_known.resize(entries.size());
      row.unknown = entries.size();
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (row.is_known[i] || !has(entries[i]->name)) continue;
      row.is_known[i] = true;
      --row.unknown;
    }
  }
}

std::string DeclaredNames::unknown_in_config() const {
  std::map<std::tuple<std::string_view, std::uint32_t, std::string_view>, bool> known;  // by path, line and name
  for (const auto& [of, row] : rows_) {
    const auto& [config, number] = of;
    const std::vector<const config::ConfigEntry*> entries = entries_of(config->says->declarations[number]);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      bool& is_known = known[{config->path, entries[i]->line, entries[i]->name}];
      is_known = is_known || row.is_known[i];
    }
  }
  for (const auto& [declared, is_known] : known) {
    const auto& [path, line, name] = declared;
    if (!is_known)
      return fmt::format("{}:{}: no model that the row applies to has a value `{}` in its main graph", path, line,
                         name);
  }
  return {};
}

}  // namespace tensorlint::cli
