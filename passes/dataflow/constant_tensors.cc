#include "passes/dataflow/constant_tensors.h"

#include <algorithm>
#include <cstdint>

namespace tensorlint::dataflow {

namespace {

/// What a value is declared to be may be more than its default has.
bool has_declared_dims(const Analysis& analysis, ValueId value, const Tensor& tensor) {
  const Fact& fact = analysis.fact(value);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return false;
  const DimPool& pool = analysis.facts().dims();
  return std::ranges::equal(analysis.facts().dims_of(fact.shape), tensor.dims,
                            [&](Dim dim, std::int64_t extent) { return extent > 0 && pool.is_constant(dim, extent); });
}

}  // namespace

const Tensor* constant_tensor(const Analysis& analysis, ValueId value) {
  if (value == ValueId::kAbsent) return nullptr;
  const Value& known = analysis.model().value(value);
  const Attribute* given = known.producer == NodeId::kNone ? nullptr : analysis.attribute(known.producer, "value");
  const Tensor* tensor = known.producer == NodeId::kNone ? known.initializer
                         : given == nullptr              ? nullptr
                                                         : given->tensor;
  return tensor != nullptr && has_declared_dims(analysis, value, *tensor) ? tensor : nullptr;
}

bool may_read(const Analysis& analysis, const Tensor& tensor) {
  constexpr std::uint64_t kSmall = 8192;
  const std::uint64_t bytes = tensor.inline_bytes();
  return bytes <= kSmall || analysis.meter().may_read(tensor.numbers_begin(), bytes);
}

}  // namespace tensorlint::dataflow
