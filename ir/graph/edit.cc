#include "ir/graph/edit.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>

namespace tensorlint {
namespace {

std::size_t bytes_of(const NewAttribute& attribute) {
  return sizeof attribute + attribute.name.size() + attribute.s.size() + attribute.ints.size() * sizeof(std::int64_t);
}

std::size_t bytes_of(const NewNode& node) {
  std::size_t bytes = node.domain.size() + node.op.size() + node.name.size();
  for (const auto* names : {&node.operands, &node.results})
    for (const std::string& name : *names) bytes += sizeof name + name.size();
  for (const NewAttribute& attribute : node.attributes) bytes += bytes_of(attribute);
  return bytes;
}

}  // namespace

std::size_t bytes_of(const GraphEdit& edit) {
  const auto of = [](const auto& one) -> std::size_t {
    using Edit = std::decay_t<decltype(one)>;
    if constexpr (std::is_same_v<Edit, InsertNode>)
      return bytes_of(one.node);
    else if constexpr (std::is_same_v<Edit, SetAttribute>)
      return bytes_of(one.attribute);
    else if constexpr (std::is_same_v<Edit, AddInitializer>)
      return one.name.size() + (one.dims.size() + one.elements.size()) * sizeof(std::int64_t);
    else if constexpr (std::is_same_v<Edit, ImportDomain>)
      return one.domain.size();
    else if constexpr (std::is_same_v<Edit, AddModelMetadata> || std::is_same_v<Edit, AddMetadata>)
      return one.key.size() + one.value.size();
    else if constexpr (std::is_same_v<Edit, SetOperand> || std::is_same_v<Edit, SetResult> ||
                       std::is_same_v<Edit, DropValueInfo>)
      return one.value.size();
    else
      return 0;
  };
  return sizeof edit + std::visit(of, edit);
}

std::string unused_name(const Model& model, std::string_view base) {
  // Each of many names that are asked for may be taken with each of many numbers.
  constexpr std::int64_t kFirstNumbers = 64;
  std::string name(base);
  for (std::int64_t number = 2; model.names.find(name) != 0; number += number < kFirstNumbers ? 1 : number)
    name = fmt::format("{}_{}", base, number);
  return name;
}

}  // namespace tensorlint
