#include "runtime/values/memory.h"

#include <fmt/format.h>

namespace tensorlint::runtime {

void Memory::take(std::uint64_t bytes) {
  const std::uint64_t live = live_ += bytes;
  if (bytes > limit_ || live > limit_) {
    live_ -= bytes;
    throw RunFault{fmt::format("{} bytes more are needed; {} are in use and the limit is {} (--memory-limit)", bytes,
                               live - bytes, limit_)};
  }
  std::uint64_t peak = peak_;
  while (live > peak && !peak_.compare_exchange_weak(peak, live)) {
  }
}

}  // namespace tensorlint::runtime
