// Axes rearranged, stretched and repeated. Source: ONNX Transpose (opset 1), Expand (8), Tile (1, 6).
#include "runtime/interpreter/evaluator.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

void transpose(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const auto perm = e.in().ints_attribute("perm");
  const std::vector<std::int64_t> own = strides_of(data.extents());
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < data.rank(); ++i)
    strides.push_back(own[perm ? static_cast<std::size_t>((*perm)[i]) : data.rank() - 1 - i]);
  copy_strided(e.result(), data, 0, strides);
}

void expand(Evaluation& e) {
  HostTensor& result = e.result();
  copy_strided(result, e.operand(0), 0, broadcast_strides(e.operand(0).extents(), result.extents()));
}

/// Each axis of the result is two: which repeat, and where in it.
void tile(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  if (result.size() == 0) return;
  const std::vector<std::int64_t> own = strides_of(data.extents()), whole = strides_of(result.extents());
  std::vector<std::int64_t> extents, to, from;
  for (std::size_t axis = 0; axis < data.rank(); ++axis) {
    const std::int64_t extent = data.extent(axis);
    extents.insert(extents.end(), {result.extent(axis) / extent, extent});
    to.insert(to.end(), {whole[axis] * extent, whole[axis]});
    from.insert(from.end(), {0, own[axis]});
  }
  copy_region(result, {0, to}, data, {0, from}, extents);
}

const RegisterEvaluators kRearranged{
    Evaluator("Transpose").evaluate(transpose).error(Rounding::exact()),
    Evaluator("Expand").evaluate(expand).error(Rounding::exact()),
    Evaluator("Tile").evaluate(tile).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
