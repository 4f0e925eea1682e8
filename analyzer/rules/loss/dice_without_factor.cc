#include <fmt/format.h>

#include <array>
#include <utility>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class DiceWithoutFactor : public Rule {
 public:
  DiceWithoutFactor()
      : Rule({"TL-L338", "dice-without-factor", "loss", findings::Severity::kWarning,
              "an overlap that is divided by the sizes of both sides and not doubled: it is 0.5 at best"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kDiv},
              [&](const Expressions& expressions, const NodeCall& call) { check_share(expressions, call, out); });
  }

 private:
  static void check_share(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    if (check_boxes(expressions, call, out)) return;
    const NodeId overlap = sum_before_guard(expressions, call.operand(0).value());
    if (overlap == NodeId::kNone) return;
    const NodeId product = expressions.producer(before_stretch(expressions, expressions.operand(overlap, 0)));
    if (expressions.op(product) != Opcode::kMul) return;
    const std::array sides{before_stretch(expressions, expressions.operand(product, 0)),
                           before_stretch(expressions, expressions.operand(product, 1))};
    if (sides[0] == sides[1]) return;
    const ValueId sizes = before_guard(expressions, call.operand(1).value());
    const NodeId both = expressions.producer(sizes);
    if (expressions.op(both) != Opcode::kAdd) return;
    const ValueId a = summed(expressions, expressions.operand(both, 0)),
                  b = summed(expressions, expressions.operand(both, 1));
    if (!((a == sides[0] && b == sides[1]) || (a == sides[1] && b == sides[0]))) return;
    if (!is_taken_from_one(expressions, call.result())) return;
    const dataflow::Analysis& analysis = call.analysis();
    out.report(call.id(),
               fmt::format("where {} and {} are the same, the overlap is a half of their sizes: the loss is at "
                           "least 0.5",
                           Operand(analysis, sides[0]).name(), Operand(analysis, sides[1]).name()))
        .note_at(overlap, "the overlap is summed here")
        .fix("double the overlap: 2 * sum(p * y) / (sum(p) + sum(y))");
  }

  /// The overlap of two boxes over the sum of their areas: what both have counts twice.
  static bool check_boxes(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    if (!call.operand(0).present() || !call.operand(1).present()) return false;
    const ValueId overlap = before_guard(expressions, call.operand(0).value());
    const NodeId product = expressions.producer(overlap);
    if (expressions.op(product) != Opcode::kMul || !is_extent(expressions, expressions.operand(product, 0), true) ||
        !is_extent(expressions, expressions.operand(product, 1), true))
      return false;
    const NodeId both = expressions.producer(before_guard(expressions, call.operand(1).value()));
    if (expressions.op(both) != Opcode::kAdd || !is_area(expressions, expressions.operand(both, 0)) ||
        !is_area(expressions, expressions.operand(both, 1)) || !is_taken_from_one(expressions, call.result()))
      return false;
    out.report(call.id(),
               "the overlap of the boxes is in both of the areas that it is divided by: where the boxes are "
               "the same, the quotient is a half")
        .note_at(product, "the overlap is computed here")
        .note_at(both, "the areas are added here")
        .fix("subtract the overlap from the sum of the areas once");
    return true;
  }

  static bool is_area(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    const NodeId product = expressions.producer(before_stretch(expressions, value));
    return expressions.op(product) == Opcode::kMul && is_extent(expressions, expressions.operand(product, 0), false) &&
           is_extent(expressions, expressions.operand(product, 1), false);
  }

  /// An end less a start, perhaps kept above 0.
  static bool is_extent(const Expressions& expressions, ValueId value, bool of_overlap) {
    constexpr int kMaxSteps = 3;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_moves(expressions, value);
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto kept = with_number(expressions, node);
      if (opcode == Opcode::kSub && !kept)
        return !of_overlap || overlap_of_intervals(expressions, value) != NodeId::kNone;
      if (opcode == Opcode::kClip || (opcode == Opcode::kMax && kept) || is_rectifier(expressions, node))
        value = kept ? kept->value : expressions.operand(node, 0);
      else
        return false;
    }
    return false;
  }

  static ValueId before_guard(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      const NodeId node = expressions.producer(value);
      const auto numbered = with_number(expressions, node);
      if (expressions.op(node) == Opcode::kClip)
        value = expressions.operand(node, 0);
      else if (numbered && (expressions.op(node) == Opcode::kAdd || expressions.op(node) == Opcode::kMax))
        value = numbered->value;
      else
        break;
    }
    return value;
  }

  static NodeId sum_before_guard(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return NodeId::kNone;
    value = before_guard(expressions, value);
    const NodeId node = expressions.producer(value);
    return expressions.op(node) == Opcode::kReduceSum ? node : NodeId::kNone;
  }

  /// p for sum(p) and for sum(p * p).
  static ValueId summed(const Expressions& expressions, ValueId value) {
    const NodeId sum = sum_before_guard(expressions, value);
    if (sum == NodeId::kNone) {
      const ValueId squares = value == ValueId::kAbsent ? value : summed_squares(expressions, value);
      return squares == ValueId::kAbsent ? squares : before_stretch(expressions, squares);
    }
    const ValueId of = before_stretch(expressions, expressions.operand(sum, 0));
    const ValueId base = expressions.square_base(of);
    return base == ValueId::kAbsent ? of : before_stretch(expressions, base);
  }

  /// 1 - share, of what is averaged and nothing else.
  static bool is_taken_from_one(const Expressions& expressions, ValueId share) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps && share != ValueId::kAbsent; ++step) {
      const auto users = expressions.users(share);
      if (users.size() != 1) return false;
      const NodeId user = users[0];
      const Opcode opcode = expressions.op(user);
      if (opcode == Opcode::kSub) return expressions.is_number(expressions.operand(user, 0), 1);
      if (opcode != Opcode::kReduceMean && !ops::keeps_elements(opcode)) return false;
      share = expressions.result(user);
    }
    return false;
  }
};

const RegisterRule<DiceWithoutFactor> kRegisterDiceWithoutFactor;

}  // namespace
}  // namespace tensorlint::rules
