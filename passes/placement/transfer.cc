#include "passes/placement/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/graph/new_nodes.h"
#include "ir/graph/region_op.h"
#include "passes/placement/operator_traits.h"

namespace tensorlint::placement {

bool is_transfer(const Model& model, const Operator& op) {
  return device_signature(model, op).rule == DeviceRule::kArgument;
}

std::vector<GraphEdit> insert_transfer(std::string name, std::string from, std::string made, std::string device,
                                       NodeId before, GraphId graph) {
  NewNode transfer = new_transfer(std::move(name), std::move(from), std::move(made), std::move(device));
  const std::string domain = transfer.domain;
  return {InsertNode{before, std::move(transfer), graph}, ImportDomain{domain, 1, graph}};
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

NodeId transfer_before(const Model& model, ValueId value, std::span<const NodeId> readers, bool is_yielded) {
  const auto owner = [&](NodeId node) { return model.graph(model.node(node).graph).owner; };
  const auto depth = [&](NodeId node) {
    int depth = 0;
    for (GraphId graph = model.node(node).graph; model.graph(graph).kind == GraphKind::kSubgraph;
         graph = model.graph(graph).parent)
      ++depth;
    return depth;
  };
  std::vector<NodeId> places;
  for (const NodeId reader : readers) {
    NodeId before = outermost_loop(model, reader, value);
    while (is_yielded && model.node(before).graph != model.value(value).graph) before = owner(before);
    places.push_back(before);
  }
  // The innermost graph that holds all of them, and in it what holds the first.
  NodeId first = places[0];
  int first_depth = depth(first);
  for (const NodeId place : places) {
    NodeId other = place;
    int other_depth = depth(other);
    while (model.node(first).graph != model.node(other).graph) {
      const bool lifts_first = first_depth >= other_depth;
      NodeId& deeper = lifts_first ? first : other;
      deeper = owner(deeper);
      --(lifts_first ? first_depth : other_depth);
    }
    first = std::min(first, other);
  }
  return first;
}

}  // namespace tensorlint::placement
