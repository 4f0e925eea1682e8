#pragma once

#include <vector>

#include "passes/losses/axis_mistakes.h"

namespace tensorlint::losses {

/// Probabilities of a model, training step or not, that are averaged with along another axis than the one along which
/// they add up to 1 (kAttention), or of which the largest is taken along another one (kSelectedElsewhere), and products
/// of unit vectors with vectors whose norms are along another axis (kNormElsewhere). Costs a walk over the operators,
/// and over what the outputs are computed from only where one of them may be such.
std::vector<AxisMistake> find_attention_mistakes(const Expressions& expressions, AxisOrigins& origins);

/// Positions that are added to the samples in place of the steps (kPositionsOfBatch), in a model that computes no loss.
/// Costs a walk over the operators, and over what the outputs are computed from only where a column of rows is added.
std::vector<AxisMistake> find_positions_of_batch(const Expressions& expressions, AxisOrigins& origins);

}  // namespace tensorlint::losses
