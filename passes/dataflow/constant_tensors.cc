#include "passes/dataflow/constant_tensors.h"

#include <cstdint>

namespace tensorlint::dataflow {

const Tensor* constant_tensor(const Analysis& analysis, ValueId value) {
  if (value == ValueId::kAbsent) return nullptr;
  const Value& known = analysis.model().value(value);
  if (known.producer == NodeId::kNone) return known.initializer;
  const Attribute* given = analysis.attribute(known.producer, "value");
  return given == nullptr ? nullptr : given->tensor;
}

bool may_read(const Analysis& analysis, const Tensor& tensor) {
  constexpr std::uint64_t kSmall = 8192;
  const std::uint64_t bytes = tensor.inline_bytes();
  return bytes <= kSmall || analysis.meter().may_read(tensor.numbers_begin(), bytes);
}

}  // namespace tensorlint::dataflow
