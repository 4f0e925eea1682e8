#include "base/file_bytes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>

namespace tensorlint {

/// One live mapping, as the signal handler sees it. Guards are reused and never freed: the handler walks the list
/// without a lock.
struct FileBytes::Guard {
  std::atomic<std::uintptr_t> begin{0}, end{0};  // begin 0: free
  std::atomic<bool> lost{false};
  Guard* next = nullptr;

  static Guard* take(const void* data, std::size_t size);
  void release() { begin.store(0, std::memory_order_release); }
  static void handle(int signal, siginfo_t* info, void* context);

  static std::atomic<Guard*> first;
  static struct ::sigaction previous;
  static std::mutex lock;
};

std::atomic<FileBytes::Guard*> FileBytes::Guard::first{nullptr};
struct ::sigaction FileBytes::Guard::previous{};
std::mutex FileBytes::Guard::lock;

namespace {

Error changed(const std::string& path) { return {fmt::format("`{}` changed while being read", path), {}}; }

std::string_view kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  return "something else";
}

bool same_time(const struct ::timespec& a, const struct ::timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

void FileBytes::Guard::handle(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Guard* guard = first.load(std::memory_order_acquire); guard != nullptr; guard = guard->next) {
    const std::uintptr_t begin = guard->begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address >= guard->end.load(std::memory_order_relaxed)) continue;
    // mmap is a bare system call here: nothing of the C library's state is touched.
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    void* const place = reinterpret_cast<void*>(address & ~(page - 1));
    if (::mmap(place, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) break;
    guard->lost.store(true, std::memory_order_relaxed);
    errno = saved_errno;
    return;
  }
  errno = saved_errno;
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    ::signal(signal, SIG_DFL);  // the faulting access is repeated and ends the process as it would have without us
  }
}

FileBytes::Guard* FileBytes::Guard::take(const void* data, std::size_t size) {
  const std::lock_guard<std::mutex> held(lock);
  static const bool installed = [] {
    struct ::sigaction action{};
    action.sa_sigaction = &Guard::handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, &previous) == 0;
  }();
  if (!installed) return nullptr;
  Guard* guard = first.load(std::memory_order_relaxed);
  while (guard != nullptr && guard->begin.load(std::memory_order_relaxed) != 0) guard = guard->next;
  const bool is_new = guard == nullptr;
  if (is_new) guard = new Guard;
  guard->lost.store(false, std::memory_order_relaxed);
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  guard->end.store(begin + size, std::memory_order_relaxed);
  guard->begin.store(begin, std::memory_order_release);
  if (is_new) {
    guard->next = first.load(std::memory_order_relaxed);
    first.store(guard, std::memory_order_release);
  }
  return guard;
}

Result<std::shared_ptr<const FileBytes>> FileBytes::open(const std::string& path, std::uint64_t read_limit) {
  const std::shared_ptr<FileBytes> file(new FileBytes);
  file->path_ = path;
  if (path.find('\0') != std::string::npos) return Error{"a path with a zero byte in it", {}};
  // Not blocking: a FIFO without a writer would wait for ever.
  file->descriptor_ = Descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file->descriptor_.ok()) return Error{fmt::format("cannot open `{}`: {}", path, std::strerror(errno)), {}};
  struct ::stat status{};
  if (::fstat(file->descriptor_.number(), &status) != 0)
    return Error{fmt::format("cannot read `{}`: {}", path, std::strerror(errno)), {}};
  if (!S_ISREG(status.st_mode))
    return Error{fmt::format("`{}` is {}, not a regular file", path, kind_of(status.st_mode)), {}};
  if (status.st_size == 0) return Error{fmt::format("`{}` is empty", path), {}};
  file->size_ = static_cast<std::size_t>(status.st_size);
  file->modified_ = status.st_mtim;

  if (file->size_ > read_limit) {
    void* const mapping = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, file->descriptor_.number(), 0);
    if (mapping == MAP_FAILED) return Error{fmt::format("cannot map `{}`: {}", path, std::strerror(errno)), {}};
    file->data_ = static_cast<const char*>(mapping);
    file->guard_ = Guard::take(mapping, file->size_);
    if (file->guard_ == nullptr) {
      ::munmap(mapping, file->size_);
      return Error{fmt::format("cannot guard the mapping of `{}`: {}", path, std::strerror(errno)), {}};
    }
    return std::shared_ptr<const FileBytes>(file);
  }
  // Huge pages where the system has them: filling a large buffer page by page costs more than copying into it. The
  // pages of a smaller one are asked for all at once; systems that cannot do that say so and give them one by one.
  constexpr std::size_t kHugePage = std::size_t{2} << 20, kFewPages = std::size_t{64} << 10;
  const std::size_t page = file->size_ >= 2 * kHugePage ? kHugePage
                           : file->size_ >= kFewPages   ? static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))
                                                        : 1;
  const std::size_t capacity = (file->size_ + page - 1) & ~(page - 1);
  file->memory_ = {static_cast<char*>(page > 1 ? std::aligned_alloc(page, capacity) : std::malloc(capacity)),
                   &std::free};
  if (file->memory_ == nullptr) return Error{fmt::format("no memory for the {} bytes of `{}`", file->size_, path), {}};
  if (page > 1) ::madvise(file->memory_.get(), capacity, page == kHugePage ? MADV_HUGEPAGE : MADV_POPULATE_WRITE);
  file->data_ = file->memory_.get();
  for (std::size_t done = 0; done < file->size_;) {
    const ::ssize_t count = ::read(file->descriptor_.number(), file->memory_.get() + done, file->size_ - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error{fmt::format("cannot read `{}`: {}", path, std::strerror(errno)), {}};
    if (count == 0) return changed(path);
    done += static_cast<std::size_t>(count);
  }
  if (auto error = file->check_unchanged()) return *std::move(error);
  // Small files are whole in memory now: many models may be open at once, descriptors are few.
  file->descriptor_ = Descriptor();
  return std::shared_ptr<const FileBytes>(file);
}

void FileBytes::release(std::string_view part) const {
  if (guard_ == nullptr || part.empty()) return;
  if (std::less<>()(part.data(), data_) || std::less<>()(data_ + size_, part.data() + part.size())) return;
  // What was mapped around the first byte begins before it; blocks of the cache have at most this size.
  constexpr std::size_t kBlock = std::size_t{2} << 20;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(part.data() - data_);
  const std::size_t begin = offset & ~(kBlock - 1), end = (offset + part.size()) & ~(page - 1);
  // Around a byte that is read next, systems would map 2 MiB of their cache where they have huge pages there, else 64
  // KiB. What is read as a whole and never released is better off with huge ones.
  if (!has_small_pages_.exchange(true, std::memory_order_relaxed))
    ::madvise(const_cast<char*>(data_), size_, MADV_NOHUGEPAGE);
  if (begin < end) ::madvise(const_cast<char*>(data_) + begin, end - begin, MADV_DONTNEED);
}

void FileBytes::read_page_by_page() const {
  if (guard_ != nullptr) ::madvise(const_cast<char*>(data_), size_, MADV_RANDOM);
}

void FileBytes::will_need(std::string_view part) const {
  if (guard_ == nullptr || part.empty()) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(part.data()) & ~(page - 1);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(part.data() + part.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

ReadAhead::ReadAhead(const FileBytes* mapping) : mapping_(mapping) {
  if (mapping_ == nullptr) {
    size_ = std::numeric_limits<std::size_t>::max();
    return;
  }
  start_ = reinterpret_cast<std::uintptr_t>(mapping_->bytes().data());
}

void ReadAhead::leap_to(std::size_t offset) {
  // A wrong guess reads a page for nothing, so trust grows with each leap that was foreseen.
  constexpr std::size_t kMostExpected = 16;
  // Small fields often lie between two weights (a bias): reading them along costs less than a read of their own.
  constexpr std::size_t kLanding = std::size_t{8} << 10;
  const std::size_t leap = offset - landing_, last = leap_count_++;
  landing_ = offset;
  const auto leap_at = [this](std::size_t i) -> std::size_t& { return leaps_[i % leaps_.size()]; };
  const bool is_foreseen = period_ != 0 && leap == leap_at(last - period_);
  leap_at(last) = leap;
  if (is_foreseen) {
    expected_ = std::min(2 * expected_, kMostExpected);
    expected_asked_ -= std::min<std::size_t>(expected_asked_, 1);
  } else {
    const std::size_t longest = std::min(last, leaps_.size() - 1);
    for (period_ = 1; period_ <= longest && leap_at(last - period_) != leap;) ++period_;
    if (period_ > longest) period_ = 0;
    expected_ = 1;
    expected_asked_ = 0;
  }
  if (period_ == 0) return;
  const std::string_view bytes = mapping_->bytes();
  for (std::size_t i = 0, landing = offset; i < expected_; ++i) {
    const std::size_t next = leap_at(last + 1 - period_ + i % period_);
    if (next >= bytes.size() - landing) return;
    landing += next;
    if (i < expected_asked_) continue;
    mapping_->will_need(bytes.substr(landing, kLanding));
    expected_asked_ = i + 1;
  }
}

void ReadAhead::go_on(std::size_t offset) {
  // A leap costs a read of its own, 0.1 ms, in which 64 KB and more are read in one go.
  constexpr std::size_t kLeap = std::size_t{64} << 10, kPage = 4096;
  constexpr std::size_t kFirstWindow = std::size_t{16} << 10, kLastWindow = std::size_t{2} << 20;
  const std::string_view bytes = mapping_->bytes();
  begin_ = offset;
  if (offset + window_ < asked_end_ || offset >= asked_end_ + kLeap) {
    // The page is read when it is touched; more only when the walk goes on after it.
    window_ = 0;
    size_ = std::min(kPage - offset % kPage, bytes.size() - offset);
    asked_end_ = offset + size_;
    leap_to(offset);
    return;
  }
  const std::size_t from = std::max(offset, asked_end_);
  window_ = std::clamp(2 * window_, kFirstWindow, kLastWindow);
  const std::size_t asked = std::min(window_, bytes.size() - from);
  mapping_->will_need(bytes.substr(from, asked));
  asked_end_ = from + asked;
  // The next window is asked for in the middle of this one, so that it is there when the walk is.
  size_ = asked_end_ - offset - (asked == window_ ? asked / 2 : 0);
}

std::optional<Error> FileBytes::check_unchanged() const {
  if (guard_ != nullptr && guard_->lost.load(std::memory_order_relaxed)) return changed(path_);
  if (!descriptor_.ok()) return std::nullopt;
  struct ::stat status{};
  if (::fstat(descriptor_.number(), &status) != 0)
    return Error{fmt::format("cannot read `{}`: {}", path_, std::strerror(errno)), {}};
  const bool same = static_cast<std::size_t>(status.st_size) == size_ && same_time(status.st_mtim, modified_);
  if (!same) return changed(path_);
  return std::nullopt;
}

FileBytes::~FileBytes() {
  if (guard_ != nullptr) {
    // The guard goes first: another thread's mapping may land on the same addresses at once.
    guard_->release();
    ::munmap(const_cast<char*>(data_), size_);
  }
}

}  // namespace tensorlint
