#pragma once

#include <cstdint>

namespace tensorlint::runtime {

/// What a call of an evaluator is for. The amplitude of an element is the scale on which rounding its steps shows: for
/// a sum that of the magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 3.1 and 4.2), so that
/// an error lies within roundoff times some steps times this.
enum class Purpose : std::uint8_t { kValue, kAmplitude, kTerms };

}  // namespace tensorlint::runtime
