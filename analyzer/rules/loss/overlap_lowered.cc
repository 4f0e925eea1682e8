#include <fmt/format.h>

#include <array>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class OverlapLowered : public Rule {
 public:
  OverlapLowered()
      : Rule({"TL-L394", "overlap-lowered", "loss", findings::Severity::kWarning,
              "a loss that falls as the overlap of prediction and target does"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    // Beside other numbers it may be a metric.
    if (outputs.size() != 1) return;
    each_node(view, out, {Opcode::kDiv}, [&](const Expressions& expressions, const NodeCall& call) {
      if (!call.operand(0).present() || !call.operand(1).present()) return;
      const bool is_of_sums = is_share_of_sums(expressions, call);
      if ((!is_of_sums && !is_share_of_boxes(expressions, call)) ||
          !rises_with(expressions, call.result(), outputs[0], is_of_sums) ||
          !is_trained(expressions, call.operand(0).value()))
        return;
      out.report(call.id(), "the loss rises with this overlap: it is least where nothing overlaps")
          .fix("take it from 1: loss = 1 - overlap");
    });
  }

 private:
  /// A layer has a part in it that is more than a choice: of classes that were chosen it is a metric.
  static bool is_trained(const Expressions& expressions, ValueId overlap) {
    bool found = false;
    walk_back(expressions, overlap, [&](ValueId, NodeId node) {
      const Opcode opcode = expressions.op(node);
      found |= opcode == Opcode::kMatMul || opcode == Opcode::kConv;
      return !found && opcode != Opcode::kArgExtreme && opcode != Opcode::kCompare && opcode != Opcode::kEqual &&
             opcode != Opcode::kOneHot && opcode != Opcode::kTopK && !expressions.makes_integers(node);
    });
    return found;
  }

  /// 2 * sum(p * y) / (sum(p) + sum(y)), with guards.
  static bool is_share_of_sums(const Expressions& expressions, const NodeCall& call) {
    const ValueId above =
        before_scale(expressions, before_guard(expressions, before_one(expressions, call.operand(0).value())));
    const NodeId overlap =
        above == ValueId::kAbsent ? NodeId::kNone : expressions.producer(before_stretch(expressions, above));
    if (expressions.op(overlap) != Opcode::kReduceSum) return false;
    const NodeId product = expressions.producer(before_stretch(expressions, expressions.operand(overlap, 0)));
    const NodeId both =
        expressions.producer(before_guard(expressions, before_one(expressions, call.operand(1).value())));
    if (expressions.op(product) != Opcode::kMul || expressions.op(both) != Opcode::kAdd) return false;
    const std::array sides{before_stretch(expressions, expressions.operand(product, 0)),
                           before_stretch(expressions, expressions.operand(product, 1))};
    const ValueId a = size_of(expressions, expressions.operand(both, 0)),
                  b = size_of(expressions, expressions.operand(both, 1));
    return sides[0] != sides[1] && ((a == sides[0] && b == sides[1]) || (a == sides[1] && b == sides[0]));
  }

  /// Before a number that is added to both parts of a quotient, 1 perhaps.
  static ValueId before_one(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return value;
    const NodeId node = expressions.producer(before_stretch(expressions, value));
    const auto added = with_number(expressions, node);
    return expressions.op(node) == Opcode::kAdd && added && added->number > 0 && added->number <= 10 ? added->value
                                                                                                     : value;
  }

  /// p for sum(p) and for sum(p * p).
  static ValueId size_of(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return value;
    if (const ValueId squares = summed_squares(expressions, value); squares != ValueId::kAbsent)
      return before_stretch(expressions, squares);
    const NodeId sum = expressions.producer(before_stretch(expressions, value));
    return expressions.op(sum) == Opcode::kReduceSum ? before_stretch(expressions, expressions.operand(sum, 0))
                                                     : ValueId::kAbsent;
  }

  /// The overlap of boxes, which is taken from the divisor as well: of the areas each counts once.
  static bool is_share_of_boxes(const Expressions& expressions, const NodeCall& call) {
    const ValueId overlap = before_guard(expressions, call.operand(0).value());
    const NodeId product = expressions.producer(overlap);
    if (expressions.op(product) != Opcode::kMul ||
        !is_length_of_overlap(expressions, expressions.operand(product, 0)) ||
        !is_length_of_overlap(expressions, expressions.operand(product, 1)))
      return false;
    const NodeId rest = expressions.producer(before_guard(expressions, call.operand(1).value()));
    return expressions.op(rest) == Opcode::kSub && expressions.operand(rest, 1) != ValueId::kAbsent &&
           before_stretch(expressions, expressions.operand(rest, 1)) == overlap;
  }

  static bool is_length_of_overlap(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 3;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_moves(expressions, value);
      if (overlap_of_intervals(expressions, value) != NodeId::kNone) return true;
      const NodeId node = expressions.producer(value);
      const auto kept = with_number(expressions, node);
      if (expressions.op(node) != Opcode::kClip && !(expressions.op(node) == Opcode::kMax && kept) &&
          !is_rectifier(expressions, node))
        return false;
      value = kept ? kept->value : expressions.operand(node, 0);
    }
    return false;
  }

  /// The loss is its mean, or that and what is added to it.
  static bool rises_with(const Expressions& expressions, ValueId share, ValueId loss, bool beside_others) {
    constexpr int kMaxSteps = 14;
    bool rises = true;
    for (int step = 0; step < kMaxSteps && share != ValueId::kAbsent; ++step) {
      if (share == loss) return rises;
      const auto users = expressions.users(share);
      if (users.size() != 1) return false;
      const NodeId user = users[0];
      const Opcode opcode = expressions.op(user);
      const auto numbered = with_number(expressions, user);
      if (opcode == Opcode::kNeg) {
        rises = !rises;
      } else if (opcode == Opcode::kSub && (numbered || beside_others)) {
        if (expressions.operand(user, 1) == share) rises = !rises;
      } else if (numbered && (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !numbered->is_first))) {
        if (numbered->number < 0) rises = !rises;
      } else if (opcode != Opcode::kReduceMean && opcode != Opcode::kReduceSum && !ops::keeps_elements(opcode) &&
                 opcode != Opcode::kCast && !(opcode == Opcode::kAdd && (numbered || beside_others))) {
        return false;
      }
      share = expressions.result(user);
    }
    return false;
  }
};

const RegisterRule<OverlapLowered> kRegisterOverlapLowered;

}  // namespace
}  // namespace tensorlint::rules
