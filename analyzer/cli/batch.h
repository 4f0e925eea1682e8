#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace tensorlint::cli {

/// Work on many inputs at the same time.
struct Batch {
  std::size_t count = 0;
  unsigned jobs = 0;  ///< threads; 0: as many as there are processors
};

struct BatchResult {
  std::vector<bool> done;    ///< by input
  bool interrupted = false;  ///< SIGINT came: what had begun was finished, the rest was left
  std::size_t done_count() const;
};

/// Calls `work(i)` for every i below `count`, from several threads, in no particular order; it must not throw.
/// Says how far it is on standard error where that is a terminal. The first SIGINT stops it between two inputs, a second
/// one ends the process; a process that was started with SIGINT ignored goes on ignoring it.
BatchResult run_batch(const Batch& batch, const std::function<void(std::size_t)>& work);

}  // namespace tensorlint::cli
