#include "runtime/interpreter/products.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "runtime/interpreter/evaluation.h"
#include "runtime/values/codec.h"
#include "runtime/values/parallel.h"
#include "runtime/values/simd_target.h"

namespace tensorlint::runtime {
namespace {

constexpr std::int64_t kStrip = 16;        // columns of the result that are computed together
constexpr std::int64_t kRows = 8;          // rows of the result that are computed together
constexpr std::int64_t kRowBlock = 64;     // rows of a tile
constexpr std::int64_t kInnerBlock = 256;  // of A, so that a block of it (128 KiB) stays in the second cache
constexpr std::int64_t kPanel = std::int64_t{1} << 20;  // elements of B that are packed at once (8 MiB)
constexpr std::int64_t kWidestTile = 512;

/// `Strips` strips of c[Rows][16] += a · b over `inner` products an element. `a` holds Rows numbers for each of them, a
/// strip of `b` 16; strips of b are `b_step` apart, those of c neighbours.
template <typename Vector, int Rows, int Strips>
[[gnu::always_inline]] inline void multiply_strips(std::int64_t inner, const double* a, const double* b,
                                                   std::int64_t b_step, double* c, std::int64_t c_stride) {
  // 16 accumulators where there are 32 registers, 8 where there are 16.
  constexpr std::int64_t kLanes = sizeof(Vector) / sizeof(double), kVectors = kLanes == 8 ? 2 : 1;
  constexpr std::size_t kSums = kVectors * Strips;
  for (std::int64_t first = 0; first < kStrip; first += kVectors * kLanes) {
    const auto place = [&](std::size_t r, std::size_t v) {
      const auto strip = static_cast<std::int64_t>(v) / kVectors,
                 lane = static_cast<std::int64_t>(v) % kVectors * kLanes;
      return c + static_cast<std::int64_t>(r) * c_stride + strip * kStrip + first + lane;
    };
    std::array<std::array<Vector, kSums>, Rows> sums;
    for (std::size_t r = 0; r < Rows; ++r)
      for (std::size_t v = 0; v < kSums; ++v) std::memcpy(&sums[r][v], place(r, v), sizeof(Vector));
    for (std::int64_t k = 0; k < inner; ++k) {
      std::array<Vector, kSums> right;
      for (std::size_t strip = 0; strip < Strips; ++strip)
        std::memcpy(&right[strip * kVectors], b + static_cast<std::int64_t>(strip) * b_step + k * kStrip + first,
                    kVectors * sizeof(Vector));
      for (std::size_t r = 0; r < Rows; ++r)
        for (std::size_t v = 0; v < kSums; ++v) sums[r][v] += a[k * Rows + static_cast<std::int64_t>(r)] * right[v];
    }
    for (std::size_t r = 0; r < Rows; ++r)
      for (std::size_t v = 0; v < kSums; ++v) std::memcpy(place(r, v), &sums[r][v], sizeof(Vector));
  }
}

/// Few rows take several strips at once: additions to one sum wait for each other.
template <typename Vector, int Rows, int Strips>
[[gnu::always_inline]] inline void multiply_rows(std::int64_t strips, std::int64_t inner, const double* a,
                                                 const double* b, std::int64_t b_step, double* c,
                                                 std::int64_t c_stride) {
  std::int64_t s = 0;
  for (; s + Strips <= strips; s += Strips)
    multiply_strips<Vector, Rows, Strips>(inner, a, b + s * b_step, b_step, c + s * kStrip, c_stride);
  if constexpr (Strips > 1)
    for (; s < strips; ++s)
      multiply_strips<Vector, Rows, 1>(inner, a, b + s * b_step, b_step, c + s * kStrip, c_stride);
}

/// There is code for strips of 1, 2, 4 and 8 rows.
template <typename Vector>
[[gnu::always_inline]] inline void multiply_block(int rows, std::int64_t strips, std::int64_t inner, const double* a,
                                                  const double* b, std::int64_t b_step, double* c,
                                                  std::int64_t c_stride) {
  if (rows == 1) return multiply_rows<Vector, 1, 4>(strips, inner, a, b, b_step, c, c_stride);
  if (rows == 2) return multiply_rows<Vector, 2, 4>(strips, inner, a, b, b_step, c, c_stride);
  if (rows == 4) return multiply_rows<Vector, 4, 2>(strips, inner, a, b, b_step, c, c_stride);
  return multiply_rows<Vector, kRows, 1>(strips, inner, a, b, b_step, c, c_stride);
}

/// A vector of elements as doubles.
template <typename Vector, typename T>
[[gnu::always_inline]] inline void load_vector(const T* from, Vector& to) {
  constexpr std::size_t kLanes = sizeof(Vector) / sizeof(double);
  using Narrow [[gnu::vector_size(kLanes * sizeof(T))]] = T;
  Narrow elements;
  std::memcpy(&elements, from, sizeof elements);
  to = __builtin_convertvector(elements, Vector);
}

/// c[n] += a[k] times rows of b, `stride` apart.
template <typename Vector, typename T>
[[gnu::always_inline]] inline void add_scaled_rows(std::int64_t n, std::int64_t k, const double* a, const T* b,
                                                   std::int64_t stride, double* c) {
  constexpr std::int64_t kLanes = sizeof(Vector) / sizeof(double), kTogether = 8;
  for (std::int64_t p = 0; p < k; p += kTogether) {
    const std::int64_t rows = std::min(kTogether, k - p);
    const T* const from = b + p * stride;
    std::int64_t j = 0;
    for (; rows == kTogether && j + kLanes <= n; j += kLanes) {
      Vector sum;
      std::memcpy(&sum, c + j, sizeof sum);
      for (std::int64_t r = 0; r < kTogether; ++r) {
        Vector right;
        load_vector(from + r * stride + j, right);
        sum += a[p + r] * right;
      }
      std::memcpy(c + j, &sum, sizeof sum);
    }
    for (; j < n; ++j)
      for (std::int64_t r = 0; r < rows; ++r) c[j] += a[p + r] * static_cast<double>(from[r * stride + j]);
  }
}

/// c[rows] = rows of b times x[k]: sums of every 16th product, added up in their order.
template <typename Vector, typename T>
[[gnu::always_inline]] inline void dot_rows(std::int64_t rows, std::int64_t k, const double* x, const T* b,
                                            std::int64_t stride, double* c) {
  constexpr std::size_t kLanes = sizeof(Vector) / sizeof(double), kVectors = kStrip / kLanes;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* const from = b + row * stride;
    std::array<Vector, kVectors> sums{};
    std::int64_t p = 0;
    for (; p + kStrip <= k; p += kStrip)
      for (std::size_t v = 0; v < kVectors; ++v) {
        const std::int64_t at = p + static_cast<std::int64_t>(v * kLanes);
        Vector left, right;
        load_vector(x + at, left);
        load_vector(from + at, right);
        sums[v] += left * right;
      }
    std::array<double, kStrip> lanes;
    std::memcpy(lanes.data(), sums.data(), sizeof lanes);
    for (std::size_t lane = 0; p < k; ++p, ++lane) lanes[lane] += x[p] * static_cast<double>(from[p]);
    double sum = 0;
    for (const double lane : lanes) sum += lane;
    c[row] = sum;
  }
}

/// to[x] += weight * from[x * stride].
template <typename T>
[[gnu::always_inline]] inline void add_scaled_row(double weight, const T* from, std::int64_t stride, std::int64_t count,
                                                  double* to) {
  if (stride == 1) {
    for (std::int64_t x = 0; x < count; ++x) to[x] += weight * static_cast<double>(from[x]);
  } else {
    for (std::int64_t x = 0; x < count; ++x) to[x] += weight * static_cast<double>(from[x * stride]);
  }
}

/// Rows of 16 elements, `stride` apart, as rows of doubles, `step` apart.
template <typename T>
[[gnu::always_inline]] inline void pack_strip_rows(std::int64_t rows, const T* from, std::int64_t stride, double* to,
                                                   std::int64_t step) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < kStrip; ++j) to[i * step + j] = static_cast<double>(from[i * stride + j]);
}

/// The loops for one kind of processor.
struct Loops {
  void (*multiply)(int rows, std::int64_t strips, std::int64_t inner, const double* a, const double* b,
                   std::int64_t b_step, double* c, std::int64_t c_stride);
  void (*add_floats)(std::int64_t n, std::int64_t k, const double* a, const float* b, std::int64_t stride, double* c);
  void (*add_doubles)(std::int64_t n, std::int64_t k, const double* a, const double* b, std::int64_t stride, double* c);
  void (*dot_floats)(std::int64_t rows, std::int64_t k, const double* x, const float* b, std::int64_t stride,
                     double* c);
  void (*dot_doubles)(std::int64_t rows, std::int64_t k, const double* x, const double* b, std::int64_t stride,
                      double* c);
  void (*row_floats)(double weight, const float* from, std::int64_t stride, std::int64_t count, double* to);
  void (*row_doubles)(double weight, const double* from, std::int64_t stride, std::int64_t count, double* to);
  void (*pack_floats)(std::int64_t rows, const float* from, std::int64_t stride, double* to, std::int64_t step);
  void (*pack_doubles)(std::int64_t rows, const double* from, std::int64_t stride, double* to, std::int64_t step);
};

using Vector2 [[gnu::vector_size(16)]] = double;
using Vector4 [[gnu::vector_size(32)]] = double;
using Vector8 [[gnu::vector_size(64)]] = double;

// NOLINTBEGIN: one list of loops for each kind of processor; a function's target cannot be a template's parameter
#define TENSORLINT_LOOPS(name, target, Vector)                                                                     \
  target void name##_multiply(int rows, std::int64_t strips, std::int64_t inner, const double* a, const double* b, \
                              std::int64_t b_step, double* c, std::int64_t c_stride) {                             \
    multiply_block<Vector>(rows, strips, inner, a, b, b_step, c, c_stride);                                        \
  }                                                                                                                \
  template <typename T>                                                                                            \
  target void name##_add(std::int64_t n, std::int64_t k, const double* a, const T* b, std::int64_t stride,         \
                         double* c) {                                                                              \
    add_scaled_rows<Vector>(n, k, a, b, stride, c);                                                                \
  }                                                                                                                \
  template <typename T>                                                                                            \
  target void name##_dot(std::int64_t rows, std::int64_t k, const double* x, const T* b, std::int64_t stride,      \
                         double* c) {                                                                              \
    dot_rows<Vector>(rows, k, x, b, stride, c);                                                                    \
  }                                                                                                                \
  template <typename T>                                                                                            \
  target void name##_row(double weight, const T* from, std::int64_t stride, std::int64_t count, double* to) {      \
    add_scaled_row(weight, from, stride, count, to);                                                               \
  }                                                                                                                \
  template <typename T>                                                                                            \
  target void name##_pack(std::int64_t rows, const T* from, std::int64_t stride, double* to, std::int64_t step) {  \
    pack_strip_rows(rows, from, stride, to, step);                                                                 \
  }                                                                                                                \
  constexpr Loops name##_loops{name##_multiply,    name##_add<float>,  name##_add<double>,                         \
                               name##_dot<float>,  name##_dot<double>, name##_row<float>,                          \
                               name##_row<double>, name##_pack<float>, name##_pack<double>};

TENSORLINT_LOOPS(basic, , Vector2)
#if defined(__x86_64__)
TENSORLINT_LOOPS(avx2, [[gnu::target("avx2,fma")]], Vector4)
TENSORLINT_LOOPS(avx512, [[TENSORLINT_AVX512_TARGET("avx512f,avx512vl,fma")]], Vector8)
#endif
#undef TENSORLINT_LOOPS
// NOLINTEND

/// Those for the widest vectors that the processor has. With fused multiply-add, all give the same bits.
const Loops& loops() {
  static const Loops best = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
      return avx512_loops;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_loops;
#endif
    return basic_loops;
  }();
  return best;
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

/// Columns [column, column + columns) of B for inner indices [first, first + inner), strip by strip.
void pack_columns(const Factor& b, std::int64_t first, std::int64_t inner, std::int64_t column, std::int64_t columns,
                  double* to) {
  for (std::int64_t c = 0; c < columns; c += kStrip, to += kStrip * inner) {
    const std::int64_t present = std::min(kStrip, columns - c);
    if (present < kStrip) std::fill_n(to, kStrip * inner, 0.0);
    b.pack(first, inner, column + c, present, to, kStrip, 1);
  }
}

/// Numbers that are written before they are read: nothing is copied where it grows, and no page is touched for zeros.
class Scratch {
 public:
  double* get(std::int64_t size) {
    if (size_ < size) {
      elements_.reset();
      size_ = 0;
      elements_ = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(size));
      size_ = size;
    }
    return elements_.get();
  }

 private:
  std::unique_ptr<double[]> elements_;
  std::int64_t size_ = 0;
};

}  // namespace

template <typename T>
void DenseFactor<T>::pack(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, double* to,
                          std::int64_t row_step, std::int64_t column_step) const {
  const T* const from = elements_ + row * row_stride_ + column * column_stride_;
  if (column_stride_ == 1 && column_step == 1 && columns == kStrip) {
    if constexpr (std::is_same_v<T, float>) {
      loops().pack_floats(rows, from, row_stride_, to, row_step);
    } else {
      loops().pack_doubles(rows, from, row_stride_, to, row_step);
    }
  } else if (row_step == 1 && rows == kRows) {
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < kRows; ++i)
        to[i + j * column_step] = static_cast<double>(from[i * row_stride_ + j * column_stride_]);
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

constexpr std::int64_t kTileColumns = 256;                     // of a task
constexpr std::int64_t kFewTileColumns = 64;                   // where there is one block of rows
constexpr std::int64_t kWorthThreads = std::int64_t{1} << 20;  // products: fewer are done before a thread wakes up

/// Elements of B that are packed in a thread's own memory: wider panels have more than kPanel, but for inner axes so
/// long that the narrowest one has.
constexpr std::int64_t kKeptPanel = kPanel + kPanel / 2;
constexpr std::int64_t kKeptVector = std::int64_t{1} << 17;

/// Columns of the right factor, from `packed` on; or of `factor`, to be packed block by block of the inner axis.
struct Panel {
  const double* packed;
  const Factor* factor;
};

/// A tile of at most kRowBlock rows, of columns from the panel's first on.
void multiply_tile(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, std::int64_t k,
                   const Factor& a, const Panel& right, const ProductSink& sink) {
  // Kept from call to call: layers with many small products would spend their time on fresh pages.
  thread_local Scratch packed_a, packed_b, tile;
  const std::int64_t stride = (columns + kStrip - 1) / kStrip * kStrip;
  double* const result = tile.get((kRowBlock + kRows) * stride);
  std::fill_n(result, (rows + kRows) * stride, 0.0);
  for (std::int64_t first = 0; first < k; first += kInnerBlock) {
    const std::int64_t inner = std::min(kInnerBlock, k - first);
    double* const left = packed_a.get((kRowBlock + kRows) * kInnerBlock);
    pack_rows(a, row, rows, first, inner, left);
    const std::int64_t strip_step = kStrip * (right.factor == nullptr ? k : inner);
    const double* strips = nullptr;
    if (right.factor == nullptr) {
      strips = right.packed + first * kStrip;
    } else {
      double* const block = packed_b.get(stride * kInnerBlock);
      pack_columns(*right.factor, first, inner, column, columns, block);
      strips = block;
    }
    // A strip of B stays in the first cache for all rows; where there is one strip of rows, it goes over all of B.
    const std::int64_t together = rows <= kRows ? stride : kStrip;
    for (std::int64_t c = 0; c < stride; c += together) {
      const double* strip = left;
      for (std::int64_t r = 0; r < rows;) {
        const int height = strip_rows(rows - r);
        loops().multiply(height, together / kStrip, inner, strip, strips + c / kStrip * strip_step, strip_step,
                         result + r * stride + c, stride);
        strip += height * inner;
        r += height;
      }
    }
  }
  sink({row, rows, column, columns, result, stride});
}

/// Columns [column, column + columns) of the product, of which `right` has the factor.
void multiply_panel(std::int64_t m, std::int64_t column, std::int64_t columns, std::int64_t k, const Factor& a,
                    const Panel& right, const ProductSink& sink, Tiles tiles) {
  if (tiles == Tiles::kInOrder || m * columns * k < kWorthThreads) {
    for (std::int64_t row = 0; row < m; row += kRowBlock)
      multiply_tile(row, std::min(kRowBlock, m - row), column, columns, k, a, right, sink);
    return;
  }
  const std::int64_t width = m <= kRowBlock ? kFewTileColumns : kTileColumns;
  const std::int64_t across = (columns + width - 1) / width, down = (m + kRowBlock - 1) / kRowBlock;
  parallel_for(down * across, [&](std::int64_t task) {
    const std::int64_t row = task / across * kRowBlock, first = task % across * width;
    const Panel part{right.factor == nullptr ? right.packed + first * k : nullptr, right.factor};
    multiply_tile(row, std::min(kRowBlock, m - row), column + first, std::min(width, columns - first), k, a, part,
                  sink);
  });
}

/// Columns of B, packed by all threads where there are many.
void pack_panel(const Factor& b, std::int64_t k, std::int64_t column, std::int64_t columns, double* to) {
  const std::int64_t part =
      std::max(kWorthThreads / 4 / std::max<std::int64_t>(k, 1) / kStrip, std::int64_t{1}) * kStrip;
  parallel_ranges(columns, part, [&](std::int64_t first, std::int64_t end) {
    pack_columns(b, 0, k, column + first, end - first, to + first * k);
  });
}

}  // namespace

PackedFactor::PackedFactor(const Factor& b, std::int64_t k, std::int64_t n, Memory& memory)
    : k_(k), n_(n), elements_(DType::kFloat64, {(n + kStrip - 1) / kStrip, k, kStrip}, memory) {
  pack_panel(b, k, 0, n, elements_.as_mutable<double>().data());
}

std::uint64_t PackedFactor::bytes(std::int64_t k, std::int64_t n) {
  return static_cast<std::uint64_t>((n + kStrip - 1) / kStrip * kStrip * k) * sizeof(double);
}

void gemm(std::int64_t m, const Factor& a, const PackedFactor& b, const ProductSink& sink, Tiles tiles) {
  if (m <= 0) return;
  const std::int64_t k = b.inner(), n = b.columns(), width = panel_width(k);
  for (std::int64_t column = 0; column < n; column += width)
    multiply_panel(m, column, std::min(width, n - column), k, a, {b.columns_from(column), nullptr}, sink, tiles);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Factor& a, const Factor& b, Memory& memory,
          const ProductSink& sink, Tiles tiles) {
  if (m <= 0) return;
  thread_local Scratch packed_b;
  HostTensor counted;
  const std::int64_t width = panel_width(k);
  for (std::int64_t column = 0; column < n; column += width) {
    const std::int64_t columns = std::min(width, n - column);
    const std::int64_t elements = (columns + kStrip - 1) / kStrip * kStrip * std::max<std::int64_t>(k, 1);
    double* right = nullptr;
    if (elements <= kKeptPanel) {
      right = packed_b.get(elements);
    } else if (m <= kRowBlock || columns <= kStrip) {
      // Packed once for all rows anyway, or cheap beside the rows of A.
      multiply_panel(m, column, columns, k, a, {nullptr, &b}, sink, tiles);
      continue;
    } else {
      if (counted.is_absent()) counted = HostTensor(DType::kFloat64, {elements}, memory);
      right = counted.as_mutable<double>().data();
    }
    pack_panel(b, k, column, columns, right);
    multiply_panel(m, column, columns, k, a, {right, nullptr}, sink, tiles);
  }
}

bool is_better_turned(std::int64_t m, std::int64_t n) {
  const auto elements = [](std::int64_t rows, std::int64_t columns) {
    const std::int64_t whole = rows / kRows * kRows;
    return (whole + strip_rows(rows - whole)) * ((columns + kStrip - 1) / kStrip * kStrip);
  };
  return n <= kFewRows && elements(n, m) <= elements(m, n);
}

void add_scaled(double weight, const float* from, std::int64_t stride, std::int64_t count, double* to) {
  loops().row_floats(weight, from, stride, count, to);
}

void add_scaled(double weight, const double* from, std::int64_t stride, std::int64_t count, double* to) {
  loops().row_doubles(weight, from, stride, count, to);
}

HostTensor widened(const HostTensor& tensor, Memory& memory) {
  if (!is_float(tensor.dtype()) || is_wide(tensor.dtype())) return to_float64(tensor, memory);
  HostTensor wide(tensor.shape(), DType::kFloat32, memory);
  parallel_ranges(static_cast<std::int64_t>(tensor.size()), kWorthThreads / 4, [&](std::int64_t from, std::int64_t to) {
    alignas(64) std::array<double, kRow> row;
    for (auto first = static_cast<std::size_t>(from); first < static_cast<std::size_t>(to); first += kRow) {
      const std::size_t count = std::min(kRow, static_cast<std::size_t>(to) - first);
      load(tensor, first, count, row.data());
      store(wide, first, count, row.data());
    }
  });
  return wide;
}

Numbers::Numbers(HostTensor wide) : tensor_(std::move(wide)) {
  if (tensor_.dtype() == DType::kFloat32) {
    floats_ = tensor_.as<float>().data();
  } else {
    doubles_ = tensor_.as<double>().data();
  }
}

const Numbers& OperandNumbers::get() {
  if (!numbers_) numbers_.emplace(e_.widened(index_));
  return *numbers_;
}

const Numbers& OperandNumbers::keep() {
  e_.keep_widened(index_, get().tensor());
  return *numbers_;
}

namespace {

constexpr std::int64_t kVectorPart = 512;  // columns of a vector by a matrix that are computed together

/// a [1, k] times b [k, n] where b is dense along either axis: b is read in place.
bool multiply_vector(std::int64_t n, std::int64_t k, const Numbers::Matrix& a, const Numbers::Matrix& b, Memory& memory,
                     const ProductSink& sink, Tiles tiles) {
  if (b.column_stride != 1 && b.row_stride != 1) return false;
  thread_local Scratch vector;
  HostTensor counted;
  if (k > kKeptVector) counted = HostTensor(DType::kFloat64, {k}, memory);
  double* const x = k > kKeptVector ? counted.as_mutable<double>().data() : vector.get(std::max<std::int64_t>(k, 1));
  with_factor(a, [&](const Factor& left) { left.pack(0, 1, 0, k, x, 1, 1); });
  const auto multiply = [&](std::int64_t column, std::int64_t end) {
    thread_local Scratch sums;
    const std::int64_t columns = end - column, at = b.first + column * b.column_stride;
    double* const c = sums.get(kVectorPart);
    std::fill_n(c, columns, 0.0);
    const bool floats = b.numbers->are_floats();
    if (b.column_stride == 1 && floats) {
      loops().add_floats(columns, k, x, b.numbers->float_elements() + at, b.row_stride, c);
    } else if (b.column_stride == 1) {
      loops().add_doubles(columns, k, x, b.numbers->double_elements() + at, b.row_stride, c);
    } else if (floats) {
      loops().dot_floats(columns, k, x, b.numbers->float_elements() + at, b.column_stride, c);
    } else {
      loops().dot_doubles(columns, k, x, b.numbers->double_elements() + at, b.column_stride, c);
    }
    sink({0, 1, column, columns, c, columns});
  };
  if (tiles == Tiles::kAnyThread && n * k >= kWorthThreads) {
    parallel_ranges(n, kVectorPart, multiply);
  } else {
    for (std::int64_t column = 0; column < n; column += kVectorPart)
      multiply(column, std::min(n, column + kVectorPart));
  }
  return true;
}

}  // namespace

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Numbers::Matrix& a, const Numbers::Matrix& b,
          Memory& memory, const ProductSink& sink, Tiles tiles) {
  if (m == 1 && multiply_vector(n, k, a, b, memory, sink, tiles)) return;
  if (n == 1 && m > 1) {
    // The same product turned, of which the sink wants the columns as rows.
    const auto turned = [](const Numbers::Matrix& matrix) {
      return Numbers::Matrix{matrix.numbers, matrix.first, matrix.column_stride, matrix.row_stride};
    };
    const auto columns_as_rows = [&](const ProductTile& tile) {
      sink({tile.column, tile.columns, 0, 1, tile.elements, 1});
    };
    if (multiply_vector(m, k, turned(b), turned(a), memory, columns_as_rows, tiles)) return;
  }
  with_factor(a, [&](const Factor& left) {
    with_factor(b, [&](const Factor& right) { gemm(m, n, k, left, right, memory, sink, tiles); });
  });
}

}  // namespace tensorlint::runtime
