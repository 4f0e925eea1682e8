#include "runtime/executor/readers.h"

#include <algorithm>

namespace tensorlint::runtime {

Readers::Readers(const Model& model)
    : readers_(model.values.size()), is_output_(model.values.size()), captured_(model.nodes.size()) {
  /// The node of the main graph that holds a graph, perhaps with others around it; kNone for functions.
  const auto holder_of = [&](GraphId graph) {
    NodeId node = model.graph(graph).owner;
    while (node != NodeId::kNone && model.node(node).graph != GraphId::kMain)
      node = model.graph(model.node(node).graph).owner;
    return node;
  };
  const auto read_inside = [&](ValueId value, GraphId graph) {
    if (value == ValueId::kAbsent || model.value(value).graph != GraphId::kMain) return;
    const NodeId holder = holder_of(graph);
    if (holder == NodeId::kNone) return;
    readers_[value].push_back(holder);
    captured_[holder].push_back(value);
  };
  for (const NodeId id : model.nodes.ids()) {
    const Node& node = model.node(id);
    for (const ValueId operand : model.operands(node)) {
      if (node.graph != GraphId::kMain) {
        read_inside(operand, node.graph);
      } else if (operand != ValueId::kAbsent) {
        readers_[operand].push_back(id);
      }
    }
  }
  for (const GraphId id : model.graphs.ids()) {
    for (const ValueId output : model.graph(id).outputs) {
      if (id != GraphId::kMain) {
        read_inside(output, id);
      } else if (output != ValueId::kAbsent) {
        is_output_[output] = true;
      }
    }
  }
  for (std::vector<ValueId>& values : captured_) {
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
}

}  // namespace tensorlint::runtime
