#pragma once

// How every call lays out a workspace: tickets first, in a place and size of their own whatever the shape, then what
// the call keeps between its blocks. So calls of any shapes, reductions and losses alike, can share one workspace: what
// one left in its partials is never another's ticket.

#include "kernels/common/launch.h"

namespace tensorlint::kernels {

/// Sets of blocks that a launch may combine through tickets, one ticket each: the plans keep below it.
constexpr std::size_t kMaxTickets = 8192;
/// Zero between calls.
constexpr std::size_t kTicketBytes = kMaxTickets * sizeof(unsigned);

inline unsigned* tickets_of(void* workspace) { return static_cast<unsigned*>(workspace); }
/// Where the call's own part begins; 16-byte aligned.
inline unsigned char* scratch_of(void* workspace) { return static_cast<unsigned char*>(workspace) + kTicketBytes; }

/// Zeroes the tickets of a workspace of `bytes`. Errors: kNullPointer, kLaunchFailed.
inline Status zero_tickets(void* workspace, std::size_t bytes, Stream stream) {
  if (workspace == nullptr && bytes > 0) return Status::kNullPointer;
  return zero_memory(workspace, bytes < kTicketBytes ? bytes : kTicketBytes, stream);
}

}  // namespace tensorlint::kernels
