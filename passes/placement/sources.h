#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/copy_on_write.h"
#include "ir/graph/model.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/provider.h"

namespace tensorlint::placement {

/// Where a placement was read. In the order in which they win.
enum class SourceKind : std::uint8_t {
  kNone,
  kCommandLine,
  kPlacementFile,
  kTag,
  kModelKey,
  kDeviceConfiguration,
  kProvider
};

/// A row of a placement file: what its globs match is on `device`.
struct PlacementRule {
  std::string nodes, values, modules;  ///< globs; empty: not given
  std::string device;                  ///< canonical
  std::uint32_t line = 0;
};

struct PlacementOptions {
  std::string default_device = "cpu";          ///< canonical
  SharedMap<std::string, std::string> values;  ///< command line: canonical device by value of the main graph
  std::shared_ptr<const std::vector<PlacementRule>> rules;  ///< of a placement file; null: none
  std::vector<std::shared_ptr<const ProviderTable>>
      providers;  ///< in the order of preference; they place what nothing else does
};

/// What is wrong with a placement that the model or the user gives; the placement is not used.
struct PlacementProblem {
  NodeId node = NodeId::kNone;
  ValueId value = ValueId::kAbsent;
  std::string message;
};

/// What every source says, before any inference. Devices are numbers, 0 is the cpu.
class DeviceSources {
 public:
  static constexpr int kUnplaced = -1;

  /// Facts are asked for ranks and extents of sharded tensors only.
  DeviceSources(const dataflow::Analysis& analysis, const PlacementOptions& options);

  /// False when nothing but the default device places anything.
  bool any() const { return any_; }
  int default_device() const { return default_; }
  int node(NodeId id) const { return nodes_.empty() ? kUnplaced : nodes_[static_cast<std::size_t>(id)]; }
  int value(ValueId id) const { return values_.empty() ? kUnplaced : values_[static_cast<std::size_t>(id)]; }
  SourceKind node_source(NodeId id) const;
  SourceKind value_source(ValueId id) const;
  const std::vector<PlacementProblem>& problems() const { return problems_; }
  /// Nothing but single values on the command line places anything.
  bool only_single_values() const { return only_single_values_; }
  /// Number of the device that a Transfer names; kManyDevices, with a problem kept, for what is no device.
  int transfer_target(NodeId id, std::string_view text);

  /// Number of a canonical name, added on first use; kManyDevices, which stands for any, past the last number.
  int number(std::string_view name);
  const std::vector<std::string>& names() const { return names_; }
  /// Empty for kManyDevices: which of them is not known.
  const std::string& name(int number) const {
    static const std::string none;
    return number < kManyDevices ? names_[static_cast<std::size_t>(number)] : none;
  }
  static constexpr int kManyDevices = 62;
  const std::vector<std::shared_ptr<const ProviderTable>>& providers() const { return providers_; }
  /// Of the nodes that providers were asked for.
  const ProviderChoices& provider_choices() const { return choices_; }

 private:
  void read_command_line(const Model& model, const PlacementOptions& options);
  void read_rules(const dataflow::Analysis& analysis, const PlacementOptions& options);
  void read_tags(const Model& model);
  void read_model_keys(const Model& model);
  void read_device_configurations(const dataflow::Analysis& analysis);
  void read_providers(const dataflow::Analysis& analysis, const PlacementOptions& options);
  bool place_value(ValueId id, int device, SourceKind source);
  bool place_node(NodeId id, int device, SourceKind source);
  void reserve(const Model& model);

  bool any_ = false;
  bool only_single_values_ = false;
  int default_ = 0;
  std::vector<std::string> names_{"cpu"};
  std::vector<std::int8_t> nodes_, values_;  // empty until something is placed
  std::vector<SourceKind> node_sources_, value_sources_;
  std::vector<PlacementProblem> problems_;
  std::vector<std::shared_ptr<const ProviderTable>> providers_;
  ProviderChoices choices_;
};

}  // namespace tensorlint::placement
