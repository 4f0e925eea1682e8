#include "ir/readers/onnx/provenance.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "ir/constants/weight_parts.h"

namespace tensorlint::onnx {
namespace {

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

ShardingSpec::Shards shards_of(Cursor fields) {
  ShardingSpec::Shards shards;
  while (fields.next()) {
    switch (fields.field()) {
      case wire::kShardedDimAxis:
        shards.axis = fields.integer("ShardedDimProto.axis");
        break;
      case wire::kShardedDimSimple: {
        std::int64_t count = 0;
        for (Cursor part = fields.inside(fields.view("ShardedDimProto.simple_sharding")); part.next();) {
          if (part.field() == wire::kSimpleShardedDimCount) {
            count = part.integer("SimpleShardedDimProto.num_shards");
          } else {
            part.skip();
          }
        }
        shards.counts.push_back(count);
        break;
      }
      default:
        fields.skip();
        break;
    }
  }
  return shards;
}

ShardingSpec sharding_spec(Cursor fields) {
  ShardingSpec spec;
  while (fields.next()) {
    switch (fields.field()) {
      case wire::kShardingSpecTensor:
        spec.tensor = fields.view("ShardingSpecProto.tensor_name");
        break;
      case wire::kShardingSpecDevice:
        append_integers(fields, "ShardingSpecProto.device", spec.devices);
        break;
      case wire::kShardingSpecGroups: {
        auto& [key, values] = spec.groups.emplace_back();
        for (Cursor entry = fields.inside(fields.view("ShardingSpecProto.index_to_device_group_map")); entry.next();) {
          if (entry.field() == wire::kGroupKey) {
            key = entry.integer("IntIntListEntryProto.key");
          } else if (entry.field() == wire::kGroupValue) {
            append_integers(entry, "IntIntListEntryProto.value", values);
          } else {
            entry.skip();
          }
        }
        break;
      }
      case wire::kShardingSpecDims:
        spec.axes.push_back(shards_of(fields.inside(fields.view("ShardingSpecProto.sharded_dim"))));
        break;
      default:
        fields.skip();
        break;
    }
  }
  return spec;
}

NodeDeviceConfiguration node_device_configuration(Cursor fields) {
  NodeDeviceConfiguration configuration;
  try {
    while (fields.next()) {
      switch (fields.field()) {
        case wire::kNodeDeviceConfigurationId:
          configuration.configuration = fields.view("NodeDeviceConfigurationProto.configuration_id");
          break;
        case wire::kNodeDeviceConfigurationShardingSpec:
          configuration.specs.push_back(
              sharding_spec(fields.inside(fields.view("NodeDeviceConfigurationProto.sharding_spec"))));
          break;
        default:
          fields.skip();
          break;
      }
    }
  } catch (const WireFault&) {
    configuration = {};
    configuration.malformed = true;
  }
  return configuration;
}

/// The numbers of fields as bits.
template <typename... Fields>
constexpr std::uint64_t bits(Fields... fields) {
  return ((std::uint64_t{1} << fields) | ...);
}

// What Model holds of each message: all other fields are carried over as they stand.
constexpr std::uint64_t kHeldOfModel =
    bits(wire::kModelIrVersion, wire::kModelProducerName, wire::kModelProducerVersion, wire::kModelGraph,
         wire::kModelOpsetImport, wire::kModelMetadata, wire::kModelFunction);
constexpr std::uint64_t kHeldOfGraph =
    bits(wire::kGraphNode, wire::kGraphName, wire::kGraphInitializer, wire::kGraphInput, wire::kGraphOutput,
         wire::kGraphValueInfo, wire::kGraphSparseInitializer);
constexpr std::uint64_t kHeldOfFunction =
    bits(wire::kFunctionName, wire::kFunctionInput, wire::kFunctionOutput, wire::kFunctionAttribute,
         wire::kFunctionNode, wire::kFunctionOpsetImport, wire::kFunctionDomain, wire::kFunctionAttributeProto,
         wire::kFunctionValueInfo, wire::kFunctionOverload);
constexpr std::uint64_t kHeldOfNode =
    bits(wire::kNodeInput, wire::kNodeOutput, wire::kNodeName, wire::kNodeOpType, wire::kNodeAttribute,
         wire::kNodeDomain, wire::kNodeOverload, wire::kNodeMetadata);
constexpr std::uint64_t kHeldOfTensor = bits(
    wire::kTensorDims, wire::kTensorDataType, wire::kTensorFloatData, wire::kTensorInt32Data, wire::kTensorStringData,
    wire::kTensorInt64Data, wire::kTensorName, wire::kTensorRawData, wire::kTensorDoubleData, wire::kTensorUint64Data,
    wire::kTensorExternalData, wire::kTensorDataLocation, wire::kTensorMetadata);

std::uint64_t held_by_model(MessageKind kind) {
  switch (kind) {
    case MessageKind::kModel:
      return kHeldOfModel;
    case MessageKind::kGraph:
      return kHeldOfGraph;
    case MessageKind::kFunction:
      return kHeldOfFunction;
    case MessageKind::kNode:
      return kHeldOfNode;
    case MessageKind::kTensor:
      return kHeldOfTensor;
  }
  return 0;
}

class FileProvenance final : public Provenance {
 public:
  FileProvenance(std::string_view file, std::vector<MetadataSpan> spans, MetadataKeys keys, const FileBytes* mapping)
      : file_(file), spans_(std::move(spans)), keys_(keys), mapping_(mapping) {}

  std::vector<MetadataEntry> node_metadata(const Node& node) const override {
    return metadata_of(message_at(node.position.offset, node.byte_length), wire::kNodeMetadata);
  }
  std::string_view node_doc_string(const Node& node) const override {
    const std::string_view message = message_at(node.position.offset, node.byte_length);
    std::string_view text;
    for (Cursor cursor(message, file_.data()); cursor.next();) {
      // The reader passes over doc strings, whatever their type is.
      if (cursor.field() == wire::kNodeDocString && cursor.type() == WireType::length_delimited)
        text = cursor.view("doc_string");
      else
        cursor.skip();
    }
    return text;
  }
  std::vector<MetadataEntry> value_metadata(ValueId value) const override {
    return metadata_at(value, [](std::uint32_t) { return true; });
  }
  std::vector<MetadataEntry> initializer_metadata(ValueId value) const override {
    return metadata_at(value, [](std::uint32_t field) { return field == wire::kTensorMetadata; });
  }
  std::string other_fields(MessageKind kind, Position message, std::uint64_t byte_length) const override {
    const std::uint64_t held = held_by_model(kind);
    std::string bytes;
    const std::string_view fields = message_at(message.offset, byte_length);
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
    const std::string_view message = message_at(node.position.offset, node.byte_length);
    for (Cursor cursor(message, message.data()); cursor.next();) {
      if (cursor.field() == wire::kNodeDeviceConfigurations) {
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
  std::string_view message_at(std::uint64_t offset, std::uint64_t byte_length) const {
    const std::string_view message = file_.substr(offset, byte_length);
    look_at(message.data());
    return message;
  }
  /// Systems map whole blocks around what is looked at; of places far from each other these are mostly weights.
  void look_at(const char* place) const {
    constexpr std::uint32_t kMostBlocks = 128;
    if (mapping_ == nullptr || std::abs(place - last_) < static_cast<std::ptrdiff_t>(kWeights)) return;
    last_ = place;
    if (++blocks_ % kMostBlocks == 0) mapping_->release(file_);
  }

  template <typename Wanted>
  std::vector<MetadataEntry> metadata_at(ValueId value, Wanted wanted) const {
    std::vector<MetadataEntry> entries;
    const auto number = static_cast<std::uint32_t>(value);
    auto at = std::lower_bound(spans_.begin(), spans_.end(), number,
                               [](const MetadataSpan& span, std::uint32_t sought) { return span.value < sought; });
    for (; at != spans_.end() && at->value == number; ++at) {
      if (!wanted(at->field)) continue;
      look_at(at->message.data());
      const std::vector<MetadataEntry> more = metadata_of(at->message, at->field);
      entries.insert(entries.end(), more.begin(), more.end());
    }
    return entries;
  }

  static constexpr std::size_t kSearched = std::size_t{16} << 20;
  std::string_view file_;
  std::vector<MetadataSpan> spans_;
  MetadataKeys keys_;
  const FileBytes* mapping_;
  mutable const char* last_ = file_.data();
  mutable std::uint32_t blocks_ = 0;
};

}  // namespace

MetadataEntry metadata_entry(Cursor cursor) {
  MetadataEntry entry;
  while (cursor.next()) {
    switch (cursor.field()) {
      case wire::kEntryKey:
        entry.key = cursor.view("StringStringEntryProto.key");
        break;
      case wire::kEntryValue:
        entry.value = cursor.view("StringStringEntryProto.value");
        break;
      default:
        cursor.skip();
        break;
    }
  }
  return entry;
}

DeviceConfiguration device_configuration(Cursor fields) {
  DeviceConfiguration configuration;
  while (fields.next()) {
    switch (fields.field()) {
      case wire::kDeviceConfigurationName:
        configuration.name = fields.view("DeviceConfigurationProto.name");
        break;
      case wire::kDeviceConfigurationDeviceCount:
        configuration.device_count = fields.integer32("DeviceConfigurationProto.num_devices");
        break;
      case wire::kDeviceConfigurationDevice:
        configuration.devices.push_back(fields.view("DeviceConfigurationProto.device"));
        break;
      default:
        fields.skip();
        break;
    }
  }
  return configuration;
}

std::unique_ptr<Provenance> make_file_provenance(std::string_view file, std::vector<MetadataSpan> spans,
                                                 const MetadataKeys& keys, const FileBytes* mapping) {
  return std::make_unique<FileProvenance>(file, std::move(spans), keys, mapping);
}

}  // namespace tensorlint::onnx
