#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/values/host_tensor.h"

namespace tensorlint::runtime {

class Evaluation;
class Memory;

/// Products of matrices in float64, tile by tile: each element is the sum of its products in the order of the inner
/// axis, but for a vector by a matrix whose inner axis is the dense one, which sums every 16th product. Its bits depend
/// neither on tiles nor on the size of the processor's vectors, only on whether it has fused multiply-add.

/// A factor of a product: a matrix that need not lie in memory as one.
class Factor {
 public:
  virtual ~Factor() = default;
  /// Element (row + i, column + j) to to[i * row_step + j * column_step].
  virtual void pack(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, double* to,
                    std::int64_t row_step, std::int64_t column_step) const = 0;
};

/// float or double elements in memory, (i, j) at i * row_stride + j * column_stride. Strides may be 0.
template <typename T>
class DenseFactor : public Factor {
 public:
  DenseFactor(const T* elements, std::int64_t row_stride, std::int64_t column_stride)
      : elements_(elements), row_stride_(row_stride), column_stride_(column_stride) {}
  void pack(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, double* to,
            std::int64_t row_step, std::int64_t column_step) const override;

 private:
  const T* elements_;
  std::int64_t row_stride_, column_stride_;
};

extern template class DenseFactor<float>;
extern template class DenseFactor<double>;

/// Rows of `factor` as columns.
class TurnedFactor : public Factor {
 public:
  explicit TurnedFactor(const Factor& factor) : factor_(factor) {}
  void pack(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, double* to,
            std::int64_t row_step, std::int64_t column_step) const override {
    factor_.pack(column, columns, row, rows, to, column_step, row_step);
  }

 private:
  const Factor& factor_;
};

/// A finished tile of the product.
struct ProductTile {
  std::int64_t row, rows, column, columns;
  const double* elements;  ///< (i, j) of the tile at i * stride + j
  std::int64_t stride;
};
using ProductSink = std::function<void(const ProductTile&)>;

/// How a sink gets its tiles: each where it lies, in the thread that computed it, or one after the other.
enum class Tiles : std::uint8_t { kInOrder, kAnyThread };

/// b [k, n] as gemm reads it, for a factor that many products share.
class PackedFactor {
 public:
  PackedFactor(const Factor& b, std::int64_t k, std::int64_t n, Memory& memory);
  std::int64_t inner() const { return k_; }
  std::int64_t columns() const { return n_; }
  const double* columns_from(std::int64_t column) const { return elements_.as<double>().data() + column * k_; }
  /// That one of this size takes.
  static std::uint64_t bytes(std::int64_t k, std::int64_t n);

 private:
  std::int64_t k_, n_;
  HostTensor elements_;
};

/// The same product; `b` tells n and k.
void gemm(std::int64_t m, const Factor& a, const PackedFactor& b, const ProductSink& sink,
          Tiles tiles = Tiles::kInOrder);

/// a [m, k] times b [k, n]. `sink` gets every tile of the result once, also where k is 0. What is packed takes a few
/// MiB a thread, which are kept from call to call; where a long inner axis takes more, `memory` counts it.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Factor& a, const Factor& b, Memory& memory,
          const ProductSink& sink, Tiles tiles = Tiles::kInOrder);

/// Few rows: a right factor that many such products share had better be packed once. Follows from shapes alone.
inline constexpr std::int64_t kFewRows = 64;
/// b times a, of which a has few columns, takes fewer steps turned.
bool is_better_turned(std::int64_t m, std::int64_t n);

/// to[i] += weight * from[i * stride], for `count` of them.
void add_scaled(double weight, const float* from, std::int64_t stride, std::int64_t count, double* to);
void add_scaled(double weight, const double* from, std::int64_t stride, std::int64_t count, double* to);

/// Products read elements of this dtype as they are.
inline bool is_wide(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat64; }
/// Other numbers in one of these dtypes: the narrower floats in float32, which holds each of them.
HostTensor widened(const HostTensor& tensor, Memory& memory);

/// The elements of a numeric tensor as floats or doubles that a factor can refer to: in place where they are that, else
/// converted, which is exact but for integers above 2^53.
class Numbers {
 public:
  Numbers(const HostTensor& tensor, Memory& memory)
      : Numbers(is_wide(tensor.dtype()) ? tensor : widened(tensor, memory)) {}
  explicit Numbers(HostTensor wide);
  const HostTensor& tensor() const { return tensor_; }
  explicit Numbers(std::vector<double> elements) : elements_(std::move(elements)), doubles_(elements_.data()) {}
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  bool are_floats() const { return floats_ != nullptr; }
  const float* float_elements() const { return floats_; }
  const double* double_elements() const { return doubles_; }
  double operator[](std::size_t index) const {
    return floats_ != nullptr ? static_cast<double>(floats_[index]) : doubles_[index];
  }

  /// A factor of these elements: (i, j) is number first + i * row_stride + j * column_stride.
  struct Matrix {
    const Numbers* numbers;
    std::int64_t first, row_stride, column_stride;
  };

 private:
  const float* floats_ = nullptr;
  HostTensor tensor_;
  std::vector<double> elements_;
  const double* doubles_ = nullptr;
};

/// Those of an operand, which are converted once something asks for them.
class OperandNumbers {
 public:
  OperandNumbers(Evaluation& e, int index) : e_(e), index_(index) {}
  OperandNumbers(const OperandNumbers&) = delete;
  OperandNumbers& operator=(const OperandNumbers&) = delete;
  int index() const { return index_; }
  /// Not from several threads at once.
  const Numbers& get();
  /// The same, for later calls of the node, too.
  const Numbers& keep();

 private:
  Evaluation& e_;
  int index_;
  std::optional<Numbers> numbers_;
};

/// Calls use(elements) with the floats, or with the doubles.
template <typename Use>
void with_elements(const Numbers& numbers, const Use& use) {
  if (numbers.are_floats()) {
    use(numbers.float_elements());
  } else {
    use(numbers.double_elements());
  }
}

/// Calls use(factor) with the matrix as a factor.
template <typename Use>
void with_factor(const Numbers::Matrix& matrix, const Use& use) {
  with_elements(*matrix.numbers, [&](const auto* elements) {
    use(DenseFactor(elements + matrix.first, matrix.row_stride, matrix.column_stride));
  });
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Numbers::Matrix& a, const Numbers::Matrix& b,
          Memory& memory, const ProductSink& sink, Tiles tiles = Tiles::kInOrder);

}  // namespace tensorlint::runtime
