#include "ir/graph/model.h"

#include <fmt/format.h>

#include <algorithm>

namespace tensorlint {

const Attribute* Model::attribute(const Node& node, std::string_view name) const {
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
  std::vector<std::string> parts;
  for (GraphId at = id; at != GraphId::kNone; at = graph(at).parent) {
    const Graph& self = graph(at);
    switch (self.kind) {
      case GraphKind::kMain:
        parts.emplace_back("main");
        break;
      case GraphKind::kFunction:
        parts.push_back(fmt::format("{}::{}", text(self.domain), text(self.name)));
        if (self.overload != NameId::kEmpty) parts.back() += fmt::format(":{}", text(self.overload));
        break;
      case GraphKind::kSubgraph:
        parts.push_back(self.name != NameId::kEmpty ? std::string(text(self.name)) : std::string(self.attribute));
        break;
    }
  }
  std::reverse(parts.begin(), parts.end());
  return fmt::format("{}", fmt::join(parts, "/"));
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
