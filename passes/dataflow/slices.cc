#include "passes/dataflow/slices.h"

#include "ir/ops/shape_functions.h"

namespace tensorlint::dataflow {

AbstractValue with_axis(FactStore& facts, const AbstractValue& slice, std::int64_t axis, Dim extent) {
  Fact fact = facts.fact(slice.fact);
  fact.content = ContentId::kNone;
  fact.attains = false;
  if (fact.kind != ValueKind::kTensor) return {FactId::kTop, slice.taint};
  if (fact.shape != ShapeId::kUnranked) {
    ops::Dims dims = ops::copy_dims(facts.dims_of(fact.shape));
    const auto rank = static_cast<std::int64_t>(dims.size()) + 1;
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank || dims.size() >= ops::kMaxRank) return {FactId::kTop, slice.taint};
    dims.insert(dims.begin() + at, extent);
    fact.shape = facts.intern_shape(dims);
  }
  return {facts.intern(fact), slice.taint};
}

FactId without_axis(FactStore& facts, FactId id, std::int64_t axis, Dim& extent) {
  Fact fact = facts.fact(id);
  fact.content = ContentId::kNone;
  fact.attains = false;
  if (fact.kind == ValueKind::kTensor && fact.shape != ShapeId::kUnranked) {
    ops::Dims dims = ops::copy_dims(facts.dims_of(fact.shape));
    const auto rank = static_cast<std::int64_t>(dims.size());
    if (axis >= -rank && axis < rank) {
      axis += axis < 0 ? rank : 0;
      if (extent.is_unknown()) extent = dims[static_cast<std::size_t>(axis)];
      dims.erase(dims.begin() + axis);
      fact.shape = facts.intern_shape(dims);
    } else {
      fact.shape = ShapeId::kUnranked;
    }
  }
  return facts.intern(fact);
}

FactId without_batch(FactStore& facts, FactId id, Dim& batch) {
  Fact fact = facts.fact(id);
  fact.content = ContentId::kNone;
  fact.attains = false;
  if (fact.kind == ValueKind::kTensor && fact.shape != ShapeId::kUnranked) {
    const auto dims = facts.dims_of(fact.shape);
    if (!dims.empty() && batch.is_unknown()) batch = dims[0];
    fact.shape = dims.empty() ? ShapeId::kUnranked : facts.intern_shape(dims.subspan(1));
  }
  return facts.intern(fact);
}

}  // namespace tensorlint::dataflow
