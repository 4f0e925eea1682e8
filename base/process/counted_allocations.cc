// Counts what each thread takes from the heap: linked by programs that check files, never by libraries, since it
// replaces operator new of the whole process. The other forms of new and delete of the standard library call these.
#include <malloc.h>

#include <cstdlib>
#include <new>

#include "base/allocations.h"

namespace {

constexpr std::uint64_t kStepsOfAllocation = 4, kBytesOfStep = 64;

/// Steps by what is asked for, which depends on the input alone; bytes by what is given, which is what is freed.
void* counted(void* memory, std::size_t asked) noexcept {
  tensorlint::allocations.steps += kStepsOfAllocation + asked / kBytesOfStep;
  tensorlint::allocations.live += static_cast<std::int64_t>(::malloc_usable_size(memory));
  return memory;
}

/// As the standard says it of operator new: the handler may free memory, or end the program.
template <typename Take>
void* take(std::size_t bytes, const Take& of_heap) {
  while (true) {
    if (void* const memory = of_heap()) return counted(memory, bytes);
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void give_back(void* memory) noexcept {
  if (memory == nullptr) return;
  tensorlint::allocations.live -= static_cast<std::int64_t>(::malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return take(bytes, [bytes] { return std::malloc(bytes == 0 ? 1 : bytes); });
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto multiple = static_cast<std::size_t>(alignment);
  const std::size_t padded = (bytes + multiple - 1) / multiple * multiple;  // as aligned_alloc wants it
  if (padded < bytes) throw std::bad_alloc();
  return take(bytes, [=] { return std::aligned_alloc(multiple, padded == 0 ? multiple : padded); });
}

void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
