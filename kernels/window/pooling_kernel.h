#pragma once

#include "kernels/common/combine.h"
#include "kernels/common/divisor.h"
#include "kernels/common/vector.h"
#include "kernels/window/convolution_kernel.h"

namespace tensorlint::kernels {

template <typename T>
struct PoolingParameters {
  const T* data = nullptr;
  T* result = nullptr;
  WindowSteps rows;
  WindowSteps columns;
  std::int32_t kernel_rows = 1;
  std::int32_t kernel_columns = 1;
  std::int32_t counted_rows = 1;  // positions below these count in an average
  std::int32_t counted_columns = 1;
  Divisor by_width;      // of the result
  Divisor by_positions;  // of the result
  std::int64_t plane = 0;
  std::int64_t elements = 0;  // of the result
  bool counts_padding = false;
};

/// Elements of a window at `first` whose positions are at least `low` and below `high`.
TL_DEVICE std::int32_t counted(std::int32_t first, std::int32_t dilation, std::int32_t kernel, std::int32_t low,
                               std::int32_t high) {
  std::int32_t count = 0;
  TL_ROLLED
  for (std::int32_t i = 0; i < kernel; ++i) {
    const std::int32_t at = first + i * dilation;
    if (at >= low && at < high) ++count;
  }
  return count;
}

/// A thread an element of the result.
template <typename T, bool kMaximum>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) pool_windows(const PoolingParameters<T> p) {
  using C = Compute<T>;
  const std::int64_t threads = std::int64_t{blocks_in_grid()} * kThreads;
  TL_ROLLED
  for (std::int64_t i = std::int64_t{block_in_grid()} * kThreads + thread_in_block(); i < p.elements; i += threads) {
    const std::int64_t image = p.by_positions.quotient(i);
    const std::int64_t position = i - image * p.by_positions.value;
    const std::int64_t result_row = p.by_width.quotient(position);
    const auto first_row = static_cast<std::int32_t>(result_row) * p.rows.stride - p.rows.begin;
    const auto first_column =
        static_cast<std::int32_t>(position - result_row * p.by_width.value) * p.columns.stride - p.columns.begin;
    const T* const data = p.data + image * p.plane;
    C folded = kMaximum ? Limits<C>::kLowest : C{0};
    TL_ROLLED
    for (std::int32_t row = 0; row < p.kernel_rows; ++row) {
      const std::int32_t y = first_row + row * p.rows.dilation;
      if (y < 0 || y >= p.rows.in) continue;
      const T* const line = data + std::int64_t{y} * p.columns.in;
      TL_ROLLED
      for (std::int32_t column = 0; column < p.kernel_columns; ++column) {
        const std::int32_t x = first_column + column * p.columns.dilation;
        if (x < 0 || x >= p.columns.in) continue;
        const C value = widen(load_global(line + x));
        if constexpr (kMaximum) {
          if (value > folded) folded = value;
        } else {
          folded += value;
        }
      }
    }
    if constexpr (!kMaximum) {
      const std::int32_t row_count =
          counted(first_row, p.rows.dilation, p.kernel_rows, p.counts_padding ? -p.rows.begin : 0, p.counted_rows);
      const std::int32_t column_count = counted(first_column, p.columns.dilation, p.kernel_columns,
                                                p.counts_padding ? -p.columns.begin : 0, p.counted_columns);
      folded /= static_cast<C>(std::int64_t{row_count} * column_count);
    }
    store_global(p.result + i, narrow<T>(folded));
  }
}

}  // namespace tensorlint::kernels
