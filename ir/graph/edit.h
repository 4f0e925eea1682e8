#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph/model.h"

namespace tensorlint {

/// Changes to a model, independent of its format: what fixes are made of and writers carry out.

struct NewAttribute {
  std::string name;
  AttributeKind kind = AttributeKind::kInt;  ///< kInt, kFloat, kString, kInts; kUndefined: SetAttribute removes it
  std::int64_t i = 0;
  float f = 0;
  std::string s{};
  std::vector<std::int64_t> ints{};
};

struct NewNode {
  std::string domain, op, name;
  std::vector<std::string> operands, results;
  std::vector<NewAttribute> attributes;
};

/// Puts a new node right before another one, in the same graph, or behind all nodes of `graph`.
struct InsertNode {
  NodeId before = NodeId::kNone;  ///< kNone: to the end
  NewNode node;
  GraphId graph = GraphId::kMain;  ///< only asked for without `before`
};

/// Operand `index` of a node becomes another value; operands in between are left out where the node has fewer.
struct SetOperand {
  NodeId node = NodeId::kNone;
  std::uint32_t index = 0;
  std::string value;
};

/// Result `index` of a node, which it has already, gets another name; who reads it is up to the caller.
struct SetResult {
  NodeId node = NodeId::kNone;
  std::uint32_t index = 0;
  std::string value;
};

struct SetAttribute {
  NodeId node = NodeId::kNone;
  NewAttribute attribute;
};

/// A constant of int64 elements.
struct AddInitializer {
  GraphId graph = GraphId::kMain;
  std::string name;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> elements;
};

/// Imports a domain into the model, or into the function that `graph` is or belongs to; nothing where it is there
/// already.
struct ImportDomain {
  std::string domain;
  std::int64_t version = 1;
  GraphId graph = GraphId::kMain;
};

/// An entry of the model's metadata_props.
struct AddModelMetadata {
  std::string key, value;
};

/// An entry of the metadata_props of a node, or of the TensorProto of an initializer.
struct AddMetadata {
  NodeId node = NodeId::kNone;
  ValueId initializer = ValueId::kAbsent;  ///< only asked for without `node`
  std::string key, value;
};

/// Takes away what the graph's value_info says of a value; inputs and outputs keep their declarations.
struct DropValueInfo {
  GraphId graph = GraphId::kMain;
  std::string value;
};

/// Takes a node away. What its results are used for is up to the caller.
struct RemoveNode {
  NodeId node = NodeId::kNone;
};

/// Moves a node, as it stands, right before another one of its graph, or behind all of them. Nodes that move to one
/// place stand there in the order of their edits.
struct MoveNode {
  NodeId node = NodeId::kNone;
  NodeId before = NodeId::kNone;  ///< kNone: to the end
};

/// Takes a constant of a graph away; an input of the same name stays and loses its default.
struct RemoveInitializer {
  ValueId value = ValueId::kAbsent;
};

/// Takes a comment of a model in text away; of several on one line there is only one.
struct RemoveComment {
  std::uint32_t line = 0;
};

using GraphEdit =
    std::variant<InsertNode, SetOperand, SetResult, SetAttribute, AddInitializer, ImportDomain, AddModelMetadata,
                 AddMetadata, DropValueInfo, RemoveNode, MoveNode, RemoveInitializer, RemoveComment>;

/// Bytes that an edit takes. Names in edits are those of the model, and may be long.
std::size_t bytes_of(const GraphEdit& edit);

/// `base`, or `base_2`, `base_3`, ...: a name that nothing in the model has.
std::string unused_name(const Model& model, std::string_view base);

}  // namespace tensorlint
