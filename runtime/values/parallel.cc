#include "runtime/values/parallel.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tensorlint::runtime {
namespace {

constexpr int kMostThreads = 8;

int wanted_threads = 1;
thread_local bool is_in_task = false;

/// Threads that wait for work. One piece of work at a time: its tasks go to whoever asks next.
class Pool {
 public:
  explicit Pool(int helpers) {
    try {
      for (int i = 0; i < helpers; ++i) threads_.emplace_back([this] { help(); });
    } catch (const std::system_error&) {
      // The system allows no more threads: those that there are do the work.
    }
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    has_work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void run(std::int64_t count, const std::function<void(std::int64_t)>& task) {
    std::unique_lock lock(mutex_);
    task_ = &task;
    next_ = 0;
    count_ = count;
    has_work_.notify_all();
    work(lock);
    is_done_.wait(lock, [this] { return busy_ == 0; });
    task_ = nullptr;
    if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
  }

 private:
  void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      has_work_.wait(lock, [this] { return is_over_ || (task_ != nullptr && next_ < count_); });
      if (is_over_) return;
      work(lock);
    }
  }

  /// Takes tasks until none is left; holds the lock but while a task runs.
  void work(std::unique_lock<std::mutex>& lock) {
    ++busy_;
    is_in_task = true;
    while (next_ < count_) {
      const std::int64_t mine = next_++;
      const auto& task = *task_;
      lock.unlock();
      std::exception_ptr fault;
      try {
        task(mine);
      } catch (...) {
        fault = std::current_exception();
      }
      lock.lock();
      if (!fault) continue;
      if (!fault_) fault_ = fault;
      next_ = count_;
    }
    is_in_task = false;
    if (--busy_ == 0) is_done_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable has_work_, is_done_;
  const std::function<void(std::int64_t)>* task_ = nullptr;
  std::int64_t next_ = 0, count_ = 0;
  int busy_ = 0;
  bool is_over_ = false;
  std::exception_ptr fault_;
  std::vector<std::thread> threads_;
};

}  // namespace

void set_thread_count(int count) { wanted_threads = std::max(count, 1); }

int default_thread_count() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
}

void parallel_for(std::int64_t count, const std::function<void(std::int64_t)>& task) {
  if (count <= 1 || wanted_threads <= 1 || is_in_task) {
    for (std::int64_t i = 0; i < count; ++i) task(i);
    return;
  }
  static Pool pool(wanted_threads - 1);
  pool.run(count, task);
}

void parallel_ranges(std::int64_t size, std::int64_t part,
                     const std::function<void(std::int64_t, std::int64_t)>& task) {
  if (size <= part) return task(0, size);
  parallel_for((size + part - 1) / part, [&](std::int64_t i) { task(i * part, std::min(size, (i + 1) * part)); });
}

}  // namespace tensorlint::runtime
