#include <fmt/format.h>

#include <optional>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class UnevenTemperature : public Rule {
 public:
  UnevenTemperature()
      : Rule({"TL-L316", "uneven-temperature", "loss", findings::Severity::kWarning,
              "a distillation that softens the probabilities of one network alone"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (!call.is(Opcode::kMul)) return;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const ValueId shares = call.operand(side).value(), other = call.operand(1 - side).value();
        if (check_product(expressions, call, shares, other, out)) return;
        // p * (log(p) - log(q))
        if (const NodeId gap = expressions.producer(other);
            expressions.op(gap) == Opcode::kSub &&
            check_product(expressions, call, shares, expressions.operand(gap, 1), out))
          return;
      }
    });
  }

 private:
  struct Softened {
    NodeId node = NodeId::kNone;
    double temperature = 1;
  };

  static bool check_product(const Expressions& expressions, const NodeCall& call, ValueId shares, ValueId logarithms,
                            Reporter& out) {
    const auto p = expressions.normalised(before_stretch(expressions, shares));
    const auto q = expressions.normalised(before_stretch(expressions, logarithms));
    if (!p || !q || p->logarithm || !q->logarithm) return false;
    const auto teacher = softened(expressions, *p), student = softened(expressions, *q);
    if (!teacher || !student) return false;
    // Sharper targets, of a temperature below 1, are a plan of their own.
    const bool teacher_alone = teacher->temperature > 1 && student->temperature == 1,
               student_alone = student->temperature > 1 && teacher->temperature == 1;
    losses::Parameters& parameters = out.shared<losses::Parameters>();
    if ((!teacher_alone && !student_alone) || !parameters.reach(p->scores) || !parameters.reach(q->scores))
      return false;
    const Softened &soft = teacher_alone ? *teacher : *student, &hard = teacher_alone ? *student : *teacher;
    out.report(soft.node,
               fmt::format("the scores of one network are divided by {:.4g}, and those of the one that it is "
                           "compared with are not: where the networks agree, the loss is not least",
                           soft.temperature))
        .note_at(hard.node, "this softmax takes its scores as they are")
        .note_at(call.id(), "the two are compared here")
        .fix(fmt::format("divide both by {:.4g}", soft.temperature));
    return true;
  }

  static std::optional<Softened> softened(const Expressions& expressions, const losses::Normalised& softmax) {
    const NodeId node = expressions.producer(softmax.scores);
    const auto scaled = with_number(expressions, node);
    const Opcode opcode = expressions.op(node);
    if (!scaled || scaled->is_first || (opcode != Opcode::kDiv && opcode != Opcode::kMul))
      return opcode == Opcode::kDiv || opcode == Opcode::kMul ? std::nullopt : std::optional(Softened{softmax.node, 1});
    if (!(scaled->number > 0)) return std::nullopt;
    return Softened{node, opcode == Opcode::kDiv ? scaled->number : 1 / scaled->number};
  }
};

const RegisterRule<UnevenTemperature> kRegisterUnevenTemperature;

}  // namespace
}  // namespace tensorlint::rules
