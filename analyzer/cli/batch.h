#pragma once

#include <signal.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace tensorlint::cli {

/// Work on many inputs at the same time.
struct Batch {
  std::size_t count = 0;
  unsigned jobs = 0;   ///< threads; 0: as many as there are processors
  bool quiet = false;  ///< shows no progress
};

struct BatchResult {
  std::vector<bool> done;    ///< by input
  bool interrupted = false;  ///< SIGINT came, and some inputs were left
  bool abandoned =
      false;  ///< threads still work on an input that would not end soon: what `work` uses must outlive them
  std::size_t done_count() const;
};

/// While one lives SIGINT is noted, and a second one ends the process; a process that was started with SIGINT ignored
/// goes on ignoring it. Reports that are being written when it comes are written whole.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  struct ::sigaction previous_{};
  bool watches_ = false;
};

/// Calls `work(i)` for every i below `count`, from several threads, in no particular order; it must not throw.
/// Says how far it is on standard error where that is a terminal. SIGINT, where it is watched, stops it between two
/// inputs; an input that takes more than half a second longer is abandoned. A single input is worked on in the calling
/// thread, and SIGINT ends the process at once, with a message and exit code 130.
BatchResult run_batch(const Batch& batch, const std::function<void(std::size_t)>& work);

}  // namespace tensorlint::cli
