// Joining and splitting along an axis. Source: ONNX Concat (opsets 1, 4, 11, 13), Split (1, 2, 11, 13, 18).
#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// Old exporters start a list with an empty 1-d tensor, which engines skip.
bool is_placeholder(const HostTensor& part, std::size_t rank) {
  return part.rank() == 1 && rank != 1 && part.size() == 0;
}

/// Extents of the result where inference has left them open, which is where there are placeholders.
Extents joined_extents(Evaluation& e, std::size_t rank) {
  Extents extents;
  std::size_t axis = 0;
  for (std::size_t i = 0; i < e.operand_count(); ++i) {
    const HostTensor& part = e.operand(static_cast<int>(i));
    if (is_placeholder(part, rank)) continue;
    if (extents.empty()) {
      extents = part.extents();
      axis = axis_attribute(e, 1, rank);
      if (axis >= rank) e.fail("axis {} is outside rank {}", e.in().int_attribute("axis", 1), rank);
      continue;
    }
    for (std::size_t k = 0; k < rank; ++k)
      if (part.rank() != rank || (k != axis && part.extent(k) != extents[k]))
        e.fail("operand {} is [{}], which does not fit the others", i, fmt::join(part.extents(), ", "));
    extents[axis] += part.extent(axis);
  }
  return extents;
}

void concat(Evaluation& e) {
  std::size_t rank = 0;
  for (std::size_t i = 0; i < e.operand_count(); ++i) rank = std::max(rank, e.operand(static_cast<int>(i)).rank());
  HostTensor& result =
      e.type_of_result().shape ? e.result() : e.allocate(0, e.operand(0).dtype(), joined_extents(e, rank));
  const AxisSplit whole = split_at(result.extents(), axis_attribute(e, 1, rank));
  std::size_t first = 0;
  for (std::size_t i = 0; i < e.operand_count(); ++i) {
    const HostTensor& part = e.operand(static_cast<int>(i));
    if (is_placeholder(part, rank) || whole.outer == 0) continue;
    const std::size_t run = part.size() / whole.outer;
    copy_blocks(result, part, {run, whole.outer, first, whole.extent * whole.inner, 0, run});
    first += run;
  }
}

void split(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const std::size_t axis = axis_attribute(e, 0, data.rank());
  const AxisSplit whole = split_at(data.extents(), axis);
  std::size_t first = 0;
  for (std::size_t r = 0; r < e.result_count(); ++r) {
    HostTensor& part = e.result(static_cast<int>(r));
    const std::size_t run = static_cast<std::size_t>(part.extent(axis)) * whole.inner;
    if (first + run > whole.extent * whole.inner) e.fail("the parts are larger than axis {}", axis);
    copy_blocks(part, data, {run, whole.outer, 0, run, first, whole.extent * whole.inner});
    first += run;
  }
}

const RegisterEvaluators kConcats{
    Evaluator("Concat").evaluate(concat).error(Rounding::exact()),
    Evaluator("Split").evaluate(split).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
