#include <algorithm>

#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;

/// Nodes that are looked through in a row.
constexpr int kMaxTermSteps = 12;

}  // namespace

std::optional<AxisMistake> ProductTerms::at(NodeId node) const {
  switch (expressions_.op(node)) {
    case Opcode::kReduceMean:
    case Opcode::kReduceSum:
    case Opcode::kReduceL1:
    case Opcode::kReduceL2:
    case Opcode::kReduceSumSquare:
      return sum_of_copies(node);
    case Opcode::kDiv:
      return projection_of_centred(node);
    case Opcode::kMatMul:
    case Opcode::kEinsum:
      if (auto found = correlation_of_samples(node)) return found;
      return correlation_of_layers(node);
    default:
      return std::nullopt;
  }
}

/// Along an axis of what the value meets, it is only repeated: the axis has one element, or is stretched.
bool ProductTerms::is_repeated(ValueId value, std::size_t axis, std::size_t rank) const {
  const auto axes = cone_.origins().of(value);
  if (axes.size() > rank || axes.empty()) return false;
  const std::size_t missing = rank - axes.size();
  return axis < missing || axes[axis - missing].empty();
}

/// Products, or differences, of every sample [N, 1, D] with every class [1, M, D] that are summed over the classes:
/// what is left of each sample has its features where a loss takes the classes.
std::optional<AxisMistake> ProductTerms::sum_of_copies(NodeId node) const {
  const auto axes = expressions_.axes_of(node);
  const ValueId data = expressions_.operand(node, 0);
  const auto dims = cone_.dims(data);
  const std::size_t rank = dims.size();
  if (!axes || axes->size() != 1 || rank != 3 || !cone_.is_long(data, axes->front())) return std::nullopt;
  const std::size_t summed = axes->front();
  NodeId pairs = expressions_.producer(data);
  if (expressions_.op(pairs) == Opcode::kAbs) pairs = expressions_.producer(expressions_.operand(pairs, 0));
  if (const ValueId base = expressions_.square_base(data); base != ValueId::kAbsent)
    pairs = expressions_.producer(base);
  const Opcode opcode = expressions_.op(pairs);
  if (opcode != Opcode::kMul && opcode != Opcode::kSub) return std::nullopt;
  // Scores of classes that are scaled in several ways, and averaged over these.
  if (opcode == Opcode::kMul && expressions_.op(node) == Opcode::kReduceMean) return std::nullopt;
  const ValueId a = expressions_.operand(pairs, 0), b = expressions_.operand(pairs, 1);
  for (const auto& [sample, each] : {std::pair(a, b), std::pair(b, a)}) {
    if (!is_repeated(sample, summed, rank) || is_repeated(each, summed, rank)) continue;
    std::optional<std::size_t> samples, features;
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (axis == summed || !cone_.is_long(data, axis) || is_repeated(sample, axis, rank)) continue;
      (is_repeated(each, axis, rank) ? samples : features) = axis;
    }
    if (!samples || !features || !cone_.origins().is_batch(data, *samples)) continue;
    const AxisStep kept = cone_.way().follow(node, 0, *features);
    if (kept.fate != AxisFate::kKept) continue;
    const NodeId reader = reads_classes(expressions_.result(node), kept.axis);
    if (reader == NodeId::kNone) continue;
    AxisMistake mistake{Kind::kSummedOverClasses, node, data, {summed}, false, reader, *features};
    mistake.partner = sample;
    return mistake;
  }
  return std::nullopt;
}

/// The loss, softmax or search for the largest that takes the axis for its classes, after steps of single elements.
NodeId ProductTerms::reads_classes(ValueId value, std::size_t axis) const {
  std::vector<std::pair<ValueId, std::size_t>> pending{{value, axis}};
  for (std::size_t i = 0; i < pending.size() && i < static_cast<std::size_t>(kMaxTermSteps); ++i) {
    const auto [at, classes] = pending[i];
    for (const NodeId user : expressions_.users(at)) {
      if (!cone_.has(user)) continue;
      const Opcode opcode = expressions_.op(user);
      const ops::OpEntry* const entry = expressions_.entry(user);
      if (entry != nullptr && entry->loss()) {
        if (ops::takes_class_indices(*entry->loss()) && classes == 1 && expressions_.operand(user, 0) == at)
          return user;
        continue;
      }
      const bool chooses = opcode == Opcode::kSoftmax || opcode == Opcode::kLogSoftmax || opcode == Opcode::kArgExtreme;
      if (chooses) {
        const auto along = expressions_.axes_of(user);
        if (along && along->size() == 1 && along->front() == classes) return user;
        continue;
      }
      const AxisStep step = cone_.way().follow(user, cone_.operand_index(user, at), classes);
      const bool passes = opcode == Opcode::kCast || opcode == Opcode::kTranspose || keeps_elements(opcode) ||
                          has_trait(expressions_.entry(user), ops::OpTrait::kElementwise);
      if (passes && step.fate == AxisFate::kKept) pending.emplace_back(expressions_.result(user), step.axis);
    }
  }
  return NodeId::kNone;
}

/// x for x - x.mean(0), where axis 0 is the batch and no other axis is; the mean in `mean`.
ValueId ProductTerms::centred_over_batch(ValueId value, NodeId& mean) const {
  const NodeId difference = expressions_.producer(value);
  if (expressions_.op(difference) != Opcode::kSub) return ValueId::kAbsent;
  const ValueId data = expressions_.operand(difference, 0);
  mean = expressions_.producer(cone_.before_views(expressions_.operand(difference, 1)));
  const auto axes = expressions_.axes_of(mean);
  const bool is_mean = expressions_.op(mean) == Opcode::kReduceMean && expressions_.operand(mean, 0) == data;
  return is_mean && axes && axes->size() == 1 && cone_.is_batch_alone(data, axes->front()) ? data : ValueId::kAbsent;
}

/// <a, b> / <b, b> along time, where both are less their means over the batch, and b is given: how much of a signal is
/// in another one. It needs signals without a mean of their own.
std::optional<AxisMistake> ProductTerms::projection_of_centred(NodeId node) const {
  ValueId below = expressions_.operand(node, 1);
  for (int step = 0; step < 3; ++step) {
    below = cone_.before_views(below);
    const NodeId guard = expressions_.producer(below);
    const Opcode opcode = expressions_.op(guard);
    if (opcode == Opcode::kClip ||
        ((opcode == Opcode::kAdd || opcode == Opcode::kMax) && expressions_.number(expressions_.operand(guard, 1))))
      below = expressions_.operand(guard, 0);
  }
  const bool is_of_norm = expressions_.square_base(below) != ValueId::kAbsent;
  const NodeId energy = expressions_.producer(is_of_norm ? cone_.before_views(expressions_.square_base(below)) : below);
  const ValueId squares = expressions_.operand(energy, 0);
  const bool is_whole = expressions_.op(energy) == (is_of_norm ? Opcode::kReduceL2 : Opcode::kReduceSumSquare);
  const ValueId given = is_whole ? squares
                        : expressions_.op(energy) == Opcode::kReduceSum && !is_of_norm
                            ? expressions_.square_base(squares)
                            : ValueId::kAbsent;
  const auto along = expressions_.axes_of(energy);
  NodeId mean = NodeId::kNone;
  const ValueId reference = given == ValueId::kAbsent ? given : centred_over_batch(given, mean);
  if (reference == ValueId::kAbsent || !along || along->size() != 1 || !cone_.is_input(reference)) return std::nullopt;
  const auto over = expressions_.axes_of(mean);
  if (!over || over->empty() || over->front() == along->front()) return std::nullopt;
  // The product, alone or times the given signal.
  std::vector<ValueId> factors{expressions_.operand(node, 0)};
  if (const NodeId scaled = expressions_.producer(factors[0]); expressions_.op(scaled) == Opcode::kMul) {
    factors.push_back(expressions_.operand(scaled, 0));
    factors.push_back(expressions_.operand(scaled, 1));
  }
  for (const ValueId factor : factors) {
    const NodeId sum = expressions_.producer(cone_.before_views(factor));
    const NodeId product = expressions_.producer(expressions_.operand(sum, 0));
    if (expressions_.op(sum) != Opcode::kReduceSum || expressions_.op(product) != Opcode::kMul ||
        expressions_.axes_of(sum) != along)
      continue;
    const ValueId first = expressions_.operand(product, 0), second = expressions_.operand(product, 1);
    if (first != given && second != given) continue;
    NodeId other = NodeId::kNone;
    const ValueId estimate = centred_over_batch(first == given ? second : first, other);
    if (estimate == ValueId::kAbsent || estimate == reference || expressions_.axes_of(other) != over) continue;
    return AxisMistake{Kind::kCentredOverBatch, other, estimate, {over->front()}, true, sum, along->front()};
  }
  return std::nullopt;
}

/// The axis of the value, a matrix, along which it has a mean of 0 and a deviation of 1: the batch.
std::optional<std::size_t> ProductTerms::standardised_along(ValueId value) const {
  bool turned = false;
  for (int step = 0; step < kMaxTermSteps; ++step) {
    if (cone_.dims(value).size() != 2) return std::nullopt;
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    const ValueId data = expressions_.operand(node, 0);
    if (opcode == Opcode::kTranspose) {
      turned = !turned;
    } else if (opcode == Opcode::kNormalize) {
      const OpSchema* const schema = cone_.analysis().model().operators[cone_.analysis().model().node(node).op].schema;
      const bool of_batch =
          schema != nullptr && (schema->input_index("input_mean") >= 0 || schema->input_index("mean") >= 0);
      if (!of_batch || !cone_.is_batch_alone(data, 0)) return std::nullopt;
      return turned ? 1 : 0;
    } else if (opcode == Opcode::kDiv) {
      if (expressions_.number(expressions_.operand(node, 1))) {
        value = data;
        continue;
      }
      NodeId mean = NodeId::kNone;
      if (centred_over_batch(data, mean) == ValueId::kAbsent) return std::nullopt;
      const auto axes = expressions_.axes_of(mean);
      const auto spread = deviation_axis(expressions_.operand(node, 1));
      if (!axes || spread != axes->front()) return std::nullopt;
      return turned ? 1 - axes->front() : axes->front();
    } else if (opcode != Opcode::kCast && opcode != Opcode::kIdentity) {
      return std::nullopt;
    }
    value = data;
  }
  return std::nullopt;
}

/// Of a root of means of squares, before guards and scales.
std::optional<std::size_t> ProductTerms::deviation_axis(ValueId value) const {
  for (int step = 0; step < kMaxTermSteps; ++step) {
    value = cone_.before_views(value);
    const NodeId node = expressions_.producer(value);
    switch (expressions_.op(node)) {
      case Opcode::kReduceMean:
      case Opcode::kReduceSum:
      case Opcode::kReduceL2: {
        const auto axes = expressions_.axes_of(node);
        return axes && axes->size() == 1 ? std::optional(axes->front()) : std::nullopt;
      }
      case Opcode::kAdd:
      case Opcode::kMax:
      case Opcode::kMul:
      case Opcode::kDiv:
      case Opcode::kPow:
      case Opcode::kSqrt:
      case Opcode::kClip:
        value = expressions_.operand(node, 0);
        break;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

/// Features are standardised over the samples, so that their products over the samples are correlations. Here the
/// features of two samples are multiplied and summed, and the sums are divided by the number of samples.
std::optional<AxisMistake> ProductTerms::correlation_of_samples(NodeId node) const {
  const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
  const auto x = cone_.way().summed(node, 0), y = cone_.way().summed(node, 1);
  if (x.size() != 1 || y.size() != 1) return std::nullopt;
  const auto first = standardised_along(a), second = standardised_along(b);
  if (!first || !second || *first == x.front() || *second == y.front()) return std::nullopt;
  const Dim samples = cone_.dims(a)[*first], features = cone_.dims(a)[x.front()];
  // Products of samples with themselves are a kernel, unless the diagonal is treated apart.
  if (before_turns(a) == before_turns(b) && !treats_diagonal(expressions_.result(node))) return std::nullopt;
  for (const NodeId user : expressions_.users(expressions_.result(node))) {
    if (!cone_.has(user)) continue;
    const bool divides =
        expressions_.op(user) == Opcode::kDiv && expressions_.operand(user, 0) == expressions_.result(node) &&
        counts(expressions_.operand(user, 1), samples) && !counts(expressions_.operand(user, 1), features);
    if (divides || meets_identity(expressions_.result(node)))
      return AxisMistake{Kind::kCorrelationOfSamples, node, a, {*first}, true, user, x.front()};
  }
  return std::nullopt;
}

ValueId ProductTerms::before_turns(ValueId value) const {
  for (int step = 0; step < kMaxTermSteps; ++step) {
    const Opcode opcode = expressions_.op_of(value);
    if (!keeps_elements(opcode) && opcode != Opcode::kCast && opcode != Opcode::kTranspose) break;
    value = expressions_.operand(expressions_.producer(value), 0);
  }
  return value;
}

/// Of a matrix, after steps of single elements, the diagonal is compared with 1, hidden, weighed or cut out.
bool ProductTerms::treats_diagonal(ValueId value) const {
  if (meets_identity(value)) return true;
  std::vector<ValueId> pending{value};
  for (std::size_t i = 0; i < pending.size() && i < static_cast<std::size_t>(kMaxTermSteps); ++i)
    for (const NodeId user : expressions_.users(pending[i])) {
      const Opcode opcode = expressions_.op(user);
      const bool is_row = cone_.dims(pending[i]).size() == 1;
      if (opcode == Opcode::kSlice && is_row) return true;  // off_diagonal: c.flatten()[:-1].view(n - 1, n + 1)
      if (opcode == Opcode::kWhere && has_own_diagonal(expressions_.operand(user, 0))) return true;
      const ValueId other = expressions_.beside(user, pending[i]);
      if (opcode == Opcode::kMul && has_own_diagonal(other)) return true;
      const bool with_number = (opcode == Opcode::kDiv || opcode == Opcode::kMul || opcode == Opcode::kAdd ||
                                opcode == Opcode::kSub || opcode == Opcode::kPow) &&
                               (other == pending[i] || expressions_.number(other));
      if (with_number || opcode == Opcode::kAbs || opcode == Opcode::kTranspose || opcode == Opcode::kCast ||
          opcode == Opcode::kWhere || keeps_elements(opcode))
        pending.push_back(expressions_.result(user));
    }
  return false;
}

/// A square matrix of two numbers: one on the diagonal, and another one beside it.
bool ProductTerms::has_own_diagonal(ValueId value) const {
  if (value == ValueId::kAbsent) return false;
  const auto dims = cone_.dims(value);
  if (dims.size() != 2 || !cone_.pool().equal(dims[0], dims[1])) return false;
  const auto extent = cone_.pool().as_constant(dims[0]);
  auto numbers = extent ? cone_.numbers(value) : std::nullopt;
  if (const Content* const content = cone_.analysis().content(value); !numbers && extent && content != nullptr) {
    numbers.emplace(content->floats);
    for (const Dim element : content->integers)
      numbers->push_back(static_cast<double>(cone_.pool().as_constant(element).value_or(0)));
  }
  if (!numbers || *extent < 2 || numbers->size() != static_cast<std::size_t>(*extent * *extent)) return false;
  for (std::size_t i = 0; i < numbers->size(); ++i)
    if ((*numbers)[i] != (*numbers)[i % static_cast<std::size_t>(*extent + 1) == 0 ? 0 : 1]) return false;
  return (*numbers)[0] != (*numbers)[1];
}

/// A number that is an extent.
bool ProductTerms::counts(ValueId value, Dim extent) const {
  const DimPool& pool = cone_.pool();
  if (const auto number = expressions_.number(value)) {
    const auto length = pool.as_constant(extent);
    return length && (static_cast<double>(*length) == *number || static_cast<double>(*length - 1) == *number);
  }
  const Content* content = cone_.analysis().content(value);
  for (int step = 0; step < kMaxTermSteps && content == nullptr; ++step) {
    const NodeId node = expressions_.producer(value);
    if (expressions_.op(node) != Opcode::kCast && !keeps_elements(expressions_.op(node))) break;
    value = expressions_.operand(node, 0);
    content = cone_.analysis().content(value);
  }
  return content != nullptr && content->integers.size() == 1 && pool.equal(content->integers.front(), extent);
}

/// The matrix, scaled at most, less the identity, or its diagonal less 1.
bool ProductTerms::meets_identity(ValueId value) const {
  struct Part {
    ValueId value;
    bool less_one = false, diagonal = false;
  };
  std::vector<Part> pending{{value}};
  for (std::size_t i = 0; i < pending.size() && i < 8; ++i)
    for (const NodeId user : expressions_.users(pending[i].value)) {
      const ValueId other = expressions_.beside(user, pending[i].value);
      const Opcode opcode = expressions_.op(user);
      Part next = pending[i];
      next.value = expressions_.result(user);
      const auto number = expressions_.number(other);
      if (opcode == Opcode::kSub && !next.less_one && is_identity(other)) return true;
      if (opcode == Opcode::kMul && !next.diagonal && is_identity(other)) {
        next.diagonal = true;
      } else if ((opcode == Opcode::kSub && number == 1) || (opcode == Opcode::kAdd && number == -1)) {
        next.less_one = true;
      } else if (opcode == Opcode::kReduceSum) {
        // The diagonal, as exporters write it.
        if (!next.diagonal || next.less_one) continue;
      } else if (opcode == Opcode::kMul) {
        if (!number && other != pending[i].value) continue;
      } else if (!number || (opcode != Opcode::kDiv && opcode != Opcode::kPow)) {
        continue;
      }
      if (next.less_one && next.diagonal) return true;
      pending.push_back(next);
    }
  return false;
}

/// The division that gives each sample, a row of the matrix, a mean of 0 and a deviation of 1; `axis`: of its features.
NodeId ProductTerms::standardised_in_samples(ValueId value, std::size_t& axis) const {
  bool turned = false;
  for (int step = 0; step < kMaxTermSteps && cone_.dims(value).size() == 2; ++step) {
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    const ValueId data = expressions_.operand(node, 0);
    if (opcode == Opcode::kTranspose) {
      turned = !turned;
    } else if (opcode == Opcode::kDiv && !expressions_.number(expressions_.operand(node, 1))) {
      const NodeId difference = expressions_.producer(data);
      const ValueId given = expressions_.operand(difference, 0);
      const NodeId mean = expressions_.producer(cone_.before_views(expressions_.operand(difference, 1)));
      const auto axes = expressions_.axes_of(mean);
      const auto spread = deviation_axis(expressions_.operand(node, 1));
      if (expressions_.op(difference) != Opcode::kSub || expressions_.op(mean) != Opcode::kReduceMean ||
          expressions_.operand(mean, 0) != given || !axes || axes->size() != 1 || axes->front() != 1 || spread != 1 ||
          !cone_.is_batch_alone(given, 0))
        return NodeId::kNone;
      axis = turned ? 0 : 1;
      return node;
    } else if (opcode != Opcode::kDiv && opcode != Opcode::kCast && opcode != Opcode::kIdentity) {
      return NodeId::kNone;
    }
    value = data;
  }
  return NodeId::kNone;
}

/// Each sample is standardised over its features. The products of two features are summed over the samples and compared
/// with the identity, which they are only of features that are standardised over the samples. Not of the batch: the
/// axis of the standardisation is that of the features.
std::optional<AxisMistake> ProductTerms::correlation_of_layers(NodeId node) const {
  const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
  const auto x = cone_.way().summed(node, 0), y = cone_.way().summed(node, 1);
  if (x.size() != 1 || y.size() != 1) return std::nullopt;
  std::size_t features = 0, others = 0;
  const NodeId first = standardised_in_samples(a, features), second = standardised_in_samples(b, others);
  if (first == NodeId::kNone || second == NodeId::kNone || first == second || features == x.front() ||
      others == y.front() || !meets_identity(expressions_.result(node)))
    return std::nullopt;
  const ValueId difference = expressions_.operand(first, 0);
  return AxisMistake{Kind::kCorrelationOfLayers,
                     first,
                     expressions_.operand(expressions_.producer(difference), 0),
                     {1},
                     false,
                     node,
                     x.front()};
}

bool ProductTerms::is_identity(ValueId value) const {
  const auto dims = cone_.dims(value);
  if (dims.size() != 2 || !cone_.pool().equal(dims[0], dims[1])) return false;
  if (const NodeId node = expressions_.producer(value);
      node != NodeId::kNone && expressions_.op(node) == Opcode::kOther) {
    // EyeLike.
    const Model& model = cone_.analysis().model();
    const OpSchema* const schema = model.operators[model.node(node).op].schema;
    const Attribute* const k = cone_.analysis().attribute(node, "k");
    const Range& range = cone_.analysis().fact(value).range;
    const bool is_eye = schema != nullptr && schema->attribute("k") != nullptr && range.lo == 0 && range.hi == 1;
    if (is_eye && (k == nullptr || k->i == 0)) return true;
  }
  const auto extent = cone_.pool().as_constant(dims[0]);
  const auto numbers = extent ? cone_.numbers(value) : std::nullopt;
  if (!numbers || *extent < 2 || numbers->size() != static_cast<std::size_t>(*extent * *extent)) return false;
  for (std::size_t i = 0; i < numbers->size(); ++i)
    if ((*numbers)[i] != (i % static_cast<std::size_t>(*extent + 1) == 0 ? 1 : 0)) return false;
  return true;
}

}  // namespace tensorlint::losses
