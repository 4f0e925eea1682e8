// Element by element arithmetic with numpy broadcasting. Source: ONNX Add, Sub, Mul, Div, opsets 1, 6, 7, 13, 14.
// Until opset 6 operand B is stretched only with broadcast = 1, aligned at `axis`.
#include <fmt/format.h>

#include "ir/ops/elementwise.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint {
namespace {

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
