#include "analyzer/cli/model_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/escape.h"
#include "base/output.h"
#include "base/small_file.h"
#include "base/text.h"
#include "ir/readers/onnx/external_data.h"

namespace tensorlint::cli {
namespace {

constexpr std::size_t kChunk = 16 << 20;  ///< bytes between two looks at the signals
constexpr std::size_t kBuffer = 1 << 20;
constexpr std::uint64_t kWorthProgress = 256 << 20;

/// While it lives, the signals that end the program wait, so that what was begun can be taken away first.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&held_, signal);
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  static bool waiting() {
    ::sigset_t pending;
    ::sigemptyset(&pending);
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGINT) == 1 || ::sigismember(&pending, SIGTERM) == 1 ||
           ::sigismember(&pending, SIGHUP) == 1;
  }

 private:
  ::sigset_t held_{}, before_{};
};

/// Files and folders below `root` that are taken away again, the last first, unless all went well.
class Made {
 public:
  explicit Made(const Descriptor& root) : root_(root) {}
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
      ::unlinkat(root_.number(), entry->path.c_str(), entry->flags);
  }
  void add_folder(std::string path) { entries_.push_back({std::move(path), AT_REMOVEDIR}); }
  void add_file(std::string path) { entries_.push_back({std::move(path), 0}); }
  void forget_last() { entries_.pop_back(); }
  void keep() { entries_.clear(); }

 private:
  struct Entry {
    std::string path;
    int flags;
  };
  const Descriptor& root_;
  std::vector<Entry> entries_;
};

bool same_file(const struct ::stat& a, const struct ::stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

std::string size_text(std::uint64_t bytes) {
  constexpr std::array kUnits{"bytes", "KB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  double amount = static_cast<double>(bytes);
  for (; amount >= 1000 && unit + 1 < kUnits.size(); ++unit) amount /= 1000;
  return unit == 0 ? counted(bytes, "byte") : fmt::format("{:.3g} {}", amount, kUnits[unit]);
}

/// One line on a terminal that says how far copying is; silent elsewhere.
class CopyProgress {
 public:
  explicit CopyProgress(std::uint64_t total)
      : total_(total), shown_(total >= kWorthProgress && ::isatty(STDERR_FILENO) == 1) {}
  CopyProgress(const CopyProgress&) = delete;
  CopyProgress& operator=(const CopyProgress&) = delete;
  ~CopyProgress() {
    if (written_) write_stderr("\r\x1b[K");
  }
  void add(std::uint64_t bytes) {
    done_ += bytes;
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now < due_) return;
    due_ = now + std::chrono::milliseconds(250);
    written_ = true;
    write_stderr(fmt::format("\rcopying weights: {} of {}\x1b[K", size_text(done_), size_text(total_)));
  }

 private:
  std::uint64_t total_, done_ = 0;
  bool shown_, written_ = false;
  std::chrono::steady_clock::time_point due_{};
};

/// A data file beside the model that was read. Not held open: there may be thousands.
struct Data {
  std::string location;
  struct ::stat status;
  std::uint64_t size() const { return static_cast<std::uint64_t>(status.st_size); }
};

constexpr const char* kChanged = "the file changed while it was copied";

bool unchanged(const Data& data, int descriptor) {
  struct ::stat now{};
  return ::fstat(descriptor, &now) == 0 && same_file(now, data.status) && now.st_size == data.status.st_size &&
         now.st_mtim.tv_sec == data.status.st_mtim.tv_sec && now.st_mtim.tv_nsec == data.status.st_mtim.tv_nsec;
}

/// First byte at or after `offset` that is in no hole; `size` when there is none.
std::uint64_t next_data(int descriptor, std::uint64_t offset, std::uint64_t size) {
  const ::off_t at = ::lseek(descriptor, static_cast<::off_t>(offset), SEEK_DATA);
  if (at >= 0) return std::min(static_cast<std::uint64_t>(at), size);
  return errno == ENXIO ? size : offset;
}

/// The two files hold the same bytes; holes are not read.
bool same_bytes(int a, int b, std::uint64_t size) {
  const auto one = std::make_unique<char[]>(kBuffer), other = std::make_unique<char[]>(kBuffer);
  const auto read = [](int descriptor, char* to, std::size_t wanted, std::uint64_t offset) {
    std::size_t got = 0;
    while (got < wanted) {
      const ::ssize_t now = ::pread(descriptor, to + got, wanted - got, static_cast<::off_t>(offset + got));
      if (now < 0 && errno == EINTR) continue;
      if (now <= 0) break;
      got += static_cast<std::size_t>(now);
    }
    return got == wanted;
  };
  for (std::uint64_t offset = 0; offset < size;) {
    offset = std::min(next_data(a, offset, size), next_data(b, offset, size));
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kBuffer, size - offset));
    if (HeldSignals::waiting() || !read(a, one.get(), wanted, offset) || !read(b, other.get(), wanted, offset))
      return false;
    if (std::memcmp(one.get(), other.get(), wanted) != 0) return false;
    offset += wanted;
  }
  return true;
}

/// Copies up to `wanted` bytes at `offset`, in the kernel where it can; 0 at the end of the file, negative on an error
/// (errno).
::ssize_t copy_some(int from, int to, std::uint64_t offset, std::size_t wanted) {
  ::off64_t in = static_cast<::off64_t>(offset), out = in;
  const ::ssize_t copied = ::copy_file_range(from, &in, to, &out, wanted, 0);
  if (copied >= 0 || errno == EINTR || errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO)
    return copied;
  // Between file systems of two kinds, and where the kernel or a filter does not offer it.
  std::array<char, 1 << 16> buffer;
  const ::ssize_t got = ::pread(from, buffer.data(), std::min(wanted, buffer.size()), static_cast<::off_t>(offset));
  return got <= 0 ? got : ::pwrite(to, buffer.data(), static_cast<std::size_t>(got), static_cast<::off_t>(offset));
}

/// Copies a file's bytes; holes stay holes. Errors: what the system says; the file was cut while it was copied.
std::optional<std::string> copy_bytes(const Data& data, int from, int to, CopyProgress& progress) {
  const std::uint64_t size = data.size();
  for (std::uint64_t offset = next_data(from, 0, size); offset < size; offset = next_data(from, offset, size)) {
    const ::off_t hole = ::lseek(from, static_cast<::off_t>(offset), SEEK_HOLE);
    const std::uint64_t end = hole < 0 ? size : std::min(static_cast<std::uint64_t>(hole), size);
    while (offset < end) {
      if (HeldSignals::waiting()) return "interrupted";
      const ::ssize_t copied =
          copy_some(from, to, offset, static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, end - offset)));
      if (copied < 0 && errno == EINTR) continue;
      if (copied < 0) return std::strerror(errno);
      if (copied == 0) return kChanged;
      offset += static_cast<std::uint64_t>(copied);
      progress.add(static_cast<std::uint64_t>(copied));
    }
  }
  if (::ftruncate(to, static_cast<::off_t>(size)) != 0) return std::strerror(errno);
  if (!unchanged(data, from)) return kChanged;
  return std::nullopt;
}

/// Gives the file `temporary` the name `name` in the same folder, unless something has that name.
bool publish(int folder, const std::string& temporary, const std::string& name) {
  if (::linkat(folder, temporary.c_str(), folder, name.c_str(), 0) == 0)
    return ::unlinkat(folder, temporary.c_str(), 0) == 0;
  if (errno == EEXIST) return false;
  return ::renameat2(folder, temporary.c_str(), folder, name.c_str(), RENAME_NOREPLACE) ==
         0;  // file systems without hard links
}

/// What is at `path`, where `data` is to be read from.
enum class There { kNothing, kSame, kOther };

Result<There> what_is_at(const std::string& output, ExternalFolder& beside_output, const Data& data,
                         const ExternalFile& own) {
  struct ::stat status{};
  const std::string path = folder_of(output) + "/" + data.location;
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return There::kNothing;
    return Error{fmt::format("`{}`: {}", path, std::strerror(errno)), {}};
  }
  const Result<ExternalFile> file = beside_output.open(data.location);
  if (!file) return Error{fmt::format("in the folder of {}: {}", output, file.error().message), {}};
  if (::fstat(file->descriptor(), &status) != 0) return Error{fmt::format("`{}`: {}", path, std::strerror(errno)), {}};
  if (same_file(status, data.status)) return There::kSame;
  return file->size() == data.size() && same_bytes(file->descriptor(), own.descriptor(), file->size()) ? There::kSame
                                                                                                       : There::kOther;
}

/// Copies one data file to its place below `root`, making the folders that are missing. Links are not followed there.
std::optional<std::string> copy_data_file(ExternalFolder& beside_model, const Data& data, const std::string& output,
                                          ExternalFolder& beside_output, const Descriptor& root, Made& made,
                                          CopyProgress& progress) {
  const Result<ExternalFile> from = beside_model.open(data.location);
  if (!from) return from.error().message;
  if (!unchanged(data, from->descriptor())) return kChanged;
  Descriptor folder(::fcntl(root.number(), F_DUPFD_CLOEXEC, 0));
  std::string_view rest = data.location;
  for (std::size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
    const std::string name(rest.substr(0, slash));
    rest.remove_prefix(slash + 1);
    if (::mkdirat(folder.number(), name.c_str(), 0777) == 0) {
      made.add_folder(data.location.substr(0, data.location.size() - rest.size() - 1));
    } else if (errno != EEXIST) {
      return std::strerror(errno);
    }
    folder = Descriptor(::openat(folder.number(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.ok())
      return errno == ENOTDIR || errno == ELOOP ? fmt::format("`{}` is not a folder", escape_for_display(name))
                                                : std::strerror(errno);
  }
  std::string temporary;
  Descriptor file;
  for (int attempt = 0; !file.ok() && attempt < 100; ++attempt) {
    temporary = fmt::format(".tensorlint-{}-{}", ::getpid(), attempt);
    // Readable for nobody else until its mode is set.
    file = Descriptor(::openat(folder.number(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.ok() && errno != EEXIST) return std::strerror(errno);
  }
  if (!file.ok()) return std::strerror(errno);
  const std::string name(rest), above = data.location.substr(0, data.location.size() - rest.size());
  made.add_file(above + temporary);
  if (auto fault = copy_bytes(data, from->descriptor(), file.number(), progress)) return fault;
  const ::mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file.number(), data.status.st_mode & 0666 & ~mask) != 0) return std::strerror(errno);
  if (!publish(folder.number(), temporary, name)) {
    if (errno != EEXIST) return std::strerror(errno);
    // Somebody was faster: perhaps another run, for a model with the same weights.
    const Result<There> there = what_is_at(output, beside_output, data, *from);
    if (!there || *there != There::kSame) return "a file of that name has appeared in the meantime";
    ::unlinkat(folder.number(), temporary.c_str(), 0);
    made.forget_last();
    return std::nullopt;
  }
  made.forget_last();
  made.add_file(data.location);
  return std::nullopt;
}

/// A model that is written over itself is changed where it is: the links to it stay. Any other link is replaced, since
/// nobody asked for what it leads to.
std::string behind_links(const std::string& output, const Model& model) {
  if (output != model.path) return output;
  const std::unique_ptr<char, decltype(&std::free)> file(::realpath(output.c_str(), nullptr), &std::free);
  return file == nullptr ? output : file.get();
}

std::string in_backticks(std::string_view name) { return fmt::format("`{}`", name); }

std::string list(const std::vector<Data>& files) {
  const std::string first = in_backticks(files[0].location);
  if (files.size() == 1) return first;
  return files.size() == 2 ? fmt::format("{} and {}", first, in_backticks(files[1].location))
                           : fmt::format("{} and {} more files", first, files.size() - 1);
}

}  // namespace

Result<std::string> write_model(const Model& model, std::span<const std::string_view> parts, const std::string& output,
                                bool copy_data, const std::function<void(std::string_view)>& written) {
  struct ::stat folder_now{}, folder_before{}, target{};
  const std::string folder = folder_of(output);
  const bool moves = ::stat(folder.c_str(), &folder_now) != 0 ||
                     ::stat(folder_of(model.path).c_str(), &folder_before) != 0 ||
                     !same_file(folder_now, folder_before);
  const bool exists = ::stat(output.c_str(), &target) == 0;
  const HeldSignals held;
  if (exists && S_ISDIR(target.st_mode))
    return Error{fmt::format("{} is a folder; add a file name for the model", output), {}};

  // What they count of folders and links is of all files together.
  ExternalFolder beside_model(model.path), beside_output(output);
  std::vector<Data> missing;
  std::uint64_t total = 0;
  for (const std::string& location : external_locations(model)) {
    const Result<ExternalFile> file = beside_model.open(location);
    // Where the model stays in its folder, what is wrong with its data was wrong before, and is a finding.
    if (!file && moves) return Error{file.error().message + "; nothing is written", {}};
    if (location == output.substr(output.rfind('/') + 1))
      return Error{fmt::format("the model keeps weights in {}; give the model another name", output), {}};
    if (!file) continue;
    Data data{.location = location, .status = {}};
    if (::fstat(file->descriptor(), &data.status) != 0)
      return Error{fmt::format("external data `{}`: {}", location, std::strerror(errno)), {}};
    if (exists && same_file(target, data.status))
      return Error{fmt::format("the model keeps weights in {}; give the model another name", output), {}};
    if (!moves) continue;
    const Result<There> there = what_is_at(output, beside_output, data, *file);
    if (!there) return Error{there.error().message + "; nothing is written", {}};
    if (HeldSignals::waiting()) return Error{"interrupted; nothing is written", {}};
    if (*there == There::kOther)
      return Error{fmt::format("`{}` already exists and differs from the model's data; nothing is written",
                               folder + "/" + location),
                   {}};
    if (*there == There::kSame) continue;
    total += data.size();
    missing.push_back(std::move(data));
  }
  if (!missing.empty() && !copy_data)
    return Error{fmt::format("the model keeps weights in {} beside it; write the result into the same folder, or add "
                             "--copy-data to copy {}",
                             list(missing), size_text(total)),
                 {}};
  if (!missing.empty() && exists && !S_ISREG(target.st_mode))
    return Error{fmt::format("{} is not a regular file, so nothing can be copied next to it", output), {}};

  const Descriptor root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Made made(root);
  std::string text;
  if (!missing.empty()) {
    if (!root.ok()) return Error{fmt::format("cannot write {}: {}", output, std::strerror(errno)), {}};
    CopyProgress progress(total);
    for (const Data& data : missing) {
      if (const auto fault = copy_data_file(beside_model, data, output, beside_output, root, made, progress))
        return Error{fmt::format("cannot copy `{}` to `{}`: {}; nothing is written", data.location,
                                 folder + "/" + data.location, *fault),
                     {}};
      text += fmt::format("copied {}, {}\n", escape_for_display(folder + "/" + data.location, 2000),
                          size_text(data.size()));
    }
  }
  if (HeldSignals::waiting()) return Error{"interrupted; nothing is written", {}};
  if (auto error = write_file(behind_links(output, model), parts, written)) return *std::move(error);
  made.keep();
  return text;
}

}  // namespace tensorlint::cli
