// Comparisons, logic and selection. Source: ONNX Equal, Less, Greater (opsets 1-19), LessOrEqual, GreaterOrEqual (12,
// 16), And, Or, Xor (1, 7), Not (1), Where (9, 16).
#include <algorithm>

#include "ir/ops/contents.h"
#include "ir/ops/elementwise.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

Dim truth(DimPool& pool, bool value) { return pool.constant(value ? 1 : 0); }

Dim equal(DimPool& pool, Dim a, Dim b) {
  if (pool.equal(a, b)) return truth(pool, true);
  return pool.never_equal(a, b) ? truth(pool, false) : Dim(Unknown::kDataDependent);
}

Dim less(DimPool& pool, Dim a, Dim b) {
  const Bounds difference = pool.bounds(pool.sub(a, b));
  if (difference.hi < 0) return truth(pool, true);
  return difference.lo >= 0 ? truth(pool, false) : Dim(Unknown::kDataDependent);
}

Dim not_of(DimPool& pool, Dim a) {
  const auto value = pool.as_constant(a);
  return value ? truth(pool, *value == 0) : Dim(Unknown::kDataDependent);
}

Dim greater(DimPool& pool, Dim a, Dim b) { return less(pool, b, a); }
Dim less_or_equal(DimPool& pool, Dim a, Dim b) { return not_of(pool, less(pool, b, a)); }
Dim greater_or_equal(DimPool& pool, Dim a, Dim b) { return not_of(pool, less(pool, a, b)); }

Dim and_of(DimPool& pool, Dim a, Dim b) {
  if (pool.is_constant(a, 0) || pool.is_constant(b, 0)) return truth(pool, false);
  return pool.as_constant(a) && pool.as_constant(b) ? truth(pool, true) : Dim(Unknown::kDataDependent);
}

Dim or_of(DimPool& pool, Dim a, Dim b) { return not_of(pool, and_of(pool, not_of(pool, a), not_of(pool, b))); }

Dim xor_of(DimPool& pool, Dim a, Dim b) {
  const auto x = pool.as_constant(a), y = pool.as_constant(b);
  return x && y ? truth(pool, (*x != 0) != (*y != 0)) : Dim(Unknown::kDataDependent);
}

// NaN compares as C++ does: equal to nothing, less than nothing.
bool float_equal(double a, double b) { return a == b; }
bool float_less(double a, double b) { return a < b; }
bool float_greater(double a, double b) { return a > b; }
bool float_less_or_equal(double a, double b) { return a <= b; }
bool float_greater_or_equal(double a, double b) { return a >= b; }

template <ElementFunction kIntegers, FloatComparison kFloats>
void compare(Inference& in) {
  binary_shape(in);
  if (in.opset() < 7) return;
  combine_elements(in, kIntegers);
  compare_floats(in, kFloats);
}

template <ElementFunction kFunction>
void logical(Inference& in) {
  binary_shape(in);
  if (in.opset() >= 7) combine_elements(in, kFunction);
}

void logical_not(Inference& in) {
  unary_shape(in);
  const Content* content = content_of(in, 0);
  if (content == nullptr || !content->floats.empty()) return;
  Dims elements;
  for (const Dim element : content->integers) elements.push_back(not_of(in.dims(), element));
  in.set_elements(0, std::move(elements));
}

void where(Inference& in) {
  in.set_range(0, join(in.operand(1).range, in.operand(2).range));
  broadcast_shape(in);
  if (in.failed() || in.result().shape == ShapeId::kUnranked) return;
  const Content* const contents[] = {content_of(in, 0), content_of(in, 1), content_of(in, 2)};
  if (std::find(std::begin(contents), std::end(contents), nullptr) != std::end(contents)) return;
  const auto target = in.facts().dims_of(in.result().shape);
  std::optional<std::vector<std::size_t>> from[3];
  for (int i = 0; i < 3; ++i) {
    from[i] = broadcast_indices(in.dims(), *in.shape(i), target);
    if (!from[i]) return;
  }
  const auto& [condition, x, y] = contents;
  if (!condition->floats.empty() || x->floats.empty() != y->floats.empty()) return;
  DimPool& pool = in.dims();
  Dims integers;
  std::vector<double> floats;
  for (std::size_t i = 0; i < from[0]->size(); ++i) {
    const auto chosen = pool.as_constant(condition->integers[(*from[0])[i]]);
    const std::size_t at_x = (*from[1])[i], at_y = (*from[2])[i];
    if (!x->floats.empty()) {
      if (!chosen) return;
      floats.push_back(*chosen != 0 ? x->floats[at_x] : y->floats[at_y]);
    } else if (chosen) {
      integers.push_back(*chosen != 0 ? x->integers[at_x] : y->integers[at_y]);
    } else {
      const bool same = pool.equal(x->integers[at_x], y->integers[at_y]);
      integers.push_back(same ? x->integers[at_x] : Dim(Unknown::kDataDependent));
    }
  }
  if (!floats.empty()) {
    in.set_floats(0, std::move(floats));
  } else if (x->floats.empty()) {
    in.set_elements(0, std::move(integers));
  }
}

double equal_element(const ElementCall& call) { return call.operands[0] == call.operands[1] ? 1 : 0; }
double less_element(const ElementCall& call) { return call.operands[0] < call.operands[1] ? 1 : 0; }
double greater_element(const ElementCall& call) { return call.operands[0] > call.operands[1] ? 1 : 0; }
double less_or_equal_element(const ElementCall& call) { return call.operands[0] <= call.operands[1] ? 1 : 0; }
double greater_or_equal_element(const ElementCall& call) { return call.operands[0] >= call.operands[1] ? 1 : 0; }
double and_element(const ElementCall& call) { return call.operands[0] != 0 && call.operands[1] != 0 ? 1 : 0; }
double or_element(const ElementCall& call) { return call.operands[0] != 0 || call.operands[1] != 0 ? 1 : 0; }
double xor_element(const ElementCall& call) { return (call.operands[0] != 0) != (call.operands[1] != 0) ? 1 : 0; }
double not_element(const ElementCall& call) { return call.operands[0] == 0 ? 1 : 0; }
double where_element(const ElementCall& call) { return call.operands[0] != 0 ? call.operands[1] : call.operands[2]; }

OpEntry binary(std::string_view name, InferFunction function) {
  return OpEntry(name).trait(OpTrait::kElementwise).infer(function).constraint(kBroadcastable);
}

const RegisterOps kRegisterLogic{
    binary("Equal", compare<equal, float_equal>).computes(Opcode::kEqual).element(equal_element),
    binary("Less", compare<less, float_less>).element(less_element).computes(Opcode::kCompare),
    binary("Greater", compare<greater, float_greater>).element(greater_element).computes(Opcode::kCompare),
    binary("LessOrEqual", compare<less_or_equal, float_less_or_equal>)
        .element(less_or_equal_element)
        .computes(Opcode::kCompare),
    binary("GreaterOrEqual", compare<greater_or_equal, float_greater_or_equal>)
        .element(greater_or_equal_element)
        .computes(Opcode::kCompare),
    binary("And", logical<and_of>).element(and_element).computes(Opcode::kAnd),
    binary("Or", logical<or_of>).element(or_element).computes(Opcode::kOr),
    binary("Xor", logical<xor_of>).element(xor_element).computes(Opcode::kXor),
    OpEntry("Not").computes(Opcode::kNot).element(not_element).trait(OpTrait::kElementwise).infer(logical_not),
    binary("Where", where).element(where_element).computes(Opcode::kWhere),
};

}  // namespace
}  // namespace tensorlint::ops
