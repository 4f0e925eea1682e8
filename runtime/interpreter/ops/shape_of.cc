// Extents as values. Source: ONNX Shape (opsets 1, 13, 15 with start and end), Size (1-25).
#include <algorithm>

#include "runtime/interpreter/evaluator.h"

namespace tensorlint::runtime {
namespace {

/// The result's length is what inference makes of `start` and `end`.
void shape(Evaluation& e) {
  const Extents& extents = e.operand(0).extents();
  const auto rank = static_cast<std::int64_t>(extents.size());
  std::int64_t start = e.in().int_attribute("start", 0);
  if (start < 0) start += rank;
  start = std::clamp<std::int64_t>(start, 0, rank);
  const std::span<std::int64_t> to = e.result().as_mutable<std::int64_t>();
  std::copy_n(extents.begin() + start, to.size(), to.begin());
}

void size(Evaluation& e) { e.result().as_mutable<std::int64_t>()[0] = static_cast<std::int64_t>(e.operand(0).size()); }

const RegisterEvaluators kShapes{
    Evaluator("Shape").evaluate(shape).error(Rounding::exact()).skips_empty_operands(),
    Evaluator("Size").evaluate(size).error(Rounding::exact()).skips_empty_operands(),
};

}  // namespace
}  // namespace tensorlint::runtime
