#include <algorithm>
#include <array>
#include <set>

#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;

/// Values that are looked at on the way from one node.
constexpr std::size_t kMaxWayToCrossing = 32;

}  // namespace

std::optional<AxisMistake> CrossedAxes::at(NodeId node) {
  switch (expressions_.op(node)) {
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kMul:
    case Opcode::kDiv:
    case Opcode::kMax:
    case Opcode::kMin:
      break;
    case Opcode::kWhere:
      for (const std::size_t side : {1U, 2U})
        if (auto found = crossed(node, expressions_.operand(node, side), expressions_.operand(node, 0))) return found;
      return std::nullopt;
    default:
      return std::nullopt;
  }
  if (cone_.operands(node).size() != 2) return std::nullopt;
  const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
  if (auto found = crossed(node, a, b)) return found;
  if (auto found = crossed(node, b, a)) return found;
  if (expressions_.op(node) == Opcode::kSub) {
    if (auto found = one_for_pair(node, a, b)) return found;
    if (auto found = one_for_pair(node, b, a)) return found;
  }
  if (auto found = statistic_of_rows(node)) return found;
  if (auto found = cosine_of_pairs(node)) return found;
  if (auto found = vectors_of_both_sides(node, a, b)) return found;
  if (auto found = vectors_of_both_sides(node, b, a)) return found;
  if (auto found = turned_pictures(node, a, b)) return found;
  if (expressions_.op(node) != Opcode::kMul) return std::nullopt;
  for (const auto& [wide, narrow] : {std::pair(a, b), std::pair(b, a)}) {
    if (auto found = weights_of_classes(node, wide, narrow)) return found;
    if (auto found = masked_mean(node, wide, narrow)) return found;
    if (auto found = gate_of_channels(node, wide, narrow)) return found;
  }
  if (auto found = weighs_features(node, a, b)) return found;
  return weighs_features(node, b, a);
}

/// An axis of `narrow` meets one of `wide` that counts something else, and `wide` has the axis that it comes from at
/// another place, where `narrow` is stretched: x - x.mean(1) of [N, N], states [N, T, T] times a mask [N, 1, T].
std::optional<AxisMistake> CrossedAxes::crossed(NodeId node, ValueId wide, ValueId narrow) {
  const auto x = cone_.dims(wide), y = cone_.dims(narrow);
  if (x.size() < 2 || x.size() > kMaxRank || y.empty() || y.size() > x.size()) return std::nullopt;
  expressions_.charge(x.size() * y.size());
  const std::size_t missing = x.size() - y.size();
  const DimPool& pool = cone_.pool();
  const auto is_stretched = [&](std::size_t axis) { return axis < missing || pool.is_constant(y[axis - missing], 1); };
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t meets = i + missing;
    if (!cone_.is_long(narrow, i)) continue;
    // Of an open batch the two only agree for one size of it.
    const bool is_open = !pool.as_constant(y[i]) && pool.as_constant(x[meets]).value_or(1) > 1;
    if (is_open ? !is_inner_axis_of_input(wide, meets) : !pool.equal(y[i], x[meets])) continue;
    for (std::size_t right = 0; right < x.size(); ++right) {
      if (right == meets || !is_stretched(right) || !pool.equal(x[right], y[i])) continue;
      if (!belongs_elsewhere(wide, meets, right, narrow, i) && !has_samples_elsewhere(wide, meets, right, narrow, i))
        continue;
      const NodeId reduction = reduced_along(wide, meets, narrow);
      // Of two batches either may be meant, but for a statistic of one of them.
      const bool both = cone_.origins().is_batch(wide, meets) && cone_.origins().is_batch(wide, right);
      if ((reduction == NodeId::kNone && (both || is_named_twice(wide))) || meets_its_own(narrow, i, wide, node))
        continue;
      if (reduction != NodeId::kNone && y.size() == x.size() && is_degree(node, reduction, wide, meets, right))
        continue;
      const NodeId from = reduction == NodeId::kNone ? node : reduction;
      return AxisMistake{Kind::kCrossedAxes, node, narrow, {i}, false, from, meets, wide, right};
    }
  }
  return std::nullopt;
}

/// The axis comes from what is at `right` of the wide value, and from nothing that is at `meets`.
bool CrossedAxes::belongs_elsewhere(ValueId wide, std::size_t meets, std::size_t right, ValueId narrow,
                                    std::size_t axis) {
  const auto of_narrow = cone_.origins().of(narrow);
  if (axis >= of_narrow.size() || of_narrow[axis].empty()) return false;
  const AxisOrigins::Sources own = of_narrow[axis];
  const auto of_wide = cone_.origins().of(wide);
  if (meets >= of_wide.size() || right >= of_wide.size() || of_wide[meets].empty()) return false;
  const auto is_of = [&](const AxisOrigins::Sources& sources) {
    expressions_.charge(4 * own.size());
    return std::ranges::all_of(own,
                               [&](const AxisSource& source) { return std::ranges::binary_search(sources, source); });
  };
  return is_of(of_wide[right]) && !have_common(of_wide[meets], own) && !have_common(of_wide[meets], of_wide[right]) &&
         !is_of_matrix_of_pairs(of_wide[meets]);
}

/// Of a square matrix of weights: what goes from each state to each state, so that either axis may be meant.
bool CrossedAxes::is_of_matrix_of_pairs(const AxisOrigins::Sources& sources) const {
  return std::ranges::all_of(sources, [&](const AxisSource& source) {
    const auto dims = cone_.dims(source.value);
    expressions_.charge(1 + dims.size());
    return cone_.analysis().model().value(source.value).initializer != nullptr && source.axis < dims.size() &&
           std::ranges::count_if(dims, [&](Dim dim) { return cone_.pool().equal(dim, dims[source.axis]); }) > 1;
  });
}

bool CrossedAxes::have_common(const AxisOrigins::Sources& a, const AxisOrigins::Sources& b) const {
  return cone_.origins().have_common(a, b);
}

bool CrossedAxes::is_input_axis(const AxisSource& source) const {
  expressions_.charge(1);
  return cone_.analysis().model().value(source.value).is_given();
}

bool CrossedAxes::is_inner_axis_of_input(ValueId value, std::size_t axis) {
  const auto axes = cone_.origins().of(value);
  return axis < axes.size() && !axes[axis].empty() &&
         std::ranges::all_of(
             axes[axis], [&](const AxisSource& source) { return source.axis > 0 && is_input_axis(source); });
}

/// Numbers of the samples, of which some come from the same input as the samples at `right`: a score of each sample
/// against scores [N, K] of the sample's candidates. With an open batch the name of the extent says it.
bool CrossedAxes::has_samples_elsewhere(ValueId wide, std::size_t meets, std::size_t right, ValueId narrow,
                                        std::size_t axis) {
  if (!is_inner_axis_of_input(wide, meets) || !cone_.origins().is_batch(wide, right)) return false;
  const auto of_narrow = cone_.origins().of(narrow);
  if (axis >= of_narrow.size() || of_narrow[axis].empty()) return false;
  const AxisOrigins::Sources own = of_narrow[axis];
  const auto of_wide = cone_.origins().of(wide);
  const bool are_samples =
      std::ranges::all_of(own, [&](const AxisSource& source) { return source.axis == 0 && is_input_axis(source); });
  if (!are_samples || have_common(of_wide[meets], own)) return false;
  if (have_common(of_wide[right], own) || !cone_.pool().as_constant(cone_.dims(narrow)[axis])) return true;
  // A given matrix of pairs may be scaled along both of its axes.
  return of_wide.size() > 2 && meet_elsewhere(own, AxisOrigins::Sources(of_wide[right]));
}

/// Both axes come together in another value: the samples of one input are those of the other, as where the number of a
/// step picks what is added to each picture and what scales it.
bool CrossedAxes::meet_elsewhere(const AxisOrigins::Sources& own, const AxisOrigins::Sources& samples) {
  constexpr std::size_t kMaxValues = 64;
  if (own.empty()) return false;
  std::vector<ValueId> pending{own.front().value};
  Visited<ValueId> seen(cone_.analysis().meter());
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
    for (const NodeId user : expressions_.users(pending[i])) {
      const ValueId result = expressions_.result(user);
      if (!cone_.has(user) || expressions_.is_spent() || result == ValueId::kAbsent || !seen.insert(result)) continue;
      if (expressions_.op(user) == Opcode::kAdd || expressions_.op(user) == Opcode::kMul)
        for (const AxisOrigins::Sources& sources : cone_.origins().of(result))
          if (have_common(sources, own) && have_common(sources, samples)) return true;
      pending.push_back(result);
    }
  return false;
}

/// The node before elementwise steps that reduces the axis of the wide value that the narrow one meets again.
NodeId CrossedAxes::reduced_along(ValueId wide, std::size_t meets, ValueId narrow) {
  const auto of_wide = cone_.origins().of(wide);
  if (meets >= of_wide.size()) return NodeId::kNone;
  const AxisOrigins::Sources met = of_wide[meets];
  std::vector<ValueId> pending{narrow};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayToCrossing; ++i) {
    const NodeId node = expressions_.producer(pending[i]);
    const Opcode opcode = expressions_.op(node);
    if (node == NodeId::kNone || expressions_.is_spent()) continue;
    expressions_.charge(1);
    if (reduces_axes(opcode)) {
      const auto axes = expressions_.axes_of(node);
      const ValueId data = expressions_.operand(node, 0);
      const auto of_data = cone_.origins().of(data);
      if (axes && std::ranges::any_of(*axes, [&](std::size_t axis) {
            return axis < of_data.size() && have_common(of_data[axis], met);
          }))
        return node;
      continue;
    }
    if (!keeps_elements(opcode) && opcode != Opcode::kCast && opcode != Opcode::kExpand &&
        !has_trait(expressions_.entry(node), ops::OpTrait::kElementwise))
      continue;
    const auto operands = cone_.operands(node);
    const bool is_step = has_trait(expressions_.entry(node), ops::OpTrait::kElementwise);
    for (const ValueId operand : is_step ? operands : operands.first(1))
      if (operand != ValueId::kAbsent) pending.push_back(operand);
  }
  return NodeId::kNone;
}

/// A matrix that is given, times or divided by the sums of its rows, which get an axis on purpose: of a symmetric one,
/// such as the links of an undirected graph, these are the sums of its columns.
bool CrossedAxes::is_degree(NodeId node, NodeId reduction, ValueId wide, std::size_t meets, std::size_t right) {
  const Opcode opcode = expressions_.op(node);
  if (expressions_.op(reduction) != Opcode::kReduceSum || (opcode != Opcode::kMul && opcode != Opcode::kDiv))
    return false;
  const auto axes = cone_.origins().of(wide);
  expressions_.charge(axes[meets].size() * axes[right].size());
  return std::ranges::any_of(axes[meets], [&](const AxisSource& met) {
    return std::ranges::any_of(axes[right], [&](const AxisSource& source) { return source.value == met.value; });
  });
}

/// Two of its axes come from one: of what an axis is left nobody knows.
bool CrossedAxes::is_named_twice(ValueId value) {
  const auto axes = cone_.origins().of(value);
  for (std::size_t i = 0; i < axes.size(); ++i)
    for (std::size_t k = 0; k < i && !expressions_.is_spent(); ++k)
      if (have_common(axes[i], axes[k])) return true;
  return false;
}

/// What the value is computed from meets the axis that it comes from somewhere else: rows and columns are both scaled
/// by their degrees.
bool CrossedAxes::meets_its_own(ValueId narrow, std::size_t axis, ValueId wide, NodeId node) {
  const auto of_narrow = cone_.origins().of(narrow);
  if (axis >= of_narrow.size()) return false;
  const AxisOrigins::Sources own = of_narrow[axis];
  // Before views: each place that it is put to has a view of its own.
  std::vector<ValueId> pending{cone_.before_views(narrow)};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxWayToCrossing; ++i) {
    for (const NodeId user : expressions_.users(pending[i])) {
      if (!cone_.has(user) || expressions_.is_spent()) continue;
      expressions_.charge(1);
      const Opcode opcode = expressions_.op(user);
      const ValueId result = expressions_.result(user);
      if (keeps_elements(opcode) || opcode == Opcode::kExpand || opcode == Opcode::kCast) {
        pending.push_back(result);
        continue;
      }
      const bool scales =
          opcode == Opcode::kMul || opcode == Opcode::kDiv || opcode == Opcode::kSub || opcode == Opcode::kAdd;
      const ValueId other = expressions_.beside(user, pending[i]);
      if (!scales || cone_.operands(user).size() != 2) continue;
      // The same values scale the other axis, before or after.
      if (user != node && (result == wide || other == expressions_.result(node))) return true;
      const auto x = cone_.dims(other), y = cone_.dims(pending[i]);
      if (x.size() < y.size() || x.size() < 2) continue;
      const auto of_other = cone_.origins().of(other);
      for (std::size_t k = 0; k < y.size(); ++k) {
        const std::size_t at = k + x.size() - y.size();
        if (cone_.is_long(pending[i], k) && at < of_other.size() && have_common(of_other[at], own)) return true;
      }
    }
  }
  return false;
}

/// A statistic over the last axis of scores of all pairs, both of whose axes come from one: less the largest of each
/// row under a softmax of rows, or divided by the sum of each row. A product of a value with itself is symmetric, so
/// that its sums may be those of columns.
std::optional<AxisMistake> CrossedAxes::statistic_of_rows(NodeId node) {
  const Opcode opcode = expressions_.op(node);
  if (opcode != Opcode::kSub && opcode != Opcode::kDiv) return std::nullopt;
  const ValueId wide = expressions_.operand(node, 0), narrow = expressions_.operand(node, 1);
  const auto x = cone_.dims(wide);
  if (x.size() < 2 || !cone_.pool().equal(x[x.size() - 1], x[x.size() - 2]) || !cone_.has_batch(wide))
    return std::nullopt;
  const std::size_t columns = x.size() - 1, rows = x.size() - 2;
  std::vector<NodeId> way;
  NodeId reduction = expressions_.producer(narrow);
  for (; way.size() < 4 && !reduces_axes(expressions_.op(reduction));
       reduction = expressions_.producer(expressions_.operand(reduction, 0))) {
    const Opcode step = expressions_.op(reduction);
    const bool is_bound = step == Opcode::kClip || step == Opcode::kMax || step == Opcode::kAdd;
    if (reduction == NodeId::kNone || (!keeps_elements(step) && step != Opcode::kCast && !is_bound))
      return std::nullopt;
    if (is_bound && expressions_.operand(reduction, 1) != ValueId::kAbsent &&
        !expressions_.number(expressions_.operand(reduction, 1)))
      return std::nullopt;
    way.push_back(reduction);
  }
  const auto axes = expressions_.axes_of(reduction);
  const bool is_largest = opcode == Opcode::kSub && expressions_.op(reduction) == Opcode::kReduceMax;
  const bool is_sum = opcode == Opcode::kDiv && expressions_.op(reduction) == Opcode::kReduceSum;
  if (!axes || *axes != std::vector<std::size_t>{columns} ||
      cone_.before_views(expressions_.operand(reduction, 0)) != cone_.before_views(wide) || (!is_largest && !is_sum))
    return std::nullopt;
  // Where the rows of the statistic are in the end; it has no other use.
  AxisStep at = cone_.way().follow(reduction, 0, rows);
  ValueId value = expressions_.result(reduction);
  for (auto step = way.rbegin(); step != way.rend() && at.fate == AxisFate::kKept; ++step) {
    if (expressions_.users(value).size() != 1) return std::nullopt;
    at = cone_.way().follow(*step, 0, at.axis);
    value = expressions_.result(*step);
  }
  const std::size_t own = cone_.dims(narrow).size();
  if (at.fate != AxisFate::kKept || expressions_.users(value).size() != 1 || own > x.size() ||
      at.axis + x.size() - own != columns)
    return std::nullopt;
  if (is_largest ? !is_summed_along(expressions_.result(node), columns) : is_symmetric(wide)) return std::nullopt;
  return AxisMistake{Kind::kCrossedAxes, node, narrow, {at.axis}, false, reduction, columns, wide, rows};
}

/// Exponentials of the value are summed along the axis.
bool CrossedAxes::is_summed_along(ValueId value, std::size_t axis) const {
  std::vector<ValueId> pending{value};
  for (std::size_t i = 0; i < pending.size() && pending.size() < 12; ++i)
    for (const NodeId user : expressions_.users(pending[i])) {
      const Opcode opcode = expressions_.op(user);
      const bool sums = opcode == Opcode::kReduceSum || opcode == Opcode::kReduceLogSumExp ||
                        opcode == Opcode::kSoftmax || opcode == Opcode::kLogSoftmax;
      const auto axes = sums ? expressions_.axes_of(user) : std::nullopt;
      if (axes && *axes == std::vector<std::size_t>{axis} &&
          (opcode != Opcode::kReduceSum || expressions_.op_of(pending[i]) == Opcode::kExp ||
           expressions_.op_of(pending[i]) == Opcode::kMul))
        return true;
      const bool is_mask = opcode == Opcode::kMul && expressions_.op_of(pending[i]) == Opcode::kExp;
      if (opcode == Opcode::kExp || is_mask) pending.push_back(expressions_.result(user));
    }
  return false;
}

/// A product of a value with itself, or anything but a product, before steps of single elements.
bool CrossedAxes::is_symmetric(ValueId value) const {
  for (int step = 0; step < 8; ++step) {
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
    if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) {
      const auto turned = [&](ValueId operand) {
        operand = cone_.before_views(operand);
        return expressions_.op_of(operand) == Opcode::kTranspose
                   ? cone_.before_views(expressions_.operand(expressions_.producer(operand), 0))
                   : operand;
      };
      return cone_.operands(node).size() != 2 || turned(a) == turned(b);
    }
    const bool is_step = has_trait(expressions_.entry(node), ops::OpTrait::kElementwise) &&
                         (cone_.operands(node).size() == 1 || (b != ValueId::kAbsent && expressions_.number(b)));
    if (!is_step) return true;
    value = a;
  }
  return true;
}

/// u @ v.T / (|u| * |v|) of norms [N] each: every column is divided by the norms of one pair.
std::optional<AxisMistake> CrossedAxes::cosine_of_pairs(NodeId node) {
  if (expressions_.op(node) != Opcode::kDiv) return std::nullopt;
  const ValueId wide = expressions_.operand(node, 0), narrow = expressions_.operand(node, 1);
  const NodeId product = expressions_.producer(wide);
  if (expressions_.op(product) != Opcode::kMatMul || cone_.dims(wide).size() != 2 || cone_.dims(narrow).size() != 1 ||
      !cone_.is_long(narrow, 0))
    return std::nullopt;
  NodeId lengths = expressions_.producer(narrow);
  for (int step = 0; step < 3 && expressions_.op(lengths) != Opcode::kMul; ++step) {
    const ValueId guard = expressions_.operand(lengths, 1);
    if (guard != ValueId::kAbsent && !expressions_.number(guard)) return std::nullopt;
    lengths = expressions_.producer(expressions_.operand(lengths, 0));
  }
  if (expressions_.op(lengths) != Opcode::kMul) return std::nullopt;
  const ValueId left = cone_.before_views(expressions_.operand(product, 0));
  ValueId right = cone_.before_views(expressions_.operand(product, 1));
  if (expressions_.op_of(right) == Opcode::kTranspose)
    right = cone_.before_views(expressions_.operand(expressions_.producer(right), 0));
  std::vector<ValueId> found;
  for (const ValueId factor : cone_.operands(lengths)) {
    NodeId norm = NodeId::kNone;
    found.push_back(cone_.before_views(cone_.norm_of(factor, norm)));
    if (cone_.dims(factor).size() != 1) return std::nullopt;
  }
  if (found.size() != 2) return std::nullopt;
  const bool matches = (found[0] == left && found[1] == right) || (found[0] == right && found[1] == left);
  if (!matches || !cone_.has_batch(left) || !cone_.has_batch(right)) return std::nullopt;
  return AxisMistake{Kind::kCrossedAxes, node, narrow, {0}, false, lengths, 1, wide, 0};
}

/// A matrix of all pairs, such as intersections [N, M], and the sum of a vector of its rows and one of its columns,
/// areas [N] + [M]: the two have been added element by element, and not as a column and a row.
std::optional<AxisMistake> CrossedAxes::vectors_of_both_sides(NodeId node, ValueId wide, ValueId narrow) {
  const auto x = cone_.dims(wide), y = cone_.dims(narrow);
  if (x.size() != 2 || y.size() != 1 || !cone_.is_long(narrow, 0) || !cone_.pool().equal(x[1], y[0]) ||
      !cone_.pool().equal(x[0], y[0]))
    return std::nullopt;
  const auto of_wide = cone_.origins().of(wide);
  if (of_wide.size() != 2) return std::nullopt;
  const AxisOrigins::Sources rows = of_wide[0], columns = of_wide[1];
  if (have_common(rows, columns)) return std::nullopt;
  enum Side { kNeither, kRows, kColumns, kBoth };
  const auto side_of = [&](ValueId value) {
    const auto axes = cone_.origins().of(value);
    const bool in_rows = axes.size() == 1 && have_common(axes[0], rows),
               in_columns = axes.size() == 1 && have_common(axes[0], columns);
    return in_rows ? in_columns ? kBoth : kRows : in_columns ? kColumns : kNeither;
  };
  // Vectors alone come together: what was multiplied before is a number of each pair.
  std::vector<ValueId> pending{narrow};
  NodeId joined = NodeId::kNone;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (pending.size() > 16 || expressions_.is_spent()) return std::nullopt;
    expressions_.charge(4);
    if (side_of(pending[i]) != kBoth) continue;
    const NodeId step = expressions_.producer(pending[i]);
    if (!has_trait(expressions_.entry(step), ops::OpTrait::kElementwise) && expressions_.op(step) != Opcode::kCast)
      return std::nullopt;
    bool has_rows = false, has_columns = false;
    for (const ValueId operand : cone_.operands(step)) {
      if (operand == ValueId::kAbsent || cone_.dims(operand).empty()) continue;
      if (cone_.dims(operand).size() != 1) return std::nullopt;
      const Side side = side_of(operand);
      has_rows |= side == kRows;
      has_columns |= side == kColumns;
      pending.push_back(operand);
    }
    if (has_rows && has_columns) joined = step;
  }
  if (joined == NodeId::kNone) return std::nullopt;
  return AxisMistake{Kind::kCrossedAxes, node, narrow, {0}, false, joined, 1, wide, 0};
}

/// The order in which an input has two axes that these come from: 1 as here, -1 turned, 0 where nobody knows.
int CrossedAxes::order_of(ValueId value, std::size_t first, std::size_t second) {
  const auto axes = cone_.origins().of(value);
  if (second >= axes.size() || expressions_.is_spent()) return 0;
  expressions_.charge(axes[first].size() * axes[second].size());
  int found = 0;
  for (const AxisSource& a : axes[first])
    for (const AxisSource& b : axes[second]) {
      if (a.value != b.value || a.axis == b.axis || !is_input_axis(a)) continue;
      const int order = a.axis < b.axis ? 1 : -1;
      if (found == -order) return 0;
      found = order;
    }
  return found;
}

/// transpose(1, 3) of pictures [N, H, W, C] gives [N, C, W, H], which meets [N, C, H, W].
std::optional<AxisMistake> CrossedAxes::turned_pictures(NodeId node, ValueId a, ValueId b) {
  if (cone_.dims(a).size() != 4 || cone_.dims(b).size() != 4 || !cone_.is_long(a, 2) || !cone_.is_long(a, 3) ||
      !cone_.is_long(b, 2) || !cone_.is_long(b, 3))
    return std::nullopt;
  const int order = order_of(a, 2, 3);
  if (order == 0 || order_of(b, 2, 3) != -order) return std::nullopt;
  const ValueId turned = order < 0 ? a : b;
  ValueId value = turned;
  for (std::size_t step = 0; step < kMaxWayToCrossing; ++step) {
    const NodeId maker = expressions_.producer(value);
    if (expressions_.op(maker) == Opcode::kTranspose) {
      const Attribute* given = cone_.analysis().attribute(maker, "perm");
      if (given == nullptr || !std::ranges::equal(given->ints, std::array<std::int64_t, 4>{0, 3, 2, 1}))
        return std::nullopt;
      return AxisMistake{Kind::kTurnedPicture, node, turned, {2}, false, maker, 3, order < 0 ? b : a, 3};
    }
    if (maker == NodeId::kNone) return std::nullopt;
    ValueId next = ValueId::kAbsent;
    for (const ValueId operand : cone_.operands(maker)) {
      if (operand == ValueId::kAbsent || order_of(operand, 2, 3) != -1) continue;
      next = operand;
      break;
    }
    if (next == ValueId::kAbsent || cone_.dims(next).size() != 4) return std::nullopt;
    value = next;
  }
  return std::nullopt;
}

/// The losses of samples [N] times a constant for each class [C], with N as large as C.
std::optional<AxisMistake> CrossedAxes::weights_of_classes(NodeId node, ValueId losses, ValueId weights) {
  const auto x = cone_.dims(losses), y = cone_.dims(weights);
  if (x.size() != 1 || y.size() != 1 || !cone_.is_long(weights, 0) || !cone_.is_constant(weights) ||
      !cone_.origins().is_batch(losses, 0))
    return std::nullopt;
  const auto numbers = cone_.numbers(weights);
  if (!numbers || std::ranges::all_of(*numbers, [&](double number) { return number == numbers->front(); }))
    return std::nullopt;
  ValueId value = losses;
  for (int step = 0; step < 8; ++step) {
    const NodeId maker = expressions_.producer(value);
    const Opcode opcode = expressions_.op(maker);
    const ValueId from = expressions_.operand(maker, 0), other = expressions_.operand(maker, 1);
    const auto before = cone_.dims(from);
    const ops::OpEntry* entry = expressions_.entry(maker);
    const bool is_loss = entry != nullptr && entry->loss() && ops::takes_class_indices(*entry->loss());
    const bool is_sum = opcode == Opcode::kReduceSum && expressions_.op_of(from) == Opcode::kMul &&
                        expressions_.axes_of(maker) == std::vector<std::size_t>{1};
    if (is_loss || is_sum || opcode == Opcode::kGatherElements) {
      if (before.size() != 2 || !cone_.pool().equal(before[1], y[0])) return std::nullopt;
      return AxisMistake{Kind::kWeightsOfClasses, node, weights, {0}, false, maker, 0, from, 1};
    }
    const bool scales = (opcode == Opcode::kMul || opcode == Opcode::kDiv) && expressions_.number(other).has_value();
    if (!keeps_elements(opcode) && opcode != Opcode::kNeg && opcode != Opcode::kCast && !scales) return std::nullopt;
    value = from;
  }
  return std::nullopt;
}

/// (states * mask).sum(1) / mask.sum(1), where the mask [N, T] meets the features and is stretched along the steps.
std::optional<AxisMistake> CrossedAxes::masked_mean(NodeId node, ValueId wide, ValueId narrow) {
  const auto x = cone_.dims(wide), y = cone_.dims(narrow);
  if (x.size() < 3 || y.empty() || y.size() > x.size()) return std::nullopt;
  const std::size_t missing = x.size() - y.size();
  const ValueId mask = cone_.before_views(narrow);
  const auto given = cone_.dims(mask);
  if (given.size() != 2 || !cone_.has_batch(mask)) return std::nullopt;
  for (const NodeId sum : expressions_.users(expressions_.result(node))) {
    const auto axes = expressions_.op(sum) == Opcode::kReduceSum ? expressions_.axes_of(sum) : std::nullopt;
    if (!axes || axes->size() != 1) continue;
    const std::size_t steps = axes->front();
    if (!cone_.pool().equal(x[steps], given[1]) || (steps >= missing && cone_.is_long(narrow, steps - missing)))
      continue;
    for (const NodeId division : expressions_.users(expressions_.result(sum))) {
      if (expressions_.op(division) != Opcode::kDiv || expressions_.operand(division, 0) != expressions_.result(sum))
        continue;
      ValueId below = cone_.before_views(expressions_.operand(division, 1));
      for (int step = 0; step < 2 && expressions_.op_of(below) != Opcode::kReduceSum; ++step)
        below = cone_.before_views(expressions_.operand(expressions_.producer(below), 0));
      const NodeId count = expressions_.producer(below);
      const auto counted = expressions_.op(count) == Opcode::kReduceSum ? expressions_.axes_of(count) : std::nullopt;
      if (!counted || *counted != std::vector<std::size_t>{1} ||
          cone_.before_views(expressions_.operand(count, 0)) != mask)
        continue;
      for (std::size_t i = 0; i < y.size(); ++i)
        if (i + missing != steps && cone_.is_long(narrow, i) && cone_.pool().equal(y[i], given[1]) && i + missing != 0)
          return AxisMistake{Kind::kCrossedAxes, node, narrow, {i}, false, count, i + missing, wide, steps};
    }
  }
  return std::nullopt;
}

/// Pictures [N, C, H, W], or series [N, C, W], times one number for each channel, [N, 1, 1, C] or [C], with C as large
/// as W: a gate that is computed from means over both sides, or weights of a branch that is added to what it comes
/// from.
std::optional<AxisMistake> CrossedAxes::gate_of_channels(NodeId node, ValueId wide, ValueId narrow) {
  const auto x = cone_.dims(wide), y = cone_.dims(narrow);
  if (x.size() < 3 || x.size() > 4 || y.empty() || y.size() > x.size() || !cone_.is_long(narrow, y.size() - 1))
    return std::nullopt;
  const std::size_t width = x.size() - 1;
  const auto channels = cone_.pool().as_constant(x[1]);
  if (!channels || !cone_.pool().equal(x[1], x[width]) || !cone_.pool().equal(y.back(), x[width])) return std::nullopt;
  for (std::size_t i = 0; i + 1 < y.size(); ++i)
    if (cone_.is_long(narrow, i) && i + x.size() - y.size() != 0) return std::nullopt;
  ValueId picture = wide;
  for (int step = 0; step < 4 && expressions_.op_of(picture) != Opcode::kConv; ++step) {
    const NodeId before = expressions_.producer(picture);
    if (!has_trait(expressions_.entry(before), ops::OpTrait::kElementwise) &&
        expressions_.op(before) != Opcode::kNormalize)
      return std::nullopt;
    picture = expressions_.operand(before, 0);
  }
  if (expressions_.op_of(picture) != Opcode::kConv || !cone_.origins().is_batch(wide, 0)) return std::nullopt;
  const NodeId pool = cone_.is_constant(narrow) ? NodeId::kNone : pooled_from(wide, narrow);
  // A constant along a series may be a window.
  const bool is_scale = cone_.is_constant(narrow) && x.size() == 4 && is_added_to_picture(node, x);
  if (!is_scale && pool == NodeId::kNone) return std::nullopt;
  return AxisMistake{
      Kind::kCrossedAxes, node, narrow, {y.size() - 1}, false, pool == NodeId::kNone ? node : pool, width, wide, 1};
}

/// The mean over both sides of the picture that the value is computed from by layers.
NodeId CrossedAxes::pooled_from(ValueId wide, ValueId value) const {
  std::vector<std::size_t> sides;
  for (std::size_t i = 2; i < cone_.dims(wide).size(); ++i) sides.push_back(i);
  for (int step = 0; step < 16; ++step) {
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
    if (opcode == Opcode::kReduceMean) {
      const auto axes = expressions_.axes_of(node);
      return axes && *axes == sides && a == wide ? node : NodeId::kNone;
    }
    const bool is_layer = opcode == Opcode::kMatMul && !cone_.has_batch(b);
    if (node == NodeId::kNone ||
        (!is_layer && !keeps_elements(opcode) && !has_trait(expressions_.entry(node), ops::OpTrait::kElementwise)))
      return NodeId::kNone;
    value = cone_.is_constant(a) ? b : a;
  }
  return NodeId::kNone;
}

bool CrossedAxes::is_added_to_picture(NodeId node, std::span<const Dim> shape) const {
  return std::ranges::any_of(expressions_.users(expressions_.result(node)), [&](NodeId user) {
    const ValueId other = expressions_.beside(user, expressions_.result(node));
    return expressions_.op(user) == Opcode::kAdd && cone_.has_batch(other) &&
           std::ranges::equal(cone_.dims(other), shape, [&](Dim a, Dim b) { return cone_.pool().equal(a, b); });
  });
}

/// The products of every two samples less a number that is given of each one, squared and averaged: what is given
/// belongs to the product of the sample with its own partner.
std::optional<AxisMistake> CrossedAxes::one_for_pair(NodeId node, ValueId pairs, ValueId numbers) {
  pairs = cone_.before_views(pairs);
  numbers = cone_.before_views(numbers);
  const auto x = cone_.dims(pairs), y = cone_.dims(numbers);
  if (x.size() != 2 || y.size() != 1 || !cone_.is_long(numbers, 0) || !cone_.is_input(numbers) ||
      !cone_.origins().is_batch(numbers, 0) || !cone_.origins().is_batch(pairs, 0) ||
      !cone_.origins().is_batch(pairs, 1) || !cone_.pool().equal(x[0], y[0]) || !cone_.pool().equal(x[1], y[0]))
    return std::nullopt;
  ValueId value = pairs;
  for (int step = 0; step < 4; ++step) {
    const NodeId before = expressions_.producer(value);
    const ValueId a = expressions_.operand(before, 0), b = expressions_.operand(before, 1);
    if (has_trait(expressions_.entry(before), ops::OpTrait::kElementwise) &&
        (cone_.operands(before).size() == 1 || (cone_.operands(before).size() == 2 && !cone_.has_batch(b))))
      value = a;
  }
  const NodeId product = expressions_.producer(value);
  const ValueId a = expressions_.operand(product, 0), b = expressions_.operand(product, 1);
  if ((expressions_.op(product) != Opcode::kMatMul && expressions_.op(product) != Opcode::kEinsum) ||
      cone_.operands(product).size() != 2 || cone_.before_views(a) == cone_.before_views(b) || !cone_.has_batch(a) ||
      !cone_.has_batch(b))
    return std::nullopt;
  const ValueId difference = expressions_.result(node);
  for (const NodeId user : expressions_.users(difference)) {
    const ValueId result = expressions_.result(user);
    const ValueId beside = expressions_.beside(user, difference);
    const NodeId twin = expressions_.producer(beside);
    const bool is_squared = expressions_.square_base(result) == difference ||
                            (expressions_.op(user) == Opcode::kMul && expressions_.op(twin) == Opcode::kSub &&
                             std::ranges::equal(cone_.operands(twin), cone_.operands(node)));
    if ((is_squared || expressions_.op(user) == Opcode::kAbs) && cone_.is_averaged_whole(result))
      return AxisMistake{Kind::kOneForPair, node, pairs, {0, 1}, true, product, 0, numbers, 0};
  }
  return std::nullopt;
}

/// Probabilities [N, K] of K parts that are stacked, [K, N, D]: those of part k weigh coordinate k, and the parts are
/// summed.
std::optional<AxisMistake> CrossedAxes::weighs_features(NodeId node, ValueId parts, ValueId shares) {
  const auto x = cone_.dims(parts), y = cone_.dims(shares);
  if (x.size() < 3 || y.empty() || y.size() > x.size()) return std::nullopt;
  const NodeId stack = expressions_.producer(parts);
  if (expressions_.op(stack) != Opcode::kConcat) return std::nullopt;
  const auto softmax = expressions_.normalised(cone_.before_views(shares));
  if (!softmax || softmax->logarithm || softmax->axes.size() != 1) return std::nullopt;
  const auto scores = cone_.dims(softmax->scores);
  if (scores.empty() || softmax->axes.front() + 1 != scores.size() || !cone_.is_long(shares, y.size() - 1))
    return std::nullopt;
  const DimPool& pool = cone_.pool();
  const Dim count = y.back();
  const auto number = pool.as_constant(count);
  const auto operands = cone_.operands(stack);
  if (!number || *number != static_cast<std::int64_t>(operands.size()) || !pool.equal(x.back(), count))
    return std::nullopt;
  const std::size_t missing = x.size() - y.size();
  for (std::size_t axis = 0; axis + 1 < x.size(); ++axis) {
    const bool stretched = axis < missing || pool.is_constant(y[axis - missing], 1);
    if (!stretched || !pool.equal(x[axis], count)) continue;
    const bool are_stacked = std::ranges::all_of(operands, [&](ValueId operand) {
      const auto part = cone_.dims(operand);
      return part.size() == x.size() && pool.is_constant(part[axis], 1);
    });
    if (!are_stacked) continue;
    for (const NodeId user : expressions_.users(expressions_.result(node))) {
      const auto axes = expressions_.op(user) == Opcode::kReduceSum ? expressions_.axes_of(user) : std::nullopt;
      if (axes && *axes == std::vector<std::size_t>{axis})
        return AxisMistake{Kind::kCrossedAxes, node, shares, {y.size() - 1}, false, user, x.size() - 1, parts, axis};
    }
  }
  return std::nullopt;
}

}  // namespace tensorlint::losses
