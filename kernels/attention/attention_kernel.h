#pragma once

// A block's tile: 64 queries against all keys, 64 of them at a time. Queries, then keys or values, and the weights of
// the scores go through shared memory; a thread has the scores of 4 x 4 and the results of 4 rows. The 16 threads of a
// row are neighbouring lanes.

#include "kernels/attention/attention.h"
#include "kernels/common/exponential.h"
#include "kernels/product/stack.h"
#include "kernels/product/tile.h"

namespace tensorlint::kernels {

static_assert(kAttentionPitch == TileShape<float, 1>::kPitch);

/// Elements of a row in steps that loaders bring whole.
TL_HOST_DEVICE int padded_width(int width) { return (width + kAttentionEdge - 1) / kAttentionEdge * kAttentionEdge; }

/// Where the matrices of a stack begin, by their number.
struct AttentionOffsets {
  std::int64_t query = 0;
  std::int64_t key = 0;
  std::int64_t value = 0;
  std::int64_t mask = 0;
  std::int64_t result = 0;
};

struct AttentionStack {
  StackAxes axes;
  AttentionOffsets steps[kMaxBatchAxes];
};

TL_DEVICE AttentionOffsets offsets_in(const AttentionStack& stack, std::int64_t matrix) {
  AttentionOffsets offsets;
  each_index_of(stack.axes, matrix, [&](int axis, std::int64_t index) {
    offsets.query += index * stack.steps[axis].query;
    offsets.key += index * stack.steps[axis].key;
    offsets.value += index * stack.steps[axis].value;
    offsets.mask += index * stack.steps[axis].mask;
    offsets.result += index * stack.steps[axis].result;
  });
  return offsets;
}

template <typename T>
struct AttentionParameters {
  AttentionStack stack;
  std::int64_t tiles = 0;
  Divisor by_tiles;  // of one matrix
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  int width = 0;
  int value_width = 0;
  StridedFactor<T> query;  // positions are queries
  StridedFactor<T> key;    // positions are keys
  StridedFactor<T> value;  // positions are columns of values, depth is keys
  const void* mask = nullptr;
  AttentionMask mask_kind = AttentionMask::kNone;
  std::int64_t mask_row = 0;
  std::int64_t mask_column = 0;
  float fill = 0;
  float scale = 1;
  bool causal = false;
  std::int64_t causal_offset = 0;
  UndefinedRows undefined = UndefinedRows::kNotANumber;
  T* result = nullptr;
  std::int64_t result_row = 0;
  bool aligned = false;  // rows of 4 results are
};

/// The largest of 4 rows, over lanes.
struct LargestOfRows {
  struct State {
    float rows[kQuad];
  };
  static TL_HOST_DEVICE State combine(State a, const State& b) {
    TL_UNROLL
    for (int i = 0; i < kQuad; ++i) a.rows[i] = max_number(a.rows[i], b.rows[i]);
    return a;
  }
};

/// The sums of 4 rows, over lanes.
struct SumsOfRows {
  using State = LargestOfRows::State;
  static TL_HOST_DEVICE State combine(State a, const State& b) {
    TL_UNROLL
    for (int i = 0; i < kQuad; ++i) a.rows[i] += b.rows[i];
    return a;
  }
};

/// 64 positions of a factor into shared memory as [k][position], `padded` elements of k, zeros from `depth` on.
template <typename T, typename Tile>
TL_DEVICE void bring_tile(const StridedFactor<T>& factor, std::int64_t offset, std::int64_t first, std::int64_t end,
                          int depth, int padded, const Tile& tile, int to) {
  using Shape = TileShape<T, 1>;
  StridedLoader<T, 1> loader(factor, offset, first, end);
  TL_ROLLED
  for (int k = 0; k < padded; k += 2 * Shape::kDepth) {
    // Two loads under way: 64 is a multiple of two steps.
    loader.load(depth - k);
    const StridedLoader<T, 1> before = loader;
    loader.load(depth - k - Shape::kDepth);
    before.store(tile, to + k * Shape::kPitch);
    loader.store(tile, to + (k + Shape::kDepth) * Shape::kPitch);
  }
}

/// One quad of shared memory.
template <typename Tile>
TL_DEVICE void read_quad(const Tile& tile, int at, float (&x)[kQuad]) {
  const auto vector = load_shared_vector<Vector<float>>(tile, static_cast<unsigned>(at));
  TL_UNROLL
  for (int i = 0; i < kQuad; ++i) x[i] = vector.element(i);
}

/// Scores of the thread's 4 queries from `query` on and 4 keys from `key` on: scaled, masked, -infinity of keys that
/// are not seen or not there.
template <typename T>
TL_DEVICE void mask_scores(const AttentionParameters<T>& p, std::int64_t mask_offset, std::int64_t query,
                           std::int64_t key, float (&scores)[kQuad][kQuad]) {
  TL_UNROLL
  for (int i = 0; i < kQuad; ++i) {
    TL_UNROLL
    for (int j = 0; j < kQuad; ++j) {
      float score = scores[i][j] * p.scale;
      const bool inside = key + j < p.keys;
      if (p.mask_kind != AttentionMask::kNone && inside && query + i < p.queries) {
        const std::int64_t at = mask_offset + (query + i) * p.mask_row + (key + j) * p.mask_column;
        if (p.mask_kind == AttentionMask::kAdded) {
          score += widen(load_global(static_cast<const T*>(p.mask) + at));
        } else {
          const bool set = load_global(static_cast<const std::uint8_t*>(p.mask) + at) != 0;
          if (set == (p.mask_kind == AttentionMask::kDrops)) score = p.fill;
        }
      }
      const bool seen = inside && (!p.causal || key + j <= query + i + p.causal_offset);
      scores[i][j] = seen ? score : Limits<float>::kLowest;
    }
  }
}

/// What scores are relative to: of none, or none above -infinity, 0, so that their weights are 0.
TL_HOST_DEVICE float attention_origin(float largest) { return largest == Limits<float>::kLowest ? 0.0F : largest; }

/// What a sum of weights times values is multiplied with; 0 and `zero` where the result is zeros whatever the sum is.
TL_HOST_DEVICE float attention_factor(UndefinedRows undefined, float largest, float sum, bool& zero) {
  const bool defined = sum > 0.0F && sum <= 3.402823466e38F;
  zero = !defined && (undefined == UndefinedRows::kZero || (undefined == UndefinedRows::kZeroWithoutKeys &&
                                                            sum == 0.0F && largest == Limits<float>::kLowest));
  return zero ? 0.0F : 1.0F / sum;
}

/// `kWide`: columns of values are at most 64 times this.
template <typename T, int kWide>
TL_KERNEL void TL_LAUNCH_BOUNDS(kThreads, (kWide == 1 ? 3 : 2)) attend_tiles(const AttentionParameters<T> p) {
  constexpr int kPitch = kAttentionPitch;
  constexpr int kPart = kAttentionEdge * kPitch;  // 64 columns of values
  TL_DYNAMIC_SHARED(float, memory);
  const int padded = padded_width(p.width);
  const int keys_at = padded * kPitch;  // and then the values
  const int weights_at = keys_at + (padded > kAttentionEdge * kWide ? padded : kAttentionEdge * kWide) * kPitch;
  const int row = static_cast<int>(thread_in_block() / kTileSide) * kQuad;
  const int column = static_cast<int>(thread_in_block() % kTileSide) * kQuad;
  TL_ROLLED
  for (std::int64_t tile = block_in_grid(); tile < p.tiles; tile += blocks_in_grid()) {
    const std::int64_t matrix = p.by_tiles.quotient(tile);
    const std::int64_t first_query = (tile - matrix * p.by_tiles.value) * kAttentionEdge;
    const AttentionOffsets offsets = offsets_in(p.stack, matrix);
    bring_tile<T>(p.query, offsets.query, first_query, p.queries, p.width, padded, memory, 0);
    LargestOfRows::State largest;
    SumsOfRows::State sums;
    float results[kQuad][kWide * kQuad];
    TL_UNROLL
    for (int i = 0; i < kQuad; ++i) {
      largest.rows[i] = Limits<float>::kLowest;
      sums.rows[i] = 0.0F;
      TL_UNROLL
      for (int j = 0; j < kWide * kQuad; ++j) results[i][j] = 0.0F;
    }
    std::int64_t end = p.keys;
    if (p.causal) {
      const std::int64_t after = first_query + kAttentionEdge < p.queries ? first_query + kAttentionEdge : p.queries;
      end = after + p.causal_offset < end ? after + p.causal_offset : end;
    }
    TL_ROLLED
    for (std::int64_t first_key = 0; first_key < end; first_key += kAttentionEdge) {
      bring_tile<T>(p.key, offsets.key, first_key, p.keys, p.width, padded, memory, keys_at);
      block_barrier();
      float scores[kQuad][kQuad] = {};
      TL_ROLLED
      for (int k = 0; k < p.width; k += 8) {
        TL_UNROLL
        for (int step = 0; step < 8; ++step) {
          float a[kQuad];
          float b[kQuad];
          read_quad(memory, (k + step) * kPitch + row, a);
          read_quad(memory, keys_at + (k + step) * kPitch + column, b);
          TL_UNROLL
          for (int i = 0; i < kQuad; ++i) {
            TL_UNROLL
            for (int j = 0; j < kQuad; ++j) scores[i][j] = fused_multiply_add(a[i], b[j], scores[i][j]);
          }
        }
      }
      mask_scores(p, offsets.mask, first_query + row, first_key + column, scores);
      LargestOfRows::State now = largest;
      TL_UNROLL
      for (int i = 0; i < kQuad; ++i) {
        TL_UNROLL
        for (int j = 0; j < kQuad; ++j) now.rows[i] = max_number(now.rows[i], scores[i][j]);
      }
      now = combine_lanes<LargestOfRows>(now, kTileSide);
      TL_UNROLL
      for (int i = 0; i < kQuad; ++i) {
        const float origin = attention_origin(now.rows[i]);
        const float rescale = exponential(largest.rows[i] - origin);
        largest.rows[i] = now.rows[i];
        sums.rows[i] *= rescale;
        TL_UNROLL
        for (int j = 0; j < kWide * kQuad; ++j) results[i][j] *= rescale;
        Vector<float> weights;
        TL_UNROLL
        for (int j = 0; j < kQuad; ++j) {
          const float weight = exponential(scores[i][j] - origin);
          sums.rows[i] += weight;
          weights.set_element(j, weight);
        }
        store_shared_vector(memory, static_cast<unsigned>(weights_at + (row + i) * kPitch + column), weights);
      }
      block_barrier();  // all have read the keys
      const int keys = p.keys - first_key < kAttentionEdge ? static_cast<int>(p.keys - first_key) : kAttentionEdge;
      TL_ROLLED
      for (int part = 0; part < kWide; ++part)
        bring_tile<T>(p.value, offsets.value + first_key * p.value.depth, part * kAttentionEdge, p.value_width, keys,
                      kAttentionEdge, memory, keys_at + part * kPart);
      block_barrier();
      TL_ROLLED
      for (int k = 0; k < keys; k += kQuad) {
        float a[kQuad][kQuad];
        TL_UNROLL
        for (int i = 0; i < kQuad; ++i) read_quad(memory, weights_at + (row + i) * kPitch + k, a[i]);
        TL_UNROLL
        for (int step = 0; step < kQuad; ++step) {
          TL_UNROLL
          for (int part = 0; part < kWide; ++part) {
            float b[kQuad];
            read_quad(memory, keys_at + part * kPart + (k + step) * kPitch + column, b);
            TL_UNROLL
            for (int i = 0; i < kQuad; ++i) {
              TL_UNROLL
              for (int j = 0; j < kQuad; ++j)
                results[i][part * kQuad + j] = fused_multiply_add(a[i][step], b[j], results[i][part * kQuad + j]);
            }
          }
        }
      }
      block_barrier();  // before the next keys, and the next queries
    }
    sums = combine_lanes<SumsOfRows>(sums, kTileSide);
    TL_UNROLL
    for (int i = 0; i < kQuad; ++i) {
      const std::int64_t query = first_query + row + i;
      if (query >= p.queries) continue;
      bool zero = false;
      const float factor = attention_factor(p.undefined, largest.rows[i], sums.rows[i], zero);
      T* const to = p.result + offsets.result + query * p.result_row;
      TL_UNROLL
      for (int part = 0; part < kWide; ++part) {
        const int first = part * kAttentionEdge + column;
        T x[kQuad];
        TL_UNROLL
        for (int j = 0; j < kQuad; ++j) x[j] = narrow<T>(zero ? 0.0F : results[i][part * kQuad + j] * factor);
        if (p.aligned && first + kQuad <= p.value_width) {
          store_quad(to + first, x);
        } else {
          TL_UNROLL
          for (int j = 0; j < kQuad; ++j)
            if (first + j < p.value_width) store_global(to + first + j, x[j]);
        }
      }
    }
  }
}

}  // namespace tensorlint::kernels
