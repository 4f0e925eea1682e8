#pragma once

#include <algorithm>

#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluation.h"
#include "runtime/values/movement.h"

// How many elements operators sum into one (Rounding::Terms), for several families.

namespace tensorlint::runtime {

/// Elements of operand 0 for each of the result: reductions.
inline double terms_of_reduction(Evaluation& e) {
  const std::optional<Shape>& shape = e.type_of_result().shape;
  const std::size_t results = shape ? shape->size() : 0;
  return static_cast<double>(e.operand(0).size()) / static_cast<double>(std::max<std::size_t>(results, 1));
}

/// The extent of operand 0 along the axis that operand 1 names.
inline double terms_along_axis(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  return static_cast<double>(split_at(data.extents(), from_front(e.integer(1), data.rank())).extent);
}

inline double terms_of_variadic(Evaluation& e) { return static_cast<double>(e.operand_count()); }

/// The elements of a filter of operand 1, whose filters axis `axis` counts, and a bias.
template <std::size_t kAxis>
double terms_of_filters(Evaluation& e) {
  const HostTensor& filters = e.operand(1);
  if (filters.rank() <= kAxis) return 1;
  return static_cast<double>(filters.size()) / static_cast<double>(std::max<std::int64_t>(filters.extent(kAxis), 1)) +
         1;
}

}  // namespace tensorlint::runtime
