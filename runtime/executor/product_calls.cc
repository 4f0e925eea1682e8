// Matrix products: transposes and broadcasting are strides of the request, so nothing is copied for them.
#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "ir/ops/einsum.h"
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

/// An operand of Einsum: by label how far its next element is, 0 where it is stretched.
struct EinsumFactor {
  std::map<int, std::int64_t> strides;

  std::int64_t stride(int label) const {
    const auto found = strides.find(label);
    return found == strides.end() ? 0 : found->second;
  }
  bool has(int label) const { return strides.contains(label); }
};

/// Axes of both factors that are walked as one.
struct EinsumAxis {
  std::int64_t extent = 1, first = 0, second = 0;

  /// Puts an axis before it; false where its elements do not follow each other at one distance.
  bool extend(std::int64_t with, std::int64_t its_first, std::int64_t its_second) {
    if (with == 1) return true;
    if (extent != 1 && (its_first != first * extent || its_second != second * extent)) return false;
    if (extent == 1) {
      first = its_first;
      second = its_second;
    }
    extent *= with;
    return true;
  }
};

}  // namespace

bool KernelMatcher::add_product(NodeId node, std::string_view name) {
  if (name == "MatMul") return add_matmul(node), true;
  if (name == "Gemm") return add_gemm(node), true;
  if (name == "Einsum") return add_einsum(node), true;
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

/// The last axes of the result that only one factor has are its columns, those of the other one before them its rows,
/// and the rest are a stack, in which a factor repeats along axes that it lacks.
void KernelMatcher::add_einsum(NodeId node) {
  const auto operands = model_.operands(model_.node(node));
  const auto result = extents(expressions_.result(node));
  const Attribute* const attribute = model_.attribute(model_.node(node), "equation");
  ops::Message error;
  const auto equation = attribute == nullptr ? std::nullopt : ops::parse_einsum(attribute->s, error);
  if (!equation || equation->terms.size() != operands.size()) return leave(node, "its operands do not fit");
  if (operands.size() != 2) return leave(node, fmt::format("there is no kernel for {} operands", operands.size()));
  if (!result) return leave(node, "its extents are not known before the run");
  EinsumFactor factors[2];
  std::map<int, std::int64_t> label_extents;
  std::vector<int> labels[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const auto shape = extents(operands[i]);
    if (!shape) return leave(node, "its extents are not known before the run");
    if (shape->size() < equation->terms[i].letters.size()) return leave(node, "its operands do not fit");
    labels[i] = ops::einsum_labels(equation->terms[i], shape->size());
    if (labels[i].size() != shape->size()) return leave(node, "its operands do not fit");
    const std::vector<std::int64_t> own = strides_of(*shape);
    for (std::size_t axis = 0; axis < shape->size(); ++axis) {
      std::int64_t& extent = label_extents.try_emplace(labels[i][axis], 1).first->second;
      if (extent == 1) extent = (*shape)[axis];
      if (!factors[i].strides.emplace(labels[i][axis], (*shape)[axis] == 1 ? 0 : own[axis]).second)
        return leave(node, "there is no kernel for diagonals");
    }
  }
  const ops::EinsumTerm term = equation->result ? *equation->result : ops::implied_result(equation->terms);
  const std::vector<int> made = ops::einsum_labels(term, result->size());
  if (made.size() != result->size()) return leave(node, "its operands do not fit");
  const auto is_made = [&](int label) { return std::ranges::find(made, label) != made.end(); };
  EinsumAxis inner, columns, rows;
  for (const int label : std::views::reverse(labels[0])) {
    if (is_made(label) || label_extents.at(label) == 1) continue;
    if (!factors[1].has(label)) return leave(node, "there is no kernel for sums of one operand");
    if (!inner.extend(label_extents.at(label), factors[0].stride(label), factors[1].stride(label)))
      return leave(node, "there is no kernel for sums over axes that are not adjacent");
  }
  for (const int label : labels[1])
    if (!is_made(label) && label_extents.at(label) != 1 && !factors[0].has(label))
      return leave(node, "there is no kernel for sums of one operand");
  // The factor that has the last axis alone is the second one.
  std::size_t second = 1;
  for (const int label : std::views::reverse(made)) {
    if (label_extents.at(label) == 1) continue;
    if (!factors[1].has(label)) second = 0;
    break;
  }
  const EinsumFactor &left = factors[1 - second], &right = factors[second];
  kernels::MatrixProduct request;
  std::size_t at = made.size();
  for (; at > 0 && !left.has(made[at - 1]); --at)
    if (!columns.extend(label_extents.at(made[at - 1]), 0, right.stride(made[at - 1]))) break;
  for (; at > 0 && !right.has(made[at - 1]); --at)
    if (!rows.extend(label_extents.at(made[at - 1]), left.stride(made[at - 1]), 0)) break;
  request.m = rows.extent;
  request.k = inner.extent;
  request.n = columns.extent;
  request.a.row = rows.first;
  request.a.column = second == 1 ? inner.first : inner.second;
  request.b.row = second == 1 ? inner.second : inner.first;
  request.b.column = columns.second;
  for (std::size_t axis = 0; axis < at; ++axis) {
    if ((*result)[axis] == 1) continue;
    if (request.batch_rank == kernels::kMaxBatchAxes)
      return leave(node, fmt::format("its matrices lie along more than {} axes", kernels::kMaxBatchAxes));
    request.batch[request.batch_rank] = (*result)[axis];
    request.a.batch[request.batch_rank] = left.stride(made[axis]);
    request.b.batch[request.batch_rank] = right.stride(made[axis]);
    ++request.batch_rank;
  }
  const ValueId ordered[] = {operands[1 - second], operands[second]};
  add_matrix_product(node, "matrix_product", ordered, request);
}

void KernelMatcher::add_matrix_product(NodeId node, std::string kernel, std::span<const ValueId> operands,
                                       kernels::MatrixProduct request) {
  const auto type = dtype(operands[0]);
  if (!type) return leave(node, "its dtype is not known before the run");
  for (const ValueId operand : operands)
    if (dtype(operand) != type) return leave(node, "its operands have different dtypes");
  if (!float_dtype(*type)) return leave(node, fmt::format("there is no kernel for {}", DTypeSet(*type).to_text()));
  request.dtype = *float_dtype(*type);
  KernelCall call{.kernel = std::move(kernel),
                  .results = {{.value = expressions_.result(node)}},
                  .request = std::make_shared<const kernels::MatrixProduct>(request)};
  for (const ValueId operand : operands) call.operands.push_back({.value = operand});
  call.operands.resize(3);
  complete(std::move(call), operands, {node});
}

}  // namespace tensorlint::runtime
