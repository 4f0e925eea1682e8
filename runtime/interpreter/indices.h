#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/interpreter/evaluation.h"

namespace tensorlint::runtime {

/// An index into an axis, from the front; negative ones count from the back. Throws RunFault where it is outside.
inline std::int64_t checked_index(const Evaluation& e, std::int64_t index, std::int64_t extent, std::size_t axis) {
  if (index < -extent || index >= extent)
    e.fail("index {} is outside [{}, {}) of axis {}", index, -extent, extent, axis);
  return index < 0 ? index + extent : index;
}

}  // namespace tensorlint::runtime
