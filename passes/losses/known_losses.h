#pragma once

#include <functional>
#include <optional>
#include <span>

#include "ir/ops/loss_kind.h"

namespace tensorlint::losses {

using ops::LossKind;

/// What a loss makes of one element of prediction and target.
using PairFunction = std::function<double(double prediction, double target)>;

/// The loss that the function computes, up to a scale and a constant; one with two terms, such as the two classes of a
/// binary cross-entropy, may weigh them. `constants`: numbers that thresholds and margins may be.
/// Compared at sample points, so that the spelling does not matter; a guard such as + 1e-7 does not either.
std::optional<LossKind> identify_pair(const PairFunction& function, std::span<const double> constants);

/// A function of the logarithm of the probability of the right class that falls as that rises: cross-entropy or focal
/// loss.
std::optional<LossKind> identify_log_probability(const std::function<double(double)>& function,
                                                 std::span<const double> constants);

}  // namespace tensorlint::losses
