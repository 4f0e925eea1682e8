#pragma once

// The only place that spells CUDA: threads, barriers, shuffles, shared memory, tracked global accesses, launches. Under
// nvcc each is the built-in; under a host compiler it is the emulator's, with the same meaning and more checks. Kernels
// use these and nothing else, so that what the emulator proves is what runs. PTX asm is allowed here and in
// instructions.h only.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__CUDACC__)

#include <cuda_runtime.h>
#define TL_KERNEL __global__
#define TL_DEVICE __device__ __forceinline__
#define TL_HOST_DEVICE __host__ __device__ __forceinline__
/// `blocks`: how many must fit an SM. Without it ptxas aims at an occupancy of its own and spills to get there.
#define TL_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define TL_UNROLL _Pragma("unroll")
#define TL_ROLLED _Pragma("unroll 1")
/// Shared array `name` of `count` elements of a trivial type, from a 16-byte boundary on.
#define TL_SHARED(T, name, count)                  \
  __shared__ __align__(16) T name##_memory[count]; \
  const ::tensorlint::kernels::SharedArray<T> name(name##_memory)
/// The launch's dynamic shared memory as an array of T; at most once in a kernel.
#define TL_DYNAMIC_SHARED(T, name)                                           \
  extern __shared__ __align__(16) unsigned char tensorlint_dynamic_shared[]; \
  const ::tensorlint::kernels::SharedArray<T> name(reinterpret_cast<T*>(tensorlint_dynamic_shared))
#define TL_WHERE_PARAMETER
#define TL_WHERE

#else

#include <source_location>

#include "kernels/emulator/simt.h"
#define TL_KERNEL inline
#define TL_DEVICE inline
#define TL_HOST_DEVICE inline
#define TL_LAUNCH_BOUNDS(threads, blocks)
#define TL_UNROLL
#define TL_ROLLED
#define TL_SHARED(T, name, count)                             \
  static const char name##_site = 0;                          \
  const ::tensorlint::kernels::emulator::SharedArray<T> name( \
      ::tensorlint::kernels::emulator::shared_storage(&name##_site, count, sizeof(T), #name))
#define TL_DYNAMIC_SHARED(T, name)                            \
  const ::tensorlint::kernels::emulator::SharedArray<T> name( \
      ::tensorlint::kernels::emulator::dynamic_shared_storage(sizeof(T)))
#define TL_WHERE_PARAMETER , const std::source_location& where = std::source_location::current()
#define TL_WHERE , where

#endif

namespace tensorlint::kernels {

constexpr unsigned kWarpLanes = 32;
constexpr unsigned kFullMask = 0xffffffffU;

/// A cudaStream_t, by its underlying type so that callers need no CUDA header.
using Stream = struct CUstream_st*;

#if defined(__CUDACC__)

template <typename T>
class SharedArray {
 public:
  __device__ __forceinline__ explicit SharedArray(T* memory) : memory_(memory) {}
  template <typename Index>
  __device__ __forceinline__ T& operator[](Index index) const {
    return memory_[index];
  }
  /// The same array in block `rank` of this cluster (distributed shared memory, sm_90 on).
  __device__ __forceinline__ SharedArray in_block(unsigned rank) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    T* remote;
    asm("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"(memory_), "r"(rank));
    return SharedArray(remote);
#else
    (void)rank;
    return *this;
#endif
  }

 private:
  T* memory_;
};

/// Neighbouring elements of a shared array from `index` on as one V, which is as large as they are; `index` is a
/// multiple of their number. One instruction.
template <typename V, typename T>
TL_DEVICE V load_shared_vector(const SharedArray<T>& from, unsigned index) {
  return *reinterpret_cast<const V*>(&from[index]);
}
template <typename V, typename T>
TL_DEVICE void store_shared_vector(const SharedArray<T>& to, unsigned index, const V& vector) {
  *reinterpret_cast<V*>(&to[index]) = vector;
}

TL_DEVICE unsigned thread_in_block() { return threadIdx.x; }
TL_DEVICE unsigned threads_per_block() { return blockDim.x; }
TL_DEVICE unsigned block_in_grid() { return blockIdx.x; }
TL_DEVICE unsigned blocks_in_grid() { return gridDim.x; }
TL_DEVICE unsigned block_in_cluster() {
  unsigned rank = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}

TL_DEVICE void block_barrier() { __syncthreads(); }
TL_DEVICE void warp_barrier(unsigned mask) { __syncwarp(mask); }
/// Release and acquire for all threads of the cluster. Below sm_90 clusters are single blocks. Not .aligned: that asks
/// a warp to come as one, and its lanes may come from a branch that only some of them took.
TL_DEVICE void cluster_barrier() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
#else
  __syncthreads();
#endif
}
/// Orders this thread's earlier writes (and what it has seen of others' through barriers) before its later atomics, and
/// earlier atomics before later reads.
TL_DEVICE void fence() { __threadfence(); }
TL_DEVICE unsigned atomic_increment(unsigned* counter) { return atomicAdd(counter, 1U); }

/// `value` as lane `lane() ^ offset` has it. All lanes of `mask` must come, with offset inside the mask. Orders no
/// memory: that is warp_barrier.
template <typename T>
TL_DEVICE T shuffle_xor(unsigned mask, const T& value, unsigned offset) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  unsigned words[sizeof(T) / 4];
  memcpy(words, &value, sizeof(T));
  TL_UNROLL
  for (unsigned i = 0; i < sizeof(T) / 4; ++i) words[i] = __shfl_xor_sync(mask, words[i], static_cast<int>(offset));
  T result;
  memcpy(&result, words, sizeof(T));
  return result;
}

template <typename T>
TL_DEVICE T load_global(const T* from) {
  return *from;
}
/// Where another block may have written during this launch: never from a cache that is not coherent.
template <typename T>
TL_DEVICE T load_shared_between_blocks(const T* from) {
  static_assert(sizeof(T) % 4 == 0);
  T result;
  unsigned words[sizeof(T) / 4];
  TL_UNROLL
  for (unsigned i = 0; i < sizeof(T) / 4; ++i) words[i] = __ldcg(reinterpret_cast<const unsigned*>(from) + i);
  memcpy(&result, words, sizeof(T));
  return result;
}
template <typename T>
TL_DEVICE void store_global(T* to, const T& value) {
  if constexpr (sizeof(T) == 16 && alignof(T) == 16) {
    // One instruction: left to itself ptxas splits some vectors into four stores of 4 bytes, to save itself moves.
    unsigned words[4];
    memcpy(words, &value, 16);
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
  } else {
    *to = value;
  }
}

#else

template <typename T>
using SharedArray = emulator::SharedArray<T>;

template <typename V, typename T>
V load_shared_vector(const SharedArray<T>& from, unsigned index) {
  return from.template load_vector<V>(index);
}
template <typename V, typename T>
void store_shared_vector(const SharedArray<T>& to, unsigned index, const V& vector) {
  to.store_vector(index, vector);
}

inline unsigned thread_in_block() { return emulator::thread_in_block(); }
inline unsigned threads_per_block() { return emulator::threads_per_block(); }
inline unsigned block_in_grid() { return emulator::block_in_grid(); }
inline unsigned blocks_in_grid() { return emulator::blocks_in_grid(); }
inline unsigned block_in_cluster() { return emulator::block_in_cluster(); }

inline void block_barrier(const std::source_location& where = std::source_location::current()) {
  emulator::block_barrier(where);
}
inline void warp_barrier(unsigned mask TL_WHERE_PARAMETER) {
  unsigned nothing = 0;
  emulator::warp_exchange(mask, &nothing, sizeof nothing, thread_in_block() % kWarpLanes, true, where);
}
inline void cluster_barrier(const std::source_location& where = std::source_location::current()) {
  emulator::cluster_barrier(where);
}
inline void fence() { emulator::fence(); }
inline unsigned atomic_increment(unsigned* counter TL_WHERE_PARAMETER) {
  return emulator::atomic_increment(counter TL_WHERE);
}

template <typename T>
T shuffle_xor(unsigned mask, const T& value, unsigned offset TL_WHERE_PARAMETER) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0 && sizeof(T) <= 32);
  T result = value;
  emulator::warp_exchange(mask, &result, sizeof(T), (thread_in_block() % kWarpLanes) ^ offset, false, where);
  return result;
}

template <typename T>
T load_global(const T* from TL_WHERE_PARAMETER) {
  T value{};
  if (emulator::global_access(from, sizeof(T), alignof(T), emulator::Traffic::kLoad TL_WHERE))
    std::memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T>
T load_shared_between_blocks(const T* from TL_WHERE_PARAMETER) {
  T value{};
  if (emulator::global_access(from, sizeof(T), alignof(T), emulator::Traffic::kLoadPastL1 TL_WHERE))
    std::memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T>
void store_global(T* to, const T& value TL_WHERE_PARAMETER) {
  if (emulator::global_access(to, sizeof(T), alignof(T), emulator::Traffic::kStore TL_WHERE))
    std::memcpy(to, &value, sizeof(T));
}

#endif

/// The same number, as one that the compiler knows nothing about: what is computed of it is computed again.
TL_DEVICE std::int64_t opaque(std::int64_t x) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+l"(x));
#endif
  return x;
}
TL_DEVICE int opaque(int x) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+r"(x));
#endif
  return x;
}

TL_DEVICE unsigned lane_in_warp() { return thread_in_block() % kWarpLanes; }
TL_DEVICE unsigned warp_in_block() { return thread_in_block() / kWarpLanes; }

}  // namespace tensorlint::kernels
