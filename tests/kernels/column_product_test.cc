// A stack of products as matrices that lie column by column: what it describes is the request, element by element, for
// strides and extents of all kinds.

#include "kernels/product/column_product.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

namespace tensorlint::kernels {
namespace {

/// Where an element of a matrix lies that is multiplied as the library does.
std::int64_t place_of(const ColumnMatrix& matrix, std::int64_t which, std::int64_t row, std::int64_t column) {
  if (matrix.is_transposed) std::swap(row, column);
  EXPECT_LT(row, matrix.rows);
  EXPECT_LT(column, matrix.columns);
  EXPECT_GE(matrix.leading, matrix.rows);
  return which * matrix.step + column * matrix.leading + row;
}

std::int64_t place_of(const MatrixProduct& request, const MatrixOperand& operand, std::int64_t which, std::int64_t row,
                      std::int64_t column) {
  std::int64_t at = row * operand.row + column * operand.column;
  for (int axis = request.batch_rank; axis-- > 0; which /= request.batch[axis])
    at += which % request.batch[axis] * operand.batch[axis];
  return at;
}

/// All elements that the sums read, and those of what is added and of the result, lie where the request says.
void expect_same(const MatrixProduct& request, bool has_addend, const ColumnProduct& product) {
  std::int64_t stack = 1;
  for (int axis = 0; axis < request.batch_rank; ++axis) stack *= request.batch[axis];
  // Rows of matrices that share b may have become one matrix.
  const std::int64_t rows = product.result.columns, merged = rows / request.m;
  ASSERT_EQ(product.stack * merged, stack);
  for (std::int64_t which = 0; which < product.stack; ++which)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < request.n; ++j) {
        const std::int64_t given = which * merged + i / request.m, row = i % request.m;
        EXPECT_EQ(place_of(product.result, which, j, i), (given * request.m + row) * request.n + j);
        for (std::int64_t k = 0; k < request.k; ++k) {
          EXPECT_EQ(place_of(product.first, which, j, k), place_of(request, request.b, given, k, j));
          EXPECT_EQ(place_of(product.second, which, k, i), place_of(request, request.a, given, row, k));
        }
        if (!has_addend) continue;
        const std::int64_t added = place_of(request, request.addend, given, row, j);
        EXPECT_EQ(product.kind == ColumnAddend::kBias ? j : place_of(product.addend, which, j, i), added);
      }
}

TEST(ColumnProduct, RandomStrides) {
  std::mt19937 random(7);
  const auto below = [&](int count) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(count)); };
  int taken = 0, biases = 0;
  for (int round = 0; round < 20000 && !::testing::Test::HasFailure(); ++round) {
    MatrixProduct request;
    request.m = 1 + below(3);
    request.n = 1 + below(3);
    request.k = 1 + below(3);
    request.batch_rank = static_cast<int>(below(3));
    for (int axis = 0; axis < request.batch_rank; ++axis) request.batch[axis] = 1 + below(3);
    const auto strides = [&](MatrixOperand& operand, std::int64_t rows, std::int64_t columns) {
      const bool turned = below(2) != 0;
      const std::int64_t pad = below(3) == 0 ? below(3) : 0;
      operand.row = turned ? 1 : columns + pad;
      operand.column = turned ? rows + pad : 1;
      if (below(5) == 0) operand.row = below(3);
      if (below(5) == 0) operand.column = below(3);
      std::int64_t step = rows * columns + pad * (turned ? columns : rows);
      for (int axis = request.batch_rank; axis-- > 0; step *= request.batch[axis])
        operand.batch[axis] = below(6) == 0 ? 0 : step;
    };
    strides(request.a, request.m, request.k);
    strides(request.b, request.k, request.n);
    strides(request.addend, request.m, request.n);
    if (below(3) == 0) {
      request.addend = {};
      request.addend.column = 1;
    }
    const bool has_addend = below(2) != 0;
    if (!has_addend) request.addend = {};
    ColumnProduct product;
    if (column_product(request, has_addend, &product) != nullptr) continue;
    ++taken;
    biases += product.kind == ColumnAddend::kBias ? 1 : 0;
    EXPECT_EQ(has_addend, product.kind != ColumnAddend::kNone);
    expect_same(request, has_addend, product);
  }
  EXPECT_GT(taken, 4000);
  EXPECT_GT(biases, 100);
}

TEST(ColumnProduct, RefusesWhatItCannotSay) {
  MatrixProduct request;
  request.m = 5;
  request.n = 3;
  request.k = 7;
  request.a.row = 7;
  request.a.column = 1;
  request.b.row = 3;
  request.b.column = 1;
  ColumnProduct product;
  EXPECT_EQ(column_product(request, false, &product), nullptr);
  const auto why = [&](auto change, bool has_addend = false) {
    MatrixProduct changed = request;
    change(changed);
    const char* const text = column_product(changed, has_addend, &product);
    return std::string(text == nullptr ? "" : text);
  };
  EXPECT_EQ(why([](MatrixProduct& p) { p.k = 0; }), "it is empty");
  EXPECT_EQ(why([](MatrixProduct& p) { p.alpha = 0; }), "its factor is 0");
  EXPECT_EQ(why([](MatrixProduct& p) { p.a.column = 2; }), "an operand lies neither row by row nor column by column");
  EXPECT_EQ(why([](MatrixProduct& p) { p.a.row = 6; }), "an operand lies neither row by row nor column by column");
  EXPECT_EQ(why([](MatrixProduct& p) { p.b.row = 0; }), "an operand lies neither row by row nor column by column");
  EXPECT_EQ(why([](MatrixProduct& p) { p.m = std::int64_t{1} << 31; }), "an extent exceeds 32 bits");
  const auto added = [](std::int64_t row, std::int64_t column, double beta, Dtype dtype = Dtype::kFloat32) {
    return [=](MatrixProduct& p) {
      p.addend.row = row;
      p.addend.column = column;
      p.beta = beta;
      p.dtype = dtype;
    };
  };
  EXPECT_EQ(why(added(3, 1, 2), true), "");
  EXPECT_EQ(why(added(0, 1, 1), true), "");
  EXPECT_EQ(product.kind, ColumnAddend::kBias);
  EXPECT_EQ(why(added(0, 1, 2), true), "the row that it adds is scaled");
  EXPECT_EQ(why(added(0, 1, 1, Dtype::kFloat64), true), "it adds a row of float64");
  EXPECT_EQ(why(added(1, 5, 1), true), "what it adds is neither a matrix that lies row by row nor one row");
  EXPECT_EQ(why(added(0, 0, 0), true), "");  // it is not read
  EXPECT_EQ(product.kind, ColumnAddend::kNone);
}

}  // namespace
}  // namespace tensorlint::kernels
