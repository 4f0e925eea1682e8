#pragma once

#include <optional>

#include "passes/losses/expressions.h"

namespace tensorlint::rules {

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
