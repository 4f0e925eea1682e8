#include "ir/ops/elementwise.h"

#include "ir/ops/contents.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

/// For each element of the result its place in both operands; false where one is not followed.
bool pair_up(Inference& in, std::vector<std::size_t>& from_a, std::vector<std::size_t>& from_b) {
  if (in.failed() || in.result().shape == ShapeId::kUnranked || content_of(in, 0) == nullptr ||
      content_of(in, 1) == nullptr)
    return false;
  const auto target = in.facts().dims_of(in.result().shape);
  const auto a = broadcast_indices(in.dims(), *in.shape(0), target),
             b = broadcast_indices(in.dims(), *in.shape(1), target);
  if (!a || !b) return false;
  from_a = *a;
  from_b = *b;
  return true;
}

}  // namespace

void binary_shape(Inference& in) {
  const auto a = in.shape(0), b = in.shape(1);
  if (in.opset() < 7) {
    if (a) in.set_shape(0, *a);
    if (a && b && in.int_attribute("broadcast", 0) == 0) check_unidirectional(in, *b, *a, 1, 0);
    return;
  }
  if (a && b) in.set_shape(0, broadcast(in, *a, *b, 0, 1));
}

void broadcast_shape(Inference& in) {
  const auto shape = broadcast_operands(in, 0, static_cast<int>(in.operand_count()) - 1);
  if (shape) in.set_shape(0, *shape);
}

void unary_shape(Inference& in) {
  if (const auto shape = in.shape(0)) in.set_shape(0, *shape);
}

void combine_elements(Inference& in, ElementFunction function) {
  std::vector<std::size_t> from_a, from_b;
  if (!pair_up(in, from_a, from_b)) return;
  const Content *a = content_of(in, 0), *b = content_of(in, 1);
  if (!a->floats.empty() || !b->floats.empty()) return;
  std::vector<Dim> elements(from_a.size());
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = function(in.dims(), a->integers[from_a[i]], b->integers[from_b[i]]);
  in.set_elements(0, std::move(elements));
}

void compare_floats(Inference& in, FloatComparison function) {
  std::vector<std::size_t> from_a, from_b;
  if (!pair_up(in, from_a, from_b)) return;
  const Content *a = content_of(in, 0), *b = content_of(in, 1);
  if (a->floats.empty() || b->floats.empty()) return;
  std::vector<Dim> elements(from_a.size());
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = in.dims().constant(function(a->floats[from_a[i]], b->floats[from_b[i]]) ? 1 : 0);
  in.set_elements(0, std::move(elements));
}

}  // namespace tensorlint::ops
