#include "analyzer/rules/casts.h"

#include <fmt/format.h>

#include <cmath>

namespace tensorlint {
namespace {

bool is_discrete(const Operand& operand) {
  return operand.present() && operand.fact().kind == ValueKind::kTensor && operand.fact().dtypes.proves(DTypeSet::integers() | DType::kBool);
}

std::optional<DType> float_of(const Operand& operand) {
  if (!operand.present() || operand.fact().kind != ValueKind::kTensor) return std::nullopt;
  const auto dtype = operand.fact().dtypes.single();
  return dtype && DTypeSet::floats().contains(*dtype) ? dtype : std::nullopt;
}

}  // namespace

std::optional<CastFix> cast_to_float(const FailureCase& failure) {
  if (!failure.has_node()) return std::nullopt;
  std::optional<Operand> discrete;
  for (const Operand& operand : failure.operands())
    if (is_discrete(operand)) discrete = operand;
  if (!discrete) return std::nullopt;
  const NodeCall call = failure.call();
  for (std::size_t i = 0; i < call.operand_count(); ++i)
    if (const auto dtype = float_of(call.operand(i))) return CastFix{*discrete, *dtype};
  return std::nullopt;
}

void propose_cast(FindingBuilder& finding, const CastFix& fix) {
  finding.fix(fmt::format("cast {} to {}", fix.operand.name(), to_text(fix.to)),
              is_exact_in(fix.operand.fact().range, fix.to) ? Applicability::kSafe : Applicability::kUnsafe);
}

bool is_exact_in(const Range& range, DType dtype) {
  // Bits of the significand, the hidden one included: integers up to 2^bits are exact.
  int bits = 0;
  switch (dtype) {
    case DType::kFloat64: bits = 53; break;
    case DType::kFloat32: bits = 24; break;
    case DType::kFloat16: bits = 11; break;
    case DType::kBFloat16: bits = 8; break;
    default: return false;
  }
  const double limit = std::ldexp(1.0, bits);
  return -limit <= range.lo && range.hi <= limit;
}

}  // namespace tensorlint
