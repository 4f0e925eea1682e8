#pragma once

// What calls check of their requests on the host.

#include <cstddef>
#include <cstdint>

#include "kernels/common/status.h"
#include "kernels/common/vector.h"

namespace tensorlint::kernels {

/// Calls `visit` with a value of the element type. Errors: kUnsupportedDtype for all but floating point of 16 bits and
/// more.
template <typename Visit>
Status with_real(Dtype dtype, const Visit& visit) {
  switch (dtype) {
    case Dtype::kFloat64:
      return visit(double{});
    case Dtype::kFloat32:
      return visit(float{});
    case Dtype::kFloat16:
      return visit(Half{});
    case Dtype::kBFloat16:
      return visit(BFloat16{});
    default:
      return Status::kUnsupportedDtype;
  }
}

inline bool is_real(Dtype dtype) {
  return dtype == Dtype::kFloat64 || dtype == Dtype::kFloat32 || dtype == Dtype::kFloat16 || dtype == Dtype::kBFloat16;
}

inline int vector_size(Dtype dtype) { return static_cast<int>(16 / size_of(dtype)); }

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// No extent is below 0, and together they are at most 2^62.
inline bool product_fits(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t ab = 0;
  std::int64_t abc = 0;
  return a >= 0 && b >= 0 && c >= 0 && !__builtin_mul_overflow(a, b, &ab) && !__builtin_mul_overflow(ab, c, &abc) &&
         abc <= std::int64_t{1} << 62;
}

inline Status check_pointer(const void* pointer, std::size_t alignment, bool needed) {
  if (pointer == nullptr) return needed ? Status::kNullPointer : Status::kOk;
  return is_aligned(pointer, alignment) ? Status::kOk : Status::kMisaligned;
}

struct Pointer {
  const void* address;
  bool needed;
};
template <std::size_t kCount>
Status check_pointers(const Pointer (&pointers)[kCount], std::size_t alignment) {
  for (const Pointer& pointer : pointers) {
    if (const Status status = check_pointer(pointer.address, alignment, pointer.needed); status != Status::kOk)
      return status;
  }
  return Status::kOk;
}

}  // namespace tensorlint::kernels
