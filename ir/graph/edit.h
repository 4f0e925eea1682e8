#pragma once

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
  AttributeKind kind = AttributeKind::kInt;  ///< kInt, kFloat, kString, kInts
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

/// Puts a new node right before another one, in the same graph.
struct InsertNode {
  NodeId before = NodeId::kNone;
  NewNode node;
};

/// Operand `index` of a node becomes another value; operands in between are left out where the node has fewer.
struct SetOperand {
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

/// Imports a domain into the model, or into the function that `graph` is or belongs to; nothing where it is there already.
struct ImportDomain {
  std::string domain;
  std::int64_t version = 1;
  GraphId graph = GraphId::kMain;
};

/// An entry of the model's metadata_props.
struct AddModelMetadata {
  std::string key, value;
};

/// Takes away what the graph's value_info says of a value; inputs and outputs keep their declarations.
struct DropValueInfo {
  GraphId graph = GraphId::kMain;
  std::string value;
};

using GraphEdit = std::variant<InsertNode, SetOperand, SetAttribute, AddInitializer, ImportDomain, AddModelMetadata, DropValueInfo>;

/// `base`, or `base_2`, `base_3`, ...: a name that nothing in the model has.
std::string unused_name(const Model& model, std::string_view base);

}  // namespace tensorlint
