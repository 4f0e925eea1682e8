#include "passes/placement/call_attributes.h"

#include <algorithm>

#include "passes/dataflow/attributes.h"

namespace tensorlint::placement {

const Attribute* CallAttributes::find(const Node& node, std::string_view name) const {
  meter_.charge(1 + node.attribute_count / 4);
  const Attribute* found = model_.attribute(node, name);
  if (found == nullptr || found->reference.empty()) return found;
  const auto given = std::ranges::lower_bound(attributes_, found->reference, {}, &Attribute::name);
  return given == attributes_.end() || given->name != found->reference ? nullptr : &*given;
}

std::vector<Attribute> CallAttributes::of_call(const Node& call, const Graph& function) const {
  // Sorted and copied.
  meter_.charge(2 * (dataflow::steps_of(model_.attributes(call)) + dataflow::steps_of(function.attribute_defaults)));
  std::vector<Attribute> resolved;
  return dataflow::with_defaults(dataflow::resolve_references(model_.attributes(call), {attributes_}, resolved),
                                 function.attribute_defaults);
}

}  // namespace tensorlint::placement
