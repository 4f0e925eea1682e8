#include "analyzer/builder/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "analyzer/builder/to_model.h"
#include "analyzer/pipeline/pipeline.h"
#include "base/hash.h"
#include "ir/ops/device_rule.h"
#include "passes/placement/device_name.h"

namespace tensorlint::builder {
namespace {

constexpr std::size_t kMaxReports = 100;  // each analyses the graph so far
constexpr std::uint64_t kSite = 0xb17d;   // our fresh symbols are none of the solver's

/// "MatMul" -> "mat_mul", the way values are named.
std::string snake_case(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (upper && !text.empty() && std::islower(static_cast<unsigned char>(text.back())) != 0) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

/// "['', 'encoder', 'encoder.layers.0', ", as PyTorch's exporter writes the modules around a node.
std::string scope_text(const std::vector<std::string>& scopes) {
  if (scopes.empty()) return {};
  std::string text = "['', ", path;
  for (const std::string& scope : scopes) {
    path += (path.empty() ? "" : ".") + scope;
    text += fmt::format("'{}', ", path);
  }
  return text;
}

bool is_control_flow(const State::Step& step) { return !step.bodies.empty(); }

/// Devices by name, as infer_device asks for them. Where two differ the rules decide who is wrong.
struct GuessedDevices {
  using Device = std::string;
  bool differ = false;
  static Device host() { return "cpu"; }
  static Device unknown() { return "cpu"; }
  Device meet(const Device& a, const Device& b) {
    differ = differ || a != b;
    return a;
  }
  Device meet_host(const Device& data, const Device& operand) { return operand == host() ? data : meet(data, operand); }
  static Device same_or_anywhere(const Device& a, const Device&) { return a; }
};

}  // namespace

State::State(Options given, Location at)
    : options(std::move(given)), own_store(std::make_unique<FactStore>()), store(own_store.get()) {
  if (options.opset < 7 || options.opset > newest_opset(""))
    misuse(at, fmt::format("opset {} is not one of 7 to {}", options.opset, newest_opset("")));
  const auto device = placement::canonical_device(options.default_device);
  if (!device) misuse(at, fmt::format("`{}` is not a device; write cpu, cuda:0, ...", options.default_device));
  if (options.graph_name.empty()) misuse(at, "the graph needs a name");
  options.default_device = *device;
  bodies.push_back({.name = options.graph_name});
}

void State::misuse(Location at, const std::string& message) { throw Misuse(at, message); }

std::string State::canonical(std::string_view device, Location at) const {
  if (device.empty()) return {};
  const auto name = placement::canonical_device(device);
  if (!name) misuse(at, fmt::format("`{}` is not a device; write cpu, cuda:0, ...", device));
  return *name;
}

std::string State::unused_name(std::string_view base) {
  std::string name(base);
  while (names.contains(name)) name = fmt::format("{}_{}", base, ++next_number[std::string(base)]);
  return name;
}

std::int64_t State::version(std::string_view domain) const {
  if (domain.empty()) return options.opset;
  const auto given = imports.find(domain);
  return given != imports.end() ? given->second : std::max(newest_opset(domain), 1);
}

std::uint32_t State::add_item(Item item) {
  names.insert(item.name);
  items.push_back(std::move(item));
  ++edits;
  return static_cast<std::uint32_t>(items.size() - 1);
}

Value State::add_input(std::string_view name, DType dtype, Shape shape, std::shared_ptr<const Data> initial,
                       std::string_view device, bool trained, Location at) {
  if (name.empty()) misuse(at, "an input needs a name");
  if (names.contains(std::string(name))) misuse(at, fmt::format("there is a value `{}` already", name));
  if (current != 0) misuse(at, fmt::format("`{}` is an input of the whole graph and cannot be added in a body", name));
  if (!is_known_dtype(static_cast<std::int64_t>(dtype))) misuse(at, fmt::format("`{}` needs a dtype", name));
  Fact fact;
  fact.kind = ValueKind::kTensor;
  fact.dtypes = dtype;
  fact.range = range_of(fact.dtypes);
  std::vector<Dim> dims;
  for (const Extent& extent : shape) {
    if (extent.is_named() && extent.name().empty())
      misuse(at, fmt::format("an extent of `{}` has an empty name", name));
    if (!extent.is_named() && extent.number() < 0)
      misuse(at, fmt::format("`{}` has the extent {}", name, extent.number()));
    dims.push_back(extent.is_named() ? facts().dims().symbol(extent.name()) : facts().dims().constant(extent.number()));
  }
  fact.shape = facts().intern_shape(dims);
  Item item{.name = std::string(name),
            .data = std::move(initial),
            .dtype = dtype,
            .shape = std::move(shape),
            .device = canonical(device, at),
            .trained = trained};
  if (item.device.empty() && options.default_device != "cpu") item.device = options.default_device;
  uses_devices = uses_devices || !item.device.empty();
  item.guessed_device = item.device.empty() ? "cpu" : item.device;
  item.fact = facts().intern(fact);
  const std::uint32_t index = add_item(std::move(item));
  bodies[0].inputs.push_back(index);
  return handle(index);
}

Value State::add_constant(Data data, std::string_view given, std::string_view device, Location at) {
  const std::string name = given.empty() ? std::string() : scoped(given);
  if (!name.empty() && names.contains(name)) misuse(at, fmt::format("there is a value `{}` already", name));
  check_data(data, at);
  Item item{.name = name.empty() ? unused_name(scoped("constant")) : name,
            .origin = Origin::kConstant,
            .data = std::make_shared<const Data>(std::move(data))};
  item.device = canonical(device, at);
  if (item.device.empty() && options.default_device != "cpu") item.device = options.default_device;
  uses_devices = uses_devices || !item.device.empty();
  item.guessed_device = item.device.empty() ? "cpu" : item.device;
  // A Constant node's own inference says what is known of the elements.
  const Tensor tensor = tensor_of(*item.data, NameId::kEmpty);
  Attribute value;
  value.name = "value";
  value.kind = AttributeKind::kTensor;
  value.tensor = &tensor;
  const Application call{.domain = {},
                         .name = "Constant",
                         .opset = options.opset,
                         .schema = find_schema("", "Constant", static_cast<int>(options.opset)),
                         .attributes = {&value, 1},
                         .operands = {},
                         .operand_taints = {},
                         .results = {},
                         .result_count = 1,
                         .facts = store,
                         .site = mix(kSite, items.size()) | 1};
  ops::InferenceResult result;
  ops::infer(call, ops::find_entry("", "Constant", options.opset), result);
  item.fact = result.results[0];
  const std::uint32_t index = add_item(std::move(item));
  constants.push_back(index);
  return handle(index);
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

void State::check_operand(Value value, std::string_view what, Location at) const {
  if (!value) misuse(at, fmt::format("{} is absent", what));
  if (value.state_ != this) misuse(at, fmt::format("{} belongs to another builder", what));
  if (!is_visible(value.index_))
    misuse(at,
           fmt::format("`{}` belongs to a body that is complete: return it as a result of the body", item(value).name));
}

bool State::is_visible(std::uint32_t index) const {
  for (std::uint32_t body = current; body != kNone; body = bodies[body].parent)
    if (body == items[index].graph) return true;
  return false;
}

std::string State::scoped(std::string_view name) const {
  std::string text;
  for (const std::string& scope : scopes) text += scope + ".";
  return text += name;
}

Value State::call(std::string_view op, const std::vector<Value>& operands, std::vector<Attr> attributes, Location at) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    check_operand(operands[i], fmt::format("operand {} of {}", i, op), at);
  return add_step(op, operands, {.attributes = std::move(attributes)}, {}, at)[0];
}

std::vector<Value> State::add_step(std::string_view op, const std::vector<Value>& operands, Call call,
                                   std::vector<BodyAttribute> attached, Location at) {
  if (op.empty()) misuse(at, "an operator needs a name");
  if (call.results == 0 || call.results > 1024)
    misuse(at, fmt::format("a call gives 1 to 1,024 results, not {}", call.results));
  Step step{.op = std::string(op),
            .domain = call.domain == "ai.onnx" ? "" : std::move(call.domain),
            .name = {},
            .device = canonical(call.device, at),
            .operands = {},
            .results = {},
            .attributes = std::move(call.attributes),
            .bodies = std::move(attached),
            .scopes = scope_text(scopes),
            .metadata = loss_metadata,
            .at = at};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i]) check_operand(operands[i], fmt::format("operand {} of {}", i, op), at);
    step.operands.push_back(index_of(operands[i]));
  }
  while (!step.operands.empty() && step.operands.back() == kNone) step.operands.pop_back();
  std::set<std::string_view> attribute_names;
  for (const Attr& attribute : step.attributes) {
    if (attribute.name().empty()) misuse(at, fmt::format("an attribute of {} has no name", op));
    if (!attribute_names.insert(attribute.name()).second)
      misuse(at, fmt::format("{} is given the attribute `{}` twice", op, attribute.name()));
  }
  for (const Attr& attribute : step.attributes)
    if (const Data* data = std::get_if<Data>(&attribute.payload())) check_data(*data, at);
  if (step.operands.empty() && step.bodies.empty() && step.device.empty() && options.default_device != "cpu")
    step.device = options.default_device;
  const ops::OpEntry* entry = ops::find_entry(step.domain, step.op, version(step.domain));
  const bool moves = entry != nullptr && entry->device_rule() == ops::DeviceRule::kArgument;
  uses_devices = uses_devices || !step.device.empty() || moves;

  const std::string base = scoped(call.name.empty() ? snake_case(op) : call.name);
  const auto index = static_cast<std::uint32_t>(steps.size());
  std::vector<Value> results;
  for (std::size_t r = 0; r < call.results; ++r) {
    Item item{.name = unused_name(r == 0 ? base : fmt::format("{}_{}", base, r)),
              .origin = Origin::kResult,
              .graph = current,
              .node = index};
    step.results.push_back(add_item(std::move(item)));
    results.push_back(handle(step.results.back()));
  }
  step.name = items[step.results[0]].name;
  step_by_name.emplace(step.name, index);
  bodies[current].steps.push_back(index);
  steps.push_back(std::move(step));
  if (!is_control_flow(steps.back())) {
    infer_step(index);
    if (composite_depth == 0) finish_call(index, false);
  }
  return results;
}

void State::infer_step(std::uint32_t index) {
  const Step& step = steps[index];
  const std::int64_t opset = version(step.domain);
  const ops::OpEntry* entry = ops::find_entry(step.domain, step.op, opset);
  std::vector<FactId> operands;
  std::vector<Taint> taints;
  for (const std::uint32_t operand : step.operands) {
    operands.push_back(operand == kNone ? FactId::kAbsent : items[operand].fact);
    taints.push_back(operand == kNone ? Taint() : items[operand].taint);
  }
  const AttributeViews attributes(step.attributes);
  const Application call{.domain = step.domain,
                         .name = step.op,
                         .opset = opset,
                         .schema = find_schema(step.domain, step.op, static_cast<int>(opset)),
                         .attributes = attributes.views(),
                         .operands = operands,
                         .operand_taints = taints,
                         .results = {},
                         .result_count = static_cast<std::uint32_t>(step.results.size()),
                         .facts = store,
                         .site = mix(mix(kSite, index), 1) | 1};
  ops::InferenceResult result;
  ops::infer(call, entry, result);
  for (std::size_t r = 0; r < step.results.size(); ++r) {
    items[step.results[r]].fact = result.results[r];
    items[step.results[r]].taint = result.taints[r];
  }
  pending_failure = pending_failure || !result.violations.empty();
  if (uses_devices) guess_device(step, call.schema, entry);
}

void State::guess_device(const Step& step, const OpSchema* schema, const ops::OpEntry* entry) {
  const ops::DeviceSignature signature = device_signature(schema, entry);
  std::optional<std::string> own;
  if (!step.device.empty()) own = step.device;
  if (signature.rule == ops::DeviceRule::kArgument)
    for (const Attr& attribute : step.attributes)
      if (const auto* text = std::get_if<std::string>(&attribute.payload());
          text != nullptr && attribute.name() == "device")
        own = *text;
  GuessedDevices devices;
  const auto device_of = [&](std::size_t i) {
    return step.operands[i] == kNone ? std::nullopt : std::optional(items[step.operands[i]].guessed_device);
  };
  const std::string device =
      infer_device(signature, devices, own, step.operands.size(), device_of, [&] { return options.default_device; });
  pending_failure = pending_failure || devices.differ;
  for (const std::uint32_t result : step.results) items[result].guessed_device = device;
}

std::uint32_t State::open_body(std::string_view name) {
  bodies.push_back({.name = unused_name(name), .parent = current});
  names.insert(bodies.back().name);
  current = static_cast<std::uint32_t>(bodies.size() - 1);
  ++edits;
  return current;
}

Value State::add_body_input(std::string_view name, FactId fact, std::string_view device) {
  Item item{.name = unused_name(name), .origin = Origin::kBodyInput, .graph = current};
  item.guessed_device = device;
  item.fact = fact;
  const std::uint32_t index = add_item(std::move(item));
  bodies[current].inputs.push_back(index);
  return handle(index);
}

void State::close_body(const std::vector<Value>& outputs, Location at) {
  Body& body = bodies[current];
  for (const Value value : outputs) {
    check_operand(value, "a result of a body", at);
    std::uint32_t index = value.index_;
    // Each output of a graph is a value of its own: what comes from outside, or twice, is copied.
    if (items[index].graph != current || items[index].origin == Origin::kConstant ||
        items[index].origin == Origin::kBodyInput || std::ranges::find(body.outputs, index) != body.outputs.end())
      index = add_step("Identity", {value}, {}, {}, at)[0].index_;
    bodies[current].outputs.push_back(index);
  }
  bodies[current].open = false;
  current = bodies[current].parent;
  ++edits;
}

const State::Snapshot& State::snapshot() {
  if (latest != nullptr && latest_edits == edits) return *latest;
  auto made = std::make_unique<Snapshot>();
  made->model = to_model(*this, /*declare_types=*/false, &made->graphs);
  made->analysis = std::make_unique<dataflow::Analysis>(dataflow::analyse(made->model, {}));
  for (Item& item : items) {
    const ValueId value = made->model.find_value(made->graphs[item.graph], item.name);
    item.fact = value == ValueId::kAbsent ? FactId::kTop : made->analysis->fact_id(value);
    item.taint = value == ValueId::kAbsent ? Taint() : made->analysis->taint(value);
  }
  store = &made->analysis->facts();
  latest = std::move(made);
  latest_edits = edits;
  own_store.reset();
  return *latest;
}

const tensorlint::placement::Placement& State::placement() {
  snapshot();
  if (latest->placement == nullptr)
    latest->placement = std::make_unique<tensorlint::placement::Placement>(placement::place(*latest->analysis, {}));
  return *latest->placement;
}

void State::finish_call(std::uint32_t first, bool look_closely) {
  if (composite_depth > 0) return;
  const bool looks_wrong = std::exchange(pending_failure, false);
  if ((looks_wrong || look_closely) && reports < kMaxReports) report_from(first);
}

void State::report_from(std::uint32_t first) {
  snapshot();
  const pipeline::CheckResults results = pipeline::Pipeline(*latest->analysis, {}).check();
  std::vector<Finding> found;
  for (const tensorlint::findings::Finding& finding : results.findings) {
    const auto step = step_by_name.find(finding.node);
    // What nothing uses may be used by the next call: only mistakes of the call itself are told here.
    if (step == step_by_name.end() || step->second < first || finding.severity == tensorlint::findings::Severity::kInfo)
      continue;
    if (!said.insert(fmt::format("{} {}", finding.code, finding.node)).second) continue;
    found.push_back(to_public(finding));
  }
  if (!found.empty()) ++reports;
  findings.insert(findings.end(), found.begin(), found.end());
  if (options.on_finding)
    for (const Finding& finding : found) options.on_finding(finding);
}

Finding State::to_public(const tensorlint::findings::Finding& found) const {
  const auto place_at = [](const tensorlint::findings::SourceLocation& place) {
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
              .place = place_at(found.place),
              .notes = {},
              .fixes = {}};
  if (const auto step = step_by_name.find(found.node); step != step_by_name.end())
    out.place = place_of(steps[step->second].at);
  for (const tensorlint::findings::Note& note : found.notes) {
    const auto step = step_by_name.find(note.node);
    out.notes.push_back(
        {note.message, step == step_by_name.end() ? place_at(note.place) : place_of(steps[step->second].at)});
  }
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
