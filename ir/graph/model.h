#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_bytes.h"
#include "base/id_vector.h"
#include "base/name_table.h"
#include "ir/graph/parts.h"
#include "ir/graph/provenance.h"

namespace tensorlint {

/// A model as read: graphs, nodes, values and constants in flat arrays, names interned, bytes not copied.
/// Built by a reader through ModelBuilder; immutable afterwards.
struct Model {
  std::string path;
  std::uint64_t input_bytes = 0;  ///< of the input, without weights; 0: no file
  std::int64_t ir_version = 0;
  std::string_view producer_name, producer_version;
  std::vector<MetadataEntry> metadata;  ///< model-level metadata_props
  std::vector<DeviceConfiguration> device_configurations;
  bool has_node_device_configurations = false;
  std::vector<std::vector<OpsetImport>> opset_imports;  ///< [0]: the model's; then one per function that has its own
  IdVector<GraphId, Graph> graphs;                      ///< main first, then subgraphs and functions
  IdVector<NodeId, Node> nodes;
  IdVector<ValueId, Value> values;  ///< kAbsent first
  IdVector<OperatorId, Operator> operators;
  std::vector<ValueId> operand_list, result_list;
  std::vector<Attribute> attribute_list;
  std::vector<std::uint32_t> attributes_by_name;  ///< empty, or beside attribute_list: those of wide nodes, sorted
  std::vector<StructureFault> faults;             ///< capped at 1,000 per graph
  std::vector<Comment> comments;                  ///< of a model in text, in file order
  std::unique_ptr<Provenance> provenance;

  const Graph& graph(GraphId id) const { return graphs[id]; }
  const Node& node(NodeId id) const { return nodes[id]; }
  const Value& value(ValueId id) const { return values[id]; }
  const Operator& op(const Node& node) const { return operators[node.op]; }
  std::span<const ValueId> operands(const Node& node) const {
    return std::span(operand_list).subspan(node.first_operand, node.operand_count);
  }
  std::span<const ValueId> results(const Node& node) const {
    return std::span(result_list).subspan(node.first_result, node.result_count);
  }
  std::span<const Attribute> attributes(const Node& node) const {
    return std::span(attribute_list).subspan(node.first_attribute, node.attribute_count);
  }
  /// The first one of that name; null where there is none.
  const Attribute* attribute(const Node& node, std::string_view name) const;
  /// Nodes with more are wide: any number of readers may ask one of thousands for an attribute.
  static constexpr std::uint32_t kFewAttributes = 16;
  std::string_view text(NameId name) const { return names.text(static_cast<std::uint32_t>(name)); }
  std::string_view name_of(ValueId id) const { return text(value(id).name); }
  NodeId id_of(const Node& node) const { return static_cast<NodeId>(&node - nodes.data()); }
  /// The node's name; "#index(op)" within its graph where it has none.
  std::string label(NodeId id) const;
  /// "main", "main/loop_body", "domain::function": the path of a graph.
  /// Its middle is left out where it is longer than anything shows.
  std::string graph_path(GraphId id) const;
  /// Version of a domain in force in a graph; 0 when it is not imported.
  std::int64_t opset(GraphId graph, std::string_view domain) const;
  /// The value of that name in the graph itself (not in an outer one); kAbsent when there is none.
  ValueId find_value(GraphId graph, std::string_view name) const;

  NameTable names;
  ScopedIndex value_index;                           ///< (graph, name) -> value
  std::vector<std::string_view> weights;             ///< all of a binary file, also those that no tensor here has
  const FileBytes* weights_file = nullptr;           ///< borrowed: outlives the model and its meters
  std::vector<std::shared_ptr<const void>> storage;  ///< file bytes and arenas that views point into
};

}  // namespace tensorlint
