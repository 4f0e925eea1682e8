#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/position.h"
#include "ir/graph/parts.h"
#include "ir/types/ids.h"

namespace tensorlint {

struct MetadataEntry {
  std::string_view key;
  std::string_view value;
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

/// The messages of a binary file that a Model keeps the bytes of.
enum class MessageKind : std::uint8_t { kModel, kGraph, kFunction, kNode, kTensor };

/// Reads what is only needed when a finding is made; each reader brings its own.
class Provenance {
 public:
  virtual ~Provenance() = default;
  /// metadata_props of a node, in file order.
  virtual std::vector<MetadataEntry> node_metadata(const Node& node) const = 0;
  /// As PyTorch's TorchScript exporter writes the stack there, with verbose=True.
  virtual std::string_view node_doc_string(const Node& /*node*/) const { return {}; }
  /// metadata_props of the ValueInfoProto or initializer TensorProto of a value; empty when there are none.
  virtual std::vector<MetadataEntry> value_metadata(ValueId value) const = 0;
  /// Those of them that stand at the TensorProto.
  virtual std::vector<MetadataEntry> initializer_metadata(ValueId /*value*/) const { return {}; }
  /// The part of the message at these bytes of the file that the Model does not hold, as it is there: doc strings, what
  /// newer versions of ONNX add, ... A length past the end means up to the end. Empty for models in text.
  virtual std::string other_fields(MessageKind /*kind*/, Position /*message*/, std::uint64_t /*byte_length*/) const {
    return {};
  }
  /// False when no node or value can have this key: then asking for each of them is needless. Costs one look at the
  /// file.
  virtual bool mentions(std::string_view /*key*/) const { return false; }
  /// Only asked for where Model::has_node_device_configurations.
  virtual std::vector<NodeDeviceConfiguration> device_configurations(const Node& /*node*/) const { return {}; }
};

}  // namespace tensorlint
