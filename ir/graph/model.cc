#include "ir/graph/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/escape.h"

namespace tensorlint {

const Attribute* Model::attribute(const Node& node, std::string_view name) const {
  if (node.attribute_count > kFewAttributes && node.first_attribute < attributes_by_name.size()) {
    const auto name_of_number = [this](std::uint32_t number) { return attribute_list[number].name; };
    const auto sorted = std::span(attributes_by_name).subspan(node.first_attribute, node.attribute_count);
    const auto found = std::ranges::lower_bound(sorted, name, {}, name_of_number);
    return found != sorted.end() && name_of_number(*found) == name ? &attribute_list[*found] : nullptr;
  }
  for (const Attribute& attribute : attributes(node))
    if (attribute.name == name) return &attribute;
  return nullptr;
}

std::string Model::label(NodeId id) const {
  const Node& self = node(id);
  if (self.name != NameId::kEmpty) return std::string(text(self.name));
  const auto index = graph(self.graph).nodes.index_of(id);
  return fmt::format("#{}({})", index, text(op(self).name));
}

std::string Model::graph_path(GraphId id) const {
  // Of the outermost names, and of those nearest to the graph: escaping drops the rest.
  constexpr std::size_t kMostBytes = kIdentifierLength + 64;
  std::vector<GraphId> around;
  for (GraphId at = id; at != GraphId::kNone; at = graph(at).parent) around.push_back(at);
  const auto ends_of = [](std::string_view name) {
    if (name.size() <= 2 * kMostBytes) return std::string(name);
    return fmt::format("{}{}", name.substr(0, kMostBytes), name.substr(name.size() - kMostBytes));
  };
  const auto name_of = [&](const Graph& self) -> std::string {
    if (self.kind == GraphKind::kMain) return "main";
    if (self.kind == GraphKind::kSubgraph)
      return ends_of(self.name != NameId::kEmpty ? text(self.name) : self.attribute);
    std::string name = fmt::format("{}::{}", ends_of(text(self.domain)), ends_of(text(self.name)));
    if (self.overload != NameId::kEmpty) name += fmt::format(":{}", ends_of(text(self.overload)));
    return name;
  };
  std::vector<std::string> nearest;
  for (std::size_t bytes = 0; nearest.size() < around.size() && bytes < kMostBytes; bytes += nearest.back().size())
    nearest.push_back(name_of(graph(around[nearest.size()])));
  std::string path;
  for (std::size_t i = around.size(); i > nearest.size() && path.size() < kMostBytes; --i)
    path += name_of(graph(around[i - 1])) + '/';
  std::ranges::reverse(nearest);
  return path + fmt::format("{}", fmt::join(nearest, "/"));
}

std::int64_t Model::opset(GraphId graph_id, std::string_view domain) const {
  if (opset_imports.empty()) return 0;
  const std::string_view wanted = normalised_domain(domain);
  for (const OpsetImport& import : opset_imports[graph(graph_id).opsets])
    if (text(import.domain) == wanted) return import.version;
  return 0;
}

ValueId Model::find_value(GraphId graph, std::string_view name) const {
  const std::uint32_t known = names.find(name);
  if (known == 0) return ValueId::kAbsent;
  return static_cast<ValueId>(value_index.find(static_cast<std::uint32_t>(graph), known));
}

}  // namespace tensorlint
