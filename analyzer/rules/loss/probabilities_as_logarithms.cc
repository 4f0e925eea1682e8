#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ProbabilitiesAsLogarithms : public Rule {
 public:
  ProbabilitiesAsLogarithms()
      : Rule({"TL-L414", "probabilities-as-logarithms", "loss", findings::Severity::kWarning,
              "probabilities that are added to logarithms of densities, whose exponentials are summed up"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kReduceLogSumExp}, [&](const Expressions& expressions, const NodeCall& call) {
      check_sum(expressions, call.operand(0).value(), call.id(), out);
    });
    if (!has_node(out, {Opcode::kSoftmax})) return;
    each_node(view, out, {Opcode::kExp}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const NodeId user : expressions.users(call.result()))
        if (expressions.op(user) == Opcode::kReduceSum) check_sum(expressions, call.operand(0).value(), user, out);
    });
  }

 private:
  /// log(sum(exp(p + log(density)))), with p from a softmax along the axis of the sum.
  static void check_sum(const Expressions& expressions, ValueId exponents, NodeId sum, Reporter& out) {
    const auto axes = expressions.axes_of(sum);
    if (exponents == ValueId::kAbsent || !axes || axes->size() != 1) return;
    const std::size_t behind = expressions.dims(exponents).size() - axes->front();
    for (const Summand& part : summands(expressions, exponents, Numbers::kWithin)) {
      const ValueId shares = part.value;
      if (shares == ValueId::kAbsent || part.factor != 1) continue;
      const auto softmax = expressions.normalised(expressions.source(shares));
      const std::size_t rank = expressions.dims(shares).size();
      if (!softmax || softmax->logarithm || rank < behind ||
          std::ranges::find(softmax->axes, rank - behind) == softmax->axes.end())
        continue;
      out.report(sum, fmt::format("{} has probabilities, and is added to logarithms: a component weighs between 1 and "
                                  "e times its density",
                                  Operand(expressions.analysis(), shares).name()))
          .note_at(softmax->node, "the probabilities are computed here")
          .fix("add their logarithms: log_softmax");
      return;
    }
  }
};

const RegisterRule<ProbabilitiesAsLogarithms> kRegisterProbabilitiesAsLogarithms;

}  // namespace
}  // namespace tensorlint::rules
