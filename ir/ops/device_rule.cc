#include "ir/ops/device_rule.h"

#include <algorithm>

namespace tensorlint::ops {

DeviceSignature device_signature(const OpSchema* schema, const OpEntry* entry) {
  DeviceSignature signature;
  const DeviceRule rule = entry == nullptr ? DeviceRule::kTogether : entry->device_rule();
  if (schema != nullptr || rule == DeviceRule::kArgument) signature.rule = rule;
  if (schema == nullptr || entry == nullptr) return signature;
  for (std::size_t i = 0; i < std::min<std::size_t>(schema->inputs.size(), 64); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    const auto role = entry->role_of(schema->inputs[i].name);
    if (role == OperandRole::kHost || role == OperandRole::kHostList) signature.host |= bit;
    if (role == OperandRole::kIndex) signature.index |= bit;
  }
  return signature;
}

}  // namespace tensorlint::ops
