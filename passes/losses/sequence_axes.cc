#include <algorithm>
#include <cmath>

#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;

/// Softmaxes of one model that are looked at as attention.
constexpr std::size_t kMaxAttentions = 64;

bool contains(const AxisOrigins::Sources& sources, const AxisSource& source) {
  return std::ranges::binary_search(sources, source);
}

}  // namespace

std::optional<AxisMistake> SequenceAxes::at(NodeId node) {
  switch (expressions_.op(node)) {
    case Opcode::kSoftmax:
      return attention_of_batch(node);
    case Opcode::kAdd:
      return positions_of_batch(node);
    case Opcode::kConv:
      return steps_as_channels(node);
    default:
      return std::nullopt;
  }
}

/// Of products of two values that depend on data, over the last axis, which weigh another value.
const std::vector<SequenceAxes::Attention>& SequenceAxes::attentions() {
  if (attentions_) return *attentions_;
  attentions_.emplace();
  for (const NodeId node : cone_.nodes()) {
    if (attentions_->size() >= kMaxAttentions || expressions_.is_spent()) break;
    if (expressions_.op(node) != Opcode::kSoftmax) continue;
    const auto softmax = expressions_.normalised(expressions_.result(node));
    if (!softmax || softmax->axes.size() != 1) continue;
    const std::size_t rank = cone_.dims(softmax->scores).size();
    if (rank < 3 || softmax->axes.front() + 1 != rank || !is_product_of_data(softmax->scores)) continue;
    const auto origins = cone_.origins().of(softmax->scores);
    if (origins.size() != rank) continue;
    Attention found{.node = node, .scores = softmax->scores, .keys = origins.back(), .others = {}};
    for (std::size_t i = 0; i + 2 < rank; ++i)
      found.others.insert(found.others.end(), origins[i].begin(), origins[i].end());
    std::ranges::sort(found.others);
    attentions_->push_back(std::move(found));
  }
  return *attentions_;
}

/// Scaled, and with a mask added, perhaps.
bool SequenceAxes::is_product_of_data(ValueId scores) const {
  for (int step = 0; step < 8; ++step) {
    const NodeId node = expressions_.producer(scores);
    const Opcode opcode = expressions_.op(node);
    const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
    if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum)
      return cone_.operands(node).size() == 2 && cone_.has_batch(a) && cone_.has_batch(b);
    if (opcode == Opcode::kWhere)
      scores = expressions_.number(b) ? expressions_.operand(node, 2) : b;
    else if (opcode == Opcode::kMul || opcode == Opcode::kDiv || opcode == Opcode::kAdd || keeps_elements(opcode))
      scores = cone_.dims(a).size() < cone_.dims(b).size() && !keeps_elements(opcode) ? b : a;
    else
      return false;
  }
  return false;
}

/// Keys and queries are the samples, and the steps are carried along as if they were samples. Then the steps are
/// averaged or one is picked, as of a layer that attends to them.
std::optional<AxisMistake> SequenceAxes::attention_of_batch(NodeId node) {
  const auto& all = attentions();
  const auto known = std::ranges::find(all, node, &Attention::node);
  if (known == all.end()) return std::nullopt;
  for (const AxisSource& source : known->keys) {
    if (source.axis != 0 || !cone_.origins().is_batch(source.value, 0)) continue;
    const AxisSource steps{source.value, 1};
    if (contains(known->keys, steps) || !contains(known->others, steps)) continue;
    // Rows and columns in turn.
    if (std::ranges::any_of(
            all, [&](const Attention& other) { return contains(other.keys, steps) && !contains(other.keys, source); }))
      continue;
    const auto given = cone_.dims(source.value);
    if (given.size() < 2 || cone_.pool().equal(given[0], given[1])) continue;
    const Dim samples = given[0], length = given[1];
    const NodeId removes = removed_along(*known, samples, length);
    if (removes == NodeId::kNone || removed_along(*known, length, samples) != NodeId::kNone) continue;
    return AxisMistake{Kind::kAttentionOfBatch, node, source.value, {0}, true, removes, 1};
  }
  return std::nullopt;
}

/// A node after the attention that averages or picks the axis that is `removed` long, of a value whose other axis is
/// `kept` long, and leaves features.
NodeId SequenceAxes::removed_along(const Attention& attention, Dim kept, Dim removed) const {
  const DimPool& pool = cone_.pool();
  for (const NodeId node : cone_.nodes()) {
    if (expressions_.is_spent()) break;
    expressions_.charge(1);
    if (node <= attention.node) continue;
    const Opcode opcode = expressions_.op(node);
    const ValueId data = expressions_.operand(node, 0);
    const auto before = cone_.dims(data), after = cone_.dims(expressions_.result(node));
    if (before.size() != 3 || !cone_.is_long(data, 2)) continue;
    const bool reduces = opcode == Opcode::kReduceMean || opcode == Opcode::kReduceMax || opcode == Opcode::kReduceSum;
    if (!reduces && opcode != Opcode::kGather && opcode != Opcode::kSlice) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!pool.equal(before[i], removed) || !pool.equal(before[1 - i], kept)) continue;
      const AxisFate fate = cone_.way().follow(node, 0, i).fate;
      const bool picks = fate == AxisFate::kSelected && after.size() < before.size();
      const bool cuts = opcode == Opcode::kSlice && after.size() == 3 && pool.is_constant(after[i], 1);
      const bool keeps = cone_.way().follow(node, 0, 1 - i).fate == AxisFate::kKept;
      if (keeps && (picks || cuts || (reduces && fate == AxisFate::kSummed)) && cone_.depends(data, attention.scores))
        return node;
    }
  }
  return NodeId::kNone;
}

/// Positions [T, 1, D] added to [N, T, D]: one number for each sample, where attention goes along the steps.
std::optional<AxisMistake> SequenceAxes::positions_of_batch(NodeId node) {
  for (std::size_t side = 0; side < 2; ++side) {
    const ValueId data = expressions_.operand(node, side), table = expressions_.operand(node, 1 - side);
    const auto x = cone_.dims(data), y = cone_.dims(table);
    if (x.size() != 3 || y.size() != 3 || !cone_.is_long(table, 0) || cone_.is_long(table, 1) ||
        !cone_.is_long(table, 2) || !cone_.is_long(data, 1) || !is_table_of_positions(table))
      continue;
    const auto origins = cone_.origins().of(data);
    if (origins.size() != 3) continue;
    for (const AxisSource& source : AxisOrigins::Sources(origins[0])) {
      const AxisSource steps{source.value, 1};
      if (source.axis != 0 || !cone_.origins().is_batch(source.value, 0) ||
          !contains(cone_.origins().of(data)[1], steps))
        continue;
      bool along = false, across = false;
      for (const Attention& attention : attentions()) {
        const bool over_steps = contains(attention.keys, steps), over_samples = contains(attention.keys, source);
        if (over_steps == over_samples || !cone_.depends(attention.scores, expressions_.result(node))) continue;
        (over_steps ? along : across) = true;
      }
      if (along && !across) return AxisMistake{Kind::kPositionsOfBatch, node, table, {0}, true, node, 1, data, 1};
    }
  }
  return std::nullopt;
}

/// The first rows of a longer constant, as many as there are samples, or sines and cosines: those of position 0 are
/// zeros and ones.
bool SequenceAxes::is_table_of_positions(ValueId value) const {
  const NodeId slice = expressions_.producer(cone_.before_views(value));
  if (expressions_.op(slice) == Opcode::kSlice) {
    const ValueId whole = expressions_.operand(slice, 0);
    const auto before = cone_.dims(whole), after = cone_.dims(expressions_.result(slice));
    return cone_.is_constant(whole) && before.size() == 3 && after.size() == 3 &&
           !cone_.pool().equal(before[0], after[0]) && cone_.pool().equal(before[2], after[2]);
  }
  const auto numbers = cone_.numbers(value);
  const auto width = cone_.pool().as_constant(cone_.dims(value).back());
  // The numbers are those of the constant behind views, which Expand may have repeated.
  if (!numbers || !width || *width < 2 || numbers->size() / 2 < static_cast<std::size_t>(*width)) return false;
  const auto row = std::span(*numbers).first(static_cast<std::size_t>(*width));
  const auto zeros = std::ranges::count(row, 0.0), ones = std::ranges::count(row, 1.0);
  if (zeros + ones != *width || zeros == 0 || ones == 0) return false;
  const double sine = std::sin(1.0);
  const auto second = std::span(*numbers).subspan(static_cast<std::size_t>(*width), static_cast<std::size_t>(*width));
  return std::ranges::any_of(second, [&](double x) { return std::abs(x - sine) < 1e-5; });
}

/// The times of [N, T, C], equal steps along axis 1, are added before a convolution takes that axis for channels.
std::optional<AxisMistake> SequenceAxes::steps_as_channels(NodeId node) {
  const ValueId data = expressions_.operand(node, 0);
  if (cone_.dims(data).size() != 3 || !cone_.origins().is_batch(data, 0)) return std::nullopt;
  ValueId value = data;
  for (int step = 0; step < 4; ++step) {
    const NodeId before = expressions_.producer(value);
    if (expressions_.op(before) == Opcode::kCast || expressions_.op(before) == Opcode::kDropout) {
      value = expressions_.operand(before, 0);
      continue;
    }
    if (expressions_.op(before) != Opcode::kAdd) return std::nullopt;
    const ValueId a = expressions_.operand(before, 0), b = expressions_.operand(before, 1);
    const ValueId times = cone_.is_constant(b) ? b : a;
    const auto shape = cone_.dims(times);
    const bool is_column = shape.size() >= 2 && shape.size() <= 3 && !cone_.is_long(times, shape.size() - 1) &&
                           (shape.size() == 2 || !cone_.is_long(times, 0));
    if (is_column && has_equal_steps(times))
      return AxisMistake{Kind::kStepsAsChannels, node, data, {1}, false, before, 2};
    value = times == a ? b : a;
  }
  return std::nullopt;
}

bool SequenceAxes::has_equal_steps(ValueId value) const {
  const auto numbers = cone_.numbers(value);
  if (!numbers || numbers->size() < 4) return false;
  const double step = (*numbers)[1] - (*numbers)[0];
  for (std::size_t i = 1; i < numbers->size(); ++i)
    if (std::abs((*numbers)[i] - (*numbers)[i - 1] - step) >
        1e-5 * std::abs(step) * static_cast<double>(numbers->size()))
      return false;
  return step != 0;
}

}  // namespace tensorlint::losses
