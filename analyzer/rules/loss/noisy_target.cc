#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class NoisyTarget : public Rule {
 public:
  NoisyTarget()
      : Rule({"TL-L417", "noisy-target", "loss", findings::Severity::kWarning,
              "a mixture of data and noise that a network reads, and is to give back as it is"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::is_regression(loss.kind) || loss.anchor == NodeId::kNone || analysis.has_failed(loss.anchor) ||
        loss.target == ValueId::kAbsent || loss.prediction == ValueId::kAbsent)
      return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const ValueId target = before_stretch(expressions, loss.target);
    const NodeId mixture = expressions.producer(target);
    if (expressions.op(mixture) != Opcode::kAdd || !mixes_inputs(expressions, mixture)) return;
    bool is_read = false;
    walk_back(expressions, loss.prediction, [&](ValueId value, NodeId) {
      is_read |= value == target;
      return !is_read;
    });
    if (!is_read || !out.shared<losses::Parameters>().reach(loss.prediction)) return;
    out.report(loss.anchor, fmt::format("the network reads {}, and is to give back the same: it learns nothing about "
                                        "what is noise in it",
                                        Operand(analysis, target).name()))
        .note_at(mixture, "it is mixed here")
        .fix("compare with the noise, or with the data before it was mixed");
  }

 private:
  /// Two inputs of its own shape, or an input and random numbers, are added, at least one of which has been scaled.
  /// Sources that are added as they are may be to add up to the same again.
  static bool mixes_inputs(const Expressions& expressions, NodeId sum) {
    std::vector<ValueId> inputs;
    bool is_scaled = false;
    const DimPool& pool = expressions.analysis().facts().dims();
    const auto whole = expressions.dims(expressions.result(sum));
    const auto is_mixed = [&](ValueId value) {
      if (value == ValueId::kAbsent || (!is_input(expressions.analysis(), value) && !is_drawn(expressions, value)))
        return false;
      const auto dims = expressions.dims(value);
      return std::ranges::equal(dims, whole, [&](Dim a, Dim b) { return pool.equal(a, b); });
    };
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId part = expressions.operand(sum, side);
      const NodeId product = expressions.producer(part);
      if (is_mixed(part)) inputs.push_back(part);
      if (expressions.op(product) != Opcode::kMul) continue;
      is_scaled = true;
      for (const std::size_t at : {std::size_t{0}, std::size_t{1}})
        if (const ValueId factor = expressions.operand(product, at); is_mixed(factor)) inputs.push_back(factor);
    }
    return is_scaled && inputs.size() == 2 && inputs[0] != inputs[1];
  }
};

const RegisterRule<NoisyTarget> kRegisterNoisyTarget;

}  // namespace
}  // namespace tensorlint::rules
