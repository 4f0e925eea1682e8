#pragma once

// Convolution as the product of filters [filters, channels * window] with patches [channels * window, positions], which
// are nowhere in memory: their loader finds each element in the image. The tiles are those of matrix products.

#include "kernels/product/matrix_kernel.h"
#include "kernels/window/window.h"

namespace tensorlint::kernels {

/// What a kernel needs of an axis.
struct WindowSteps {
  std::int32_t in = 1;
  std::int32_t stride = 1;
  std::int32_t dilation = 1;
  std::int32_t begin = 0;
};

/// Patches of the images of one group; columns are positions of windows, rows (channel, element of the window).
template <typename T>
struct PatchFactor {
  const T* data = nullptr;
  WindowSteps rows;
  WindowSteps columns;
  Divisor by_width;         // of the result
  SmallDivisor by_window;   // elements of a window
  SmallDivisor by_columns;  // its columns
  std::int64_t plane = 0;   // elements of a channel
  std::int32_t depth = 0;   // rows of the factor
};

/// One thread's part of a PatchFactor: one position, and of each step kSize elements of k.
template <typename T, int kTile>
class PatchLoader {
  using Shape = TileShape<T, kTile>;
  static constexpr int kSize = Vector<T>::kSize;
  static constexpr int kApartStep = static_cast<int>(kThreads) / Shape::kEdge;

 public:
  /// Of positions `first` to `end` of the image at `offset`.
  TL_DEVICE PatchLoader(const PatchFactor<T>& factor, std::int64_t offset, std::int64_t first, std::int64_t end)
      : factor_(factor), image_(factor.data + offset) {
    const int tid = static_cast<int>(thread_in_block());
    const std::int64_t position = first + tid % Shape::kEdge;
    next_ = position < end ? tid / Shape::kEdge : factor.depth;
    const std::int64_t row = factor.by_width.quotient(position);
    row_ = static_cast<std::int32_t>(row) * factor.rows.stride - factor.rows.begin;
    column_ = static_cast<std::int32_t>(position - row * factor.by_width.value) * factor.columns.stride -
              factor.columns.begin;
  }

  /// Elements of the next step, of which `left` are in k; zeros outside of image and matrix.
  TL_DEVICE void load(std::int64_t left) {
    (void)left;  // next_ knows
    vector_ = {};
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) {
      const std::int32_t k = next_ + i * kApartStep;
      if (k >= factor_.depth) continue;
      const std::int32_t channel = factor_.by_window.quotient(k);
      const std::int32_t element = k - channel * factor_.by_window.value;
      const std::int32_t element_row = factor_.by_columns.quotient(element);
      const std::int32_t element_column = element - element_row * factor_.by_columns.value;
      const std::int32_t y = row_ + element_row * factor_.rows.dilation;
      const std::int32_t x = column_ + element_column * factor_.columns.dilation;
      if (y < 0 || y >= factor_.rows.in || x < 0 || x >= factor_.columns.in) continue;
      const std::int64_t at = channel * factor_.plane + std::int64_t{y} * factor_.columns.in + x;
      vector_.set_element(i, load_global(image_ + at));
    }
    // Not past depth by more than a step: it is below 2^31.
    if (next_ < factor_.depth) next_ += Shape::kDepth;
  }

  template <typename Tile>
  TL_DEVICE void store(const Tile& tile, int first) const {
    const int tid = opaque(static_cast<int>(thread_in_block()));
    const int to = first + tid / Shape::kEdge * Shape::kPitch + tid % Shape::kEdge;
    Compute<T> x[kSize];
    unpack(vector_, x);
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) tile[to + i * kApartStep * Shape::kPitch] = x[i];
  }

 private:
  const PatchFactor<T>& factor_;
  const T* image_;
  std::int32_t next_;          // this thread's first k of the next step
  std::int32_t row_, column_;  // where the window begins
  Vector<T> vector_{};
};

template <typename T>
struct ConvolutionParameters {
  ProductPlan plan;
  Divisor by_tiles;
  Divisor by_columns;
  Divisor by_groups;
  StridedFactor<T> filters;
  PatchFactor<T> patches;
  TileResult<T> result;         // of the first group of the first image; m filters of a group, n positions
  std::int64_t group_data = 0;  // elements of the channels of a group
};

template <typename T, int kTile>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, (kTileBlocks<T, kTile>)) convolve_tiles(const ConvolutionParameters<T> p) {
  using Shape = TileShape<T, kTile>;
  TL_SHARED(Compute<T>, left_tile, Shape::kSharedElements);
  TL_SHARED(Compute<T>, right_tile, Shape::kSharedElements);
  TL_ROLLED
  for (std::int64_t tile = block_in_grid(); tile < p.plan.tiles; tile += blocks_in_grid()) {
    Compute<T> sums[kTile * kQuad][kTile * kQuad];
    {
      // A matrix of the stack is one group of one image.
      const TilePlace place = place_of<Shape::kEdge>(p.by_tiles, p.by_columns, tile);
      const std::int64_t group = p.by_groups.remainder(place.matrix);
      StridedLoader<T, kTile> left(p.filters, group * p.result.m * p.filters.position, place.row, p.result.m);
      PatchLoader<T, kTile> right(p.patches, place.matrix * p.group_data, place.column, p.result.n);
      accumulate_tile<T, kTile>(left, right, p.patches.depth, left_tile, right_tile, sums);
    }
    const TilePlace place = place_of<Shape::kEdge>(p.by_tiles, p.by_columns, opaque(tile));
    TileResult<T> result = p.result;
    result.data += place.matrix * p.result.m * p.result.n;
    if (result.addend != nullptr) result.addend += p.by_groups.remainder(place.matrix) * p.result.m;
    write_tile<T, kTile>(result, place.row, place.column, sums);
  }
}

template <typename T>
struct FewFiltersParameters {
  const T* data = nullptr;
  const T* weight = nullptr;
  const T* bias = nullptr;
  T* result = nullptr;
  WindowSteps rows;
  WindowSteps columns;
  std::int32_t kernel_rows = 1;
  std::int32_t kernel_columns = 1;
  Divisor by_width;      // of the result
  Divisor by_positions;  // of the result
  Divisor by_filters;
  Divisor by_group_filters;
  std::int64_t plane = 0;
  std::int64_t channels = 0;
  std::int64_t group_channels = 0;
  std::int64_t elements = 0;  // of the result
};

/// Few filters a group, as depthwise convolutions have: a thread an element, whose window neighbours' caches hold.
template <typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) convolve_few_filters(const FewFiltersParameters<T> p) {
  const std::int64_t threads = std::int64_t{blocks_in_grid()} * kThreads;
  const std::int64_t window = std::int64_t{p.kernel_rows} * p.kernel_columns;
  TL_ROLLED
  for (std::int64_t i = std::int64_t{block_in_grid()} * kThreads + thread_in_block(); i < p.elements; i += threads) {
    const std::int64_t plane = p.by_positions.quotient(i);
    const std::int64_t position = i - plane * p.by_positions.value;
    const std::int64_t image = p.by_filters.quotient(plane);
    const std::int64_t filter = plane - image * p.by_filters.value;
    const std::int64_t group = p.by_group_filters.quotient(filter);
    const std::int64_t result_row = p.by_width.quotient(position);
    const auto first_row = static_cast<std::int32_t>(result_row) * p.rows.stride - p.rows.begin;
    const auto first_column =
        static_cast<std::int32_t>(position - result_row * p.by_width.value) * p.columns.stride - p.columns.begin;
    const T* data = p.data + (image * p.channels + group * p.group_channels) * p.plane;
    const T* weight = p.weight + filter * p.group_channels * window;
    Compute<T> sum{0};
    TL_ROLLED
    for (std::int64_t channel = 0; channel < p.group_channels; ++channel, data += p.plane) {
      TL_ROLLED
      for (std::int32_t row = 0; row < p.kernel_rows; ++row, weight += p.kernel_columns) {
        const std::int32_t y = first_row + row * p.rows.dilation;
        if (y < 0 || y >= p.rows.in) continue;
        const T* const line = data + std::int64_t{y} * p.columns.in;
        TL_ROLLED
        for (std::int32_t column = 0; column < p.kernel_columns; ++column) {
          const std::int32_t x = first_column + column * p.columns.dilation;
          if (x < 0 || x >= p.columns.in) continue;
          sum = fused_multiply_add(widen(load_global(weight + column)), widen(load_global(line + x)), sum);
        }
      }
    }
    if (p.bias != nullptr) sum += widen(load_global(p.bias + filter));
    store_global(p.result + i, narrow<T>(sum));
  }
}

}  // namespace tensorlint::kernels
