#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SamplesLeftOut : public Rule {
 public:
  SamplesLeftOut()
      : Rule({"TL-L318", "samples-left-out", "loss", findings::Severity::kWarning,
              "a loss of the first sample of a batch, where the model computes all of them"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (analysis.has_failed(loss.anchor) || one_float_outputs(analysis).empty()) return;
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    const NodeId scores = first_of(expressions, loss.prediction), labels = first_of(expressions, loss.target);
    if (scores == NodeId::kNone || labels == NodeId::kNone) return;
    const ValueId all = expressions.operand(scores, 0), targets = expressions.operand(labels, 0);
    // Where something else reads the other samples, they have a loss of their own.
    if (expressions.users(all).size() != 1 || !origins.is_batch(all, 0) ||
        !is_input(analysis, before_stretch(expressions, targets)) || expressions.users(targets).size() != 1 ||
        !out.shared<losses::Parameters>().reach(all))
      return;
    const auto dims = expressions.dims(all), other = expressions.dims(targets);
    const DimPool& pool = analysis.facts().dims();
    if (dims.empty() || other.empty() || pool.is_constant(dims[0], 1) || !pool.equal(dims[0], other[0])) return;
    out.report(loss.anchor,
               fmt::format("the loss is that of the first sample alone: the others of {} {} go into nothing",
                           Operand(analysis, all).name(), analysis.facts().shape_text(analysis.fact(all).shape)))
        .note_at(scores, "the first one is picked here")
        .note_at(labels, "and its target here")
        .fix("compare all samples, and average over them");
  }

 private:
  /// Element 0 of axis 0 alone: x[0] or x[:1].
  static NodeId first_of(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 8;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kGather)
        return is_axis_zero(expressions, node) && expressions.is_number(expressions.operand(node, 1), 0)
                   ? node
                   : NodeId::kNone;
      if (opcode == Opcode::kSlice) {
        const auto is = [&](std::size_t operand, double number) {
          return expressions.is_number(expressions.operand(node, operand), number);
        };
        return is(1, 0) && is(2, 1) && is(3, 0) ? node : NodeId::kNone;
      }
      if (!ops::keeps_elements(opcode) && opcode != Opcode::kCast) return NodeId::kNone;
      value = expressions.operand(node, 0);
    }
    return NodeId::kNone;
  }

  static bool is_axis_zero(const Expressions& expressions, NodeId gather) {
    const Attribute* axis = expressions.analysis().attribute(gather, "axis");
    return axis == nullptr || axis->i == 0;
  }
};

const RegisterRule<SamplesLeftOut> kRegisterSamplesLeftOut;

}  // namespace
}  // namespace tensorlint::rules
