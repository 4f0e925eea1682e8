#include <algorithm>
#include <cmath>

#include "passes/losses/axis_finders.h"
#include "passes/losses/normalised_axes.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;

/// Values that are looked at on the way forward from one softmax.
constexpr std::size_t kMaxWayOfSoftmax = 32;

/// No elements of inputs have a part in it, only their extents: an identity matrix, say.
bool is_given_by_extents(const Expressions& expressions, ValueId value) {
  constexpr std::size_t kMaxValues = 24;
  const Model& model = expressions.analysis().model();
  std::vector<ValueId> values{value};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] == ValueId::kAbsent || model.value(values[i]).initializer != nullptr) continue;
    const NodeId node = expressions.producer(values[i]);
    if (node == NodeId::kNone) return false;
    if (has_trait(expressions.entry(node), ops::OpTrait::kShapeOf)) continue;
    for (const ValueId operand : expressions.analysis().operands(node)) {
      if (std::ranges::find(values, operand) == values.end()) values.push_back(operand);
      if (values.size() > kMaxValues) return false;
    }
  }
  return true;
}

/// A product with a square matrix of the program's own, of the two axes: its sum is the same along both where that is
/// the identity, as exporters write diagonal().
bool picks_pairs(const LossCone& cone, const Expressions& expressions, ValueId value, std::size_t axis,
                 std::size_t other) {
  const NodeId product = expressions.producer(value);
  const auto dims = cone.dims(value);
  if (expressions.op(product) != Opcode::kMul || std::max(axis, other) >= dims.size() ||
      !cone.pool().equal(dims[axis], dims[other]))
    return false;
  return std::ranges::any_of(cone.operands(product), [&](ValueId factor) {
    const std::size_t own = cone.dims(factor).size(), missing = dims.size() - std::min(own, dims.size());
    return axis >= missing && other >= missing && cone.is_long(factor, axis - missing) &&
           cone.is_long(factor, other - missing) && is_given_by_extents(expressions, factor);
  });
}

}  // namespace

std::optional<AxisMistake> SoftmaxUse::at(NodeId node) {
  const auto softmax = expressions_.normalised(expressions_.result(node));
  if (!softmax || softmax->axes.empty() || cone_.dims(softmax->scores).empty()) return std::nullopt;
  const std::size_t axis = softmax->axes.front();
  if (!cone_.is_long(softmax->scores, axis)) return std::nullopt;
  // Of several axes only whole batches with their classes are followed: by the batch.
  if (softmax->axes.size() > 1 && (axis != 0 || !cone_.is_batch_alone(softmax->scores, 0))) return std::nullopt;
  if (auto found = of_flattened(*softmax)) return found;
  return follow(*softmax, {.value = expressions_.result(node), .axis = axis, .logarithm = softmax->logarithm});
}

/// All classes of all samples in one row, which becomes rows of classes again.
std::optional<AxisMistake> SoftmaxUse::of_flattened(const Normalised& softmax) {
  const NodeId view = expressions_.producer(softmax.scores);
  const ValueId before = expressions_.operand(view, 0);
  if (cone_.dims(softmax.scores).size() != 1 || expressions_.op(view) != Opcode::kReshape ||
      !cone_.is_batch_alone(before, 0))
    return std::nullopt;
  for (const NodeId user : expressions_.users(expressions_.result(softmax.node))) {
    const ValueId after = expressions_.result(user);
    const bool is_back = std::ranges::equal(cone_.dims(before), cone_.dims(after),
                                            [&](Dim a, Dim b) { return cone_.pool().equal(a, b); });
    if (expressions_.op(user) != Opcode::kReshape || !is_back) continue;
    Normalised whole = softmax;
    whole.scores = before;
    whole.axes = {0, 1};
    if (auto found = follow(whole, {.value = after, .axis = 0, .logarithm = softmax.logarithm})) return found;
  }
  return std::nullopt;
}

std::optional<AxisMistake> SoftmaxUse::follow(const Normalised& softmax, const Reading& from) {
  std::vector<Reading> pending{from};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayOfSoftmax; ++i) {
    const Reading reading = pending[i];
    for (const NodeId user : expressions_.users(reading.value)) {
      if (!cone_.has(user)) continue;
      const std::size_t operand = cone_.operand_index(user, reading.value);
      if (auto found = use(softmax, reading, user, operand)) {
        const auto from = axis_at_first(pending, i, found->other);
        if (from && *from != found->other) found->moved_from = from;
        return found;
      }
      if (auto after = next(reading, user, operand)) {
        after->before = i;
        after->via = user;
        after->operand = operand;
        pending.push_back(*after);
      }
    }
  }
  return std::nullopt;
}

/// The axis of the first reading that has become an axis of the last one.
std::optional<std::size_t> SoftmaxUse::axis_at_first(std::span<const Reading> readings, std::size_t last,
                                                     std::size_t axis) const {
  std::vector<std::size_t> steps;  // the last one first
  for (std::size_t i = last; i != 0; i = readings[i].before) steps.push_back(i);
  const std::size_t rank = cone_.dims(readings.front().value).size();
  for (std::size_t first = 0; first < rank; ++first) {
    std::optional<std::size_t> now = first;
    for (auto step = steps.rbegin(); now && step != steps.rend(); ++step) {
      const AxisStep after = cone_.way().follow(readings[*step].via, readings[*step].operand, *now);
      now = after.fate == AxisFate::kKept ? std::optional(after.axis) : std::nullopt;
    }
    if (now == axis) return first;
  }
  return std::nullopt;
}

AxisMistake SoftmaxUse::mistake(Kind kind, const Normalised& softmax, NodeId meets, std::size_t other) const {
  const bool is_batch = std::ranges::any_of(softmax.axes, [&](std::size_t axis) {
    return cone_.origins().is_batch(softmax.scores, axis) &&
           (cone_.dims(softmax.scores).size() == 1 || cone_.is_batch_alone(softmax.scores, axis));
  });
  return {kind, softmax.node, softmax.scores, softmax.axes, is_batch, meets, other};
}

std::optional<AxisMistake> SoftmaxUse::use(const Normalised& softmax, const Reading& reading, NodeId user,
                                           std::size_t operand) {
  const Opcode opcode = expressions_.op(user);
  if (opcode == Opcode::kGather || opcode == Opcode::kGatherElements || opcode == Opcode::kGatherND)
    return operand == 0 ? selected(softmax, reading, user) : std::nullopt;
  if (opcode == Opcode::kReshape) return selected_by_stride(softmax, reading, user);
  if (opcode == Opcode::kSlice && softmax.axes.size() == 1)
    return operand == 0 ? selected(softmax, reading, user) : std::nullopt;
  if (softmax.axes.size() > 1) return std::nullopt;
  if (opcode == Opcode::kReduceSum) return summed(softmax, reading, user);
  if (opcode == Opcode::kReduceMean) return single_scores(softmax, reading, user);
  if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) return contracted(softmax, reading, user, operand);
  return std::nullopt;
}

/// Classes are picked along one axis, and the probabilities add up to 1 along the batch.
std::optional<AxisMistake> SoftmaxUse::selected(const Normalised& softmax, const Reading& reading, NodeId user) {
  if (reading.weighs) return std::nullopt;
  const auto dims = cone_.dims(reading.value);
  if (softmax.axes.size() == 1 && !cone_.is_batch_alone(reading.value, reading.axis)) {
    // Of values of each class a distribution is picked, and compared with another one, but not averaged as it is.
    if (!reading.logarithm || expressions_.op(user) != Opcode::kGatherElements) return std::nullopt;
    for (std::size_t i = 1; i < dims.size(); ++i)
      if (i != reading.axis && cone_.is_long(reading.value, reading.axis) && cone_.is_long(reading.value, i) &&
          cone_.way().follow(user, 0, i).fate == AxisFate::kSelected && is_picked_from(user, i) &&
          cone_.way().follow(user, 0, reading.axis).fate == AxisFate::kKept &&
          is_averaged_evenly(expressions_.result(user), cone_.way().follow(user, 0, reading.axis).axis) &&
          !is_normalised_before(expressions_, softmax.scores, i))
        return mistake(Kind::kSelectedElsewhere, softmax, user, i);
    return std::nullopt;
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i == reading.axis || !cone_.is_long(reading.value, i)) continue;
    const bool picked = expressions_.op(user) == Opcode::kGatherND
                            ? dims.size() == 2 && cone_.dims(expressions_.result(user)).size() == 1
                        : expressions_.op(user) == Opcode::kSlice
                            ? cone_.dims(expressions_.result(user)).size() == dims.size() && is_picked_from(user, i)
                            : cone_.way().follow(user, 0, i).fate == AxisFate::kSelected && is_picked_from(user, i);
    // Weights of a sum over the samples, one column for each of several sums.
    if (picked && (reading.logarithm || !is_summed_over_batch(expressions_.result(user))) &&
        !is_normalised_before(expressions_, softmax.scores, i))
      return mistake(Kind::kSelectedElsewhere, softmax, user, i);
  }
  return std::nullopt;
}

/// A mean or sum adds it up along the axis, and nothing weighs it before; a mask may choose.
bool SoftmaxUse::is_averaged_evenly(ValueId value, std::size_t axis) const {
  std::vector<std::pair<ValueId, std::size_t>> pending{{value, axis}};
  bool averaged = false;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (pending.size() > 16) return false;
    for (const NodeId user : expressions_.users(pending[i].first)) {
      if (!cone_.has(user)) continue;
      const Opcode opcode = expressions_.op(user);
      const std::size_t operand = cone_.operand_index(user, pending[i].first);
      const AxisStep step = cone_.way().follow(user, operand, pending[i].second);
      if (is_total(opcode) && step.fate == AxisFate::kSummed) {
        averaged = true;
        continue;
      }
      const bool scales = (opcode == Opcode::kMul || opcode == Opcode::kDiv) && operand == 0 &&
                          expressions_.number(expressions_.operand(user, 1)).has_value();
      const bool passes = keeps_elements(opcode) || opcode == Opcode::kNeg || opcode == Opcode::kCast ||
                          (opcode == Opcode::kWhere && operand > 0) || is_total(opcode) || scales;
      if (!passes || step.fate != AxisFate::kKept) return false;
      pending.emplace_back(expressions_.result(user), step.axis);
    }
  }
  return averaged;
}

/// p.flatten()[y + C * n] of probabilities [N, C], as one exporter writes p[arange(N), y].
std::optional<AxisMistake> SoftmaxUse::selected_by_stride(const Normalised& softmax, const Reading& reading,
                                                          NodeId user) const {
  const auto dims = cone_.dims(reading.value), flat = cone_.dims(expressions_.result(user));
  if (dims.size() != 2 || flat.size() != 2 || !cone_.pool().is_constant(flat[1], 1) || reading.weighs ||
      !cone_.is_batch_alone(reading.value, reading.axis))
    return std::nullopt;
  if (reading.axis == 1) return selected_of_classes_first(softmax, user);
  const auto classes = cone_.pool().as_constant(dims[1]);
  for (const NodeId gather : expressions_.users(expressions_.result(user))) {
    const NodeId sum = expressions_.producer(expressions_.operand(gather, 1));
    if (!classes || expressions_.op(gather) != Opcode::kGather || expressions_.op(sum) != Opcode::kAdd) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      const Content* rows = cone_.analysis().content(expressions_.operand(sum, i));
      if (rows == nullptr || rows->integers.size() < 2) continue;
      bool strided = true;
      for (std::size_t k = 0; strided && k < rows->integers.size(); ++k)
        strided = cone_.pool().is_constant(rows->integers[k], static_cast<std::int64_t>(k) * *classes);
      if (strided) return mistake(Kind::kSelectedElsewhere, softmax, gather, 1);
    }
  }
  return std::nullopt;
}

/// p.flatten()[y * N + n] of probabilities [C, N].
std::optional<AxisMistake> SoftmaxUse::selected_of_classes_first(const Normalised& softmax, NodeId view) const {
  for (const NodeId gather : expressions_.users(expressions_.result(view))) {
    const NodeId sum = expressions_.producer(expressions_.operand(gather, 1));
    if (expressions_.op(gather) != Opcode::kGather || expressions_.op(sum) != Opcode::kAdd) continue;
    for (const ValueId addend : cone_.operands(sum)) {
      const NodeId strided = expressions_.producer(addend);
      const ValueId labels = expressions_.operand(strided, 0);
      if (expressions_.op(strided) == Opcode::kMul && cone_.is_input(labels) && cone_.has_batch(labels))
        return mistake(Kind::kSelectedElsewhere, softmax, gather, 0);
    }
  }
  return std::nullopt;
}

/// Features are left over when the samples have been summed up.
bool SoftmaxUse::is_summed_over_batch(ValueId value) const {
  std::vector<ValueId> pending{value};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayOfSoftmax; ++i) {
    if (!cone_.has_batch(pending[i])) return true;
    for (const NodeId user : expressions_.users(pending[i])) {
      if (!cone_.has(user) || cone_.is_one_number(expressions_.result(user))) continue;
      const Opcode opcode = expressions_.op(user);
      if (moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kMul || opcode == Opcode::kReduceSum ||
          opcode == Opcode::kMatMul || opcode == Opcode::kEinsum)
        pending.push_back(expressions_.result(user));
    }
  }
  return false;
}

/// One element of the axis, not many in another order.
bool SoftmaxUse::is_picked_from(NodeId user, std::size_t axis) const {
  const auto before = cone_.dims(expressions_.operand(user, 0)), after = cone_.dims(expressions_.result(user));
  return after.size() < before.size() || (after.size() == before.size() && cone_.pool().is_constant(after[axis], 1));
}

/// Of logarithms: a cross-entropy over another axis, that is averaged over the axis of the softmax. Of probabilities:
/// an expectation over places, whose weights do not add up to 1.
std::optional<AxisMistake> SoftmaxUse::summed(const Normalised& softmax, const Reading& reading, NodeId user) {
  const auto axes = expressions_.axes_of(user);
  if (!axes || axes->empty() || !reading.weighs) return std::nullopt;
  if (auto found = summed_over_more(softmax, reading, user, *axes)) return found;
  if (std::ranges::binary_search(*axes, reading.axis)) return std::nullopt;
  const bool features = std::ranges::all_of(*axes, [&](std::size_t axis) {
    return cone_.is_long(reading.value, axis) && !cone_.origins().is_batch(reading.value, axis);
  });
  if (!features || picks_pairs(cone_, expressions_, reading.value, reading.axis, axes->front())) return std::nullopt;
  if (reading.logarithm) {
    const AxisStep step = cone_.way().follow(user, 0, reading.axis);
    if (axes->size() != 1 || step.fate != AxisFate::kKept || !is_averaged_later(expressions_.result(user), step.axis))
      return std::nullopt;
    return mistake(Kind::kSummedElsewhere, softmax, user, axes->front());
  }
  const NodeId product = expressions_.producer(reading.value);
  if (expressions_.op(product) != Opcode::kMul || is_divided_by_own(expressions_.result(user), softmax))
    return std::nullopt;
  if (axes->size() == 1 && cone_.is_batch_alone(reading.value, reading.axis)) {
    // The weights themselves have the axis that is summed.
    for (std::size_t i = 0; i < 2; ++i) {
      const ValueId share = expressions_.operand(product, i);
      const std::size_t missing = cone_.dims(reading.value).size() - cone_.dims(share).size();
      if (axes->front() >= missing && cone_.is_long(share, axes->front() - missing) &&
          cone_.depends(share, expressions_.result(softmax.node)) &&
          !is_normalised_again(share, axes->front() - missing))
        return mistake(Kind::kSummedElsewhere, softmax, user, axes->front());
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const ValueId grid = expressions_.operand(product, i), share = expressions_.operand(product, 1 - i);
    if (!cone_.is_constant(grid) || !is_grid(grid)) continue;
    // The grid varies along what is summed alone.
    const std::size_t rank = cone_.dims(reading.value).size(), own = cone_.dims(grid).size();
    bool along = own <= rank;
    for (std::size_t k = 0; along && k < own; ++k)
      along = !cone_.is_long(grid, k) || std::ranges::binary_search(*axes, k + rank - own);
    if (!along) continue;
    const bool again = std::ranges::any_of(*axes, [&](std::size_t axis) { return is_normalised_again(share, axis); });
    if (!again) return mistake(Kind::kSummedElsewhere, softmax, user, axes->front());
  }
  return std::nullopt;
}

/// Scores of places [N, 1, H, W] that are normalised along one side of a picture, and weigh features that are summed
/// over both sides: the weights of a sample add up to the length of the other side.
std::optional<AxisMistake> SoftmaxUse::summed_over_more(const Normalised& softmax, const Reading& reading, NodeId user,
                                                        std::span<const std::size_t> axes) const {
  const NodeId product = expressions_.producer(reading.value);
  if (reading.logarithm || expressions_.op(product) != Opcode::kMul || cone_.dims(reading.value).size() != 4)
    return std::nullopt;
  NodeId last = user;
  if (axes.size() == 1 && axes[0] >= 2 && cone_.dims(expressions_.result(user)).size() == 3) {
    for (const NodeId next : expressions_.users(expressions_.result(user))) {
      const auto rest = expressions_.op(next) == Opcode::kReduceSum ? expressions_.axes_of(next) : std::nullopt;
      if (rest && *rest == std::vector<std::size_t>{2}) last = next;
    }
    if (last == user) return std::nullopt;
  } else if (axes.size() != 2 || axes[0] != 2 || axes[1] != 3) {
    return std::nullopt;
  }
  if (is_divided_by_own(expressions_.result(last), softmax)) return std::nullopt;
  const std::size_t other = reading.axis == 2 ? 3 : 2;
  for (std::size_t i = 0; i < 2; ++i) {
    const ValueId shares = expressions_.operand(product, i), features = expressions_.operand(product, 1 - i);
    if (cone_.dims(shares).size() == 4 && !cone_.is_long(shares, 1) && !is_normalised_again(shares, other) &&
        are_places(softmax, shares, features))
      return mistake(Kind::kSummedOverMore, softmax, last, other);
  }
  return std::nullopt;
}

/// One probability for each place of a picture, from a convolution, and features [N, C, H, W] of the same places.
bool SoftmaxUse::are_places(const Normalised& softmax, ValueId shares, ValueId features) const {
  const auto x = cone_.dims(shares), y = cone_.dims(features), scores = cone_.dims(softmax.scores);
  if (x.size() < 3 || y.size() != 4 || !cone_.is_long(features, 1) || scores.size() < 3 ||
      expressions_.op_of(cone_.before_views(softmax.scores)) != Opcode::kConv)
    return false;
  const auto is_side = [&](std::size_t from_end) {
    return cone_.is_long(shares, x.size() - from_end) && cone_.is_long(features, 4 - from_end) &&
           cone_.pool().equal(x[x.size() - from_end], y[4 - from_end]);
  };
  return softmax.axes.front() + 2 >= scores.size() && is_side(1) && is_side(2) &&
         cone_.depends(shares, expressions_.result(softmax.node));
}

/// Places or bins: numbers outside [0, 1], or evenly spaced ones. Weights and masks are not.
bool SoftmaxUse::is_grid(ValueId value) const {
  const auto numbers = cone_.numbers(value);
  if (!numbers || numbers->size() < 3) return false;
  if (std::ranges::any_of(*numbers, [](double x) { return x < 0 || x > 1; })) return true;
  const double step = (*numbers)[1] - (*numbers)[0];
  for (std::size_t i = 1; i < numbers->size(); ++i)
    if (std::abs((*numbers)[i] - (*numbers)[i - 1] - step) > 1e-5) return false;
  return step != 0;
}

/// It is divided by what comes of the same probabilities: their sum.
bool SoftmaxUse::is_divided_by_own(ValueId sum, const Normalised& softmax) const {
  std::vector<ValueId> pending{sum};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayOfSoftmax; ++i)
    for (const NodeId user : expressions_.users(pending[i])) {
      const Opcode opcode = expressions_.op(user);
      if (opcode == Opcode::kDiv && expressions_.operand(user, 0) == pending[i] &&
          cone_.depends(expressions_.operand(user, 1), expressions_.result(softmax.node)))
        return true;
      if (moves_elements(opcode) || opcode == Opcode::kCast) pending.push_back(expressions_.result(user));
    }
  return false;
}

/// Another user sums the same weights over the axis, to divide by that.
bool SoftmaxUse::is_normalised_again(ValueId value, std::size_t axis) const {
  return std::ranges::any_of(expressions_.users(value), [&](NodeId user) {
    const auto axes = expressions_.op(user) == Opcode::kReduceSum ? expressions_.axes_of(user) : std::nullopt;
    return axes && std::ranges::binary_search(*axes, axis);
  });
}

/// A mean that takes in the axis, after steps of single elements.
bool SoftmaxUse::is_averaged_later(ValueId value, std::size_t axis) const {
  std::vector<std::pair<ValueId, std::size_t>> pending{{value, axis}};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayOfSoftmax; ++i) {
    for (const NodeId user : expressions_.users(pending[i].first)) {
      if (!cone_.has(user)) continue;
      const std::size_t operand = cone_.operand_index(user, pending[i].first);
      const AxisStep step = cone_.way().follow(user, operand, pending[i].second);
      if (step.fate == AxisFate::kSummed &&
          (expressions_.op(user) == Opcode::kReduceMean || is_mean_of_masked(user, pending[i].second)))
        return true;
      if (step.fate == AxisFate::kKept) pending.emplace_back(expressions_.result(user), step.axis);
    }
  }
  return false;
}

/// sum(losses * mask) / sum(mask), where the mask has the axis, too.
bool SoftmaxUse::is_mean_of_masked(NodeId sum, std::size_t axis) const {
  if (expressions_.op(sum) != Opcode::kReduceSum) return false;
  const auto users = expressions_.users(expressions_.result(sum));
  return std::ranges::any_of(users, [&](NodeId user) {
    if (expressions_.op(user) != Opcode::kDiv || expressions_.operand(user, 0) != expressions_.result(sum))
      return false;
    ValueId below = cone_.before_views(expressions_.operand(user, 1));
    if (const Opcode guard = expressions_.op_of(below); guard == Opcode::kClip || guard == Opcode::kMax)
      below = cone_.before_views(expressions_.operand(expressions_.producer(below), 0));
    const NodeId total = expressions_.producer(below);
    return expressions_.op(total) == Opcode::kReduceSum && cone_.is_one_number(expressions_.result(total)) &&
           cone_.is_long(expressions_.operand(total, 0), axis);
  });
}

/// Weights of a product of matrices: of attention, or of an expectation.
std::optional<AxisMistake> SoftmaxUse::contracted(const Normalised& softmax, const Reading& reading, NodeId user,
                                                  std::size_t operand) {
  if (reading.logarithm || reading.weighs) return std::nullopt;
  const auto summed = cone_.way().summed(user, operand);
  const AxisFate fate = cone_.way().follow(user, operand, reading.axis).fate;
  if (fate == AxisFate::kSummed && summed.size() == 2 && cone_.operands(user).size() == 2 &&
      are_places(softmax, reading.value, expressions_.operand(user, 1 - operand)) &&
      cone_.way().summed(user, 1 - operand) == std::vector<std::size_t>{2, 3} &&
      !is_divided_by_own(expressions_.result(user), softmax))
    return mistake(Kind::kSummedOverMore, softmax, user, summed[0] == reading.axis ? summed[1] : summed[0]);
  if (fate != AxisFate::kKept) return std::nullopt;
  if (summed.size() != 1 || !cone_.is_long(reading.value, summed[0]) || is_normalised_again(reading.value, summed[0]))
    return std::nullopt;
  const std::size_t rank = cone_.dims(reading.value).size();
  // Probabilities of the batch, of which features are summed.
  if (cone_.is_batch_alone(reading.value, reading.axis) && !cone_.origins().is_batch(reading.value, summed[0]))
    return mistake(Kind::kAttention, softmax, user, summed[0]);
  if (!reading.direct || reading.turned || operand != 0) return std::nullopt;
  // Letters name the queries where the keys are meant: nobody turns the weights on purpose that way.
  const bool sums_queries = expressions_.op(user) == Opcode::kEinsum && rank >= 3 && summed[0] + 2 == rank &&
                            reading.axis + 1 == rank && is_product_of_samples(softmax.scores) &&
                            compares_positions(softmax, summed[0], reading.axis);
  if (!sums_queries && (summed[0] + 1 != rank || !compares_positions(softmax, reading.axis, summed[0])))
    return std::nullopt;
  return mistake(Kind::kAttention, softmax, user, summed[0]);
}

/// Steps of single elements come after a product of two values of the same samples.
bool SoftmaxUse::is_product_of_samples(ValueId scores) const {
  for (int step = 0; step < 6; ++step) {
    const NodeId node = expressions_.producer(scores);
    const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
    if (expressions_.op(node) == Opcode::kMatMul || expressions_.op(node) == Opcode::kEinsum)
      return cone_.operands(node).size() == 2 && cone_.has_batch(a) && cone_.has_batch(b);
    if (!has_trait(expressions_.entry(node), ops::OpTrait::kElementwise)) return false;
    scores = a;
  }
  return false;
}

/// Scores of queries and keys, which both are positions of data and not features: then those of one query add up to 1,
/// and what is averaged are the values at the keys. Of clusters and slots, which are parameters, either may be meant.
bool SoftmaxUse::compares_positions(const Normalised& softmax, std::size_t axis, std::size_t keys) const {
  const Model& model = cone_.analysis().model();
  const auto origins = cone_.origins().of(softmax.scores);
  const auto is_position = [&](std::size_t at) {
    if (at >= origins.size() || origins[at].empty()) return false;
    return std::ranges::all_of(origins[at], [&](const AxisSource& source) {
      const Value& value = model.value(source.value);
      // A table of one number, which a Where puts in place of hidden scores, and one that says which are hidden.
      const Range& range = cone_.analysis().fact(source.value).range;
      const bool is_constant = value.initializer != nullptr || expressions_.op_of(source.value) == Opcode::kConstant;
      const bool is_mask = cone_.analysis().fact(source.value).dtypes == DTypeSet(DType::kBool);
      if (is_constant && origins[at].size() > 1 && (range.lo == range.hi || is_mask)) return true;
      // Some steps of an input are steps, too.
      const Value& whole = expressions_.op_of(source.value) == Opcode::kSlice
                               ? model.value(expressions_.operand(value.producer, 0))
                               : value;
      return whole.is_given();
    });
  };
  if (keys < 1 || !is_position(keys)) return false;
  // What comes before: [N, heads, queries, keys].
  const bool heads = axis + 1 < keys && origins.size() >= 4 && is_position(keys - 1);
  return heads || (axis + 1 == keys && is_position(axis));
}

/// log_softmax(scores.squeeze(1)) of a single score for each sample, times labels, averaged: of a list of documents the
/// losses of all of them are summed.
std::optional<AxisMistake> SoftmaxUse::single_scores(const Normalised& softmax, const Reading& reading,
                                                     NodeId user) const {
  const auto dims = cone_.dims(softmax.scores);
  if (dims.size() != 1 || !reading.logarithm || !reading.weighs || !cone_.origins().is_batch(softmax.scores, 0))
    return std::nullopt;
  ValueId before = softmax.scores;
  for (int step = 0; step < 4 && cone_.dims(before).size() < 2; ++step) {
    const Opcode opcode = expressions_.op_of(before);
    if (!keeps_elements(opcode) && opcode != Opcode::kGather) return std::nullopt;
    before = expressions_.operand(expressions_.producer(before), 0);
  }
  const auto column = cone_.dims(before);
  if (column.size() != 2 || !cone_.pool().is_constant(column[1], 1)) return std::nullopt;
  // The labels are as they are given: those of a list would be made to add up to 1, too.
  NodeId product = expressions_.producer(reading.value);
  for (int step = 0; step < 4 && expressions_.op(product) == Opcode::kNeg; ++step)
    product = expressions_.producer(expressions_.operand(product, 0));
  const ValueId a = expressions_.operand(product, 0), b = expressions_.operand(product, 1);
  const auto is_label = [&](ValueId value) {
    const NodeId sign = expressions_.producer(value);
    return cone_.is_input(expressions_.op(sign) == Opcode::kNeg ? expressions_.operand(sign, 0) : value);
  };
  if (expressions_.op(product) != Opcode::kMul || (!is_label(a) && !is_label(b))) return std::nullopt;
  return mistake(Kind::kSingleScores, softmax, user, 0);
}

/// From here on it is normalised along another axis, or it is joined with what is: log_softmax(x, 1) + log_softmax(x,
/// 2).
bool SoftmaxUse::is_normalised_otherwise(const Reading& reading, NodeId user) const {
  const Opcode opcode = expressions_.op(user);
  if (opcode != Opcode::kSub && opcode != Opcode::kAdd && opcode != Opcode::kMul && opcode != Opcode::kDiv)
    return false;
  const std::size_t rank = cone_.dims(reading.value).size();
  const auto other_way = [&](ValueId value) {
    const auto found = expressions_.normalised(value);
    const bool is_other = found && !found->axes.empty() && cone_.dims(found->scores).size() == rank &&
                          std::ranges::find(found->axes, reading.axis) == found->axes.end();
    return is_other ? found->scores : ValueId::kAbsent;
  };
  if (other_way(expressions_.result(user)) != ValueId::kAbsent) return true;
  const auto own = expressions_.normalised(reading.value);
  return own && (opcode == Opcode::kAdd || opcode == Opcode::kMul) &&
         other_way(expressions_.beside(user, reading.value)) == own->scores;
}

std::optional<SoftmaxUse::Reading> SoftmaxUse::next(const Reading& reading, NodeId user, std::size_t operand) const {
  const AxisStep step = cone_.way().follow(user, operand, reading.axis);
  if (step.fate != AxisFate::kKept) return std::nullopt;
  if (is_normalised_otherwise(reading, user)) return std::nullopt;
  Reading after = reading;
  after.value = expressions_.result(user);
  after.axis = step.axis;
  const Opcode opcode = expressions_.op(user);
  const ValueId other = expressions_.operand(user, operand == 0 ? 1 : 0);
  switch (opcode) {
    case Opcode::kCast:
    case Opcode::kIdentity:
    case Opcode::kDropout:
    case Opcode::kNeg:
    case Opcode::kExpand:
      return after;
    case Opcode::kReshape:
    case Opcode::kSqueeze:
    case Opcode::kUnsqueeze:
      after.direct = after.direct && cone_.dims(after.value).size() == cone_.dims(reading.value).size();
      return after;
    case Opcode::kTranspose:
      after.turned = true;
      return after;
    case Opcode::kLog:
      if (reading.logarithm || reading.weighs) return std::nullopt;
      after.logarithm = true;
      return after;
    case Opcode::kExp:
      if (!reading.logarithm || reading.weighs || !reading.direct) return std::nullopt;
      after.logarithm = false;
      return after;
    case Opcode::kClip:
    case Opcode::kMax:
      return after;
    case Opcode::kWhere:
      return operand > 0 ? std::optional(after) : std::nullopt;
    case Opcode::kAdd:
      if (expressions_.number(other)) return after;
      after.direct = false;
      return reading.logarithm ? std::optional(after) : std::nullopt;
    case Opcode::kSub:
      after.direct = false;
      return reading.logarithm ? std::optional(after) : std::nullopt;
    case Opcode::kMul:
      if (expressions_.number(other)) return after;
      after.weighs = true;
      after.direct = false;
      return after;
    case Opcode::kDiv:
      return operand == 0 && expressions_.number(other) ? std::optional(after) : std::nullopt;
    case Opcode::kReduceSum:
    case Opcode::kReduceMean:
      // The share of rows or columns of a picture.
      if (reading.weighs || reading.logarithm) return std::nullopt;
      after.direct = false;
      return after;
    default:
      return std::nullopt;
  }
}

}  // namespace tensorlint::losses
