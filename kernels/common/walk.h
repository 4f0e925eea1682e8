#pragma once

// Walks over contiguous integers by all threads of a grid, 4 vectors under way at a time.

#include "kernels/common/combine.h"
#include "kernels/common/vector.h"

namespace tensorlint::kernels {

/// Calls `take` with each of this thread's elements and its position.
template <typename L, typename Take>
TL_DEVICE void walk_integers(const L* elements, std::int64_t count, unsigned blocks, const Take& take) {
  constexpr int kSize = Vector<L>::kSize;
  const std::int64_t whole = count / kSize;
  const std::int64_t step = std::int64_t{blocks} * kThreads;
  const bool aligned = reinterpret_cast<std::uintptr_t>(elements) % 16 == 0;
  std::int64_t unit = std::int64_t{block_in_grid()} * kThreads + thread_in_block();
  const auto take_vector = [&](const Vector<L>& vector, std::int64_t first) {
    TL_UNROLL
    for (int i = 0; i < kSize; ++i) take(std::int64_t{vector.element(i)}, first + i);
  };
  if (aligned) {
    TL_ROLLED
    for (; unit + 3 * step < whole; unit += 4 * step) {
      Vector<L> batch[4];
      TL_UNROLL
      for (int i = 0; i < 4; ++i) batch[i] = load_vector(elements + (unit + i * step) * kSize, true);
      TL_UNROLL
      for (int i = 0; i < 4; ++i) take_vector(batch[i], (unit + i * step) * kSize);
    }
  }
  TL_ROLLED
  for (; unit < whole; unit += step) take_vector(load_vector(elements + unit * kSize, aligned), unit * kSize);
  if (unit == whole) {
    TL_ROLLED
    for (std::int64_t i = whole * kSize; i < count; ++i) take(std::int64_t{load_global(elements + i)}, i);
  }
}

}  // namespace tensorlint::kernels
