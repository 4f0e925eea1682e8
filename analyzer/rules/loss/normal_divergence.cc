#include "analyzer/rules/loss/normal_divergence.h"

#include <array>
#include <cmath>

#include "analyzer/rules/value/sources.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {

using losses::Formula;

std::optional<double> normal_divergence(const losses::Expressions& expressions, ValueId value) {
  const auto found = find_normal_divergence(expressions, value);
  return found && found->rate == 1 ? std::optional(found->scale) : std::nullopt;
}

std::vector<std::size_t> score_leaves(const losses::Expressions& expressions, const Formula& formula) {
  if (!formula.is_complete()) return {};
  const losses::ScoreValues scores(expressions);
  std::vector<std::size_t> leaves;
  const auto parts = formula.parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind != Formula::PartKind::kLeaf) continue;
    if (parts[i].value == ValueId::kAbsent || leaves.size() == 2 ||
        scores.layer_of(before_stretch(expressions, parts[i].value)) == NodeId::kNone)
      return {};
    leaves.push_back(i);
  }
  return leaves;
}

std::optional<NormalDivergence> find_normal_divergence(const losses::Expressions& expressions, ValueId value) {
  const Formula formula(expressions, value);
  const std::vector<std::size_t> leaves = score_leaves(expressions, formula);
  if (leaves.size() != 2) return std::nullopt;
  const auto parts = formula.parts();
  constexpr std::array kMeans{-1.5, -0.4, 0.7, 2.0};
  constexpr std::array kVariances{-1.2, -0.3, 0.5, 1.4};
  constexpr double kTolerance = 1e-3;
  expressions.charge(4 * kMeans.size() * kVariances.size() * parts.size());
  for (const std::size_t mean : {std::size_t{0}, std::size_t{1}}) {
    const auto at = [&](double m, double v) {
      const Formula::Assignment given[] = {{leaves[mean], m}, {leaves[1 - mean], v}};
      return formula.evaluate(given, 0);
    };
    const double scale = at(0, 0) - at(1, 0);
    for (const double rate : {1.0, 2.0}) {
      bool fits = std::abs(scale) > kTolerance;
      for (const double m : kMeans)
        for (const double v : kVariances)
          fits = fits && std::abs(at(m, v) - at(0, 0) - scale * (1 + rate * v - m * m - std::exp(rate * v))) <
                             kTolerance * std::abs(scale);
      if (fits)
        return NormalDivergence{.node = expressions.producer(value),
                                .mean = before_stretch(expressions, parts[leaves[mean]].value),
                                .log_variance = before_stretch(expressions, parts[leaves[1 - mean]].value),
                                .scale = scale,
                                .rate = rate};
    }
  }
  return std::nullopt;
}

}  // namespace tensorlint::rules
