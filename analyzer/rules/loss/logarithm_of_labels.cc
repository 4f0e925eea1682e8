#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class LogarithmOfLabels : public Rule {
 public:
  LogarithmOfLabels()
      : Rule({"TL-L310", "logarithm-of-labels", "loss", findings::Severity::kWarning,
              "a binary cross-entropy that takes the logarithm of the labels instead of the prediction"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    std::vector<NodeId> logarithms;
    bool others = false;  // a symmetric loss has the logarithm of the prediction as well
    const Expressions* known = nullptr;
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      known = &expressions;
      const Opcode opcode = expressions.op(call.id());
      if (opcode == Opcode::kLog) logarithms.push_back(call.id());
      others = others || opcode == Opcode::kLogSoftmax || opcode == Opcode::kLogSigmoid ||
               opcode == Opcode::kSoftplus || opcode == Opcode::kXlogy || opcode == Opcode::kLog1p ||
               (call.entry() != nullptr && call.entry()->loss() && takes_class_indices(*call.entry()->loss()));
    });
    if (others || logarithms.empty() || logarithms.size() > 2) return;
    const Expressions& expressions = *known;
    if (logarithms.size() == 1) {
      check_one_hot(expressions, logarithms[0], out);
      return;
    }
    const auto first = expressions.log_term(expressions.result(logarithms[0]));
    const auto second = expressions.log_term(expressions.result(logarithms[1]));
    if (!first || !second || first->complement == second->complement || first->argument == ValueId::kAbsent ||
        second->argument == ValueId::kAbsent)
      return;
    const ValueId labels = before_clip(expressions, first->argument);
    if (labels != before_clip(expressions, second->argument) || !is_input(view.analysis(), labels)) return;
    const ValueId a = factor_of(expressions, logarithms[0]), b = factor_of(expressions, logarithms[1]);
    if (a == ValueId::kAbsent || b == ValueId::kAbsent) return;
    const ValueId prediction = first->complement ? b : a, rest = first->complement ? a : b;
    losses::Parameters& parameters = out.shared<losses::Parameters>();
    if (expressions.complement(rest) != prediction || !parameters.reach(prediction)) return;
    const dataflow::Analysis& analysis = view.analysis();
    out.report(logarithms[0],
               fmt::format("binary cross-entropy takes the logarithm of {}, the labels, and multiplies it by {}",
                           Operand(analysis, labels).name(), Operand(analysis, prediction).name()))
        .note_at(logarithms[1], "here as well")
        .fix(fmt::format("exchange them: {} * log({})", Operand(analysis, labels).name(),
                         Operand(analysis, prediction).name()));
  }

 private:
  static ValueId before_clip(const Expressions& expressions, ValueId value) {
    value = before_moves(expressions, value);
    const NodeId node = expressions.producer(value);
    const ValueId inside = expressions.operand(node, 0);
    const bool clips = expressions.op(node) == Opcode::kClip && inside != ValueId::kAbsent;
    return clips ? before_moves(expressions, inside) : value;
  }

  /// The same for several classes: probabilities times the logarithm of one-hot labels.
  static void check_one_hot(const Expressions& expressions, NodeId logarithm, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const auto term = expressions.log_term(expressions.result(logarithm));
    if (!term || term->argument == ValueId::kAbsent || term->complement) return;
    const ValueId labels = before_clip(expressions, term->argument);
    const Opcode made = expressions.op_of(labels);
    const ValueId factor = factor_of(expressions, logarithm);
    if ((made != Opcode::kOneHot && made != Opcode::kEqual) || factor == ValueId::kAbsent) return;
    const ValueId prediction = before_moves(expressions, factor);
    const auto softmax = expressions.normalised(prediction);
    if (!softmax || softmax->logarithm) return;
    out.report(logarithm, fmt::format("cross-entropy takes the logarithm of {}, the labels, and multiplies it by {}",
                                      Operand(analysis, term->argument).name(), Operand(analysis, factor).name()))
        .note_at(softmax->node, "the prediction is computed here")
        .fix(fmt::format("exchange them: {} * log({})", Operand(analysis, term->argument).name(),
                         Operand(analysis, factor).name()));
  }

  /// What the logarithm is multiplied by; PyTorch keeps it above -100 first.
  static ValueId factor_of(const Expressions& expressions, NodeId logarithm) {
    ValueId value = expressions.result(logarithm);
    auto users = expressions.users(value);
    if (users.size() == 1 && (expressions.op(users[0]) == Opcode::kMax || expressions.op(users[0]) == Opcode::kClip)) {
      value = expressions.result(users[0]);
      users = expressions.users(value);
    }
    if (users.size() != 1 || expressions.op(users[0]) != Opcode::kMul) return ValueId::kAbsent;
    ValueId factor = expressions.beside(users[0], value);
    if (expressions.op_of(factor) == Opcode::kNeg) factor = expressions.operand(expressions.producer(factor), 0);
    return factor;
  }
};

const RegisterRule<LogarithmOfLabels> kRegisterLogarithmOfLabels;

}  // namespace
}  // namespace tensorlint::rules
