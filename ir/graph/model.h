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

#include "ir/graph/name_table.h"
#include "ir/graph/position.h"
#include "ir/ops/schema.h"
#include "ir/types/dtype.h"

namespace tensorlint {

enum class NameId : std::uint32_t { kEmpty = 0 };
enum class ValueId : std::uint32_t { kAbsent = 0 };  ///< kAbsent: an optional operand or result that is left out
enum class NodeId : std::uint32_t { kNone = 0xffff'ffffU };
enum class GraphId : std::uint32_t { kMain = 0, kNone = 0xffff'ffffU };
enum class OperatorId : std::uint32_t {};

/// A declared dim: a number, a name, or neither.
struct DimDecl {
  std::int64_t extent = -1;  ///< as written, so a negative number other than -1 is a malformed declaration
  NameId name = NameId::kEmpty;
  bool has_extent = false;
};

enum class TypeKind : std::uint8_t { kNone, kTensor, kSparseTensor, kSequence, kOptional, kMap, kOpaque };

/// A declared type, onnx.TypeProto.
struct TypeDecl {
  TypeKind kind = TypeKind::kNone;
  std::int32_t element_code = 0;  ///< tensors: raw TensorProto.DataType code; maps: code of the key
  bool ranked = false;
  std::span<const DimDecl> dims;
  const TypeDecl* element = nullptr;  ///< sequences, optionals, maps (the value)
};

/// A constant as it stands in the file. Views point into the file's bytes or the model's arena; nothing is copied.
struct Tensor {
  NameId name = NameId::kEmpty;
  std::int32_t dtype_code = 0;  ///< raw TensorProto.DataType code, may be unknown to us
  std::span<const std::int64_t> dims;
  bool has_raw = false;
  std::string_view raw;  ///< raw_data, little endian
  /// The typed field that carries data (float_data, int32_data, ...): its ONNX field number, 0 for none, and its bytes:
  /// packed varints for int32_data (5), int64_data (7), uint64_data (11); little-endian words for float_data (4),
  /// double_data (10).
  int typed_field = 0;
  std::string_view typed;
  std::span<const std::string_view> strings;  ///< string_data
  bool external = false;
  std::string_view location;                  ///< external: path as written
  std::string_view offset_text, length_text;  ///< external: as written, empty when not given
  Position position;
  std::uint32_t byte_length = 0;  ///< of the TensorProto in a binary file; 0 in text

  /// Number of elements that dims claim; nullopt on a negative dim or overflow.
  std::optional<std::uint64_t> element_count() const;
  /// Up to `limit` integer (bool, signed or unsigned) elements; nullopt when there are more, when data is external,
  /// malformed or does not fit dims, or the dtype is not of these. uint64 above INT64_MAX gives nullopt.
  std::optional<std::vector<std::int64_t>> integers(std::size_t limit) const;
  /// The same for float64, float32, float16 and bfloat16 elements.
  std::optional<std::vector<double>> floats(std::size_t limit) const;
  /// Bytes of data present inside the file; 0 for external data.
  std::uint64_t inline_bytes() const;
};

struct SparseTensor {
  const Tensor* values = nullptr;
  const Tensor* indices = nullptr;
  std::span<const std::int64_t> dims;
};

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
};

/// What a node calls: (domain, name, overload) under the opset imports of its graph. Shared by all such nodes.
struct Operator {
  NameId domain = NameId::kEmpty;  ///< normalised: "ai.onnx" is kEmpty
  NameId name = NameId::kEmpty;
  NameId overload = NameId::kEmpty;
  std::int64_t opset = 0;             ///< 0: the domain is not imported
  const OpSchema* schema = nullptr;   ///< null: not an operator that the table knows at this opset
  GraphId function = GraphId::kNone;  ///< the model-local function it names; it wins over a schema
};

struct Node {
  OperatorId op{};
  NameId name = NameId::kEmpty;
  GraphId graph = GraphId::kMain;
  std::uint32_t first_operand = 0, first_result = 0, first_attribute = 0;
  std::uint32_t operand_count = 0, result_count = 0, attribute_count = 0;
  Position position;
  std::uint32_t byte_length = 0;  ///< of the NodeProto in a binary file; 0 in text
};

/// How a value comes to be.
enum class ValueOrigin : std::uint8_t {
  kUndefined,  ///< a name that nothing defines
  kInput,      ///< graph or function input (an initializer of the same name is its default)
  kInitializer,
  kNode,
};

struct Value {
  NameId name = NameId::kEmpty;
  GraphId graph = GraphId::kMain;
  ValueOrigin origin = ValueOrigin::kUndefined;
  bool is_output = false;           ///< of its graph
  std::uint32_t result_index = 0;   ///< kNode: which result; kInput: which input
  NodeId producer = NodeId::kNone;  ///< kNode
  const TypeDecl* type = nullptr;   ///< declared by input, output or value_info
  const Tensor* initializer = nullptr;
  const SparseTensor* sparse_initializer = nullptr;
};

enum class GraphKind : std::uint8_t { kMain, kSubgraph, kFunction };

struct Graph {
  GraphKind kind = GraphKind::kMain;
  NameId name = NameId::kEmpty;                  ///< functions: the function's name
  NameId domain = NameId::kEmpty;                ///< functions
  NameId overload = NameId::kEmpty;              ///< functions
  GraphId parent = GraphId::kNone;               ///< subgraphs: the graph of the node that holds it
  NodeId owner = NodeId::kNone;                  ///< subgraphs: that node
  std::string_view attribute{};                  ///< subgraphs: the attribute that holds it (body, then_branch, ...)
  std::uint32_t first_node = 0, node_count = 0;  ///< nodes of one graph are consecutive, in file order
  std::vector<ValueId> inputs{};                 ///< without initializers that are no inputs
  std::vector<ValueId> outputs{};
  std::vector<ValueId> initializers{};
  std::vector<std::string_view> attribute_names{};  ///< functions: without default
  std::vector<Attribute> attribute_defaults{};      ///< functions: with default
  std::uint32_t opsets = 0;                         ///< index into Model::opset_imports
  Position position;
  std::uint32_t byte_length = 0;  ///< of the GraphProto or FunctionProto in a binary file; 0 in text
  /// Declared types of outputs that are values of an outer graph, by output; empty where no output is such.
  std::vector<const TypeDecl*> outer_output_types{};
};

struct OpsetImport {
  NameId domain = NameId::kEmpty;  ///< normalised
  std::int64_t version = 0;
};

/// A `#` comment of a model in text, without the mark and the blanks around it.
struct Comment {
  std::uint32_t line = 0;  ///< from 1
  std::string_view text;
  bool alone = false;  ///< nothing but blanks stands before it on its line
};

struct MetadataEntry {
  std::string_view key;
  std::string_view value;
};

/// What a graph already shows to be wrong when it is read: reported by rules, so that reading itself never stops there.
struct StructureFault {
  enum class Kind : std::uint8_t {
    kDuplicateDefinition,  ///< `value` is defined again by `node` (or as input, initializer)
    kDuplicateFunction,
    kDuplicateOpsetImport,
    kMissingOpsetImport,  ///< `node` uses a domain that is not imported
    kMalformedTensor,     ///< `tensor`: data does not fit dims and dtype, unknown dtype, two data fields, ...
    kMalformedType,
    kMalformedAttribute,  ///< `node`: kind and value disagree, no name, twice the same name, ...
    kEmptyName,
    kBrokenExternalData,  ///< `tensor`: its file or range; found by check_external_data, never while reading
  };
  Kind kind;
  GraphId graph = GraphId::kMain;
  NodeId node = NodeId::kNone;
  ValueId value = ValueId::kAbsent;
  const Tensor* tensor = nullptr;
  std::string message{};  ///< the situation, lower case, names not yet escaped
  Position position;
};

/// onnx.DeviceConfigurationProto: names the devices that nodes refer to by index.
struct DeviceConfiguration {
  std::string_view name;
  std::int64_t device_count = 0;
  std::vector<std::string_view> devices;  ///< names; perhaps none
};

/// onnx.ShardingSpecProto of one operand or result.
struct ShardingSpec {
  struct Shards {
    std::int64_t axis = 0;
    std::vector<std::int64_t> counts;  ///< num_shards of each part of the axis
  };
  std::string_view tensor;
  std::vector<std::int64_t> devices;  ///< indices of devices or of groups
  std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>> groups;
  std::vector<Shards> axes;
};

/// onnx.NodeDeviceConfigurationProto
struct NodeDeviceConfiguration {
  std::string_view configuration;
  std::vector<ShardingSpec> specs;
  bool malformed = false;  ///< its bytes are no such message; then the rest says nothing
};

/// Reads what is only needed when a finding is made; each reader brings its own.
class Provenance {
 public:
  virtual ~Provenance() = default;
  /// metadata_props of a node, in file order.
  virtual std::vector<MetadataEntry> node_metadata(const Node& node) const = 0;
  /// metadata_props of the ValueInfoProto or initializer TensorProto of a value; empty when there are none.
  virtual std::vector<MetadataEntry> value_metadata(ValueId value) const = 0;
  /// Those of them that stand at the TensorProto.
  virtual std::vector<MetadataEntry> initializer_metadata(ValueId /*value*/) const { return {}; }
  /// Of the protobuf message at these bytes of the file: all fields but those whose number is a bit of `held`, as they
  /// stand (doc strings, what newer versions of ONNX add, ...). A length past the end means up to the end. Empty for
  /// models that are no binary file.
  virtual std::string other_fields(Position /*message*/, std::uint64_t /*byte_length*/, std::uint64_t /*held*/) const {
    return {};
  }
  /// False when no node or value can have this key: then asking for each of them is needless. Costs one look at the
  /// file.
  virtual bool mentions(std::string_view /*key*/) const { return false; }
  /// Only asked for where Model::has_node_device_configurations.
  virtual std::vector<NodeDeviceConfiguration> device_configurations(const Node& /*node*/) const { return {}; }
};

/// A model as read: graphs, nodes, values and constants in flat arrays, names interned, bytes not copied.
/// Built by a reader through ModelBuilder; immutable afterwards.
struct Model {
  std::string path;
  std::int64_t ir_version = 0;
  std::string_view producer_name, producer_version;
  std::vector<MetadataEntry> metadata;  ///< model-level metadata_props
  std::vector<DeviceConfiguration> device_configurations;
  bool has_node_device_configurations = false;
  std::vector<std::vector<OpsetImport>> opset_imports;  ///< [0]: the model's; then one per function that has its own
  std::vector<Graph> graphs;                            ///< [0]: main; subgraphs and functions after it
  std::vector<Node> nodes;
  std::vector<Value> values;  ///< [0]: absent
  std::vector<Operator> operators;
  std::vector<ValueId> operand_list, result_list;
  std::vector<Attribute> attribute_list;
  std::vector<StructureFault> faults;  ///< capped at 1,000 per graph
  std::vector<Comment> comments;       ///< of a model in text, in file order
  std::unique_ptr<Provenance> provenance;

  const Graph& graph(GraphId id) const { return graphs[static_cast<std::size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }
  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
  const Operator& op(const Node& node) const { return operators[static_cast<std::size_t>(node.op)]; }
  std::span<const ValueId> operands(const Node& node) const {
    return std::span(operand_list).subspan(node.first_operand, node.operand_count);
  }
  std::span<const ValueId> results(const Node& node) const {
    return std::span(result_list).subspan(node.first_result, node.result_count);
  }
  std::span<const Attribute> attributes(const Node& node) const {
    return std::span(attribute_list).subspan(node.first_attribute, node.attribute_count);
  }
  const Attribute* attribute(const Node& node, std::string_view name) const;
  std::string_view text(NameId name) const { return names.text(static_cast<std::uint32_t>(name)); }
  std::string_view name_of(ValueId id) const { return text(value(id).name); }
  NodeId id_of(const Node& node) const { return static_cast<NodeId>(&node - nodes.data()); }
  /// The node's name; "#index(op)" within its graph where it has none.
  std::string label(NodeId id) const;
  /// "main", "main/loop_body", "domain::function": the path of a graph.
  std::string graph_path(GraphId id) const;
  /// Version of a domain in force in a graph; 0 when it is not imported.
  std::int64_t opset(GraphId graph, std::string_view domain) const;
  /// The value of that name in the graph itself (not in an outer one); kAbsent when there is none.
  ValueId find_value(GraphId graph, std::string_view name) const;

  NameTable names;
  ScopedIndex value_index;                           ///< (graph, name) -> value
  std::vector<std::shared_ptr<const void>> storage;  ///< file bytes and arenas that views point into
};

/// Interns names and operators, resolves names to values and records structure faults: the one way readers make models.
/// Usage: begin_graph / add_* in file order for each graph (a subgraph may be begun any time after its owner node),
/// then finish(). Operand names are resolved in finish(): first in the node's own graph, then in the graphs around it.
class ModelBuilder {
 public:
  ModelBuilder();
  ~ModelBuilder();

  Model& model() { return model_; }
  NameId name(std::string_view text);  ///< `text` must outlive the model (file bytes or copy())

  /// A name that nothing is looked up by (a node's): its number is its own, Model::names does not find it.
  NameId label(std::string_view text);
  /// Room for `factor` times what has been added since the last begin_nodes, in one allocation an array. The factor
  /// must come from bytes in all over bytes read, never from a count that the file claims: memory then follows the
  /// bytes.
  void reserve(double factor);

  /// Arena memory that lives as long as the model.
  std::string_view copy(std::string_view text);
  template <typename T>
  std::span<const T> keep(std::vector<T> items) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(items));
    const std::span<const T> view(*owner);
    model_.storage.push_back(std::move(owner));
    return view;
  }
  Tensor* new_tensor();
  SparseTensor* new_sparse_tensor();
  TypeDecl* new_type();
  /// Small arrays without an allocation each; valid as long as the model.
  std::span<const std::int64_t> keep_ints(std::span<const std::int64_t> ints);
  std::span<const float> keep_floats(std::span<const float> floats);
  std::span<const std::string_view> keep_strings(std::span<const std::string_view> strings);
  std::span<const DimDecl> keep_dims(std::span<const DimDecl> dims);

  /// [0] is the model's own list and must be added first.
  std::uint32_t add_opset_imports(std::vector<OpsetImport> imports);
  GraphId add_graph(Graph graph);  ///< kind, names, parent, owner, attribute, opsets, position filled in
  /// Graph 'id' receives nodes from now on; its nodes must be added without those of another graph in between.
  void begin_nodes(GraphId id);
  ValueId add_input(GraphId graph, NameId name, const TypeDecl* type, Position position);
  ValueId add_initializer(GraphId graph, NameId name, const Tensor* tensor, const SparseTensor* sparse);
  void add_output(GraphId graph, NameId name, const TypeDecl* type);
  void add_value_info(GraphId graph, NameId name, const TypeDecl* type);
  /// Attributes are moved from; operands and results are names, kEmpty for an absent one.
  NodeId add_node(GraphId graph, NameId domain, NameId op, NameId overload, NameId name,
                  std::span<const NameId> operands, std::span<const NameId> results, std::vector<Attribute>& attributes,
                  Position position, std::uint32_t byte_length);
  void fault(StructureFault fault);  ///< dropped after 1,000 of one graph
  /// Another fault of the graph is still kept: else its message need not be made.
  bool keeps_faults(GraphId graph) const;

  /// Resolves operands, outputs and functions and hands the model over. Functions may be added in any order before.
  Model finish();

 private:
  struct Impl;
  Model model_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorlint
