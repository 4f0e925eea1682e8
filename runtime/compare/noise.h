#pragma once

#include <cstdint>

#include "runtime/values/host_value.h"

namespace tensorlint::compare {

/// A random number that follows from its three arguments alone (splitmix64's mixing; Steele, Lea and Flood 2014).
std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c);

/// `value`, in float64, with every element x changed to x (1 + s `relative`) + s `tiny`, where s is -1 or 1 by chance:
/// rounding at random (Parker, Pierce and Eggert, Monte Carlo arithmetic, 2000). Other than floats stay as they are.
runtime::HostValue shaken(const runtime::HostValue& value, double relative, double tiny, std::uint64_t seed,
                          runtime::Memory& memory);

/// The same with an amount for each element, for replica `replica` of some: elements that are equal are rounded
/// equally, and sums in other orders err each by itself. One replica of two has the one, the other the other.
void shake(runtime::HostTensor& tensor, const runtime::HostTensor& amounts, std::uint64_t seed, std::size_t replica);

}  // namespace tensorlint::compare
