#include <algorithm>
#include <cmath>

#include "passes/dataflow/element_function.h"
#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;

/// Values that are looked at on the way forward from one node.
constexpr std::size_t kMaxMixedWay = 48;

}  // namespace

std::optional<AxisMistake> BatchMixing::at(NodeId node) {
  switch (expressions_.op(node)) {
    case Opcode::kReduceMax:
    case Opcode::kReduceMin:
      return extreme_of_all(node);
    case Opcode::kReduceLogSumExp:
      if (auto found = extreme_of_all(node)) return found;
      return log_sum_exp(node);
    case Opcode::kLog:
      if (auto found = logarithm_of_mean(node)) return found;
      return log_sum_exp(node);
    case Opcode::kDiv:
      if (auto found = norm_in_divisor(node)) return found;
      return norm_of_other_axis(node);
    case Opcode::kReduceSum:
    case Opcode::kReduceL2:
      return margin_of_sum(node);
    case Opcode::kCumSum:
      return cumulative(node);
    default:
      return std::nullopt;
  }
}

/// Of samples [N, T]. In order of time the samples at risk of a survival model are summed up, one number each.
std::optional<AxisMistake> BatchMixing::cumulative(NodeId node) {
  const ValueId data = expressions_.operand(node, 0);
  const auto axis = expressions_.number(expressions_.operand(node, 1));
  const std::size_t rank = cone_.dims(data).size();
  if (!axis || rank < 2) return std::nullopt;
  const double at = *axis < 0 ? *axis + static_cast<double>(rank) : *axis;
  if (at < 0 || at >= static_cast<double>(rank) || !cone_.is_batch_alone(data, static_cast<std::size_t>(at)) ||
      is_in_sequence())
    return std::nullopt;
  // Sorted before: what comes first is meant.
  ValueId value = data;
  for (int step = 0; step < 8; ++step) {
    const NodeId before = expressions_.producer(value);
    const bool picks = expressions_.op(before) == Opcode::kGather || expressions_.op(before) == Opcode::kGatherND;
    if (picks && cone_.way().follow(before, 0, static_cast<std::size_t>(at)).fate != AxisFate::kKept)
      return std::nullopt;
    if (!has_trait(expressions_.entry(before), ops::OpTrait::kElementwise)) break;
    value = expressions_.operand(before, 0);
  }
  return AxisMistake{Kind::kCumulative, node, data, {static_cast<std::size_t>(at)}, true, meets_samples(node), 0};
}

/// Where what the node gives first meets another value that has the batch.
NodeId BatchMixing::meets_samples(NodeId node) const {
  std::vector<ValueId> pending{expressions_.result(node)};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxMixedWay; ++i) {
    for (const NodeId user : expressions_.users(pending[i])) {
      if (!cone_.has(user)) continue;
      const ValueId other = expressions_.beside(user, pending[i]);
      if (has_trait(expressions_.entry(user), ops::OpTrait::kElementwise) && other != ValueId::kAbsent &&
          cone_.has_batch(other))
        return user;
      pending.push_back(expressions_.result(user));
    }
  }
  return node;
}

bool BatchMixing::is_recurrent(NodeId node) const { return expressions_.op(node) == Opcode::kRecurrence; }

/// Axis 0 of the inputs are steps: single ones are taken, they are shifted against each other, or a recurrent layer
/// goes over them.
bool BatchMixing::is_in_sequence() {
  if (is_in_sequence_) return *is_in_sequence_;
  is_in_sequence_ = std::ranges::any_of(cone_.nodes(), [&](NodeId node) {
    const Opcode opcode = expressions_.op(node);
    const ValueId data = expressions_.operand(node, 0);
    const auto before = cone_.dims(data), after = cone_.dims(expressions_.result(node));
    if (before.size() < 2) return false;
    if (is_recurrent(node)) return cone_.origins().is_batch(data, 0);
    if (opcode == Opcode::kSlice)
      return after.size() == before.size() && !cone_.pool().equal(before[0], after[0]) &&
             cone_.origins().is_batch(data, 0);
    if (opcode != Opcode::kGather || after.size() >= before.size()) return false;
    return cone_.way().follow(node, 0, 0).fate == AxisFate::kSelected && cone_.origins().is_batch(data, 0);
  });
  return *is_in_sequence_;
}

/// What the node reduces to one number, where that has samples with several elements each.
ValueId BatchMixing::reduced_in_whole(NodeId node) const {
  if (!cone_.is_one_number(expressions_.result(node))) return ValueId::kAbsent;
  ValueId data = cone_.before_views(expressions_.operand(node, 0));
  for (int step = 0; step < 4 && expressions_.op_of(data) == expressions_.op(node); ++step)  // one axis after the other
    data = cone_.before_views(expressions_.operand(expressions_.producer(data), 0));
  return data != ValueId::kAbsent && cone_.is_batch_alone(data, 0) &&
                 cone_.analysis().fact(data).dtypes.proves(DTypeSet::floats())
             ? data
             : ValueId::kAbsent;
}

std::optional<AxisMistake> BatchMixing::extreme_of_all(NodeId node) {
  const ValueId data = reduced_in_whole(node);
  if (data == ValueId::kAbsent) return std::nullopt;
  const NodeId meets = joins_samples(expressions_.result(node), data);
  if (meets == NodeId::kNone) return std::nullopt;
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < cone_.dims(data).size(); ++i) axes.push_back(i);
  return AxisMistake{Kind::kExtremeOfAll, node, data, std::move(axes), true, meets, 0};
}

/// The sum in which the number meets one number for each sample that is not computed from the same values: then it is
/// in the place of such a number. What it is taken from may be shifted, scaled or masked with it, and be shifted back.
NodeId BatchMixing::joins_samples(ValueId number, ValueId data) const {
  std::vector<ValueId> pending{number};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxMixedWay; ++i) {
    for (const NodeId user : expressions_.users(pending[i])) {
      if (!cone_.has(user)) continue;
      const Opcode opcode = expressions_.op(user);
      const ValueId other = expressions_.beside(user, pending[i]);
      const bool is_divided = opcode == Opcode::kDiv && expressions_.operand(user, 0) == pending[i];
      const bool goes_on = keeps_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kExpand ||
                           opcode == Opcode::kNeg || is_divided;
      if (opcode == Opcode::kMul && !cone_.depends(other, data)) {
        pending.push_back(expressions_.result(user));
      } else if (opcode == Opcode::kAdd || opcode == Opcode::kSub) {
        if (!cone_.has_batch(other))
          pending.push_back(expressions_.result(user));
        else if (!is_same_samples(other, data) && !cone_.depends(other, number))
          return user;
      } else if (goes_on) {
        pending.push_back(expressions_.result(user));
      }
    }
  }
  return NodeId::kNone;
}

/// Each element is computed from one of the other value: no sample has been reduced or picked from.
bool BatchMixing::is_same_samples(ValueId value, ValueId data) const {
  std::vector<ValueId> pending{value};
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (pending.size() > kMaxMixedWay || cone_.before_views(pending[i]) == data) return true;
    const NodeId node = expressions_.producer(cone_.before_views(pending[i]));
    if (!has_trait(expressions_.entry(node), ops::OpTrait::kElementwise)) continue;
    const auto operands = cone_.operands(node).read();
    pending.insert(pending.end(), operands.begin(), operands.end());
  }
  return false;
}

/// x / |x| with one norm of all samples, or with norms over the batch, where features are summed afterwards.
std::optional<AxisMistake> BatchMixing::norm_in_divisor(NodeId node) {
  const ValueId value = expressions_.operand(node, 0);
  NodeId norm = NodeId::kNone;
  const ValueId of = cone_.norm_of(expressions_.operand(node, 1), norm);
  if (of == ValueId::kAbsent || cone_.before_views(of) != cone_.before_views(value) || cone_.is_centred(value))
    return std::nullopt;
  std::size_t batch = 0;
  const bool whole = reduced_in_whole(norm) != ValueId::kAbsent;
  if (!whole) {
    const auto axes = expressions_.axes_of(norm);
    if (!axes || axes->size() != 1 || !cone_.is_batch_alone(of, axes->front())) return std::nullopt;
    batch = axes->front();
  }
  if (cone_.dims(value).size() != cone_.dims(expressions_.result(node)).size() || !cone_.is_batch_alone(value, batch))
    return std::nullopt;
  const auto [fate, meets] = contraction_after(expressions_.result(node), batch);
  if (fate != AxisFate::kKept) return std::nullopt;
  std::vector<std::size_t> axes{batch};
  if (whole)
    for (std::size_t i = 1; i < cone_.dims(value).size(); ++i) axes.push_back(i);
  return AxisMistake{whole ? Kind::kNormOfAll : Kind::kNormOfBatch, norm, value, std::move(axes), true, meets, 0};
}

/// The axis that the norm is taken over by which a value is divided, where that is one of its own and not the batch.
std::optional<std::size_t> BatchMixing::axis_of_norm(NodeId division) const {
  if (expressions_.op(division) != Opcode::kDiv) return std::nullopt;
  const ValueId value = expressions_.operand(division, 0);
  NodeId norm = NodeId::kNone;
  const ValueId of = cone_.norm_of(expressions_.operand(division, 1), norm);
  const auto axes = of == ValueId::kAbsent ? std::nullopt : expressions_.axes_of(norm);
  if (!axes || axes->size() != 1 || cone_.before_views(of) != cone_.before_views(value) || cone_.is_centred(value) ||
      cone_.dims(of).size() != cone_.dims(value).size() || !cone_.is_long(value, axes->front()) ||
      !cone_.has_batch(value) || cone_.origins().is_batch(value, axes->front()))
    return std::nullopt;
  return axes->front();
}

/// Two values that are both divided by norms over another axis than the one that their product sums over: no cosine.
std::optional<AxisMistake> BatchMixing::norm_of_other_axis(NodeId node) const {
  const auto axis = axis_of_norm(node);
  if (!axis) return std::nullopt;
  const auto [fate, product] = contraction_after(expressions_.result(node), *axis);
  if (fate != AxisFate::kKept || cone_.operands(product).size() != 2 || is_total(expressions_.op(product)))
    return std::nullopt;
  for (ValueId operand : cone_.operands(product)) {
    NodeId division = expressions_.producer(operand);
    for (int step = 0;
         step < 4 && (moves_elements(expressions_.op(division)) || expressions_.op(division) == Opcode::kCast); ++step)
      division = expressions_.producer(expressions_.operand(division, 0));
    const auto other = axis_of_norm(division);
    if (!other) return std::nullopt;
    const auto [end, meets] = contraction_after(expressions_.result(division), *other);
    if (end != AxisFate::kKept || meets != product) return std::nullopt;
  }
  return AxisMistake{Kind::kNormElsewhere, node, expressions_.operand(node, 0), {*axis}, false, product, 0};
}

/// The first product or sum that the value goes into: whether it keeps the batch, and adds up features, or adds up the
/// batch.
std::pair<AxisFate, NodeId> BatchMixing::contraction_after(ValueId value, std::size_t batch) const {
  std::vector<std::pair<ValueId, std::size_t>> pending{{value, batch}};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxMixedWay; ++i) {
    const auto [at, axis] = pending[i];
    for (const NodeId user : expressions_.users(at)) {
      if (!cone_.has(user)) continue;
      const std::size_t operand = cone_.operand_index(user, at);
      const AxisStep step = cone_.way().follow(user, operand, axis);
      const Opcode opcode = expressions_.op(user);
      const bool sums = opcode == Opcode::kMatMul || opcode == Opcode::kEinsum || is_total(opcode);
      if (step.fate == AxisFate::kSummed && sums) return {AxisFate::kSummed, user};
      if (step.fate != AxisFate::kKept) continue;
      const auto summed = cone_.way().summed(user, operand);
      const bool sums_features =
          sums && std::ranges::any_of(summed, [&, value = at](std::size_t each) { return cone_.is_long(value, each); });
      if (sums_features) return {AxisFate::kKept, user};
      const bool passes = moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kDropout ||
                          opcode == Opcode::kMul || opcode == Opcode::kDiv || opcode == Opcode::kNeg;
      if (passes) pending.emplace_back(expressions_.result(user), step.axis);
    }
  }
  return {AxisFate::kUnknown, NodeId::kNone};
}

/// A sum of likelihoods under the logarithm, over the batch instead of what is mixed.
std::optional<AxisMistake> BatchMixing::log_sum_exp(NodeId node) {
  NodeId sum = node;
  ValueId data = expressions_.operand(node, 0);
  if (expressions_.op(node) == Opcode::kLog) {
    sum = expressions_.producer(cone_.before_views(data));
    if (expressions_.op(sum) != Opcode::kReduceSum) return std::nullopt;
    data = expressions_.operand(sum, 0);
    if (expressions_.op_of(data) != Opcode::kExp) return std::nullopt;
  }
  const auto axes = expressions_.axes_of(sum);
  if (!axes || axes->size() != 1 || !cone_.is_batch_alone(data, axes->front())) return std::nullopt;
  const bool bounds = is_score_of_classes(data, axes->front());
  if (!is_summed_up_as_it_is(expressions_.result(node), bounds)) return std::nullopt;
  return AxisMistake{Kind::kLogSumExpOfBatch, sum, data, *axes, true, node, 0};
}

/// log(p.gather(1, y).mean()) for log(p.gather(1, y)).mean(): the mean of probabilities is no likelihood of all labels.
std::optional<AxisMistake> BatchMixing::logarithm_of_mean(NodeId node) const {
  ValueId value = cone_.before_views(expressions_.operand(node, 0));
  // A guard.
  if (expressions_.op_of(value) == Opcode::kAdd &&
      expressions_.number(expressions_.operand(expressions_.producer(value), 1)))
    value = cone_.before_views(expressions_.operand(expressions_.producer(value), 0));
  const NodeId mean = expressions_.producer(value);
  if (expressions_.op(mean) != Opcode::kReduceMean || !cone_.is_one_number(value)) return std::nullopt;
  const ValueId picked = cone_.before_views(expressions_.operand(mean, 0));
  const NodeId pick = expressions_.producer(picked);
  if (expressions_.op(pick) != Opcode::kGatherElements && expressions_.op(pick) != Opcode::kGatherND)
    return std::nullopt;
  const auto softmax = expressions_.normalised(cone_.before_views(expressions_.operand(pick, 0)));
  const std::size_t rank = cone_.dims(picked).size();
  if (!softmax || softmax->logarithm || rank == 0 || !cone_.is_long(picked, 0) || !cone_.origins().is_batch(picked, 0))
    return std::nullopt;
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < rank; ++i) axes.push_back(i);
  return AxisMistake{Kind::kLogarithmOfMean, node, picked, std::move(axes), true, mean, 0};
}

/// Scores that a loss or a softmax of the same program reads along another axis.
bool BatchMixing::is_score_of_classes(ValueId scores, std::size_t batch) const {
  for (int step = 0; step < 4; ++step) {
    for (const NodeId user : expressions_.users(scores)) {
      const ops::OpEntry* const entry = expressions_.entry(user);
      if (entry != nullptr && entry->loss() && expressions_.operand(user, 0) == scores) return batch == 0;
      const auto axes = expressions_.op(user) == Opcode::kLogSoftmax || expressions_.op(user) == Opcode::kSoftmax
                            ? expressions_.axes_of(user)
                            : std::nullopt;
      if (axes && axes->size() == 1 && axes->front() != batch) return true;
    }
    const NodeId node = expressions_.producer(scores);
    const bool scales = (expressions_.op(node) == Opcode::kMul || expressions_.op(node) == Opcode::kDiv) &&
                        expressions_.number(expressions_.operand(node, 1)).has_value();
    if (!scales && expressions_.op(node) != Opcode::kCast) return false;
    scores = expressions_.operand(node, 0);
  }
  return false;
}

/// Nothing but sums, means and scales, and bounds and squares where they are looked through, comes after it, and it is
/// not taken from what it was computed from.
bool BatchMixing::is_summed_up_as_it_is(ValueId value, bool through_bounds) const {
  std::vector<ValueId> pending{value};
  bool reduced = false;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (pending.size() > kMaxMixedWay) return false;
    for (const NodeId user : expressions_.users(pending[i])) {
      if (!cone_.has(user)) continue;
      const Opcode opcode = expressions_.op(user);
      const ValueId other = expressions_.beside(user, pending[i]);
      if (is_total(opcode)) {
        reduced = true;
        continue;
      }
      const bool scales =
          (opcode == Opcode::kMul || (opcode == Opcode::kDiv && expressions_.operand(user, 0) == pending[i])) &&
          expressions_.number(other).has_value();
      const bool shifts = (opcode == Opcode::kAdd || opcode == Opcode::kSub) && !cone_.has_batch(other);
      const bool bounds =
          through_bounds && (saturates(user) || expressions_.square_base(expressions_.result(user)) == pending[i]);
      if (!keeps_elements(opcode) && opcode != Opcode::kCast && opcode != Opcode::kNeg && !scales && !shifts && !bounds)
        return false;
      pending.push_back(expressions_.result(user));
    }
  }
  return reduced;
}

/// Distances of a triplet, or scores of a pair, that are summed over the batch: one hinge for each feature.
std::optional<AxisMistake> BatchMixing::margin_of_sum(NodeId node) {
  const ValueId data = expressions_.operand(node, 0);
  const auto axes = expressions_.axes_of(node);
  if (!axes || axes->size() != 1 || !cone_.is_batch_alone(data, axes->front()) || !is_distance_or_product(node))
    return std::nullopt;
  const NodeId hinge = hinge_after(expressions_.result(node));
  if (hinge == NodeId::kNone) {
    // A norm of the error of a prediction is a root mean square up to a scale; two embeddings have one distance each.
    const NodeId difference = expressions_.producer(cone_.before_views(data));
    const bool is_distance =
        expressions_.op(node) == Opcode::kReduceL2 && !cone_.is_input(expressions_.operand(difference, 0)) &&
        !cone_.is_input(expressions_.operand(difference, 1)) && is_summed_up_as_it_is(expressions_.result(node), false);
    if (!is_distance) return std::nullopt;
    return AxisMistake{Kind::kDistanceOfColumns, node, data, *axes, true, difference, 0};
  }
  // Steps of a sequence that come first are summed up rightly.
  if (is_picked_logarithm(data) && is_in_sequence()) return std::nullopt;
  return AxisMistake{Kind::kMarginOfSums, node, data, *axes, true, hinge, 0};
}

bool BatchMixing::is_distance_or_product(NodeId sum) const {
  const ValueId data = expressions_.operand(sum, 0);
  const auto is_difference = [&](ValueId value) {
    const NodeId node = expressions_.producer(cone_.before_views(value));
    return expressions_.op(node) == Opcode::kSub && !cone_.is_centred(value) &&
           cone_.is_batch_alone(expressions_.operand(node, 0), 0) &&
           cone_.is_batch_alone(expressions_.operand(node, 1), 0);
  };
  if (expressions_.op(sum) == Opcode::kReduceL2) return is_difference(data);
  if (is_picked_logarithm(data)) return true;
  if (const ValueId base = expressions_.square_base(data); base != ValueId::kAbsent) return is_difference(base);
  const NodeId product = expressions_.producer(data);
  const ValueId a = expressions_.operand(product, 0), b = expressions_.operand(product, 1);
  return expressions_.op(product) == Opcode::kMul && cone_.is_batch_alone(a, 0) && cone_.is_batch_alone(b, 0) &&
         !cone_.is_input(a) && !cone_.is_input(b) && !cone_.depends(a, b) && !cone_.depends(b, a);
}

/// Log-probabilities of the chosen classes, one for each step of each sample.
bool BatchMixing::is_picked_logarithm(ValueId value) const {
  const NodeId pick = expressions_.producer(cone_.before_views(value));
  if (expressions_.op(pick) != Opcode::kGatherElements) return false;
  const auto softmax = expressions_.normalised(expressions_.operand(pick, 0));
  return softmax && softmax->logarithm && softmax->axes.size() == 1 && cone_.dims(value).size() == 2 &&
         !cone_.origins().is_batch(softmax->scores, softmax->axes.front());
}

NodeId BatchMixing::hinge_after(ValueId sum, bool is_compared) const {
  std::vector<std::pair<ValueId, bool>> pending{{sum, is_compared}};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxMixedWay; ++i) {
    const auto [value, compared] = pending[i];
    for (const NodeId user : expressions_.users(value)) {
      if (!cone_.has(user)) continue;
      const Opcode opcode = expressions_.op(user);
      const ValueId result = expressions_.result(user);
      if (compared && saturates(user)) return user;
      if (opcode == Opcode::kAdd || opcode == Opcode::kSub)
        pending.emplace_back(result, true);
      else if (keeps_elements(opcode) || opcode == Opcode::kNeg || opcode == Opcode::kSqrt || opcode == Opcode::kMul)
        pending.emplace_back(result, compared);
    }
  }
  return NodeId::kNone;
}

bool BatchMixing::saturates(NodeId node) const {
  const Opcode opcode = expressions_.op(node);
  if (opcode == Opcode::kLogSigmoid || opcode == Opcode::kSoftplus || opcode == Opcode::kSigmoid ||
      opcode == Opcode::kClip)
    return true;
  if (opcode == Opcode::kMax)
    return expressions_.number(expressions_.operand(node, 0)).has_value() ||
           expressions_.number(expressions_.operand(node, 1)).has_value();
  const ops::ElementValue element = dataflow::element_function(cone_.analysis(), node, 1);
  if (element == nullptr) return false;
  const auto at = [&](double x) {
    const double operands[] = {x};
    return element({operands, cone_.analysis().attributes(node).read()});
  };
  return std::abs(at(-1e3) - at(-2e3)) < 1e-6 && at(2e3) - at(1e3) > 1;
}

}  // namespace tensorlint::losses
