#include "base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/descriptor.h"

namespace tensorlint {

namespace fs = std::filesystem;

Result<std::string> read_small_file(const std::string& path, std::size_t limit) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error) return Error{"cannot be read: " + error.message(), {}};
  if (!fs::is_regular_file(status)) return Error{"is not a regular file", {}};
  // Without O_NONBLOCK reading waits where it is a pipe by now, and in some files of /proc.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  const auto failed = [] { return Error{"cannot be read: " + std::generic_category().message(errno), {}}; };
  struct ::stat opened{};
  if (!file.ok() || ::fstat(file.number(), &opened) != 0) return failed();
  if (!S_ISREG(opened.st_mode)) return Error{"is not a regular file", {}};
  std::string text;
  char block[65536];
  while (true) {
    const ::ssize_t count = ::read(file.number(), block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed();
    if (count == 0) break;
    text.append(block, static_cast<std::size_t>(count));
    if (text.size() > limit) {
      const bool is_whole = limit >= (std::size_t{1} << 20);
      return Error{"is larger than " + std::to_string(limit >> (is_whole ? 20 : 10)) + (is_whole ? " MiB" : " KiB"),
                   {}};
    }
  }
  return text;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  const std::size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

}  // namespace tensorlint
