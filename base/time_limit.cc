#include "base/time_limit.h"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>

#include <fmt/format.h>

#include "base/output.h"

namespace tensorlint {
namespace {

constexpr double kLeast = 1e-6;  // 0 would stop the clock

// Written before the clock starts: its handler may not allocate.
std::string message;
int code = 0;

[[noreturn]] void out_of_time(int) {
  remove_unfinished_file();
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
  ::_exit(code);
}

}  // namespace

void start_time_limit(std::string_view command, double seconds, int exit_code) {
  if (seconds <= 0) return;
  message = time_limit_message(command);
  code = exit_code;
  std::signal(SIGALRM, out_of_time);
  seconds = std::max(seconds, kLeast);
  ::itimerval timer{};
  timer.it_value.tv_sec = static_cast<::time_t>(seconds);
  timer.it_value.tv_usec = static_cast<::suseconds_t>((seconds - static_cast<double>(timer.it_value.tv_sec)) * 1e6);
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

void stop_time_limit() {
  const ::itimerval none{};
  ::setitimer(ITIMER_REAL, &none, nullptr);
}

std::string time_limit_message(std::string_view command) {
  return fmt::format("tensorlint {}: stopped: the time limit is over (--time-limit)\n", command);
}

}  // namespace tensorlint
