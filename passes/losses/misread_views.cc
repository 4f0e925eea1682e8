#include <algorithm>

#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;

}  // namespace

std::optional<AxisMistake> MisreadViews::at(NodeId node) {
  switch (expressions_.op(node)) {
    case Opcode::kReshape:
      if (auto found = turned(node)) return found;
      if (auto found = parts(node)) return found;
      return flattened_classes(node);
    case Opcode::kGather:
    case Opcode::kGatherND:
      return rows_by_class(node);
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
  // A column more on purpose, so that rows shift against each other: relative positions.
  const Opcode maker = expressions_.op_of(cone_.before_views(from));
  const bool may_pad =
      maker == Opcode::kOther || maker == Opcode::kPad || maker == Opcode::kEinsum || maker == Opcode::kRecurrence;
  const bool padded = maker == Opcode::kConcat || (may_pad && expressions_.producer(from) != NodeId::kNone);
  if (first == x.size() || padded || !cone_.has_batch(from)) return std::nullopt;
  const bool moves_batch = cone_.origins().is_batch(from, x[first]);
  return AxisMistake{Kind::kTurnedByView, node, from, {x[first]}, moves_batch, node, y[first]};
}

/// [N, C, H, W] to [N, H * W, C].
std::optional<AxisMistake> MisreadViews::pixels(NodeId node, std::span<const std::size_t> x,
                                                std::span<const std::size_t> y) const {
  const ValueId from = expressions_.operand(node, 0);
  const auto before = cone_.dims(from), after = cone_.dims(expressions_.result(node));
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
      if (operands.size() < 2) return std::nullopt;
      for (const ValueId operand : operands) {
        const auto part = cone_.dims(operand);
        if (part.size() != whole.size() || !pool.equal(part[0], after[0]) || pool.equal(part[0], whole[0]) ||
            !cone_.origins().is_batch(operand, 0))
          return std::nullopt;
      }
      const auto count = static_cast<std::int64_t>(operands.size());
      if (!pool.is_constant(after[1], count) || pool.is_constant(after[0], count)) return std::nullopt;
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
  const Model& model = cone_.analysis().model();
  const Attribute* axis = model.attribute(model.node(node), "axis");
  const bool is_first = axis == nullptr || axis->i == 0 || axis->i == -2;
  if (!is_first || before.size() != 2 || after.size() != 2 || !cone_.is_batch_alone(data, 0) ||
      !cone_.pool().is_constant(after[1], 1) || !cone_.pool().equal(before[0], after[0]) || !cone_.is_input(indices) ||
      !cone_.origins().is_batch(indices, 0))
    return std::nullopt;
  return AxisMistake{Kind::kRowsOfFirstColumn, node, data, {0}, true, node, 1};
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
