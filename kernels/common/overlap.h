#pragma once

// Whether the outputs of a call may lie where they lie.

#include <cstddef>
#include <cstdint>

#include "kernels/common/status.h"

namespace tensorlint::kernels {

/// Memory that a call reads or writes. `in_place`: an operand and an output that both say so may be the same memory,
/// exactly: each element is read, by the thread that writes it, before it is written.
struct Region {
  const void* address;
  std::size_t bytes;
  bool output = false;
  bool in_place = false;
};

/// Errors: kOverlap.
template <std::size_t kCount>
Status check_overlap(const Region (&regions)[kCount]) {
  const auto begin = [](const Region& r) { return reinterpret_cast<std::uintptr_t>(r.address); };
  for (std::size_t i = 0; i < kCount; ++i) {
    for (std::size_t j = 0; j < kCount; ++j) {
      const Region& a = regions[i];
      const Region& b = regions[j];
      if (i == j || !a.output || a.address == nullptr || b.address == nullptr || a.bytes == 0 || b.bytes == 0) continue;
      if (begin(a) >= begin(b) + b.bytes || begin(b) >= begin(a) + a.bytes) continue;
      const bool same = a.address == b.address && a.bytes == b.bytes;
      if (!same || b.output || !a.in_place || !b.in_place) return Status::kOverlap;
    }
  }
  return Status::kOk;
}

}  // namespace tensorlint::kernels
