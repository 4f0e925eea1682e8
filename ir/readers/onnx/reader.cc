#include "ir/readers/onnx/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <utility>

#include "ir/readers/onnx/file_bytes.h"
#include "ir/readers/onnx/tensor_check.h"
#include "ir/readers/onnx/wire.h"

namespace tensorlint {
namespace onnx {
namespace {

constexpr int kMaxGraphDepth = 64;
constexpr int kMaxTypeDepth = 16;
constexpr std::size_t kMaxOpsetImports = 1024;
constexpr std::int64_t kOldestIrVersion = 3;
constexpr std::size_t kWeights = std::size_t{64} << 10;            // a tensor of at least so many bytes is weights
constexpr std::ptrdiff_t kReleasedAtOnce = std::ptrdiff_t{8} << 20;  // so few calls cost nothing, so little memory counts

// Memory that a model may take: kFreeBytes + kBytesPerByte for each byte that is not weights. The smallest honest node
// (16 bytes: an operator of three letters, two operands and a result of one letter) costs 35 bytes a byte while its
// arrays grow.
constexpr std::uint64_t kFreeBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kBytesPerByte = 36;

// What an entry costs: its size, tripled where it stands in an array that doubles when it grows.
constexpr std::uint64_t kNodeCost = 3 * sizeof(Node);
constexpr std::uint64_t kOperandCost = 3 * (sizeof(ValueId) + sizeof(NameId));
constexpr std::uint64_t kValueCost = 3 * sizeof(Value) + 3 * sizeof(ValueId) + 64;  // 64: its slot in the index
constexpr std::uint64_t kNameCost = 3 * sizeof(std::string_view) + 32;
constexpr std::uint64_t kAttributeCost = 2 * sizeof(Attribute);
constexpr std::uint64_t kTensorCost = sizeof(Tensor) + 16;
constexpr std::uint64_t kGraphCost = 3 * sizeof(Graph) + 128;
constexpr std::uint64_t kFaultCost = 3 * sizeof(StructureFault) + 160;
constexpr std::uint64_t kDeclarationCost = 3 * 24;
constexpr std::uint64_t kDimCost = 2 * sizeof(DimDecl);
constexpr std::uint64_t kStringCost = 2 * sizeof(std::string_view);

/// A piece of the file that holds metadata_props of a value: found again only when someone asks.
struct MetadataSpan {
  std::uint32_t value = 0;
  std::uint32_t field = 0;  ///< number of metadata_props in that message
  std::string_view message;
};

MetadataEntry metadata_entry(Cursor cursor) {
  MetadataEntry entry;
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1: entry.key = cursor.view("StringStringEntryProto.key"); break;
      case 2: entry.value = cursor.view("StringStringEntryProto.value"); break;
      default: cursor.skip(); break;
    }
  }
  return entry;
}

/// Walks a message again for its metadata_props. The message was walked when the model was read, so nothing throws.
std::vector<MetadataEntry> metadata_of(std::string_view message, std::uint32_t field) {
  std::vector<MetadataEntry> entries;
  for (Cursor cursor(message, message.data()); cursor.next();) {
    if (cursor.field() == field) {
      entries.push_back(metadata_entry(cursor.inside(cursor.view("metadata_props"))));
    } else {
      cursor.skip();
    }
  }
  return entries;
}

std::vector<std::int64_t> integers_of(Cursor& fields, std::vector<std::int64_t> known, std::string_view name) {
  if (fields.type() == WireType::length_delimited) {
    for (Cursor packed = fields.inside(fields.view(name)); !packed.at_end();) known.push_back(packed.packed_integer());
  } else {
    known.push_back(fields.integer(name));
  }
  return known;
}

ShardingSpec::Shards shards_of(Cursor fields) {
  ShardingSpec::Shards shards;
  while (fields.next()) {
    switch (fields.field()) {
      case 1: shards.axis = fields.integer("ShardedDimProto.axis"); break;
      case 2: {
        std::int64_t count = 0;
        for (Cursor part = fields.inside(fields.view("ShardedDimProto.simple_sharding")); part.next();) {
          if (part.field() == 3) {
            count = part.integer("SimpleShardedDimProto.num_shards");
          } else {
            part.skip();
          }
        }
        shards.counts.push_back(count);
        break;
      }
      default: fields.skip(); break;
    }
  }
  return shards;
}

ShardingSpec sharding_spec(Cursor fields) {
  ShardingSpec spec;
  while (fields.next()) {
    switch (fields.field()) {
      case 1: spec.tensor = fields.view("ShardingSpecProto.tensor_name"); break;
      case 2: spec.devices = integers_of(fields, std::move(spec.devices), "ShardingSpecProto.device"); break;
      case 3: {
        auto& [key, values] = spec.groups.emplace_back();
        for (Cursor entry = fields.inside(fields.view("ShardingSpecProto.index_to_device_group_map")); entry.next();) {
          if (entry.field() == 1) {
            key = entry.integer("IntIntListEntryProto.key");
          } else if (entry.field() == 2) {
            values = integers_of(entry, std::move(values), "IntIntListEntryProto.value");
          } else {
            entry.skip();
          }
        }
        break;
      }
      case 4: spec.axes.push_back(shards_of(fields.inside(fields.view("ShardingSpecProto.sharded_dim")))); break;
      default: fields.skip(); break;
    }
  }
  return spec;
}

NodeDeviceConfiguration node_device_configuration(Cursor fields) {
  NodeDeviceConfiguration configuration;
  try {
    while (fields.next()) {
      switch (fields.field()) {
        case 1: configuration.configuration = fields.view("NodeDeviceConfigurationProto.configuration_id"); break;
        case 2: configuration.specs.push_back(sharding_spec(fields.inside(fields.view("NodeDeviceConfigurationProto.sharding_spec")))); break;
        default: fields.skip(); break;
      }
    }
  } catch (const WireFault&) {
    configuration = {};
    configuration.malformed = true;
  }
  return configuration;
}

DeviceConfiguration device_configuration(Cursor fields) {
  DeviceConfiguration configuration;
  while (fields.next()) {
    switch (fields.field()) {
      case 1: configuration.name = fields.view("DeviceConfigurationProto.name"); break;
      case 2: configuration.device_count = fields.integer32("DeviceConfigurationProto.num_devices"); break;
      case 3: configuration.devices.push_back(fields.view("DeviceConfigurationProto.device")); break;
      default: fields.skip(); break;
    }
  }
  return configuration;
}

constexpr std::uint32_t kNodeMetadata = 9, kNodeDeviceConfigurations = 10, kValueInfoMetadata = 4, kTensorMetadata = 16;

/// The keys of all metadata_props of nodes, values and tensors. Exporters write the same few at every node.
class MetadataKeys {
 public:
  void note(std::string_view key) {
    if (are_more_ || contains(key)) return;
    if (count_ == keys_.size()) {
      are_more_ = true;
    } else {
      keys_[count_++] = key;
    }
  }
  bool contains(std::string_view key) const { return std::find(keys_.begin(), keys_.begin() + count_, key) != keys_.begin() + count_; }
  bool are_more() const { return are_more_; }

 private:
  std::array<std::string_view, 16> keys_{};
  std::uint8_t count_ = 0;
  bool are_more_ = false;
};

class FileProvenance final : public Provenance {
 public:
  FileProvenance(std::string_view file, std::vector<MetadataSpan> spans, MetadataKeys keys) : file_(file), spans_(std::move(spans)), keys_(keys) {}

  std::vector<MetadataEntry> node_metadata(const Node& node) const override {
    return metadata_of(file_.substr(node.position.offset, node.byte_length), kNodeMetadata);
  }
  std::vector<MetadataEntry> value_metadata(ValueId value) const override {
    return metadata_at(value, [](std::uint32_t) { return true; });
  }
  std::vector<MetadataEntry> initializer_metadata(ValueId value) const override {
    return metadata_at(value, [](std::uint32_t field) { return field == kTensorMetadata; });
  }
  std::string other_fields(Position message, std::uint64_t byte_length, std::uint64_t held) const override {
    std::string bytes;
    const std::string_view fields = file_.substr(message.offset, byte_length);
    for (Cursor cursor(fields, file_.data()); cursor.next();) {
      const char* const begin = cursor.field_start();
      const bool is_held = cursor.field() < 64 && ((held >> cursor.field()) & 1U) != 0;
      cursor.skip();
      if (!is_held) bytes.append(begin, cursor.position());
    }
    return bytes;
  }
  std::vector<NodeDeviceConfiguration> device_configurations(const Node& node) const override {
    std::vector<NodeDeviceConfiguration> found;
    const std::string_view message = file_.substr(node.position.offset, node.byte_length);
    for (Cursor cursor(message, message.data()); cursor.next();) {
      if (cursor.field() == kNodeDeviceConfigurations) {
        found.push_back(node_device_configuration(cursor.inside(cursor.view("device_configurations"))));
      } else {
        cursor.skip();
      }
    }
    return found;
  }
  bool mentions(std::string_view key) const override {
    if (!keys_.are_more()) return keys_.contains(key);
    // A larger file is mapped and mostly weights: looking at all of it would read them from the disk.
    return file_.size() > kSearched || ::memmem(file_.data(), file_.size(), key.data(), key.size()) != nullptr;
  }

 private:
  template <typename Wanted>
  std::vector<MetadataEntry> metadata_at(ValueId value, Wanted wanted) const {
    std::vector<MetadataEntry> entries;
    const auto number = static_cast<std::uint32_t>(value);
    auto at = std::lower_bound(spans_.begin(), spans_.end(), number, [](const MetadataSpan& span, std::uint32_t sought) { return span.value < sought; });
    for (; at != spans_.end() && at->value == number; ++at) {
      if (!wanted(at->field)) continue;
      const std::vector<MetadataEntry> more = metadata_of(at->message, at->field);
      entries.insert(entries.end(), more.begin(), more.end());
    }
    return entries;
  }

  static constexpr std::size_t kSearched = std::size_t{64} << 20;
  std::string_view file_;
  std::vector<MetadataSpan> spans_;  ///< sorted by value, then by place in the file
  MetadataKeys keys_;
};

/// Position in AttributeProto's value fields: field number -> the kind it makes; 0 for other fields.
constexpr AttributeKind kind_of_field(std::uint32_t field) {
  constexpr std::array<AttributeKind, 24> kKinds = [] {
    std::array<AttributeKind, 24> kinds{};
    kinds[2] = AttributeKind::kFloat;
    kinds[3] = AttributeKind::kInt;
    kinds[4] = AttributeKind::kString;
    kinds[5] = AttributeKind::kTensor;
    kinds[6] = AttributeKind::kGraph;
    kinds[7] = AttributeKind::kFloats;
    kinds[8] = AttributeKind::kInts;
    kinds[9] = AttributeKind::kStrings;
    kinds[10] = AttributeKind::kTensors;
    kinds[11] = AttributeKind::kGraphs;
    kinds[14] = AttributeKind::kTypeProto;
    kinds[15] = AttributeKind::kTypeProtos;
    kinds[22] = AttributeKind::kSparseTensor;
    kinds[23] = AttributeKind::kSparseTensors;
    return kinds;
  }();
  return field < kKinds.size() ? kKinds[field] : AttributeKind::kUndefined;
}

constexpr unsigned bit(AttributeKind kind) { return 1U << static_cast<unsigned>(kind); }

constexpr bool is_message(AttributeKind kind) {
  return kind == AttributeKind::kTensor || kind == AttributeKind::kGraph || kind == AttributeKind::kSparseTensor || kind == AttributeKind::kTypeProto;
}

constexpr bool is_list(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kFloats:
    case AttributeKind::kInts:
    case AttributeKind::kStrings:
    case AttributeKind::kTensors:
    case AttributeKind::kGraphs:
    case AttributeKind::kSparseTensors:
    case AttributeKind::kTypeProtos: return true;
    default: return false;
  }
}

class Reader {
 public:
  /// `mapping`: what `file` is the bytes of, null for bytes in memory.
  Reader(std::string_view file, std::string path, const FileBytes* mapping) : file_(file), start_(file.data()), released_(start_), mapping_(mapping) {
    model().path = std::move(path);
  }

  /// Throws WireFault.
  Model read() {
    read_model_fields();
    walk_graphs();
    Model model = builder_.finish();
    finish_metadata(model);
    return model;
  }

 private:
  /// A graph or function whose bytes are still to be walked.
  struct Pending {
    std::string_view bytes;
    GraphId id;
    int depth;
    bool in_function;  ///< references to a function's attributes mean something here
    bool is_function;
  };

  /// Where an attribute stands: decides what its subgraphs belong to.
  struct Holder {
    GraphId graph;
    NodeId node;  ///< kNone: a function's default
    int depth;
    bool in_function;
  };

  Model& model() { return builder_.model(); }
  Cursor cursor(std::string_view message) const { return {message, start_}; }
  Position at(std::string_view message) const { return {.offset = static_cast<std::uint64_t>(message.data() - start_)}; }
  static std::uint32_t length_of(std::string_view message) { return static_cast<std::uint32_t>(message.size()); }  // Cursor: below 2 GiB

  /// Takes account of memory and of the bytes that pay for it; weights pay nothing.
  void charge(std::uint64_t memory) { charged_ += memory; }
  void pay(std::uint64_t bytes) { paid_ += bytes; }
  void check_budget(const char* place) {
    const std::uint64_t taken = charged_ + kNameCost * model().names.size();
    if (taken > kFreeBytes + kBytesPerByte * paid_) [[unlikely]]
      throw WireFault{"too many tiny messages: the model would take more than 36 bytes of memory for each of its bytes", static_cast<std::uint64_t>(place - start_)};
  }

  /// Called at the end of weights: lets go of the pages since the last call, or since the walk began at `released_`.
  void weights_end(const char* place) {
    if (mapping_ == nullptr || place - released_ < kReleasedAtOnce) return;
    mapping_->release({released_, static_cast<std::size_t>(place - released_)});
    released_ = place;
  }

  void fault(StructureFault fault) {
    charge(kFaultCost + fault.message.size());
    builder_.fault(std::move(fault));
  }

  void read_model_fields();
  void opset_import(std::string_view message, GraphId graph, std::vector<OpsetImport>& imports);
  void walk_graphs();
  void graph_fields(const Pending& pending);
  void function_fields(const Pending& pending);
  void initializers(const Pending& pending, const char* first, const char* last);
  void nodes(const Pending& pending, std::uint32_t field, const char* first, const char* last);
  void node(std::string_view message, const Pending& pending);
  void attribute(std::string_view message, const Holder& holder, std::vector<Attribute>& out);
  GraphId queue_subgraph(std::string_view message, const Holder& holder);
  void check_kind(Attribute& self, std::int64_t kind_code, unsigned present, AttributeKind twice, const Holder& holder, std::string_view message);
  struct ValueInfo {
    NameId name = NameId::kEmpty;
    const TypeDecl* type = nullptr;
    bool has_metadata = false;
  };
  ValueInfo value_info(std::string_view message, GraphId graph);
  const TypeDecl* type(std::string_view message, GraphId graph, NodeId node);
  std::span<const DimDecl> shape(std::string_view message);
  const Tensor* tensor(std::string_view message, GraphId graph, NodeId node, bool* has_metadata = nullptr);
  const SparseTensor* sparse_tensor(std::string_view message, GraphId graph, NodeId node, bool* has_metadata = nullptr);
  void integers(Cursor& cursor, std::string_view name, std::vector<std::int64_t>& out);
  void note_metadata(GraphId graph, NameId name, std::uint32_t field, std::string_view message);
  void finish_metadata(Model& model);
  void skip_metadata(Cursor& cursor, std::string_view name) { metadata_keys_.note(metadata_entry(cursor.inside(cursor.view(name))).key); }

  std::string_view file_;
  const char* start_;
  const char* released_;
  const FileBytes* mapping_;
  ModelBuilder builder_;
  std::deque<Pending> pending_;
  std::uint64_t charged_ = 0, paid_ = 0;

  struct NamedMetadata {
    GraphId graph;
    NameId name;
    std::uint32_t field;
    std::string_view message;
  };
  std::vector<NamedMetadata> value_metadata_;
  MetadataKeys metadata_keys_;

  // Scratch, reused from node to node: no allocation of their own for most nodes.
  std::vector<NameId> operands_, results_;
  std::vector<Attribute> attributes_;
  std::vector<std::int64_t> ints_, tensor_dims_;
  std::vector<float> floats_;
  std::vector<std::string_view> strings_, tensor_strings_;
  std::vector<DimDecl> dims_;
};

void Reader::read_model_fields() {
  builder_.add_opset_imports({});
  std::vector<OpsetImport> imports;
  std::string_view graph;
  bool has_version = false, has_graph = false;
  std::vector<std::string_view> functions;
  Cursor fields = cursor(file_);
  try {
    while (fields.next()) {
      switch (fields.field()) {
        case 1:
          model().ir_version = fields.integer("ModelProto.ir_version");
          has_version = true;
          break;
        case 2: model().producer_name = fields.view("ModelProto.producer_name"); break;
        case 3: model().producer_version = fields.view("ModelProto.producer_version"); break;
        case 7:
          if (has_graph) fields.fail("a second `ModelProto.graph`");
          graph = fields.view("ModelProto.graph");
          has_graph = true;
          break;
        case 8:
          opset_import(fields.view("ModelProto.opset_import"), GraphId::kMain, imports);
          break;
        case 14:
          model().metadata.push_back(metadata_entry(fields.inside(fields.view("ModelProto.metadata_props"))));
          charge(3 * sizeof(MetadataEntry));
          pay(static_cast<std::uint64_t>(fields.position() - fields.field_start()));
          check_budget(fields.field_start());
          break;
        case 26:
          model().device_configurations.push_back(device_configuration(fields.inside(fields.view("ModelProto.configuration"))));
          charge(sizeof(DeviceConfiguration) * 3 + sizeof(std::string_view) * 3 * model().device_configurations.back().devices.size());
          pay(static_cast<std::uint64_t>(fields.position() - fields.field_start()));
          check_budget(fields.field_start());
          break;
        case 25:
          functions.push_back(fields.view("ModelProto.functions"));
          charge(3 * sizeof(std::string_view));
          pay(static_cast<std::uint64_t>(fields.position() - fields.field_start()));
          check_budget(fields.field_start());
          paid_ -= functions.back().size();
          break;
        default: fields.skip(); break;
      }
    }
  } catch (WireFault& fault) {
    // A file that never looked like a model deserves that said first.
    if (!has_graph && (!has_version || model().ir_version < kOldestIrVersion)) fault.message = "not an ONNX model: " + fault.message;
    throw;
  }
  if (!has_graph) throw WireFault{"not an ONNX model: there is no graph in it", 0};
  if (!has_version) throw WireFault{"the model has no ir_version", 0};
  if (model().ir_version < kOldestIrVersion)
    throw WireFault{fmt::format("IR version {}: only 3 and later are understood", model().ir_version), 0};

  model().opset_imports[0] = std::move(imports);

  pending_.push_back({graph, builder_.add_graph({.kind = GraphKind::kMain, .position = at(graph), .byte_length = length_of(graph)}), 1, false, false});
  for (const std::string_view function : functions) {
    charge(kGraphCost);
    pay(function.size());
    check_budget(function.data());
    paid_ -= function.size();
    pending_.push_back({function, builder_.add_graph({.kind = GraphKind::kFunction, .position = at(function), .byte_length = length_of(function)}), 1, true, true});
  }
}

void Reader::opset_import(std::string_view message, GraphId graph, std::vector<OpsetImport>& imports) {
  if (imports.size() == kMaxOpsetImports) throw WireFault{"more than 1,024 opset imports", at(message).offset};
  OpsetImport import;
  for (Cursor fields = cursor(message); fields.next();) {
    switch (fields.field()) {
      case 1: {
        const std::string_view domain = fields.view("OperatorSetIdProto.domain");
        import.domain = domain == "ai.onnx" ? NameId::kEmpty : builder_.name(domain);
        break;
      }
      case 2: import.version = fields.integer("OperatorSetIdProto.version"); break;
      default: fields.skip(); break;
    }
  }
  if (std::any_of(imports.begin(), imports.end(), [&](const OpsetImport& known) { return known.domain == import.domain; }))
    fault({.kind = StructureFault::Kind::kDuplicateOpsetImport, .graph = graph,
           .message = fmt::format("domain `{}` is imported twice", import.domain == NameId::kEmpty ? "ai.onnx" : model().text(import.domain)),
           .position = at(message)});
  imports.push_back(import);
}

void Reader::walk_graphs() {
  while (!pending_.empty()) {
    const Pending next = pending_.front();
    pending_.pop_front();
    if (next.is_function) {
      function_fields(next);
    } else {
      graph_fields(next);
    }
  }
}

// Fields come in any order, by custom nodes first and inputs last. Values are defined in the order inputs, initializers,
// nodes (an initializer may give an input's default; a node that reuses a name is the one at fault), so the fields are
// passed three times: twice over headers, once into the nodes.
void Reader::graph_fields(const Pending& pending) {
  const char* first_initializer = nullptr;
  const char* last_initializer = nullptr;
  const char* first_node = nullptr;
  const char* last_node = nullptr;
  const auto self = [&]() -> Graph& { return model().graphs[static_cast<std::size_t>(pending.id)]; };
  Cursor fields = cursor(pending.bytes);
  while (fields.next()) {
    switch (fields.field()) {
      case 1:
        fields.view("GraphProto.node");
        if (first_node == nullptr) first_node = fields.field_start();
        last_node = fields.position();
        continue;
      case 5:
      case 15:
        if (fields.view("GraphProto.initializer").size() >= kWeights) weights_end(fields.position());
        if (first_initializer == nullptr) first_initializer = fields.field_start();
        last_initializer = fields.position();
        continue;
      case 2: self().name = builder_.name(fields.view("GraphProto.name")); break;
      case 11: {
        const std::string_view message = fields.view("GraphProto.input");
        const ValueInfo info = value_info(message, pending.id);
        builder_.add_input(pending.id, info.name, info.type, at(message));
        charge(kValueCost);
        break;
      }
      case 12: {
        const ValueInfo info = value_info(fields.view("GraphProto.output"), pending.id);
        builder_.add_output(pending.id, info.name, info.type);
        charge(kDeclarationCost);
        break;
      }
      case 13: {
        const ValueInfo info = value_info(fields.view("GraphProto.value_info"), pending.id);
        builder_.add_value_info(pending.id, info.name, info.type);
        charge(kDeclarationCost);
        break;
      }
      default: fields.skip(); continue;
    }
    pay(static_cast<std::uint64_t>(fields.position() - fields.field_start()));
    check_budget(fields.field_start());
  }
  initializers(pending, first_initializer, last_initializer);
  nodes(pending, 1, first_node, last_node);
}

void Reader::function_fields(const Pending& pending) {
  const char* first_node = nullptr;
  const char* last_node = nullptr;
  const auto self = [&]() -> Graph& { return model().graphs[static_cast<std::size_t>(pending.id)]; };
  std::vector<OpsetImport> imports;
  std::vector<Attribute> defaults;
  Cursor fields = cursor(pending.bytes);
  while (fields.next()) {
    switch (fields.field()) {
      case 1: self().name = builder_.name(fields.view("FunctionProto.name")); break;
      case 4: {
        const std::string_view name = fields.view("FunctionProto.input");
        builder_.add_input(pending.id, builder_.name(name), nullptr, at(name));
        charge(kValueCost);
        break;
      }
      case 5:
        builder_.add_output(pending.id, builder_.name(fields.view("FunctionProto.output")), nullptr);
        charge(kDeclarationCost);
        break;
      case 6:
        self().attribute_names.push_back(fields.view("FunctionProto.attribute"));
        charge(3 * sizeof(std::string_view));
        break;
      case 7:
        fields.view("FunctionProto.node");
        if (first_node == nullptr) first_node = fields.field_start();
        last_node = fields.position();
        continue;
      case 9:
        opset_import(fields.view("FunctionProto.opset_import"), pending.id, imports);
        charge(3 * sizeof(OpsetImport));
        break;
      case 10: self().domain = builder_.name(fields.view("FunctionProto.domain")); break;
      case 11: {
        const std::string_view message = fields.view("FunctionProto.attribute_proto");
        pay(message.size());
        attribute(message, {pending.id, NodeId::kNone, pending.depth, true}, defaults);
        paid_ -= message.size();
        break;
      }
      case 12: {
        const ValueInfo info = value_info(fields.view("FunctionProto.value_info"), pending.id);
        builder_.add_value_info(pending.id, info.name, info.type);
        charge(kDeclarationCost);
        break;
      }
      case 13: self().overload = builder_.name(fields.view("FunctionProto.overload")); break;
      default: fields.skip(); continue;
    }
    pay(static_cast<std::uint64_t>(fields.position() - fields.field_start()));
    check_budget(fields.field_start());
  }
  self().attribute_defaults = std::move(defaults);
  if (model().text(self().domain) == "ai.onnx") self().domain = NameId::kEmpty;
  // A function without imports of its own binds to the model's.
  if (!imports.empty()) {
    const std::uint32_t opsets = builder_.add_opset_imports(std::move(imports));
    self().opsets = opsets;
  }
  nodes(pending, 7, first_node, last_node);
}

void Reader::initializers(const Pending& pending, const char* first, const char* last) {
  if (first == nullptr) return;
  released_ = first;
  for (Cursor fields = cursor({first, static_cast<std::size_t>(last - first)}); fields.next();) {
    if (fields.field() != 5 && fields.field() != 15) {
      fields.skip();
      continue;
    }
    const std::string_view message = fields.view("GraphProto.initializer");
    pay(static_cast<std::uint64_t>(fields.position() - fields.field_start()));
    bool has_metadata = false;
    const Tensor* named = nullptr;
    if (fields.field() == 5) {
      named = tensor(message, pending.id, NodeId::kNone, &has_metadata);
      builder_.add_initializer(pending.id, named->name, named, nullptr);
      if (has_metadata) note_metadata(pending.id, named->name, kTensorMetadata, message);
    } else {
      const SparseTensor* const sparse = sparse_tensor(message, pending.id, NodeId::kNone);
      named = sparse->values;
      builder_.add_initializer(pending.id, named != nullptr ? named->name : NameId::kEmpty, nullptr, sparse);
    }
    charge(kValueCost);
    check_budget(message.data());
  }
}

void Reader::nodes(const Pending& pending, std::uint32_t field, const char* first, const char* last) {
  builder_.begin_nodes(pending.id);
  if (first == nullptr) return;
  // A sixteenth of a large graph tells how much memory the rest will want: growing by doubling would take it twice.
  constexpr std::ptrdiff_t kLarge = 1 << 15;
  const char* const sampled = pending.id == GraphId::kMain && last - first > kLarge ? first + (last - first) / 16 : nullptr;
  bool is_sampled = sampled == nullptr;
  for (Cursor fields = cursor({first, static_cast<std::size_t>(last - first)}); fields.next();) {
    if (!is_sampled && fields.field_start() >= sampled) [[unlikely]] {
      is_sampled = true;
      builder_.reserve(1.03 * static_cast<double>(last - first) / static_cast<double>(fields.field_start() - first));
    }
    if (fields.field() == field) {
      node(fields.view("GraphProto.node"), pending);
    } else {
      fields.skip();
    }
  }
}

void Reader::node(std::string_view message, const Pending& pending) {
  operands_.clear();
  results_.clear();
  attributes_.clear();
  pay(message.size() + 2);  // 2: the least that its header takes
  const Holder holder{pending.id, static_cast<NodeId>(model().nodes.size()), pending.depth, pending.in_function};
  NameId name = NameId::kEmpty, op = NameId::kEmpty, domain = NameId::kEmpty, overload = NameId::kEmpty;
  for (Cursor fields = cursor(message); fields.next();) {
    switch (fields.field()) {
      case 1: operands_.push_back(builder_.name(fields.view("NodeProto.input"))); break;
      case 2: results_.push_back(builder_.name(fields.view("NodeProto.output"))); break;
      case 3: name = builder_.label(fields.view("NodeProto.name")); break;
      case 4: op = builder_.name(fields.view("NodeProto.op_type")); break;
      case 5: attribute(fields.view("NodeProto.attribute"), holder, attributes_); break;
      case 7: domain = builder_.name(fields.view("NodeProto.domain")); break;
      case 8: overload = builder_.name(fields.view("NodeProto.overload")); break;
      case 9: skip_metadata(fields, "NodeProto.metadata_props"); break;
      case kNodeDeviceConfigurations:
        fields.view("NodeProto.device_configurations");
        model().has_node_device_configurations = true;
        break;
      default: fields.skip(); break;
    }
  }
  charge(kNodeCost + kOperandCost * operands_.size() + kValueCost * results_.size());
  check_budget(message.data());
  builder_.add_node(pending.id, domain, op, overload, name, operands_, results_, attributes_, at(message), length_of(message));
}

GraphId Reader::queue_subgraph(std::string_view message, const Holder& holder) {
  if (holder.depth >= kMaxGraphDepth) throw WireFault{fmt::format("graphs nested deeper than {}", kMaxGraphDepth), static_cast<std::uint64_t>(message.data() - start_)};
  charge(kGraphCost);
  check_budget(message.data());
  paid_ -= message.size();  // pays when it is walked itself
  const std::uint32_t opsets = model().graph(holder.graph).opsets;
  const GraphId id = builder_.add_graph(
      {.kind = GraphKind::kSubgraph, .parent = holder.graph, .owner = holder.node, .opsets = opsets, .position = at(message), .byte_length = length_of(message)});
  pending_.push_back({message, id, holder.depth + 1, holder.in_function, false});
  return id;
}

void Reader::integers(Cursor& cursor, std::string_view name, std::vector<std::int64_t>& out) {
  if (cursor.type() != WireType::length_delimited) {
    out.push_back(cursor.integer(name));
    return;
  }
  Cursor packed = cursor.inside(cursor.view(name));
  while (!packed.at_end()) out.push_back(packed.packed_integer());
}

void Reader::attribute(std::string_view message, const Holder& holder, std::vector<Attribute>& out) {
  charge(kAttributeCost);
  check_budget(message.data());
  Attribute self;
  std::int64_t kind_code = 0;
  unsigned present = 0;
  AttributeKind twice = AttributeKind::kUndefined;
  ints_.clear();
  floats_.clear();
  strings_.clear();
  std::vector<const Tensor*> tensors;
  std::vector<GraphId> graphs;
  std::vector<const TypeDecl*> types;
  Cursor fields = cursor(message);
  while (fields.next()) {
    const std::uint32_t field = fields.field();
    if (const AttributeKind kind = kind_of_field(field); kind != AttributeKind::kUndefined) {
      if (is_message(kind) && (present & bit(kind)) != 0) twice = kind;
      present |= bit(kind);
    }
    switch (field) {
      case 1: self.name = fields.view("AttributeProto.name"); break;
      case 2: self.f = fields.number("AttributeProto.f"); break;
      case 3: self.i = fields.integer("AttributeProto.i"); break;
      case 4: self.s = fields.view("AttributeProto.s"); break;
      case 5: self.tensor = tensor(fields.view("AttributeProto.t"), holder.graph, holder.node); break;
      case 6: self.graph = queue_subgraph(fields.view("AttributeProto.g"), holder); break;
      case 7:
        if (fields.type() == WireType::length_delimited) {
          Cursor packed = fields.inside(fields.view("AttributeProto.floats"));
          while (!packed.at_end()) floats_.push_back(packed.packed_number());
        } else {
          floats_.push_back(fields.number("AttributeProto.floats"));
        }
        break;
      case 8: integers(fields, "AttributeProto.ints", ints_); break;
      case 9:
        strings_.push_back(fields.view("AttributeProto.strings"));
        break;
      case 10: tensors.push_back(tensor(fields.view("AttributeProto.tensors"), holder.graph, holder.node)); break;
      case 11: graphs.push_back(queue_subgraph(fields.view("AttributeProto.graphs"), holder)); break;
      case 14: self.type = type(fields.view("AttributeProto.tp"), holder.graph, holder.node); break;
      case 15: types.push_back(type(fields.view("AttributeProto.type_protos"), holder.graph, holder.node)); break;
      case 20: kind_code = fields.integer32("AttributeProto.type"); break;
      case 21: self.reference = fields.view("AttributeProto.ref_attr_name"); break;
      case 22: self.sparse = sparse_tensor(fields.view("AttributeProto.sparse_tensor"), holder.graph, holder.node); break;
      default: fields.skip(); break;
    }
    check_budget(fields.field_start());
  }
  charge(8 * ints_.size() + 4 * floats_.size() + kStringCost * strings_.size() + 16 * (tensors.size() + types.size() + graphs.size()));
  self.ints = builder_.keep_ints(ints_);
  self.floats = builder_.keep_floats(floats_);
  self.strings = builder_.keep_strings(strings_);
  if (self.graph != GraphId::kNone) model().graphs[static_cast<std::size_t>(self.graph)].attribute = self.name;
  for (const GraphId graph : graphs) model().graphs[static_cast<std::size_t>(graph)].attribute = self.name;
  if (!tensors.empty()) self.tensors = builder_.keep(std::move(tensors));
  if (!graphs.empty()) self.graphs = builder_.keep(std::move(graphs));
  if (!types.empty()) self.types = builder_.keep(std::move(types));
  check_kind(self, kind_code, present, twice, holder, message);
  out.push_back(self);
}

void Reader::check_kind(Attribute& self, std::int64_t kind_code, unsigned present, AttributeKind twice, const Holder& holder, std::string_view message) {
  const auto malformed = [&]<typename... Args>(fmt::format_string<Args...> text, Args&&... args) {
    if (!builder_.keeps_faults(holder.graph)) return;
    fault({.kind = StructureFault::Kind::kMalformedAttribute, .graph = holder.graph, .node = holder.node,
           .message = fmt::format(text, std::forward<Args>(args)...), .position = at(message)});
  };
  if (self.name.empty()) malformed("an attribute has no name");
  constexpr std::int64_t kLastKind = static_cast<std::int64_t>(AttributeKind::kTypeProtos);
  if (kind_code < 0 || kind_code > kLastKind) {
    malformed("attribute `{}` has the unknown kind {}", self.name, kind_code);
    return;
  }
  self.kind = static_cast<AttributeKind>(kind_code);
  if (twice != AttributeKind::kUndefined) malformed("attribute `{}` gives its {} twice", self.name, to_text(twice));
  if (!self.reference.empty()) {
    if (!holder.in_function) malformed("attribute `{}` refers to attribute `{}` of a function, outside of any", self.name, self.reference);
    if (present != 0) malformed("attribute `{}` has a value and refers to `{}`", self.name, self.reference);
    return;
  }
  if (self.kind == AttributeKind::kUndefined) {
    // Writers of the first IR versions leave the kind out: the only value tells.
    if (std::popcount(present) == 1) {
      self.kind = static_cast<AttributeKind>(std::countr_zero(present));
    } else {
      malformed("attribute `{}` has no kind and {} values", self.name, std::popcount(present));
    }
    return;
  }
  const unsigned others = present & ~bit(self.kind);
  if (others != 0) {
    malformed("attribute `{}` is declared {} and has a value of kind {}", self.name, to_text(self.kind),
                          to_text(static_cast<AttributeKind>(std::countr_zero(others))));
  } else if ((present & bit(self.kind)) == 0 && !is_list(self.kind) && is_message(self.kind)) {
    // A scalar that is left out is 0 or empty: what writers of proto3 do.
    malformed("attribute `{}` is declared {} and has no value", self.name, to_text(self.kind));
  }
}

Reader::ValueInfo Reader::value_info(std::string_view message, GraphId graph) {
  ValueInfo info;
  for (Cursor fields = cursor(message); fields.next();) {
    switch (fields.field()) {
      case 1: info.name = builder_.name(fields.view("ValueInfoProto.name")); break;
      case 2: info.type = type(fields.view("ValueInfoProto.type"), graph, NodeId::kNone); break;
      case 4:
        skip_metadata(fields, "ValueInfoProto.metadata_props");
        info.has_metadata = true;
        break;
      default: fields.skip(); break;
    }
  }
  if (info.has_metadata) note_metadata(graph, info.name, kValueInfoMetadata, message);
  return info;
}

std::span<const DimDecl> Reader::shape(std::string_view message) {
  dims_.clear();
  for (Cursor fields = cursor(message); fields.next();) {
    if (fields.field() != 1) {
      fields.skip();
      continue;
    }
    DimDecl dim;
    for (Cursor inner = fields.inside(fields.view("TensorShapeProto.dim")); inner.next();) {
      switch (inner.field()) {
        case 1:  // of a oneof the last one given counts
          dim = {.extent = inner.integer("Dimension.dim_value"), .has_extent = true};
          break;
        case 2: dim = {.name = builder_.name(inner.view("Dimension.dim_param"))}; break;
        default: inner.skip(); break;
      }
    }
    dims_.push_back(dim);
  }
  charge(kDimCost * dims_.size());
  return builder_.keep_dims(dims_);
}

// A type nests by wrapping exactly one other, so following it is a loop. What is inside goes into the declaration made
// before it: the outermost is returned.
const TypeDecl* Reader::type(std::string_view message, GraphId graph, NodeId node) {
  const std::string_view whole = message;
  TypeDecl* outermost = nullptr;
  TypeDecl* holder = nullptr;
  std::string problem;
  for (int depth = 0;; ++depth) {
    if (depth == kMaxTypeDepth) throw WireFault{fmt::format("types nested deeper than {}", kMaxTypeDepth), static_cast<std::uint64_t>(message.data() - start_)};
    TypeDecl* const self = builder_.new_type();
    charge(sizeof(TypeDecl));
    if (holder != nullptr) {
      holder->element = self;
    } else {
      outermost = self;
    }
    std::string_view body;
    for (Cursor fields = cursor(message); fields.next();) {
      TypeKind kind = TypeKind::kNone;
      switch (fields.field()) {
        case 1: kind = TypeKind::kTensor; break;
        case 4: kind = TypeKind::kSequence; break;
        case 5: kind = TypeKind::kMap; break;
        case 7: kind = TypeKind::kOpaque; break;
        case 8: kind = TypeKind::kSparseTensor; break;
        case 9: kind = TypeKind::kOptional; break;
        default: fields.skip(); continue;
      }
      if (self->kind != TypeKind::kNone) problem = "a type is declared as two things at once";
      self->kind = kind;
      body = fields.view("TypeProto.value");
    }
    if (self->kind == TypeKind::kNone || self->kind == TypeKind::kOpaque) break;
    const bool is_tensor = self->kind == TypeKind::kTensor || self->kind == TypeKind::kSparseTensor;
    const std::uint32_t inner_field = self->kind == TypeKind::kMap ? 2 : 1;
    std::string_view inner;
    bool has_inner = false;
    for (Cursor fields = cursor(body); fields.next();) {
      if (is_tensor && fields.field() == 1) {
        self->element_code = fields.integer32("TypeProto.elem_type");
      } else if (is_tensor && fields.field() == 2) {
        self->dims = shape(fields.view("TypeProto.shape"));
        self->ranked = true;
      } else if (self->kind == TypeKind::kMap && fields.field() == 1) {
        self->element_code = fields.integer32("TypeProto.Map.key_type");
      } else if (!is_tensor && fields.field() == inner_field) {
        inner = fields.view("TypeProto.elem_type");
        has_inner = true;
      } else {
        fields.skip();
      }
    }
    if ((is_tensor && self->element_code != 0 && !is_known_dtype(self->element_code)) || (self->kind == TypeKind::kMap && !is_known_dtype(self->element_code)))
      problem = fmt::format("a type declares the unknown dtype code {}", self->element_code);
    for (const DimDecl& dim : self->dims)
      if (dim.has_extent && dim.extent < -1) problem = fmt::format("a type declares the negative dim {}", dim.extent);
    if (!has_inner) break;
    holder = self;
    message = inner;
  }
  if (!problem.empty())
    fault({.kind = StructureFault::Kind::kMalformedType, .graph = graph, .node = node, .message = std::move(problem), .position = at(whole)});
  return outermost;
}

const Tensor* Reader::tensor(std::string_view message, GraphId graph, NodeId node, bool* has_metadata) {
  Tensor& self = *builder_.new_tensor();
  charge(kTensorCost);
  self.position = at(message);
  self.byte_length = length_of(message);
  tensor_dims_.clear();
  tensor_strings_.clear();
  std::vector<char> pieces;  // data given in several pieces, joined as if packed
  int second_field = 0;
  bool is_segment = false;
  Cursor fields = cursor(message);
  while (fields.next()) {
    const std::uint32_t field = fields.field();
    switch (field) {
      case 1: integers(fields, "TensorProto.dims", tensor_dims_); break;
      case 2: self.dtype_code = fields.integer32("TensorProto.data_type"); break;
      case 3:
        fields.view("TensorProto.segment");
        is_segment = true;
        break;
      case 4:
      case 5:
      case 7:
      case 10:
      case 11: {
        std::string_view piece;
        bool is_packed = fields.type() == WireType::length_delimited;
        if (is_packed) {
          piece = fields.view("TensorProto.data");
          paid_ -= piece.size();
        } else {
          fields.expect(field == 4 ? WireType::fixed32 : field == 10 ? WireType::fixed64 : WireType::varint, "TensorProto.data");
          piece = fields.scalar_bytes();
        }
        if (piece.empty()) break;
        if (self.typed_field != 0 && self.typed_field != static_cast<int>(field)) {
          second_field = static_cast<int>(field);
          break;
        }
        if (self.typed_field == 0) {
          self.typed_field = static_cast<int>(field);
          if (is_packed) {
            self.typed = piece;
            break;
          }
        }
        if (pieces.empty()) pieces.assign(self.typed.begin(), self.typed.end());
        pieces.insert(pieces.end(), piece.begin(), piece.end());
        break;
      }
      case 6:
        tensor_strings_.push_back(fields.view("TensorProto.string_data"));
        charge(kStringCost);
        check_budget(fields.field_start());
        break;
      case 8: self.name = builder_.name(fields.view("TensorProto.name")); break;
      case 9:
        self.raw = fields.view("TensorProto.raw_data");
        self.has_raw = true;
        paid_ -= self.raw.size();
        if (self.raw.size() >= kWeights) weights_end(fields.position());
        break;
      case 13: {
        const MetadataEntry entry = metadata_entry(fields.inside(fields.view("TensorProto.external_data")));
        if (entry.key == "location") self.location = entry.value;
        if (entry.key == "offset") self.offset_text = entry.value;
        if (entry.key == "length") self.length_text = entry.value;
        break;
      }
      case 14: self.external = fields.integer32("TensorProto.data_location") == 1; break;
      case 16:
        skip_metadata(fields, "TensorProto.metadata_props");
        if (has_metadata != nullptr) *has_metadata = true;
        break;
      default: fields.skip(); break;
    }
  }
  if (!pieces.empty()) self.typed = builder_.copy({pieces.data(), pieces.size()});
  charge(8 * tensor_dims_.size());
  self.dims = builder_.keep_ints(tensor_dims_);
  self.strings = builder_.keep_strings(tensor_strings_);

  const std::string_view name = model().text(self.name);
  std::optional<std::string> problem;
  if (!builder_.keeps_faults(graph)) return &self;
  if (is_segment) {
    problem = fmt::format("tensor `{}` is stored in segments, which nothing supports", name);
  } else if (second_field != 0) {
    problem = fmt::format("tensor `{}` has two data fields: TensorProto fields {} and {}", name, self.typed_field, second_field);
  } else {
    problem = tensor_fault(self, name);
  }
  if (problem)
    fault({.kind = StructureFault::Kind::kMalformedTensor, .graph = graph, .node = node, .tensor = &self, .message = *std::move(problem), .position = self.position});
  return &self;
}

const SparseTensor* Reader::sparse_tensor(std::string_view message, GraphId graph, NodeId node, bool* has_metadata) {
  SparseTensor& self = *builder_.new_sparse_tensor();
  charge(sizeof(SparseTensor));
  std::vector<std::int64_t> dims;
  for (Cursor fields = cursor(message); fields.next();) {
    switch (fields.field()) {
      case 1: self.values = tensor(fields.view("SparseTensorProto.values"), graph, node, has_metadata); break;
      case 2: self.indices = tensor(fields.view("SparseTensorProto.indices"), graph, node); break;
      case 3: integers(fields, "SparseTensorProto.dims", dims); break;
      default: fields.skip(); break;
    }
  }
  charge(8 * dims.size());
  self.dims = builder_.keep_ints(dims);
  if (self.values == nullptr || self.indices == nullptr)
    fault({.kind = StructureFault::Kind::kMalformedTensor, .graph = graph, .node = node, .tensor = self.values,
           .message = fmt::format("a sparse tensor has no {}", self.values == nullptr ? "values" : "indices"), .position = at(message)});
  return &self;
}

void Reader::note_metadata(GraphId graph, NameId name, std::uint32_t field, std::string_view message) {
  value_metadata_.push_back({graph, name, field, message});
  charge(3 * (sizeof(NamedMetadata) + sizeof(MetadataSpan)));
}

void Reader::finish_metadata(Model& model) {
  std::vector<MetadataSpan> spans;
  spans.reserve(value_metadata_.size());
  for (const NamedMetadata& named : value_metadata_)
    if (const ValueId value = model.find_value(named.graph, model.text(named.name)); value != ValueId::kAbsent)
      spans.push_back({static_cast<std::uint32_t>(value), named.field, named.message});
  std::sort(spans.begin(), spans.end(), [](const MetadataSpan& a, const MetadataSpan& b) {
    return std::pair(a.value, a.message.data()) < std::pair(b.value, b.message.data());
  });
  model.provenance = std::make_unique<FileProvenance>(file_, std::move(spans), metadata_keys_);
}

/// What a file that is no model begins with, where people are likely to pass one.
std::string_view known_format(std::string_view bytes) {
  struct Magic {
    std::string_view begin;
    std::string_view name;
  };
  using namespace std::string_view_literals;
  static constexpr Magic kMagic[] = {
      {"version https://git-lfs"sv, "a Git LFS pointer, whose file was not fetched"},
      {"\x89PNG"sv, "a PNG image"},
      {"\xff\xd8\xff"sv, "a JPEG image"},
      {"PK\x03\x04"sv, "a ZIP archive (PyTorch checkpoints are such)"},
      {"\x89HDF"sv, "an HDF5 file"},
      {"GGUF"sv, "a GGUF file"},
      {"%PDF"sv, "a PDF document"},
      {"\x1f\x8b"sv, "a gzip archive"},
      {"\x7f" "ELF"sv, "an ELF binary"},
      {"\x93NUMPY"sv, "a NumPy array"},
      {"<!DOCTYPE"sv, "an HTML page"},
      {"<html"sv, "an HTML page"},
      {"#!"sv, "a script"},
  };
  for (const Magic& magic : kMagic)
    if (bytes.starts_with(magic.begin)) return magic.name;
  return {};
}

}  // namespace
}  // namespace onnx

namespace {

Result<Model> read_bytes(std::string_view bytes, std::string path, std::shared_ptr<const void> owner, const onnx::FileBytes* mapping) {
  if (bytes.empty()) return Error{fmt::format("`{}` is empty", path), {}};
  if (const std::string_view format = onnx::known_format(bytes); !format.empty())
    return Error{fmt::format("not an ONNX model: the file is {}", format), {}};
  try {
    onnx::Reader reader(bytes, std::move(path), mapping);
    Model model = reader.read();
    if (owner != nullptr) model.storage.push_back(std::move(owner));
    return model;
  } catch (onnx::WireFault& fault) {
    return Error{fmt::format("{} (at byte {})", fault.message, fault.offset), {.offset = fault.offset}};
  }
}

}  // namespace

Result<Model> read_onnx_bytes(std::string_view bytes, std::string path, std::shared_ptr<const void> owner) {
  return read_bytes(bytes, std::move(path), std::move(owner), nullptr);
}

Result<Model> read_onnx_file(const std::string& path) {
  Result<std::shared_ptr<const onnx::FileBytes>> file = onnx::FileBytes::open(path);
  if (!file) return file.error();
  Result<Model> model = read_bytes((*file)->bytes(), path, *file, file->get());
  // Bytes that moved while they were walked explain any other fault.
  if (auto changed = (*file)->check_unchanged()) return *std::move(changed);
  return model;
}

}  // namespace tensorlint
