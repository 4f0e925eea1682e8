#pragma once

// A block's tile of a product: the sums of 64 x 64 or 128 x 128 elements of the result. Both factors go through shared
// memory in steps of k, two of them there at a time: while one is multiplied the next one is on its way from global
// memory. A thread has 4 x 4 elements, or four times these 64 apart.
//
// Where a factor comes from is its loader's: load(left) fetches this thread's elements of the next step, store(...)
// puts them into shared memory as [k][position], position being the row of the left factor or the column of the right
// one.

#include "kernels/common/combine.h"
#include "kernels/common/divisor.h"
#include "kernels/common/vector.h"

namespace tensorlint::kernels {

/// Threads side by side: 16 x 16.
constexpr unsigned kTileSide = 16;
/// Elements of the result that neighbour in a thread, in each direction.
constexpr int kQuad = 4;

/// `kTile`: edges of 64 or 128. A step has one 16-byte vector of each factor a thread.
template <typename T, int kTile>
struct TileShape {
  static constexpr int kEdge = 64 * kTile;
  static constexpr int kDepth = Vector<T>::kSize * static_cast<int>(kThreads) / kEdge;
  static constexpr int kPitch = kEdge + kQuad;  // stores of a vector along k meet fewer banks twice; 16-byte aligned
  static constexpr int kStep = kPitch * kDepth;
  /// Of each factor, for two steps.
  static constexpr int kSharedElements = 2 * kStep;
};

/// A matrix that lies somewhere with strides, seen from the product: `position` is the row of a left factor, the column
/// of a right one.
template <typename T>
struct StridedFactor {
  enum class Walk : int {
    kAlongDepth,      // neighbours in k are neighbours in memory
    kAlongPositions,  // neighbouring positions are, and all vectors of a step are aligned
    kApart            // neither, or not aligned: neighbouring threads take neighbouring positions
  };
  const T* data = nullptr;
  std::int64_t position = 0;  // strides, in elements
  std::int64_t depth = 0;
  Walk walk = Walk::kApart;
  bool aligned = false;  // kAlongDepth: vectors are
};

/// One thread's part of a StridedFactor.
template <typename T, int kTile>
class StridedLoader {
  using Shape = TileShape<T, kTile>;
  using Walk = typename StridedFactor<T>::Walk;
  static constexpr int kSize = Vector<T>::kSize;
  static constexpr int kDepthVectors = Shape::kDepth / kSize;
  static constexpr int kPositionVectors = Shape::kEdge / kSize;
  static constexpr int kApartStep = static_cast<int>(kThreads) / Shape::kEdge;

 public:
  /// Of positions `first` to `end`.
  TL_DEVICE StridedLoader(const StridedFactor<T>& factor, std::int64_t offset, std::int64_t first, std::int64_t end)
      : factor_(factor), positions_(static_cast<int>(end - first < Shape::kEdge ? end - first : Shape::kEdge)) {
    const Place mine = place();
    from_ = factor.data + offset + (first + mine.position) * factor.position + mine.k * factor.depth;
  }

  /// Elements of the next step, of which `left` are in k; zeros outside of the matrix.
  TL_DEVICE void load(std::int64_t left) {
    const Place mine = place();
    const int room = positions_ - mine.position;
    vector_ = {};
    if (factor_.walk == Walk::kAlongPositions) {
      if (mine.k < left) {
        if (room >= kSize) {
          vector_ = load_global(reinterpret_cast<const Vector<T>*>(from_));
        } else {
          TL_UNROLL
          for (int i = 0; i < kSize; ++i)
            if (i < room) vector_.set_element(i, load_global(from_ + i));
        }
      }
    } else if (room > 0) {
      if (factor_.aligned && mine.k + kSize <= left) {
        vector_ = load_global(reinterpret_cast<const Vector<T>*>(from_));
      } else {
        const int step = factor_.walk == Walk::kApart ? kApartStep : 1;
        const std::int64_t stride = opaque(factor_.depth) * step;
        const T* from = from_;
        TL_UNROLL
        for (int i = 0; i < kSize; ++i) {
          if (mine.k + i * step < left) vector_.set_element(i, load_global(from));
          from += stride;
        }
      }
    }
    from_ += Shape::kDepth * factor_.depth;
  }

  template <typename Tile>
  TL_DEVICE void store(const Tile& tile, int first) const {
    const Place mine = place();
    const int to = first + mine.k * Shape::kPitch + mine.position;
    Compute<T> x[kSize];
    unpack(vector_, x);
    if (factor_.walk == Walk::kAlongPositions) {
      TL_UNROLL
      for (int i = 0; i < kSize; i += Vector<Compute<T>>::kSize) {
        Vector<Compute<T>> part;
        TL_UNROLL
        for (int j = 0; j < Vector<Compute<T>>::kSize; ++j) part.set_element(j, x[i + j]);
        store_shared_vector(tile, static_cast<unsigned>(to + i), part);
      }
    } else {
      const int step = factor_.walk == Walk::kApart ? kApartStep * Shape::kPitch : Shape::kPitch;
      TL_UNROLL
      for (int i = 0; i < kSize; ++i) tile[to + i * step] = x[i];
    }
  }

 private:
  /// Of this thread's first element, in a step. Worked out each time: what is kept while sums are made costs registers.
  struct Place {
    int position;
    int k;
  };
  TL_DEVICE Place place() const {
    const int tid = opaque(static_cast<int>(thread_in_block()));
    if (factor_.walk == Walk::kAlongDepth) return {tid / kDepthVectors, tid % kDepthVectors * kSize};
    if (factor_.walk == Walk::kAlongPositions) return {tid % kPositionVectors * kSize, tid / kPositionVectors};
    return {tid % Shape::kEdge, tid / Shape::kEdge};
  }

  const StridedFactor<T>& factor_;
  int positions_;            // of the matrix in this tile
  const T* from_ = nullptr;  // of the next step
  Vector<T> vector_{};
};

/// A thread's rows (or columns) of one k: 4, or 4 and the 4 that lie 64 further.
template <int kTile, typename C, typename Tile>
TL_DEVICE void read_quads(const Tile& tile, int first, unsigned side, C (&x)[kTile * kQuad]) {
  TL_UNROLL
  for (int part = 0; part < kTile; ++part) {
    TL_UNROLL
    for (int i = 0; i < kQuad; i += Vector<C>::kSize) {
      const auto vector = load_shared_vector<Vector<C>>(
          tile, static_cast<unsigned>(first + part * 64 + static_cast<int>(side) * kQuad + i));
      TL_UNROLL
      for (int j = 0; j < Vector<C>::kSize; ++j) x[part * kQuad + i + j] = vector.element(j);
    }
  }
}

/// Sums of a tile over all of k, in ascending order. Ends with a barrier: the next tile may follow at once.
template <typename T, int kTile, typename Left, typename Right, typename Tile>
TL_DEVICE void accumulate_tile(Left& left, Right& right, std::int64_t depth, const Tile& left_tile,
                               const Tile& right_tile, Compute<T> (&sums)[kTile * kQuad][kTile * kQuad]) {
  using Shape = TileShape<T, kTile>;
  using C = Compute<T>;
  const unsigned row = thread_in_block() / kTileSide, column = thread_in_block() % kTileSide;
  TL_UNROLL
  for (int i = 0; i < kTile * kQuad; ++i) {
    TL_UNROLL
    for (int j = 0; j < kTile * kQuad; ++j) sums[i][j] = C{0};
  }
  left.load(depth);
  right.load(depth);
  left.store(left_tile, 0);
  right.store(right_tile, 0);
  block_barrier();
  int step = 0;
  TL_ROLLED
  for (std::int64_t still = depth; still > 0; still -= Shape::kDepth) {
    const bool more = still > Shape::kDepth;
    if (more) {
      left.load(still - Shape::kDepth);
      right.load(still - Shape::kDepth);
    }
    TL_UNROLL
    for (int d = 0; d < Shape::kDepth; ++d) {
      C a[kTile * kQuad];
      C b[kTile * kQuad];
      read_quads<kTile>(left_tile, step + d * Shape::kPitch, row, a);
      read_quads<kTile>(right_tile, step + d * Shape::kPitch, column, b);
      TL_UNROLL
      for (int i = 0; i < kTile * kQuad; ++i) {
        TL_UNROLL
        for (int j = 0; j < kTile * kQuad; ++j) sums[i][j] = fused_multiply_add(a[i], b[j], sums[i][j]);
      }
    }
    step = Shape::kStep - step;
    if (more) {
      left.store(left_tile, step);
      right.store(right_tile, step);
    }
    block_barrier();
  }
}

/// What becomes of the sums of one matrix.
template <typename T>
struct TileResult {
  T* data = nullptr;          // of the matrix; contiguous
  const T* addend = nullptr;  // of the matrix, or null
  std::int64_t addend_row = 0;
  std::int64_t addend_column = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  Compute<T> alpha = 1;
  Compute<T> beta = 1;
  bool aligned = false;  // rows of 4 elements are
};

/// 4 neighbours in memory: one store, two for float64.
template <typename T>
struct alignas(sizeof(T) == 8 ? 16 : 4 * sizeof(T)) Quad {
  T elements[kQuad];
};

template <typename T>
TL_DEVICE void store_quad(T* to, const T (&x)[kQuad]) {
  if constexpr (sizeof(T) >= 4) {
    TL_UNROLL
    for (int i = 0; i < kQuad; i += Vector<T>::kSize) {
      Vector<T> vector;
      TL_UNROLL
      for (int j = 0; j < Vector<T>::kSize; ++j) vector.set_element(j, x[i + j]);
      store_global(reinterpret_cast<Vector<T>*>(to + i), vector);
    }
  } else {
    store_global(reinterpret_cast<Quad<T>*>(to), Quad<T>{{x[0], x[1], x[2], x[3]}});
  }
}

template <typename T, int kTile>
TL_DEVICE void write_tile(const TileResult<T>& result, std::int64_t first_row, std::int64_t first_column,
                          const Compute<T> (&sums)[kTile * kQuad][kTile * kQuad]) {
  const unsigned side_row = thread_in_block() / kTileSide, side_column = thread_in_block() % kTileSide;
  TL_UNROLL
  for (int i = 0; i < kTile * kQuad; ++i) {
    const std::int64_t row = first_row + i / kQuad * 64 + side_row * kQuad + i % kQuad;
    if (row >= result.m) continue;
    TL_UNROLL
    for (int part = 0; part < kTile; ++part) {
      const std::int64_t column = first_column + part * 64 + side_column * kQuad;
      T x[kQuad];
      TL_UNROLL
      for (int j = 0; j < kQuad; ++j) {
        Compute<T> value = result.alpha * sums[i][part * kQuad + j];
        if (result.addend != nullptr && column + j < result.n) {
          const T* const from = result.addend + row * result.addend_row + (column + j) * result.addend_column;
          value = fused_multiply_add(result.beta, widen(load_global(from)), value);
        }
        x[j] = narrow<T>(value);
      }
      T* const to = result.data + row * result.n + column;
      if (result.aligned && column + kQuad <= result.n) {
        store_quad(to, x);
      } else {
        TL_UNROLL
        for (int j = 0; j < kQuad; ++j)
          if (column + j < result.n) store_global(to + j, x[j]);
      }
    }
  }
}

}  // namespace tensorlint::kernels
