#include <fmt/format.h>

#include <cmath>
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

class SpreadLowered : public Rule {
 public:
  SpreadLowered()
      : Rule({"TL-L418", "spread-lowered", "loss", findings::Severity::kWarning,
              "a hinge that keeps the deviation of features over the batch below a number, beside a loss that draws "
              "samples together"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1) return;
    each_node(view, out, {Opcode::kSqrt}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const NodeId user : expressions.users(call.result())) {
        const auto less = with_number(expressions, user);
        const bool subtracts = less && ((expressions.op(user) == Opcode::kSub && !less->is_first && less->number > 0) ||
                                        (expressions.op(user) == Opcode::kAdd && less->number < 0));
        if (!subtracts || !is_hinge(expressions, expressions.result(user), outputs[0])) continue;
        const NodeId mean = expressions.producer(before_guard(expressions, call.operand(0).value()));
        if (!is_variance_of_batch(expressions, mean, out)) continue;
        out.report(user, fmt::format("the loss rises where the deviation of a feature over the batch is above {:.4g}, "
                                     "and is 0 where all samples are alike",
                                     std::abs(less->number)))
            .note_at(call.id(), "the deviation is computed here")
            .fix("exchange the two sides: relu(1 - std)");
        return;
      }
    });
  }

 private:
  static bool is_hinge(const Expressions& expressions, ValueId value, ValueId loss) {
    if (value == ValueId::kAbsent) return false;
    const auto users = expressions.users(value);
    return users.size() == 1 && is_rectifier(expressions, users[0]) &&
           loss_way(expressions, value, loss) == LossWay::kRises;
  }

  /// The mean, or scaled sum, of squares over the samples, of what is computed with parameters.
  static bool is_variance_of_batch(const Expressions& expressions, NodeId mean, Reporter& out) {
    const NodeId sum = expressions.producer(before_scale(expressions, expressions.result(mean)));
    const Opcode opcode = expressions.op(sum);
    const auto axes = expressions.axes_of(sum);
    if ((opcode != Opcode::kReduceMean && opcode != Opcode::kReduceSum) || !axes || axes->size() != 1 ||
        axes->front() != 0)
      return false;
    const ValueId squares = expressions.operand(sum, 0);
    const ValueId deviations = expressions.square_base(squares);
    return deviations != ValueId::kAbsent && expressions.dims(squares).size() == 2 &&
           out.shared<losses::LossAxes>().origins.is_batch(squares, 0) &&
           out.shared<losses::Parameters>().reach(deviations);
  }
};

const RegisterRule<SpreadLowered> kRegisterSpreadLowered;

}  // namespace
}  // namespace tensorlint::rules
