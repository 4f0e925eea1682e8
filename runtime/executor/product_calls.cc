// Matrix products: transposes and broadcasting are strides of the request, so nothing is copied for them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/executor/kernel_matcher.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// Strides with which elements of `from` are those of `to`; nullopt where they cannot be stretched to that.
std::optional<std::vector<std::int64_t>> stretched(std::span<const std::int64_t> from,
                                                   std::span<const std::int64_t> to) {
  if (from.size() > to.size()) return std::nullopt;
  for (std::size_t axis = 0; axis < from.size(); ++axis)
    if (from[axis] != 1 && from[axis] != to[to.size() - from.size() + axis]) return std::nullopt;
  return broadcast_strides(from, to);
}

}  // namespace

bool KernelMatcher::add_product(NodeId node, std::string_view name) {
  if (name == "MatMul") return add_matmul(node), true;
  if (name == "Gemm") return add_gemm(node), true;
  return false;
}

void KernelMatcher::add_matmul(NodeId node) {
  const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
  auto left = extents(a), right = extents(b);
  auto stack = extents(expressions_.result(node));
  if (!left || !right || !stack) return leave(node, "its extents are not known before the run");
  if (left->empty() || right->empty()) return leave(node, "its operands do not fit");
  // A vector is a matrix of one row or column, which the result does not have.
  if (left->size() > 1) stack->pop_back();
  if (right->size() > 1) stack->pop_back();
  if (left->size() == 1) left->insert(left->begin(), 1);
  if (right->size() == 1) right->push_back(1);
  kernels::MatrixProduct request;
  request.m = (*left)[left->size() - 2];
  request.k = left->back();
  request.n = right->back();
  if ((*right)[right->size() - 2] != request.k) return leave(node, "its operands do not fit");
  left->resize(left->size() - 2);
  right->resize(right->size() - 2);
  const auto left_strides = stretched(*left, *stack), right_strides = stretched(*right, *stack);
  if (!left_strides || !right_strides) return leave(node, "its operands do not fit");
  request.a.row = request.k;
  request.a.column = 1;
  request.b.row = request.n;
  request.b.column = 1;
  for (std::size_t axis = 0; axis < stack->size(); ++axis) {
    if ((*stack)[axis] == 1) continue;
    if (request.batch_rank == kernels::kMaxBatchAxes)
      return leave(node, fmt::format("its matrices lie along more than {} axes", kernels::kMaxBatchAxes));
    request.batch[request.batch_rank] = (*stack)[axis];
    request.a.batch[request.batch_rank] = (*left_strides)[axis] * request.m * request.k;
    request.b.batch[request.batch_rank] = (*right_strides)[axis] * request.k * request.n;
    ++request.batch_rank;
  }
  const ValueId operands[] = {a, b};
  add_matrix_product(node, "matrix_product", operands, request);
}

void KernelMatcher::add_gemm(NodeId node) {
  const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1),
                addend = expressions_.operand(node, 2);
  const auto left = extents(a), right = extents(b), result = extents(expressions_.result(node));
  if (!left || !right || !result) return leave(node, "its extents are not known before the run");
  if (left->size() != 2 || right->size() != 2 || result->size() != 2) return leave(node, "its operands do not fit");
  const auto is_turned = [&](std::string_view key) {
    const Attribute* const attribute = model_.attribute(model_.node(node), key);
    return attribute != nullptr && attribute->i != 0;
  };
  const auto number = [&](std::string_view key) {
    const Attribute* const attribute = model_.attribute(model_.node(node), key);
    return attribute == nullptr ? 1.0 : static_cast<double>(attribute->f);
  };
  const bool turn_a = is_turned("transA"), turn_b = is_turned("transB");
  kernels::MatrixProduct request;
  request.m = (*left)[turn_a ? 1 : 0];
  request.k = (*left)[turn_a ? 0 : 1];
  request.n = (*right)[turn_b ? 0 : 1];
  if ((*right)[turn_b ? 1 : 0] != request.k || *result != Extents{request.m, request.n})
    return leave(node, "its operands do not fit");
  request.a.row = turn_a ? 1 : request.k;
  request.a.column = turn_a ? request.m : 1;
  request.b.row = turn_b ? 1 : request.n;
  request.b.column = turn_b ? request.k : 1;
  request.alpha = number("alpha");
  request.beta = number("beta");
  std::vector<ValueId> operands{a, b};
  if (addend != ValueId::kAbsent) {
    const auto added = extents(addend);
    if (!added) return leave(node, "its extents are not known before the run");
    const auto strides = stretched(*added, *result);
    if (!strides) return leave(node, "its operands do not fit");
    request.addend.row = (*strides)[0];
    request.addend.column = (*strides)[1];
    operands.push_back(addend);
  }
  add_matrix_product(node, addend == ValueId::kAbsent ? "matrix_product" : "matrix_product, addend", operands, request);
}

void KernelMatcher::add_matrix_product(NodeId node, std::string kernel, std::span<const ValueId> operands,
                                       kernels::MatrixProduct request) {
  const auto type = dtype(operands[0]);
  if (!type) return leave(node, "its dtype is not known before the run");
  for (const ValueId operand : operands)
    if (dtype(operand) != type) return leave(node, "its operands have different dtypes");
  if (!loss_dtype(*type)) return leave(node, fmt::format("there is no kernel for {}", DTypeSet(*type).to_text()));
  request.dtype = *loss_dtype(*type);
  KernelCall call{.kernel = std::move(kernel), .results = {{.value = expressions_.result(node)}}, .request = request};
  for (const ValueId operand : operands) call.operands.push_back({.value = operand});
  call.operands.resize(3);
  complete(std::move(call), operands, {node});
}

}  // namespace tensorlint::runtime
