#include "base/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

namespace tensorlint {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;

/// The name of a temporary file. Who takes it out removes or renames the file.
std::atomic<const char*> unfinished = nullptr;
static_assert(std::atomic<const char*>::is_always_lock_free);  // read by a handler of signals

/// Holds a name there, unless another one is held.
class Unfinished {
 public:
  explicit Unfinished(const std::string& name) {
    const char* none = nullptr;
    is_held_ = unfinished.compare_exchange_strong(none, name.c_str());
  }
  ~Unfinished() {
    if (!is_held_ || unfinished.exchange(nullptr) != nullptr) return;
    while (true) ::pause();  // a handler ends the process, and reads the name
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  bool is_held_ = false;
};

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ::ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Error cannot_write(std::string_view path) {
  return {fmt::format("cannot write {}: {}", path, std::strerror(errno)), {}};
}

/// A new file next to `path`, with the permissions that new files get; its descriptor is below 0 where there can be
/// none.
class FileBeside {
 public:
  explicit FileBeside(const std::string& path) {
    constexpr int kTries = 100;
    std::random_device random;
    for (int i = 0; i < kTries && descriptor_ < 0; ++i) {
      unfinished_.reset();
      name_ = fmt::format("{}.{:08x}", path, random());
      // Before there is a file: a handler that ends the process then leaves none.
      unfinished_.emplace(name_);
      descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ < 0 && errno != EEXIST) break;
    }
  }
  const char* name() const { return name_.c_str(); }
  int descriptor() const { return descriptor_; }

 private:
  std::string name_;
  std::optional<Unfinished> unfinished_;
  int descriptor_ = -1;
};

/// `fill` writes to a descriptor, and says whether all was written.
std::optional<Error> write_beside(const std::string& path, const std::function<bool(int)>& fill) {
  struct ::stat known{};
  const bool exists = ::stat(path.c_str(), &known) == 0;
  const bool is_special = exists && !S_ISREG(known.st_mode);
  if (is_special) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return cannot_write(path);
    const bool good = fill(descriptor);
    return ::close(descriptor) == 0 && good ? std::nullopt : std::optional(cannot_write(path));
  }
  const FileBeside file(path);
  if (file.descriptor() < 0) return cannot_write(path);
  const bool complete = fill(file.descriptor()) && (!exists || ::fchmod(file.descriptor(), known.st_mode & 07777) == 0);
  if (::close(file.descriptor()) == 0 && complete && ::rename(file.name(), path.c_str()) == 0) return std::nullopt;
  const Error error = cannot_write(path);
  ::unlink(file.name());
  return error;
}

/// Small pieces are collected; after one that cannot be written nothing more is.
bool write_from(int descriptor, const TextSource& text) {
  constexpr std::size_t kCollected = std::size_t{64} << 10;
  std::string collected;
  bool good = true;
  const auto flush = [&] {
    good = good && write_all(descriptor, collected);
    collected.clear();
  };
  text([&](std::string_view piece) {
    collected += piece;
    if (collected.size() >= kCollected) flush();
  });
  flush();
  return good;
}

}  // namespace

std::optional<Error> write_file(const std::string& path, std::string_view text) {
  return write_file(path, std::span(&text, 1));
}

std::optional<Error> write_file(const std::string& path, std::span<const std::string_view> parts,
                                const std::function<void(std::string_view)>& written) {
  return write_beside(path, [&](int descriptor) {
    return std::ranges::all_of(parts, [&](std::string_view part) {
      while (!part.empty()) {
        const std::string_view piece = part.substr(0, kPiece);
        if (!write_all(descriptor, piece)) return false;
        if (written) written(piece);
        part.remove_prefix(piece.size());
      }
      return true;
    });
  });
}

std::optional<Error> write_file_in_folder(const std::string& path, std::span<const std::string_view> parts) {
  struct ::stat known{};
  if (::stat(path.c_str(), &known) == 0 && !S_ISREG(known.st_mode))
    return Error{fmt::format("cannot write {}: what is there is no file", path), {}};
  return write_file(path, parts);
}

std::optional<Error> write_file(const std::string& path, const TextSource& text) {
  return write_beside(path, [&](int descriptor) { return write_from(descriptor, text); });
}

void remove_unfinished_file() noexcept {
  if (const char* const name = unfinished.exchange(nullptr); name != nullptr) ::unlink(name);
}

std::optional<Error> write_stdout(std::string_view text) {
  return write_all(STDOUT_FILENO, text) ? std::nullopt : std::optional(cannot_write("standard output"));
}

std::optional<Error> write_stdout(const TextSource& text) {
  return write_from(STDOUT_FILENO, text) ? std::nullopt : std::optional(cannot_write("standard output"));
}

std::string text_of(const TextSource& text) {
  std::string whole;
  text([&](std::string_view piece) { whole += piece; });
  return whole;
}

void write_stderr(std::string_view text) noexcept {
  if (!write_all(STDERR_FILENO, text)) return;
}

void reserve_standard_streams() {
  for (const int wanted : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(wanted, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one; opened the wrong way round.
    if (::open("/dev/null", wanted == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

bool wants_colour() {
  const auto value = [](const char* name) {
    const char* const text = std::getenv(name);
    return std::string_view(text == nullptr ? "" : text);
  };
  if (!value("NO_COLOR").empty()) return false;
  for (const char* name : {"FORCE_COLOR", "CLICOLOR_FORCE"})
    if (const std::string_view forced = value(name); !forced.empty() && forced != "0" && forced != "false") return true;
  if (value("FORCE_COLOR") == "0" || value("FORCE_COLOR") == "false" || value("CLICOLOR") == "0") return false;
  return ::isatty(STDOUT_FILENO) == 1 && value("TERM") != "dumb";
}

}  // namespace tensorlint
