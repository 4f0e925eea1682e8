#pragma once

#include <optional>
#include <string_view>

#include "passes/losses/expressions.h"

namespace tensorlint::rules {

/// Whether a name ends in `ending`, which is in lower case; in whatever case the name is.
bool has_ending(std::string_view name, std::string_view ending);

/// Ones on a diagonal and zeros elsewhere, made by the program.
bool is_identity_matrix(const losses::Expressions& expressions, ValueId value);

/// 0 and 1: what has been bool, an identity matrix, an input called a mask, the rest of one, and products of those.
bool is_mask(const losses::Expressions& expressions, ValueId value);

/// 0, 1, 2, ... compared with numbers of steps: true for the steps of a sequence, false for what fills it up.
struct StepMask {
  ValueId lengths = ValueId::kAbsent;  ///< an integer input, as it is
  bool is_strict = false;              ///< the step at the length is not one of them
};
std::optional<StepMask> step_mask(const losses::Expressions& expressions, NodeId node);

/// 0, 1, 2, ... are compared with it: those below it are the steps.
bool counts_steps(const losses::Expressions& expressions, ValueId lengths);

}  // namespace tensorlint::rules
