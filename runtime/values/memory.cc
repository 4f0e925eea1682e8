#include "runtime/values/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <new>

#include <fmt/format.h>

namespace tensorlint::runtime {
namespace {

constexpr std::align_val_t kAlignment{64};  // a cache line, and the widest vectors

// Blocks from here on are pages of their own: below, the heap's own lists are as good.
constexpr std::size_t kLargeBlock = kIsSanitized ? SIZE_MAX : std::size_t{64} << 10;
constexpr std::size_t kPage = 4096;

constexpr std::uint64_t kKeptBesidePeak = std::uint64_t{16} << 20;

/// What the heap takes beside an allocation, about: its header, and sizes are rounded up.
constexpr std::uint64_t kHeapBytes = 16;

RunFault none_left(std::size_t bytes) { return {fmt::format("the system has no {} bytes of memory left", bytes)}; }

/// Pages of the system, all of them there at once: one by one they would take five times as long.
std::byte* map_pages(std::size_t bytes) {
#ifdef MAP_POPULATE
  constexpr int kPopulate = MAP_POPULATE;
#else
  constexpr int kPopulate = 0;
#endif
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | kPopulate, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

}  // namespace

BlockStore::~BlockStore() {
  release_kept(0);
  for (const auto& blocks : small_)
    for (std::byte* const block : blocks) ::operator delete(block, kAlignment);
}

BlockStore::Block BlockStore::take(std::size_t bytes, std::size_t most) {
  if (!kIsSanitized && bytes <= kSmallStep * kSmallSizes) {
    const std::size_t steps = std::max<std::size_t>((bytes + kSmallStep - 1) / kSmallStep, 1);
    bytes = steps * kSmallStep;
    const std::lock_guard lock(mutex_);
    if (auto& blocks = small_[steps - 1]; !blocks.empty()) {
      const Block block{blocks.back(), bytes};
      blocks.pop_back();
      return block;
    }
  }
  if (bytes < kLargeBlock) return {static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow)), bytes};
  if (bytes > SIZE_MAX - kPage) return {};
  bytes = (bytes + kPage - 1) / kPage * kPage;
  {
    const std::lock_guard lock(mutex_);
    // One that is an eighth larger will do.
    if (const auto found = kept_.lower_bound(bytes); found != kept_.end() && found->first <= bytes + bytes / 8) {
      const Block block{found->second, found->first};
      kept_.erase(found);
      kept_bytes_ -= block.bytes;
      return block;
    }
    release_kept(most);
  }
  std::byte* elements = map_pages(bytes);
  if (elements == nullptr) {
    const std::lock_guard lock(mutex_);
    release_kept(0);
    elements = map_pages(bytes);
  }
  return {elements, bytes};
}

void BlockStore::give_back(Block block, std::size_t most) {
  if (!kIsSanitized && block.bytes <= kSmallStep * kSmallSizes) {
    const std::lock_guard lock(mutex_);
    if (auto& blocks = small_[block.bytes / kSmallStep - 1]; blocks.size() < kSmallKept) {
      blocks.push_back(block.elements);
      return;
    }
  }
  if (block.bytes < kLargeBlock) return ::operator delete(block.elements, kAlignment);
  const std::lock_guard lock(mutex_);
  kept_.emplace(block.bytes, block.elements);
  kept_bytes_ += block.bytes;
  release_kept(most);
}

void BlockStore::release_kept(std::size_t most) {
  while (kept_bytes_ > most) {
    const auto largest = std::prev(kept_.end());
    ::munmap(largest->second, largest->first);
    kept_bytes_ -= largest->first;
    kept_.erase(largest);
  }
}

bool Memory::try_take(std::uint64_t bytes) {
  const std::uint64_t live = live_ += bytes;
  if (bytes > limit_ || live > limit_) {
    live_ -= bytes;
    return false;
  }
  std::uint64_t peak = peak_;
  while (live > peak && !peak_.compare_exchange_weak(peak, live)) {
  }
  return true;
}

void Memory::take(std::uint64_t bytes) {
  if (try_take(bytes)) return;
  release_reserve();
  if (try_take(bytes)) return;
  throw RunFault{
      fmt::format("{} bytes more are needed; {} are in use and the limit is {} ({})", bytes, live(), limit_, option_)};
}

BlockStore::Block Memory::take_block(std::size_t bytes) {
  const BlockStore::Block block = blocks_.take(bytes, most_kept());
  if (block.elements == nullptr) throw none_left(bytes);
  return block;
}

void Memory::give_back_block(BlockStore::Block block) { blocks_.give_back(block, most_kept()); }

void* Memory::Resource::do_allocate(std::size_t bytes, std::size_t alignment) {
  memory_.take(bytes + kHeapBytes);
  void* const at = ::operator new(bytes, std::align_val_t{alignment}, std::nothrow);
  if (at != nullptr) return at;
  memory_.give_back(bytes + kHeapBytes);
  throw none_left(bytes);
}

void Memory::Resource::do_deallocate(void* at, std::size_t bytes, std::size_t alignment) {
  ::operator delete(at, std::align_val_t{alignment});
  memory_.give_back(bytes + kHeapBytes);
}

std::uint64_t Memory::most_kept() const {
  const std::uint64_t most = peak_ + kKeptBesidePeak, live = live_;
  return live < most ? most - live : 0;
}

}  // namespace tensorlint::runtime
