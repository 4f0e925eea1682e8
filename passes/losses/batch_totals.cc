#include <algorithm>
#include <set>

#include "passes/losses/axis_finders.h"
#include "passes/losses/batch_name.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;

/// Values that are looked at on the way from one node.
constexpr std::size_t kMaxWayOfTotals = 48;

/// The value times or divided by a number.
bool scales(const Expressions& expressions, NodeId node, ValueId value) {
  const Opcode opcode = expressions.op(node);
  const bool divides = opcode == Opcode::kDiv && expressions.operand(node, 0) == value;
  return (opcode == Opcode::kMul || divides) && expressions.number(expressions.beside(node, value)).has_value();
}

/// By one node, or by several of which each but the last is a view for the next.
bool is_read_once(const Expressions& expressions, ValueId value) {
  constexpr int kMaxSteps = 8;
  for (int step = 0; step < kMaxSteps; ++step) {
    const auto users = expressions.users(value);
    if (users.size() != 1) return false;
    const NodeId user = users.front();
    if (!keeps_elements(expressions.op(user)) && expressions.op(user) != Opcode::kCast) return true;
    value = expressions.result(user);
  }
  return false;
}

}  // namespace

std::optional<AxisMistake> BatchTotals::at(NodeId node) {
  switch (expressions_.op(node)) {
    case Opcode::kMul:
      if (auto found = weighed(node)) return found;
      return projected(node);
    case Opcode::kExp:
      return focal_of_total(node);
    case Opcode::kMin:
      return best_of_totals(node);
    case Opcode::kSub:
      return margin_of_norms(node);
    case Opcode::kReduceL2:
    case Opcode::kSqrt:
      return compared_norm(node);
    case Opcode::kReduceSum:
      return expectation(node);
    case Opcode::kRecurrence:
      return recurrence(node);
    case Opcode::kReduceMean:
      return square_of_mean(node);
    default:
      return std::nullopt;
  }
}

/// Computed from inputs and constants by steps of single elements alone: no layer is before it.
bool BatchTotals::is_data(ValueId value) const {
  std::vector<ValueId> pending{value};
  Visited<ValueId> seen(cone_.analysis().meter());
  while (!pending.empty()) {
    const ValueId at = pending.back();
    pending.pop_back();
    if (at == ValueId::kAbsent || !seen.insert(at)) continue;
    if (seen.size() > kMaxWayOfTotals) return false;
    const NodeId node = expressions_.producer(at);
    if (node == NodeId::kNone) continue;
    const Opcode opcode = expressions_.op(node);
    const auto operands = cone_.operands(node);
    if (expressions_.is_spent()) return false;
    // A schedule is a row of numbers; rows of a table are embeddings.
    const bool is_looked_up = (opcode == Opcode::kGather || opcode == Opcode::kGatherND) &&
                              cone_.dims(expressions_.operand(node, 0)).size() == 1;
    const bool is_step = moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kConstant ||
                         has_trait(expressions_.entry(node), ops::OpTrait::kElementwise);
    if (!is_looked_up && !is_step) return false;
    const bool is_view = keeps_elements(opcode) || opcode == Opcode::kExpand || opcode == Opcode::kSlice;
    for (const ValueId operand : operands.first(is_view ? std::min<std::size_t>(operands.size(), 1) : operands.size()))
      pending.push_back(operand);
  }
  return true;
}

bool BatchTotals::has_long_batch(ValueId value) const {
  const std::size_t rank = cone_.dims(value).size();
  for (std::size_t i = 0; i < rank; ++i)
    if (cone_.is_long(value, i) && cone_.origins().is_batch(value, i)) return true;
  return false;
}

/// The node that makes one number of what layers give for a whole batch, before scales, signs and roots.
NodeId BatchTotals::total_of(ValueId value) const {
  if (!cone_.is_one_number(value)) return NodeId::kNone;
  for (int step = 0; step < 12; ++step) {
    value = cone_.before_views(value);
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
    if (is_total(opcode) || opcode == Opcode::kReduceSumSquare)
      return has_long_batch(a) && !is_data(a) ? node : NodeId::kNone;
    if (const ops::OpEntry* entry = expressions_.entry(node); entry != nullptr && entry->loss())
      return has_long_batch(a) && !is_data(a) ? node : NodeId::kNone;
    if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) {
      const ValueId x = cone_.before_views(a), y = cone_.before_views(b);
      const bool whole = cone_.operands(node).size() == 2 && x != y && cone_.is_batch_alone(x, 0) &&
                         cone_.is_batch_alone(y, 0) && !is_data(x) && !is_data(y) &&
                         cone_.dims(x).size() == cone_.dims(y).size();
      return whole ? node : NodeId::kNone;
    }
    const bool passes = opcode == Opcode::kNeg || opcode == Opcode::kSqrt || opcode == Opcode::kAdd ||
                        opcode == Opcode::kMul || opcode == Opcode::kDiv;
    if (!passes) return NodeId::kNone;
    if (b == ValueId::kAbsent || expressions_.number(b))
      value = a;
    else if (opcode != Opcode::kDiv && expressions_.number(a))
      value = b;
    else
      return NodeId::kNone;
  }
  return NodeId::kNone;
}

/// Weights of single samples, times one loss of all samples: what comes of it is the mean of the weights times the
/// loss.
std::optional<AxisMistake> BatchTotals::weighed(NodeId node) {
  for (std::size_t i = 0; i < 2; ++i) {
    const ValueId number = expressions_.operand(node, i), weights = expressions_.operand(node, 1 - i);
    if (!cone_.is_one_number(number) || !has_long_batch(weights)) continue;
    const NodeId total = total_of(number);
    if (total == NodeId::kNone || !is_data(weights)) continue;
    const bool is_product = expressions_.op(total) == Opcode::kMatMul || expressions_.op(total) == Opcode::kEinsum;
    if (!is_summed_up(expressions_.result(node), !is_product)) continue;
    return AxisMistake{Kind::kWeighsTotal,
                       total,
                       is_product ? cone_.before_views(expressions_.operand(total, 0)) : expressions_.operand(total, 0),
                       {0},
                       true,
                       node,
                       0};
  }
  return std::nullopt;
}

/// A mean or sum makes one number of it, after steps that keep it in proportion, or of any single elements.
bool BatchTotals::is_summed_up(ValueId value, bool in_proportion) const {
  std::vector<ValueId> pending{value};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayOfTotals; ++i) {
    for (const NodeId user : expressions_.users(pending[i])) {
      if (!cone_.has(user)) continue;
      const Opcode opcode = expressions_.op(user);
      const ValueId result = expressions_.result(user);
      const ValueId a = expressions_.operand(user, 0), b = expressions_.operand(user, 1);
      if (is_total(opcode) && cone_.is_one_number(result)) return true;
      bool passes = keeps_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kNeg ||
                    opcode == Opcode::kAdd || opcode == Opcode::kSub || is_total(opcode) ||
                    scales(expressions_, user, pending[i]);
      if (opcode == Opcode::kMul) passes |= a != b && is_data(expressions_.beside(user, pending[i]));
      if (!in_proportion) passes |= has_trait(expressions_.entry(user), ops::OpTrait::kElementwise);
      if (passes) pending.push_back(result);
    }
  }
  return false;
}

/// (1 - exp(-L))^c * L of a mean L: exp(-L) is the probability of a label where L is the loss of one sample alone.
std::optional<AxisMistake> BatchTotals::focal_of_total(NodeId node) const {
  const NodeId total = total_of(expressions_.operand(node, 0));
  if (total == NodeId::kNone) return std::nullopt;
  const ValueId probability = expressions_.result(node);
  std::vector<ValueId> pending{probability};
  bool is_rest = false;
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayOfTotals; ++i) {
    for (const NodeId user : expressions_.users(pending[i])) {
      if (!cone_.has(user)) continue;
      const Opcode opcode = expressions_.op(user);
      const ValueId result = expressions_.result(user), other = expressions_.beside(user, pending[i]);
      if (pending[i] == probability && expressions_.complement(result) == probability) {
        is_rest = true;
        pending.push_back(result);
      } else if (opcode == Opcode::kMul && is_rest && total_of(other) == total) {
        return AxisMistake{Kind::kFocalOfTotal, total, expressions_.operand(total, 0), {0}, true, node, 0};
      } else if (pending[i] != probability &&
                 (opcode == Opcode::kMul || keeps_elements(opcode) || opcode == Opcode::kCast ||
                  opcode == Opcode::kNeg || opcode == Opcode::kExpand ||
                  (opcode == Opcode::kPow && expressions_.operand(user, 0) == pending[i]))) {
        pending.push_back(result);
      }
    }
  }
  return std::nullopt;
}

/// The differences or losses that a number adds up, each already averaged over the batch: their two sides.
bool BatchTotals::terms_of(ValueId value, std::vector<std::pair<ValueId, ValueId>>& terms) const {
  std::vector<ValueId> pending{value};
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (pending.size() > 16) return false;
    ValueId at = cone_.before_views(pending[i]);
    const NodeId node = expressions_.producer(at);
    const Opcode opcode = expressions_.op(node);
    ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
    if (opcode == Opcode::kAdd) {
      pending.push_back(a);
      pending.push_back(b);
      continue;
    }
    if (is_total(opcode) || opcode == Opcode::kReduceSumSquare || opcode == Opcode::kReduceL2) {
      ValueId inner = cone_.before_views(a);
      if (const NodeId absolute = expressions_.producer(inner); expressions_.op(absolute) == Opcode::kAbs)
        inner = expressions_.operand(absolute, 0);
      if (const ValueId base = squared(inner); base != ValueId::kAbsent) inner = base;
      const NodeId difference = expressions_.producer(inner);
      if (expressions_.op(difference) != Opcode::kSub) return false;
      a = expressions_.operand(difference, 0);
      b = expressions_.operand(difference, 1);
    } else if (const ops::OpEntry* entry = expressions_.entry(node); entry == nullptr || !entry->loss()) {
      return false;
    }
    a = cone_.before_views(a);
    b = cone_.before_views(b);
    if (!has_long_batch(a) || !has_long_batch(b)) return false;
    terms.emplace_back(a, b);
  }
  return !terms.empty();
}

/// t * t where both factors are the same difference, which one exporter writes twice.
ValueId BatchTotals::squared(ValueId value) const {
  if (const ValueId base = expressions_.square_base(value); base != ValueId::kAbsent) return base;
  const NodeId node = expressions_.producer(value);
  if (expressions_.op(node) != Opcode::kMul) return ValueId::kAbsent;
  const NodeId a = expressions_.producer(expressions_.operand(node, 0)),
               b = expressions_.producer(expressions_.operand(node, 1));
  const bool alike = expressions_.op(a) == Opcode::kSub && expressions_.op(b) == Opcode::kSub &&
                     expressions_.operand(a, 0) == expressions_.operand(b, 0) &&
                     expressions_.operand(a, 1) == expressions_.operand(b, 1);
  return alike ? expressions_.result(a) : ValueId::kAbsent;
}

/// (p - y).mean() ** 2 as the loss: errors of both signs cancel. Two means that are compared are meant to.
std::optional<AxisMistake> BatchTotals::square_of_mean(NodeId node) const {
  const ValueId data = cone_.before_views(expressions_.operand(node, 0));
  const NodeId difference = expressions_.producer(data);
  if (expressions_.op(difference) != Opcode::kSub) return std::nullopt;
  const bool is_one = cone_.is_one_number(expressions_.result(node));
  const auto axes = expressions_.axes_of(node);
  if (!is_one && (!axes || axes->size() != 1 || !cone_.origins().is_batch(data, axes->front()))) return std::nullopt;
  const ValueId a = expressions_.operand(difference, 0), b = expressions_.operand(difference, 1);
  if (!has_long_batch(a) || !has_long_batch(b) || cone_.is_input(a) == cone_.is_input(b)) return std::nullopt;
  if (is_data(cone_.is_input(a) ? b : a)) return std::nullopt;
  // Where each difference is compared as well, the square of their mean may be a penalty of what they have in common.
  const bool is_all = is_read_once(expressions_, cone_.is_input(a) ? a : b) && is_read_once(expressions_, data);
  // Nothing but its size, and numbers, come before the output.
  ValueId value = expressions_.result(node);
  NodeId size = NodeId::kNone;
  for (int step = 0; step < 12; ++step) {
    const auto users = expressions_.users(value);
    if (users.empty()) break;
    const NodeId user = users.front();
    const Opcode opcode = expressions_.op(user);
    const ValueId result = expressions_.result(user);
    const bool alone = std::ranges::all_of(users, [&](NodeId other) { return other == user; });
    if (!alone || !cone_.has(user)) return std::nullopt;
    if (opcode == Opcode::kAbs || expressions_.square_base(result) == value)
      size = user;
    else if (!keeps_elements(opcode) && opcode != Opcode::kCast && opcode != Opcode::kNeg && opcode != Opcode::kSqrt &&
             !is_total(opcode) && !scales(expressions_, user, value) &&
             !(opcode == Opcode::kAdd && is_all && size != NodeId::kNone))
      return std::nullopt;
    value = result;
  }
  if (size == NodeId::kNone || !expressions_.users(value).empty()) return std::nullopt;
  std::vector<std::size_t> averaged;
  for (std::size_t i = 0; i < cone_.dims(data).size(); ++i)
    if (is_one || axes->front() == i) averaged.push_back(i);
  return AxisMistake{Kind::kSquareOfMean, node, data, std::move(averaged), true, size, 0};
}

/// The smaller loss of two assignments of the same values: one assignment for all samples.
std::optional<AxisMistake> BatchTotals::best_of_totals(NodeId node) {
  if (cone_.operands(node).size() != 2 || !cone_.is_one_number(expressions_.result(node))) return std::nullopt;
  std::vector<std::pair<ValueId, ValueId>> one, two;
  if (!terms_of(expressions_.operand(node, 0), one) || !terms_of(expressions_.operand(node, 1), two) ||
      one.size() != two.size())
    return std::nullopt;
  const auto sides = [](const std::vector<std::pair<ValueId, ValueId>>& terms) {
    std::multiset<ValueId> found;
    for (const auto& [a, b] : terms) found.insert({a, b});
    return found;
  };
  // One term each: the same value against one of two others.
  const bool shares = one.size() == 1 && (one[0].first == two[0].first) != (one[0].second == two[0].second);
  if (!shares && (one.size() < 2 || one == two || sides(one) != sides(two))) return std::nullopt;
  NodeId total = node;
  for (ValueId at = expressions_.operand(node, 0); total == node || expressions_.op(total) == Opcode::kAdd;
       at = expressions_.operand(total, 0))
    total = expressions_.producer(cone_.before_views(at));
  return AxisMistake{Kind::kBestOfTotals, total, one[0].first, {0}, true, node, 0};
}

/// Computed from the same values by the same operators, as a function that is called twice does.
bool BatchTotals::is_same_formula(ValueId a, ValueId b, int depth) const {
  if (a == b) return true;
  const NodeId x = expressions_.producer(a), y = expressions_.producer(b);
  if (depth == 0 || x == NodeId::kNone || y == NodeId::kNone || expressions_.op(x) != expressions_.op(y) ||
      expressions_.op(x) == Opcode::kOther || expressions_.operand(x, 2) != ValueId::kAbsent ||
      expressions_.operand(y, 2) != ValueId::kAbsent)
    return false;
  for (std::size_t i = 0; i < 2; ++i)
    if (!is_same_formula(expressions_.operand(x, i), expressions_.operand(y, i), depth - 1)) return false;
  return true;
}

/// |a - p| - |a - n| of whole batches, under a hinge.
std::optional<AxisMistake> BatchTotals::margin_of_norms(NodeId node) {
  if (!cone_.is_one_number(expressions_.result(node))) return std::nullopt;
  std::vector<std::pair<ValueId, ValueId>> near, far;
  const auto norm = [&](ValueId value, auto& terms) {
    if (const NodeId root = expressions_.producer(cone_.before_views(value)); expressions_.op(root) == Opcode::kSqrt)
      value = expressions_.operand(root, 0);
    return terms_of(value, terms) && terms.size() == 1;
  };
  // margin + near - far is written in this order, too.
  ValueId left = expressions_.operand(node, 0);
  if (const NodeId sum = expressions_.producer(left); expressions_.op(sum) == Opcode::kAdd)
    for (std::size_t i = 0; i < 2; ++i)
      if (expressions_.number(expressions_.operand(sum, i))) left = expressions_.operand(sum, 1 - i);
  if (!norm(left, near) || !norm(expressions_.operand(node, 1), far)) return std::nullopt;
  const bool shares = is_same_formula(near[0].first, far[0].first) != is_same_formula(near[0].second, far[0].second);
  if (!shares || !cone_.is_batch_alone(near[0].first, 0)) return std::nullopt;
  const NodeId hinge = mixing_.hinge_after(expressions_.result(node), true);
  if (hinge == NodeId::kNone) return std::nullopt;
  const NodeId first = expressions_.producer(cone_.before_views(left));
  return AxisMistake{Kind::kMarginOfTotals, first, near[0].first, {0}, true, hinge, 0};
}

/// <x, v> / <v, v> * v with products of whole batches, of which each sample's features are summed afterwards.
std::optional<AxisMistake> BatchTotals::projected(NodeId node) {
  for (std::size_t i = 0; i < 2; ++i) {
    const ValueId number = expressions_.operand(node, i), value = expressions_.operand(node, 1 - i);
    if (!cone_.is_one_number(number) || !cone_.is_batch_alone(value, 0)) continue;
    if (const auto found = projected_on_own_norm(node, number, value)) return found;
    const NodeId quotient = expressions_.producer(cone_.before_views(number));
    if (expressions_.op(quotient) != Opcode::kDiv) continue;
    const NodeId above = expressions_.producer(cone_.before_views(expressions_.operand(quotient, 0)));
    NodeId below = NodeId::kNone;
    if (expressions_.op(above) != Opcode::kReduceSum ||
        cone_.norm_of(expressions_.operand(quotient, 1), below) != value)
      continue;
    const NodeId product = expressions_.producer(expressions_.operand(above, 0));
    const ValueId a = expressions_.operand(product, 0), b = expressions_.operand(product, 1);
    if (expressions_.op(product) != Opcode::kMul || a == b || (a != value && b != value)) continue;
    // Each sample by itself afterwards.
    std::vector<ValueId> pending{expressions_.result(node)};
    for (std::size_t k = 0; k < pending.size() && pending.size() < kMaxWayOfTotals; ++k) {
      for (const NodeId user : expressions_.users(pending[k])) {
        if (!cone_.has(user)) continue;
        if (is_total(expressions_.op(user)) || expressions_.op(user) == Opcode::kReduceSumSquare ||
            expressions_.op(user) == Opcode::kReduceL2) {
          if (cone_.way().follow(user, 0, 0).fate == AxisFate::kKept)
            return AxisMistake{Kind::kProjectedOnAll, above, value, {0}, true, user, 0};
        } else if (has_trait(expressions_.entry(user), ops::OpTrait::kElementwise)) {
          pending.push_back(expressions_.result(user));
        }
      }
    }
  }
  return std::nullopt;
}

/// sum(a * b) * b / (norm of each sample)^2: the sum is to be of each sample, too.
std::optional<AxisMistake> BatchTotals::projected_on_own_norm(NodeId node, ValueId number, ValueId value) {
  const NodeId above = expressions_.producer(cone_.before_views(number));
  const NodeId product = expressions_.producer(expressions_.operand(above, 0));
  const ValueId a = expressions_.operand(product, 0), b = expressions_.operand(product, 1);
  if (expressions_.op(above) != Opcode::kReduceSum || expressions_.op(product) != Opcode::kMul || a == b ||
      (a != value && b != value))
    return std::nullopt;
  for (const NodeId user : expressions_.users(expressions_.result(node))) {
    if (expressions_.op(user) != Opcode::kDiv || expressions_.operand(user, 0) != expressions_.result(node)) continue;
    NodeId below = NodeId::kNone;
    if (cone_.norm_of(expressions_.operand(user, 1), below) != value) continue;
    const auto axes = expressions_.axes_of(below);
    if (axes && !axes->empty() && axes->front() > 0)
      return AxisMistake{Kind::kProjectedOnAll, above, value, {0}, true, user, 0};
  }
  return std::nullopt;
}

/// (norms over the batch - 1)^2: of a slope the norms of the samples are meant.
std::optional<AxisMistake> BatchTotals::compared_norm(NodeId node) {
  NodeId sum = NodeId::kNone;
  const ValueId of = cone_.norm_of(expressions_.result(node), sum);
  if (of == ValueId::kAbsent) return std::nullopt;
  const auto axes = expressions_.axes_of(sum);
  if (!axes || axes->size() != 1 || !cone_.is_batch_alone(of, axes->front()) || cone_.is_centred(of) || is_data(of))
    return std::nullopt;
  std::vector<ValueId> pending{expressions_.result(node)};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayOfTotals; ++i) {
    for (const NodeId user : expressions_.users(pending[i])) {
      if (!cone_.has(user)) continue;
      const Opcode opcode = expressions_.op(user);
      if (keeps_elements(opcode)) pending.push_back(expressions_.result(user));
      if (opcode != Opcode::kSub || expressions_.operand(user, 0) != pending[i] ||
          !expressions_.number(expressions_.operand(user, 1)))
        continue;
      const ValueId gap = expressions_.result(user);
      const auto users = expressions_.users(gap);
      if (std::ranges::any_of(users,
                              [&](NodeId next) { return expressions_.square_base(expressions_.result(next)) == gap; }))
        return AxisMistake{Kind::kComparedNorms, sum, of, *axes, true, user, 0};
    }
  }
  return std::nullopt;
}

/// sum(0) of probabilities [N, C] times values: an expectation over the samples, added to one number of each sample.
std::optional<AxisMistake> BatchTotals::expectation(NodeId node) {
  const ValueId data = expressions_.operand(node, 0);
  const auto axes = expressions_.axes_of(node);
  const NodeId product = expressions_.producer(data);
  if (!axes || axes->size() != 1 || expressions_.op(product) != Opcode::kMul ||
      !cone_.is_batch_alone(data, axes->front()))
    return std::nullopt;
  const bool weighs = std::ranges::any_of(cone_.operands(product), [&](ValueId factor) {
    const auto softmax = expressions_.normalised(factor);
    return softmax && !softmax->logarithm && softmax->axes.size() == 1 && softmax->axes.front() != axes->front() &&
           cone_.dims(factor).size() == cone_.dims(data).size();
  });
  if (!weighs) return std::nullopt;
  std::vector<ValueId> pending{expressions_.result(node)};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayOfTotals; ++i) {
    for (const NodeId user : expressions_.users(pending[i])) {
      if (!cone_.has(user)) continue;
      const Opcode opcode = expressions_.op(user);
      const ValueId other = expressions_.beside(user, pending[i]);
      if (opcode == Opcode::kAdd && has_long_batch(other) && cone_.is_input(other))
        return AxisMistake{Kind::kExpectationOfBatch, node, data, *axes, true, user, 0};
      if (keeps_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kNeg ||
          scales(expressions_, user, pending[i]))
        pending.push_back(expressions_.result(user));
    }
  }
  return std::nullopt;
}

/// The layer reads all but the last steps of axis 1 of an input, and something else all but the first ones: what comes
/// next along that axis is predicted, so that it has the steps. Nothing goes along axis 0.
NodeId BatchTotals::shifted_along_samples(ValueId data) const {
  constexpr int kMaxSteps = 12;
  ValueId value = data;
  for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    if (opcode == Opcode::kSlice) {
      const ValueId from = expressions_.operand(node, 0);
      if (start_along_steps(node) != 0.0 || !cone_.is_input(from)) return NodeId::kNone;
      NodeId next = NodeId::kNone;
      for (const NodeId user : expressions_.users(from)) {
        if (user == node || expressions_.op(user) == Opcode::kShape) continue;
        if (expressions_.op(user) != Opcode::kSlice) continue;
        const auto start = start_along_steps(user);
        const auto own = cone_.dims(value), other = cone_.dims(expressions_.result(user));
        if (!start) return NodeId::kNone;  // along another axis
        if (*start >= 1 && own.size() == other.size() && own.size() >= 2 && cone_.pool().equal(own[1], other[1]))
          next = user;
      }
      return next;
    }
    // Rows of a table, and layers that work on the features of each step.
    if (opcode == Opcode::kGather && cone_.dims(expressions_.operand(node, 0)).size() == 2 &&
        cone_.dims(expressions_.operand(node, 1)).size() == 2) {
      value = expressions_.operand(node, 1);
    } else if (opcode == Opcode::kMatMul || opcode == Opcode::kDropout || opcode == Opcode::kCast ||
               opcode == Opcode::kNormalize || opcode == Opcode::kIdentity || opcode == Opcode::kMul ||
               has_trait(expressions_.entry(node), ops::OpTrait::kElementwise)) {
      const ValueId first = expressions_.operand(node, 0);
      value = first != ValueId::kAbsent && cone_.is_constant(first) ? expressions_.operand(node, 1) : first;
    } else {
      return NodeId::kNone;
    }
  }
  return NodeId::kNone;
}

/// Steps that are counted along axis 1, compared with a number for each element of axis 0: the lengths of the samples.
NodeId BatchTotals::steps_masked_along_other(ValueId data) {
  const auto dims = cone_.dims(data);
  if (dims.size() < 2 || cone_.pool().equal(dims[0], dims[1])) return NodeId::kNone;
  if (!compares_) {
    compares_.emplace();
    for (const NodeId node : cone_.nodes())
      if (expressions_.op(node) == Opcode::kCompare && compares_->size() < kMaxWayOfTotals) compares_->push_back(node);
  }
  for (const NodeId node : *compares_) {
    const auto mask = cone_.dims(expressions_.result(node));
    if (mask.size() != 2 || !cone_.pool().equal(mask[0], dims[0]) || !cone_.pool().equal(mask[1], dims[1])) continue;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId lengths = expressions_.operand(node, side), steps = expressions_.operand(node, 1 - side);
      const auto own = cone_.dims(lengths), counted = cone_.dims(steps);
      if (own.size() != 2 || !cone_.is_long(lengths, 0) || cone_.is_long(lengths, 1) || counted.empty() ||
          (counted.size() == 2 && cone_.is_long(steps, 0)) || !cone_.is_input(lengths) ||
          !cone_.analysis().fact(lengths).dtypes.proves(DTypeSet::integers()))
        continue;
      const ValueId counts = cone_.before_views(steps);
      const Content* content = cone_.analysis().content(counts);
      const bool is_counted =
          expressions_.op_of(counts) == Opcode::kRange ||
          (content != nullptr && content->integers.size() > 1 && cone_.pool().as_constant(content->integers[0]) == 0 &&
           cone_.pool().as_constant(content->integers[1]) == 1);
      if (is_counted) return node;
    }
  }
  return NodeId::kNone;
}

/// Where a slice of axis 1 begins; nullopt for one of another axis.
std::optional<double> BatchTotals::start_along_steps(NodeId slice) const {
  const auto start = expressions_.number(expressions_.operand(slice, 1)),
             axis = expressions_.number(expressions_.operand(slice, 3));
  const auto rank = static_cast<double>(cone_.dims(expressions_.operand(slice, 0)).size());
  return axis && (*axis < 0 ? *axis + rank : *axis) == 1.0 ? start : std::nullopt;
}

/// No element of the axis is picked, and it is reduced with all others alone.
bool BatchTotals::keeps_all_of_axis(ValueId value, std::size_t axis) const {
  struct Along {
    ValueId value;
    std::size_t axis;
  };
  std::vector<Along> pending{{value, axis}};
  if (expressions_.users(value).empty()) return false;
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayOfTotals; ++i)
    for (const NodeId user : expressions_.users(pending[i].value)) {
      if (!cone_.has(user)) continue;
      const ValueId result = expressions_.result(user);
      AxisStep step = cone_.way().follow(user, cone_.operand_index(user, pending[i].value), pending[i].axis);
      // Directions and states become one axis, also where the extents are computed.
      if (expressions_.op(user) == Opcode::kReshape && cone_.dims(pending[i].value).size() == 4 &&
          cone_.dims(result).size() == 3 && pending[i].axis < 2)
        step = {AxisFate::kKept, pending[i].axis};
      const bool is_cut = expressions_.op(user) == Opcode::kSlice && step.fate == AxisFate::kUnknown;
      if (is_cut || step.fate == AxisFate::kSelected) return false;
      if (step.fate == AxisFate::kSummed && !cone_.is_one_number(result)) return false;
      if (step.fate == AxisFate::kKept) pending.push_back({result, step.axis});
    }
  return true;
}

/// Its steps are the samples of the batch. Where the axes are [steps, samples] the last step is picked, or all steps
/// are averaged; here that is done along what the layer takes for the samples, and the steps are kept.
std::optional<AxisMistake> BatchTotals::recurrence(NodeId node) {
  const ValueId data = expressions_.operand(node, 0), states = expressions_.result(node);
  const Attribute* layout = cone_.analysis().attribute(node, "layout");
  if ((layout != nullptr && layout->i != 0) || cone_.dims(data).size() != 3 || cone_.dims(states).size() != 4 ||
      !cone_.is_long(data, 0) || !cone_.is_long(data, 1) || !cone_.origins().is_batch(data, 0) ||
      cone_.origins().is_batch(data, 1))
    return std::nullopt;
  for (const NodeId known : {shifted_along_samples(data), steps_masked_along_other(data)})
    if (known != NodeId::kNone) return AxisMistake{Kind::kStepsOfBatch, node, data, {0}, true, known, 1};
  struct Axes {
    ValueId value;
    std::size_t steps, samples;
  };
  std::vector<Axes> pending{{states, 0, 2}};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayOfTotals; ++i) {
    const Axes at = pending[i];
    for (const NodeId user : expressions_.users(at.value)) {
      if (!cone_.has(user) || expressions_.operand(user, 0) != at.value) continue;
      const ValueId result = expressions_.result(user);
      const AxisStep steps = cone_.way().follow(user, 0, at.steps);
      AxisStep samples = cone_.way().follow(user, 0, at.samples);
      const Opcode opcode = expressions_.op(user);
      if (steps.fate != AxisFate::kKept) continue;
      // The hidden state is still there: no loss is reduced.
      const bool has_state = cone_.is_long(result, cone_.dims(result).size() - 1) && cone_.dims(result).size() > 1 &&
                             steps.axis + 1 < cone_.dims(result).size();
      const bool reduces = samples.fate == AxisFate::kSummed && opcode != Opcode::kMatMul;
      const bool picks = samples.fate == AxisFate::kSelected && cone_.dims(result).size() < cone_.dims(at.value).size();
      if ((reduces || picks) && has_state) return AxisMistake{Kind::kStepsOfBatch, node, data, {0}, true, user, 1};
      const bool one_left = opcode == Opcode::kSlice && samples.fate == AxisFate::kUnknown &&
                            at.samples < cone_.dims(result).size() && !cone_.is_long(result, at.samples);
      if (one_left && has_state) return AxisMistake{Kind::kStepsOfBatch, node, data, {0}, true, user, 1};
      const bool passes = moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kDropout;
      if (passes && samples.fate == AxisFate::kKept) pending.push_back({result, steps.axis, samples.axis});
    }
  }
  // By its name alone, unless one step is picked from it.
  const Dim first = cone_.dims(data).front();
  if (keeps_all_of_axis(states, 0) && cone_.pool().is_symbol(first) && is_batch_name(cone_.pool().to_text(first)) &&
      !is_batch_name(cone_.pool().to_text(cone_.dims(data)[1])))
    return AxisMistake{Kind::kStepsOfBatch, node, data, {0}, true, node, 1};
  return std::nullopt;
}

}  // namespace tensorlint::losses
