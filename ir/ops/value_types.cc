#include "ir/ops/value_types.h"

namespace tensorlint::ops {

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
