#include <algorithm>

#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;

/// Nodes that are looked through in a row.
constexpr int kMaxRowSteps = 12;
constexpr std::size_t kMaxTerms = 8;

}  // namespace

std::optional<AxisMistake> RowTerms::at(NodeId node) {
  switch (expressions_.op(node)) {
    case Opcode::kReduceSum:
      return divergence_of_batch(node);
    case Opcode::kReduceMax:
      return largest_of_batch(node);
    case Opcode::kDiv:
      if (auto found = ratio_of_pixels(node)) return found;
      return standardised(node);
    case Opcode::kMul:
      if (auto found = gate_of_batch(node)) return found;
      return classes_elsewhere(node);
    case Opcode::kSqrt:
      return deviation_of_features(node);
    default:
      return std::nullopt;
  }
}

/// The one axis of a reduction, where it is the batch, and others are kept.
std::optional<std::size_t> RowTerms::batch_of(NodeId node) const {
  const auto axes = expressions_.axes_of(node);
  if (!axes || axes->size() != 1 || !cone_.is_batch_alone(expressions_.operand(node, 0), axes->front()))
    return std::nullopt;
  return axes->front();
}

/// A constant, or computed from extents, as the count of a corrected variance is.
bool RowTerms::is_number(ValueId value) const {
  if (expressions_.number(value)) return true;
  for (int step = 0; step < kMaxRowSteps; ++step) {
    const NodeId node = expressions_.producer(value);
    if (expressions_.op(node) == Opcode::kShape) return true;
    if (node == NodeId::kNone || !cone_.is_one_number(value)) return false;
    value = expressions_.operand(node, 0);
  }
  return false;
}

/// Before signs, and products with numbers.
ValueId RowTerms::unscaled(ValueId value) const {
  for (int step = 0; step < kMaxRowSteps; ++step) {
    value = cone_.before_views(value);
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    const ValueId first = expressions_.operand(node, 0), second = expressions_.operand(node, 1);
    if (opcode == Opcode::kNeg || opcode == Opcode::kCast)
      value = first;
    else if ((opcode == Opcode::kMul || opcode == Opcode::kDiv) && is_number(second))
      value = first;
    else if (opcode == Opcode::kMul && is_number(first))
      value = second;
    else
      break;
  }
  return value;
}

/// Nothing but signs, scales and views comes before a mean or sum of the opcode makes one number of it; that node.
NodeId RowTerms::total_after(ValueId value, Opcode total) const {
  for (int step = 0; step < kMaxRowSteps; ++step) {
    const auto users = expressions_.users(value);
    if (users.size() != 1 || !cone_.has(users.front())) return NodeId::kNone;
    const NodeId user = users.front();
    const Opcode opcode = expressions_.op(user);
    if (opcode == total) return cone_.is_one_number(expressions_.result(user)) ? user : NodeId::kNone;
    const bool scales = (opcode == Opcode::kMul || opcode == Opcode::kDiv) &&
                        expressions_.number(expressions_.beside(user, value)).has_value();
    if (!keeps_elements(opcode) && opcode != Opcode::kNeg && opcode != Opcode::kCast && !scales) return NodeId::kNone;
    value = expressions_.result(user);
  }
  return NodeId::kNone;
}

/// Logarithms of probabilities that add up to 1 along another axis than the batch.
bool RowTerms::is_log_probability(ValueId value, std::size_t batch) const {
  const auto softmax = expressions_.normalised(cone_.before_views(value));
  return softmax && softmax->logarithm && softmax->axes.size() == 1 && softmax->axes.front() != batch;
}

/// p * (log p - log q), t * log p: what is summed of each sample, over the classes.
bool RowTerms::is_row_of_logarithms(ValueId value, std::size_t batch) const {
  const NodeId product = expressions_.producer(unscaled(value));
  if (expressions_.op(product) != Opcode::kMul) return false;
  const std::size_t rank = cone_.dims(expressions_.result(product)).size();
  const auto is_logarithm = [&](ValueId factor) {
    const NodeId difference = expressions_.producer(unscaled(factor));
    if (expressions_.op(difference) == Opcode::kSub)
      return is_log_probability(expressions_.operand(difference, 0), batch) ||
             is_log_probability(expressions_.operand(difference, 1), batch);
    return is_log_probability(unscaled(factor), batch);
  };
  return std::ranges::any_of(cone_.operands(product), [&](ValueId factor) {
    const ValueId other = expressions_.beside(product, factor);
    return is_logarithm(factor) && cone_.dims(other).size() == rank && cone_.is_long(other, rank - 1);
  });
}

/// 1 + v - m^2 - e^v, in any order.
bool RowTerms::is_divergence_from_normal(ValueId value) const {
  std::vector<ValueId> pending{unscaled(value)}, terms;
  while (!pending.empty() && terms.size() < kMaxTerms) {
    const ValueId at = unscaled(pending.back());
    pending.pop_back();
    const NodeId node = expressions_.producer(at);
    if (expressions_.op(node) == Opcode::kAdd || expressions_.op(node) == Opcode::kSub) {
      pending.push_back(expressions_.operand(node, 0));
      pending.push_back(expressions_.operand(node, 1));
    } else {
      terms.push_back(at);
    }
  }
  if (terms.size() != 4) return false;
  const auto is_exponential = [&](ValueId term) {
    if (expressions_.op_of(term) != Opcode::kExp) return false;
    const ValueId exponent = unscaled(expressions_.operand(expressions_.producer(term), 0));
    return std::ranges::find(terms, exponent) != terms.end();
  };
  return std::ranges::any_of(terms, is_exponential) &&
         std::ranges::any_of(terms, [&](ValueId term) { return expressions_.square_base(term) != ValueId::kAbsent; }) &&
         std::ranges::any_of(terms, [&](ValueId term) { return expressions_.number(term).has_value(); });
}

/// Divergences and entropies are sums over classes or features, whose mean over the samples is taken. Here the samples
/// are summed, and the mean is over the classes: the size is another one for each batch.
std::optional<AxisMistake> RowTerms::divergence_of_batch(NodeId node) const {
  const auto batch = batch_of(node);
  if (!batch) return std::nullopt;
  const ValueId data = expressions_.operand(node, 0);
  const NodeId mean = total_after(expressions_.result(node), Opcode::kReduceMean);
  if (mean == NodeId::kNone || (!is_row_of_logarithms(data, *batch) && !is_divergence_from_normal(data)))
    return std::nullopt;
  return AxisMistake{Kind::kDivergenceOfBatch, node, data, {*batch}, true, mean, 0};
}

/// The largest probability of each class among the samples, where the most likely class of each sample is meant.
std::optional<AxisMistake> RowTerms::largest_of_batch(NodeId node) const {
  const auto batch = batch_of(node);
  if (!batch) return std::nullopt;
  const ValueId data = expressions_.operand(node, 0);
  const auto softmax = expressions_.normalised(cone_.before_views(data));
  if (!softmax || softmax->logarithm || softmax->axes.size() != 1 || softmax->axes.front() == *batch)
    return std::nullopt;
  const NodeId mean = total_after(expressions_.result(node), Opcode::kReduceMean);
  if (mean == NodeId::kNone) return std::nullopt;
  return AxisMistake{Kind::kLargestOfBatch, node, data, {*batch}, true, mean, 0};
}

/// sum(p * t, 0) / (sum(p, 0) + sum(t, 0)) of pictures: a ratio of each pixel over the batch. Of labels that are one
/// axis alone it is a ratio of each class, as scores of several labels are.
std::optional<AxisMistake> RowTerms::ratio_of_pixels(NodeId node) {
  const auto sum_in = [&](ValueId value, bool of_product) {
    std::vector<ValueId> pending{value};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxTerms; ++i) {
      const NodeId at = expressions_.producer(unscaled(pending[i]));
      if (expressions_.op(at) == Opcode::kAdd || expressions_.op(at) == Opcode::kSub) {
        pending.push_back(expressions_.operand(at, 0));
        pending.push_back(expressions_.operand(at, 1));
      } else if (expressions_.op(at) == Opcode::kClip || expressions_.op(at) == Opcode::kMax) {
        pending.push_back(expressions_.operand(at, 0));
      } else if (expressions_.op(at) == Opcode::kReduceSum && batch_of(at)) {
        const NodeId product = expressions_.producer(expressions_.operand(at, 0));
        if (!of_product || expressions_.op(product) == Opcode::kMul) return at;
      }
    }
    return NodeId::kNone;
  };
  const NodeId above = sum_in(expressions_.operand(node, 0), true);
  if (above == NodeId::kNone || sum_in(expressions_.operand(node, 1), false) == NodeId::kNone) return std::nullopt;
  const ValueId data = expressions_.operand(above, 0);
  const std::size_t batch = batch_of(above).value_or(0);
  // Height and width, side by side or flattened.
  std::size_t places = 0;
  const auto factors = factors_.of(data);
  for (std::size_t axis = 0; axis < factors.size(); ++axis)
    if (axis != batch)
      places += static_cast<std::size_t>(std::ranges::count_if(
          factors[axis], [&](const AxisFactor& factor) { return !cone_.pool().is_constant(factor.extent, 1); }));
  if (places < 2) return std::nullopt;
  return AxisMistake{Kind::kRatioOfPixels, above, data, {batch}, true, node, 0};
}

/// What a value is less a mean of itself over the batch; that mean in `mean`.
ValueId RowTerms::centred_over_batch(ValueId value, NodeId& mean) const {
  const NodeId difference = expressions_.producer(value);
  if (expressions_.op(difference) != Opcode::kSub) return ValueId::kAbsent;
  mean = expressions_.producer(cone_.before_views(expressions_.operand(difference, 1)));
  const ValueId data = expressions_.operand(difference, 0);
  if (expressions_.op(mean) != Opcode::kReduceMean || expressions_.operand(mean, 0) != data || !batch_of(mean))
    return ValueId::kAbsent;
  return data;
}

/// A root of means of squares, before guards and scales; the node that reduces.
NodeId RowTerms::deviation_in(ValueId value) const {
  bool has_root = false;
  for (int step = 0; step < kMaxRowSteps; ++step) {
    value = unscaled(value);
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    const ValueId first = expressions_.operand(node, 0), second = expressions_.operand(node, 1);
    if (opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum) return has_root ? node : NodeId::kNone;
    if (opcode == Opcode::kSqrt || (opcode == Opcode::kPow && expressions_.is_number(second, 0.5))) {
      has_root = true;
      value = first;
    } else if (opcode == Opcode::kAdd || opcode == Opcode::kMax) {
      const bool numbered = expressions_.number(second).has_value();
      if (!numbered && !expressions_.number(first)) return NodeId::kNone;
      value = numbered ? first : second;
    } else if (opcode == Opcode::kClip) {
      value = first;
    } else {
      return NodeId::kNone;
    }
  }
  return NodeId::kNone;
}

/// a * (x - x.mean(0)) / x.std(0) of [N, T, C] with a weight for each of C: neither the norm of a layer, over C, nor
/// that of a batch, over N and T.
std::optional<AxisMistake> RowTerms::standardised(NodeId node) const {
  const NodeId spread = deviation_in(expressions_.operand(node, 1));
  if (spread == NodeId::kNone || !batch_of(spread)) return std::nullopt;
  const auto is_weight = [&](ValueId value) {
    return cone_.is_constant(value) && cone_.dims(value).size() == 1 && cone_.is_long(value, 0);
  };
  bool weighted = false;
  ValueId above = expressions_.operand(node, 0);
  for (int step = 0; step < 3; ++step) {
    const NodeId product = expressions_.producer(above);
    if (expressions_.op(product) != Opcode::kMul) break;
    const bool first = is_weight(expressions_.operand(product, 0));
    if (!first && !is_weight(expressions_.operand(product, 1))) break;
    weighted = true;
    above = expressions_.operand(product, first ? 1 : 0);
  }
  for (const NodeId user : expressions_.users(expressions_.result(node)))
    weighted = weighted || (expressions_.op(user) == Opcode::kMul &&
                            is_weight(expressions_.beside(user, expressions_.result(node))));
  NodeId mean = NodeId::kNone;
  const ValueId data = weighted ? centred_over_batch(above, mean) : ValueId::kAbsent;
  if (data == ValueId::kAbsent) return std::nullopt;
  std::size_t kept = 0;
  for (std::size_t axis = 0; axis < cone_.dims(data).size(); ++axis) kept += cone_.is_long(data, axis) ? 1 : 0;
  if (kept < 3) return std::nullopt;
  return AxisMistake{Kind::kStandardisedOverBatch, mean, data, {*batch_of(mean)}, true, node, 0};
}

/// x * sigmoid(layers(x.mean((0, 2, 3)))): one gate for all samples.
std::optional<AxisMistake> RowTerms::gate_of_batch(NodeId node) const {
  for (std::size_t i = 0; i < 2; ++i) {
    const ValueId gated = cone_.before_views(expressions_.operand(node, 1 - i));
    if (cone_.dims(gated).size() < 3 || !cone_.origins().is_batch(gated, 0) || !cone_.is_long(gated, 0)) continue;
    ValueId value = cone_.before_views(expressions_.operand(node, i));
    if (expressions_.op_of(value) != Opcode::kSigmoid) continue;
    bool is_learnt = false;
    for (int step = 0; step < kMaxRowSteps; ++step) {
      value = cone_.before_views(value);
      const NodeId at = expressions_.producer(value);
      const Opcode opcode = expressions_.op(at);
      const ValueId first = expressions_.operand(at, 0), second = expressions_.operand(at, 1);
      if (opcode == Opcode::kReduceMean) {
        const auto axes = expressions_.axes_of(at);
        const std::size_t rank = cone_.dims(first).size();
        if (!is_learnt || !axes || axes->front() != 0 || axes->size() < 2 || axes->size() + 1 != rank ||
            cone_.before_views(first) != gated)
          break;
        return AxisMistake{Kind::kGateOfBatch, at, first, {0}, true, node, 0};
      }
      if (opcode == Opcode::kMatMul || opcode == Opcode::kConv) {
        is_learnt = true;
        value = cone_.is_constant(first) ? second : first;
      } else if (opcode == Opcode::kAdd && cone_.is_constant(first)) {
        value = second;
      } else if (opcode == Opcode::kTranspose || has_trait(expressions_.entry(at), ops::OpTrait::kElementwise)) {
        value = first;
      } else {
        break;
      }
    }
  }
  return std::nullopt;
}

/// max(0, 1 - sqrt(var + small)) where the variance is of the features of a sample: of each feature over the samples
/// it keeps them apart.
std::optional<AxisMistake> RowTerms::deviation_of_features(NodeId node) const {
  const NodeId spread = deviation_in(expressions_.result(node));
  if (spread == NodeId::kNone) return std::nullopt;
  const auto axes = expressions_.axes_of(spread);
  const ValueId squares = expressions_.operand(spread, 0), data = expressions_.square_base(unscaled(squares));
  if (!axes || axes->size() != 1 || data == ValueId::kAbsent || !cone_.is_centred(data) ||
      cone_.dims(data).size() != 2 || axes->front() != 1 || !cone_.is_long(data, 0) || !cone_.is_long(data, 1) ||
      !cone_.origins().is_batch(data, 0) || cone_.origins().is_batch(data, 1))
    return std::nullopt;
  const NodeId mean = expressions_.producer(cone_.before_views(expressions_.operand(expressions_.producer(data), 1)));
  if (expressions_.axes_of(mean) != axes) return std::nullopt;
  for (const NodeId user : expressions_.users(expressions_.result(node))) {
    if (expressions_.op(user) != Opcode::kSub || expressions_.operand(user, 1) != expressions_.result(node) ||
        !expressions_.number(expressions_.operand(user, 0)))
      continue;
    for (const NodeId hinge : expressions_.users(expressions_.result(user)))
      if (cone_.has(hinge) && mixing_.saturates(hinge) &&
          total_after(expressions_.result(hinge), Opcode::kReduceMean) != NodeId::kNone)
        return AxisMistake{Kind::kDeviationOfFeatures,
                           spread,
                           expressions_.operand(expressions_.producer(data), 0),
                           {1},
                           false,
                           hinge,
                           0};
  }
  return std::nullopt;
}

/// Along which a value is one-hot: of OneHot, and of indices [.., 1] that are compared with 0, 1, 2, ...
std::optional<std::size_t> RowTerms::axis_of_one_hot(ValueId value) const {
  const NodeId node = expressions_.producer(value);
  const std::size_t rank = cone_.dims(value).size();
  if (rank == 0) return std::nullopt;
  if (expressions_.op(node) == Opcode::kOneHot) {
    const Attribute* const given = cone_.analysis().attribute(node, "axis");
    const std::int64_t axis = given == nullptr ? -1 : given->i;
    return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
  }
  if (expressions_.op(node) != Opcode::kEqual) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    const ValueId counted = expressions_.operand(node, i), indices = expressions_.operand(node, 1 - i);
    const Content* const content = cone_.analysis().content(counted);
    if (content == nullptr || content->integers.size() < 2 || cone_.dims(counted).size() != 1 ||
        cone_.dims(indices).size() != rank || cone_.is_long(indices, rank - 1))
      continue;
    expressions_.charge(content->integers.size());
    for (std::size_t k = 0; k < content->integers.size(); ++k)
      if (!cone_.pool().is_constant(content->integers[k], static_cast<std::int64_t>(k))) return std::nullopt;
    return rank - 1;
  }
  return std::nullopt;
}

/// one_hot(y) * log_softmax(scores, dim=1) of labels whose classes are along the last axis.
std::optional<AxisMistake> RowTerms::classes_elsewhere(NodeId node) const {
  for (std::size_t i = 0; i < 2; ++i) {
    const auto softmax = expressions_.normalised(unscaled(expressions_.operand(node, i)));
    if (!softmax || !softmax->logarithm || softmax->axes.size() != 1) continue;
    ValueId value = expressions_.operand(node, 1 - i);
    const std::size_t rank = cone_.dims(softmax->scores).size();
    for (int step = 0; step < kMaxRowSteps; ++step) {
      value = unscaled(value);
      const NodeId at = expressions_.producer(value);
      const Opcode opcode = expressions_.op(at);
      if (const auto own = axis_of_one_hot(value)) {
        const std::size_t meant = softmax->axes.front();
        if (cone_.dims(value).size() != rank || *own >= rank || *own == meant || !cone_.is_long(value, *own)) break;
        AxisMistake mistake{Kind::kClassesElsewhere,
                            softmax->node,
                            softmax->scores,
                            {meant},
                            cone_.is_batch_alone(softmax->scores, meant),
                            node,
                            *own};
        mistake.partner = value;
        return mistake;
      }
      const ValueId first = expressions_.operand(at, 0), second = expressions_.operand(at, 1);
      if (opcode != Opcode::kAdd && opcode != Opcode::kSub) break;
      if (expressions_.number(second))
        value = first;
      else if (expressions_.number(first))
        value = second;
      else
        break;
    }
  }
  return std::nullopt;
}

}  // namespace tensorlint::losses
