#include "passes/placement/sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "passes/placement/device_name.h"

namespace tensorlint {
namespace {

constexpr std::string_view kTagKey = "tensorlint.device";
constexpr std::string_view kModelKeyPrefix = "tensorlint.device:";

bool is_transfer(const Model& model, const Operator& op) {
  return model.text(op.domain) == "tensorlint" && model.text(op.name) == "Transfer";
}

}  // namespace

DeviceSources::DeviceSources(const Model& model, const PlacementOptions& options) {
  default_ = number(options.default_device);
  read_command_line(model, options);
  const bool single_values = any_;
  if (model.provenance != nullptr && model.provenance->mentions(kTagKey)) read_tags(model);
  read_model_keys(model);
  const bool moves = std::any_of(model.operators.begin(), model.operators.end(), [&](const Operator& op) { return is_transfer(model, op); });
  any_ = any_ || moves;
  const auto from_elsewhere = [](SourceKind kind) { return kind != SourceKind::kNone && kind != SourceKind::kCommandLine; };
  only_single_values_ = single_values && options.rules.empty() && default_ == 0 && std::none_of(node_sources_.begin(), node_sources_.end(), from_elsewhere) &&
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
  problems_.push_back({id, ValueId::kAbsent, fmt::format("`{}` names no device; write cpu, cuda:0, ...", text)});
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
  for (std::size_t id = 1; id < model.values.size(); ++id) {
    const Value& value = model.values[id];
    if (value.graph != GraphId::kMain) continue;
    const auto found = options.values.find(model.text(value.name));
    if (found == options.values.end()) continue;
    const int device = number(found->second);
    if (value.origin == ValueOrigin::kNode) {
      place_node(value.producer, device, SourceKind::kCommandLine);
    } else {
      place_value(static_cast<ValueId>(id), device, SourceKind::kCommandLine);
    }
  }
}

void DeviceSources::read_tags(const Model& model) {
  reserve(model);
  const auto tag_of = [](const std::vector<MetadataEntry>& entries) -> const MetadataEntry* {
    const auto found = std::find_if(entries.begin(), entries.end(), [](const MetadataEntry& entry) { return entry.key == kTagKey; });
    return found == entries.end() ? nullptr : &*found;
  };
  const auto parse = [&](std::string_view text, PlacementProblem at) -> int {
    if (const auto name = canonical_device(text)) return number(*name);
    at.message = fmt::format("`{}` names no device; write cpu, cuda:0, ...", text);
    problems_.push_back(std::move(at));
    return kUnplaced;
  };
  for (std::size_t n = 0; n < model.nodes.size(); ++n) {
    const auto id = static_cast<NodeId>(n);
    const std::vector<MetadataEntry> entries = model.provenance->node_metadata(model.nodes[n]);
    const MetadataEntry* tag = tag_of(entries);
    if (tag == nullptr) continue;
    if (is_transfer(model, model.op(model.nodes[n]))) {
      problems_.push_back({id, ValueId::kAbsent, "a Transfer runs nowhere: its attribute `device` says where the result goes, the tag says nothing"});
      continue;
    }
    if (const int device = parse(tag->value, {id, ValueId::kAbsent, {}}); device != kUnplaced) place_node(id, device, SourceKind::kTag);
  }
  for (std::size_t v = 1; v < model.values.size(); ++v) {
    if (model.values[v].origin != ValueOrigin::kInput && model.values[v].origin != ValueOrigin::kInitializer) continue;
    const auto id = static_cast<ValueId>(v);
    const std::vector<MetadataEntry> entries = model.provenance->value_metadata(id);
    const MetadataEntry* tag = tag_of(entries);
    if (tag == nullptr) continue;
    if (const int device = parse(tag->value, {NodeId::kNone, id, {}}); device != kUnplaced) place_value(id, device, SourceKind::kTag);
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
      problems_.push_back({NodeId::kNone, ValueId::kAbsent, fmt::format("`{}` of the model key `{}{}` names no device; write cpu, cuda:0, ...", text, kModelKeyPrefix, name)});
    }
  }
  std::map<std::string_view, bool> used;
  for (std::size_t n = 0; n < model.nodes.size(); ++n) {
    const auto found = devices.find(model.text(model.nodes[n].name));
    if (found == devices.end() || model.nodes[n].name == NameId::kEmpty) continue;
    used[found->first] = true;
    if (!is_transfer(model, model.op(model.nodes[n]))) place_node(static_cast<NodeId>(n), found->second, SourceKind::kModelKey);
  }
  for (std::size_t v = 1; v < model.values.size(); ++v) {
    const Value& value = model.values[v];
    const auto found = devices.find(model.text(value.name));
    if (found == devices.end()) continue;
    used[found->first] = true;
    if (value.origin != ValueOrigin::kNode) {
      place_value(static_cast<ValueId>(v), found->second, SourceKind::kModelKey);
    } else if (!is_transfer(model, model.op(model.node(value.producer)))) {
      place_node(value.producer, found->second, SourceKind::kModelKey);
    }
  }
  for (const auto& [name, device] : devices)
    if (!used.contains(name))
      problems_.push_back({NodeId::kNone, ValueId::kAbsent, fmt::format("the model key `{}{}` places nothing: no value or node has that name", kModelKeyPrefix, name)});
}

}  // namespace tensorlint
