#include "analyzer/builder/provenance.h"

#include <fmt/format.h>

namespace tensorlint::builder {
namespace {

constexpr std::string_view kTraceKey = "pkg.torch.onnx.stack_trace", kModulesKey = "pkg.torch.onnx.name_scopes",
                           kDeviceKey = "tensorlint.device", kTrainedKey = "tensorlint.requires_grad";

}  // namespace

std::string_view BuilderProvenance::trace_of(const std::source_location& at) const {
  const auto [known, is_new] = traces_.try_emplace({at.file_name(), at.line(), at.function_name()});
  if (is_new) {
    const Place place = state_.place_of(at);
    known->second = fmt::format("File \"{}\", line {}, in {}", place.file, place.line, at.function_name());
    if (const std::size_t begin = place.source.find_first_not_of(" \t"); begin != std::string::npos)
      known->second += "\n    " + place.source.substr(begin);
  }
  return known->second;
}

std::vector<MetadataEntry> BuilderProvenance::node_metadata(const Node& node) const {
  const auto id = static_cast<std::size_t>(state_.model().id_of(node));
  std::vector<MetadataEntry> entries;
  if (id >= state_.notes.size() || state_.notes[id].at.line() == 0) return entries;  // of a function
  const State::CallNote& note = state_.notes[id];
  entries.push_back({kTraceKey, trace_of(note.at)});
  if (note.scope != 0) {
    std::string& modules = modules_[{note.scope, node.name}];
    if (modules.empty())
      modules = fmt::format("{}'{}']", state_.scopes[note.scope].modules, state_.model().text(node.name));
    entries.push_back({kModulesKey, modules});
  }
  if (note.device != placement::GrowingDevices::kUnknown)
    entries.push_back({kDeviceKey, state_.devices.name(note.device)});
  return entries;
}

std::vector<MetadataEntry> BuilderProvenance::value_metadata(ValueId value) const {
  std::vector<MetadataEntry> entries;
  const auto found = state_.value_notes.find(value);
  if (found == state_.value_notes.end()) return entries;
  if (!found->second.device.empty()) entries.push_back({kDeviceKey, found->second.device});
  if (found->second.trained) entries.push_back({kTrainedKey, "true"});
  return entries;
}

std::vector<MetadataEntry> BuilderProvenance::initializer_metadata(ValueId value) const {
  return state_.model().value(value).origin == ValueOrigin::kInitializer ? value_metadata(value)
                                                                         : std::vector<MetadataEntry>();
}

bool BuilderProvenance::mentions(std::string_view key) const {
  if (key == kDeviceKey) return state_.uses_devices;
  if (key == kTrainedKey) return state_.has_trained;
  return key == kTraceKey || key == kModulesKey;
}

}  // namespace tensorlint::builder
