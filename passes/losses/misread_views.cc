#include <algorithm>
#include <array>

#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;
using Extents = std::vector<std::int64_t>;

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t found = 1;
  for (const std::int64_t extent : extents)
    if (__builtin_mul_overflow(found, extent, &found)) return 0;
  return found;
}

struct Remainders {
  Extents before, after;
  std::size_t first = 0;  ///< the axis of the operand from which on they differ
};

/// The extents after those that both shapes begin with, without those of 1; a first axis that is several others comes
/// apart. None where they are not numbers.
Remainders without_common_front(DimPool& pool, std::span<const Dim> before, std::span<const Dim> after) {
  const auto long_ones = [&](std::span<const Dim> dims) {
    std::vector<Dim> found;
    for (const Dim dim : dims)
      if (!pool.is_constant(dim, 1)) found.push_back(dim);
    return found;
  };
  std::vector<Dim> x = long_ones(before), y = long_ones(after);
  if (x.empty() || y.empty()) return {};
  const auto divide = [&](std::vector<Dim>& whole, std::vector<Dim>& part) {
    const auto quotient = pool.exact_div(whole[0], part[0]);
    const auto count = quotient ? pool.as_constant(*quotient) : std::nullopt;
    if (!count || *count < 2) return;
    whole[0] = *quotient;
    part.erase(part.begin());
  };
  if (!pool.equal(x[0], y[0])) {
    const std::size_t axes = y.size();
    divide(x, y);
    if (y.size() == axes) divide(y, x);
  }
  std::size_t same = 0;
  while (same < std::min(x.size(), y.size()) && pool.equal(x[same], y[same])) ++same;
  Remainders found;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (!pool.is_constant(before[i], 1) && found.first < same) ++found.first;
  const auto numbers = [&](const std::vector<Dim>& dims) {
    Extents extents;
    for (std::size_t i = same; i < dims.size(); ++i) {
      const auto extent = pool.as_constant(dims[i]);
      if (!extent || *extent < 2) return Extents{};
      extents.push_back(*extent);
    }
    return extents;
  };
  found.before = numbers(x);
  found.after = numbers(y);
  const std::int64_t elements = product(found.before);
  return elements > 0 && elements == product(found.after) ? found : Remainders{};
}

/// [..., Q, ...] to [Q, ...], where Q is one axis or several.
bool comes_to_front(const Extents& x, const Extents& y) {
  for (std::size_t k = 1; k < x.size(); ++k) {
    std::size_t length = 0;
    while (k + length < x.size() && length < y.size() && x[k + length] == y[length]) ++length;
    if (length > 0 && length < y.size()) return true;
  }
  return false;
}

/// [A, B, C] to [A * B, C]: neighbours are joined, and nothing else.
bool joins_neighbours(const Extents& x, const Extents& y) {
  std::size_t at = 0;
  for (const std::int64_t extent : y) {
    std::int64_t joined = 1;
    while (at < x.size() && joined < extent)
      if (__builtin_mul_overflow(joined, x[at++], &joined)) return false;
    if (joined != extent) return false;
  }
  return at == x.size();
}

/// [A * C, L...] to [..., C]: rows of the parts of the first axis.
bool leaves_rows_of_parts(const Extents& x, const Extents& y) {
  return x.size() > 1 && y.size() == 2 && x[0] % y[1] == 0;
}

/// Each axis of either shape is made of whole parts of the axes of the other one.
bool are_nested(const Extents& x, const Extents& y) {
  std::vector<std::int64_t> borders;
  for (const Extents* extents : {&x, &y}) {
    std::int64_t border = 1;
    for (const std::int64_t extent : *extents) borders.push_back(border *= extent);
  }
  std::ranges::sort(borders);
  for (std::size_t i = 1; i < borders.size(); ++i)
    if (borders[i] % borders[i - 1] != 0) return false;
  return true;
}

}  // namespace

std::optional<AxisMistake> MisreadViews::at(NodeId node) {
  switch (expressions_.op(node)) {
    case Opcode::kReshape:
      if (joins_parts(node)) return std::nullopt;
      if (auto found = turned(node)) return found;
      if (auto found = batch_at_front(node)) return found;
      if (auto found = batch_behind(node)) return found;
      if (auto found = parts(node)) return found;
      if (auto found = flattened_classes(node)) return found;
      if (auto found = across_samples(node)) return found;
      if (auto found = rotated(node)) return found;
      return beside_other_head(node);
    case Opcode::kGather:
    case Opcode::kGatherND:
      if (auto found = rows_by_class(node)) return found;
      return columns_by_class(node);
    case Opcode::kGatherElements:
      return rows_of_first_column(node);
    default:
      return std::nullopt;
  }
}

/// [A, B] to [B, A]: the elements stay in their order, so that rows are cut out of several others.
std::optional<AxisMistake> MisreadViews::turned(NodeId node) const {
  const ValueId from = expressions_.operand(node, 0);
  const auto before = cone_.dims(from), after = cone_.dims(expressions_.result(node));
  if (before.size() < 2 || before.size() > 6) return std::nullopt;
  const DimPool& pool = cone_.pool();
  std::vector<std::size_t> x, y;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (!pool.is_constant(before[i], 1)) x.push_back(i);
  for (std::size_t i = 0; i < after.size(); ++i)
    if (!pool.is_constant(after[i], 1)) y.push_back(i);
  if (x.size() == 4 && y.size() == 3) return pixels(node, x, y);
  if (x.size() != y.size() || x.size() < 2) return std::nullopt;
  // Each extent once: of two equal ones nobody knows which is which.
  std::size_t first = x.size();
  std::vector<bool> taken(y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t at = y.size();
    for (std::size_t j = 0; j < y.size(); ++j)
      if (!taken[j] && pool.equal(before[x[i]], after[y[j]])) {
        at = j;
        break;
      }
    if (at == y.size()) return std::nullopt;
    taken[at] = true;
    if (at != i && first == x.size()) first = i;
    for (std::size_t k = 0; k < i; ++k)
      if (pool.equal(before[x[k]], before[x[i]])) return std::nullopt;
  }
  if (first == x.size() || may_shift_rows(from) || !cone_.has_batch(from)) return std::nullopt;
  const bool moves_batch = cone_.origins().is_batch(from, x[first]);
  return AxisMistake{Kind::kTurnedByView, node, from, {x[first]}, moves_batch, node, y[first]};
}

/// A column more on purpose, so that rows shift against each other: relative positions.
bool MisreadViews::may_shift_rows(ValueId value) const {
  // What a step of single elements gives has the rows of what it is computed from; the column is cut off again.
  for (int step = 0; step < 8; ++step) {
    value = cone_.before_views(value);
    const NodeId node = expressions_.producer(value);
    const bool is_step =
        has_trait(expressions_.entry(node), ops::OpTrait::kElementwise) && cone_.operands(node).size() == 1;
    if (!is_step && expressions_.op(node) != Opcode::kSlice) break;
    value = expressions_.operand(node, 0);
  }
  const Opcode maker = expressions_.op_of(cone_.before_views(value));
  if (const NodeId layer = expressions_.producer(cone_.before_views(value)); layer != NodeId::kNone) {
    const Model& model = cone_.analysis().model();
    const OpSchema* const schema = model.operators[model.node(layer).op].schema;
    if (schema != nullptr && schema->attribute("kernel_shape") != nullptr) return false;  // pooled
  }
  const bool may_pad =
      maker == Opcode::kOther || maker == Opcode::kPad || maker == Opcode::kEinsum || maker == Opcode::kRecurrence;
  return maker == Opcode::kConcat || (may_pad && expressions_.producer(value) != NodeId::kNone);
}

/// [2, N, H] to [N, 2 * H], as the last states of a recurrent layer in two directions: the rows are taken for samples,
/// and each is cut out of the states of several ones.
std::optional<AxisMistake> MisreadViews::batch_at_front(NodeId node) const {
  const ValueId from = expressions_.operand(node, 0);
  const auto before = cone_.dims(from), after = cone_.dims(expressions_.result(node));
  if (before.size() < 2 || before.size() > kMaxRank || after.size() < 2 || after.size() > kMaxRank) return std::nullopt;
  DimPool& pool = cone_.pool();
  std::size_t batch = before.size();
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!cone_.origins().is_batch(from, i)) continue;
    if (batch != before.size()) return std::nullopt;
    batch = i;
  }
  if (batch == 0 || batch == before.size() || !pool.equal(before[batch], after[0])) return std::nullopt;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (i != batch && pool.equal(before[i], before[batch])) return std::nullopt;
  Dim ahead = pool.constant(1), passed = pool.constant(1);
  for (std::size_t i = 0; i < batch; ++i) ahead = pool.mul(ahead, before[i]);
  if (pool.is_constant(ahead, 1)) return std::nullopt;
  // It is where it was, and the first axis has as many elements by chance.
  for (const Dim dim : after) {
    if (pool.equal(passed, ahead) && pool.equal(dim, before[batch])) return std::nullopt;
    passed = pool.mul(passed, dim);
  }
  return AxisMistake{Kind::kTurnedByView, node, from, {batch}, true, node, 0};
}

/// [N, 2 * D] to [2, N, D], as of two halves: the samples are taken to come second.
std::optional<AxisMistake> MisreadViews::batch_behind(NodeId node) const {
  const ValueId from = expressions_.operand(node, 0);
  const auto before = cone_.dims(from), after = cone_.dims(expressions_.result(node));
  if (before.size() < 2 || after.size() != 3 || before.size() > kMaxRank || !cone_.is_batch_alone(from, 0))
    return std::nullopt;
  const DimPool& pool = cone_.pool();
  const auto parts = pool.as_constant(after[0]), last = pool.as_constant(before.back());
  const bool splits = parts && last && *parts > 1 && *last % *parts == 0;
  if (!splits || !pool.equal(after[1], before[0]) || pool.equal(after[0], before[0]) || pool.equal(after[2], before[0]))
    return std::nullopt;
  return AxisMistake{Kind::kTurnedByView, node, from, {0}, true, node, 1};
}

/// Heads [N, h, T, d] to [N, T, h * d] or [N, T, h * d] to [N, h, T, d], anchors [N, A * C, H, W] to [N, H, W, A, C] or
/// [N, H * W * A, C]: an axis comes first that has others before it.
std::optional<AxisMistake> MisreadViews::rotated(NodeId node) const {
  const ValueId from = expressions_.operand(node, 0);
  const auto before = cone_.dims(from), after = cone_.dims(expressions_.result(node));
  if (before.size() < 2 || before.size() > kMaxRank || after.size() < 2 || after.size() > kMaxRank ||
      !cone_.has_batch(from))
    return std::nullopt;
  const auto [x, y, first] = without_common_front(cone_.pool(), before, after);
  if (x.empty() || y.empty() || (x.back() == y.back() && joins_neighbours(x, y))) return std::nullopt;
  const bool merges = comes_to_front(x, y), splits = comes_to_front(y, x), has_rows = leaves_rows_of_parts(x, y);
  if (!merges && !splits && !has_rows) return std::nullopt;
  if (goes_back(node)) return std::nullopt;
  // Boxes within boxes: parts of an axis may be meant.
  if (are_nested(x, y) ? !is_attention(node, before) || has_rows : may_shift_rows(from) && !is_attention(node, before))
    return std::nullopt;
  return AxisMistake{Kind::kTurnedByView, node, from, {first}, false, node, first};
}

/// Maps of two convolutions of one picture become rows: [N, A * C, H, W] to [N, R, C] as they are, and [N, A * 4, H, W]
/// to [N, R, 4] with their channels last, as `meets` says. The rows of the two are of other places.
std::optional<AxisMistake> MisreadViews::beside_other_head(NodeId node) const {
  constexpr std::size_t kMaxHeads = 8;
  const ValueId from = expressions_.operand(node, 0);
  const NodeId head = expressions_.producer(from);
  const auto before = cone_.dims(from), after = cone_.dims(expressions_.result(node));
  DimPool& pool = cone_.pool();
  if (expressions_.op(head) != Opcode::kConv || before.size() != 4 || after.size() != 3 ||
      !pool.equal(before[0], after[0]) || !cone_.is_long(from, 1) ||
      pool.is_constant(pool.mul(before[2], before[3]), 1))
    return std::nullopt;
  // Groups of channels.
  const auto channels = pool.as_constant(before[1]), parts = pool.as_constant(after[1]);
  if (!channels || (parts && *parts > 0 && *channels % *parts == 0)) return std::nullopt;
  const auto are_rows = [&](ValueId rows) {
    const auto dims = cone_.dims(rows);
    return dims.size() == 3 && pool.equal(dims[0], after[0]) && pool.equal(dims[1], after[1]);
  };
  std::size_t heads = 0;
  for (const NodeId other : expressions_.users(expressions_.operand(head, 0))) {
    if (other == head || expressions_.op(other) != Opcode::kConv || ++heads > kMaxHeads) continue;
    for (const NodeId turn : expressions_.users(expressions_.result(other))) {
      const Attribute* const order = cone_.analysis().attribute(turn, "perm");
      if (expressions_.op(turn) != Opcode::kTranspose || order == nullptr ||
          !std::ranges::equal(order->ints, std::array<std::int64_t, 4>{0, 2, 3, 1}))
        continue;
      for (const NodeId view : expressions_.users(expressions_.result(turn)))
        if (expressions_.op(view) == Opcode::kReshape && are_rows(expressions_.result(view)))
          return AxisMistake{Kind::kTurnedByOneHead, node, from, {1}, false, turn, 2};
    }
  }
  return std::nullopt;
}

/// Records [N, 20] in windows of 8, [-1, 8]: some begin in one sample and end in the next one.
std::optional<AxisMistake> MisreadViews::across_samples(NodeId node) const {
  const ValueId from = expressions_.operand(node, 0);
  const auto before = cone_.dims(from), after = cone_.dims(expressions_.result(node));
  if (before.size() < 2 || before.size() > kMaxRank || after.size() < 2 || after.size() > kMaxRank ||
      !cone_.is_batch_alone(from, 0) || may_shift_rows(from) ||
      !cone_.analysis().fact(from).dtypes.proves(DTypeSet::floats()))
    return std::nullopt;
  const DimPool& pool = cone_.pool();
  const auto elements = [&](std::span<const Dim> dims) {
    Extents extents;
    for (const Dim dim : dims.subspan(1)) extents.push_back(pool.as_constant(dim).value_or(0));
    return product(extents);
  };
  const std::int64_t sample = elements(before), row = elements(after);
  if (sample < 2 || row < 2 || sample % row == 0 || row % sample == 0) return std::nullopt;
  // Rows that become samples again have been meant.
  for (const NodeId user : expressions_.users(expressions_.result(node))) {
    if (expressions_.op(user) != Opcode::kReshape) continue;
    const auto next = cone_.dims(expressions_.result(user));
    if (next.size() < 2 || elements(next) == sample) return std::nullopt;
  }
  return AxisMistake{Kind::kTurnedByView, node, from, {0}, true, node, 0};
}

/// Attention whose values have been viewed as it gives them: the view before it is the mistake.
bool MisreadViews::goes_back(NodeId view) const {
  const NodeId product = expressions_.producer(expressions_.operand(view, 0));
  const NodeId before = expressions_.producer(expressions_.operand(product, 1));
  if (expressions_.op(before) != Opcode::kReshape) return false;
  const auto are_alike = [&](ValueId a, ValueId b) {
    return std::ranges::equal(cone_.dims(a), cone_.dims(b), [&](Dim x, Dim y) { return cone_.pool().equal(x, y); });
  };
  return are_alike(expressions_.operand(before, 0), expressions_.result(view)) &&
         are_alike(expressions_.result(before), expressions_.operand(view, 0));
}

/// What is viewed is what attention gives, or it goes into a product of queries and keys.
bool MisreadViews::is_attention(NodeId view, std::span<const Dim> before) const {
  const NodeId product = expressions_.producer(expressions_.operand(view, 0));
  if (expressions_.op(product) == Opcode::kMatMul || expressions_.op(product) == Opcode::kEinsum) {
    ValueId weights = expressions_.operand(product, 0);
    if (expressions_.op_of(weights) == Opcode::kDropout)
      weights = expressions_.operand(expressions_.producer(weights), 0);
    const auto softmax = expressions_.normalised(weights);
    return softmax && !softmax->logarithm && before.size() >= 3;
  }
  std::vector<ValueId> pending{expressions_.result(view)};
  for (std::size_t i = 0; i < pending.size() && pending.size() < 8; ++i)
    for (const NodeId user : expressions_.users(pending[i])) {
      const Opcode opcode = expressions_.op(user);
      const ValueId other = expressions_.beside(user, pending[i]);
      if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum)
        return cone_.dims(other).size() == cone_.dims(pending[i]).size() && cone_.has_batch(other);
      if (opcode == Opcode::kTranspose || opcode == Opcode::kMul || opcode == Opcode::kDiv)
        pending.push_back(expressions_.result(user));
    }
  return false;
}

/// [N, C, H, W] to [N, H * W, C].
std::optional<AxisMistake> MisreadViews::pixels(NodeId node, std::span<const std::size_t> x,
                                                std::span<const std::size_t> y) const {
  const ValueId from = expressions_.operand(node, 0);
  const auto before = cone_.dims(from), after = cone_.dims(expressions_.result(node));
  if (before.size() <= x[3] || after.size() <= y[2]) return std::nullopt;  // the meter is spent
  DimPool& pool = cone_.pool();
  const auto classes = pool.as_constant(before[x[1]]), height = pool.as_constant(before[x[2]]),
             width = pool.as_constant(before[x[3]]), places = pool.as_constant(after[y[1]]),
             last = pool.as_constant(after[y[2]]);
  std::int64_t area = 0;
  if (!classes || !height || !width || !places || !last || !pool.equal(before[x[0]], after[y[0]]) ||
      __builtin_mul_overflow(*height, *width, &area) || area <= 0)
    return std::nullopt;
  // Otherwise groups of channels, or parts of rows, may be meant.
  if (*places != area || *last != *classes || *classes % area == 0 || *classes == *width || area == *classes ||
      *width % *classes == 0 || !cone_.origins().is_batch(from, x[0]))
    return std::nullopt;
  return AxisMistake{Kind::kTurnedByView, node, from, {x[1]}, false, node, y[2]};
}

/// cat([a, b]) of [N, C] each, to [N, 2, C]: the parts are the outer axis.
std::optional<AxisMistake> MisreadViews::parts(NodeId node) const {
  const ValueId from = expressions_.operand(node, 0);
  const auto before = cone_.dims(from), after = cone_.dims(expressions_.result(node));
  if (before.empty() || after.size() < 2) return std::nullopt;
  const DimPool& pool = cone_.pool();
  // Layers keep the axis that the parts are joined along.
  ValueId value = from;
  for (int step = 0; step < 24; ++step) {
    const NodeId maker = expressions_.producer(value);
    const Opcode opcode = expressions_.op(maker);
    const auto shape = cone_.dims(value);
    if (shape.empty() || !pool.equal(shape[0], before[0])) return std::nullopt;
    if (opcode == Opcode::kConcat) {
      const auto operands = cone_.operands(maker);
      const auto whole = cone_.dims(expressions_.result(maker));
      expressions_.charge(operands.size());
      if (operands.size() < 2) return std::nullopt;
      for (const ValueId operand : operands) {
        const auto part = cone_.dims(operand);
        if (part.size() != whole.size() || !pool.equal(part[0], after[0]) || pool.equal(part[0], whole[0]) ||
            !cone_.origins().is_batch(operand, 0))
          return std::nullopt;
      }
      const auto count = static_cast<std::int64_t>(operands.size());
      const bool are_rows = after.size() == 2 && before.size() == 2 &&
                            pool.equal(after[1], cone_.pool().mul(before[1], cone_.pool().constant(count)));
      if ((!are_rows && !pool.is_constant(after[1], count)) || pool.is_constant(after[0], count)) return std::nullopt;
      return AxisMistake{Kind::kPartsByView, node, from, {0}, true, maker, 1};
    }
    const bool passes = opcode == Opcode::kMatMul || opcode == Opcode::kCast ||
                        has_trait(expressions_.entry(maker), ops::OpTrait::kElementwise) || (opcode == Opcode::kDiv);
    if (!passes) return std::nullopt;
    value = expressions_.operand(maker, 0);
    if (cone_.is_constant(value)) value = expressions_.operand(maker, 1);
  }
  return std::nullopt;
}

/// [N, C, H, W] to [-1, C], beside labels [N, H, W] to [-1].
std::optional<AxisMistake> MisreadViews::flattened_classes(NodeId node) const {
  const ValueId from = expressions_.operand(node, 0), to = expressions_.result(node);
  const auto before = cone_.dims(from), after = cone_.dims(to);
  const DimPool& pool = cone_.pool();
  if (before.size() < 3 || after.size() != 2 || !pool.equal(before[1], after[1]) || pool.equal(before.back(), after[1]))
    return std::nullopt;
  for (const NodeId user : expressions_.users(to)) {
    const ops::OpEntry* entry = expressions_.entry(user);
    if (entry == nullptr || !entry->loss()) continue;
    const NodeId view = expressions_.producer(expressions_.operand(user, 1));
    if (expressions_.op(view) != Opcode::kReshape) continue;
    const auto labels = cone_.dims(expressions_.operand(view, 0));
    if (labels.size() + 1 != before.size() || !pool.equal(labels[0], before[0])) continue;
    bool alike = true;
    for (std::size_t i = 1; i < labels.size(); ++i) alike = alike && pool.equal(labels[i], before[i + 1]);
    if (alike) return AxisMistake{Kind::kFlattenedClasses, node, from, {1}, false, user, 1};
  }
  return std::nullopt;
}

/// values.gather(0, actions[:, None]) of [N, C]: the indices pick rows, and of each the first column.
std::optional<AxisMistake> MisreadViews::rows_of_first_column(NodeId node) const {
  const ValueId data = expressions_.operand(node, 0), indices = expressions_.operand(node, 1);
  const auto before = cone_.dims(data), after = cone_.dims(expressions_.result(node));
  const Attribute* axis = cone_.analysis().attribute(node, "axis");
  const bool is_first = axis == nullptr || axis->i == 0 || axis->i == -2;
  if (!is_first || before.size() != 2 || after.size() != 2 || !cone_.is_batch_alone(data, 0) ||
      !cone_.pool().is_constant(after[1], 1) || !cone_.pool().equal(before[0], after[0]) || !cone_.is_input(indices) ||
      !cone_.origins().is_batch(indices, 0))
    return std::nullopt;
  return AxisMistake{Kind::kRowsOfFirstColumn, node, data, {0}, true, node, 1};
}

/// log_p[:, y] for log_p.gather(1, y): what the labels of all samples pick for each sample, averaged.
std::optional<AxisMistake> MisreadViews::columns_by_class(NodeId node) const {
  ValueId data = expressions_.operand(node, 0);
  const bool is_turned = expressions_.op_of(data) == Opcode::kTranspose;
  if (expressions_.op(node) == Opcode::kGatherND && !is_turned) return std::nullopt;
  const AxisFate picked = cone_.way().follow(node, 0, is_turned ? 0 : 1).fate;
  if (expressions_.op(node) == Opcode::kGather && picked != AxisFate::kSelected) return std::nullopt;
  if (is_turned) data = expressions_.operand(expressions_.producer(data), 0);
  const auto shape = cone_.dims(data), after = cone_.dims(expressions_.result(node));
  const ValueId labels = cone_.before_views(expressions_.operand(node, 1));
  const auto given = cone_.dims(labels);
  if (shape.size() != 2 || after.size() != 2 || given.size() != 1 || !cone_.is_input(labels) ||
      !cone_.is_batch_alone(data, 0) || !cone_.origins().is_batch(labels, 0) ||
      !cone_.pool().equal(given[0], shape[0]) || !cone_.pool().equal(after[0], given[0]) ||
      !cone_.pool().equal(after[1], given[0]))
    return std::nullopt;
  const auto softmax = expressions_.normalised(cone_.before_views(data));
  if (!is_averaged_over_pairs(expressions_.result(node), softmax && softmax->logarithm)) return std::nullopt;
  return AxisMistake{Kind::kColumnsByClass, node, data, {1}, false, node, 0};
}

/// Steps of single elements, with numbers of single samples at most, come before a mean of everything: no pair is
/// picked or masked, and none are compared with each other, as exponentials are that are no probabilities.
bool MisreadViews::is_averaged_over_pairs(ValueId value, bool is_logarithm) const {
  constexpr std::size_t kMaxValues = 16;
  std::vector<ValueId> pending{value};
  std::vector<NodeId> waiting;  // whose other operand may be one of those that follow
  bool averaged = false;
  const auto meets_vectors = [&](NodeId user) {
    return std::ranges::all_of(cone_.operands(user), [&](ValueId operand) {
      const auto dims = cone_.dims(operand);
      const auto axes = std::ranges::count_if(dims, [&](Dim dim) { return !cone_.pool().is_constant(dim, 1); });
      return operand == ValueId::kAbsent || axes <= 1 || expressions_.number(operand) ||
             std::ranges::find(pending, operand) != pending.end() || is_moved_from(operand, pending);
    });
  };
  for (std::size_t i = 0; i < pending.size(); ++i) {
    for (const NodeId user : expressions_.users(pending[i])) {
      if (pending.size() > kMaxValues || waiting.size() > kMaxValues) return false;
      const Opcode opcode = expressions_.op(user);
      const ValueId result = expressions_.result(user);
      if (!cone_.has(user) || opcode == Opcode::kShape || std::ranges::find(pending, result) != pending.end()) continue;
      if (is_total(opcode)) {
        averaged = averaged || cone_.is_one_number(result);
        if (!cone_.is_one_number(result)) pending.push_back(result);
      } else if (repeats_elements(opcode) || opcode == Opcode::kCast) {
        pending.push_back(result);
      } else if (has_trait(expressions_.entry(user), ops::OpTrait::kElementwise) &&
                 (opcode != Opcode::kExp || is_logarithm)) {
        if (meets_vectors(user))
          pending.push_back(result);
        else
          waiting.push_back(user);
      } else {
        return false;
      }
    }
    std::erase_if(waiting, [&](NodeId user) {
      if (!meets_vectors(user)) return false;
      if (std::ranges::find(pending, expressions_.result(user)) == pending.end())
        pending.push_back(expressions_.result(user));
      return true;
    });
    if (pending.size() > kMaxValues) return false;
  }
  return averaged && waiting.empty();
}

/// Stretched, or less the same: one exporter writes a difference twice, to square it, and stretches both sides of it.
bool MisreadViews::is_moved_from(ValueId value, std::span<const ValueId> values) const {
  const NodeId node = expressions_.producer(value);
  if (expressions_.op(node) == Opcode::kExpand) return cone_.dims(cone_.before_views(value)).size() <= 1;
  return expressions_.op(node) == Opcode::kSub && std::ranges::any_of(cone_.operands(node), [&](ValueId operand) {
           return std::ranges::find(values, operand) != values.end();
         });
}

/// log_p[y] for log_p.gather(1, y): the log-probabilities of all classes of other samples, which are averaged.
std::optional<AxisMistake> MisreadViews::rows_by_class(NodeId node) const {
  const ValueId data = expressions_.operand(node, 0);
  const auto shape = cone_.dims(data);
  if (shape.size() != 2 || !cone_.origins().is_batch(data, 0) || cone_.origins().is_batch(data, 1) ||
      !cone_.is_long(data, 1))
    return std::nullopt;
  const auto softmax = expressions_.normalised(cone_.before_views(data));
  if (!softmax || !softmax->logarithm || softmax->axes != std::vector<std::size_t>{1}) return std::nullopt;
  const auto after = cone_.dims(expressions_.result(node));
  ValueId indices = cone_.before_views(expressions_.operand(node, 1));
  if (after.size() != 2 || !cone_.pool().equal(after[1], shape[1]) || !cone_.is_input(indices)) return std::nullopt;
  const auto labels = cone_.dims(indices);
  if (labels.size() != 1 || !cone_.pool().equal(labels[0], shape[0]) || !cone_.origins().is_batch(indices, 0))
    return std::nullopt;
  // Averaged over all classes, and nothing is picked from them.
  std::vector<std::pair<ValueId, std::size_t>> pending{{expressions_.result(node), 1}};
  for (std::size_t i = 0; i < pending.size() && pending.size() < 24; ++i) {
    for (const NodeId user : expressions_.users(pending[i].first)) {
      if (!cone_.has(user)) continue;
      const std::size_t operand = cone_.operand_index(user, pending[i].first);
      const AxisStep step = cone_.way().follow(user, operand, pending[i].second);
      const Opcode opcode = expressions_.op(user);
      if (opcode == Opcode::kReduceMean && step.fate == AxisFate::kSummed)
        return AxisMistake{Kind::kRowsByClass, node, data, {0}, true, user, 1};
      const bool is_weight =
          opcode == Opcode::kMul && !cone_.is_long(expressions_.operand(user, 1 - operand), pending[i].second);
      const bool passes = opcode == Opcode::kNeg || is_weight || opcode == Opcode::kCast || keeps_elements(opcode);
      if (step.fate == AxisFate::kKept && passes) pending.emplace_back(expressions_.result(user), step.axis);
    }
  }
  return std::nullopt;
}

}  // namespace tensorlint::losses
