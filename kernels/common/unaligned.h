#pragma once

// Vectors at any address, in whole 16-byte accesses. A vector that begins inside an aligned one is spliced from two
// neighbours: the second is the next lane's first, so L1 has it, and no sector moves twice. Its value is that of loads
// by element, hence results do not depend on where a tensor lies.

#include "kernels/common/vector.h"

namespace tensorlint::kernels {

/// 16 bytes of the 32 of `low` and `high`, from byte `bytes` on: below 16 and whole elements.
template <typename T>
TL_HOST_DEVICE Vector<T> splice(const Vector<T>& low, const Vector<T>& high, unsigned bytes) {
  std::uint32_t words[8];
  TL_UNROLL
  for (int i = 0; i < 4; ++i) {
    words[i] = low.words[i];
    words[i + 4] = high.words[i];
  }
  TL_UNROLL
  for (int i = 0; i < 6; ++i) words[i] = (bytes & 8U) != 0 ? words[i + 2] : words[i];
  if constexpr (sizeof(T) <= 4) {
    TL_UNROLL
    for (int i = 0; i < 5; ++i) words[i] = (bytes & 4U) != 0 ? words[i + 1] : words[i];
  }
  Vector<T> result;
  TL_UNROLL
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) < 4) {
      result.words[i] = instruction::funnel_shift_right(words[i], words[i + 1], bytes % 4 * 8);
    } else {
      result.words[i] = words[i];
    }
  }
  return result;
}

/// Element `i` of a vector, where it is not known while compiling.
template <typename T>
TL_HOST_DEVICE T element_at(const Vector<T>& vector, int i) {
  return splice(vector, vector, static_cast<unsigned>(i) * static_cast<unsigned>(sizeof(T))).element(0);
}

TL_HOST_DEVICE unsigned bytes_past_vector(const void* address) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(address) % 16);
}

/// What vectors may be spliced from: nothing outside of it is read. A row of a tensor whose other rows are written
/// meanwhile, else the tensor.
template <typename T>
struct Readable {
  const T* begin;
  const T* end;

  /// The two aligned vectors around the one at `from`, `shift` bytes past a boundary, lie inside.
  TL_DEVICE bool holds(const T* from, unsigned shift) const {
    const std::uintptr_t low = reinterpret_cast<std::uintptr_t>(from) - shift;
    return low >= reinterpret_cast<std::uintptr_t>(begin) && low + 32 <= reinterpret_cast<std::uintptr_t>(end);
  }
};

/// By pointer arithmetic: of an address that was an integer the compiler does not know that it is global.
template <typename T>
TL_DEVICE const Vector<T>* vector_around(const T* from, unsigned shift) {
  return reinterpret_cast<const Vector<T>*>(reinterpret_cast<const unsigned char*>(from) - shift);
}

/// The first `count` elements from `from` on; what comes after them in the vector is anything.
template <typename T>
TL_DEVICE Vector<T> load_first(const Readable<T>& readable, const T* from, int count TL_WHERE_PARAMETER) {
  const unsigned shift = bytes_past_vector(from);
  if (readable.holds(from, shift)) {
    const Vector<T> low = load_global(vector_around(from, shift) TL_WHERE);
    const Vector<T> high = shift != 0 ? load_global(vector_around(from, shift) + 1) : low;
    return splice(low, high, shift);
  }
  Vector<T> vector{};
  TL_UNROLL
  for (int i = 0; i < Vector<T>::kSize; ++i) {
    if (i < count) vector.set_element(i, load_global(from + i));
  }
  return vector;
}

/// The vector at `from`, wherever that is.
template <typename T>
TL_DEVICE Vector<T> load_anywhere(const Readable<T>& readable, const T* from TL_WHERE_PARAMETER) {
  if (bytes_past_vector(from) == 0) return load_global(reinterpret_cast<const Vector<T>*>(from) TL_WHERE);
  return load_first(readable, from, Vector<T>::kSize TL_WHERE);
}

/// Four vectors, two and two: four loads under way at once. `from` ascends by a vector or more, so that only the first
/// and the last of them can be next to an end of `readable`.
template <typename T>
TL_DEVICE void load_four(const Readable<T>& readable, const T* const (&from)[4], const unsigned (&shift)[4],
                         Vector<T> (&batch)[4] TL_WHERE_PARAMETER) {
  const bool inside = readable.holds(from[0], shift[0]) && readable.holds(from[3], shift[3]);
  // Pair by pair: the registers for eight loads would cost a block of an SM.
  TL_UNROLL
  for (int half = 0; half < 4; half += 2) {
    Vector<T> high[2];
    TL_UNROLL
    for (int k = 0; k < 2; ++k) {
      const int i = half + k;
      if (!inside && i % 3 == 0) continue;
      batch[i] = load_global(vector_around(from[i], shift[i]) TL_WHERE);
      // Of a shift of 0, too, where it is not needed: lanes go in step.
      high[k] = load_global(vector_around(from[i], shift[i]) + 1);
    }
    TL_UNROLL
    for (int k = 0; k < 2; ++k) {
      const int i = half + k;
      batch[i] = inside || i % 3 != 0 ? splice(batch[i], high[k], shift[i]) : load_anywhere(readable, from[i]);
    }
  }
}

}  // namespace tensorlint::kernels
