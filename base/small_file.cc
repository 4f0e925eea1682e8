#include "base/small_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace tensorlint {

namespace fs = std::filesystem;

Result<std::string> read_small_file(const std::string& path, std::size_t limit) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error) return Error{"cannot be read: " + error.message(), {}};
  if (!fs::is_regular_file(status)) return Error{"is not a regular file", {}};
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{"cannot be opened", {}};
  std::string text;
  char block[65536];
  while (in.read(block, sizeof block) || in.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(in.gcount()));
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
