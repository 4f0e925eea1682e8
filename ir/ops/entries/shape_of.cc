// Extents as values. Source: ONNX Shape (opsets 1, 13, 15 with start and end, ... 25), Size (1-25).
#include <algorithm>

#include "ir/ops/contents.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

constexpr double kLargestExtent = 9223372036854775808.0;  // 2^63: INT64_MAX rounded outwards

/// start and end of Shape: counted from the back where negative, then clamped to the axes that there are.
std::size_t clamp_axis(std::int64_t axis, std::size_t rank) {
  const auto limit = static_cast<std::int64_t>(rank);
  if (axis < 0) axis += limit;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(axis, 0, limit));
}

void shape(Inference& in) {
  const auto data = in.shape(0);
  in.set_range(0, {0, kLargestExtent, false});
  if (!data) {
    in.set_shape(0, unknown_dims(1));
    return;
  }
  const std::size_t start = clamp_axis(in.int_attribute("start", 0), data->size());
  const std::size_t end =
      std::max(start, clamp_axis(in.int_attribute("end", static_cast<std::int64_t>(data->size())), data->size()));
  const Dim length[] = {in.dims().constant(static_cast<std::int64_t>(end - start))};
  in.set_shape(0, length);
  in.set_elements(0, copy_dims(data->subspan(start, end - start)));
}

void size(Inference& in) {
  in.set_range(0, {0, kLargestExtent, false});
  in.set_shape(0, {});
  if (const auto data = in.shape(0)) in.set_elements(0, {element_count(in.dims(), *data)});
}

const RegisterOps kRegisterShapeOf{
    OpEntry("Shape").computes(Opcode::kShape).trait(OpTrait::kShapeOf).device(DeviceRule::kHostResults).infer(shape),
    OpEntry("Size").trait(OpTrait::kShapeOf).device(DeviceRule::kHostResults).infer(size),
};

}  // namespace
}  // namespace tensorlint::ops
