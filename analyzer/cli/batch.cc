#include "analyzer/cli/batch.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <thread>

namespace tensorlint::cli {
namespace {

constexpr std::size_t kMaxThreads = 256;

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

/// Notes the first SIGINT; while it lives a second one does what it did before.
class InterruptWatch {
 public:
  InterruptWatch() {
    g_interrupted = false;
    struct ::sigaction action {};
    action.sa_handler = [](int) { g_interrupted = true; };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    ::sigemptyset(&action.sa_mask);
    if (::sigaction(SIGINT, nullptr, &previous_) != 0 || previous_.sa_handler == SIG_IGN) return;
    watches_ = ::sigaction(SIGINT, &action, nullptr) == 0;
  }
  ~InterruptWatch() {
    if (watches_) ::sigaction(SIGINT, &previous_, nullptr);
  }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  struct ::sigaction previous_ {};
  bool watches_ = false;
};

/// One line on a terminal, rewritten at most ten times a second and gone at the end.
class Progress {
 public:
  explicit Progress(std::size_t count) : count_(count) {
    const char* const terminal = std::getenv("TERM");
    shows_ = count > 1 && ::isatty(STDERR_FILENO) == 1 && (terminal == nullptr || std::string_view(terminal) != "dumb");
  }
  ~Progress() {
    if (shown_) write("\r\x1b[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step() {
    const std::size_t done = ++done_;
    if (!shows_) return;
    const std::int64_t now = milliseconds();
    std::int64_t due = due_.load();
    if (now < due || !due_.compare_exchange_strong(due, now + 100)) return;
    shown_ = true;
    write(fmt::format("\rchecked {} of {}\x1b[K", done, count_));
  }

 private:
  std::int64_t milliseconds() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start_).count();
  }
  static void write(std::string_view text) {
    // A terminal that is gone takes nothing, and that is no fault of the check.
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
  }

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::size_t count_;
  bool shows_ = false;
  std::atomic<bool> shown_{false};
  std::atomic<std::size_t> done_{0};
  std::atomic<std::int64_t> due_{200};  // what is over sooner needs no progress
};

}  // namespace

std::size_t BatchResult::done_count() const { return static_cast<std::size_t>(std::count(done.begin(), done.end(), true)); }

BatchResult run_batch(const Batch& batch, const std::function<void(std::size_t)>& work) {
  const InterruptWatch watch;
  std::vector<char> done(batch.count);  // not vector<bool>: threads write neighbours
  {
    Progress progress(batch.count);
    std::atomic<std::size_t> next{0};
    const auto take = [&] {
      while (!g_interrupted) {
        const std::size_t i = next++;
        if (i >= batch.count) return;
        work(i);
        done[i] = 1;
        progress.step();
      }
    };
    const std::size_t wanted = batch.jobs > 0 ? batch.jobs : std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::thread> helpers;
    try {
      for (std::size_t i = 1; i < std::min({wanted, batch.count, kMaxThreads}); ++i) helpers.emplace_back(take);
    } catch (const std::system_error&) {
      // No more threads to be had: fewer do the same.
    }
    take();
    for (std::thread& helper : helpers) helper.join();
  }
  BatchResult result;
  result.done.assign(done.begin(), done.end());
  result.interrupted = g_interrupted;
  return result;
}

}  // namespace tensorlint::cli
