#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class DensityCorrectionAdded : public Rule {
 public:
  DensityCorrectionAdded()
      : Rule({"TL-L345", "density-correction-added", "loss", findings::Severity::kWarning,
              "the logarithm of a density after a tanh, or scores of drawn samples, with the correction added and not "
              "subtracted"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const Expressions& shared = out.shared<losses::LossAxes>().expressions;
    for (const losses::LossSite& loss : view.losses())
      if (loss.kind == losses::LossKind::kCrossEntropy) check_drawn(shared, loss, out);
    each_node(view, out, {Opcode::kLog}, [&](const Expressions& expressions, const NodeCall& call) {
      const ValueId before = squashed_in(expressions, call.operand(0).value());
      if (before == ValueId::kAbsent) return;
      ValueId correction = call.result();
      for (int step = 0; step < 3; ++step) {
        ValueId summed = ValueId::kAbsent;
        for (const NodeId user : expressions.users(correction)) {
          const Opcode opcode = expressions.op(user);
          if (opcode == Opcode::kReduceSum || ops::keeps_elements(opcode)) summed = expressions.result(user);
          if (opcode != Opcode::kAdd) continue;
          const ValueId density = expressions.beside(user, correction);
          if (!has_negative_square(expressions, density)) continue;
          out.report(
                 user,
                 fmt::format(
                     "{} is the logarithm of a density, and the correction for the tanh is added to it, not subtracted",
                     Operand(call.analysis(), density).name()))
              .note_at(call.id(), "the correction: log(1 - tanh(u)^2)")
              .fix("subtract it: log p(u) - log(1 - tanh(u)^2)");
          return;
        }
        if (summed == ValueId::kAbsent) return;
        correction = summed;
      }
    });
  }

 private:
  /// Scores of each sample with the partners of all, of which its own is right: they are drawn as often as they are
  /// popular, and the logarithm of that is to be subtracted.
  static void check_drawn(const Expressions& expressions, const losses::LossSite& loss, Reporter& out) {
    constexpr int kMaxSteps = 10;
    // The partner of each sample is at its own place.
    if (loss.target == ValueId::kAbsent || !are_steps(expressions, loss.target)) return;
    const dataflow::Analysis& analysis = expressions.analysis();
    ValueId scores = loss.prediction;
    for (int step = 0; step < kMaxSteps && scores != ValueId::kAbsent; ++step) {
      scores = before_scale(expressions, scores);
      const NodeId node = expressions.producer(scores);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kWhere) {
        const ValueId chosen = expressions.operand(node, 1);
        scores = expressions.number(chosen) ? expressions.operand(node, 2) : chosen;
        continue;
      }
      if (opcode != Opcode::kAdd) return;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const ValueId added = expressions.operand(node, side), rest = expressions.operand(node, 1 - side);
        if (added == ValueId::kAbsent || rest == ValueId::kAbsent || !is_row(expressions, added)) continue;
        const NodeId logarithm = expressions.producer(before_stretch(expressions, added));
        const NodeId product = expressions.producer(before_scale(expressions, rest));
        if (expressions.op(logarithm) != Opcode::kLog || expressions.op(product) != Opcode::kMatMul) continue;
        const ValueId share = before_guard(expressions, expressions.operand(logarithm, 0));
        if (share == ValueId::kAbsent || !is_input(analysis, share) || is_weight(expressions, product)) continue;
        out.report(node, fmt::format("the logarithm of {} is added to the scores of all samples of the batch, not "
                                     "subtracted",
                                     Operand(analysis, share).name()))
            .certainty(ops::Certainty::kMay,
                       fmt::format("{} is how often a sample is drawn", Operand(analysis, share).name()))
            .note_at(logarithm, "the logarithm is taken here")
            .fix("subtract it: s - log(q), as frequent samples are drawn as wrong answers more often");
        return;
      }
      return;
    }
  }

  /// One number for each column.
  static bool is_row(const Expressions& expressions, ValueId value) {
    const auto dims = expressions.dims(value);
    const DimPool& pool = expressions.analysis().facts().dims();
    return (dims.size() == 1 || (dims.size() == 2 && pool.is_constant(dims.front(), 1))) &&
           !pool.is_constant(dims.back(), 1);
  }

  static bool is_weight(const Expressions& expressions, NodeId product) {
    const Model& model = expressions.analysis().model();
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId factor = expressions.operand(product, side);
      if (factor == ValueId::kAbsent || model.value(before_stretch(expressions, factor)).initializer != nullptr)
        return true;
    }
    return false;
  }

  /// u of 1 - tanh(u)^2, before a guard.
  static ValueId squashed_in(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return value;
    const ValueId square = expressions.complement(before_guard(expressions, value));
    const ValueId squashed =
        square == ValueId::kAbsent ? square : expressions.square_base(before_stretch(expressions, square));
    if (squashed == ValueId::kAbsent) return squashed;
    const NodeId node = expressions.producer(before_stretch(expressions, squashed));
    const ops::ElementValue element = dataflow::element_function(expressions.analysis(), node, 1);
    if (element == nullptr || std::abs(element({std::array{0.7}, {}}) - std::tanh(0.7)) > 1e-6) return ValueId::kAbsent;
    return expressions.operand(node, 0);
  }

  /// Terms that are added up, with -z^2 / 2 among them, as of a normal distribution.
  static bool has_negative_square(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMaxTerms = 16;
    struct Term {
      ValueId value;
      double sign;
    };
    std::vector<Term> terms{{value, 1}};
    for (std::size_t i = 0; i < terms.size() && terms.size() < kMaxTerms; ++i) {
      const auto [at, sign] = terms[i];
      if (at == ValueId::kAbsent) continue;
      if (expressions.square_base(at) != ValueId::kAbsent) {
        if (sign < 0) return true;
        continue;
      }
      const NodeId node = expressions.producer(at);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kNeg) {
        terms.push_back({first, -sign});
      } else if (opcode == Opcode::kAdd || opcode == Opcode::kSub) {
        terms.push_back({first, sign});
        terms.push_back({second, opcode == Opcode::kSub ? -sign : sign});
      } else if (opcode == Opcode::kMul && numbered) {
        terms.push_back({numbered->value, numbered->number < 0 ? -sign : sign});
      } else if (opcode == Opcode::kDiv && (!numbered || (!numbered->is_first && numbered->number > 0))) {
        terms.push_back({first, sign});  // by a variance
      } else if (opcode == Opcode::kReduceSum || ops::keeps_elements(opcode)) {
        terms.push_back({first, sign});
      }
    }
    return false;
  }
};

const RegisterRule<DensityCorrectionAdded> kRegisterDensityCorrectionAdded;

}  // namespace
}  // namespace tensorlint::rules
