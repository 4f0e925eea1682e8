#include "passes/losses/axis_origins.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "passes/losses/operands_first.h"

namespace tensorlint::losses {
namespace {

/// Values whose axes are followed for one model; the rest are sources of their own.
constexpr std::size_t kMaxFollowedValues = 50'000;
/// Sources of one axis: those of a sum of many inputs say nothing more.
constexpr std::size_t kMaxSources = 16;
/// What is kept of all values' axes; past it nothing is known of a value's axes.
constexpr std::size_t kMaxOriginBytes = std::size_t{16} << 20;

}  // namespace

void AxisOrigins::merge(Sources& into, const Sources& from) const {
  expressions_.charge(1 + from.size() / 2);
  for (const AxisSource& source : from) {
    if (into.size() >= kMaxSources) return;
    const auto at = std::ranges::lower_bound(into, source);
    if (at == into.end() || *at != source) into.insert(at, source);
  }
}

std::span<const AxisOrigins::Sources> AxisOrigins::of(ValueId value) {
  const auto axes = known(value);
  expressions_.charge(axes.size());
  return axes;
}

std::span<const AxisOrigins::Sources> AxisOrigins::known(ValueId value) {
  if (value == ValueId::kAbsent) return {};
  expressions_.charge(kStepsOfLookup);
  if (const auto found = known_.find(value); found != known_.end()) return found->second;
  const auto is_bounded = [&] { return bytes_ < kMaxOriginBytes && !expressions_.is_spent(); };
  const auto follows = [&](std::size_t waiting) {
    return is_bounded() && known_.size() + waiting < kMaxFollowedValues;
  };
  const auto cycle = [&](ValueId at) { known_.emplace(at, own(at)); };
  const auto add = [&](ValueId at, bool is_followed) {
    Axes axes = is_followed ? compute(at) : is_bounded() ? own(at) : Axes{};
    std::size_t bytes = sizeof(Axes) + axes.size() * sizeof(Sources);
    for (const Sources& sources : axes) bytes += sources.capacity() * sizeof(AxisSource);
    bytes_ += bytes;
    memory_.add(bytes);
    expressions_.charge(bytes / sizeof(AxisSource));
    known_.insert_or_assign(at, std::move(axes));
  };
  compute_operands_first(expressions_, value, known_, follows, cycle, add);
  return known_.find(value)->second;
}

bool AxisOrigins::are_same(ValueId a, std::size_t axis_of_a, ValueId b, std::size_t axis_of_b) {
  const auto first = known(a), second = known(b);
  if (expressions_.is_spent() || axis_of_a >= first.size() || axis_of_b >= second.size()) return false;
  if (!analysis_.facts().dims().equal(dims_of(a)[axis_of_a], dims_of(b)[axis_of_b])) return false;
  const Sources &x = first[axis_of_a], &y = second[axis_of_b];
  return have_common(x, y) || (has_batch(x) && has_batch(y));
}

bool AxisOrigins::have_common(const Sources& a, const Sources& b) const {
  expressions_.charge(1 + kStepsOfSource * a.size());
  return std::ranges::any_of(a, [&](const AxisSource& source) { return std::ranges::binary_search(b, source); });
}

bool AxisOrigins::is_batch(ValueId value, std::size_t axis) {
  const auto axes = known(value);
  return axis < axes.size() && !expressions_.is_spent() && has_batch(axes[axis]);
}

bool AxisOrigins::has_batch(const Sources& sources) const {
  expressions_.charge(1 + kStepsOfSource * sources.size());
  return std::ranges::any_of(sources,
                             [this](const AxisSource& source) { return source.axis == 0 && is_data(source.value); });
}

/// An input of the main graph, and no weight: none that a layer multiplies with or convolves by.
bool AxisOrigins::is_data(ValueId input) const {
  const auto [known, added] = is_data_.try_emplace(input);
  if (added) known->second = is_data_input(input);
  return known->second;
}

bool AxisOrigins::is_data_input(ValueId input) const {
  const Value& known = analysis_.model().value(input);
  if (!known.is_given()) return false;
  const auto weighs = [this](NodeId user, ValueId value) {
    if (expressions_.operand(user, 0) == value) return false;
    // A batch of matrices on the right is what attention averages, or another operand of a product of two.
    return expressions_.op(user) == Opcode::kConv ||
           (expressions_.op(user) == Opcode::kMatMul && dims_of(value).size() <= 2);
  };
  return std::ranges::none_of(expressions_.users(input), [&](NodeId user) {
    if (expressions_.op(user) != Opcode::kTranspose) return weighs(user, input);
    const ValueId turned = expressions_.result(user);
    return std::ranges::any_of(expressions_.users(turned), [&](NodeId next) { return weighs(next, turned); });
  });
}

std::span<const Dim> AxisOrigins::dims_of(ValueId value) const {
  const Fact& fact = analysis_.fact(value);
  return fact.kind == ValueKind::kTensor ? analysis_.facts().dims_of(fact.shape) : std::span<const Dim>();
}

std::int64_t AxisOrigins::integer(NodeId node, std::string_view attribute, std::int64_t fallback) const {
  const Attribute* given = analysis_.attribute(node, attribute);
  return given == nullptr ? fallback : given->i;
}

AxisOrigins::Axes AxisOrigins::own(ValueId value) const {
  const auto dims = dims_of(value);
  Axes axes(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!analysis_.facts().dims().is_constant(dims[i], 1)) axes[i] = {{value, static_cast<std::uint32_t>(i)}};
  return axes;
}

AxisOrigins::Axes AxisOrigins::compute(ValueId value) {
  const auto dims = dims_of(value);
  const NodeId node = expressions_.producer(value);
  if (node == NodeId::kNone || dims.empty()) return own(value);
  if (expressions_.op(node) == Opcode::kSplit) return split(node, value);
  if (expressions_.op(node) == Opcode::kRecurrence) return recurrence(node, value);
  const Opcode opcode = expressions_.op(node);
  if (opcode == Opcode::kTopK) return like(node, value);  // values and places
  if (expressions_.result(node) != value) return own(value);
  Axes axes;
  switch (opcode) {
    case Opcode::kMatMul:
      axes = product(node, dims);
      break;
    case Opcode::kTranspose:
      axes = transposed(node);
      break;
    case Opcode::kReshape:
    case Opcode::kSqueeze:
    case Opcode::kUnsqueeze:
      axes = reshaped(expressions_.operand(node, 0), value);
      break;
    case Opcode::kExpand:
      axes = stretched(expressions_.operand(node, 0), dims);
      break;
    case Opcode::kGather:
      axes = gathered(node);
      break;
    case Opcode::kGatherElements:
      axes = gathered_elements(node);
      break;
    case Opcode::kConcat:
      axes.resize(dims.size());
      for (const ValueId operand : analysis_.operands(node))
        for (std::size_t i = 0; i < std::min(axes.size(), known_[operand].size()); ++i)
          merge(axes[i], known_[operand][i]);
      break;
    case Opcode::kGatherND:
      axes = gathered_at_tuples(node);
      break;
    case Opcode::kEinsum:
      axes = einsum(node, dims.size());
      break;
    default:
      if (const ops::OpEntry* entry = expressions_.entry(node); entry != nullptr && entry->loss())
        axes = known_[expressions_.operand(node, 1)];  // a loss of each label
      else if (opcode == Opcode::kOneHot)
        axes = marked(node, value);
      else if (reduces_axes(opcode) || has_trait(entry, ops::OpTrait::kReduction))
        axes = reduced(node, dims.size());
      else
        axes = has_trait(entry, ops::OpTrait::kElementwise) ? broadcast(node, dims) : like(node, value);
      break;
  }
  if (axes.size() != dims.size()) return own(value);
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (analysis_.facts().dims().is_constant(dims[i], 1)) axes[i].clear();
  return axes;
}

AxisOrigins::Axes AxisOrigins::broadcast(NodeId node, std::span<const Dim> result) {
  Axes axes(result.size());
  for (const ValueId operand : analysis_.operands(node)) {
    if (operand == ValueId::kAbsent) continue;
    const Axes& from = known_[operand];
    if (from.size() > axes.size()) return {};
    for (std::size_t i = 0; i < from.size(); ++i) merge(axes[axes.size() - from.size() + i], from[i]);
  }
  return axes;
}

AxisOrigins::Axes AxisOrigins::product(NodeId node, std::span<const Dim> result) {
  const Axes &a = known_[expressions_.operand(node, 0)], &b = known_[expressions_.operand(node, 1)];
  if (a.empty() || b.empty()) return {};
  Axes axes(result.size());
  const bool turns_a = integer(node, "transA", 0) != 0, turns_b = integer(node, "transB", 0) != 0;
  const std::size_t columns = b.size() == 1 ? 0 : 1, rows = a.size() == 1 ? 0 : 1;
  if (axes.size() < rows + columns) return {};
  if (columns == 1) axes.back() = b[b.size() - (turns_b ? 2 : 1)];
  if (rows == 1) axes[axes.size() - 1 - columns] = a[a.size() - (turns_a ? 1 : 2)];
  const std::size_t batches = axes.size() - rows - columns;
  for (const Axes* operand : {&a, &b}) {
    const std::size_t own_batches = operand->size() < 2 ? 0 : operand->size() - 2;
    if (own_batches > batches) return {};
    for (std::size_t i = 0; i < own_batches; ++i) merge(axes[batches - own_batches + i], (*operand)[i]);
  }
  return axes;
}

AxisOrigins::Axes AxisOrigins::transposed(NodeId node) {
  const Axes& from = known_[expressions_.operand(node, 0)];
  const Attribute* order = analysis_.attribute(node, "perm");
  Axes axes(from.size());
  if (order != nullptr && order->ints.size() != from.size()) return {};
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto rank = static_cast<std::int64_t>(from.size());
    const std::int64_t at = order == nullptr ? rank - 1 - static_cast<std::int64_t>(i) : order->ints[i];
    if (at < -rank || at >= rank) return {};
    axes[i] = from[static_cast<std::size_t>(at < 0 ? at + rank : at)];
  }
  return axes;
}

/// An axis of the result comes from the axes between which the same number of elements lies; one that is split, or
/// shares one with others, from all that these are made of.
AxisOrigins::Axes AxisOrigins::reshaped(ValueId from, ValueId to) {
  const auto before = dims_of(from), after = dims_of(to);
  const Axes& sources = known_[from];
  if (sources.size() != before.size()) return {};
  DimPool& pool = analysis_.facts().dims();
  const auto products = [&](std::span<const Dim> dims) {
    std::vector<Dim> found{pool.constant(1)};
    for (const Dim dim : dims) found.push_back(pool.mul(found.back(), dim));
    return found;
  };
  const std::vector<Dim> p = products(before), q = products(after);
  expressions_.charge(p.size() * q.size() / 4);
  // By border of the result: the borders of the operand with as many elements before them, in order.
  std::vector<std::vector<std::size_t>> meets(q.size());
  for (std::size_t k = 0; k < q.size(); ++k)
    for (std::size_t i = 0; i < p.size(); ++i)
      if (pool.equal(p[i], q[k])) meets[k].push_back(i);
  Axes axes(after.size());
  for (std::size_t j = 0; j < after.size(); ++j) {
    if (pool.is_constant(after[j], 1)) continue;
    // The nearest borders that both have, around the axis.
    std::size_t before_axis = j;
    while (before_axis > 0 && meets[before_axis].empty()) --before_axis;
    const std::size_t first = meets[before_axis].empty() ? 0 : meets[before_axis].back();
    std::size_t last = before.size();
    for (std::size_t k = j + 1; k < q.size(); ++k)
      if (const auto after_first = std::ranges::upper_bound(meets[k], first); after_first != meets[k].end()) {
        last = *after_first;
        break;
      }
    for (std::size_t i = first; i < last; ++i) merge(axes[j], sources[i]);
  }
  return axes;
}

AxisOrigins::Axes AxisOrigins::stretched(ValueId from, std::span<const Dim> result) {
  const Axes& sources = known_[from];
  if (sources.size() > result.size()) return {};
  Axes axes(result.size());
  std::ranges::copy(sources, axes.end() - static_cast<std::ptrdiff_t>(sources.size()));
  return axes;
}

AxisOrigins::Axes AxisOrigins::reduced(NodeId node, std::size_t rank) {
  const auto reduced_axes = expressions_.axes_of(node);
  const Axes& from = known_[expressions_.operand(node, 0)];
  if (!reduced_axes) return {};
  if (rank == from.size()) {
    Axes axes = from;
    for (const std::size_t axis : *reduced_axes) axes[axis].clear();
    return axes;
  }
  Axes axes;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (!std::ranges::binary_search(*reduced_axes, i)) axes.push_back(from[i]);
  return axes;
}

/// The axes of the indices, and one of its own for the classes.
AxisOrigins::Axes AxisOrigins::marked(NodeId node, ValueId value) {
  const Axes& indices = known_[expressions_.operand(node, 0)];
  Axes axes = own(value);
  std::int64_t at = integer(node, "axis", -1);
  if (at < 0) at += static_cast<std::int64_t>(axes.size());
  if (at < 0 || indices.size() + 1 != axes.size()) return axes;
  for (std::size_t i = 0; i < indices.size(); ++i) axes[static_cast<std::int64_t>(i) < at ? i : i + 1] = indices[i];
  return axes;
}

AxisOrigins::Axes AxisOrigins::gathered(NodeId node) {
  const Axes &data = known_[expressions_.operand(node, 0)], &indices = known_[expressions_.operand(node, 1)];
  std::int64_t axis = integer(node, "axis", 0);
  if (axis < 0) axis += static_cast<std::int64_t>(data.size());
  if (axis < 0 || axis >= static_cast<std::int64_t>(data.size())) return {};
  const auto at = data.begin() + axis;
  Axes axes(data.begin(), at);
  axes.insert(axes.end(), indices.begin(), indices.end());
  axes.insert(axes.end(), at + 1, data.end());
  return axes;
}

AxisOrigins::Axes AxisOrigins::gathered_elements(NodeId node) {
  const Axes &data = known_[expressions_.operand(node, 0)], &indices = known_[expressions_.operand(node, 1)];
  if (data.size() != indices.size()) return {};
  Axes axes = indices;
  std::int64_t axis = integer(node, "axis", 0);
  if (axis < 0) axis += static_cast<std::int64_t>(data.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (static_cast<std::int64_t>(i) != axis) merge(axes[i], data[i]);
  return axes;
}

/// Indices [..., k] pick from the first k axes.
AxisOrigins::Axes AxisOrigins::gathered_at_tuples(NodeId node) {
  const Axes &data = known_[expressions_.operand(node, 0)], &indices = known_[expressions_.operand(node, 1)];
  const auto dims = dims_of(expressions_.operand(node, 1));
  if (dims.empty() || indices.size() != dims.size() || integer(node, "batch_dims", 0) != 0) return {};
  const auto picked = analysis_.facts().dims().as_constant(dims.back());
  if (!picked || *picked < 0 || *picked > static_cast<std::int64_t>(data.size())) return {};
  Axes axes(indices.begin(), indices.end() - 1);
  axes.insert(axes.end(), data.begin() + *picked, data.end());
  return axes;
}

/// Each letter of the result from the axes with that letter.
AxisOrigins::Axes AxisOrigins::einsum(NodeId node, std::size_t rank) {
  const auto operands = analysis_.operands(node);
  Axes axes(rank);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Axes& from = known_[operands[i]];
    for (std::size_t k = 0; k < from.size(); ++k) {
      const AxisStep step = way_.follow(node, i, k);
      if (step.fate == AxisFate::kUnknown || (step.fate == AxisFate::kKept && step.axis >= rank)) return {};
      if (step.fate == AxisFate::kKept) merge(axes[step.axis], from[k]);
    }
  }
  return axes;
}

/// All parts have the axes of the whole, but for the one that is split.
AxisOrigins::Axes AxisOrigins::split(NodeId node, ValueId part) {
  const Axes& from = known_[expressions_.operand(node, 0)];
  Axes axes = own(part);
  if (axes.size() != from.size()) return axes;
  std::int64_t at = integer(node, "axis", 0);
  if (at < 0) at += static_cast<std::int64_t>(from.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (static_cast<std::int64_t>(i) != at && !axes[i].empty()) axes[i] = from[i];
  return axes;
}

/// Of the states of all steps [steps, directions, samples, features], and of the last ones [directions, samples,
/// features], those that count steps and samples.
AxisOrigins::Axes AxisOrigins::recurrence(NodeId node, ValueId value) const {
  Axes axes = own(value);
  const auto data = known_.find(expressions_.operand(node, 0));
  if (data == known_.end() || data->second.size() != 3 || integer(node, "layout", 0) != 0) return axes;
  const bool all_steps = expressions_.result(node) == value;
  if (axes.size() != (all_steps ? 4 : 3)) return axes;
  const auto take = [&](std::size_t axis, std::size_t from) {
    if (!axes[axis].empty()) axes[axis] = data->second[from];
  };
  if (all_steps) take(0, 0);
  take(all_steps ? 2 : 1, 1);
  return axes;
}

/// Other operators keep the axes of operand 0 that have the same extent at the same place, as layers and
/// normalisations do.
AxisOrigins::Axes AxisOrigins::like(NodeId node, ValueId value) {
  const ValueId data = expressions_.operand(node, 0);
  Axes axes = own(value);
  if (data == ValueId::kAbsent) return axes;
  const auto before = dims_of(data), after = dims_of(value);
  const Axes& from = known_[data];
  if (from.size() != before.size() || before.size() != after.size()) return axes;
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (analysis_.facts().dims().equal(before[i], after[i])) axes[i] = from[i];
  return axes;
}

}  // namespace tensorlint::losses
