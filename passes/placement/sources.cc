#include "passes/placement/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/escape.h"
#include "base/glob.h"
#include "base/meter.h"
#include "passes/placement/device_name.h"
#include "passes/placement/transfer.h"

namespace tensorlint::placement {
namespace {

constexpr std::string_view kTagKey = "tensorlint.device";
constexpr std::string_view kModelKeyPrefix = "tensorlint.device:";

/// An empty glob matches nothing here.
bool matches(std::string_view glob, std::string_view name, Meter& meter) {
  meter.charge(1);
  if (glob.empty()) return false;
  meter.charge(steps_of_match(glob, name));
  return matches_name(glob, name);
}

/// The module scopes that PyTorch's exporter leaves: "['', 'layers', 'layers.0', 'add']", the last being the node.
std::vector<std::string_view> scopes_of(const Model& model, const Node& node) {
  std::vector<std::string_view> scopes;
  if (model.provenance == nullptr) return scopes;
  for (const MetadataEntry& entry : model.provenance->node_metadata(node)) {
    if (entry.key != "pkg.torch.onnx.name_scopes") continue;
    std::string_view text = entry.value;
    while (true) {
      const std::size_t open = text.find('\'');
      const std::size_t close = open == std::string_view::npos ? open : text.find('\'', open + 1);
      if (close == std::string_view::npos) break;
      scopes.push_back(text.substr(open + 1, close - open - 1));
      text.remove_prefix(close + 1);
    }
    if (!scopes.empty()) scopes.pop_back();
  }
  return scopes;
}

}  // namespace

DeviceSources::DeviceSources(const dataflow::Analysis& analysis, const PlacementOptions& options) {
  const Model& model = analysis.model();
  default_ = number(options.default_device);
  read_command_line(model, options);
  const bool single_values = any_;
  read_rules(analysis, options);
  if (model.provenance != nullptr && model.provenance->mentions(kTagKey)) read_tags(model);
  read_model_keys(model);
  read_device_configurations(analysis);
  read_providers(analysis, options);
  const bool moves = std::any_of(model.operators.begin(), model.operators.end(),
                                 [&](const Operator& op) { return is_transfer(model, op); });
  any_ = any_ || moves;
  const auto from_elsewhere = [](SourceKind kind) {
    return kind != SourceKind::kNone && kind != SourceKind::kCommandLine;
  };
  only_single_values_ = single_values && options.rules == nullptr && default_ == 0 &&
                        std::none_of(node_sources_.begin(), node_sources_.end(), from_elsewhere) &&
                        std::none_of(value_sources_.begin(), value_sources_.end(), from_elsewhere);
}

int DeviceSources::number(std::string_view name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<int>(found - names_.begin());
  if (names_.size() == static_cast<std::size_t>(kManyDevices)) return kManyDevices;
  names_.emplace_back(name);
  return static_cast<int>(names_.size()) - 1;
}

int DeviceSources::transfer_target(NodeId id, std::string_view text) {
  if (const auto name = canonical_device(text)) return number(*name);
  problems_.push_back({id, ValueId::kAbsent, fmt::format("`{}` is not a device; expected cpu, cuda:0, ...", text)});
  return kManyDevices;
}

SourceKind DeviceSources::node_source(NodeId id) const {
  return node_sources_.empty() ? SourceKind::kNone : node_sources_[static_cast<std::size_t>(id)];
}
SourceKind DeviceSources::value_source(ValueId id) const {
  return value_sources_.empty() ? SourceKind::kNone : value_sources_[static_cast<std::size_t>(id)];
}

void DeviceSources::reserve(const Model& model) {
  if (!nodes_.empty() || !values_.empty()) return;
  nodes_.assign(model.nodes.size(), kUnplaced);
  values_.assign(model.values.size(), kUnplaced);
  node_sources_.assign(model.nodes.size(), SourceKind::kNone);
  value_sources_.assign(model.values.size(), SourceKind::kNone);
}

/// Earlier sources win. False when the value was placed already.
bool DeviceSources::place_value(ValueId id, int device, SourceKind source) {
  std::int8_t& at = values_[static_cast<std::size_t>(id)];
  any_ = true;
  if (at != kUnplaced) return false;
  at = static_cast<std::int8_t>(device);
  value_sources_[static_cast<std::size_t>(id)] = source;
  return true;
}

bool DeviceSources::place_node(NodeId id, int device, SourceKind source) {
  std::int8_t& at = nodes_[static_cast<std::size_t>(id)];
  any_ = true;
  if (at != kUnplaced) return false;
  at = static_cast<std::int8_t>(device);
  node_sources_[static_cast<std::size_t>(id)] = source;
  return true;
}

void DeviceSources::read_command_line(const Model& model, const PlacementOptions& options) {
  if (options.values.empty()) return;
  reserve(model);
  for (const auto& [name, text] : options.values) {
    const ValueId id = model.find_value(GraphId::kMain, name);
    if (id == ValueId::kAbsent) continue;
    const int device = number(text);
    if (model.value(id).origin == ValueOrigin::kNode) {
      place_node(model.value(id).producer, device, SourceKind::kCommandLine);
    } else {
      place_value(id, device, SourceKind::kCommandLine);
    }
  }
}

void DeviceSources::read_providers(const dataflow::Analysis& analysis, const PlacementOptions& options) {
  if (options.providers.empty()) return;
  reserve(analysis.model());
  providers_ = options.providers;
  choices_ = choose_providers(analysis, providers_);
  for (const auto& [node, choice] : choices_)
    place_node(node, choice.provider < providers_.size() ? number(providers_[choice.provider]->device) : 0,
               SourceKind::kProvider);
}

void DeviceSources::read_rules(const dataflow::Analysis& analysis, const PlacementOptions& options) {
  if (options.rules == nullptr) return;
  const std::vector<PlacementRule>& rules = *options.rules;
  const Model& model = analysis.model();
  Meter& meter = analysis.facts().meter();
  reserve(model);
  std::vector<bool> used(rules.size());
  // Looked up once for each row: there may be many devices.
  std::vector<std::optional<int>> devices(rules.size());
  const auto device_of = [&](std::size_t rule) {
    if (!devices[rule]) devices[rule] = number(rules[rule].device);
    return *devices[rule];
  };
  const bool any_module =
      std::any_of(rules.begin(), rules.end(), [](const PlacementRule& rule) { return !rule.modules.empty(); });
  for (const NodeId id : model.nodes.ids()) {
    const Node& node = model.node(id);
    if (meter.is_spent()) return;
    const std::vector<std::string_view> scopes = any_module ? scopes_of(model, node) : std::vector<std::string_view>();
    for (std::size_t r = 0; r < rules.size() && !meter.is_spent(); ++r) {
      const PlacementRule& rule = rules[r];
      meter.charge(1);  // a node without a name is compared with nothing
      const auto is_result = [&](ValueId value) {
        return value != ValueId::kAbsent && matches(rule.values, model.name_of(value), meter);
      };
      const auto results = model.results(node);
      const bool found = (node.name != NameId::kEmpty && matches(rule.nodes, model.text(node.name), meter)) ||
                         std::any_of(results.begin(), results.end(), is_result) ||
                         std::any_of(scopes.begin(), scopes.end(),
                                     [&](std::string_view scope) { return matches(rule.modules, scope, meter); });
      if (!found) continue;
      used[r] = true;
      // Control flow and calls run nowhere themselves: their bodies' nodes have names of their own.
      if (!is_transfer(model, model.op(node))) place_node(id, device_of(r), SourceKind::kPlacementFile);
    }
  }
  for (const ValueId id : model.values.ids(kFirstValue)) {
    const Value& value = model.value(id);
    if (value.origin != ValueOrigin::kInput && value.origin != ValueOrigin::kInitializer) continue;
    for (std::size_t r = 0; r < rules.size(); ++r) {
      if (meter.is_spent()) return;
      if (!matches(rules[r].values, model.text(value.name), meter)) continue;
      used[r] = true;
      place_value(id, device_of(r), SourceKind::kPlacementFile);
    }
  }
  // A file for many models may have rows for others.
  constexpr std::size_t kMostNamed = 20;
  std::size_t unused = 0;
  for (std::size_t r = 0; r < used.size(); ++r) {
    if (used[r] || ++unused > kMostNamed) continue;
    const PlacementRule& rule = rules[r];
    std::string globs;
    for (const std::string* glob : {&rule.nodes, &rule.values, &rule.modules})
      if (!glob->empty()) globs += fmt::format("{}{}", globs.empty() ? "" : ", ", quoted_for_people(*glob));
    problems_.push_back(
        {NodeId::kNone, ValueId::kAbsent,
         fmt::format("line {} of the placement file places nothing: no name or module matches {}", rule.line, globs)});
  }
  if (unused > kMostNamed)
    problems_.push_back({NodeId::kNone, ValueId::kAbsent,
                         fmt::format("{} more rows of the placement file place nothing", unused - kMostNamed)});
}

void DeviceSources::read_tags(const Model& model) {
  reserve(model);
  const auto tag_of = [](const std::vector<MetadataEntry>& entries) -> const MetadataEntry* {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [](const MetadataEntry& entry) { return entry.key == kTagKey; });
    return found == entries.end() ? nullptr : &*found;
  };
  const auto parse = [&](std::string_view text, PlacementProblem at) -> int {
    if (const auto name = canonical_device(text)) return number(*name);
    at.message = fmt::format("`{}` is not a device; expected cpu, cuda:0, ...", text);
    problems_.push_back(std::move(at));
    return kUnplaced;
  };
  for (const NodeId id : model.nodes.ids()) {
    const std::vector<MetadataEntry> entries = model.provenance->node_metadata(model.node(id));
    const MetadataEntry* tag = tag_of(entries);
    if (tag == nullptr) continue;
    if (is_transfer(model, model.op(model.node(id)))) {
      problems_.push_back({id, ValueId::kAbsent,
                           "a Transfer does not run on a device: its attribute `device` says where the result goes, "
                           "the tag has no effect"});
      continue;
    }
    if (const int device = parse(tag->value, {id, ValueId::kAbsent, {}}); device != kUnplaced)
      place_node(id, device, SourceKind::kTag);
  }
  for (const ValueId id : model.values.ids(kFirstValue)) {
    const ValueOrigin origin = model.value(id).origin;
    if (origin != ValueOrigin::kInput && origin != ValueOrigin::kInitializer) continue;
    const std::vector<MetadataEntry> entries = model.provenance->value_metadata(id);
    const MetadataEntry* tag = tag_of(entries);
    if (tag == nullptr) continue;
    if (const int device = parse(tag->value, {NodeId::kNone, id, {}}); device != kUnplaced)
      place_value(id, device, SourceKind::kTag);
  }
}

void DeviceSources::read_model_keys(const Model& model) {
  std::map<std::string_view, std::string_view> wanted;
  for (const MetadataEntry& entry : model.metadata)
    if (entry.key.starts_with(kModelKeyPrefix)) wanted.emplace(entry.key.substr(kModelKeyPrefix.size()), entry.value);
  if (wanted.empty()) return;
  reserve(model);
  std::map<std::string_view, int> devices;
  for (const auto& [name, text] : wanted) {
    if (const auto device = canonical_device(text)) {
      devices[name] = number(*device);
    } else {
      problems_.push_back({NodeId::kNone, ValueId::kAbsent,
                           fmt::format("`{}` of the model key `{}{}` names no device; write cpu, cuda:0, ...", text,
                                       kModelKeyPrefix, name)});
    }
  }
  std::map<std::string_view, bool> used;
  for (const NodeId id : model.nodes.ids()) {
    const auto found = devices.find(model.text(model.node(id).name));
    if (found == devices.end() || model.node(id).name == NameId::kEmpty) continue;
    used[found->first] = true;
    if (!is_transfer(model, model.op(model.node(id)))) place_node(id, found->second, SourceKind::kModelKey);
  }
  for (const ValueId id : model.values.ids(kFirstValue)) {
    const Value& value = model.value(id);
    const auto found = devices.find(model.text(value.name));
    if (found == devices.end()) continue;
    used[found->first] = true;
    if (value.origin != ValueOrigin::kNode) {
      place_value(id, found->second, SourceKind::kModelKey);
    } else if (!is_transfer(model, model.op(model.node(value.producer)))) {
      place_node(value.producer, found->second, SourceKind::kModelKey);
    }
  }
  for (const auto& [name, device] : devices)
    if (!used.contains(name))
      problems_.push_back(
          {NodeId::kNone, ValueId::kAbsent,
           fmt::format("the model key `{}{}` places nothing: no value or node has that name", kModelKeyPrefix, name)});
}

namespace {

/// Checks one sharding specification, of a value of a node, against its configuration; empty when it is sound.
std::string fault_of(const dataflow::Analysis& analysis, const DeviceConfiguration& configuration,
                     const ShardingSpec& spec, ValueId tensor) {
  analysis.meter().charge(1 + spec.devices.size() * (1 + spec.groups.size() / 4));
  if (analysis.meter().is_spent()) return {};
  if (tensor == ValueId::kAbsent)
    return fmt::format("a sharding names {}, which is neither an operand nor a result of the node",
                       quoted_for_people(spec.tensor));
  const auto is_device = [&](std::int64_t index) { return index >= 0 && index < configuration.device_count; };
  for (const auto& [key, group] : spec.groups) {
    std::vector<std::int64_t> sorted = group;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      return fmt::format("group {} of the sharding of {} has a device twice", key, quoted_for_people(spec.tensor));
    for (const std::int64_t device : group)
      if (!is_device(device)) {
        return fmt::format("group {} of the sharding of {} has device {}, {} has {}", key,
                           quoted_for_people(spec.tensor), device, quoted_for_people(configuration.name),
                           configuration.device_count);
      }
  }
  for (const std::int64_t device : spec.devices) {
    const bool is_group =
        std::any_of(spec.groups.begin(), spec.groups.end(), [&](const auto& group) { return group.first == device; });
    if (!is_group && !is_device(device))
      return fmt::format("the sharding of {} has device {}, {} has {}", quoted_for_people(spec.tensor), device,
                         quoted_for_people(configuration.name), configuration.device_count);
  }
  const Fact& fact = analysis.fact(tensor);
  const bool ranked = fact.kind == ValueKind::kTensor && fact.shape != ShapeId::kUnranked;
  for (const ShardingSpec::Shards& axis : spec.axes) {
    std::optional<std::int64_t> extent;
    if (ranked) {
      const auto dims = analysis.facts().dims_of(fact.shape);
      const auto rank = static_cast<std::int64_t>(dims.size());
      if (axis.axis < -rank || axis.axis >= rank)
        return fmt::format("{} is sharded along axis {}, its rank is {}", quoted_for_people(spec.tensor), axis.axis,
                           rank);
      extent = analysis.facts().dims().as_constant(
          dims[static_cast<std::size_t>(axis.axis < 0 ? axis.axis + rank : axis.axis)]);
    }
    for (const std::int64_t count : axis.counts) {
      if (count < 1)
        return fmt::format("axis {} of {} is cut into {} shards", axis.axis, quoted_for_people(spec.tensor), count);
      if (axis.counts.size() == 1 && extent && *extent % count != 0) {
        return fmt::format("axis {} of {} has extent {}, which {} shards do not divide", axis.axis,
                           quoted_for_people(spec.tensor), *extent, count);
      }
    }
  }
  return {};
}

}  // namespace

void DeviceSources::read_device_configurations(const dataflow::Analysis& analysis) {
  const Model& model = analysis.model();
  std::map<std::string_view, const DeviceConfiguration*> known;
  for (const DeviceConfiguration& configuration : model.device_configurations) {
    if (analysis.meter().is_spent()) return;
    const auto problem = [&](std::string message) {
      problems_.push_back({NodeId::kNone, ValueId::kAbsent, std::move(message)});
    };
    if (!known.emplace(configuration.name, &configuration).second)
      problem(fmt::format("the device configuration {} is defined twice", quoted_for_people(configuration.name)));
    if (configuration.device_count < 1)
      problem(fmt::format("the device configuration {} has {} devices", quoted_for_people(configuration.name),
                          configuration.device_count));
    if (!configuration.devices.empty() &&
        static_cast<std::int64_t>(configuration.devices.size()) != configuration.device_count)
      problem(fmt::format("the device configuration {} says that it has {} devices and names {}",
                          quoted_for_people(configuration.name), configuration.device_count,
                          configuration.devices.size()));
  }
  if (!model.has_node_device_configurations || model.provenance == nullptr) return;
  reserve(model);
  for (const NodeId id : model.nodes.ids()) {
    if (analysis.meter().is_spent()) return;
    const Node& node = model.node(id);
    const std::vector<NodeDeviceConfiguration> configurations = model.provenance->device_configurations(node);
    if (configurations.empty()) continue;
    std::map<std::string_view, ValueId> tensors;
    for (const auto& list : {analysis.operands(id), analysis.results(id)})
      for (const ValueId value : list)
        if (value != ValueId::kAbsent) tensors[model.name_of(value)] = value;
    for (const NodeDeviceConfiguration& used : configurations) {
      if (analysis.meter().is_spent()) return;
      const auto problem = [&](std::string message) {
        problems_.push_back({id, ValueId::kAbsent, std::move(message)});
      };
      if (used.malformed) {
        problem("a device configuration of the node is malformed");
        continue;
      }
      const auto found = known.find(used.configuration);
      if (found == known.end()) {
        problem(fmt::format("the node refers to the device configuration {}, which the model does not have",
                            quoted_for_people(used.configuration)));
        continue;
      }
      const DeviceConfiguration& configuration = *found->second;
      std::vector<std::int64_t> devices;
      bool sound = true;
      for (const ShardingSpec& spec : used.specs) {
        if (analysis.meter().is_spent()) return;
        const auto tensor = tensors.find(spec.tensor);
        if (std::string fault =
                fault_of(analysis, configuration, spec, tensor == tensors.end() ? ValueId::kAbsent : tensor->second);
            !fault.empty()) {
          problem(std::move(fault));
          sound = false;
        }
        if (!spec.groups.empty() || !spec.axes.empty() || spec.devices.size() != 1)
          sound = false;  // on several devices: no one place
        devices.insert(devices.end(), spec.devices.begin(), spec.devices.end());
      }
      // One device for every tensor that the node names: that is where it runs.
      if (!sound || devices.empty() ||
          std::adjacent_find(devices.begin(), devices.end(), std::not_equal_to<>()) != devices.end())
        continue;
      if (static_cast<std::uint64_t>(devices[0]) >= configuration.devices.size()) continue;
      const auto device = canonical_device(configuration.devices[static_cast<std::size_t>(devices[0])]);
      if (device && !is_transfer(model, model.op(node)))
        place_node(id, number(*device), SourceKind::kDeviceConfiguration);
    }
  }
}

}  // namespace tensorlint::placement
