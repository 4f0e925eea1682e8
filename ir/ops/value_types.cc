#include "ir/ops/value_types.h"

namespace tensorlint::ops {

std::optional<ValueKind> value_kind(TypeKind kind) {
  switch (kind) {
    case TypeKind::kTensor:
      return ValueKind::kTensor;
    case TypeKind::kSparseTensor:
      return ValueKind::kSparseTensor;
    case TypeKind::kSequence:
      return ValueKind::kSequence;
    case TypeKind::kOptional:
      return ValueKind::kOptional;
    case TypeKind::kMap:
      return ValueKind::kMap;
    case TypeKind::kNone:
    case TypeKind::kOpaque:
      return std::nullopt;
  }
  return std::nullopt;
}

DTypeSet innermost_dtypes(const FactStore& facts, const Fact& fact) {
  const Fact* at = &fact;
  for (int depth = 0; depth < 4 && (at->kind == ValueKind::kSequence || at->kind == ValueKind::kOptional); ++depth)
    at = &facts.fact(at->element);
  return at->kind == ValueKind::kTensor || at->kind == ValueKind::kSparseTensor ? at->dtypes : DTypeSet::all();
}

bool holds_map(const FactStore& facts, const Fact& fact) {
  return fact.kind == ValueKind::kMap ||
         (fact.kind == ValueKind::kSequence && facts.fact(fact.element).kind == ValueKind::kMap);
}

}  // namespace tensorlint::ops
