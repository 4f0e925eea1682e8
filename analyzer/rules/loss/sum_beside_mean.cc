#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "analyzer/rules/loss/normal_divergence.h"
#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SumBesideMean : public Rule {
 public:
  SumBesideMean()
      : Rule({"TL-L317", "sum-beside-mean", "loss", findings::Severity::kWarning,
              "a divergence that is summed over the batch, added to an error that is averaged over it"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1) return;
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    NodeId summed = NodeId::kNone, averaged = NodeId::kNone;
    for (const AddedReduction& term : added_reductions(expressions, outputs[0])) {
      const ValueId data = expressions.operand(term.node, 0);
      if (!has_batch(expressions, origins, data)) continue;
      const bool takes_all =
          expressions.dims(expressions.result(term.node)).empty() || is_whole(expressions, term.node);
      if (!takes_all) continue;
      if (expressions.op(term.node) == Opcode::kReduceMean)
        averaged = term.node;
      else if (std::abs(std::abs(term.factor * own_factor(expressions, data)) - 0.5) < 1e-6 &&
               normal_divergence(expressions, data))
        summed = term.node;
    }
    if (summed == NodeId::kNone || averaged == NodeId::kNone) return;
    const dataflow::Analysis& analysis = view.analysis();
    out.report(summed, fmt::format("{} is summed over the batch, and what it is added to is averaged over it: the "
                                   "divergence weighs more the more samples and features there are",
                                   Operand(analysis, expressions.operand(summed, 0)).name()))
        .note_at(averaged, "the error is averaged here")
        .fix("reduce both alike: sum both over the features and average over the batch, or weigh the divergence");
  }

 private:
  /// 0.5 of 0.5 * (...) that is summed.
  static double own_factor(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(value);
    const auto numbered = with_number(expressions, node);
    return expressions.op(node) == Opcode::kMul && numbered ? numbered->number : 1;
  }

  static bool is_whole(const Expressions& expressions, NodeId reduction) {
    const auto axes = expressions.axes_of(reduction);
    return axes && axes->size() == expressions.dims(expressions.operand(reduction, 0)).size();
  }

  static bool has_batch(const Expressions& expressions, losses::AxisOrigins& origins, ValueId value) {
    return expressions.dims(value).size() >= 2 && origins.is_batch(value, 0) &&
           !expressions.analysis().facts().dims().is_constant(expressions.dims(value)[0], 1);
  }
};

const RegisterRule<SumBesideMean> kRegisterSumBesideMean;

}  // namespace
}  // namespace tensorlint::rules
