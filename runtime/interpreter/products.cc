#include "runtime/interpreter/products.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/values/codec.h"

namespace tensorlint::runtime {
namespace {

constexpr std::int64_t kStrip = 16;        // columns of the result that are computed together
constexpr std::int64_t kRows = 8;          // rows of the result that are computed together
constexpr std::int64_t kRowBlock = 64;     // rows of a tile
constexpr std::int64_t kInnerBlock = 256;  // of A, so that a block of it (128 KiB) stays in the second cache
constexpr std::int64_t kPanel = std::int64_t{1} << 18;  // elements of B that are packed at once (2 MiB)
constexpr std::int64_t kWidestTile = 512;

/// c[Rows][strip] += a · b over `inner` products an element. `a` holds Rows numbers for each of them, `b` a strip.
template <typename Vector, int Rows>
[[gnu::always_inline]] inline void multiply_strip(std::int64_t inner, const double* a, const double* b, double* c,
                                                  std::int64_t c_stride) {
  // 16 accumulators where there are 32 registers, 8 where there are 16.
  constexpr std::int64_t kLanes = sizeof(Vector) / sizeof(double), kVectors = kLanes == 8 ? 2 : 1;
  for (std::int64_t first = 0; first < kStrip; first += kVectors * kLanes) {
    std::array<std::array<Vector, kVectors>, Rows> sums;
    for (std::size_t r = 0; r < Rows; ++r)
      for (std::size_t v = 0; v < kVectors; ++v)
        std::memcpy(&sums[r][v],
                    c + static_cast<std::int64_t>(r) * c_stride + first + static_cast<std::int64_t>(v) * kLanes,
                    sizeof(Vector));
    for (std::int64_t k = 0; k < inner; ++k) {
      std::array<Vector, kVectors> right;
      std::memcpy(right.data(), b + k * kStrip + first, sizeof right);
      for (std::size_t r = 0; r < Rows; ++r)
        for (std::size_t v = 0; v < kVectors; ++v) sums[r][v] += a[k * Rows + static_cast<std::int64_t>(r)] * right[v];
    }
    for (std::size_t r = 0; r < Rows; ++r)
      for (std::size_t v = 0; v < kVectors; ++v)
        std::memcpy(c + static_cast<std::int64_t>(r) * c_stride + first + static_cast<std::int64_t>(v) * kLanes,
                    &sums[r][v], sizeof(Vector));
  }
}

using StripFunction = void (*)(int rows, std::int64_t inner, const double* a, const double* b, double* c,
                               std::int64_t c_stride);

/// There is code for strips of 1, 2, 4 and 8 rows.
template <typename Vector>
[[gnu::always_inline]] inline void multiply_rows(int rows, std::int64_t inner, const double* a, const double* b,
                                                 double* c, std::int64_t c_stride) {
  if (rows == 1) return multiply_strip<Vector, 1>(inner, a, b, c, c_stride);
  if (rows == 2) return multiply_strip<Vector, 2>(inner, a, b, c, c_stride);
  if (rows == 4) return multiply_strip<Vector, 4>(inner, a, b, c, c_stride);
  return multiply_strip<Vector, kRows>(inner, a, b, c, c_stride);
}

using Vector2 [[gnu::vector_size(16)]] = double;
using Vector4 [[gnu::vector_size(32)]] = double;
using Vector8 [[gnu::vector_size(64)]] = double;

void multiply_basic(int rows, std::int64_t inner, const double* a, const double* b, double* c, std::int64_t c_stride) {
  multiply_rows<Vector2>(rows, inner, a, b, c, c_stride);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void multiply_avx2(int rows, std::int64_t inner, const double* a, const double* b, double* c,
                                           std::int64_t c_stride) {
  multiply_rows<Vector4>(rows, inner, a, b, c, c_stride);
}

[[gnu::target("avx512f")]] void multiply_avx512(int rows, std::int64_t inner, const double* a, const double* b,
                                                double* c, std::int64_t c_stride) {
  multiply_rows<Vector8>(rows, inner, a, b, c, c_stride);
}
#endif

/// The widest vectors that the processor has; all give the same bits.
StripFunction strip_function() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return multiply_avx512;
  if (__builtin_cpu_supports("avx2")) return multiply_avx2;
#endif
  return multiply_basic;
}

/// How many rows a strip of `left` rows has: a size that there is code for.
int strip_rows(std::int64_t left) {
  return left >= 5 ? static_cast<int>(kRows) : left >= 3 ? 4 : static_cast<int>(left);
}

/// Rows [row, row + rows) of A for inner indices [first, first + inner), strip by strip.
void pack_rows(const Factor& a, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t inner,
               double* to) {
  for (std::int64_t r = 0; r < rows;) {
    const int strip = strip_rows(rows - r);
    const std::int64_t present = std::min<std::int64_t>(strip, rows - r);
    if (present < strip) std::fill_n(to, strip * inner, 0.0);
    a.pack(row + r, present, first, inner, to, 1, strip);
    to += strip * inner;
    r += present;
  }
}

void pack_columns(const Factor& b, std::int64_t k, std::int64_t column, std::int64_t columns, double* to) {
  for (std::int64_t c = 0; c < columns; c += kStrip, to += kStrip * k) {
    const std::int64_t present = std::min(kStrip, columns - c);
    if (present < kStrip) std::fill_n(to, kStrip * k, 0.0);
    b.pack(0, k, column + c, present, to, kStrip, 1);
  }
}

double* scratch(std::vector<double>& buffer, std::int64_t size) {
  if (buffer.size() < static_cast<std::size_t>(size)) buffer.resize(static_cast<std::size_t>(size));
  return buffer.data();
}

}  // namespace

template <typename T>
void DenseFactor<T>::pack(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, double* to,
                          std::int64_t row_step, std::int64_t column_step) const {
  const T* const from = elements_ + row * row_stride_ + column * column_stride_;
  if (column_stride_ == 1 && column_step == 1 && columns == kStrip) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < kStrip; ++j) to[i * row_step + j] = static_cast<double>(from[i * row_stride_ + j]);
  } else if (row_stride_ == 1) {
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i)
        to[i * row_step + j * column_step] = static_cast<double>(from[i + j * column_stride_]);
  } else {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        to[i * row_step + j * column_step] = static_cast<double>(from[i * row_stride_ + j * column_stride_]);
  }
}

template class DenseFactor<float>;
template class DenseFactor<double>;

namespace {

/// Columns of B that are in work at once.
std::int64_t panel_width(std::int64_t k) {
  return std::clamp(kPanel / std::max<std::int64_t>(k, 1) / kStrip * kStrip, 3 * kStrip, kWidestTile);
}

/// Columns [column, column + columns) of the product, of which `right` has the packed factor.
void multiply_panel(std::int64_t m, std::int64_t column, std::int64_t columns, std::int64_t k, const Factor& a,
                    const double* right, const ProductSink& sink) {
  static const StripFunction multiply = strip_function();
  // Kept from call to call: layers with many small products would spend their time on fresh pages.
  thread_local std::vector<double> packed_a, tile;
  const std::int64_t stride = (columns + kStrip - 1) / kStrip * kStrip;
  for (std::int64_t row = 0; row < m; row += kRowBlock) {
    const std::int64_t rows = std::min(kRowBlock, m - row);
    double* const result = scratch(tile, (kRowBlock + kRows) * stride);
    std::fill_n(result, (rows + kRows) * stride, 0.0);
    for (std::int64_t first = 0; first < k; first += kInnerBlock) {
      const std::int64_t inner = std::min(kInnerBlock, k - first);
      double* const left = scratch(packed_a, (kRowBlock + kRows) * kInnerBlock);
      pack_rows(a, row, rows, first, inner, left);
      for (std::int64_t c = 0; c < stride; c += kStrip) {
        const double* strip = left;
        for (std::int64_t r = 0; r < rows;) {
          const int height = strip_rows(rows - r);
          multiply(height, inner, strip, right + c * k + first * kStrip, result + r * stride + c, stride);
          strip += height * inner;
          r += height;
        }
      }
    }
    sink({row, rows, column, columns, result, stride});
  }
}

}  // namespace

PackedFactor::PackedFactor(const Factor& b, std::int64_t k, std::int64_t n) : k_(k), n_(n) {
  elements_.resize(static_cast<std::size_t>((n + kStrip - 1) / kStrip * kStrip * k));
  pack_columns(b, k, 0, n, elements_.data());
}

void gemm(std::int64_t m, const Factor& a, const PackedFactor& b, const ProductSink& sink) {
  if (m <= 0) return;
  const std::int64_t k = b.inner(), n = b.columns(), width = panel_width(k);
  for (std::int64_t column = 0; column < n; column += width)
    multiply_panel(m, column, std::min(width, n - column), k, a, b.columns_from(column), sink);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Factor& a, const Factor& b, const ProductSink& sink) {
  if (m <= 0) return;
  thread_local std::vector<double> packed_b;
  const std::int64_t width = panel_width(k);
  for (std::int64_t column = 0; column < n; column += width) {
    const std::int64_t columns = std::min(width, n - column);
    double* const right = scratch(packed_b, (columns + kStrip) * std::max<std::int64_t>(k, 1));
    pack_columns(b, k, column, columns, right);
    multiply_panel(m, column, columns, k, a, right, sink);
  }
}

Numbers::Numbers(const HostTensor& tensor) {
  if (tensor.dtype() == DType::kFloat32) {
    floats_ = tensor.as<float>().data();
  } else if (tensor.dtype() == DType::kFloat64) {
    doubles_ = tensor.as<double>().data();
  } else {
    elements_.resize(tensor.size());
    load(tensor, 0, tensor.size(), elements_.data());
    doubles_ = elements_.data();
  }
}

namespace {

template <typename Use>
void with_factor(const Numbers::Matrix& matrix, const Use& use) {
  const Numbers& numbers = *matrix.numbers;
  if (numbers.are_floats()) {
    use(DenseFactor(numbers.float_elements() + matrix.first, matrix.row_stride, matrix.column_stride));
  } else {
    use(DenseFactor(numbers.double_elements() + matrix.first, matrix.row_stride, matrix.column_stride));
  }
}

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Numbers::Matrix& a, const Numbers::Matrix& b,
          const ProductSink& sink) {
  with_factor(
      a, [&](const Factor& left) { with_factor(b, [&](const Factor& right) { gemm(m, n, k, left, right, sink); }); });
}

}  // namespace tensorlint::runtime
