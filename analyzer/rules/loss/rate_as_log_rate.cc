#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class RateAsLogRate : public Rule {
 public:
  RateAsLogRate()
      : Rule({"TL-L350", "rate-as-log-rate", "loss", findings::Severity::kWarning,
              "a Poisson loss that takes the exponential of what was made positive already"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (loss.kind != losses::LossKind::kPoisson || loss.evidence == losses::LossEvidence::kMetadata) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    // exp(s) - s of a logarithmic variance has the same form.
    if (expressions.number(expressions.source(loss.target)) || analysis.taint(loss.prediction).has(Aspect::kValue))
      return;
    const ValueId rate = expressions.source(loss.prediction);
    const auto takes_exponential = [&](NodeId node) {
      return expressions.op(node) == Opcode::kExp && expressions.source(expressions.operand(node, 0)) == rate;
    };
    const NodeId maker = where_made_positive(expressions, rate);
    if (maker == NodeId::kNone) return;
    NodeId exponential = NodeId::kNone;
    for (const NodeId node : loss.nodes)
      if (takes_exponential(node)) exponential = node;
    for (const NodeId user : expressions.users(rate))
      if (exponential == NodeId::kNone && takes_exponential(user)) exponential = user;
    if (exponential == NodeId::kNone) return;
    const Operand prediction(analysis, loss.prediction);
    out.report(exponential, fmt::format("Poisson loss takes the exponential of {}, which {} has made positive already: "
                                        "no rate is below 1",
                                        prediction.name(), NodeCall(analysis, maker).op_name()))
        .note_at(maker, "made positive here")
        .fix("leave one of the two out: give the loss the scores, or the rate with log_input=False");
  }

 private:
  /// The function of scores that has no negative results, before guards and moves; kNone for anything else. A logarithm
  /// that happens to be positive, as of 1 + x, may well be meant.
  static NodeId where_made_positive(const Expressions& expressions, ValueId value) {
    value = before_guard(expressions, value);
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    if (opcode == Opcode::kSoftplus || opcode == Opcode::kSigmoid || opcode == Opcode::kExp ||
        is_rectifier(expressions, node))
      return node;
    if (const auto softmax = expressions.normalised(value)) return softmax->logarithm ? NodeId::kNone : softmax->node;
    // Softplus, but for large operands, which it leaves as they are.
    if (opcode == Opcode::kWhere)
      for (const std::size_t side : {std::size_t{1}, std::size_t{2}}) {
        const NodeId softplus = expressions.producer(expressions.operand(node, side));
        if (expressions.op(softplus) == Opcode::kSoftplus &&
            expressions.operand(softplus, 0) == expressions.operand(node, 3 - side))
          return softplus;
      }
    return NodeId::kNone;
  }
};

const RegisterRule<RateAsLogRate> kRegisterRateAsLogRate;

}  // namespace
}  // namespace tensorlint::rules
