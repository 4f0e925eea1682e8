// Matrix products. Source: ONNX MatMul (1, 9, 13), Gemm (1, 6, 7, 9, 11, 13), MatMulInteger (10), QLinearMatMul (10,
// 21), Det (11, 22).
#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/products.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"
#include "runtime/values/offsets.h"

namespace tensorlint::runtime {
namespace {

/// One product of the stack that numpy.matmul makes of operands with more than two axes.
struct Product {
  std::int64_t m, n, k, a_first, b_first, result_first;
};

/// Calls use(product) for the products of a · b; a vector is a matrix of one row or column.
template <typename Use>
void for_each_product(const HostTensor& a, const HostTensor& b, std::span<const std::int64_t> result, const Use& use) {
  Extents left = a.extents(), right = b.extents(), stack(result.begin(), result.end());
  if (left.size() > 1) stack.pop_back();
  if (right.size() > 1) stack.pop_back();
  if (left.size() == 1) left.insert(left.begin(), 1);
  if (right.size() == 1) right.push_back(1);
  const std::int64_t m = left[left.size() - 2], k = left.back(), n = right.back();
  left.resize(left.size() - 2);
  right.resize(right.size() - 2);
  const bool one_right = std::ranges::all_of(right, [](std::int64_t extent) { return extent == 1; });
  if (one_right && left == stack)
    return use(Product{static_cast<std::int64_t>(element_count(left)) * m, n, k, 0, 0, 0});
  std::vector<std::int64_t> a_strides = broadcast_strides(left, stack), b_strides = broadcast_strides(right, stack);
  for (std::int64_t& stride : a_strides) stride *= m * k;
  for (std::int64_t& stride : b_strides) stride *= k * n;
  Offsets<2> at(stack);
  at.strides(0, a_strides).strides(1, b_strides);
  if (at.is_empty()) return;
  std::int64_t index = 0;
  do {
    use(Product{m, n, k, at[0], at[1], index++ * m * n});
  } while (at.next());
}

/// Sums of products of integers, modulo 2^64. `row` has room for one of the result.
void integer_product(const Product& product, const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b,
                     List<std::int64_t>& row, HostTensor& result) {
  row.resize(static_cast<std::size_t>(product.n));
  for (std::int64_t i = 0; i < product.m; ++i) {
    std::ranges::fill(row, 0);
    for (std::int64_t k = 0; k < product.k; ++k) {
      const auto factor = static_cast<std::uint64_t>(a[static_cast<std::size_t>(product.a_first + i * product.k + k)]);
      const std::int64_t* const right = b.data() + product.b_first + k * product.n;
      for (std::size_t j = 0; j < row.size(); ++j)
        row[j] = static_cast<std::int64_t>(static_cast<std::uint64_t>(row[j]) +
                                           factor * static_cast<std::uint64_t>(right[j]));
    }
    store(result, static_cast<std::size_t>(product.result_first + i * product.n), row.size(), row.data());
  }
}

void store_tile(HostTensor& result, std::int64_t first, std::int64_t stride, const ProductTile& tile) {
  for (std::int64_t i = 0; i < tile.rows; ++i)
    store(result, static_cast<std::size_t>(first + (tile.row + i) * stride + tile.column),
          static_cast<std::size_t>(tile.columns), tile.elements + i * tile.stride);
}

/// The right factor: element (i, j) is number first + i * row_stride + j * column_stride of operand 1.
struct RightFactor {
  OperandNumbers& numbers;
  std::int64_t first, row_stride, column_stride;
  Numbers::Matrix of(const Numbers& all) const { return {&all, first, row_stride, column_stride}; }
};

/// a times b: the same product whether that is kept or not.
void multiply(Evaluation& e, std::int64_t m, std::int64_t n, std::int64_t k, const Numbers::Matrix& a,
              const RightFactor& b, const ProductSink& sink) {
  ConstantCache::Weights kept;
  if (m > 1 && m <= kFewRows && n > 1) {
    kept = e.kept_packed(1, b.first);
    if (kept == nullptr)
      with_factor(b.of(b.numbers.get()), [&](const Factor& right) { kept = e.keep_packed(1, b.first, right, k, n); });
  }
  if (kept == nullptr) return gemm(m, n, k, a, b.of(b.numbers.keep()), e.memory(), sink, Tiles::kAnyThread);
  with_factor(a, [&](const Factor& left) { gemm(m, left, *kept, sink, Tiles::kAnyThread); });
}

void matmul(Evaluation& e) {
  const HostTensor &a = e.operand(0), &b = e.operand(1);
  HostTensor& result = e.result();
  if (is_integer_or_bool(result.dtype())) {
    const std::vector<std::int64_t> left = e.integers(0), right = e.integers(1);
    List<std::int64_t> row(e.memory().resource());
    return for_each_product(a, b, result.extents(),
                            [&](const Product& each) { integer_product(each, left, right, row, result); });
  }
  const Numbers left(e.widened(0));
  OperandNumbers right(e, 1);
  for_each_product(a, b, result.extents(), [&](const Product& each) {
    multiply(e, each.m, each.n, each.k, {&left, each.a_first, each.k, 1}, {right, each.b_first, each.n, 1},
             [&](const ProductTile& tile) { store_tile(result, each.result_first, each.n, tile); });
  });
}

/// `tile` becomes alpha * tile + beta * addend, and the result.
struct Addend {
  double alpha, beta;
  const HostTensor* tensor;
  std::vector<std::int64_t> strides;

  void add(std::int64_t row, std::int64_t column, std::span<double> sums) const {
    if (alpha != 1)
      for (double& sum : sums) sum *= alpha;
    if (tensor == nullptr || beta == 0) return;
    std::array<double, kRow> addends;
    const std::int64_t first = row * strides[0] + column * strides[1];
    load(*tensor, static_cast<std::size_t>(first), strides[1] == 0 ? 1 : sums.size(), addends.data());
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += beta * addends[strides[1] == 0 ? 0 : j];
  }
};

/// Integers stay integers unless a factor is none.
void integer_gemm(Evaluation& e, std::int64_t m, std::int64_t n, std::int64_t k, bool turn_a, bool turn_b,
                  const Addend& addend) {
  const std::vector<std::int64_t> a = e.integers(0), b = e.integers(1);
  const std::vector<std::int64_t> c = addend.tensor != nullptr ? e.integers(2) : std::vector<std::int64_t>{};
  const bool scales = addend.alpha != 1 || addend.beta != 1;
  List<std::int64_t> row(static_cast<std::size_t>(n), e.memory().resource());
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      std::uint64_t sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += static_cast<std::uint64_t>(a[static_cast<std::size_t>(turn_a ? p * m + i : i * k + p)]) *
               static_cast<std::uint64_t>(b[static_cast<std::size_t>(turn_b ? j * k + p : p * n + j)]);
      const std::int64_t other =
          c.empty() ? 0 : c[static_cast<std::size_t>(i * addend.strides[0] + j * addend.strides[1])];
      row[static_cast<std::size_t>(j)] =
          scales ? truncated(addend.alpha * static_cast<double>(static_cast<std::int64_t>(sum)) +
                             addend.beta * static_cast<double>(other))
                 : static_cast<std::int64_t>(sum + static_cast<std::uint64_t>(other));
    }
    store(e.result(), static_cast<std::size_t>(i * n), row.size(), row.data());
  }
}

double terms_of_product(Evaluation& e) {
  return e.operand(0).rank() == 0 ? 1 : static_cast<double>(e.operand(0).extents().back());
}

double terms_of_gemm(Evaluation& e) {
  return static_cast<double>(e.operand(0).extent(e.in().int_attribute("transA", 0) != 0 ? 0 : 1)) + 1;
}

void gemm_operator(Evaluation& e) {
  const HostTensor& a = e.operand(0);
  HostTensor& result = e.result();
  const bool turn_a = e.in().int_attribute("transA", 0) != 0, turn_b = e.in().int_attribute("transB", 0) != 0;
  const std::int64_t m = result.extent(0), n = result.extent(1), k = a.extent(turn_a ? 0 : 1);
  Addend addend{
      e.in().float_attribute("alpha", 1), e.in().float_attribute("beta", 1), e.has(2) ? &e.operand(2) : nullptr, {}};
  if (e.asks_amplitude()) addend.alpha = std::fabs(addend.alpha), addend.beta = std::fabs(addend.beta);
  if (addend.tensor != nullptr) addend.strides = broadcast_strides(addend.tensor->extents(), result.extents());
  if (is_integer_or_bool(result.dtype())) return integer_gemm(e, m, n, k, turn_a, turn_b, addend);
  const Numbers left(e.widened(0));
  OperandNumbers right(e, 1);
  multiply(e, m, n, k, {&left, 0, turn_a ? 1 : k, turn_a ? m : 1}, {right, 0, turn_b ? 1 : n, turn_b ? k : 1},
           [&](const ProductTile& tile) {
             std::vector<double> row;
             for (std::int64_t i = 0; i < tile.rows; ++i) {
               row.assign(tile.elements + i * tile.stride, tile.elements + i * tile.stride + tile.columns);
               addend.add(tile.row + i, tile.column, row);
               store(result, static_cast<std::size_t>((tile.row + i) * n + tile.column), row.size(), row.data());
             }
           });
}

/// Strides of a scale or zero point in the extents of its factor: a list has one element a row of A, or a column of B.
std::vector<std::int64_t> parameter_strides(const HostTensor& parameter, const HostTensor& factor, bool by_row) {
  Extents extents = parameter.extents();
  if (extents.size() == 1 && by_row && factor.rank() > 1) extents.push_back(1);
  if (parameter.size() == 1) extents.clear();
  return broadcast_strides(extents, factor.extents());
}

/// The factor less its zero point, times its scale; without an operand of that index neither.
std::vector<double> dequantized(Evaluation& e, int factor, int zero, int scale, bool by_row) {
  std::vector<double> numbers = e.numbers(factor);
  const HostTensor& tensor = e.operand(factor);
  for (const int parameter : {zero, scale}) {
    if (!e.has(parameter) || numbers.empty()) continue;
    const std::vector<double> values = e.numbers(parameter);
    Offsets<1> at(tensor.extents());
    at.strides(0, parameter_strides(e.operand(parameter), tensor, by_row));
    for (double& number : numbers) {
      const double value = values[static_cast<std::size_t>(at[0])];
      number = parameter == zero ? number - value : number * value;
      at.next();
    }
  }
  return numbers;
}

/// Products of integers below 2^9 are exact in float64, and so are 2^35 of their sums.
void matmul_integer(Evaluation& e) {
  const HostTensor &a = e.operand(0), &b = e.operand(1);
  HostTensor& result = e.result();
  const Numbers left(dequantized(e, 0, 2, -1, true)), right(dequantized(e, 1, 3, -1, false));
  std::vector<std::int64_t> row;
  for_each_product(a, b, result.extents(), [&](const Product& each) {
    gemm(each.m, each.n, each.k, {&left, each.a_first, each.k, 1}, {&right, each.b_first, each.n, 1}, e.memory(),
         [&](const ProductTile& tile) {
           for (std::int64_t i = 0; i < tile.rows; ++i) {
             const double* const sums = tile.elements + i * tile.stride;
             row.resize(static_cast<std::size_t>(tile.columns));
             std::transform(sums, sums + tile.columns, row.begin(), truncated);
             store(result, static_cast<std::size_t>(each.result_first + (tile.row + i) * each.n + tile.column),
                   row.size(), row.data());
           }
         });
  });
}

/// Sums of integers are exact; their scales multiply them in float32, as runtimes do, so that ties round the same way.
void qlinear_matmul(Evaluation& e) {
  const HostTensor &a = e.operand(0), &b = e.operand(3);
  HostTensor& result = e.result();
  const Numbers left(dequantized(e, 0, 2, -1, true)), right(dequantized(e, 3, 5, -1, false));
  const std::vector<double> a_scales = e.numbers(1), b_scales = e.numbers(4), scales = e.numbers(6),
                            zeros = e.numbers(7);
  const bool is_integer = is_integer_or_bool(result.dtype());
  const auto bounds = is_integer ? std::pair(result.dtype() == DType::kInt8 ? -128.0 : 0.0,
                                             result.dtype() == DType::kInt8 ? 127.0 : 255.0)
                                 : std::pair(-HUGE_VAL, HUGE_VAL);
  const auto strides_a = parameter_strides(e.operand(1), a, true),
             strides_b = parameter_strides(e.operand(4), b, false);
  const auto strides = parameter_strides(e.operand(6), result, true),
             zero_strides = parameter_strides(e.operand(7), result, true);
  const auto last_two = [](std::span<const std::int64_t> list, bool row) {
    return list.size() < 2 ? (row ? 0 : list.back()) : list[list.size() - (row ? 2 : 1)];
  };
  std::vector<double> row;
  std::vector<std::int64_t> integers;
  // One scale a matrix of the stack is one a row of the folded product.
  const std::int64_t a_step = last_two(strides_a, true), b_step = last_two(strides_b, false),
                     step = last_two(strides, true), zero_step = last_two(zero_strides, true);
  for_each_product(a, b, result.extents(), [&](const Product& each) {
    gemm(each.m, each.n, each.k, {&left, each.a_first, each.k, 1}, {&right, each.b_first, each.n, 1}, e.memory(),
         [&](const ProductTile& tile) {
           const auto at = [](const std::vector<double>& values, std::int64_t index) {
             return static_cast<float>(values[static_cast<std::size_t>(index) % values.size()]);
           };
           for (std::int64_t i = 0; i < tile.rows; ++i) {
             const double* const sums = tile.elements + i * tile.stride;
             const std::int64_t r = tile.row + i, b_at = each.b_first / std::max<std::int64_t>(each.k, 1);
             const std::int64_t a_at = a_step * (each.a_first / std::max<std::int64_t>(each.k, 1) + r);
             const std::int64_t result_row = each.result_first / std::max<std::int64_t>(each.n, 1) + r;
             row.resize(static_cast<std::size_t>(tile.columns));
             for (std::int64_t j = 0; j < tile.columns; ++j) {
               const float scale = at(a_scales, a_at) * at(b_scales, b_step == 0 ? 0 : b_at + tile.column + j) /
                                   at(scales, step * result_row);
               double value = static_cast<double>(static_cast<float>(sums[j]) * scale);
               if (is_integer) value = std::nearbyint(value);
               row[static_cast<std::size_t>(j)] = std::clamp(
                   value + static_cast<double>(at(zeros, zero_step * result_row)), bounds.first, bounds.second);
             }
             const auto first = static_cast<std::size_t>(each.result_first + r * each.n + tile.column);
             if (is_integer) {
               integers.assign(row.begin(), row.end());
               store(result, first, integers.size(), integers.data());
             } else {
               store(result, first, row.size(), row.data());
             }
           }
         });
  });
}

/// By elimination with the largest element of each column as pivot.
double determinant(List<double>& matrix, std::size_t n) {
  double product = 1;
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row)
      if (std::fabs(matrix[row * n + column]) > std::fabs(matrix[pivot * n + column])) pivot = row;
    const double top = matrix[pivot * n + column];
    if (top == 0) return 0;
    if (pivot != column) {
      std::swap_ranges(matrix.begin() + static_cast<std::ptrdiff_t>(pivot * n),
                       matrix.begin() + static_cast<std::ptrdiff_t>(pivot * n + n),
                       matrix.begin() + static_cast<std::ptrdiff_t>(column * n));
      product = -product;
    }
    product *= top;
    for (std::size_t row = column + 1; row < n; ++row) {
      const double factor = matrix[row * n + column] / top;
      for (std::size_t j = column + 1; j < n; ++j) matrix[row * n + j] -= factor * matrix[column * n + j];
    }
  }
  return product;
}

void det(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  const auto n = static_cast<std::size_t>(data.extents().back());
  List<double> matrix(n * n, e.memory().resource());
  for (std::size_t i = 0; i < result.size(); ++i) {
    load(data, i * n * n, n * n, matrix.data());
    const double value = determinant(matrix, n);
    store(result, i, 1, &value);
  }
}

const RegisterEvaluators kProducts{
    Evaluator("MatMul").evaluate(matmul).error(Rounding::accumulates(terms_of_product)),
    Evaluator("Gemm").evaluate(gemm_operator).error(Rounding::accumulates(terms_of_gemm)),
    Evaluator("MatMulInteger").evaluate(matmul_integer).error(Rounding::exact()),
    Evaluator("QLinearMatMul").evaluate(qlinear_matmul).error(Rounding::composite()),
    Evaluator("Det").evaluate(det).error(Rounding::composite()),
};

}  // namespace
}  // namespace tensorlint::runtime
