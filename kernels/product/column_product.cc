#include "kernels/product/column_product.h"

#include <limits>

#include "kernels/product/plan.h"

namespace tensorlint::kernels {
namespace {

/// False where neither the elements of a row nor those of a column follow each other without overlap.
bool lay_out(const MatrixOperand& operand, std::int64_t rows, std::int64_t columns, ColumnMatrix* matrix) {
  if ((operand.column == 1 || columns == 1) && (operand.row >= columns || rows == 1)) {
    *matrix = {false, columns, rows, rows == 1 ? columns : operand.row, operand.batch[0]};
  } else if ((operand.row == 1 || rows == 1) && (operand.column >= rows || columns == 1)) {
    *matrix = {true, rows, columns, columns == 1 ? rows : operand.column, operand.batch[0]};
  } else {
    return false;
  }
  return true;
}

const char* lay_out_addend(const MatrixProduct& request, ColumnProduct* product) {
  const MatrixOperand& addend = request.addend;
  product->kind = ColumnAddend::kMatrix;
  if (lay_out(addend, request.m, request.n, &product->addend) && !product->addend.is_transposed) return nullptr;
  const bool is_row = addend.row == 0 && (addend.column == 1 || request.n == 1) && addend.batch[0] == 0;
  if (!is_row) return "what it adds is neither a matrix that lies row by row nor one row";
  if (request.beta != 1) return "the row that it adds is scaled";
  if (request.dtype == Dtype::kFloat64) return "it adds a row of float64";
  product->kind = ColumnAddend::kBias;
  return nullptr;
}

}  // namespace

const char* column_product(MatrixProduct request, bool has_addend, ColumnProduct* product) {
  *product = ColumnProduct{};
  if (request.beta == 0) has_addend = false;
  if (!has_addend) request.addend = {};
  for (int axis = 0; axis < request.batch_rank; ++axis)
    if (request.batch[axis] < 1) return "it is empty";
  if (request.m < 1 || request.n < 1 || request.k < 1) return "it is empty";
  // Then operands are not read, and what is not finite in them does not show.
  if (request.alpha == 0) return "its factor is 0";
  fold_batch(&request);
  if (request.batch_rank > 1) return "its matrices lie along several axes that are no single one";
  const bool is_stack = request.batch_rank == 1;
  if (!is_stack)
    for (MatrixOperand* const operand : {&request.a, &request.b, &request.addend}) operand->batch[0] = 0;
  product->stack = is_stack ? request.batch[0] : 1;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (product->stack > kMost || request.m > kMost || request.n > kMost || request.k > kMost)
    return "an extent exceeds 32 bits";
  if (!lay_out(request.a, request.m, request.k, &product->second) ||
      !lay_out(request.b, request.k, request.n, &product->first))
    return "an operand lies neither row by row nor column by column";
  product->result = {false, request.n, request.m, request.n, is_stack ? request.m * request.n : 0};
  return has_addend ? lay_out_addend(request, product) : nullptr;
}

}  // namespace tensorlint::kernels
