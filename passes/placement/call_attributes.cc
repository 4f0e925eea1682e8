#include "passes/placement/call_attributes.h"

namespace tensorlint::placement {

const Attribute* CallAttributes::find(const Node& node, std::string_view name) const {
  const Attribute* found = model_.attribute(node, name);
  if (found == nullptr || found->reference.empty()) return found;
  for (const Attribute& given : attributes_)
    if (given.name == found->reference) return &given;
  return nullptr;
}

std::vector<Attribute> CallAttributes::of_call(const Node& call, const Graph& function) const {
  std::vector<Attribute> attributes;
  for (const Attribute& given : model_.attributes(call)) {
    const Attribute* value = find(call, given.name);
    if (value == nullptr) continue;
    attributes.push_back(*value);
    attributes.back().name = given.name;
  }
  for (const Attribute& fallback : function.attribute_defaults)
    if (model_.attribute(call, fallback.name) == nullptr) attributes.push_back(fallback);
  return attributes;
}

}  // namespace tensorlint::placement
