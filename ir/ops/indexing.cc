#include "ir/ops/indexing.h"

#include <algorithm>

#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {

Message outside_of_axis(Inference& in, Dim extent, int data, std::size_t axis, bool from_back) {
  const bool counts_back = from_back && in.dims().as_constant(extent).value_or(0) > 0;
  const Message lowest = counts_back ? Message("-{}", extent) : Message("0");
  return Message("outside [{}, {}) of axis {} of {}", lowest, extent, Axis(axis), OperandRef(data));
}

void check_indices(Inference& in, const Constraint& constraint, int indices, Dim extent, int data, int axis,
                   bool from_back) {
  DimPool& pool = in.dims();
  if (!in.has(indices) || extent.is_unknown()) return;
  const auto legal = [&] { return outside_of_axis(in, extent, data, static_cast<std::size_t>(axis), from_back); };
  if (const auto elements = in.elements(indices)) {
    for (std::size_t i = 0; i < elements->size(); ++i) {
      const Dim index = (*elements)[i];
      if (index.is_unknown()) continue;
      const bool above = pool.bounds(pool.sub(index, extent)).lo >= 0;
      const bool below = from_back ? pool.bounds(pool.add(index, extent)).hi < 0 : pool.bounds(index).hi < 0;
      if (!above && !below) continue;
      in.fail(constraint, {indices, data}, {"index {} of {} is {}", Index(index), OperandRef(indices), legal()});
      return;
    }
    return;
  }
  // A range covers more than what occurs, so it proves something only where it is outside as a whole.
  const auto shape = in.shape(indices);
  if (!shape || pool.bounds(element_count(pool, *shape)).lo < 1) return;
  const Range& range = in.operand(indices).range;
  const Bounds limits = pool.bounds(extent);
  if (limits.hi <= 0) {
    // Data that are empty along another axis too give an empty result in numpy.
    const auto data_shape = in.shape(data);
    if (data_shape &&
        std::count_if(data_shape->begin(), data_shape->end(), [&](Dim dim) { return pool.bounds(dim).hi <= 0; }) == 1)
      in.fail(constraint, {data, indices},
              {"axis {} of {} has no elements for {} to index", Axis(axis), OperandRef(data), OperandRef(indices)});
    return;
  }
  if (range.nan || limits.hi > std::int64_t{1} << 53) return;
  const auto top = static_cast<double>(limits.hi);
  const bool is_above = range.hi >= top, is_below = range.lo < (from_back ? -top : 0.0);
  if (in.operand(indices).attains && (is_above || is_below)) {
    const Dim reached = pool.constant(static_cast<std::int64_t>(is_above ? range.hi : range.lo));
    in.fail(constraint, {indices, data}, {"{} reaches index {}, {}", OperandRef(indices), reached, legal()});
    return;
  }
  if (range.lo >= top || range.hi < (from_back ? -top : 0.0))
    in.fail(constraint, {indices, data}, {"indices {} in {} are {}", OperandRef(indices), range, legal()});
}

void check_lengths(Inference& in, const Constraint& constraint, int lengths, Dim steps, int data) {
  DimPool& pool = in.dims();
  if (!in.has(lengths) || steps.is_unknown()) return;
  if (const auto elements = in.elements(lengths)) {
    for (const Dim length : *elements) {
      if (pool.bounds(length).hi >= 0 && pool.bounds(pool.sub(length, steps)).lo <= 0) continue;
      in.fail(constraint, {lengths, data},
              {"sequence length {} in {}, {} has {} steps", length, OperandRef(lengths), OperandRef(data), steps});
      return;
    }
    return;
  }
  const auto shape = in.shape(lengths);
  if (!shape || pool.bounds(element_count(pool, *shape)).lo < 1) return;
  const Range& range = in.operand(lengths).range;
  const Bounds limits = pool.bounds(steps);
  if (range.nan || limits.hi > std::int64_t{1} << 53) return;
  const auto most = static_cast<double>(limits.hi);
  const bool is_attained = in.operand(lengths).attains && (range.hi > most || range.lo < 0);
  if (is_attained || range.lo > most || range.hi < 0)
    in.fail(constraint, {lengths, data},
            {"sequence lengths {} in {}, {} has {} steps", range, OperandRef(lengths), OperandRef(data), steps});
}

}  // namespace tensorlint::ops
