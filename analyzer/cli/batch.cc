#include "analyzer/cli/batch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace tensorlint::cli {
namespace {

constexpr std::size_t kMaxThreads = 256;

constexpr std::chrono::milliseconds kPatience{500};  // Ctrl-C ends within a second, writing of the reports included

std::atomic<bool> g_interrupted{false};
std::atomic<bool> g_nothing_to_keep{false};  // no input is done and none will be before the only one is
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler uses them");

void note_interrupt(int) {
  g_interrupted = true;
  if (!g_nothing_to_keep) return;
  constexpr std::string_view kMessage = "tensorlint: interrupted\n";
  if (::write(STDERR_FILENO, kMessage.data(), kMessage.size()) < 0) ::_exit(130);
  ::_exit(130);
}

/// One line on a terminal, rewritten at most ten times a second and gone at the end; one thread at a time.
class Progress {
 public:
  explicit Progress(const Batch& batch) : count_(batch.count) {
    const char* const terminal = std::getenv("TERM");
    shows_ = !batch.quiet && batch.count > 1 && ::isatty(STDERR_FILENO) == 1 &&
             (terminal == nullptr || std::string_view(terminal) != "dumb");
  }
  void step() {
    ++done_;
    const std::int64_t now = milliseconds();
    if (!shows_ || now < due_) return;
    due_ = now + 100;
    shown_ = true;
    write(fmt::format("\rchecked {} of {}\x1b[K", done_, count_));
  }
  void clear() {
    if (shown_) write("\r\x1b[K");
    shown_ = false;
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
  bool shown_ = false;
  std::size_t done_ = 0;
  std::int64_t due_ = 200;  // what is over sooner needs no progress
};

/// What the threads share; the last one of them lets go of it.
struct Shared {
  explicit Shared(const Batch& batch, std::function<void(std::size_t)> do_one)
      : work(std::move(do_one)), done(batch.count), progress(batch) {}

  void take() {
    while (!g_interrupted) {
      const std::size_t i = next++;
      if (i >= done.size()) break;
      work(i);
      const std::lock_guard lock(mutex);
      if (abandoned) return;
      done[i] = true;
      progress.step();
    }
    const std::lock_guard lock(mutex);
    --running;
    changed.notify_one();
  }

  std::function<void(std::size_t)> work;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> done;
  std::size_t running = 0;
  bool abandoned = false;
  Progress progress;
};

BatchResult run_one(const std::function<void(std::size_t)>& work) {
  g_nothing_to_keep = true;
  if (g_interrupted) note_interrupt(SIGINT);  // it came before there was an input
  work(0);
  g_nothing_to_keep = false;
  return {{true}, false, false};
}

}  // namespace

InterruptWatch::InterruptWatch() {
  g_interrupted = false;
  struct ::sigaction action{};
  action.sa_handler = note_interrupt;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  ::sigemptyset(&action.sa_mask);
  if (::sigaction(SIGINT, nullptr, &previous_) != 0 || previous_.sa_handler == SIG_IGN) return;
  watches_ = ::sigaction(SIGINT, &action, nullptr) == 0;
}

InterruptWatch::~InterruptWatch() {
  if (watches_) ::sigaction(SIGINT, &previous_, nullptr);
}

std::size_t BatchResult::done_count() const {
  return static_cast<std::size_t>(std::count(done.begin(), done.end(), true));
}

BatchResult run_batch(const Batch& batch, const std::function<void(std::size_t)>& work) {
  if (batch.count == 1) return run_one(work);
  const auto shared = std::make_shared<Shared>(batch, work);
  const std::size_t wanted = batch.jobs > 0 ? batch.jobs : std::max(1U, std::thread::hardware_concurrency());
  std::unique_lock lock(shared->mutex);
  try {
    for (std::size_t i = 0; i < std::min({wanted, batch.count, kMaxThreads}); ++i) {
      std::thread([shared] { shared->take(); }).detach();
      ++shared->running;
    }
  } catch (const std::system_error&) {
    // No more threads to be had: fewer do the same.
  }
  if (shared->running == 0) {
    ++shared->running;
    lock.unlock();
    shared->take();
    lock.lock();
  }
  // A signal handler must not notify: it is looked for ten times a second.
  std::chrono::steady_clock::time_point noticed{};
  while (shared->running != 0) {
    shared->changed.wait_for(lock, std::chrono::milliseconds(100));
    if (!g_interrupted) continue;
    const auto now = std::chrono::steady_clock::now();
    if (noticed == std::chrono::steady_clock::time_point{}) noticed = now;
    if (now - noticed > kPatience) break;
  }
  shared->abandoned = shared->running != 0;
  shared->progress.clear();
  BatchResult result{shared->done, false, shared->abandoned};
  result.interrupted = result.done_count() < batch.count;
  return result;
}

}  // namespace tensorlint::cli
