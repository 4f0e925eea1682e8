#include "base/paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/descriptor.h"

namespace tensorlint {

std::string_view take_component(std::string_view& path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  const std::string_view component = path.substr(0, path.find('/'));
  path.remove_prefix(component.size());
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return component;
}

std::string whole_path(std::string_view path) {
  std::string whole;
  if (!path.starts_with('/')) {
    std::error_code error;
    whole = std::filesystem::current_path(error).string();
    if (whole == "/") whole.clear();
  }
  while (!path.empty()) {
    const std::string_view component = take_component(path);
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      whole.resize(std::min(whole.rfind('/'), whole.size()));
    } else {
      whole += '/';
      whole += component;
    }
  }
  return whole.empty() ? "/" : whole;
}

std::string relative_path(std::string_view path, std::string_view folder) {
  const std::string full = whole_path(path), base = whole_path(folder);
  std::string_view down = full, up = base;
  while (!down.empty() && !up.empty()) {
    std::string_view after_down = down, after_up = up;
    if (take_component(after_down) != take_component(after_up)) break;
    down = after_down;
    up = after_up;
  }
  std::string relative;
  while (!take_component(up).empty()) relative += "../";
  down.remove_prefix(std::min(down.find_first_not_of('/'), down.size()));
  relative += down;
  if (relative.ends_with('/')) relative.pop_back();
  return relative.empty() ? "." : relative;
}

std::string real_folder(const std::string& folder) {
  const Descriptor open(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!open.ok()) return {};
  std::string path(PATH_MAX, '\0');
  const std::string link = "/proc/self/fd/" + std::to_string(open.number());
  const ::ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  struct ::stat meant{}, found{};
  if (length > 0 && static_cast<std::size_t>(length) < path.size()) {
    path.resize(static_cast<std::size_t>(length));
    // Of a folder that was removed or that this process cannot reach, the system says something else there.
    if (path.starts_with('/') && ::fstat(open.number(), &meant) == 0 && ::stat(path.c_str(), &found) == 0 &&
        meant.st_dev == found.st_dev && meant.st_ino == found.st_ino)
      return path;
  }
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(folder.c_str(), nullptr), &std::free);
  return real == nullptr ? std::string() : std::string(real.get());
}

}  // namespace tensorlint
