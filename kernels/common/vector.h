#pragma once

// 16-byte vectors of elements: one load or store instruction each.

#include "kernels/common/scalar.h"

namespace tensorlint::kernels {

template <typename T>
struct alignas(16) Vector {
  static constexpr int kSize = static_cast<int>(16 / sizeof(T));
  std::uint32_t words[4];

  /// Element `i`; `i` must be a constant after unrolling, so that no local memory is used.
  TL_HOST_DEVICE T element(int i) const {
    if constexpr (sizeof(T) == 8) {
      return bit_cast<T>(static_cast<std::uint64_t>(words[2 * i]) | static_cast<std::uint64_t>(words[2 * i + 1]) << 32);
    } else if constexpr (sizeof(T) == 4) {
      return bit_cast<T>(words[i]);
    } else if constexpr (sizeof(T) == 2) {
      return bit_cast<T>(static_cast<std::uint16_t>(words[i / 2] >> (i % 2 * 16)));
    } else {
      return bit_cast<T>(static_cast<std::uint8_t>(words[i / 4] >> (i % 4 * 8)));
    }
  }
  TL_HOST_DEVICE void set_element(int i, T value) {
    if constexpr (sizeof(T) == 8) {
      const std::uint64_t bits = bit_cast<std::uint64_t>(value);
      words[2 * i] = static_cast<std::uint32_t>(bits);
      words[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
    } else if constexpr (sizeof(T) == 4) {
      words[i] = bit_cast<std::uint32_t>(value);
    } else if constexpr (sizeof(T) == 2) {
      const std::uint32_t bits = bit_cast<std::uint16_t>(value);
      words[i / 2] = i % 2 == 0 ? (words[i / 2] & 0xffff0000U) | bits : (words[i / 2] & 0xffffU) | bits << 16;
    } else {
      const std::uint32_t bits = bit_cast<std::uint8_t>(value);
      words[i / 4] = (words[i / 4] & ~(0xffU << (i % 4 * 8))) | bits << (i % 4 * 8);
    }
  }
};

/// All elements, widened.
template <typename T>
TL_HOST_DEVICE void unpack(const Vector<T>& vector, Compute<T> (&x)[Vector<T>::kSize]) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    TL_UNROLL
    for (int i = 0; i < 4; ++i) {  // the high half needs one mask, the low one shift
      x[2 * i] = bit_cast<float>(vector.words[i] << 16);
      x[2 * i + 1] = bit_cast<float>(vector.words[i] & 0xffff0000U);
    }
  } else if constexpr (std::is_same_v<T, Float8E4M3>) {
    TL_UNROLL
    for (int i = 0; i < 8; ++i)
      instruction::f32x2_from_e4m3x2(static_cast<std::uint16_t>(vector.words[i / 2] >> (i % 2 * 16)), x[2 * i],
                                     x[2 * i + 1]);
  } else if constexpr (std::is_same_v<T, Float8E5M2>) {
    TL_UNROLL
    for (int i = 0; i < 8; ++i)  // e5m2 is the high byte of fp16
      instruction::f32x2_from_f16x2(instruction::permute_bytes(vector.words[i / 2], 0, i % 2 == 0 ? 0x1404 : 0x3424),
                                    x[2 * i], x[2 * i + 1]);
  } else {
    TL_UNROLL
    for (int i = 0; i < Vector<T>::kSize; ++i) x[i] = widen(vector.element(i));
  }
}

template <typename T>
TL_HOST_DEVICE Vector<T> pack(const Compute<T> (&x)[Vector<T>::kSize]) {
  Vector<T> vector{};
  if constexpr (std::is_same_v<T, BFloat16>) {
    TL_UNROLL
    for (int i = 0; i < 4; ++i) vector.words[i] = instruction::bf16x2_from_f32(x[2 * i + 1], x[2 * i]);
  } else if constexpr (std::is_same_v<T, Half>) {
    TL_UNROLL
    for (int i = 0; i < 4; ++i) vector.words[i] = instruction::f16x2_from_f32(x[2 * i + 1], x[2 * i]);
  } else {
    TL_UNROLL
    for (int i = 0; i < Vector<T>::kSize; ++i) vector.set_element(i, narrow<T>(x[i]));
  }
  return vector;
}

template <typename T>
TL_HOST_DEVICE Compute<T> largest_by_element(const Vector<T>* vectors, int count, Compute<T> start) {
  Compute<T> best = start;
  TL_UNROLL
  for (int v = 0; v < count; ++v) {
    Compute<T> x[Vector<T>::kSize];
    unpack(vectors[v], x);
    TL_UNROLL
    for (int i = 0; i < Vector<T>::kSize; ++i) best = max_number(best, x[i]);
  }
  return best;
}

/// The largest element, NaN ignored unless all are NaN; two at a time where the type packs.
template <typename T>
TL_HOST_DEVICE Compute<T> largest_of(const Vector<T>* vectors, int count, Compute<T> start) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>) {
    std::uint32_t best = vectors[0].words[0];
    TL_UNROLL
    for (int v = 0; v < count; ++v) {
      TL_UNROLL
      for (int i = 0; i < 4; ++i) {
        if constexpr (std::is_same_v<T, BFloat16>) best = instruction::max_bf16x2(best, vectors[v].words[i]);
        if constexpr (std::is_same_v<T, Half>) best = instruction::max_f16x2(best, vectors[v].words[i]);
      }
    }
    const T low = {static_cast<std::uint16_t>(best)};
    const T high = {static_cast<std::uint16_t>(best >> 16)};
    return max_number(start, max_number(to_float(low), to_float(high)));
  } else {
    return largest_by_element(vectors, count, start);
  }
}

/// Elements from `from` on as one vector: one instruction when `aligned`, else element by element. The value is the
/// same, so that results do not depend on where a tensor lies.
template <typename T>
TL_DEVICE Vector<T> load_vector(const T* from, bool aligned TL_WHERE_PARAMETER) {
  if (aligned) return load_global(reinterpret_cast<const Vector<T>*>(from) TL_WHERE);
  Vector<T> vector{};
  TL_UNROLL
  for (int i = 0; i < Vector<T>::kSize; ++i) vector.set_element(i, load_global(from + i));
  return vector;
}

template <typename T>
TL_DEVICE void store_vector(T* to, const Vector<T>& vector, bool aligned TL_WHERE_PARAMETER) {
  if (aligned) {
    store_global(reinterpret_cast<Vector<T>*>(to), vector TL_WHERE);
    return;
  }
  TL_UNROLL
  for (int i = 0; i < Vector<T>::kSize; ++i) store_global(to + i, vector.element(i));
}

/// Neighbouring elements that one thread takes at once: a vector, or (kWidth 1) a single element.
template <typename T, int kWidth>
using Strip = std::conditional_t<kWidth == 1, T, Vector<T>>;

template <typename T, int kWidth>
TL_DEVICE Strip<T, kWidth> load_strip(const T* from, bool aligned TL_WHERE_PARAMETER) {
  static_assert(kWidth == 1 || kWidth == Vector<T>::kSize);
  if constexpr (kWidth == 1) {
    (void)aligned;
    return load_global(from TL_WHERE);
  } else {
    return load_vector(from, aligned TL_WHERE);
  }
}

template <typename T, int kWidth>
TL_HOST_DEVICE void unpack_strip(const Strip<T, kWidth>& strip, Compute<T> (&x)[kWidth]) {
  if constexpr (kWidth == 1) {
    x[0] = widen(strip);
  } else {
    unpack(strip, x);
  }
}

template <typename T, int kWidth>
TL_DEVICE void store_strip(T* to, const Compute<T> (&x)[kWidth], bool aligned TL_WHERE_PARAMETER) {
  if constexpr (kWidth == 1) {
    (void)aligned;
    store_global(to, narrow<T>(x[0]) TL_WHERE);
  } else {
    store_vector(to, pack<T>(x), aligned TL_WHERE);
  }
}

inline bool is_aligned(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

}  // namespace tensorlint::kernels
