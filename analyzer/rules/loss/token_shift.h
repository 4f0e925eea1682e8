#pragma once

#include <cstdint>
#include <optional>

#include "passes/losses/expressions.h"
#include "passes/losses/loss_sites.h"

namespace tensorlint::rules {

/// The steps of a value from its axis 1: element t of it is element t + start of `of`.
struct StepsOf {
  ValueId of = ValueId::kAbsent;
  std::int64_t start = 0;
};
/// Of a slice along axis 1, of one that a few steps have been put in front of, or of steps that were rolled; the value
/// itself for anything else, and kAbsent for a slice that is not understood.
StepsOf steps_of(const losses::Expressions& expressions, ValueId value);

/// Before the classes were moved to axis 1, or the steps were flattened.
ValueId before_layout(const losses::Expressions& expressions, ValueId scores);

/// What is predicted and what is read are steps of one input.
struct StepShift {
  ValueId input = ValueId::kAbsent;
  std::int64_t wanted = 0;  ///< position t is to predict element t + wanted,
  std::int64_t seen = 0;    ///< and has read element t + seen
};
std::optional<StepShift> step_shift(const losses::Expressions& expressions, const losses::LossSite& loss);

/// Something that scores are computed from sees the later steps alone: attention whose mask hides the earlier ones, a
/// recurrent layer that runs backwards, steps in the opposite order.
bool reads_from_the_end(const losses::Expressions& expressions, ValueId scores);

}  // namespace tensorlint::rules
