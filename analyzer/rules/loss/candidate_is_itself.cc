#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class CandidateIsItself : public Rule {
 public:
  CandidateIsItself()
      : Rule({"TL-L378", "candidate-is-itself", "loss", findings::Severity::kWarning,
              "candidates of a contrastive loss among which each sample itself is, the nearest of all"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::takes_class_indices(loss.kind) || analysis.has_failed(loss.anchor) || loss.prediction == ValueId::kAbsent)
      return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    if (is_of_itself(expressions, loss.prediction)) report(analysis, loss.anchor, loss.prediction, out);
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kLog, Opcode::kReduceLogSumExp},
              [&](const Expressions& expressions, const NodeCall& call) {
                const ValueId scores = summed_scores(expressions, call);
                if (scores != ValueId::kAbsent && is_of_itself(expressions, scores))
                  report(call.analysis(), call.id(), scores, out);
              });
    each_node(view, out, {Opcode::kMul},
              [&](const Expressions& expressions, const NodeCall& call) { check_positives(expressions, call, out); });
  }

 private:
  /// Samples of one label weigh the logarithms of their shares: each has the label of its own.
  static void check_positives(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId weights = call.operand(side).value(), logarithms = call.operand(1 - side).value();
      if (weights == ValueId::kAbsent || logarithms == ValueId::kAbsent ||
          expressions.dims(call.result()).size() != 2 || !are_of_one_label(expressions, weights))
        continue;
      const NodeId less = expressions.producer(before_stretch(expressions, logarithms));
      const ValueId scores = expressions.operand(less, 0), sum = expressions.operand(less, 1);
      if (expressions.op(less) != Opcode::kSub || scores == ValueId::kAbsent || sum == ValueId::kAbsent ||
          !is_of_itself(expressions, before_largest(expressions, scores)))
        continue;
      const Opcode opcode = expressions.op_of(before_stretch(expressions, sum));
      if (opcode != Opcode::kLog && opcode != Opcode::kReduceLogSumExp) continue;
      out.report(call.id(), fmt::format("each sample is one of its own positives in {}: it has the label of its own",
                                        Operand(call.analysis(), weights).name()))
          .note_at(less, "the share of each pair is computed here")
          .fix("leave the diagonal out: same * (1 - eye)");
      return;
    }
  }

  /// labels[:, None] == labels[None, :].
  static bool are_of_one_label(const Expressions& expressions, ValueId weights) {
    const NodeId equal = expressions.producer(before_stretch(expressions, weights));
    const ValueId a = expressions.operand(equal, 0), b = expressions.operand(equal, 1);
    if (expressions.op(equal) != Opcode::kEqual || a == ValueId::kAbsent || b == ValueId::kAbsent) return false;
    const auto before_turn = [&](ValueId value) {
      value = before_stretch(expressions, value);
      if (expressions.op_of(value) == Opcode::kTranspose)
        value = before_stretch(expressions, expressions.operand(expressions.producer(value), 0));
      return value;
    };
    return before_turn(a) == before_turn(b) && expressions.dims(expressions.result(equal)).size() == 2;
  }

  /// Scores less the largest one of each row.
  static ValueId before_largest(const Expressions& expressions, ValueId scores) {
    const NodeId less = expressions.producer(scores);
    const ValueId largest = expressions.operand(less, 1);
    return expressions.op(less) == Opcode::kSub && largest != ValueId::kAbsent &&
                   expressions.op_of(before_stretch(expressions, largest)) == Opcode::kReduceMax
               ? expressions.operand(less, 0)
               : scores;
  }

  static void report(const dataflow::Analysis& analysis, NodeId node, ValueId scores, Reporter& out) {
    out.report(node, fmt::format("each sample is one of its own candidates in {}, with the highest similarity there is",
                                 Operand(analysis, scores).name()))
        .origin(Operand(analysis, scores), Aspect::kShape)
        .fix("leave the diagonal out: scores.masked_fill(eye, -inf) before the sum");
  }

  /// S of log(sum(exp(S))) along one axis, where nothing has been left out or subtracted in between.
  static ValueId summed_scores(const Expressions& expressions, const NodeCall& call) {
    if (call.is(Opcode::kReduceLogSumExp)) {
      const auto axes = expressions.axes_of(call.id());
      return axes && axes->size() == 1 ? expressions.operand(call.id(), 0) : ValueId::kAbsent;
    }
    ValueId argument = expressions.operand(call.id(), 0);
    if (argument == ValueId::kAbsent) return ValueId::kAbsent;
    // The share of the sum that one of them has.
    if (const NodeId share = expressions.producer(before_guard(expressions, argument));
        expressions.op(share) == Opcode::kDiv && !with_number(expressions, share))
      argument = expressions.operand(share, 1);
    if (argument == ValueId::kAbsent) return ValueId::kAbsent;
    const NodeId sum = expressions.producer(before_guard(expressions, argument));
    const auto axes = expressions.axes_of(sum);
    if (expressions.op(sum) != Opcode::kReduceSum || !axes || axes->size() != 1) return ValueId::kAbsent;
    const NodeId power = expressions.producer(expressions.operand(sum, 0));
    return expressions.op(power) == Opcode::kExp ? expressions.operand(power, 0) : ValueId::kAbsent;
  }

  /// Cosines of every vector with every other, itself among them, times a number.
  static bool is_of_itself(const Expressions& expressions, ValueId scores) {
    const auto cosine = cosine_of(expressions, before_scale(expressions, scores));
    return cosine && cosine->both_divided && cosine->is_of_itself;
  }
};

const RegisterRule<CandidateIsItself> kRegisterCandidateIsItself;

}  // namespace
}  // namespace tensorlint::rules
