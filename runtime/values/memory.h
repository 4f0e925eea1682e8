#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tensorlint::runtime {

/// What ends a run: an operand that an operator cannot take, a limit, an operator without an evaluator. Thrown inside
/// the runtime only; Interpreter::run turns it into an Error that names the node.
struct RunFault {
  std::string message;  ///< lower case, one line; names in it are not yet escaped
};

/// Counts the bytes of live tensors against a limit, before they are allocated.
class Memory {
 public:
  explicit Memory(std::uint64_t limit) : limit_(limit) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Throws RunFault where the limit would be passed.
  void take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) { live_ -= bytes; }

  std::uint64_t live() const { return live_; }
  std::uint64_t peak() const { return peak_; }
  std::uint64_t limit() const { return limit_; }

 private:
  std::uint64_t limit_;
  std::atomic<std::uint64_t> live_ = 0, peak_ = 0;
};

}  // namespace tensorlint::runtime
