#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace tensorlint::runtime {

/// With AddressSanitizer each block is one of its own, whose bounds and end are seen.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized = __has_feature(address_sanitizer) != 0;
#else
inline constexpr bool kIsSanitized = false;
#endif

/// What ends a run: an operand that an operator cannot take, a limit, an operator without an evaluator. Thrown inside
/// the runtime only; Interpreter::run turns it into an Error that names the node.
struct RunFault {
  std::string message;  ///< lower case, one line; names in it are not yet escaped
};

/// Blocks of memory for elements. Large blocks that are given back are kept for the next ones of about their size:
/// pages that the system hands out anew cost more than most operators. With sanitizers none is kept, so that they see
/// the bounds and the end of each block.
class BlockStore {
 public:
  BlockStore() = default;
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;
  ~BlockStore();

  struct Block {
    std::byte* elements = nullptr;
    std::size_t bytes = 0;  ///< at least as many as were asked for
  };
  /// Not initialised, at a cache line's beginning. Null where the system has none left.
  /// New pages leave at most `most` bytes to blocks that are kept.
  Block take(std::size_t bytes, std::size_t most);
  /// Keeps blocks of `most` bytes in all.
  void give_back(Block block, std::size_t most);

 private:
  void release_kept(std::size_t most);  ///< under the lock

  // Of blocks up to 1 KiB, for most numbers and shapes, some of each size are kept: 1 MiB in all at most.
  static constexpr std::size_t kSmallStep = 64, kSmallSizes = 16, kSmallKept = 64;
  std::array<std::vector<std::byte*>, kSmallSizes> small_;

  std::mutex mutex_;
  std::multimap<std::size_t, std::byte*> kept_;  ///< by size
  std::size_t kept_bytes_ = 0;
};

/// Keeps tensors only to save time, and gives them up when others need the memory.
class MemoryReserve {
 public:
  virtual ~MemoryReserve() = default;
  /// From any thread. Takes no memory.
  virtual void release() = 0;
};

/// Counts the bytes of live tensors against a limit, before they are allocated.
class Memory {
 public:
  /// `option` of the command line sets the limit.
  explicit Memory(std::uint64_t limit, std::string_view option = "--memory-limit") : limit_(limit), option_(option) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Throws RunFault where the limit would be passed, also without what reserves keep.
  void take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) { live_ -= bytes; }
  /// Throws where take() would, and takes nothing.
  void require(std::uint64_t bytes) {
    take(bytes);
    give_back(bytes);
  }

  /// A block that the account has taken already; throws RunFault where the system has none.
  BlockStore::Block take_block(std::size_t bytes);
  void give_back_block(BlockStore::Block block);

  /// Without taking them, and without what a reserve keeps.
  bool has_room(std::uint64_t bytes) const { return bytes <= limit_ && live_ <= limit_ - bytes; }

  /// For containers: each allocation is taken first, and throws RunFault as take() and take_block() do.
  std::pmr::memory_resource* resource() { return &resource_; }

  /// What gives memory up where the limit would be passed: one at a time; null: nothing.
  void set_reserve(MemoryReserve* reserve) { reserve_ = reserve; }
  MemoryReserve* reserve() const { return reserve_; }
  void release_reserve() {
    if (MemoryReserve* const given_up = reserve_) given_up->release();
  }

  std::uint64_t live() const { return live_; }
  std::uint64_t peak() const { return peak_; }
  std::uint64_t limit() const { return limit_; }

 private:
  class Resource final : public std::pmr::memory_resource {
   public:
    explicit Resource(Memory& memory) : memory_(memory) {}

   private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override;
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    Memory& memory_;
  };

  /// False where the limit would be passed.
  bool try_take(std::uint64_t bytes);
  /// What blocks that are kept may take: with the live tensors no more than these once took, and a little.
  std::uint64_t most_kept() const;

  std::uint64_t limit_;
  std::string_view option_;
  std::atomic<std::uint64_t> live_ = 0, peak_ = 0;
  std::atomic<MemoryReserve*> reserve_ = nullptr;
  BlockStore blocks_;
  Resource resource_{*this};
};

}  // namespace tensorlint::runtime
