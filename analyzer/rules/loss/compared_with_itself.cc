#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "analyzer/rules/reported_nodes.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ComparedWithItself : public Rule {
 public:
  ComparedWithItself()
      : Rule({"TL-L315", "compared-with-itself", "loss", findings::Severity::kWarning,
              "a distance or a cosine of a value and itself, in what a loss is computed from"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis&, const losses::LossSite& loss, Reporter& out) const override {
    // A loss that is written out is a difference of its own.
    if (loss.evidence != losses::LossEvidence::kOperator || !ops::is_regression(loss.kind)) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    check_sides(expressions, loss.anchor, loss.prediction, loss.target, "distance", "0", out);
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      const ValueId first = expressions.operand(call.id(), 0), second = expressions.operand(call.id(), 1);
      if (call.is(Opcode::kSub) && is_distance(expressions, call.result(), 0))
        check_sides(expressions, call.id(), first, second, "distance", "0", out);
      else if (call.is(Opcode::kDiv) || call.is(Opcode::kReduceSum))
        check_cosine(expressions, call, out);
    });
  }

 private:
  static bool check_sides(const Expressions& expressions, NodeId node, ValueId a, ValueId b, std::string_view what,
                          std::string_view always, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    // Of one value with two views every element meets others.
    if (a == ValueId::kAbsent || !analysis.fact(a).dtypes.proves(DTypeSet::floats()) ||
        out.shared<ReportedNodes>().has("TL-L306", node) || !are_computed_alike(expressions, a, b) ||
        !out.shared<losses::Parameters>().reach(a))
      return false;
    const ValueId value = before_stretch(expressions, a);
    out.report(node, fmt::format("a {} of {} and itself is always {}", what, Operand(analysis, value).name(), always))
        .origin(Operand(analysis, value), Aspect::kValue)
        .fix(
            "compare it with what it is meant to be close to; if Dropout makes two runs differ, export the training "
            "mode");
    return true;
  }

  /// Nothing but its size is used: squared, or a norm. What an exponential takes may be there for its gradient alone.
  static bool is_distance(const Expressions& expressions, ValueId difference, int depth) {
    constexpr int kMaxDepth = 4;
    const auto users = expressions.users(difference);
    return depth < kMaxDepth && !users.empty() &&
           std::ranges::all_of(
               users,
               [&](NodeId user) {
                 switch (expressions.op(user)) {
                   case Opcode::kReduceL1:
                   case Opcode::kReduceL2:
                   case Opcode::kReduceSumSquare:
                   case Opcode::kAbs:
                     return true;
                   case Opcode::kMul:
                   case Opcode::kPow:
                     return expressions.square_base(expressions.result(user)) == difference;
                   case Opcode::kCast:
                   case Opcode::kIdentity:
                     return is_distance(expressions, expressions.result(user), depth + 1);
                   case Opcode::kAdd: {
                     const auto guard = with_number(expressions, user);
                     return guard && guard->number < 1e-2 &&
                            is_distance(expressions, expressions.result(user), depth + 1);
                   }
                   default:
                     return false;
                 }
               });
  }

  /// A sum of squares over the root of the same sum, twice, or a sum of squares of what has been divided by its length.
  static void check_cosine(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const ValueId vectors =
        summed_squares(expressions, call.is(Opcode::kDiv) ? expressions.operand(call.id(), 0) : call.result());
    if (call.is(Opcode::kReduceSum)) {
      const ValueId products = expressions.operand(call.id(), 0);
      if (vectors != ValueId::kAbsent && expressions.op_of(products) == Opcode::kMul &&
          is_of_unit_length(expressions, vectors))
        check_sides(expressions, call.id(), vectors, vectors, "cosine", "1", out);
      return;
    }
    const auto cosine = vectors == ValueId::kAbsent ? std::nullopt : cosine_of(expressions, call.result());
    if (cosine && cosine->node == call.id() && cosine->both_divided)
      check_sides(expressions, call.id(), vectors, vectors, "cosine", "1", out);
  }
};

const RegisterRule<ComparedWithItself> kRegisterComparedWithItself;

}  // namespace
}  // namespace tensorlint::rules
