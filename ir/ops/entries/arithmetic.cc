// Element by element arithmetic with numpy broadcasting. Source: ONNX Add, Sub, Mul, Div, opsets 1, 6, 7, 13, 14.
// Until opset 6 operand B is stretched only with broadcast = 1, aligned at `axis`.
#include <fmt/format.h>

#include "ir/ops/shape_functions.h"

namespace tensorlint {
namespace {

using ElementFunction = Dim (*)(DimPool&, Dim, Dim);

/// Elements of the result from the elements of both integer operands, where these are tracked.
void combine_elements(Inference& in, ElementFunction function) {
  const auto a = in.elements(0), b = in.elements(1);
  const auto shape_a = in.shape(0), shape_b = in.shape(1);
  if (!a || !b || !shape_a || !shape_b || in.failed()) return;
  const auto target = in.facts().dims_of(in.result().shape);
  const auto from_a = broadcast_indices(in.dims(), *shape_a, target), from_b = broadcast_indices(in.dims(), *shape_b, target);
  if (!from_a || !from_b) return;
  std::vector<Dim> elements(from_a->size());
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = function(in.dims(), (*a)[(*from_a)[i]], (*b)[(*from_b)[i]]);
  in.set_elements(0, std::move(elements));
}

void binary_shape(Inference& in) {
  const auto a = in.shape(0), b = in.shape(1);
  if (in.opset() < 7) {
    // The result always has A's shape.
    if (a) in.set_shape(0, *a);
    if (a && b && in.int_attribute("broadcast", 0) == 0) check_unidirectional(in, *b, *a, 1, 0);
    return;
  }
  if (a && b) in.set_shape(0, broadcast(in, *a, *b, 0, 1));
}

template <ElementFunction kFunction>
void arithmetic(Inference& in) {
  binary_shape(in);
  // Results that leave the dtype wrap around: only int64 contents are followed, and dims are checked against overflow.
  if (in.opset() >= 7 && in.operand(0).dtypes == DTypeSet(DType::kInt64)) combine_elements(in, kFunction);
}

Dim add(DimPool& pool, Dim a, Dim b) { return pool.add(a, b); }
Dim subtract(DimPool& pool, Dim a, Dim b) { return pool.sub(a, b); }
Dim multiply(DimPool& pool, Dim a, Dim b) { return pool.mul(a, b); }

/// Integer division truncates towards zero (C++), which is floor where both signs are known and equal.
Dim divide(DimPool& pool, Dim a, Dim b) {
  const auto x = pool.as_constant(a), y = pool.as_constant(b);
  if (x && y) {
    const auto quotient = checked::trunc_div(*x, *y);
    return quotient ? pool.constant(*quotient) : Dim(Unknown::kOverflow);
  }
  if (pool.bounds(a).lo >= 0 && pool.bounds(b).lo >= 1) return pool.floor_div(a, b);
  return Dim(Unknown::kDataDependent);
}

OpEntry binary(std::string_view name, InferFunction function) {
  return OpEntry(name).trait(OpTrait::kElementwise).infer(function).constraint(kBroadcastable);
}

const RegisterOps kArithmetic{
    binary("Add", arithmetic<add>),
    binary("Sub", arithmetic<subtract>),
    binary("Mul", arithmetic<multiply>),
    binary("Div", arithmetic<divide>),
};

}  // namespace
}  // namespace tensorlint
