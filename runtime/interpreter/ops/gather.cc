// Elements picked by index. Source: ONNX Gather (opsets 1, 11, 13). Indices count from the back where negative.
#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/indices.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

void gather(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const std::size_t axis = axis_attribute(e, 0, data.rank());
  std::vector<std::int64_t> picks = e.integers(1);
  for (std::int64_t& pick : picks) pick = checked_index(e, pick, data.extent(axis), axis);
  pick_slices(e.result(), data, axis, picks);
}

const RegisterEvaluators kGathers{Evaluator("Gather").evaluate(gather).error(Rounding::exact())};

}  // namespace
}  // namespace tensorlint::runtime
