#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "passes/losses/expressions.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {

/// The leaves of a formula of one or two scores of layers, and of nothing else; none for other formulas.
std::vector<std::size_t> score_leaves(const losses::Expressions& expressions, const losses::Formula& formula);

/// c where an element is a constant + c * (1 + v - m^2 - e^v) of two scores of layers: for c < 0, the divergence of a
/// normal distribution, of its mean m and the logarithm v of its variance, from the standard one. Evaluated, so that
/// every spelling counts; nullopt for anything else.
std::optional<double> normal_divergence(const losses::Expressions& expressions, ValueId value);

/// The same where v may be the logarithm of the standard deviation, too: 1 + c * v - m^2 - e^(c * v).
struct NormalDivergence {
  NodeId node = NodeId::kNone;  ///< computes an element
  ValueId mean = ValueId::kAbsent, log_variance = ValueId::kAbsent;
  double scale = 0;
  double rate = 1;  ///< c: 1 for a variance, 2 for a standard deviation
};
std::optional<NormalDivergence> find_normal_divergence(const losses::Expressions& expressions, ValueId value);

}  // namespace tensorlint::rules
