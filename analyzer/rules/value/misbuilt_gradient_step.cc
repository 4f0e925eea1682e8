#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class MisbuiltGradientStep : public Rule {
 public:
  MisbuiltGradientStep()
      : Rule({"TL-V548", "misbuilt-gradient-step", "value", findings::Severity::kWarning,
              "a step of Adam, RMSprop or a bound of gradients that is written out, with a product for a power, the "
              "gradient for its square, or a lower bound for an upper one"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    std::optional<std::vector<double>> decays;
    each_node(view, out, {Opcode::kSub}, [&](const Expressions& expressions, const NodeCall& call) {
      check_correction(view, expressions, call, decays, out);
    });
    each_node(view, out, {Opcode::kSqrt}, [&](const Expressions& expressions, const NodeCall& call) {
      check_second_moment(expressions, call, out);
    });
    each_node(view, out, {Opcode::kClip, Opcode::kMax},
              [&](const Expressions& expressions, const NodeCall& call) { check_bound(expressions, call, out); });
  }

 private:
  /// Of the averages that the model carries from step to step; the first of them.
  static std::vector<double> decays_of(const ModelView& view, Reporter& out) {
    constexpr std::size_t kMost = 64;
    std::vector<double> decays;
    each_node(view, out, {Opcode::kAdd}, [&](const Expressions& expressions, const NodeCall& sum) {
      const auto average = decays.size() < kMost ? running_average(expressions, sum.result()) : std::nullopt;
      if (average && std::ranges::find(decays, average->decay) == decays.end()) decays.push_back(average->decay);
    });
    return decays;
  }

  /// 1 - decay * t, of an average with that decay.
  static void check_correction(const ModelView& view, const Expressions& expressions, const NodeCall& call,
                               std::optional<std::vector<double>>& decays, Reporter& out) {
    if (!expressions.is_number(call.operand(0).value(), 1)) return;
    const NodeId product = expressions.producer(call.operand(1).value());
    const auto factor = with_number(expressions, product);
    if (expressions.op(product) != Opcode::kMul || !factor || factor->number <= 0.5 || factor->number >= 1 ||
        !is_one_float(view.analysis(), call.result()))
      return;
    const bool divides = std::ranges::any_of(expressions.users(call.result()), [&](NodeId user) {
      return expressions.op(user) == Opcode::kDiv && expressions.operand(user, 1) == call.result();
    });
    if (!divides) return;
    if (!decays) decays = decays_of(view, out);
    if (std::ranges::find(*decays, factor->number) == decays->end()) return;
    out.report(call.id(), fmt::format("the correction of an average is 1 - {0:.6g} * {1}, where 1 - {0:.6g} ** {1} is "
                                      "what it lacks: it is negative after a few steps",
                                      factor->number, Operand(call.analysis(), factor->value).name()))
        .note_at(product, "a product is computed here")
        .fix("take the power: 1 - decay ** step");
  }

  /// g / sqrt(decay * v + (1 - decay) * g)
  static void check_second_moment(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const auto average = running_average(expressions, before_guard(expressions, call.operand(0).value()));
    if (!average) return;
    const ValueId gradient = before_scale(expressions, average->added);
    ValueId root = call.result();
    for (int step = 0; step < 3; ++step) {
      ValueId guarded = ValueId::kAbsent;
      for (const NodeId user : expressions.users(root)) {
        const Opcode opcode = expressions.op(user);
        if (opcode == Opcode::kDiv && expressions.operand(user, 1) == root &&
            before_scale(expressions, expressions.operand(user, 0)) == gradient) {
          out.report(call.id(), fmt::format("{0} is divided by the root of an average of {0} itself, not of its "
                                            "square: it is NaN for negative gradients",
                                            Operand(call.analysis(), gradient).name()))
              .note_at(user, "the gradient is divided here")
              .fix("average the square: decay * v + (1 - decay) * g * g");
          return;
        }
        if ((opcode == Opcode::kAdd || opcode == Opcode::kMax || opcode == Opcode::kClip) &&
            before_guard(expressions, expressions.result(user)) == before_guard(expressions, root))
          guarded = expressions.result(user);
      }
      if (guarded == ValueId::kAbsent) return;
      root = guarded;
    }
  }

  /// max(limit / norm, 1) * g, of the norm of g.
  static void check_bound(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    ValueId share = call.operand(0).value();
    if (call.is(Opcode::kMax)) {
      const auto bound = with_number(expressions, call.id());
      if (!bound || bound->number != 1) return;
      share = bound->value;
    } else {
      const auto most = number_of(call.operand(2));
      if (number_of(call.operand(1)) != 1 || (call.operand(2).present() && !most.has_value()) ||
          most.value_or(HUGE_VAL) < HUGE_VAL)
        return;
    }
    std::vector<ValueId> measured;
    if (!is_share_of_norm(expressions, share, measured)) return;
    ValueId coefficient = call.result();
    for (int step = 0; step < 3 && coefficient != ValueId::kAbsent; ++step) {
      ValueId scaled = ValueId::kAbsent;
      for (const NodeId user : expressions.users(coefficient)) {
        if (expressions.op(user) != Opcode::kMul && !ops::repeats_elements(expressions.op(user))) continue;
        const ValueId other =
            expressions.op(user) == Opcode::kMul ? expressions.beside(user, coefficient) : ValueId::kAbsent;
        if (other != ValueId::kAbsent && !expressions.number(other)) {
          if (std::ranges::find(measured, before_scale(expressions, other)) == measured.end()) continue;
          out.report(call.id(), fmt::format("gradients are scaled by at least 1: the bound of their norm leaves large "
                                            "ones as they are and enlarges small ones, such as {}",
                                            Operand(call.analysis(), other).name()))
              .note_at(user, "the gradient is scaled here")
              .fix("bound the factor from above: min(limit / norm, 1)");
          return;
        }
        scaled = expressions.result(user);
      }
      coefficient = scaled;
    }
  }

  /// number / norm, in every spelling; what the norm is of.
  static bool is_share_of_norm(const Expressions& expressions, ValueId share, std::vector<ValueId>& measured) {
    ValueId norm = ValueId::kAbsent;
    for (const ValueId factor : expressions.factors(share)) {
      const NodeId node = expressions.producer(factor);
      if (expressions.op(node) == Opcode::kDiv && expressions.number(expressions.operand(node, 0)))
        norm = expressions.operand(node, 1);
      else if (expressions.op(node) == Opcode::kOther && expressions.operand(node, 1) == ValueId::kAbsent &&
               is_reciprocal(expressions, node))
        norm = expressions.operand(node, 0);
    }
    if (norm == ValueId::kAbsent) return false;
    norm = before_guard(expressions, norm);
    const NodeId node = expressions.producer(norm);
    if (expressions.op(node) == Opcode::kReduceL2)
      measured.push_back(before_scale(expressions, expressions.operand(node, 0)));
    if (expressions.op(node) != Opcode::kSqrt) return !measured.empty();
    constexpr std::size_t kMaxTerms = 24;
    std::vector<ValueId> terms{before_guard(expressions, expressions.operand(node, 0))};
    for (std::size_t i = 0; i < terms.size() && terms.size() < kMaxTerms; ++i) {
      const ValueId squared = summed_squares(expressions, terms[i]);
      const NodeId sum = expressions.producer(terms[i]);
      if (squared != ValueId::kAbsent) measured.push_back(before_scale(expressions, squared));
      if (squared == ValueId::kAbsent && expressions.op(sum) == Opcode::kAdd)
        terms.insert(terms.end(), {expressions.operand(sum, 0), expressions.operand(sum, 1)});
    }
    return !measured.empty();
  }
};

const RegisterRule<MisbuiltGradientStep> kRegisterMisbuiltGradientStep;

}  // namespace
}  // namespace tensorlint::rules
