#include "tensorlint/builder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "analyzer/builder/state.h"
#include "base/escape.h"
#include "ir/schema/schema.h"
#include "ir/writers/onnx/model_writer.h"

namespace tensorlint::builder {
namespace {

std::string_view to_text(Severity severity) {
  return tensorlint::findings::to_text(static_cast<tensorlint::findings::Severity>(severity));
}

std::string lined(const Place& place) {
  return place.file.empty() ? std::string() : fmt::format("{}:{}: ", place.file, place.line);
}

/// Writes all bytes and closes; 0, or the error's number.
int write_all(int file, std::string_view bytes) {
  int error = 0;
  while (!bytes.empty() && error == 0) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

Misuse::Misuse(const std::source_location& location, const std::string& message)
    : std::invalid_argument(fmt::format("{}:{}: {}", location.file_name(), location.line(), message)),
      location_(location),
      message_(message) {}

Data Data::raw(DType dtype, std::vector<std::int64_t> dims, std::string bytes) {
  Data data;
  data.dtype_ = dtype;
  data.dims_ = std::move(dims);
  data.bytes_ = std::move(bytes);
  return data;
}

std::string Finding::to_text() const {
  std::string text = fmt::format("{}{}: {} [{} {}]\n", lined(place), builder::to_text(severity),
                                 escape_for_display(message, 2000), code, rule);
  if (!place.source.empty()) text += fmt::format("    {}\n", escape_for_display(place.source));
  if (!module.empty()) text += fmt::format("    in module `{}`\n", escape_for_display(module));
  for (const Note& note : notes)
    text += fmt::format("{}note: {}\n", lined(note.place), escape_for_display(note.message, 2000));
  for (const std::string& fix : fixes) text += fmt::format("fix: {}\n", escape_for_display(fix, 2000));
  return text;
}

// ---- values

std::string Value::name() const {
  return state_ == nullptr ? std::string() : std::string(state_->model().name_of(State::id_of(*this)));
}

std::optional<DType> Value::dtype() const {
  return state_ == nullptr ? std::nullopt : state_->fact(*this).dtypes.single();
}

std::optional<std::size_t> Value::rank() const {
  if (state_ == nullptr) return std::nullopt;
  const Fact& fact = state_->fact(*this);
  if (fact.kind != ValueKind::kTensor || !state_->facts().is_ranked(fact.shape)) return std::nullopt;
  return state_->facts().dims_of(fact.shape).size();
}

std::optional<std::vector<std::string>> Value::shape() const {
  if (!rank()) return std::nullopt;
  const FactStore& facts = state_->facts();
  std::vector<std::string> dims;
  for (const Dim dim : facts.dims_of(state_->fact(*this).shape)) dims.push_back(facts.dims().to_text(dim));
  return dims;
}

std::optional<std::int64_t> Value::extent(std::int64_t axis) const {
  if (!rank()) return std::nullopt;
  const FactStore& facts = state_->facts();
  const auto dims = facts.dims_of(state_->fact(*this).shape);
  const auto rank = static_cast<std::int64_t>(dims.size());
  if (axis < -rank || axis >= rank) return std::nullopt;
  return facts.dims().as_constant(dims[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)]);
}

std::vector<std::string> Value::devices() const {
  if (state_ == nullptr) return {};
  const ValueId id = State::id_of(*this);
  // Calls in a row decide it, or the value lives in a body that is not complete.
  const auto device = state_->devices.device(id);
  if (device != tensorlint::placement::GrowingDevices::kUnknown) return {std::string(state_->devices.name(device))};
  return state_->placement().placement().devices(id);
}

std::string Value::to_text() const {
  return state_ == nullptr ? "absent" : state_->facts().to_text(state_->analysis().fact_id(State::id_of(*this)));
}

// ---- inputs, constants, operators

Builder::Builder(Options options, Location at) : state_(std::make_unique<State>(std::move(options), at)) {}
Builder::~Builder() = default;

Value Builder::input(std::string_view name, DType dtype, Shape shape, std::string_view device, Location at) {
  return state_->add_input(name, dtype, shape, std::nullopt, device, false, at);
}

Value Builder::parameter(std::string_view name, DType dtype, Shape shape, std::string_view device, bool requires_grad,
                         Location at) {
  return state_->add_input(name.empty() ? "" : state_->scoped(name), dtype, shape, std::nullopt, device, requires_grad,
                           at);
}

Value Builder::parameter(std::string_view name, Data initial, std::string_view device, bool requires_grad,
                         Location at) {
  State::check_data(initial, at);
  const Shape shape(initial.dims().begin(), initial.dims().end());
  const DType dtype = initial.dtype();
  return state_->add_input(name.empty() ? "" : state_->scoped(name), dtype, shape, std::move(initial), device,
                           requires_grad, at);
}

Value Builder::constant(Data data, std::string_view name, std::string_view device, Location at) {
  return state_->add_constant(std::move(data), name, device, at);
}

void Builder::import(std::string_view domain, std::int64_t version, Location at) {
  if (normalised_domain(domain).empty())
    State::misuse(at, "the opset of ONNX's own operators is one of the builder's options");
  if (version < 1) State::misuse(at, fmt::format("`{}` has no version {}", domain, version));
  const auto known = state_->imports.find(domain);
  if (known != state_->imports.end() && known->second != version)
    State::misuse(at, fmt::format("`{}` is imported in version {} already", domain, known->second));
  if (known != state_->imports.end()) return;
  state_->imports.emplace(domain, version);
  state_->recording.import(domain, version);
}

Scope Builder::scope(std::string_view name, Location at) { return {state_.get(), name, at}; }

Scope::Scope(State* state, std::string_view name, std::source_location at) : state_(state), depth_(state->scope) {
  if (name.empty()) State::misuse(at, "a scope needs a name");
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\'' || c == '"'; }))
    State::misuse(at, "the name of a scope has a quote or a control character");
  const State::ScopeNames& outer = state->scopes[state->scope];
  const std::string path = outer.prefix + std::string(name);
  // As PyTorch's exporter writes the modules around a node.
  const std::string modules = fmt::format("{}'{}', ", outer.modules.empty() ? "['', " : outer.modules, path);
  state->scopes.push_back({path + ".", modules});
  state->scope = static_cast<std::uint32_t>(state->scopes.size() - 1);
}

Scope::~Scope() { state_->scope = static_cast<std::uint32_t>(depth_); }

Value Builder::op(std::string_view name, std::vector<Value> operands, Call call, Location at) {
  if (call.results != 1) State::misuse(at, fmt::format("{} with {} results: use ops()", name, call.results));
  return state_->handle(state_->add_call(name, operands, call, {}, at)[0]);
}

std::vector<Value> Builder::ops(std::string_view name, std::vector<Value> operands, Call call, Location at) {
  std::vector<Value> results;
  for (const ValueId result : state_->add_call(name, operands, call, {}, at)) results.push_back(state_->handle(result));
  return results;
}

Value Builder::add(Value a, Value b, Location at) { return state_->call("Add", {a, b}, {}, at); }
Value Builder::sub(Value a, Value b, Location at) { return state_->call("Sub", {a, b}, {}, at); }
Value Builder::mul(Value a, Value b, Location at) { return state_->call("Mul", {a, b}, {}, at); }
Value Builder::div(Value a, Value b, Location at) { return state_->call("Div", {a, b}, {}, at); }
Value Builder::matmul(Value a, Value b, Location at) { return state_->call("MatMul", {a, b}, {}, at); }
Value Builder::relu(Value x, Location at) { return state_->call("Relu", {x}, {}, at); }
Value Builder::sigmoid(Value x, Location at) { return state_->call("Sigmoid", {x}, {}, at); }
Value Builder::softmax(Value x, std::int64_t axis, Location at) {
  return state_->call("Softmax", {x}, {{"axis", axis}}, at);
}
Value Builder::log_softmax(Value x, std::int64_t axis, Location at) {
  return state_->call("LogSoftmax", {x}, {{"axis", axis}}, at);
}
Value Builder::cast(Value x, DType to, Location at) { return state_->call("Cast", {x}, {{"to", to}}, at); }

Value Builder::transpose(Value x, std::vector<std::int64_t> perm, Location at) {
  return state_->call("Transpose", {x}, {{"perm", std::move(perm)}}, at);
}

Value Builder::linear(Value x, Value weight, Value bias, Location at) {
  state_->check_operand(x, "the operand of linear", at);
  state_->check_operand(weight, "the weight of linear", at);
  Composite call(*state_);
  if (x.rank() == 2) {
    const Value y = op("Gemm", {x, weight, bias}, {.attributes = {{"transB", 1}}, .name = "linear"}, at);
    call.finish();
    return y;
  }
  Value y = op("MatMul", {x, transpose(weight, {1, 0}, at)}, {.name = "linear"}, at);
  if (bias) y = add(y, bias, at);
  call.finish();
  return y;
}

Value Builder::reduce(std::string_view name, Value x, std::vector<std::int64_t> axes, bool keepdims, Location at) {
  state_->check_operand(x, [&] { return fmt::format("the operand of {}", name); }, at);
  Call call{.attributes = {{"keepdims", keepdims ? 1 : 0}}};
  std::vector<Value> operands{x};
  const OpSchema* schema = find_schema("", name, static_cast<int>(state_->options.opset));
  if (!axes.empty()) {
    // The axes were an attribute before opset 18 (ReduceSum: 13).
    if (schema != nullptr && schema->input_index("axes") >= 0) {
      const auto count = static_cast<std::int64_t>(axes.size());
      operands.push_back(constant(Data(axes, {count}), "", "", at));
    } else {
      call.attributes.emplace_back("axes", std::move(axes));
    }
  }
  return op(name, std::move(operands), std::move(call), at);
}

Value Builder::reduce_mean(Value x, std::vector<std::int64_t> axes, bool keepdims, Location at) {
  return reduce("ReduceMean", x, std::move(axes), keepdims, at);
}
Value Builder::reduce_sum(Value x, std::vector<std::int64_t> axes, bool keepdims, Location at) {
  return reduce("ReduceSum", x, std::move(axes), keepdims, at);
}
Value Builder::reduce_max(Value x, std::vector<std::int64_t> axes, bool keepdims, Location at) {
  return reduce("ReduceMax", x, std::move(axes), keepdims, at);
}
Value Builder::reduce_min(Value x, std::vector<std::int64_t> axes, bool keepdims, Location at) {
  return reduce("ReduceMin", x, std::move(axes), keepdims, at);
}

Value Builder::arg_max(Value x, std::int64_t axis, bool keepdims, Location at) {
  return state_->call("ArgMax", {x}, {{"axis", axis}, {"keepdims", keepdims ? 1 : 0}}, at);
}

Value Builder::transfer(Value x, std::string_view device, Location at) {
  state_->check_operand(x, "the operand of transfer", at);
  if (device.empty()) State::misuse(at, "transfer needs a device; write cpu, cuda:0, ...");
  return op("Transfer", {x}, {.attributes = {{"device", state_->canonical(device, at)}}, .domain = "tensorlint"}, at);
}

// ---- bodies

namespace {

/// Runs the caller's function inside a body; an exception leaves the builder outside of it.
template <typename Run>
GraphId inside(State& state, std::string_view name, const Run& run) {
  const std::uint32_t scope = state.scope;
  state.open_body(name);
  const GraphId body = state.recording.current();
  try {
    run();
  } catch (...) {
    state.abandon_body(body);
    state.scope = scope;
    throw;
  }
  return body;
}

/// Before a body is complete: then there has to be a call for it.
void check_result_count(std::size_t results, const char* none, std::source_location at) {
  if (results == 0) State::misuse(at, none);
  if (results > State::kMaxResults) State::misuse(at, fmt::format("a call gives 1 to 1,024 results, not {}", results));
}

}  // namespace

std::vector<Value> Builder::if_(Value condition, const std::function<std::vector<Value>()>& then_branch,
                                const std::function<std::vector<Value>()>& else_branch, Location at) {
  State& state = *state_;
  state.check_operand(condition, "the condition of an If", at);
  if (!then_branch || !else_branch) State::misuse(at, "a branch of an If has no function");
  std::vector<std::pair<std::string_view, GraphId>> bodies;
  std::size_t results = 0;
  const auto add_branch = [&](std::string_view name, const std::function<std::vector<Value>()>& branch) {
    const GraphId body = inside(state, name, [&] {
      const std::vector<Value> outputs = branch();
      if (bodies.size() == 1 && outputs.size() != results)
        State::misuse(at, fmt::format("the branches of an If give {} and {} values", results, outputs.size()));
      check_result_count(outputs.size(), "the branches of an If give no values", at);
      results = outputs.size();
      state.close_body(outputs, at);
    });
    bodies.emplace_back(name, body);
  };
  add_branch("then_branch", then_branch);
  try {
    add_branch("else_branch", else_branch);
  } catch (...) {
    state.abandon_body(bodies.front().second);
    throw;
  }
  std::vector<Value> made;
  for (const ValueId result : state.add_call("If", std::span(&condition, 1), {.results = results}, bodies, at))
    made.push_back(state.handle(result));
  return made;
}

std::vector<Value> Builder::loop(Value trips, Value condition, std::vector<Value> carried,
                                 const std::function<LoopResult(const LoopStep&)>& body, Location at) {
  State& state = *state_;
  if (!body) State::misuse(at, "the body of a Loop has no function");
  if (trips) state.check_operand(trips, "the trip count of a Loop", at);
  if (condition) state.check_operand(condition, "the condition of a Loop", at);
  for (const Value& value : carried) state.check_operand(value, "a carried value of a Loop", at);
  std::size_t results = 0;
  const GraphId graph = inside(state, "body", [&] {
    const auto scalar = [&](DType dtype) {
      Fact fact;
      fact.kind = ValueKind::kTensor;
      fact.dtypes = dtype;
      fact.shape = state.facts().intern_shape({});
      fact.range = range_of(fact.dtypes);
      return state.facts().intern(fact);
    };
    constexpr auto kCpu = tensorlint::placement::GrowingDevices::kCpu;
    LoopStep step{.iteration = state.add_body_input("iteration", scalar(DType::kInt64), kCpu),
                  .condition = state.add_body_input("condition", scalar(DType::kBool), kCpu)};
    for (const Value& value : carried) {
      // Of the first value only what does not depend on its elements.
      Fact fact = state.fact(value);
      fact.content = ContentId::kNone;
      fact.range = range_of(fact.dtypes);
      const auto device = state.devices.device(State::id_of(value));
      step.carried.push_back(state.add_body_input(value.name() + "_carried", state.facts().intern(fact), device));
    }
    LoopResult result = body(step);
    if (result.carried.size() != carried.size())
      State::misuse(at, fmt::format("the body of a Loop takes {} carried values and gives {}", carried.size(),
                                    result.carried.size()));
    std::vector<Value> outputs{result.condition ? result.condition : step.condition};
    outputs.insert(outputs.end(), result.carried.begin(), result.carried.end());
    outputs.insert(outputs.end(), result.stacked.begin(), result.stacked.end());
    results = outputs.size() - 1;
    check_result_count(results, "a Loop without carried values and scan outputs gives nothing", at);
    state.close_body(outputs, at);
  });
  std::vector<Value> operands{trips, condition};
  operands.insert(operands.end(), carried.begin(), carried.end());
  const std::pair<std::string_view, GraphId> bodies[] = {{"body", graph}};
  std::vector<Value> made;
  for (const ValueId result : state.add_call("Loop", operands, {.results = results}, bodies, at))
    made.push_back(state.handle(result));
  return made;
}

// ---- the whole graph

Value Builder::output(Value value, std::string_view name, Location at) {
  State& state = *state_;
  state.check_operand(value, "an output", at);
  if (state.recording.current() != GraphId::kMain)
    State::misuse(at, "outputs of the graph are named outside of its bodies, which return values as results");
  if (!name.empty() && value.name() != name && state.is_taken(name))
    State::misuse(at, fmt::format("there is a value `{}` already", name));
  const tensorlint::Value& known = state.model().value(State::id_of(value));
  if (known.origin != ValueOrigin::kNode || known.is_output) {
    // The outputs of a model are called what its users call them, whatever module they come from.
    const std::uint32_t scope = std::exchange(state.scope, 0);
    const auto restore = [&state, scope](void*) { state.scope = scope; };
    const std::unique_ptr<void, decltype(restore)> restored(&state, restore);
    value = op("Identity", {value}, {.name = std::string(name.empty() ? "output" : name)}, at);
  }
  const ValueId id = State::id_of(value);
  // The old name stays taken: the node keeps it.
  if (!name.empty() && value.name() != name) state.recording.rename(id, state.recording.intern(name));
  state.recording.add_output(id);
  ++state.edits;
  return value;
}

const std::vector<Finding>& Builder::findings() const { return state_->findings; }

std::vector<Finding> Builder::check() const { return state_->check(); }

std::string Builder::serialized(Location at) const {
  if (state_->recording.current() != GraphId::kMain) State::misuse(at, "a graph is written outside of its bodies");
  const Result<EditedBytes> bytes = write_onnx(state_->complete());
  if (!bytes) throw std::length_error(bytes.error().message);
  return bytes->joined();
}

void Builder::write(const std::string& path, Location at) const {
  const std::string bytes = serialized(at);
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) throw std::system_error(errno, std::generic_category(), path);
  int error = write_all(file, bytes);
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  throw std::system_error(error, std::generic_category(), path);
}

}  // namespace tensorlint::builder
