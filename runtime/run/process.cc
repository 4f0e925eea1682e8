#include "runtime/run/process.h"

#include <sys/resource.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/output.h"

namespace tensorlint::runtime {

int refuse(std::string_view command, std::string_view message) {
  constexpr std::size_t kLongest = 4000;
  write_stderr(fmt::format("tensorlint {}: {}\n", command, escape_for_display(message, kLongest)));
  return kRefused;
}

void limit_process(std::uint64_t tensors, int threads) {
#ifndef __SANITIZE_ADDRESS__  // whose own memory would count
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  constexpr std::uint64_t kBeside = std::uint64_t{1} << 30;
  // Stacks count where they may be written to, whether or not they are.
  constexpr std::uint64_t kThread = std::uint64_t{16} << 20;
  const std::uint64_t beside = kBeside + kThread * static_cast<std::uint64_t>(std::max(threads, 0));
  const std::uint64_t most = tensors < RLIM_INFINITY / 4 ? 2 * tensors + beside : RLIM_INFINITY;
  limit.rlim_cur = std::min<rlim_t>(most, limit.rlim_max);
  ::setrlimit(RLIMIT_DATA, &limit);
#else
  (void)tensors, (void)threads;
#endif
}

}  // namespace tensorlint::runtime
