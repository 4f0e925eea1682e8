// Calls of the builder that are more than a node of the same name.
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/builder/numbers.h"
#include "analyzer/builder/state.h"

namespace tensorlint::builder {
namespace {

/// A value and the axis of it that has some extent.
struct AxisOf {
  ValueId value;
  std::int64_t axis;
};

/// The first axis of a value whose extent is called `name`.
std::optional<AxisOf> axis_called(State& state, ValueId value, const std::string& name) {
  const FactStore& facts = state.facts();
  const Fact& fact = state.analysis().fact(value);
  if (fact.kind != ValueKind::kTensor || !facts.is_ranked(fact.shape)) return std::nullopt;
  const std::span<const Dim> dims = facts.dims_of(fact.shape);
  for (std::size_t axis = 0; axis < dims.size(); ++axis)
    if (!dims[axis].is_unknown() && facts.dims().to_text(dims[axis]) == name)
      return AxisOf{value, static_cast<std::int64_t>(axis)};
  return std::nullopt;
}

/// Where a name of an extent can be read from: the reshaped value, an input, or any other value that is visible here.
std::optional<AxisOf> find_extent(State& state, const Value& x, const std::string& name) {
  if (const auto own = axis_called(state, State::id_of(x), name)) return own;
  for (const ValueId input : state.model().graph(GraphId::kMain).inputs)
    if (const auto found = axis_called(state, input, name)) return found;
  for (std::size_t v = 1; v < state.model().values.size(); ++v)
    if (const auto value = static_cast<ValueId>(v); state.recording.is_visible(value))
      if (const auto found = axis_called(state, value, name)) return found;
  return std::nullopt;
}

}  // namespace

Value Builder::reshape(Value x, Dims dims, Location at) {
  State& state = *state_;
  state.check_operand(x, "the operand of reshape", at);
  const std::size_t count = dims.extents().size();
  std::vector<std::optional<AxisOf>> sources(count);  // of the names that are read at run time
  const std::optional<std::vector<std::string>> own = x.shape();
  for (std::size_t i = 0; i < count; ++i) {
    const Extent& extent = dims.extents()[i];
    if (!extent.is_named() || (own && i < own->size() && (*own)[i] == extent.name())) continue;
    sources[i] = find_extent(state, x, extent.name());
    if (!sources[i])
      State::misuse(at, fmt::format("reshape to `{}`: no axis of any value has that extent", extent.name()));
  }
  Composite call(state);
  std::vector<Value> parts;
  std::vector<std::int64_t> numbers;  // that come next, not in a part yet
  const auto flush = [&] {
    const auto size = static_cast<std::int64_t>(numbers.size());
    parts.push_back(constant(Data(numbers, {size}), "", "", at));
    numbers.clear();
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (!sources[i]) {
      // Of an axis that has that name already, Reshape copies the extent: 0.
      numbers.push_back(dims.extents()[i].number());
      continue;
    }
    if (!numbers.empty()) flush();
    const Value shape = state.call("Shape", {state.handle(sources[i]->value)}, {}, at);
    const Value index = constant(Data({sources[i]->axis}, {1}), "", "", at);
    parts.push_back(state.call("Gather", {shape, index}, {{"axis", 0}}, at));
  }
  if (!numbers.empty() || parts.empty()) flush();
  const Value target = parts.size() == 1 ? parts.front() : state.call("Concat", parts, {{"axis", 0}}, at);
  const Value y = state.call("Reshape", {x, target}, {}, at);
  call.finish();
  return y;
}

Value Builder::gather(Value x, Value indices, std::int64_t axis, Location at) {
  return state_->call("Gather", {x, indices}, {{"axis", axis}}, at);
}

Value Builder::concat(std::vector<Value> values, std::int64_t axis, Location at) {
  if (values.empty()) State::misuse(at, "concat needs at least one value");
  return state_->call("Concat", values, {{"axis", axis}}, at);
}

Value Builder::conv(Value x, Value weight, Value bias, ConvOptions options, Location at) {
  State& state = *state_;
  state.check_operand(weight, "the weight of conv", at);
  std::vector<Attr> attributes;
  const auto add = [&](const char* name, std::vector<std::int64_t> value) {
    if (!value.empty()) attributes.emplace_back(name, std::move(value));
  };
  // One padding an axis means both sides, as in PyTorch.
  if (const auto rank = weight.rank(); rank && options.pads.size() + 2 == *rank) {
    const std::vector<std::int64_t> ends = options.pads;
    options.pads.insert(options.pads.end(), ends.begin(), ends.end());
  }
  add("strides", std::move(options.strides));
  add("pads", std::move(options.pads));
  add("dilations", std::move(options.dilations));
  if (options.group != 1) attributes.emplace_back("group", options.group);
  std::vector<Value> operands{x, weight};
  if (bias) operands.push_back(bias);
  return state.call("Conv", operands, std::move(attributes), at);
}

Value Builder::layer_norm(Value x, Value scale, Value bias, std::int64_t axis, double epsilon, Location at) {
  constexpr std::int64_t kFirstOpset = 17;  // of LayerNormalization
  State& state = *state_;
  state.check_operand(x, "the operand of layer_norm", at);
  state.check_operand(scale, "the scale of layer_norm", at);
  if (!(epsilon >= 0)) State::misuse(at, fmt::format("epsilon is {}, it is at least 0", epsilon));
  if (state.options.opset >= kFirstOpset) {
    std::vector<Value> operands{x, scale};
    if (bias) operands.push_back(bias);
    return state.call("LayerNormalization", operands, {{"axis", axis}, {"epsilon", epsilon}}, at);
  }
  const std::optional<std::size_t> rank = x.rank();
  if (!rank && axis != -1)
    State::misuse(at, fmt::format("layer_norm before opset {} needs an operand of known rank", kFirstOpset));
  std::vector<std::int64_t> axes{-1};
  if (rank) {
    const auto count = static_cast<std::int64_t>(*rank);
    if (axis < -count || axis >= count)
      State::misuse(at, fmt::format("axis {} of layer_norm is outside rank {}", axis, count));
    axes.clear();
    for (std::int64_t each = axis < 0 ? axis : axis - count; each < 0; ++each) axes.push_back(each);
  }
  Composite call(state);
  const Value centred = sub(x, reduce_mean(x, axes, true, at), at);
  const Value variance = reduce_mean(mul(centred, centred, at), axes, true, at);
  const Value deviation = state.call("Sqrt", {state.number_like(variance, epsilon, "Add", at)}, {}, at);
  Value y = mul(div(centred, deviation, at), scale, at);
  if (bias) y = add(y, bias, at);
  call.finish();
  return y;
}

// ---- arithmetic of values

Value State::number_like(Value value, Number number, std::string_view op, Location at, bool first) {
  check_operand(value, [&] { return "an operand of " + std::string(op); }, at);
  const std::optional<DType> dtype = value.dtype();
  if (!dtype) misuse(at, fmt::format("the dtype of `{}` is not known: write the number as a constant", value.name()));
  std::optional<Data> data = scalar_of(*dtype, number);
  if (!data)
    misuse(at, fmt::format("{} is not a {} number, which `{}` holds",
                           number.is_integer() ? fmt::format("{}", number.integer()) : fmt::format("{}", number.real()),
                           tensorlint::to_text(*dtype), value.name()));
  Composite call(*this);
  const Value scalar = add_constant(std::move(*data), "", device_of(value), at);
  const Value result = first ? this->call(op, {scalar, value}, {}, at) : this->call(op, {value, scalar}, {}, at);
  call.finish();
  return result;
}

namespace {

/// `at` is the line of the operator.
Value binary(std::string_view op, const Located& a, const Value& b) {
  State* const state = State::owner(a.value) != nullptr ? State::owner(a.value) : State::owner(b);
  if (state == nullptr) State::misuse(a.at, fmt::format("both operands of {} are absent", op));
  return state->call(op, {a.value, b}, {}, a.at);
}

Value with_number(std::string_view op, const Located& a, Number number, bool first) {
  State* const state = State::owner(a.value);
  if (state == nullptr) State::misuse(a.at, fmt::format("an operand of {} is absent", op));
  return state->number_like(a.value, number, op, a.at, first);
}

}  // namespace

Value operator+(Located a, Value b) { return binary("Add", a, b); }
Value operator-(Located a, Value b) { return binary("Sub", a, b); }
Value operator*(Located a, Value b) { return binary("Mul", a, b); }
Value operator/(Located a, Value b) { return binary("Div", a, b); }
Value operator+(Located a, Number b) { return with_number("Add", a, b, false); }
Value operator-(Located a, Number b) { return with_number("Sub", a, b, false); }
Value operator*(Located a, Number b) { return with_number("Mul", a, b, false); }
Value operator/(Located a, Number b) { return with_number("Div", a, b, false); }
Value operator+(Number a, Located b) { return with_number("Add", b, a, true); }
Value operator-(Number a, Located b) { return with_number("Sub", b, a, true); }
Value operator*(Number a, Located b) { return with_number("Mul", b, a, true); }
Value operator/(Number a, Located b) { return with_number("Div", b, a, true); }
Value operator-(Located x) {
  State* const state = State::owner(x.value);
  if (state == nullptr) State::misuse(x.at, "the operand of Neg is absent");
  return state->call("Neg", {x.value}, {}, x.at);
}

}  // namespace tensorlint::builder
