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
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string relative_path(const std::string& path, const std::string& folder) {
  std::error_code error;
  const fs::path full = fs::absolute(path, error).lexically_normal();
  fs::path base = fs::absolute(folder, error).lexically_normal();
  if (!base.has_filename()) base = base.parent_path();
  return full.lexically_relative(base).generic_string();
}

}  // namespace tensorlint
