#pragma once

#include <cstdint>

namespace tensorlint {

/// What this thread has taken from the heap, where the program counts it (base/process/counted_allocations.cc); 0 for
/// ever in programs that do not, such as those of users of the library.
struct Allocations {
  std::uint64_t steps = 0;  ///< of Meter, for all that was taken: an allocation, and writing to its bytes
  std::int64_t live = 0;    ///< bytes that are not given back; below 0 where other threads took them
};

inline constinit thread_local Allocations allocations;

}  // namespace tensorlint
