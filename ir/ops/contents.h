#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/ops/inference.h"

namespace tensorlint::ops {

/// Elements of small tensors, which inference follows so that shapes computed from shapes stay exact.

/// Extents of a shape that is constant and has at most kMaxContent elements; nullopt otherwise.
std::optional<std::vector<std::int64_t>> followed_extents(const DimPool& pool, std::span<const Dim> shape);

/// Elements of such a shape.
std::size_t element_total(std::span<const std::int64_t> extents);

/// Row-major strides in elements.
std::vector<std::size_t> strides_of(std::span<const std::int64_t> extents);

/// The content of an operand, with as many elements as its constant shape has; null where not followed.
const Content* content_of(Inference& in, int operand);

/// Element i of the result is element indices[i] of the operand; nothing is set where that one is not followed.
void select_elements(Inference& in, int result, int operand, std::span<const std::size_t> indices);

/// The result has the elements of the operand in the same order, and so its range.
void keep_elements(Inference& in, int result, int operand);

/// Calls visit(multi-index) for each element in row-major order; once with an empty index for rank 0.
template <typename Visit>
void for_each_index(std::span<const std::int64_t> extents, Visit visit) {
  std::vector<std::int64_t> index(extents.size(), 0);
  for (std::size_t left = element_total(extents); left > 0; --left) {
    visit(std::span<const std::int64_t>(index));
    for (std::size_t axis = extents.size(); axis-- > 0;) {
      if (++index[axis] < extents[axis]) break;
      index[axis] = 0;
    }
  }
}

/// A short list of integers (axes, pads, split sizes, a shape) given as an attribute or as a 1-d operand of that name:
/// as many elements as the list is long, unknown ones where the content is not followed. Empty with given = false where
/// it is left out; nullopt where even its length is not known, and where the operand is no list, which fails.
std::optional<std::vector<Dim>> integer_list(Inference& in, std::string_view name, bool& given);

/// The same, where every element is a constant; nullopt otherwise.
std::optional<std::vector<std::int64_t>> constant_list(Inference& in, std::string_view name, bool& given);

/// The fact of a constant as it stands in the file: shape, dtype, content or at least range where it is small.
Fact fact_of_tensor(FactStore& facts, const Tensor& tensor, std::size_t most_floats = kMaxContent);

/// Bounds of floats; everything where there is no number among them.
Range range_of(std::span<const double> values);

}  // namespace tensorlint::ops
