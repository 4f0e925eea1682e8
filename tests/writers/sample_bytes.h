#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tensorlint {

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

}  // namespace tensorlint
