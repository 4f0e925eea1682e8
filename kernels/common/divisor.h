#pragma once

#include <cstdint>

#include "kernels/common/instructions.h"

namespace tensorlint::kernels {

/// Division of n in [0, 2^63) by a fixed d in [1, 2^62] as one high product and a shift: the 64-bit division of the GPU
/// is a call, and registers spill around calls.
struct Divisor {
  std::uint64_t magic = 0;  // ceil(2^(63 + s) / d), 2^(s - 1) < d <= 2^s; unused for d = 1
  std::int32_t shift = 0;   // s - 1
  std::int64_t value = 1;

  static Divisor of(std::int64_t value) {
    Divisor divisor;
    divisor.value = value;
    if (value <= 1) return divisor;
    int s = 0;
    while ((std::int64_t{1} << s) < value) ++s;
    // Below 2^64 since d > 2^(s - 1). The error, below d <= 2^s, times n stays below 2^(63 + s): the quotient is exact.
    __extension__ using Wide = unsigned __int128;
    const auto d = static_cast<Wide>(value);
    divisor.magic = static_cast<std::uint64_t>(((Wide{1} << (63 + s)) + d - 1) / d);
    divisor.shift = s - 1;
    return divisor;
  }

  TL_HOST_DEVICE std::int64_t quotient(std::int64_t n) const {
    if (value == 1) return n;
    const std::uint64_t high = instruction::multiply_high(static_cast<std::uint64_t>(n), magic);
    return static_cast<std::int64_t>(high >> shift);
  }
  TL_HOST_DEVICE std::int64_t remainder(std::int64_t n) const { return n - quotient(n) * value; }
};

/// The same for n and d below 2^31: one multiplication of 32 bits.
struct SmallDivisor {
  std::uint32_t magic = 0;  // ceil(2^(31 + s) / d), 2^(s - 1) < d <= 2^s
  std::int32_t shift = 0;   // 31 + s
  std::int32_t value = 1;

  static SmallDivisor of(std::int32_t value) {
    SmallDivisor divisor;
    int s = 0;
    while ((std::int64_t{1} << s) < value) ++s;
    // Below 2^32 since d > 2^(s - 1). The error, below d <= 2^s, times n stays below 2^(31 + s): the quotient is exact.
    const std::uint64_t d = static_cast<std::uint64_t>(value);
    divisor.magic = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + s)) + d - 1) / d);
    divisor.shift = 31 + s;
    divisor.value = value;
    return divisor;
  }

  TL_HOST_DEVICE std::int32_t quotient(std::int32_t n) const {
    return static_cast<std::int32_t>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(n)) * magic >> shift);
  }
};

}  // namespace tensorlint::kernels
