#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/normal_divergence.h"
#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class MisbuiltDivergence : public Rule {
 public:
  MisbuiltDivergence()
      : Rule({"TL-L393", "misbuilt-divergence", "loss", findings::Severity::kWarning,
              "a divergence of a normal distribution from the standard one, in which one term is another"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    constexpr std::size_t kMaxExponentials = 64;
    bool found = false;
    each_node(view, out, {Opcode::kExp}, [&](const Expressions& expressions, const NodeCall& call) {
      if (found || !out.is_among_first(kMaxExponentials)) return;
      for (const ValueId sum : summed_after(expressions, call.result()))
        if (!found) found = check_sum(expressions, sum, out);
      // Where the variance is missing, samples are still drawn with it.
      const ValueId logarithm =
          call.operand(0).present() ? before_scale(expressions, call.operand(0).value()) : ValueId::kAbsent;
      if (found || logarithm == ValueId::kAbsent || mean_of_samples(expressions, logarithm) == ValueId::kAbsent) return;
      for (const ValueId sum : summed_after(expressions, logarithm))
        if (!found) found = check_sum(expressions, sum, out);
    });
  }

 private:
  /// What is summed up or averaged, and an exponential is part of.
  static std::vector<ValueId> summed_after(const Expressions& expressions, ValueId exponential) {
    constexpr std::size_t kMaxValues = 16;
    std::vector<ValueId> pending{exponential}, found;
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        if (opcode == Opcode::kReduceSum || opcode == Opcode::kReduceMean)
          found.push_back(pending[i]);
        else if (const ValueId result = expressions.result(user);
                 result != ValueId::kAbsent &&
                 (opcode == Opcode::kAdd || opcode == Opcode::kSub || opcode == Opcode::kMul ||
                  opcode == Opcode::kNeg || opcode == Opcode::kPow || opcode == Opcode::kExp))
          pending.push_back(result);
      }
    return found;
  }

  /// What is a sum over elements is a number of the mean m and one of the logarithm v: a * m^2, or another function of
  /// m, and b * v + c * e^(k * v), or + c * v^2.
  struct Terms {
    double b = 0, c = 0, k = 1;
    enum class Variance : std::uint8_t { kNone, kExponential, kSquare } variance = Variance::kNone;
    double a = 0;
    enum class Mean : std::uint8_t { kNone, kSquare, kExponential, kAbsolute, kLinear } mean = Mean::kNone;
  };

  static bool check_sum(const Expressions& expressions, ValueId value, Reporter& out) {
    const Formula formula(expressions, value);
    const std::vector<std::size_t> leaves = score_leaves(expressions, formula);
    const auto parts = formula.parts();
    for (const std::size_t log_variance : leaves) {
      const std::size_t mean = leaves.size() == 1 ? log_variance : leaves[0] == log_variance ? leaves[1] : leaves[0];
      const ValueId v = before_stretch(expressions, parts[log_variance].value);
      const ValueId drawn = mean_of_samples(expressions, v);
      if (drawn == ValueId::kAbsent || (leaves.size() == 2 && before_stretch(expressions, parts[mean].value) != drawn))
        continue;
      const auto terms = terms_of(expressions, formula, mean, log_variance);
      const std::string_view mistake = terms ? mistake_in(*terms, leaves.size() == 1) : "";
      if (mistake.empty() || (terms->a == 0 && is_used_elsewhere(expressions, drawn)) ||
          (terms->b == 0 && terms->c != 0 && is_summed_elsewhere(expressions, v)))
        continue;
      const dataflow::Analysis& analysis = expressions.analysis();
      out.report(expressions.producer(value),
                 fmt::format("{} in the divergence of the normal distribution with the mean {} and {} for the "
                             "logarithm of its variance",
                             mistake, Operand(analysis, drawn).name(), Operand(analysis, v).name()))
          .fix("the divergence from the standard normal distribution is -0.5 * (1 + logvar - mu^2 - exp(logvar))");
      return true;
    }
    return false;
  }

  static std::optional<Terms> terms_of(const Expressions& expressions, const Formula& formula, std::size_t mean,
                                       std::size_t log_variance) {
    constexpr std::array kMeans{-1.5, 0.7, 2.0};
    constexpr std::array kLogarithms{-1.2, -0.3, 0.5, 1.4};
    expressions.charge(32 * formula.parts().size());
    const bool has_mean = mean != log_variance;
    const auto at = [&](double m, double v) {
      const std::array given{Formula::Assignment{log_variance, v}, Formula::Assignment{mean, has_mean ? m : v}};
      return formula.evaluate(given, 0);
    };
    const double origin = at(0, 0);
    const auto of_mean = [&](double m) { return has_mean ? at(m, 0) - origin : 0; };
    const auto of_logarithm = [&](double v) { return at(0, v) - origin; };
    const double largest = std::max({std::abs(of_mean(1)), std::abs(of_logarithm(1)), std::abs(of_logarithm(-1))});
    const double tolerance = 1e-3 * largest;
    if (!(largest > 1e-6)) return std::nullopt;
    for (const double m : kMeans)
      for (const double v : kLogarithms)
        if (!(std::abs(at(has_mean ? m : 0, v) - origin - of_mean(m) - of_logarithm(v)) < tolerance))
          return std::nullopt;
    const auto is_mean = [&](auto function) {
      return std::ranges::all_of(kMeans, [&](double m) { return std::abs(of_mean(m) - function(m)) < tolerance; });
    };
    const auto is_logarithm = [&](auto function) {
      return std::ranges::all_of(kLogarithms,
                                 [&](double v) { return std::abs(of_logarithm(v) - function(v)) < tolerance; });
    };
    Terms found;
    found.a = of_mean(1);
    if (std::abs(found.a) < tolerance) found.a = 0;
    if (found.a == 0 && !is_mean([](double) { return 0.0; })) return std::nullopt;
    if (found.a != 0) {
      if (is_mean([&](double m) { return found.a * m * m; }))
        found.mean = Terms::Mean::kSquare;
      else if (is_mean([&](double m) { return found.a * std::abs(m); }))
        found.mean = Terms::Mean::kAbsolute;
      else if (is_mean([&](double m) { return found.a * m; }))
        found.mean = Terms::Mean::kLinear;
      else if (is_mean([&](double m) { return found.a * (std::exp(m) - 1) / (std::exp(1.0) - 1); }))
        found.mean = Terms::Mean::kExponential;
      else
        return std::nullopt;
    }
    const double one = of_logarithm(1), minus = of_logarithm(-1);
    if (is_logarithm([](double) { return 0.0; })) return found;
    for (const double k : {1.0, 0.5, 2.0}) {
      found.k = k;
      found.c = (one + minus) / (std::exp(k) + std::exp(-k) - 2);
      found.b = one - found.c * (std::exp(k) - 1);
      found.variance = Terms::Variance::kExponential;
      if (std::abs(found.b) < tolerance) found.b = 0;
      if (std::abs(found.c) > tolerance &&
          is_logarithm([&](double v) { return found.b * v + found.c * (std::exp(k * v) - 1); }))
        return found;
    }
    found.c = (one + minus) / 2;
    found.b = (one - minus) / 2;
    found.variance = Terms::Variance::kSquare;
    return std::abs(found.c) > tolerance && is_logarithm([&](double v) { return found.b * v + found.c * v * v; })
               ? std::optional(found)
               : std::nullopt;
  }

  /// Right is c * (m^2 - k * v + e^(k * v)).
  static std::string_view mistake_in(const Terms& terms, bool has_no_mean) {
    const auto is = [](double number, double other) { return std::abs(number - other) < 1e-3 * std::abs(other); };
    if (terms.variance == Terms::Variance::kNone)
      return terms.mean == Terms::Mean::kSquare ? "nothing is left of the variance" : "";
    if (terms.variance == Terms::Variance::kSquare)
      return terms.mean == Terms::Mean::kSquare && is(terms.b, -terms.a)
                 ? "the square of the logarithm stands for the variance"
                 : "";
    const bool logarithm_fits = is(terms.b, -terms.k * terms.c);
    if (has_no_mean) return logarithm_fits && terms.k == 1 ? "the square of the mean is missing" : "";
    if (logarithm_fits && terms.mean != Terms::Mean::kSquare) {
      if (terms.mean == Terms::Mean::kExponential) return "the exponential of the mean stands for its square";
      if (terms.mean == Terms::Mean::kAbsolute) return "the absolute value of the mean stands for its square";
      return terms.mean == Terms::Mean::kLinear ? "the mean stands for its square" : "";
    }
    if (terms.mean != Terms::Mean::kSquare) return "";
    const bool mean_fits = is(terms.a, terms.c);
    if (mean_fits && logarithm_fits) return "";
    if (mean_fits) {
      if (terms.b == 0) return "the logarithm of the variance is missing";
      if (is(terms.b, terms.k * terms.c)) return "the logarithm of the variance has the wrong sign";
      if (terms.k == 0.5 && is(terms.b, -terms.c)) return "the standard deviation stands for the variance";
      if (terms.k == 2 && is(terms.b, -terms.c))
        return "the logarithm of the standard deviation stands for that of the variance";
      return "";
    }
    if (logarithm_fits && is(terms.a, -terms.c)) return "the square of the mean has the wrong sign";
    // The logarithm and the mean agree with each other.
    if (terms.k == 1 && is(terms.a, -terms.c) && is(terms.b, terms.c)) return "the variance has the wrong sign";
    return "";
  }

  /// m of samples m + noise * s, where s is computed from v.
  static ValueId mean_of_samples(const Expressions& expressions, ValueId v) {
    constexpr std::size_t kMaxValues = 16;
    std::vector<ValueId> scales{v};
    for (std::size_t i = 0; i < scales.size() && scales.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(scales[i])) {
        const ValueId result = expressions.result(user);
        const Opcode opcode = expressions.op(user);
        if (result == ValueId::kAbsent) continue;
        if (ops::repeats_elements(opcode) || opcode == Opcode::kExp || opcode == Opcode::kSqrt ||
            opcode == Opcode::kClip || with_number(expressions, user)) {
          scales.push_back(result);
          continue;
        }
        const ValueId noise = opcode == Opcode::kMul ? expressions.beside(user, scales[i]) : ValueId::kAbsent;
        if (!may_be_noise(expressions, noise)) continue;
        for (const NodeId sum : expressions.users(result))
          if (const ValueId mean =
                  expressions.op(sum) == Opcode::kAdd ? expressions.beside(sum, result) : ValueId::kAbsent;
              mean != ValueId::kAbsent)
            return before_stretch(expressions, mean);
      }
    return ValueId::kAbsent;
  }

  /// The mean is used for more than the samples: its square may be added apart.
  static bool is_used_elsewhere(const Expressions& expressions, ValueId mean) {
    return expressions.users(mean).size() != 1 || expressions.analysis().model().value(mean).is_output;
  }

  /// Something but an exponential is computed of it: its sum may be added apart.
  static bool is_summed_elsewhere(const Expressions& expressions, ValueId v) {
    constexpr std::size_t kMaxValues = 12;
    std::vector<ValueId> pending{v};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        if (expressions.op(user) == Opcode::kExp) continue;
        const bool is_scaled = with_number(expressions, user).has_value() &&
                               (expressions.op(user) == Opcode::kMul || expressions.op(user) == Opcode::kDiv);
        if (!is_scaled && !ops::keeps_elements(expressions.op(user))) return true;
        pending.push_back(expressions.result(user));
      }
    return false;
  }
};

const RegisterRule<MisbuiltDivergence> kRegisterMisbuiltDivergence;

}  // namespace
}  // namespace tensorlint::rules
