#include "passes/losses/broadcasts.h"

#include <algorithm>
#include <span>

namespace tensorlint::losses {
namespace {

/// Nodes in a row that move elements, or compute one of each.
constexpr int kMaxSteps = 16;

class BroadcastFinder {
 public:
  BroadcastFinder(const Terms& terms, AxisOrigins& origins, const LossSite& site)
      : terms_(terms), analysis_(terms.analysis()), pool_(analysis_.facts().dims()), origins_(origins), site_(site) {}

  std::optional<LossBroadcast> find() {
    if (!is_summed_up()) return std::nullopt;
    if (ops::is_regression(site_.kind)) {
      for (const auto& [prediction, target] :
           {std::pair(site_.prediction, site_.target), std::pair(site_.prediction_source, site_.target_source)}) {
        if (are_all_pairs(prediction, target)) return LossBroadcast{site_.meeting, prediction, target, true, false};
        for (const auto& [wide, narrow] : {std::pair(prediction, target), std::pair(target, prediction)})
          if (is_one_for_row(wide, narrow)) return LossBroadcast{site_.meeting, wide, narrow, false, false};
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
      return terms_.op(node) == Opcode::kReduceMean || terms_.op(node) == Opcode::kReduceSum;
    });
  }

  std::optional<LossBroadcast> find_at(NodeId node) {
    if (!has_trait(terms_.entry(node), ops::OpTrait::kElementwise)) return std::nullopt;
    const Model& model = analysis_.model();
    const auto operands = model.operands(model.node(node));
    for (std::size_t i = 0; i < operands.size(); ++i)
      for (std::size_t j = i + 1; j < operands.size(); ++j) {
        const ValueId a = terms_.source(operands[i]), b = terms_.source(operands[j]);
        if (are_all_pairs(a, b)) return LossBroadcast{node, a, b, true, node != site_.meeting};
      }
    return std::nullopt;
  }

  std::optional<std::span<const Dim>> shape(ValueId value) const {
    if (value == ValueId::kAbsent || analysis_.taint(value).has(Aspect::kShape)) return std::nullopt;
    const Fact& fact = analysis_.fact(value);
    if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return std::nullopt;
    return analysis_.facts().dims_of(fact.shape);
  }

  /// Extent 1, or no axis at all: it is stretched where the other one has more.
  static std::optional<std::size_t> aligned(std::size_t axis, std::size_t rank, std::size_t result_rank) {
    const std::size_t missing = result_rank - rank;
    return axis < missing ? std::nullopt : std::optional(axis - missing);
  }

  /// Axes of `a` along which `b` is stretched.
  std::vector<std::size_t> stretches(std::span<const Dim> a, std::span<const Dim> b) const {
    const std::size_t rank = std::max(a.size(), b.size());
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (pool_.is_constant(a[i], 1) || pool_.bounds(a[i]).hi <= 1) continue;
      const auto other = aligned(i + rank - a.size(), b.size(), rank);
      if (!other || pool_.is_constant(b[*other], 1)) found.push_back(i);
    }
    return found;
  }

  std::size_t long_axes(std::span<const Dim> dims) const {
    return static_cast<std::size_t>(std::ranges::count_if(dims, [&](Dim dim) { return !pool_.is_constant(dim, 1); }));
  }

  /// Both are stretched, along axes that are the same: the batch of the one against the batch of the other.
  bool are_all_pairs(ValueId a, ValueId b) {
    const auto x = shape(a), y = shape(b);
    if (!x || !y) return false;
    const auto of_x = stretches(*x, *y), of_y = stretches(*y, *x);
    if (of_x.empty() || of_y.empty()) return false;
    // One has an axis of extent 1 more than the other one, and is otherwise alike: it was forgotten to be squeezed.
    const bool vectors = (long_axes(*x) == 1 && long_axes(*y) == 1) || is_column_of(*x, *y) || is_column_of(*y, *x);
    const auto are_one = [&](std::size_t i, std::size_t j) {
      const Dim m = (*x)[i], n = (*y)[j];
      return pool_.equal(m, n) && (!pool_.as_constant(m) || origins_.are_same(a, i, b, j));
    };
    const bool same =
        vectors ? pool_.equal(last_long(*x), last_long(*y)) : std::ranges::any_of(of_x, [&](std::size_t i) {
          return std::ranges::any_of(of_y, [&](std::size_t j) { return are_one(i, j); });
        });
    return same && !are_meant(a, b);
  }

  bool is_column_of(std::span<const Dim> column, std::span<const Dim> row) const {
    return !row.empty() && column.size() == row.size() + 1 && pool_.is_constant(column.back(), 1) &&
           std::ranges::equal(row, column.first(row.size()), [&](Dim a, Dim b) { return pool_.equal(a, b); });
  }

  /// The last axis that has more than one element.
  Dim last_long(std::span<const Dim> dims) const {
    for (std::size_t i = dims.size(); i-- > 0;)
      if (!pool_.is_constant(dims[i], 1)) return dims[i];
    return Dim();
  }

  bool are_meant(ValueId a, ValueId b) const {
    const Moved x = moved(a), y = moved(b);
    return x.from == y.from || x.transposed || y.transposed || (x.gets_axis && y.gets_axis);
  }

  struct Moved {
    ValueId from;
    bool gets_axis = false, transposed = false;
  };

  /// The value before nodes that only move its elements.
  Moved moved(ValueId value) const {
    Moved found{.from = value};
    for (int step = 0; step < kMaxSteps; ++step) {
      const Opcode opcode = terms_.op_of(found.from);
      if (!moves_elements(opcode) && opcode != Opcode::kCast) break;
      const ValueId before = terms_.operand(terms_.maker(found.from), 0);
      const auto from = shape(before), to = shape(found.from);
      found.gets_axis |=
          opcode == Opcode::kUnsqueeze || (opcode == Opcode::kReshape && from && to && to->size() > from->size());
      found.transposed |= opcode == Opcode::kTranspose;
      found.from = before;
    }
    return found;
  }

  /// Rows of scores against one number each, which is a label or an estimate that nobody stretched on purpose.
  bool is_one_for_row(ValueId wide, ValueId narrow) const {
    if (!compares_alike(site_.kind)) return false;
    const auto x = shape(wide), y = shape(narrow);
    if (!x || !y || x->size() != y->size() || x->size() < 2) return false;
    const auto classes = pool_.as_constant(x->back());
    if (!classes || *classes < 2 || !pool_.is_constant(y->back(), 1)) return false;
    for (std::size_t i = 0; i + 1 < x->size(); ++i)
      if (!pool_.equal((*x)[i], (*y)[i])) return false;
    return is_input(narrow) ? is_input(wide) || is_computed(wide) : is_computed(narrow) && is_input(wide);
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
    const Value& known = analysis_.model().value(terms_.source(value));
    return known.origin == ValueOrigin::kInput && known.graph == GraphId::kMain && known.initializer == nullptr;
  }

  /// By a layer, perhaps with elementwise operators after it.
  bool is_computed(ValueId value) const {
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = terms_.maker(value);
      const Opcode opcode = terms_.op(node);
      if (opcode == Opcode::kMatMul || opcode == Opcode::kConv) return true;
      const bool goes_on = opcode == Opcode::kCast || opcode == Opcode::kIdentity || opcode == Opcode::kSoftmax ||
                           opcode == Opcode::kDropout || has_trait(terms_.entry(node), ops::OpTrait::kElementwise);
      if (node == NodeId::kNone) return is_input(value);
      if (!goes_on) return false;
      value = terms_.operand(node, 0);
    }
    return false;
  }

  const Terms& terms_;
  const Analysis& analysis_;
  DimPool& pool_;
  AxisOrigins& origins_;
  const LossSite& site_;
};

}  // namespace

std::optional<LossBroadcast> find_broadcast(const Terms& terms, AxisOrigins& origins, const LossSite& site) {
  return BroadcastFinder(terms, origins, site).find();
}

}  // namespace tensorlint::losses
