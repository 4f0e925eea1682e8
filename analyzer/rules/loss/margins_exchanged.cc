#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class MarginsExchanged : public Rule {
 public:
  MarginsExchanged()
      : Rule({"TL-L347", "margins-exchanged", "loss", findings::Severity::kWarning,
              "a judging network that is trained as the network that it judges is: both raise the same score"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() < 2) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    std::vector<ValueId> raised;
    for (const ValueId output : outputs)
      if (const ValueId scores = raised_by(expressions, output); scores != ValueId::kAbsent) raised.push_back(scores);
    if (raised.empty()) return;
    each_node(view, out, {Opcode::kAdd}, [&](const Expressions&, const NodeCall& call) {
      if (!is_one_float(view.analysis(), call.result())) return;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const Hinge up = hinge_of(expressions, call.operand(side).value()),
                    down = hinge_of(expressions, call.operand(1 - side).value());
        if (!up.raises || up.scores == ValueId::kAbsent || down.raises || down.scores == ValueId::kAbsent) continue;
        for (const ValueId scores : raised) {
          constexpr int kLayers = 24;
          if (!are_computed_alike(expressions, scores, up.scores, kLayers) ||
              are_computed_alike(expressions, scores, down.scores, kLayers))
            continue;
          out.report(
                 up.node,
                 fmt::format(
                     "this hinge raises the scores {}, which another loss raises as well: who judges has to lower them",
                     Operand(view.analysis(), up.scores).name()))
              .note_at(down.node, "this hinge lowers the scores of the others")
              .note_at(expressions.producer(scores), "the scores that the other loss raises")
              .fix("exchange the signs: relu(1 - real) + relu(1 + fake)");
          return;
        }
      }
    });
  }

 private:
  struct Hinge {
    ValueId scores = ValueId::kAbsent;
    bool raises = false;
    NodeId node = NodeId::kNone;
  };

  /// s of -mean(s).
  static ValueId raised_by(const Expressions& expressions, ValueId loss) {
    bool is_negative = false;
    for (int step = 0; step < 6 && loss != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(loss);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kReduceMean)
        return is_negative ? before_stretch(expressions, expressions.operand(node, 0)) : ValueId::kAbsent;
      if (opcode == Opcode::kNeg)
        is_negative = !is_negative;
      else if (!ops::keeps_elements(opcode))
        return ValueId::kAbsent;
      loss = expressions.operand(node, 0);
    }
    return ValueId::kAbsent;
  }

  /// mean(relu(1 - s)) and mean(relu(1 + s))
  static Hinge hinge_of(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return {};
    const NodeId mean = expressions.producer(before_stretch(expressions, value));
    if (expressions.op(mean) != Opcode::kReduceMean) return {};
    const NodeId bound = expressions.producer(before_stretch(expressions, expressions.operand(mean, 0)));
    if (expressions.producer(expressions.operand(bound, 0)) == NodeId::kNone || !is_rectifier(expressions, bound))
      return {};
    const NodeId margin = expressions.producer(expressions.operand(bound, 0));
    const auto numbered = with_number(expressions, margin);
    const Opcode opcode = expressions.op(margin);
    if (!numbered || numbered->number != 1 || (opcode != Opcode::kAdd && opcode != Opcode::kSub) ||
        (opcode == Opcode::kSub && !numbered->is_first))
      return {};
    return {before_stretch(expressions, numbered->value), opcode == Opcode::kSub, bound};
  }
};

const RegisterRule<MarginsExchanged> kRegisterMarginsExchanged;

}  // namespace
}  // namespace tensorlint::rules
