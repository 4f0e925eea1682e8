#pragma once

// What a stand-in of cublasLt tells tests about itself: cublas_lt_stand_in.cc, a library that is loaded as the real one
// is, checks what it is given and multiplies on the host.

#include <cstdint>

extern "C" {

struct StandInCounts {
  std::uint64_t calls;       ///< that give a status
  std::uint64_t heuristics;  ///< algorithms that were asked for
  std::uint64_t products;    ///< that succeeded
  std::uint64_t tf32;        ///< of them with operands rounded to it
  std::int64_t live;         ///< handles and descriptors that were not destroyed
};

StandInCounts stand_in_counts();
/// What was wrong with a call, since the last time that this was asked; empty: nothing.
const char* stand_in_complaint();
/// The `call`-th call from now on fails (1: the next one; 0: none).
void stand_in_fail_at(std::uint64_t call);
/// From now on no algorithm is found.
void stand_in_find_no_algorithm(int finds_none);

}  // extern "C"
