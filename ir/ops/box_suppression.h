#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/meter.h"

namespace tensorlint::ops {

/// Operands of NonMaxSuppression that are all constants. Extents are checked by the caller.
struct BoxSuppression {
  std::span<const double> boxes;   ///< [batch, boxes, 4], values of float32
  std::span<const double> scores;  ///< [batch, classes, boxes], values of float32
  std::int64_t batch = 0, classes = 0, count = 0;
  std::int64_t limit = 0;              ///< boxes kept in a class at most
  double overlap = 0;                  ///< iou_threshold
  std::optional<double> lowest_score;  ///< score_threshold; none keeps every score
  bool center = false;                 ///< [x, y, width, height] instead of two opposite corners [y, x, y, x]
};

/// Rows (batch, class, box) of the result, row-major. nullopt where it would take more than 1,024 comparisons of boxes,
/// where a number is NaN or beyond 1e15, and where engines may differ: an overlap that rounding in float32 could move
/// across the threshold, and equal scores of boxes that are not equal.
std::optional<std::vector<std::int64_t>> suppress_boxes(const BoxSuppression& operands, Meter& meter);

}  // namespace tensorlint::ops
