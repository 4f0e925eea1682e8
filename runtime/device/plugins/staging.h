#pragma once

// Pinned memory between the host's own and a device's. The runtime promises of memory that is not pinned neither that
// it is read or written before a copy's call returns, nor that the call returns before the copy is made
// (cuda_runtime_api.h, "API synchronization behavior"). Through pinned memory both hold.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <deque>
#include <vector>

namespace tensorlint::plugins {

/// The copies of one stream: a ring in which each has its bytes until it is made. Not thread-safe.
class Staging {
 public:
  /// Copies that are under way at one time; a larger one goes in pieces of a quarter.
  static constexpr std::size_t kBytes = std::size_t{32} << 20, kPiece = kBytes / 4, kMostCopies = 256;

  Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  /// Nothing is under way.
  ~Staging() {
    for (const Copy& copy : copies_) (void)cudaEventDestroy(copy.made);
    for (cudaEvent_t event : events_) (void)cudaEventDestroy(event);
    if (memory_ != nullptr) (void)cudaFreeHost(memory_);
  }

  /// Has read `from` when it returns.
  cudaError_t copy_in(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    return in_pieces(bytes, [&](std::size_t at, std::size_t piece) {
      std::size_t first = 0;
      if (const cudaError_t error = reserve(piece, &first); error != cudaSuccess) return error;
      std::memcpy(memory_ + first, static_cast<const unsigned char*>(from) + at, piece);
      const cudaError_t error =
          cudaMemcpyAsync(static_cast<unsigned char*>(to) + at, memory_ + first, piece, cudaMemcpyHostToDevice, stream);
      return error == cudaSuccess ? add({first, piece, nullptr, nullptr}, stream) : error;
    });
  }

  /// `to` is written by this call, by deliver() and by later copies, and at the latest by deliver_all().
  cudaError_t copy_out(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    return in_pieces(bytes, [&](std::size_t at, std::size_t piece) {
      std::size_t first = 0;
      if (const cudaError_t error = reserve(piece, &first); error != cudaSuccess) return error;
      const cudaError_t error = cudaMemcpyAsync(memory_ + first, static_cast<const unsigned char*>(from) + at, piece,
                                                cudaMemcpyDeviceToHost, stream);
      return error == cudaSuccess ? add({first, piece, static_cast<unsigned char*>(to) + at, nullptr}, stream) : error;
    });
  }

  /// What has been made reaches the host.
  cudaError_t deliver() {
    while (!copies_.empty()) {
      const cudaError_t made = cudaEventQuery(copies_.front().made);
      if (made == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return cudaSuccess;
      }
      if (const cudaError_t error = finish(made); error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }
  /// After the stream has been waited for. What failed is given up: nothing is written to the host later.
  cudaError_t deliver_all(bool has_failed) {
    cudaError_t first_error = cudaSuccess;
    while (!copies_.empty()) {
      const cudaError_t error = finish(has_failed ? cudaErrorUnknown : cudaEventQuery(copies_.front().made));
      if (first_error == cudaSuccess) first_error = error;
    }
    return has_failed ? cudaSuccess : first_error;
  }

 private:
  struct Copy {
    std::size_t first, bytes;
    unsigned char* to;  ///< on the host; null: to the device
    cudaEvent_t made;
  };

  template <typename Piece>
  static cudaError_t in_pieces(std::size_t bytes, const Piece& piece) {
    for (std::size_t at = 0; at < bytes; at += kPiece) {
      const cudaError_t error = piece(at, bytes - at < kPiece ? bytes - at : kPiece);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  /// Waits for the oldest copies while they are where the next one goes.
  cudaError_t reserve(std::size_t bytes, std::size_t* first) {
    if (memory_ == nullptr) {
      void* memory = nullptr;
      if (const cudaError_t error = cudaHostAlloc(&memory, kBytes, cudaHostAllocDefault); error != cudaSuccess)
        return error;
      memory_ = static_cast<unsigned char*>(memory);
    }
    const auto wait_while = [&](const auto& is_in_the_way) {
      while (!copies_.empty() && is_in_the_way(copies_.front())) {
        const cudaError_t error = finish(cudaEventSynchronize(copies_.front().made));
        if (error != cudaSuccess) return error;
      }
      return cudaSuccess;
    };
    if (next_ + bytes > kBytes) {
      // Those between the youngest and the end of the ring are the oldest.
      const auto error = wait_while([&](const Copy& copy) { return copy.first >= next_; });
      if (error != cudaSuccess) return error;
      next_ = 0;
    }
    const auto error = wait_while([&](const Copy& copy) {
      return copies_.size() >= kMostCopies || (copy.first < next_ + bytes && next_ < copy.first + copy.bytes);
    });
    *first = next_;
    return error;
  }

  /// A copy that is in its stream.
  cudaError_t add(Copy copy, cudaStream_t stream) {
    if (events_.empty()) {
      cudaEvent_t event = nullptr;
      if (const cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming); error != cudaSuccess)
        return abandon(error, stream);
      events_.push_back(event);
    }
    copy.made = events_.back();
    if (const cudaError_t error = cudaEventRecord(copy.made, stream); error != cudaSuccess)
      return abandon(error, stream);
    events_.pop_back();
    copies_.push_back(copy);
    next_ = (copy.first + copy.bytes + kAlignment - 1) / kAlignment * kAlignment;
    return cudaSuccess;
  }
  /// The ring's memory is not used again while a copy that no event follows is under way.
  static cudaError_t abandon(cudaError_t error, cudaStream_t stream) {
    (void)cudaStreamSynchronize(stream);
    return error;
  }

  /// The oldest copy, if it is `made`.
  cudaError_t finish(cudaError_t made) {
    const Copy copy = copies_.front();
    copies_.pop_front();
    events_.push_back(copy.made);
    if (made == cudaSuccess && copy.to != nullptr) std::memcpy(copy.to, memory_ + copy.first, copy.bytes);
    return made;
  }

  static constexpr std::size_t kAlignment = 256;

  unsigned char* memory_ = nullptr;
  std::size_t next_ = 0;
  std::deque<Copy> copies_;  ///< the oldest first
  std::vector<cudaEvent_t> events_;
};

}  // namespace tensorlint::plugins
