#include "runtime/run/process.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>

#include <fmt/format.h>

#include "base/escape.h"
#include "base/output.h"

namespace tensorlint::runtime {

namespace {

[[noreturn]] void out_of_time(int) {
  constexpr std::string_view kMessage = "tensorlint run: stopped: the time limit is over (--time-limit)\n";
  remove_unfinished_file();
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(kRefused);
}

}  // namespace

int refuse(std::string_view command, std::string_view message) {
  constexpr std::size_t kLongest = 4000;
  write_stderr(fmt::format("tensorlint {}: {}\n", command, escape_for_display(message, kLongest)));
  return kRefused;
}

void limit_process(std::uint64_t tensors) {
#ifndef __SANITIZE_ADDRESS__  // whose own memory would count
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  constexpr std::uint64_t kBeside = std::uint64_t{1} << 30;
  const std::uint64_t most = tensors < RLIM_INFINITY / 4 ? 2 * tensors + kBeside : RLIM_INFINITY;
  limit.rlim_cur = std::min<rlim_t>(most, limit.rlim_max);
  ::setrlimit(RLIMIT_DATA, &limit);
#else
  (void)tensors;
#endif
}

void start_clock(double seconds) {
  if (seconds <= 0) return;
  std::signal(SIGALRM, out_of_time);
  seconds = std::max(seconds, 1e-6);  // 0 would stop the clock
  ::itimerval timer{};
  timer.it_value.tv_sec = static_cast<::time_t>(seconds);
  timer.it_value.tv_usec = static_cast<::suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace tensorlint::runtime
