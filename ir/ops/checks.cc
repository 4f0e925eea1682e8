#include "ir/ops/checks.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tensorlint::ops {

bool check_shape(Inference& in, int operand, std::span<const Dim> expected, const Constraint& constraint,
                 std::string_view what, int reference) {
  const auto shape = in.shape(operand);
  if (!shape) return true;
  DimPool& pool = in.dims();
  bool fits = shape->size() == expected.size();
  for (std::size_t i = 0; fits && i < expected.size(); ++i)
    // A difference that vanishes for some legal extent proves nothing.
    fits = !pool.differ((*shape)[i], expected[i]) || pool.bounds(pool.sub((*shape)[i], expected[i])).contains(0);
  if (fits) return true;
  std::vector<int> operands{operand};
  if (reference >= 0) operands.push_back(reference);
  const ShapeId reference_shape = in.has(reference) ? in.operand(reference).shape : ShapeId::kUnranked;
  const Message because =
      reference >= 0 ? Message(" to fit {} of shape {}", OperandRef(reference), reference_shape) : Message();
  in.fail(constraint, std::move(operands),
          {"{} {} has shape {}, it has to have shape {}{}", what, OperandRef(operand), *shape, expected, because});
  return false;
}

bool check_rank(Inference& in, int operand, std::initializer_list<std::size_t> ranks, const Constraint& constraint) {
  const auto shape = in.shape(operand);
  if (!shape || std::find(ranks.begin(), ranks.end(), shape->size()) != ranks.end()) return true;
  in.fail(constraint, {operand},
          {"{} of shape {} has rank {}, {} needs {}", OperandRef(operand), *shape, shape->size(), in.call().name,
           joined(ranks, " or ")});
  return false;
}

bool check_list(Inference& in, int operand) {
  const auto shape = in.shape(operand);
  if (!shape || shape->size() == 1) return true;
  if (in.failed()) return false;  // no list, since it is another operand's place: of the wrong dtype, too
  Message message("{} of shape {} has rank {}, {} expects a list of rank 1", OperandRef(operand), *shape, shape->size(),
                  in.call().name);
  const std::string_view name = in.call().name;
  if (!shape->empty() && (name == "Expand" || name == "ConstantOfShape" || name == "Resize")) {
    in.fails_somewhere(kIsList, {operand}, std::move(message),
                       {"the engine is not onnxruntime, which reads the elements in their order"});
    return true;
  }
  in.fail(kIsList, {operand}, std::move(message));
  return false;
}

bool check_one_element(Inference& in, int operand, const Constraint& constraint, std::string_view what) {
  const auto shape = in.shape(operand);
  if (!shape) return true;
  const DimPool& pool = in.dims();
  const bool one = std::all_of(shape->begin(), shape->end(), [&](Dim dim) { return pool.bounds(dim).contains(1); });
  if (one) return true;
  in.fail(constraint, {operand}, {"{} {} has shape {}, it has to have one element", what, OperandRef(operand), *shape});
  return false;
}

bool check_choice(Inference& in, std::string_view attribute, std::string_view text,
                  std::initializer_list<std::string_view> allowed, const Constraint& constraint) {
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return true;
  in.fail(
      constraint, {},
      {"{} of {} is `{}`, it has to be {}", AttributeName(attribute), in.call().name, text, joined(allowed, " or ")});
  return false;
}

Dim dim_of(const Inference& in, int operand, std::size_t index) {
  const auto shape = in.shape(operand);
  return shape && index < shape->size() ? (*shape)[index] : Dim(Unknown::kNotTracked);
}

Dim better(const DimPool& pool, Dim a, Dim b) {
  if (a == b || a.is_unknown() || pool.as_constant(b)) return b;
  return pool.is_named(a) || !pool.is_named(b) ? a : b;
}

}  // namespace tensorlint::ops
