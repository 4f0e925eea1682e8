#include "analyzer/cli/declared_names.h"

#include <fmt/format.h>

namespace tensorlint::cli {

void DeclaredNames::note(const Model& model, const dataflow::AnalysisOptions& options, const InputSettings& settings) {
  if (options.values.empty() && settings.names.empty()) return;
  const auto has = [&](const std::string& name) { return model.find_value(GraphId::kMain, name) != ValueId::kAbsent; };
  const std::lock_guard lock(mutex_);
  for (const auto& [name, declaration] : options.values)
    if (has(name)) known_.insert(name);
  for (const ConfigName& entry : settings.names) {
    bool& known = of_configs_[{settings.config->path, entry.line, entry.name}];
    known = known || has(entry.name);
  }
}

std::string DeclaredNames::unknown_in_config() const {
  for (const auto& [declared, known] : of_configs_) {
    const auto& [path, line, name] = declared;
    if (!known)
      return fmt::format("{}:{}: no model that the row applies to has a value `{}` in its main graph", path, line,
                         name);
  }
  return {};
}

}  // namespace tensorlint::cli
