#include "passes/placement/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/graph/region_op.h"

namespace tensorlint::placement {

bool is_transfer(const Model& model, const Operator& op) {
  return model.text(op.domain) == "tensorlint" && model.text(op.name) == "Transfer";
}

std::vector<GraphEdit> insert_transfer(std::string name, std::string from, std::string made, std::string device,
                                       NodeId before, GraphId graph) {
  const NewAttribute attribute{.name = "device", .kind = AttributeKind::kString, .s = std::move(device)};
  return {InsertNode{before,
                     {"tensorlint", "Transfer", std::move(name), {std::move(from)}, {std::move(made)}, {attribute}},
                     graph},
          ImportDomain{"tensorlint", 1, graph}};
}

std::string name_with_device(std::string_view name, std::string_view word, std::string_view device) {
  std::string suffix(device);
  std::ranges::replace(suffix, ':', '_');
  return fmt::format("{}_{}_{}", name, word, suffix);
}

NodeId outermost_loop(const Model& model, NodeId node, ValueId value) {
  NodeId before = node;
  for (GraphId graph = model.node(node).graph;
       graph != model.value(value).graph && model.graph(graph).kind == GraphKind::kSubgraph;
       graph = model.graph(graph).parent) {
    const NodeId owner = model.graph(graph).owner;
    if (is_loop(region_kind(model, model.op(model.node(owner))))) before = owner;
  }
  return before;
}

}  // namespace tensorlint::placement
