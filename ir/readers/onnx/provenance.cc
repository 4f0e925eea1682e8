#include "ir/readers/onnx/provenance.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

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
      case 1:
        shards.axis = fields.integer("ShardedDimProto.axis");
        break;
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
      case 1:
        spec.tensor = fields.view("ShardingSpecProto.tensor_name");
        break;
      case 2:
        append_integers(fields, "ShardingSpecProto.device", spec.devices);
        break;
      case 3: {
        auto& [key, values] = spec.groups.emplace_back();
        for (Cursor entry = fields.inside(fields.view("ShardingSpecProto.index_to_device_group_map")); entry.next();) {
          if (entry.field() == 1) {
            key = entry.integer("IntIntListEntryProto.key");
          } else if (entry.field() == 2) {
            append_integers(entry, "IntIntListEntryProto.value", values);
          } else {
            entry.skip();
          }
        }
        break;
      }
      case 4:
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
        case 1:
          configuration.configuration = fields.view("NodeDeviceConfigurationProto.configuration_id");
          break;
        case 2:
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

class FileProvenance final : public Provenance {
 public:
  FileProvenance(std::string_view file, std::vector<MetadataSpan> spans, MetadataKeys keys)
      : file_(file), spans_(std::move(spans)), keys_(keys) {}

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
    auto at = std::lower_bound(spans_.begin(), spans_.end(), number,
                               [](const MetadataSpan& span, std::uint32_t sought) { return span.value < sought; });
    for (; at != spans_.end() && at->value == number; ++at) {
      if (!wanted(at->field)) continue;
      const std::vector<MetadataEntry> more = metadata_of(at->message, at->field);
      entries.insert(entries.end(), more.begin(), more.end());
    }
    return entries;
  }

  static constexpr std::size_t kSearched = std::size_t{64} << 20;
  std::string_view file_;
  std::vector<MetadataSpan> spans_;
  MetadataKeys keys_;
};

}  // namespace

MetadataEntry metadata_entry(Cursor cursor) {
  MetadataEntry entry;
  while (cursor.next()) {
    switch (cursor.field()) {
      case 1:
        entry.key = cursor.view("StringStringEntryProto.key");
        break;
      case 2:
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
      case 1:
        configuration.name = fields.view("DeviceConfigurationProto.name");
        break;
      case 2:
        configuration.device_count = fields.integer32("DeviceConfigurationProto.num_devices");
        break;
      case 3:
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
                                                 const MetadataKeys& keys) {
  return std::make_unique<FileProvenance>(file, std::move(spans), keys);
}

}  // namespace tensorlint::onnx
