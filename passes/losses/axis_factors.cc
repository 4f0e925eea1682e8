#include "passes/losses/axis_factors.h"

#include <algorithm>
#include <utility>

#include "passes/losses/operands_first.h"

namespace tensorlint::losses {
namespace {

/// Values whose axes are followed for one model; the axes of others are one factor each.
constexpr std::size_t kMaxFactoredValues = 20'000;
constexpr std::size_t kMaxAxisFactors = 8;
constexpr std::size_t kMaxFactoredRank = 8;
/// What is kept of all values; past it nothing is known of a value.
constexpr std::size_t kMaxFactorBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxParts = 64;

/// Of two lists for one axis: what is not stretched, then what says more.
bool says_more(const AxisFactors::Factors& a, const AxisFactors::Factors& b) {
  const auto copies = [](const AxisFactors::Factors& factors) {
    return std::ranges::count_if(factors, &AxisFactor::is_copied);
  };
  const auto rank = [&](const AxisFactors::Factors& factors) {
    return std::pair(!factors.empty() && copies(factors) == 0,
                     factors.size() + static_cast<std::size_t>(std::ranges::any_of(factors, &AxisFactor::is_batch)));
  };
  return rank(a) > rank(b);
}

}  // namespace

std::span<const AxisFactors::Factors> AxisFactors::of(ValueId value) {
  if (value == ValueId::kAbsent) return {};
  const auto follows = [&](std::size_t waiting) {
    return !expressions_.is_spent() && known_.size() + waiting < kMaxFactoredValues;
  };
  const auto add = [&](ValueId at, bool /*is_followed*/) {
    Axes axes = bytes_ < kMaxFactorBytes && way_.dims(at).size() <= kMaxFactoredRank ? compute(at) : Axes{};
    std::size_t bytes = sizeof(Axes) + axes.size() * sizeof(Factors);
    for (const Factors& factors : axes)
      for (const AxisFactor& factor : factors)
        bytes += sizeof(AxisFactor) + factor.sources.capacity() * sizeof(AxisSource);
    bytes_ += bytes;
    memory_.add(bytes);
    expressions_.charge(2 * axes.size() + bytes / sizeof(AxisFactor));
    known_.insert_or_assign(at, std::move(axes));
  };
  compute_operands_first(expressions_, value, known_, follows, [](ValueId) {}, add);
  return known_.find(value)->second;
}

AxisFactor AxisFactors::own(ValueId value, std::size_t axis) {
  const auto axes = origins_.of(value);
  return {way_.dims(value)[axis], false, origins_.is_batch(value, axis),
          axis < axes.size() ? axes[axis] : AxisOrigins::Sources()};
}

AxisFactors::Axes AxisFactors::compute(ValueId value) {
  const auto dims = way_.dims(value);
  const NodeId node = expressions_.producer(value);
  Axes axes(dims.size());
  if (node != NodeId::kNone && (expressions_.result(node) == value || expressions_.op(node) == Opcode::kSplit)) {
    switch (expressions_.op(node)) {
      case Opcode::kReshape:
      case Opcode::kSqueeze:
      case Opcode::kUnsqueeze:
        regroup(expressions_.operand(node, 0), dims, axes);
        break;
      case Opcode::kConcat:
        join(node, dims, axes);
        break;
      case Opcode::kExpand:
      case Opcode::kTile:
        repeat(node, dims, axes);
        break;
      case Opcode::kGather:
        pick(node, axes);
        break;
      default:
        keep(node, axes);
        break;
    }
  }
  const DimPool& pool = expressions_.analysis().facts().dims();
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (pool.is_constant(dims[i], 1))
      axes[i].clear();
    else if (axes[i].empty() || axes[i].size() > kMaxAxisFactors)
      axes[i] = {own(value, i)};
  }
  return axes;
}

/// A view keeps the order: an axis of it is made of the factors that lie between its borders.
void AxisFactors::regroup(ValueId from, std::span<const Dim> after, Axes& axes) {
  DimPool& pool = expressions_.analysis().facts().dims();
  const auto known = known_.find(from);
  if (known == known_.end() || known->second.empty()) return;
  Factors all;
  for (const Factors& factors : known->second) all.insert(all.end(), factors.begin(), factors.end());
  std::vector<Dim> borders{pool.constant(1)};
  for (const AxisFactor& factor : all) borders.push_back(pool.mul(borders.back(), factor.extent));
  Dim first = pool.constant(1);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const Dim last = pool.mul(first, after[i]);
    const auto is = [&](Dim border) { return [&pool, border](Dim each) { return pool.equal(each, border); }; };
    const auto a = std::ranges::find_if(borders, is(first)), b = std::ranges::find_if(borders, is(last));
    if (a != borders.end() && b != borders.end() && a < b)
      axes[i].assign(all.begin() + (a - borders.begin()), all.begin() + (b - borders.begin()));
    first = last;
  }
}

/// Parts of one shape that are joined: which part is the outer factor of the axis.
void AxisFactors::join(NodeId node, std::span<const Dim> after, Axes& axes) {
  DimPool& pool = expressions_.analysis().facts().dims();
  const auto parts = expressions_.analysis().operands(node);
  if (parts.empty() || parts.size() > kMaxParts) return;
  const auto shape = way_.dims(parts[0]);
  const Attribute* given = expressions_.analysis().attribute(node, "axis");
  if (given == nullptr || shape.size() != after.size()) return;
  const std::int64_t at = given->i < 0 ? given->i + static_cast<std::int64_t>(after.size()) : given->i;
  if (at < 0 || at >= static_cast<std::int64_t>(after.size())) return;
  const auto axis = static_cast<std::size_t>(at);
  const auto first = known_.find(parts[0]);
  if (first == known_.end() || first->second.size() != after.size()) return;
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (i != axis) axes[i] = first->second[i];
  const Factors& inner = first->second[axis];
  const bool alike = std::ranges::all_of(parts, [&](ValueId part) {
    const auto known = known_.find(part);
    if (known == known_.end() || known->second.size() != after.size()) return false;
    return std::ranges::equal(known->second[axis], inner, [&](const AxisFactor& a, const AxisFactor& b) {
      return pool.equal(a.extent, b.extent) && a.is_batch == b.is_batch;
    });
  });
  if (!alike || parts.size() < 2) return;
  axes[axis] = {{pool.constant(static_cast<std::int64_t>(parts.size())), false, false}};
  axes[axis].insert(axes[axis].end(), inner.begin(), inner.end());
}

/// Stretched axes are copies; an axis that is repeated as a whole has them outside.
void AxisFactors::repeat(NodeId node, std::span<const Dim> after, Axes& axes) {
  DimPool& pool = expressions_.analysis().facts().dims();
  const ValueId from = expressions_.operand(node, 0);
  const auto known = known_.find(from);
  const auto before = way_.dims(from);
  if (known == known_.end() || known->second.size() != before.size() || before.size() > after.size()) return;
  const std::size_t added = after.size() - before.size();
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (i < added || pool.is_constant(before[i - added], 1)) {
      axes[i] = {{after[i], true, false}};
    } else if (pool.equal(before[i - added], after[i])) {
      axes[i] = known->second[i - added];
    } else if (const auto times = pool.exact_div(after[i], before[i - added]); times) {
      axes[i] = {{*times, true, false}};
      axes[i].insert(axes[i].end(), known->second[i - added].begin(), known->second[i - added].end());
    }
  }
}

/// The axis that is picked from becomes those of the indices.
void AxisFactors::pick(NodeId node, Axes& axes) {
  keep(node, axes);
  const auto data = way_.dims(expressions_.operand(node, 0)), indices = way_.dims(expressions_.operand(node, 1));
  const Attribute* given = expressions_.analysis().attribute(node, "axis");
  std::int64_t at = given == nullptr ? 0 : given->i;
  if (at < 0) at += static_cast<std::int64_t>(data.size());
  const auto known = known_.find(expressions_.operand(node, 1));
  if (at < 0 || at >= static_cast<std::int64_t>(data.size()) || known == known_.end() ||
      known->second.size() != indices.size() || axes.size() + 1 != data.size() + indices.size())
    return;
  std::ranges::copy(known->second, axes.begin() + at);
}

/// Axes that come through as they are.
void AxisFactors::keep(NodeId node, Axes& axes) {
  const DimPool& pool = expressions_.analysis().facts().dims();
  const auto operands = expressions_.analysis().operands(node);
  const ops::OpEntry* entry = expressions_.entry(node);
  const bool is_split = expressions_.op(node) == Opcode::kSplit;
  const bool is_loss = entry != nullptr && entry->loss().has_value();
  bool followed = false;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const auto known = known_.find(operands[k]);
    if (operands[k] == ValueId::kAbsent || known == known_.end()) continue;
    const Axes& from = known->second;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i].empty()) continue;
      AxisStep step;
      if (is_loss)
        step = k == 1 ? AxisStep{AxisFate::kKept, i} : AxisStep{};
      else
        step = way_.follow(node, k, i);
      followed |= step.fate != AxisFate::kUnknown;
      if (step.fate == AxisFate::kKept && step.axis < axes.size() && says_more(from[i], axes[step.axis]))
        axes[step.axis] = from[i];
    }
  }
  if (followed || is_loss) return;
  // Layers keep the samples; parts keep all but the axis that is split.
  const auto known = known_.find(expressions_.operand(node, 0));
  const auto before = way_.dims(expressions_.operand(node, 0)), after = way_.dims(expressions_.result(node));
  if (known == known_.end() || before.size() != axes.size() || after.size() != axes.size()) return;
  for (std::size_t i = 0; i < (is_split ? axes.size() : std::min<std::size_t>(axes.size(), 1)); ++i)
    if (pool.equal(before[i], after[i])) axes[i] = known->second[i];
}

}  // namespace tensorlint::losses
