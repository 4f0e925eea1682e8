#pragma once

// Outputs at any address: cut at the 16-byte boundaries of their memory, not of the row. Whole vectors, and at both
// ends fewer elements than a vector, a lane each: every store writes neighbouring bytes.

#include "kernels/common/unaligned.h"

namespace tensorlint::kernels {

/// `count` elements from `to` on as the threads that write them see them: `head` elements up to a 16-byte boundary,
/// `vectors`, `tail` elements. Vector j belongs to lane j modulo their number; so does edge element i, head and tail
/// counted through.
template <typename T>
struct StoreSpan {
  T* to;
  std::int64_t vectors;
  int head;
  int tail;

  TL_DEVICE StoreSpan(T* to_, std::int64_t count) : to(to_), vectors(0), head(0), tail(0) {
    constexpr int kSize = Vector<T>::kSize;
    if (count <= 0) return;
    const int before = static_cast<int>(bytes_past_vector(to) / sizeof(T));
    head = before == 0 ? 0 : kSize - before;
    if (head > count) head = static_cast<int>(count);
    vectors = (count - head) / kSize;
    tail = static_cast<int>(count - head - vectors * kSize);
  }
  TL_DEVICE std::int64_t first_of(std::int64_t vector) const { return head + vector * Vector<T>::kSize; }
  /// Edge element i, from `to` on.
  TL_DEVICE std::int64_t edge(int i) const { return i < head ? i : first_of(vectors) + (i - head); }
  /// The lane, of a power of two of them, that writes element `i`.
  TL_DEVICE unsigned writer(std::int64_t i, unsigned lanes) const {
    const std::int64_t tail_at = first_of(vectors);
    const std::int64_t turn = i < head ? i : i < tail_at ? (i - head) / Vector<T>::kSize : head + (i - tail_at);
    return static_cast<unsigned>(turn) & (lanes - 1);
  }
};

}  // namespace tensorlint::kernels
