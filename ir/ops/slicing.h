#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {

/// What Slice reads of its operands or attributes (opsets 1, 10, 11, 13): starts, ends and steps by position in `axes`.
struct Bounded {
  std::vector<int> axes;
  Dims starts, ends, steps;
};

/// nullopt where the axes or how many there are is not known, or something failed.
std::optional<Bounded> read_bounds(Inference& in, std::span<const Dim> data);

/// One slice along an axis of constant extent, as (first element, number of elements), by the specification.
std::pair<std::int64_t, std::int64_t> constant_slice(std::int64_t extent, std::int64_t start, std::int64_t end,
                                                     std::int64_t step);

}  // namespace tensorlint::ops
