#include "passes/dataflow/summaries.h"

#include <algorithm>
#include <utility>

#include "passes/dataflow/attributes.h"

namespace tensorlint::dataflow {

const std::vector<AbstractValue>* Summaries::find(GraphId function, std::span<const AbstractValue> operands,
                                                  std::span<const Attribute> attributes) const {
  if (of(function).empty() || !are_comparable(attributes)) return nullptr;
  const std::uint64_t hash = hash_of(attributes);
  for (const Summary& summary : of(function))
    if (summary.attributes == hash && std::ranges::equal(summary.operands, operands) &&
        same_attributes(attributes, model_.attributes(model_.node(summary.call))))
      return &summary.outputs;
  return nullptr;
}

void Summaries::keep(GraphId function, NodeId call, std::vector<AbstractValue> operands,
                     std::vector<AbstractValue> outputs) {
  std::vector<Summary>& known = known_[static_cast<std::size_t>(function)];
  const std::span<const Attribute> attributes = model_.attributes(model_.node(call));
  if (known.size() < kMaxSummaries && are_comparable(attributes))
    known.push_back({std::move(operands), std::move(outputs), call, hash_of(attributes)});
}

}  // namespace tensorlint::dataflow
