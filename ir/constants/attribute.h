#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/constants/tensor.h"
#include "ir/schema/schema.h"
#include "ir/types/ids.h"
#include "ir/types/type_decl.h"

namespace tensorlint {

/// One attribute of a node. `reference` is set inside functions: the value is the caller's attribute of that name.
struct Attribute {
  std::string_view name;
  AttributeKind kind = AttributeKind::kUndefined;
  std::string_view reference;
  std::int64_t i = 0;
  float f = 0;
  std::string_view s;
  std::span<const std::int64_t> ints;
  std::span<const float> floats;
  std::span<const std::string_view> strings;
  const Tensor* tensor = nullptr;
  std::span<const Tensor* const> tensors;
  const SparseTensor* sparse = nullptr;
  GraphId graph = GraphId::kNone;
  std::span<const GraphId> graphs;
  const TypeDecl* type = nullptr;
  std::span<const TypeDecl* const> types;

  /// Of its own: a reference may stand for some, too.
  bool has_graphs() const { return graph != GraphId::kNone || !graphs.empty(); }
};

}  // namespace tensorlint
