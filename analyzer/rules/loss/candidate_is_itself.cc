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
  }

 private:
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
    const ValueId argument = expressions.operand(call.id(), 0);
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
