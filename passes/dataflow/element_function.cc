#include "passes/dataflow/element_function.h"

namespace tensorlint::dataflow {
namespace {

/// Functions look for theirs among all that a node has: more than any operator takes.
constexpr std::uint32_t kMaxAttributes = 32;

}  // namespace

ops::ElementValue element_function(const Analysis& analysis, NodeId node) {
  if (node == NodeId::kNone) return nullptr;
  const Node& call = analysis.model().node(node);
  const ops::OpEntry* entry = analysis.entry(call);
  const OpSchema* schema = analysis.model().op(call).schema;
  if (entry == nullptr || schema == nullptr || call.attribute_count > kMaxAttributes ||
      call.operand_count < schema->min_inputs)
    return nullptr;
  return entry->element();
}

ops::ElementValue element_function(const Analysis& analysis, NodeId node, std::size_t operands) {
  const bool fits = node != NodeId::kNone && analysis.model().node(node).operand_count == operands;
  return fits ? element_function(analysis, node) : nullptr;
}

}  // namespace tensorlint::dataflow
