#include "analyzer/rules/loss/parameters.h"

#include <algorithm>

namespace tensorlint::rules {

std::vector<ValueId> trained_parameters(const Model& model) {
  constexpr std::string_view kKey = "tensorlint.requires_grad";
  std::vector<ValueId> parameters;
  if (model.provenance == nullptr || !model.provenance->mentions(kKey)) return parameters;
  const Graph& main = model.graph(GraphId::kMain);
  std::vector<ValueId> candidates = main.inputs;
  candidates.insert(candidates.end(), main.initializers.begin(), main.initializers.end());
  std::ranges::sort(candidates);
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (const ValueId value : candidates) {
    const std::vector<MetadataEntry> entries = model.provenance->value_metadata(value);
    const auto is_trained = [kKey](const MetadataEntry& entry) { return entry.key == kKey && entry.value == "true"; };
    if (std::ranges::any_of(entries, is_trained)) parameters.push_back(value);
  }
  return parameters;
}

}  // namespace tensorlint::rules
