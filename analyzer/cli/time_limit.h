#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace tensorlint::cli {

/// `--time-limit` of a command that works in several processes, one after the other: each has what those before it
/// leave. They exit with kExitNotChecked when it is over.
class TimeLimit {
 public:
  /// From now on. `command` names what was started, in messages. `seconds`: as given; no limit where they are empty or
  /// 0, or not a number, which the program that executes refuses.
  TimeLimit(std::string command, std::string seconds);

  /// Work of this process, which has nothing to clean up.
  int within(const std::function<int()>& work) const;

  /// Before this process becomes a program that knows of no limit: SIGALRM ends it.
  void start() const;
  /// Whether `signal` ended a program for which it was started: says so then.
  bool ended(int signal) const;

  /// The option's value for a program that is started now.
  std::string left() const;

 private:
  double seconds_left() const;

  std::string command_, given_;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

}  // namespace tensorlint::cli
