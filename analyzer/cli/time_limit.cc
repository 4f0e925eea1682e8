#include "analyzer/cli/time_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <system_error>
#include <utility>

#include "analyzer/cli/command.h"
#include "base/output.h"
#include "base/time_limit.h"

namespace tensorlint::cli {
namespace {

constexpr double kLeastLeft = 1e-6;  // 0 would be no limit

/// nullopt where the text is not a number of seconds that limits anything.
std::optional<double> limiting_seconds(const std::string& text) {
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seconds);
  return !text.empty() && error == std::errc() && rest == end && seconds > 0 && seconds < 1e9 ? std::optional(seconds)
                                                                                              : std::nullopt;
}

}  // namespace

TimeLimit::TimeLimit(std::string command, std::string seconds)
    : command_(std::move(command)), given_(std::move(seconds)) {
  using Clock = std::chrono::steady_clock;
  if (const auto limit = limiting_seconds(given_))
    end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*limit));
}

double TimeLimit::seconds_left() const {
  return std::max(std::chrono::duration<double>(*end_ - std::chrono::steady_clock::now()).count(), kLeastLeft);
}

void TimeLimit::start() const {
  if (end_) start_time_limit(command_, seconds_left(), kExitNotChecked);
}

int TimeLimit::within(const std::function<int()>& work) const {
  start();
  const int code = work();
  stop_time_limit();
  return code;
}

bool TimeLimit::ended(int signal) const {
  if (!end_ || signal != SIGALRM) return false;
  write_stderr(time_limit_message(command_));
  return true;
}

std::string TimeLimit::left() const { return end_ ? fmt::format("{}", seconds_left()) : given_; }

}  // namespace tensorlint::cli
