#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ir/ops/entry.h"
#include "ir/schema/schema.h"

namespace tensorlint::ops {

/// Where the operands of a call may be and its results are: an entry's declarations, for one version of the schema.
struct DeviceSignature {
  DeviceRule rule = DeviceRule::kIndependent;
  std::uint64_t host = 0;   ///< bit i: operand i is read by the host; formal operands past 63 are data
  std::uint64_t index = 0;  ///< bit i: operand i indexes operand 0

  bool is_host(std::size_t operand) const { return operand < 64 && ((host >> operand) & 1U) != 0; }
  bool is_index(std::size_t operand) const { return operand < 64 && ((index >> operand) & 1U) != 0; }
  bool has_host_results() const { return rule == DeviceRule::kHostResults; }
};

/// Of an operator that has no schema nothing is known: its operands are not compared.
DeviceSignature device_signature(const OpSchema* schema, const OpEntry* entry);

/// The device of a call's results, which on the way compares the devices of its operands.
///
/// `Lattice` knows what devices are: `Device`, `host()`, `unknown()`, `meet(a, b)` of two data operands,
/// `meet_host(data, operand)` with one that the host reads, `same_or_anywhere(a, b)`. `own` is the device that a tag
/// or, for kArgument, the attribute gives. `device_of(i)` is nullopt where operand i is left out. `without_data()` is
/// asked where neither a tag nor data decides.
template <typename Lattice, typename DeviceOf, typename WithoutData>
typename Lattice::Device infer_device(const DeviceSignature& signature, Lattice& lattice,
                                      std::optional<typename Lattice::Device> own, std::size_t operand_count,
                                      const DeviceOf& device_of, const WithoutData& without_data) {
  std::optional<typename Lattice::Device> met = own;
  switch (signature.rule) {
    case DeviceRule::kHostResults:
      return lattice.host();
    case DeviceRule::kArgument:
      return own ? *own : lattice.unknown();
    case DeviceRule::kIndependent:
      if (own) return *own;
      for (std::size_t i = 0; i < operand_count; ++i)
        if (const auto device = device_of(i)) met = met ? lattice.same_or_anywhere(*met, *device) : *device;
      return met ? *met : lattice.unknown();
    case DeviceRule::kTogether:
      break;
  }
  for (std::size_t i = 0; i < operand_count; ++i) {
    if (signature.is_host(i)) continue;
    if (const auto device = device_of(i)) met = met ? lattice.meet(*met, *device) : *device;
  }
  typename Lattice::Device result = met ? *met : without_data();
  if (signature.host == 0) return result;
  for (std::size_t i = 0; i < operand_count; ++i) {
    if (!signature.is_host(i)) continue;
    if (const auto device = device_of(i)) result = lattice.meet_host(result, *device);
  }
  return result;
}

}  // namespace tensorlint::ops
