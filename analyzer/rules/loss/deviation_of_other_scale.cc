#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/normal_divergence.h"
#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/escape.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class DeviationOfOtherScale : public Rule {
 public:
  DeviationOfOtherScale()
      : Rule({"TL-L333", "deviation-of-other-scale", "loss", findings::Severity::kWarning,
              "noise that is scaled with e^v where the divergence takes v for the logarithm of the variance"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kExp}, [&](const Expressions& expressions, const NodeCall& call) {
      if (const auto divergence = divergence_after(expressions, call.result()))
        check_samples(expressions, *divergence, out);
    });
  }

 private:
  /// The divergence that an exponential is part of, found at what is summed up.
  static std::optional<NormalDivergence> divergence_after(const Expressions& expressions, ValueId exponential) {
    constexpr std::size_t kMaxValues = 16;
    std::vector<ValueId> pending{exponential};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        if (opcode == Opcode::kReduceSum || opcode == Opcode::kReduceMean) {
          if (auto found = find_normal_divergence(expressions, pending[i])) return found;
        } else if (const ValueId result = expressions.result(user);
                   result != ValueId::kAbsent && (opcode == Opcode::kAdd || opcode == Opcode::kSub ||
                                                  opcode == Opcode::kMul || opcode == Opcode::kNeg)) {
          pending.push_back(result);
        }
      }
    return std::nullopt;
  }

  /// m + noise * e^(k * v), where the divergence has e^(c * v) for the variance: k is half of c.
  static void check_samples(const Expressions& expressions, const NormalDivergence& divergence, Reporter& out) {
    constexpr std::size_t kMaxValues = 16;
    const dataflow::Analysis& analysis = expressions.analysis();
    std::vector<ValueId> scales{divergence.log_variance};
    for (std::size_t i = 0; i < scales.size() && scales.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(scales[i])) {
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent) continue;
        const Opcode opcode = expressions.op(user);
        if (ops::repeats_elements(opcode) || opcode == Opcode::kExp || opcode == Opcode::kSqrt ||
            opcode == Opcode::kClip || with_number(expressions, user)) {
          scales.push_back(result);
        } else if (opcode == Opcode::kMul && may_be_noise(expressions, expressions.beside(user, scales[i])) &&
                   is_added_to(expressions, result, divergence.mean)) {
          if (is_logarithm_itself(expressions, scales[i], divergence.log_variance)) {
            report_logarithm(expressions, user, divergence, out);
            return;
          }
          const auto rate = rate_of(expressions, scales[i], divergence.log_variance);
          if (!rate || std::abs(*rate - divergence.rate) > 1e-3 * divergence.rate) continue;
          const Operand v(analysis, divergence.log_variance);
          out.report(user,
                     fmt::format("noise is scaled with the variance: the divergence takes {} for the logarithm of "
                                 "the {}",
                                 v.name(), divergence.rate < 1.5 ? "variance" : "standard deviation"))
              .note_at(divergence.node, "the divergence is computed here")
              .fix(fmt::format("scale the noise with the standard deviation, exp({}{})",
                               escape_for_display(analysis.model().name_of(divergence.log_variance)),
                               divergence.rate < 1.5 ? " / 2" : ""));
          return;
        }
      }
  }

  /// v, or v times a number.
  static bool is_logarithm_itself(const Expressions& expressions, ValueId value, ValueId v) {
    return before_scale(expressions, before_stretch(expressions, value)) == v;
  }

  static void report_logarithm(const Expressions& expressions, NodeId product, const NormalDivergence& divergence,
                               Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    out.report(product, fmt::format("noise is scaled with {}, which the divergence takes for the logarithm of the {}",
                                    Operand(analysis, divergence.log_variance).name(),
                                    divergence.rate < 1.5 ? "variance" : "standard deviation"))
        .note_at(divergence.node, "the divergence is computed here")
        .fix(fmt::format("scale the noise with the standard deviation, exp({}{})",
                         escape_for_display(analysis.model().name_of(divergence.log_variance)),
                         divergence.rate < 1.5 ? " / 2" : ""));
  }

  static bool is_added_to(const Expressions& expressions, ValueId noise, ValueId mean) {
    for (const NodeId user : expressions.users(noise))
      if (expressions.op(user) == Opcode::kAdd && before_stretch(expressions, expressions.beside(user, noise)) == mean)
        return true;
    return false;
  }

  /// k where `value` is e^(k * v).
  static std::optional<double> rate_of(const Expressions& expressions, ValueId value, ValueId v) {
    const Formula formula(expressions, value);
    if (!formula.is_complete()) return std::nullopt;
    const auto parts = formula.parts();
    std::optional<std::size_t> leaf;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf) continue;
      if (leaf || parts[i].value == ValueId::kAbsent || before_stretch(expressions, parts[i].value) != v)
        return std::nullopt;
      leaf = i;
    }
    if (!leaf) return std::nullopt;
    expressions.charge(4 * parts.size());
    const auto at = [&](double number) {
      const Formula::Assignment given[] = {{*leaf, number}};
      return std::log(formula.evaluate(given, 0));
    };
    const double rate = at(1) - at(0);
    const bool fits = std::abs(at(0)) < 1e-3 && std::abs(at(-1) + rate) < 1e-3 && std::abs(at(2) - 2 * rate) < 1e-3;
    return fits ? std::optional(rate) : std::nullopt;
  }
};

const RegisterRule<DeviationOfOtherScale> kRegisterDeviationOfOtherScale;

}  // namespace
}  // namespace tensorlint::rules
