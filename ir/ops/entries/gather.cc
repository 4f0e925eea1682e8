// Elements picked by index. Source: ONNX Gather (opsets 1, 11, 13). Indices count from the back where negative.
#include <algorithm>

#include "ir/ops/contents.h"
#include "ir/ops/indexing.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kGatherAxis{"gather_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};
const Constraint kGatherIndex{"gather_index_in_range", ConstraintKind::kIndexRange, "-extent <= index < extent"};

void gather_elements(Inference& in, std::size_t axis) {
  if (content_of(in, 0) == nullptr || in.failed()) return;
  const std::vector<std::int64_t> extents = *constant_extents(in.dims(), *in.shape(0));
  const Content* picked = content_of(in, 1);
  const auto indices_shape = in.shape(1);
  if (picked == nullptr || !picked->floats.empty() || !indices_shape) return;
  const auto picks = constant_extents(in.dims(), picked->integers);
  if (!picks) return;
  std::size_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(extents[i]);
  for (std::size_t i = axis + 1; i < extents.size(); ++i) inner *= static_cast<std::size_t>(extents[i]);
  if (element_total(extents) == 0 || outer * inner * picks->size() > kMaxContent) return;
  std::vector<std::size_t> indices;
  for (std::size_t block = 0; block < outer; ++block) {
    for (const std::int64_t pick : *picks) {
      const std::int64_t at = pick < 0 ? pick + extents[axis] : pick;
      if (at < 0 || at >= extents[axis]) return;
      for (std::size_t k = 0; k < inner; ++k)
        indices.push_back((block * static_cast<std::size_t>(extents[axis]) + static_cast<std::size_t>(at)) * inner + k);
    }
  }
  select_elements(in, 0, 0, indices);
}

void gather(Inference& in) {
  in.set_range(0, in.operand(0).range);
  const auto data = in.shape(0), indices = in.shape(1);
  if (!data) return;
  const auto axis = normalise_axis(in, in.int_attribute("axis", 0), static_cast<int>(data->size()), 0, kGatherAxis);
  if (!axis) {
    if (indices && !data->empty()) in.set_shape(0, unknown_dims(data->size() + indices->size() - 1, Unknown::kTainted));
    return;
  }
  const auto at = static_cast<std::size_t>(*axis);
  check_indices(in, kGatherIndex, 1, (*data)[at], 0, *axis);
  if (!indices) return;
  Dims result = copy_dims(data->first(at));
  result.insert(result.end(), indices->begin(), indices->end());
  result.insert(result.end(), data->begin() + *axis + 1, data->end());
  in.set_shape(0, result);
  gather_elements(in, at);
}

const RegisterOps kRegisterGather{
    OpEntry("Gather")
        .computes(Opcode::kGather)
        .infer(gather)
        .index("indices")
        .constraint(kGatherAxis)
        .constraint(kGatherIndex),
};

}  // namespace
}  // namespace tensorlint::ops
