#include "passes/placement/tensor_facts.h"

#include <bit>

namespace tensorlint::placement {
namespace {

/// Bits of one element; nullopt where the dtype is not known or has no fixed size.
std::optional<std::int64_t> element_bits(DTypeSet dtypes) {
  if (dtypes.size() != 1) return std::nullopt;
  switch (static_cast<DType>(std::countr_zero(dtypes.bits()))) {
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUint64:
    case DType::kComplex64:
      return 64;
    case DType::kComplex128:
      return 128;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kUint32:
      return 32;
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt16:
    case DType::kUint16:
      return 16;
    case DType::kInt4:
    case DType::kUint4:
    case DType::kFloat4E2M1:
      return 4;
    case DType::kInt2:
    case DType::kUint2:
      return 2;
    case DType::kBool:
    case DType::kInt8:
    case DType::kUint8:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0:
      return 8;
    default:
      return std::nullopt;
  }
}

Dim product_of_extents(const dataflow::Analysis& analysis, ValueId value) {
  DimPool& dims = analysis.facts().dims();
  const Fact& fact = analysis.fact(value);
  const auto bits = element_bits(fact.dtypes);
  if (!bits || fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return Dim(Unknown::kNotTracked);
  const auto extents = analysis.facts().dims_of(fact.shape);
  analysis.meter().charge(extents.size());
  Dim count = dims.constant(1);
  for (const Dim extent : extents) count = dims.mul(count, extent);
  return *bits % 8 == 0 ? dims.mul(count, dims.constant(*bits / 8)) : dims.ceil_div(count, dims.constant(8 / *bits));
}

}  // namespace

Dim TensorBytes::of(ValueId value) {
  const auto [at, is_new] = known_.try_emplace(value);
  if (is_new) at->second = product_of_extents(analysis_, value);
  return at->second;
}

std::optional<std::int64_t> known_integer(const dataflow::Analysis& analysis, ValueId value) {
  if (value == ValueId::kAbsent) return std::nullopt;
  const Content* elements = analysis.facts().content(analysis.fact(value).content);
  if (elements == nullptr || elements->integers.size() != 1) return std::nullopt;
  return analysis.facts().dims().as_constant(elements->integers[0]);
}

Dim scanned_extent(const dataflow::Analysis& analysis, ValueId sequence, const ScanAxes& axes) {
  const Fact& fact = analysis.fact(sequence);
  if (sequence == ValueId::kAbsent || fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked)
    return Dim(Unknown::kNotTracked);
  const auto extents = analysis.facts().dims_of(fact.shape);
  const auto rank = static_cast<std::int64_t>(extents.size());
  std::int64_t axis = axes.input(0);
  axis += axis < 0 ? rank : 0;
  return axis >= 0 && axis < rank ? extents[static_cast<std::size_t>(axis)] : Dim(Unknown::kNotTracked);
}

}  // namespace tensorlint::placement
