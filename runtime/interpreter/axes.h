#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "runtime/interpreter/evaluation.h"

namespace tensorlint::runtime {

/// An axis that inference has found to be in [-rank, rank), from the front.
inline std::size_t from_front(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

/// The attribute `axis` of an operator that works along one.
inline std::size_t axis_attribute(Evaluation& e, std::int64_t fallback, std::size_t rank) {
  return from_front(e.in().int_attribute("axis", fallback), rank);
}

}  // namespace tensorlint::runtime
