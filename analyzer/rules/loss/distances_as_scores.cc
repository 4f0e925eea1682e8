#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class DistancesAsScores : public Rule {
 public:
  DistancesAsScores()
      : Rule({"TL-L372", "distances-as-scores", "loss", findings::Severity::kWarning,
              "a cross-entropy, an average or a search that takes the largest distance for the nearest"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    using losses::LossKind;
    if (loss.kind != LossKind::kCrossEntropy && loss.kind != LossKind::kNegativeLogLikelihood &&
        loss.kind != LossKind::kFocal)
      return;
    if (loss.evidence == losses::LossEvidence::kMetadata || analysis.has_failed(loss.anchor)) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    ValueId scores = expressions.source(loss.prediction);
    if (const auto softmax = expressions.normalised(scores)) scores = softmax->scores;
    if (scores == ValueId::kAbsent || analysis.taint(scores).has(Aspect::kValue)) return;
    const NodeId distance = rising_distance(expressions, scores);
    if (distance == NodeId::kNone) return;
    out.report(loss.anchor, fmt::format("{} takes {} for scores, which are distances: what is farthest away gets the "
                                        "largest probability",
                                        ops::to_text(loss.kind), Operand(analysis, scores).name()))
        .note_at(distance, "the distances are computed here")
        .fix("negate the distances: the nearest class has the largest score then");
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kTopK, Opcode::kSoftmax}, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kTopK))
        check_neighbours(expressions, call, out);
      else
        check_average(expressions, call, out);
    });
  }

 private:
  /// The places of the largest distances, with which neighbours are looked up. All places are an order; where there are
  /// masks, the farthest one of a class may be meant.
  static void check_neighbours(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const Operand scores = call.operand(0);
    const ValueId places = call.result(1);
    if (!scores.present() || places == ValueId::kAbsent || scores.taint().has(Aspect::kValue)) return;
    const Attribute* largest = call.attribute("largest");
    if (largest != nullptr && largest->i == 0) return;
    const auto given = expressions.dims(scores.value()), kept = expressions.dims(places);
    const DimPool& pool = analysis.facts().dims();
    if (given.size() != kept.size() || std::ranges::equal(given, kept, [&](Dim a, Dim b) { return pool.equal(a, b); }))
      return;
    const NodeId distance = rising_distance(expressions, scores.value());
    if (distance == NodeId::kNone || has_mask(expressions, scores.value())) return;
    const std::vector<ValueId> rows = looked_up(expressions, places);
    if (rows.empty() || std::ranges::any_of(rows, [&](ValueId row) { return is_pushed_away(expressions, row); }))
      return;
    out.report(call.id(), fmt::format("{} takes the largest of the distances {}: what is looked up with {} are the "
                                      "farthest ones, and not the nearest",
                                      call.op_name(), scores.name(), Operand(analysis, places).name()))
        .note_at(distance, "the distances are computed here")
        .fix("take the smallest ones: topk(k, largest=False)");
  }

  /// Something that is neither a distance nor a part of one: a choice between numbers.
  static bool has_mask(const Expressions& expressions, ValueId scores) {
    const Formula formula(expressions, scores);
    return std::ranges::any_of(formula.parts(), [&](const Formula::Part& part) {
      const Opcode opcode = expressions.op(part.node);
      return opcode == Opcode::kWhere || opcode == Opcode::kCast;
    });
  }

  /// What is found at the places.
  static std::vector<ValueId> looked_up(const Expressions& expressions, ValueId places) {
    std::vector<ValueId> pending{places}, found;
    constexpr std::size_t kMaxValues = 16;
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        const bool gathers =
            opcode == Opcode::kGather || opcode == Opcode::kGatherElements || opcode == Opcode::kGatherND;
        if (gathers && expressions.operand(user, 1) == pending[i]) found.push_back(expressions.result(user));
        // Rows of several samples lie one after another.
        if (ops::repeats_elements(opcode) || opcode == Opcode::kAdd || opcode == Opcode::kMul ||
            opcode == Opcode::kConcat)
          pending.push_back(expressions.result(user));
      }
    return found;
  }

  /// A distance to the rows enters a hinge or an exponential with a minus: they are negatives, which may be far away.
  static bool is_pushed_away(const Expressions& expressions, ValueId rows) {
    struct Way {
      ValueId value;
      bool is_difference = false, is_distance = false, is_falling = false;
    };
    constexpr std::size_t kMaxValues = 24;
    std::vector<Way> pending{{rows}};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i].value)) {
        Way next = pending[i];
        const Opcode opcode = expressions.op(user);
        const ValueId other = expressions.beside(user, next.value);
        const bool with_number = other != ValueId::kAbsent && expressions.number(other).has_value();
        next.value = expressions.result(user);
        if (opcode == Opcode::kReduceL1 || opcode == Opcode::kReduceL2 || opcode == Opcode::kReduceSumSquare ||
            ((opcode == Opcode::kReduceSum || opcode == Opcode::kReduceMean) && !next.is_distance)) {
          if (!next.is_difference) continue;
          next.is_distance = true;
        } else if (opcode == Opcode::kSub && !next.is_difference) {
          next.is_difference = true;
        } else if (!next.is_distance) {
          const bool is_size = opcode == Opcode::kAbs || opcode == Opcode::kPow ||
                               (opcode == Opcode::kMul && other == pending[i].value) ||
                               (opcode == Opcode::kAdd && with_number);
          if (!is_size && !ops::moves_elements(opcode) && opcode != Opcode::kCast) continue;
        } else if (opcode == Opcode::kSub) {
          next.is_falling ^= expressions.operand(user, 1) == pending[i].value;
        } else if (opcode == Opcode::kNeg) {
          next.is_falling = !next.is_falling;
        } else if (with_number && (opcode == Opcode::kMul ||
                                   (opcode == Opcode::kDiv && expressions.operand(user, 0) == pending[i].value))) {
          next.is_falling ^= expressions.number(other).value_or(1) < 0;
        } else if (next.is_falling &&
                   (opcode == Opcode::kExp || opcode == Opcode::kSoftplus || opcode == Opcode::kClip ||
                    opcode == Opcode::kMax || opcode == Opcode::kReduceLogSumExp || is_rectifier(expressions, user))) {
          return true;
        } else if (opcode != Opcode::kAdd && opcode != Opcode::kSqrt && opcode != Opcode::kPow &&
                   opcode != Opcode::kClip && opcode != Opcode::kReduceSum && opcode != Opcode::kReduceMean &&
                   opcode != Opcode::kReduceMin && opcode != Opcode::kReduceMax && opcode != Opcode::kCast &&
                   !ops::moves_elements(opcode)) {
          continue;
        }
        if (next.value != ValueId::kAbsent) pending.push_back(next);
      }
    return false;
  }

  /// Weights that rise with the distances, of the values that the distances are to.
  static void check_average(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand scores = call.operand(0);
    if (!scores.present() || scores.taint().has(Aspect::kValue)) return;
    for (const NodeId user : expressions.users(call.result())) {
      const ValueId averaged = before_stretch(expressions, expressions.operand(user, 1));
      if (expressions.op(user) != Opcode::kMatMul || expressions.operand(user, 0) != call.result()) continue;
      const NodeId distance = rising_distance(expressions, scores.value());
      if (distance == NodeId::kNone || !compares(expressions, distance, averaged)) continue;
      out.report(call.id(), fmt::format("{} takes {} for scores, which are distances: of {} the farthest one gets the "
                                        "largest weight",
                                        call.op_name(), scores.name(), Operand(call.analysis(), averaged).name()))
          .note_at(distance, "the distances are computed here")
          .note_at(user, "the weights are used here")
          .fix("negate the distances: the nearest one has the largest weight then");
      return;
    }
  }

  /// One of the two values that a distance is computed from is `value`.
  static bool compares(const Expressions& expressions, NodeId distance, ValueId value) {
    constexpr std::size_t kMaxValues = 24;
    // An exporter writes a table once more where its shape is another one.
    const auto numbers = constant_numbers(expressions, value);
    std::vector<ValueId> pending{expressions.result(distance)};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i) {
      if (pending[i] == value || (numbers && numbers == constant_numbers(expressions, pending[i]))) return true;
      const NodeId node = expressions.producer(pending[i]);
      const Opcode opcode = expressions.op(node);
      if (node == NodeId::kNone || (i != 0 && opcode == Opcode::kMatMul)) continue;
      const std::size_t count = ops::picks_elements(opcode) ? 1 : 3;
      for (std::size_t k = 0; k < count; ++k)
        if (const ValueId operand = expressions.operand(node, k);
            operand != ValueId::kAbsent && !expressions.number(operand))
          pending.push_back(operand);
    }
    return false;
  }

  /// The node that sums up a distance with which the scores rise, whatever else they are computed from; kNone for
  /// anything else.
  static NodeId rising_distance(const Expressions& expressions, ValueId scores) {
    constexpr std::array kDistances{0.25, 1.0, 2.5, 6.0};
    const Formula formula(expressions, scores);
    if (!formula.is_complete()) return NodeId::kNone;
    const auto parts = formula.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf || parts[i].value == ValueId::kAbsent) continue;
      const NodeId node = expressions.producer(before_stretch(expressions, parts[i].value));
      const bool is_distance = sums_differences(expressions, node) || is_product_of_joined(expressions, node);
      const double sign = is_distance ? 1 : sign_of_product(expressions, formula, node);
      if (sign == 0) continue;
      expressions.charge(8 * parts.size());
      bool rises = true;
      for (const int variant : {0, 1}) {
        double before = std::nan("");
        for (const double at : kDistances) {
          const Formula::Assignment given[] = {{i, sign * at}};
          const double value = formula.evaluate(given, variant);
          rises = rises && std::isfinite(value) && !(value <= before + 1e-9);
          before = value;
        }
      }
      if (rises) return node;
    }
    return NodeId::kNone;
  }

  /// The sum, mean or norm of what two values differ by, each element of one from each of the other.
  static bool sums_differences(const Expressions& expressions, NodeId node) {
    const Opcode opcode = expressions.op(node);
    ValueId terms = expressions.operand(node, 0);
    if (opcode == Opcode::kReduceSum || opcode == Opcode::kReduceMean) {
      terms = expressions.source(terms);
      if (const ValueId base = expressions.square_base(terms); base != ValueId::kAbsent) {
        terms = base;
      } else {
        NodeId size = expressions.producer(terms);
        if (expressions.op(size) == Opcode::kPow) size = expressions.producer(expressions.operand(size, 0));
        if (expressions.op(size) != Opcode::kAbs) return false;
        terms = expressions.operand(size, 0);
      }
    } else if (opcode != Opcode::kReduceL1 && opcode != Opcode::kReduceL2 && opcode != Opcode::kReduceSumSquare) {
      return false;
    }
    const NodeId difference = expressions.producer(before_guard(expressions, terms));
    return expressions.op(difference) == Opcode::kSub &&
           are_pairs(expressions, expressions.operand(difference, 0), expressions.operand(difference, 1));
  }

  /// Each is stretched along an axis of the other one.
  static bool are_pairs(const Expressions& expressions, ValueId a, ValueId b) {
    const DimPool& pool = expressions.analysis().facts().dims();
    const auto x = expressions.dims(before_expansion(expressions, a)),
               y = expressions.dims(before_expansion(expressions, b));
    bool is_stretched[] = {false, false};
    for (std::size_t i = 1; i <= std::max(x.size(), y.size()); ++i) {
      const bool one_of_x = i > x.size() || pool.is_constant(x[x.size() - i], 1),
                 one_of_y = i > y.size() || pool.is_constant(y[y.size() - i], 1);
      is_stretched[0] = is_stretched[0] || (one_of_x && !one_of_y);
      is_stretched[1] = is_stretched[1] || (one_of_y && !one_of_x);
    }
    return is_stretched[0] && is_stretched[1];
  }

  static ValueId before_expansion(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(value);
    return expressions.op(node) == Opcode::kExpand ? expressions.operand(node, 0) : value;
  }

  /// In x^2 + y^2 - 2 x y, the product of each row of one value with each of another, beside the sums of the squares of
  /// one of them: with which sign the distance changes as the result of the product does. 0 for anything else.
  static double sign_of_product(const Expressions& expressions, const Formula& formula, NodeId product) {
    if (expressions.op(product) != Opcode::kMatMul && expressions.op(product) != Opcode::kEinsum) return 0;
    double sign = -1;
    const ValueId a = before_signed_scale(expressions, expressions.operand(product, 0), sign),
                  b = before_signed_scale(expressions, expressions.operand(product, 1), sign);
    if (a == ValueId::kAbsent || b == ValueId::kAbsent) return 0;
    const auto is_sum_of_squares = [&](ValueId value) {
      const ValueId squares = summed_squares(expressions, value);
      const ValueId base = squares == ValueId::kAbsent ? squares : before_stretch(expressions, squares);
      return base != ValueId::kAbsent && (base == a || base == b);
    };
    if (const ValueId added = expressions.operand(product, 2); added != ValueId::kAbsent) {
      const Attribute* factor = expressions.analysis().attribute(product, "alpha");
      const Formula squares(expressions, added);
      const bool found = std::ranges::any_of(squares.parts(), [&](const Formula::Part& part) {
        return part.kind == Formula::PartKind::kLeaf && part.value != ValueId::kAbsent && is_sum_of_squares(part.value);
      });
      return found && factor != nullptr && sign * factor->f > 0 ? 1 : 0;
    }
    for (const Formula::Part& part : formula.parts())
      if (part.kind == Formula::PartKind::kLeaf && part.value != ValueId::kAbsent && is_sum_of_squares(part.value))
        // The product is -2 x y already where a factor is negative.
        return sign;
    return 0;
  }

  /// [-2 x, x^2, 1] times [y, 1, y^2], which is how an exporter writes the squares of distances.
  static bool is_product_of_joined(const Expressions& expressions, NodeId product) {
    const NodeId joined = expressions.producer(before_stretch(expressions, expressions.operand(product, 0)));
    const NodeId other = expressions.producer(before_stretch(expressions, expressions.operand(product, 1)));
    if (expressions.op(product) != Opcode::kMatMul || expressions.op(joined) != Opcode::kConcat ||
        expressions.op(other) != Opcode::kConcat || expressions.analysis().operands(joined).size() != 3)
      return false;
    double sign = 1;
    const ValueId x = before_signed_scale(expressions, expressions.operand(joined, 0), sign);
    const ValueId squares = summed_squares(expressions, expressions.operand(joined, 1));
    return x != ValueId::kAbsent && sign < 0 && squares != ValueId::kAbsent &&
           before_stretch(expressions, squares) == x;
  }
};

const RegisterRule<DistancesAsScores> kRegisterDistancesAsScores;

}  // namespace
}  // namespace tensorlint::rules
