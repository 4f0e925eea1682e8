#include "passes/losses/broadcasts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "passes/dataflow/element_function.h"
#include "passes/losses/stretching.h"

namespace tensorlint::losses {
namespace {

/// Nodes in a row that move elements, or compute one of each.
constexpr int kMaxBroadcastSteps = 16;
/// Operands of one Sum, Max or Min that are compared with each other.
constexpr std::size_t kMaxOperands = 32;
/// Of the meter, for where the axes of two values come from.
constexpr std::uint64_t kStepsOfPair = 64;

class BroadcastFinder {
 public:
  BroadcastFinder(const Expressions& expressions, AxisOrigins& origins, const LossSite& site)
      : expressions_(expressions),
        analysis_(expressions.analysis()),
        pool_(analysis_.facts().dims()),
        stretching_(expressions, origins),
        site_(site) {}

  std::optional<LossBroadcast> find() {
    if (!is_summed_up()) return std::nullopt;
    if (ops::is_regression(site_.kind)) {
      for (const auto& [prediction, target] :
           {std::pair(site_.prediction, site_.target), std::pair(site_.prediction_source, site_.target_source)}) {
        if ((stretching_.are_all_pairs(prediction, target) && !has_result_like(prediction, target)) ||
            stretching_.are_two_batches(prediction, target) || stretching_.are_two_batches(target, prediction) ||
            stretching_.are_turned(prediction, target))
          return LossBroadcast{site_.anchor, prediction, target, true, false};
        for (const auto& [wide, narrow] : {std::pair(prediction, target), std::pair(target, prediction)})
          if (is_one_for_row(wide, narrow)) return LossBroadcast{site_.anchor, wide, narrow, false, false};
      }
    }
    for (const NodeId node : site_.nodes)
      if (const auto found = find_at(node)) return found;
    for (auto node = site_.path.rbegin(); node != site_.path.rend(); ++node)
      if (const auto found = find_at(*node)) return found;
    return std::nullopt;
  }

 private:
  /// A written-out loss whose elements nobody adds up may be a table of distances.
  bool is_summed_up() const {
    if (site_.output != ValueId::kAbsent || site_.evidence != LossEvidence::kPattern) return true;
    return std::ranges::any_of(site_.nodes, [&](NodeId node) {
      return expressions_.op(node) == Opcode::kReduceMean || expressions_.op(node) == Opcode::kReduceSum;
    });
  }

  /// The node at which the two meet gives one element for each of either: what they were before is not what meets.
  bool has_result_like(ValueId a, ValueId b) const {
    const ValueId result = expressions_.result(site_.anchor);
    const auto shape = result == ValueId::kAbsent ? std::nullopt : stretching_.shape(result);
    if (!shape) return false;
    return std::ranges::any_of(std::array{a, b}, [&](ValueId value) {
      const auto other = stretching_.shape(value);
      return other && std::ranges::equal(*shape, *other, [&](Dim x, Dim y) { return pool_.equal(x, y); });
    });
  }

  std::optional<LossBroadcast> find_at(NodeId node) {
    if (!has_trait(expressions_.entry(node), ops::OpTrait::kElementwise)) return std::nullopt;
    const auto operands = analysis_.operands(node).first(kMaxOperands);
    for (std::size_t i = 0; i < operands.size(); ++i)
      for (std::size_t j = i + 1; j < operands.size() && !expressions_.is_spent(); ++j) {
        expressions_.charge(kStepsOfPair);
        const ValueId a = expressions_.source(operands[i]), b = expressions_.source(operands[j]);
        if (stretching_.are_all_pairs(a, b)) return LossBroadcast{node, a, b, true, node != site_.anchor};
      }
    return std::nullopt;
  }

  /// Rows of scores against one number each, which is a label or an estimate that nobody stretched on purpose.
  bool is_one_for_row(ValueId wide, ValueId narrow) const {
    if (!compares_alike(site_.kind)) return false;
    const auto x = stretching_.shape(wide), y = stretching_.shape(narrow);
    if (!x || !y || x->size() != y->size() || x->size() < 2) return false;
    const auto classes = pool_.as_constant(x->back());
    if (!classes || *classes < 2 || !pool_.is_constant(y->back(), 1)) return false;
    for (std::size_t i = 0; i + 1 < x->size(); ++i)
      if (!pool_.equal((*x)[i], (*y)[i])) return false;
    if (is_largest_of(narrow, *classes) && !is_masked(*classes)) return true;
    if (are_estimates_of_one(wide, x->size() - 1)) return false;
    return is_input(narrow) ? is_moved_input(wide) || is_computed(wide) : is_computed(narrow) && is_moved_input(wide);
  }

  /// The elements of a row are estimates of one thing, as the members of an ensemble: they are compared with each
  /// other, or their mean, as well, or their errors are weighted by shares that add up to 1.
  bool are_estimates_of_one(ValueId row, std::size_t axis) const {
    const auto is_along_row = [&](std::span<const std::size_t> axes) { return axes.size() == 1 && axes[0] == axis; };
    const auto meets_its_row = [&](NodeId user) {
      const Opcode opcode = expressions_.op(user);
      if (opcode == Opcode::kTopK || opcode == Opcode::kUnsqueeze) return true;
      if (opcode != Opcode::kReduceMean && opcode != Opcode::kReduceSum) return false;
      const auto axes = expressions_.axes_of(user);
      return axes && is_along_row(*axes);
    };
    if (std::ranges::any_of(expressions_.users(row), meets_its_row)) return true;
    const auto is_share = [&](ValueId value) {
      const auto softmax =
          value == ValueId::kAbsent ? std::nullopt : expressions_.normalised(expressions_.source(value));
      return softmax && !softmax->logarithm && is_along_row(softmax->axes);
    };
    return any_use_of_elements([&](NodeId user, ValueId value, std::span<const ValueId>) {
      return expressions_.op(user) == Opcode::kMul && is_share(expressions_.beside(user, value));
    });
  }

  /// What the loss computes of each row is multiplied with a row, or selected by one: of the alternatives that were
  /// taken.
  bool is_masked(std::int64_t alternatives) const {
    const auto is_row = [&](ValueId value, std::span<const ValueId> values) {
      // One exporter writes the difference twice, to square it.
      const NodeId maker = expressions_.producer(value);
      if (maker != NodeId::kNone && expressions_.operand(maker, 0) == expressions_.operand(site_.anchor, 0) &&
          expressions_.operand(maker, 1) == expressions_.operand(site_.anchor, 1))
        return false;
      const auto dims = stretching_.shape(value);
      return dims && !dims->empty() && pool_.is_constant(dims->back(), alternatives) &&
             std::ranges::find(values, value) == values.end();
    };
    return any_use_of_elements([&](NodeId user, ValueId, std::span<const ValueId> values) {
      const Opcode opcode = expressions_.op(user);
      const ValueId condition = expressions_.operand(user, 0), other = expressions_.operand(user, 1);
      if (opcode == Opcode::kMul) return is_row(condition, values) || is_row(other, values);
      return opcode == Opcode::kWhere && is_row(condition, values) && !comes_from(condition, values);
    });
  }

  /// Follows what the loss computes of each element through elementwise nodes. `found(user, value, values)`: whether
  /// that use of the value ends the search; `values` are those that were met so far.
  template <typename Found>
  bool any_use_of_elements(const Found& found) const {
    constexpr std::size_t kMaxValues = 16;
    std::vector<ValueId> values{expressions_.result(site_.anchor)};
    for (std::size_t i = 0; i < values.size() && i < kMaxValues; ++i)
      for (const NodeId user : expressions_.users(values[i])) {
        if (found(user, values[i], values)) return true;
        if (has_trait(expressions_.entry(user), ops::OpTrait::kElementwise))
          values.push_back(expressions_.result(user));
      }
    return false;
  }

  /// A comparison of one of them, as a Huber loss makes it.
  bool comes_from(ValueId condition, std::span<const ValueId> values) const {
    const NodeId node = expressions_.producer(condition);
    return node != NodeId::kNone && (std::ranges::find(values, expressions_.operand(node, 0)) != values.end() ||
                                     std::ranges::find(values, expressions_.operand(node, 1)) != values.end());
  }

  /// Computed from the largest of as many alternatives: then the row is scores of alternatives, of which one is meant,
  /// and no list of estimates of one thing.
  bool is_largest_of(ValueId value, std::int64_t alternatives) const {
    constexpr std::size_t kMaxValues = 24;
    std::vector<ValueId> pending{value};
    for (std::size_t i = 0; i < pending.size() && i < kMaxValues; ++i) {
      const NodeId node = expressions_.producer(pending[i]);
      const Opcode opcode = expressions_.op(node);
      if (opcode == Opcode::kReduceMax) {
        const auto axes = expressions_.axes_of(node);
        const auto dims = stretching_.shape(expressions_.operand(node, 0));
        if (axes && dims && axes->size() == 1 && pool_.is_constant((*dims)[axes->front()], alternatives)) return true;
        continue;
      }
      if (node == NodeId::kNone || (!moves_elements(opcode) && opcode != Opcode::kCast &&
                                    !has_trait(expressions_.entry(node), ops::OpTrait::kElementwise)))
        continue;
      const auto operands = analysis_.operands(node);
      expressions_.charge(1 + operands.size() / 8);
      for (const ValueId operand : operands)
        if (operand != ValueId::kAbsent && pending.size() < kMaxValues &&
            std::ranges::find(pending, operand) == pending.end())
          pending.push_back(operand);
    }
    return false;
  }

  static bool compares_alike(LossKind kind) {
    switch (kind) {
      case LossKind::kMse:
      case LossKind::kL1:
      case LossKind::kHuber:
      case LossKind::kLogCosh:
      case LossKind::kBinaryCrossEntropy:
      case LossKind::kBinaryCrossEntropyWithLogits:
        return true;
      default:
        return false;
    }
  }

  bool is_input(ValueId value) const {
    const ValueId source = expressions_.source(value);
    return source != ValueId::kAbsent && analysis_.model().value(source).is_given();
  }

  bool is_moved_input(ValueId value) const {
    for (int step = 0; step < kMaxBroadcastSteps && keeps_elements(expressions_.op_of(expressions_.source(value)));
         ++step)
      value = expressions_.operand(expressions_.producer(expressions_.source(value)), 0);
    return is_input(value);
  }

  /// By a layer, perhaps with elementwise operators after it.
  bool is_computed(ValueId value) const {
    for (int step = 0; step < kMaxBroadcastSteps; ++step) {
      const NodeId node = expressions_.producer(value);
      const Opcode opcode = expressions_.op(node);
      if (opcode == Opcode::kMatMul || opcode == Opcode::kConv) return true;
      const bool goes_on = opcode == Opcode::kCast || opcode == Opcode::kIdentity || opcode == Opcode::kSoftmax ||
                           opcode == Opcode::kDropout ||
                           has_trait(expressions_.entry(node), ops::OpTrait::kElementwise);
      if (node == NodeId::kNone) return is_input(value);
      if (!goes_on) return false;
      value = expressions_.operand(node, 0);
    }
    return false;
  }

  const Expressions& expressions_;
  const Analysis& analysis_;
  DimPool& pool_;
  Stretching stretching_;
  const LossSite& site_;
};

/// The way back from a number through sums and what is computed of single elements. What lies under an exponential or
/// in a denominator is a similarity, which programs do compute of all pairs.
class SumFinder {
 public:
  SumFinder(const Expressions& expressions, AxisOrigins& origins)
      : expressions_(expressions), stretching_(expressions, origins) {}

  std::optional<LossBroadcast> find(ValueId output) {
    pending_.emplace_back(output, true);
    while (!pending_.empty() && seen_.size() < kMaxValues && !expressions_.is_spent()) {
      const auto [value, linear] = pending_.back();
      pending_.pop_back();
      if (expressions_.producer(value) == NodeId::kNone || !seen_.emplace(value, linear).second) continue;
      if (const auto found = visit(expressions_.producer(value), linear)) return found;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t kMaxValues = 400;

  std::optional<LossBroadcast> visit(NodeId node, bool linear) {
    const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
    const Opcode opcode = expressions_.op(node);
    switch (opcode) {
      case Opcode::kAdd:
      case Opcode::kSub:
      case Opcode::kMax:
      case Opcode::kMin:
        if (const auto found = meet(node, a, b, false)) return found;
        linear &= opcode == Opcode::kAdd || opcode == Opcode::kSub;
        add(a, linear);
        add(b, linear);
        break;
      case Opcode::kMul:
      case Opcode::kDiv:
        if (const auto found = meet(node, a, b, linear)) return found;
        add(a, linear && keeps_separable(b, a));
        if (opcode == Opcode::kMul) add(b, linear && keeps_separable(a, b));
        break;
      case Opcode::kWhere:
        if (const auto found = meet(node, a, b, false)) return found;
        if (const auto found = meet(node, a, expressions_.operand(node, 2), false)) return found;
        // 1 where something holds, and 0 elsewhere.
        if (linear && expressions_.number(b) && expressions_.number(expressions_.operand(node, 2))) add(a, true);
        add(b, false);
        add(expressions_.operand(node, 2), false);
        break;
      case Opcode::kNeg:
      case Opcode::kReduceMean:
      case Opcode::kReduceSum:
        if (const auto found = product_of_sums(a)) return found;
        add(a, linear);
        break;
      case Opcode::kEqual:
      case Opcode::kCompare:
        // The share of the pairs that are alike, as of predictions and labels: no pair is chosen or weighed.
        if (linear)
          if (const auto found = meet_in_comparison(node, a, b)) return found;
        break;
      case Opcode::kNot:
        add(a, linear);
        break;
      case Opcode::kExp:
        if (is_bounded_ratio(expressions_.result(node))) add(a, false);
        break;
      case Opcode::kAnd:
      case Opcode::kOr:
      case Opcode::kXor:
        if (linear)
          if (const auto found = meet(node, a, b, false)) return found;
        add(a, linear && keeps_separable(b, a));
        add(b, linear && keeps_separable(a, b));
        break;
      case Opcode::kAbs:
      case Opcode::kPow:
      case Opcode::kClip:
      case Opcode::kSqrt:
      case Opcode::kLog:
      case Opcode::kSoftplus:
      case Opcode::kReduceL1:
      case Opcode::kReduceL2:
      case Opcode::kReduceSumSquare:
        add(a, false);
        break;
      default:
        if (moves_elements(opcode) || opcode == Opcode::kCast)
          add(a, linear);
        else if (grows(node))
          add(a, false);
        break;
    }
    return std::nullopt;
  }

  /// Kept close to 1, as the ratio of the probabilities of an action under two policies: no similarity of pairs.
  bool is_bounded_ratio(ValueId ratio) const {
    const auto bounds = [&](NodeId user) {
      if (expressions_.op(user) != Opcode::kClip || expressions_.operand(user, 0) != ratio) return false;
      const Range& range = expressions_.analysis().fact(expressions_.result(user)).range;
      return range.lo > 0 && range.lo < 1 && range.hi > 1 && range.hi < 10;
    };
    return std::ranges::any_of(expressions_.users(ratio), bounds);
  }

  /// The sum of all products, or of all quotients, of a column and a row: the product of two sums, for which nobody
  /// makes a matrix. Wherever the two come from.
  std::optional<LossBroadcast> product_of_sums(ValueId summed) const {
    const NodeId node = expressions_.producer(expressions_.source(summed));
    if (expressions_.op(node) != Opcode::kMul && expressions_.op(node) != Opcode::kDiv) return std::nullopt;
    const ValueId a = expressions_.source(expressions_.operand(node, 0)),
                  b = expressions_.source(expressions_.operand(node, 1));
    if (!stretching_.is_column_against_row(a, b) && !stretching_.is_column_against_row(b, a)) return std::nullopt;
    return LossBroadcast{node, a, b, true, true};
  }

  /// Times a number, or a factor of its own for each row alone, a sum of products is what it was.
  bool keeps_separable(ValueId factor, ValueId value) const {
    return expressions_.number(factor) || is_one_number(factor) ||
           stretching_.is_stretched(expressions_.source(factor), value);
  }

  bool is_one_number(ValueId value) const {
    const auto shape = stretching_.shape(value);
    const DimPool& pool = expressions_.analysis().facts().dims();
    return shape && std::ranges::all_of(*shape, [&](Dim dim) { return pool.is_constant(dim, 1); });
  }

  /// A function of single elements that large ones do not saturate and that does not explode: a hinge, no kernel.
  bool grows(NodeId node) const {
    const ops::ElementValue element = dataflow::element_function(expressions_.analysis(), node, 1);
    if (element == nullptr) return false;
    const auto size_at = [&](double x) {
      const double operands[] = {x};
      const double size = std::abs(element({operands, expressions_.analysis().attributes(node).read()}));
      return std::isnan(size) ? 0 : size;
    };
    constexpr double kLarge = 1e3;
    const double size = std::max(size_at(kLarge), size_at(-kLarge));
    return size > 10 && size < kLarge * kLarge * kLarge;
  }

  void add(ValueId value, bool linear) { pending_.emplace_back(value, linear); }

  std::optional<LossBroadcast> meet(NodeId node, ValueId a, ValueId b, bool is_separable) {
    const ValueId x = expressions_.source(a), y = expressions_.source(b);
    expressions_.charge(kStepsOfPair);
    if (!stretching_.are_batches_of_two(x, y, is_separable) && !stretching_.has_axis_too_many(x, y) &&
        !stretching_.has_axis_too_many(y, x) && !stretching_.is_column_against_squeezed(x, y) &&
        !stretching_.is_column_against_squeezed(y, x))
      return std::nullopt;
    return LossBroadcast{node, x, y, true, true};
  }

  /// Classes that layers choose may even have got an axis: no program wants to know how many of them are another
  /// sample's label.
  std::optional<LossBroadcast> meet_in_comparison(NodeId node, ValueId a, ValueId b) {
    if (const auto found = meet(node, a, b, false)) return found;
    const ValueId x = expressions_.source(a), y = expressions_.source(b);
    if (expressions_.op(node) != Opcode::kEqual || (!is_choice(x) && !is_choice(y)) ||
        !stretching_.are_batches_of_two(x, y, true))
      return std::nullopt;
    return LossBroadcast{node, x, y, true, true};
  }

  /// The index of the largest score, before views.
  bool is_choice(ValueId value) const {
    for (int step = 0; step < kMaxBroadcastSteps; ++step) {
      const Opcode opcode = expressions_.op_of(value);
      if (opcode == Opcode::kArgExtreme) return true;
      if (opcode == Opcode::kTopK) return expressions_.result(expressions_.producer(value)) != value;
      if (!keeps_elements(opcode) && opcode != Opcode::kCast) return false;
      value = expressions_.operand(expressions_.producer(value), 0);
    }
    return false;
  }

  const Expressions& expressions_;
  Stretching stretching_;
  std::vector<std::pair<ValueId, bool>> pending_;
  std::set<std::pair<ValueId, bool>> seen_;
};

}  // namespace

std::optional<LossBroadcast> find_broadcast_in_sum(const Expressions& expressions, AxisOrigins& origins,
                                                   ValueId output) {
  return SumFinder(expressions, origins).find(output);
}

std::optional<LossBroadcast> find_broadcast(const Expressions& expressions, AxisOrigins& origins,
                                            const LossSite& site) {
  return BroadcastFinder(expressions, origins, site).find();
}

}  // namespace tensorlint::losses
