#include "analyzer/builder/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "analyzer/builder/attributes.h"
#include "analyzer/builder/provenance.h"
#include "analyzer/pipeline/pipeline.h"
#include "base/version.h"
#include "passes/placement/device_name.h"

namespace tensorlint::builder {
namespace {

/// "MatMul" -> "mat_mul", the way values are named.
void append_snake_case(std::string_view name, std::string& text) {
  char last = '\0';
  for (const char c : name) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (is_upper && std::islower(static_cast<unsigned char>(last)) != 0) text += '_';
    last = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    text += last;
  }
}

rules::RuleSelection selection() {
  rules::RuleSelection selected;
  selected.enter_by(rules::Door::kBuilder);
  return selected;
}

}  // namespace

State::State(Options given, Location at)
    : options(std::move(given)),
      recording({.graph_name = options.graph_name, .producer_name = "tensorlint", .producer_version = kVersion}),
      growing(recording, {}),
      devices(growing.analysis(), placement::canonical_device(options.default_device).value_or("cpu")),
      rules(growing.analysis(), selection()) {
  if (options.opset < 7 || options.opset > newest_opset(""))
    misuse(at, fmt::format("opset {} is not one of 7 to {}", options.opset, newest_opset("")));
  const auto device = placement::canonical_device(options.default_device);
  if (!device) misuse(at, fmt::format("`{}` is not a device; write cpu, cuda:0, ...", options.default_device));
  if (options.graph_name.empty()) misuse(at, "the graph needs a name");
  options.default_device = *device;
  recording.import("", options.opset);
  recording.set_provenance(std::make_unique<BuilderProvenance>(*this));
}

void State::misuse(Location at, const std::string& message) { throw Misuse(at, message); }

std::string State::canonical(std::string_view device, Location at) const {
  if (device.empty()) return {};
  const auto name = placement::canonical_device(device);
  if (!name) misuse(at, fmt::format("`{}` is not a device; write cpu, cuda:0, ...", device));
  return *name;
}

std::string State::device_of(const Value& value) const {
  const auto device = devices.device(id_of(value));
  return device == placement::GrowingDevices::kUnknown || device == placement::GrowingDevices::kCpu
             ? std::string()
             : std::string(devices.name(device));
}

bool State::is_taken(std::string_view name) const {
  const std::uint32_t known = model().names.find(name);
  return known != 0 && recording.is_taken(static_cast<NameId>(known));
}

std::int64_t State::version(std::string_view domain) const {
  if (domain.empty()) return options.opset;
  const auto given = imports.find(domain);
  return given != imports.end() ? given->second : std::max(newest_opset(domain), 1);
}

void State::import(std::string_view domain) {
  const auto [known, is_new] = imports.try_emplace(std::string(domain), version(domain));
  if (is_new) recording.import(domain, known->second);
}

Value State::add_input(std::string_view name, DType dtype, const Shape& shape, std::optional<Data> initial,
                       std::string_view device, bool trained, Location at) {
  if (name.empty()) misuse(at, "an input needs a name");
  if (is_taken(name)) misuse(at, fmt::format("there is a value `{}` already", name));
  if (recording.current() != GraphId::kMain)
    misuse(at, fmt::format("`{}` is an input of the whole graph and cannot be added in a body", name));
  if (!is_known_dtype(static_cast<std::int64_t>(dtype))) misuse(at, fmt::format("`{}` needs a dtype", name));
  std::vector<DimDecl> dims;
  for (const Extent& extent : shape) {
    if (extent.is_named() && extent.name().empty())
      misuse(at, fmt::format("an extent of `{}` has an empty name", name));
    if (!extent.is_named() && extent.number() < 0)
      misuse(at, fmt::format("`{}` has the extent {}", name, extent.number()));
    dims.push_back({.extent = extent.is_named() ? -1 : extent.number(),
                    .name = recording.intern(extent.name()),
                    .has_extent = !extent.is_named()});
  }
  ValueNote note{.device = canonical(device, at), .trained = trained};
  if (note.device.empty() && options.default_device != "cpu") note.device = options.default_device;

  TypeDecl* const type = recording.memory().new_type();
  type->kind = TypeKind::kTensor;
  type->element_code = static_cast<std::int32_t>(dtype);
  type->ranked = true;
  type->dims = recording.memory().keep_dims(dims);
  const NameId own = recording.intern(name);
  const Tensor* value = initial ? kept_tensor(recording, std::move(*initial), own) : nullptr;
  const ValueId id = recording.add_input(own, type, value);
  growing.add_input(id);
  if (!note.device.empty()) devices.set(id, devices.number(note.device));
  uses_devices = uses_devices || !note.device.empty();
  has_trained = has_trained || trained;
  if (!note.device.empty() || trained) value_notes.emplace(id, std::move(note));
  ++edits;
  return handle(id);
}

Value State::add_constant(Data data, std::string_view given, std::string_view device, Location at) {
  const std::string name = given.empty() ? std::string() : scoped(given);
  if (!name.empty() && is_taken(name)) misuse(at, fmt::format("there is a value `{}` already", name));
  check_data(data, at);
  ValueNote note{.device = canonical(device, at)};
  if (note.device.empty() && options.default_device != "cpu") note.device = options.default_device;
  const NameId own = name.empty() ? recording.unused_name(scoped("constant")) : recording.intern(name);
  // Constants of bodies are constants of the graph, and stay when the body is complete.
  const ValueId id = recording.add_constant(GraphId::kMain, own, kept_tensor(recording, std::move(data), own));
  growing.add_constant(id);
  if (!note.device.empty()) {
    devices.set(id, devices.number(note.device));
    uses_devices = true;
    value_notes.emplace(id, std::move(note));
  }
  ++edits;
  return handle(id);
}

void State::check_data(const Data& data, Location at) {
  std::uint64_t count = 1;
  for (const std::int64_t dim : data.dims()) {
    if (dim < 0 || __builtin_mul_overflow(count, static_cast<std::uint64_t>(dim), &count))
      misuse(at, fmt::format("data cannot have the extent {}", dim));
  }
  const auto bytes = packed_bytes(data.dtype(), count);
  if (!bytes) misuse(at, fmt::format("data cannot be of dtype {}", tensorlint::to_text(data.dtype())));
  if (*bytes != data.bytes().size())
    misuse(at, fmt::format("{} bytes of data do not fit {} elements of {}", data.bytes().size(), count,
                           tensorlint::to_text(data.dtype())));
}

void State::refuse_operand(const Value& value, const std::string& what, Location at) const {
  if (!value) misuse(at, fmt::format("{} is absent", what));
  if (value.state_ != this) misuse(at, fmt::format("{} belongs to another builder", what));
  misuse(at, fmt::format("`{}` belongs to a body that is complete: return it as a result of the body",
                         model().name_of(id_of(value))));
}

Value State::call(std::string_view op, std::span<const Value> operands, std::vector<Attr> attributes, Location at) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    check_operand(operands[i], [&] { return fmt::format("operand {} of {}", i, op); }, at);
  return handle(add_call(op, operands, {.attributes = std::move(attributes)}, {}, at)[0]);
}

std::span<const ValueId> State::add_call(std::string_view op, std::span<const Value> operands, const Call& call,
                                         std::span<const std::pair<std::string_view, GraphId>> bodies, Location at,
                                         std::string_view overload) {
  if (op.empty()) misuse(at, "an operator needs a name");
  if (call.results == 0 || call.results > kMaxResults)
    misuse(at, fmt::format("a call gives 1 to 1,024 results, not {}", call.results));
  const std::string_view domain = call.domain == "ai.onnx" ? std::string_view() : call.domain;
  const std::string own_device = canonical(call.device, at);
  operand_ids.clear();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i]) check_operand(operands[i], [&] { return fmt::format("operand {} of {}", i, op); }, at);
    operand_ids.push_back(id_of(operands[i]));
  }
  while (!operand_ids.empty() && operand_ids.back() == ValueId::kAbsent) operand_ids.pop_back();
  for (std::size_t i = 0; i < call.attributes.size(); ++i) {
    const Attr& attribute = call.attributes[i];
    if (attribute.name().empty()) misuse(at, fmt::format("an attribute of {} has no name", op));
    const auto end = call.attributes.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find_if(call.attributes.begin(), end, [&](const Attr& one) { return one.name() == attribute.name(); }) !=
        end)
      misuse(at, fmt::format("{} is given the attribute `{}` twice", op, attribute.name()));
    if (const Data* data = std::get_if<Data>(&attribute.payload())) check_data(*data, at);
  }
  if (!domain.empty()) import(domain);

  result_names.clear();
  for (std::size_t r = 0; r < call.results; ++r) {
    text = scopes[scope].prefix;
    if (call.name.empty()) {
      append_snake_case(op, text);
    } else {
      text += call.name;
    }
    if (r > 0) fmt::format_to(std::back_inserter(text), "_{}", r);
    result_names.push_back(recording.unused_name(text));
    // The others of this call are taken only when it is recorded.
    while (std::find(result_names.begin(), result_names.end() - 1, result_names.back()) != result_names.end() - 1)
      result_names.back() = recording.unused_name(text += "_1");
  }
  AttributeViews attributes(call.attributes, recording);
  for (const auto& [name, body] : bodies) attributes.add_body(name, body);
  const NodeId node = recording.add_call({.domain = domain,
                                          .op = op,
                                          .overload = overload,
                                          .name = result_names[0],
                                          .operands = operand_ids,
                                          .results = result_names,
                                          .attributes = attributes.views()});
  CallNote note{.at = at, .scope = scope};
  if (!own_device.empty()) note.device = devices.number(own_device);
  if (operand_ids.empty() && bodies.empty() && own_device.empty() && options.default_device != "cpu")
    note.device = devices.default_device();
  notes.resize(static_cast<std::size_t>(node) + 1);
  notes.back() = note;
  node_by_name.resize(std::max(node_by_name.size(), static_cast<std::size_t>(result_names[0]) + 1), NodeId::kNone);
  node_by_name[static_cast<std::size_t>(result_names[0])] = node;
  ++edits;

  const std::span<const dataflow::NodeViolation> violations = growing.add_call(node);
  const ops::OpEntry* entry = analysis().entry(model().node(node));
  uses_devices = uses_devices || note.device != placement::GrowingDevices::kUnknown ||
                 (entry != nullptr && entry->device_rule() == ops::DeviceRule::kArgument);
  if (uses_devices) is_placement_due = !devices.add_call(node, note.device) || !bodies.empty() || is_placement_due;
  std::vector<tensorlint::findings::Finding> found = rules.check(node, violations);
  if (!found.empty())
    pending.insert(pending.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  if (composite_depth == 0) deliver();
  return model().results(model().node(node));
}

void State::open_body(std::string_view name) {
  recording.open_body(recording.unused_name(name));
  growing.open_body();
  ++edits;
}

Value State::add_body_input(std::string_view name, FactId fact, placement::GrowingDevices::Number device) {
  const ValueId id = recording.add_input(recording.unused_name(name), nullptr);
  growing.add_body_input(id, {fact, {}});
  if (uses_devices) devices.set(id, device);
  return handle(id);
}

GraphId State::close_body(std::span<const Value> outputs, Location at) {
  std::vector<ValueId> ids;
  for (const Value& value : outputs) {
    check_operand(value, "a result of a body", at);
    ValueId id = id_of(value);
    // Each output of a graph is a value of its own: what comes from outside, or twice, is copied.
    if (model().value(id).graph != recording.current() || model().value(id).origin != ValueOrigin::kNode ||
        std::ranges::find(ids, id) != ids.end())
      id = add_call("Identity", std::span(&value, 1), {}, {}, at)[0];
    ids.push_back(id);
  }
  const GraphId body = recording.current();
  recording.close_body(ids);
  growing.close_body();
  ++edits;
  return body;
}

void State::abandon_body(GraphId body) {
  recording.abandon_body(body);
  growing.abandon_body(body);
  rules.forget_nodes();
  notes.resize(model().nodes.size());
  for (NodeId& node : node_by_name)
    if (node != NodeId::kNone && static_cast<std::size_t>(node) >= notes.size()) node = NodeId::kNone;
  ++edits;
}

void State::deliver() {
  if (composite_depth > 0) return;
  if (std::exchange(is_placement_due, false)) check_placement();
  if (pending.empty()) return;
  const std::size_t first = findings.size();
  for (const tensorlint::findings::Finding& finding : std::exchange(pending, {}))
    // What nothing uses may be used by the next call.
    if (finding.severity != tensorlint::findings::Severity::kInfo) findings.push_back(to_public(finding));
  if (!options.on_finding) return;
  const std::vector<Finding> told(findings.begin() + static_cast<std::ptrdiff_t>(first), findings.end());
  for (const Finding& finding : told) options.on_finding(finding);
}

void State::check_placement() {
  std::vector<tensorlint::findings::Finding> found = rules.check_placement(placement());
  pending.insert(pending.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  // Where the results of the last call are is known now.
  for (const ValueId result : model().results(model().nodes.back())) {
    if (devices.device(result) != placement::GrowingDevices::kUnknown) continue;
    const std::vector<std::string> names = placement().placement().devices(result);
    if (names.size() == 1) devices.set(result, devices.number(names[0]));
  }
}

const passes::PassResults& State::placement() {
  if (placed == nullptr || placed_edits != edits) placed = std::make_unique<passes::PassResults>(analysis());
  placed->run({passes::Pass::kPlacement});
  placed_edits = edits;
  return *placed;
}

std::vector<Finding> State::check() {
  if (recording.current() == GraphId::kMain) growing.finish();
  pipeline::Options all;
  all.selection = selection();
  std::vector<Finding> found;
  for (const tensorlint::findings::Finding& finding : pipeline::Pipeline(analysis(), all).check().findings)
    found.push_back(to_public(finding));
  return found;
}

const State::CallNote* State::note_of(std::string_view node) const {
  const std::uint32_t name = node.empty() ? 0 : model().names.find(node);
  if (name == 0 || name >= node_by_name.size() || node_by_name[name] == NodeId::kNone) return nullptr;
  return &notes[static_cast<std::size_t>(node_by_name[name])];
}

Finding State::to_public(const tensorlint::findings::Finding& found) const {
  const auto place_at = [&](std::string_view node, const tensorlint::findings::SourceLocation& place) {
    if (const CallNote* note = note_of(node)) return place_of(note->at);
    return Place{place.file, place.line, place.column, place.source};
  };
  Finding out{.code = std::string(found.code),
              .rule = std::string(found.rule),
              .severity = static_cast<Severity>(found.severity),
              .must = found.certainty == ops::Certainty::kMust,
              .message = found.message,
              .node = found.node,
              .op = found.op,
              .value = found.value,
              .module = found.module,
              .place = place_at(found.node, found.place),
              .notes = {},
              .fixes = {}};
  for (const tensorlint::findings::Note& note : found.notes)
    out.notes.push_back({note.message, place_at(note.node, note.place)});
  if (!found.witness.empty()) out.notes.push_back({found.witness, {}});
  for (const tensorlint::findings::Fix& fix : found.fixes) out.fixes.push_back(fix.message);
  return out;
}

const std::vector<std::string>& State::lines_of(std::string_view file) const {
  constexpr std::size_t kMaxLines = 1'000'000;
  const auto known = sources.find(file);
  if (known != sources.end()) return known->second;
  std::vector<std::string>& lines = sources[std::string(file)];
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return lines;
  std::ifstream in{std::string(file)};
  for (std::string line; lines.size() < kMaxLines && std::getline(in, line);) lines.push_back(std::move(line));
  return lines;
}

Place State::place_of(const Location& at) const {
  Place place{.file = at.file_name(), .line = at.line(), .column = at.column(), .source = {}};
  const std::vector<std::string>& lines = lines_of(place.file);
  if (place.line >= 1 && place.line <= lines.size()) place.source = lines[place.line - 1];
  return place;
}

}  // namespace tensorlint::builder
