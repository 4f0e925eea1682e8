#pragma once

// Negative log likelihood from log-probabilities and class indices, any inner extent.

#include "kernels/loss/class_common.h"

namespace tensorlint::kernels {

/// -weight[label] times the log-probability at the label. The gradient is zero elsewhere.
template <typename T>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, 2) negative_log_likelihood(const ClassParameters<T> p) {
  using C = Compute<T>;
  constexpr int kSize = Vector<T>::kSize;
  TL_SHARED(double, sum_scratch, kWarps);
  TL_SHARED(unsigned, flag, 1);
  const std::int64_t thread = std::int64_t{block_in_grid()} * kThreads + thread_in_block();
  const std::int64_t threads = std::int64_t{blocks_in_grid()} * kThreads;
  const std::int64_t positions = p.rows * p.inner;
  double block_sum = 0;
  if (p.losses != nullptr || p.total != nullptr) {
    TL_ROLLED
    for (std::int64_t position = thread; position < positions; position += threads) {
      const std::int64_t label = label_at(p.labels, position);
      C loss = C{0};
      if (counts(p, label)) {
        const std::int64_t row = p.by_inner.quotient(position);
        loss = not_a_number<C>();
        if (label >= 0 && label < p.classes) {
          const C w = p.weight != nullptr ? widen(load_global(p.weight + label)) : C{1};
          loss = -w * widen(load_global(p.logits + (row * p.classes + label) * p.inner + (position - row * p.inner)));
        }
      }
      if (p.losses != nullptr) store_global(p.losses + position, narrow<T>(loss));
      block_sum += static_cast<double>(loss);
    }
  }
  if (p.output != nullptr) {
    const auto gradient_at = [&](std::int64_t row, std::int64_t index, std::int64_t inside) {
      const std::int64_t position = row * p.inner + inside;
      const std::int64_t label = label_at(p.labels, position);
      if (!counts(p, label)) return C{0};
      if (label < 0 || label >= p.classes) return not_a_number<C>();
      if (label != index) return C{0};
      const C w = p.weight != nullptr ? widen(load_global(p.weight + label)) : C{1};
      return -w * gain_at<ClassTask::kIndices>(p, position);
    };
    const std::int64_t elements = positions * p.classes;
    const bool aligned = reinterpret_cast<std::uintptr_t>(p.output) % 16 == 0;
    TL_ROLLED
    for (std::int64_t unit = thread; unit * kSize < elements; unit += threads) {
      const std::int64_t pair = p.by_inner.quotient(unit * kSize);
      std::int64_t inside = unit * kSize - pair * p.inner;
      std::int64_t row = p.by_classes.quotient(pair);
      std::int64_t index = pair - row * p.classes;
      const std::int64_t count = elements - unit * kSize < kSize ? elements - unit * kSize : kSize;
      C out[kSize];
      TL_UNROLL
      for (int i = 0; i < kSize; ++i) {
        out[i] = i < count ? gradient_at(row, index, inside) : C{0};
        if (++inside == p.inner) {
          inside = 0;
          if (++index == p.classes) {
            index = 0;
            ++row;
          }
        }
      }
      const Vector<T> vector = pack<T>(out);
      if (count == kSize) {
        store_vector(p.output + unit * kSize, vector, aligned);
      } else {
        TL_UNROLL
        for (int i = 0; i < kSize; ++i) {
          if (i < count) store_global(p.output + unit * kSize + i, vector.element(i));
        }
      }
    }
  }
  write_total(p, block_sum, sum_scratch, flag);
}

}  // namespace tensorlint::kernels
