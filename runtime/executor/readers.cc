#include "runtime/executor/readers.h"

#include <algorithm>

namespace tensorlint::runtime {

Readers::Readers(const Model& model)
    : readers_(model.values.size()), is_output_(model.values.size()), captured_(model.nodes.size()) {
  const auto read_in = [&](ValueId value, GraphId graph, NodeId node) {
    if (value == ValueId::kAbsent) return;
    const GraphId home = model.value(value).graph;
    if (home == graph) {
      if (node == NodeId::kNone) {
        is_output_[value] = true;
      } else {
        readers_[value].push_back(node);
      }
      return;
    }
    // The node of the value's graph that holds the reader's, perhaps with others around it.
    NodeId holder = model.graph(graph).owner;
    while (holder != NodeId::kNone && model.node(holder).graph != home)
      holder = model.graph(model.node(holder).graph).owner;
    if (holder == NodeId::kNone) return;
    readers_[value].push_back(holder);
    captured_[holder].push_back(value);
  };
  for (const NodeId id : model.nodes.ids())
    for (const ValueId operand : model.operands(model.node(id))) read_in(operand, model.node(id).graph, id);
  for (const GraphId id : model.graphs.ids())
    for (const ValueId output : model.graph(id).outputs) read_in(output, id, NodeId::kNone);
  for (std::vector<ValueId>& values : captured_) {
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
}

}  // namespace tensorlint::runtime
