#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class LabelScoresLowered : public Rule {
 public:
  LabelScoresLowered()
      : Rule({"TL-L412", "label-scores-lowered", "loss", findings::Severity::kWarning,
              "a loss of differences between scores that falls as the score of the label falls"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1 || !has_node(out, {Opcode::kGatherElements})) return;
    each_node(view, out, {Opcode::kSub}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const ValueId chosen = before_margin(expressions, call.operand(side).value()),
                      all = before_margin(expressions, call.operand(1 - side).value());
        if (chosen == ValueId::kAbsent || all == ValueId::kAbsent) return;
        const NodeId pick = expressions.producer(before_stretch(expressions, chosen));
        if (expressions.op(pick) != Opcode::kGatherElements) continue;
        const ValueId scores = before_stretch(expressions, expressions.operand(pick, 0));
        const ValueId labels = before_wrapping(expressions, expressions.operand(pick, 1));
        if (labels == ValueId::kAbsent || before_stretch(expressions, all) != scores ||
            !is_input(view.analysis(), labels) || !are_products(expressions, scores))
          continue;
        const LossWay way = loss_way(expressions, call.result(), outputs[0]);
        if (way != (side == 0 ? LossWay::kRises : LossWay::kFalls)) return;
        out.report(call.id(), fmt::format("the loss falls as the score that {} chooses gets lower than the others",
                                          Operand(view.analysis(), labels).name()))
            .note_at(pick, "the score of the label is taken here")
            .fix("exchange the two sides of the difference");
        return;
      }
    });
  }

 private:
  /// Negative numbers count from the end, which exporters write out.
  static ValueId before_wrapping(const Expressions& expressions, ValueId labels) {
    if (labels == ValueId::kAbsent) return labels;
    labels = before_stretch(expressions, labels);
    const NodeId node = expressions.producer(labels);
    return expressions.op(node) == Opcode::kMod ? before_stretch(expressions, expressions.operand(node, 0)) : labels;
  }

  /// Products of vectors, or what a layer gives, and no distances, of which the label's is to be small.
  static bool are_products(const Expressions& expressions, ValueId scores) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps && scores != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(scores);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) return true;
      if (opcode == Opcode::kReduceSum) {
        const NodeId product = expressions.producer(expressions.operand(node, 0));
        return expressions.op(product) == Opcode::kMul &&
               expressions.operand(product, 0) != expressions.operand(product, 1);
      }
      if (opcode != Opcode::kAdd) return false;
      scores = before_stretch(expressions, expressions.operand(node, 0));
    }
    return false;
  }
};

const RegisterRule<LabelScoresLowered> kRegisterLabelScoresLowered;

}  // namespace
}  // namespace tensorlint::rules
