// Parts of a tensor along axes. Source: ONNX Slice (opsets 1 with attributes, 10 with operands and steps, 11, 13).
#include "ir/ops/slicing.h"

#include "runtime/interpreter/evaluator.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// Extents follow from the operands by the specification, even where inference leaves one open because engines disagree
/// (backwards, to an end past the last element).
void slice(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const auto bounds = ops::read_bounds(e.in(), *e.in().shape(0));
  if (!bounds) e.fail("the axes to slice do not follow from the operands");
  const DimPool& pool = e.in().dims();
  Extents extents = data.extents();
  std::vector<std::int64_t> strides = strides_of(extents);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < bounds->axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(bounds->axes[i]);
    const auto start = pool.as_constant(bounds->starts[i]), end = pool.as_constant(bounds->ends[i]),
               step = pool.as_constant(bounds->steps[i]);
    if (!start || !end || !step) e.fail("where axis {} is sliced does not follow from the operands", axis);
    const auto [begin, count] = ops::constant_slice(data.extent(axis), *start, *end, *step);
    first += begin * strides[axis];
    if (count > 1) strides[axis] *= *step;  // a huge step is taken at most never
    extents[axis] = count;
  }
  copy_strided(e.allocate(0, data.dtype(), std::move(extents)), data, first, strides);
}

const RegisterEvaluators kSlices{Evaluator("Slice").evaluate(slice).error(Rounding::exact())};

}  // namespace
}  // namespace tensorlint::runtime
