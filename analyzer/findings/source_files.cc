#include "analyzer/findings/source_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/file_bytes.h"
#include "base/paths.h"
#include "base/small_file.h"

namespace tensorlint::findings {
namespace {

/// A program's source is small, and so are all of them together. Of those above kMapped no pages stay in memory.
constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20, kMaxBytes = std::size_t{16} << 20;
constexpr std::size_t kMapped = std::size_t{64} << 10, kMaxHeld = std::size_t{4} << 20;
constexpr std::size_t kBlockBytes = 256;
/// What a line is cut to before it is searched for its end.
constexpr std::size_t kMaxLine = 8192;
constexpr std::size_t kMaxParts = 64;
/// Of one path and the links on its way; kMaxName as PATH_MAX.
constexpr std::size_t kMaxComponents = 256, kMaxName = 4096;

bool is_program(std::string_view path) { return path.ends_with(".py"); }

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

/// In their order, the first ones only.
std::vector<std::string_view> components_of(std::string_view path, std::size_t limit) {
  std::vector<std::string_view> components;
  while (!path.empty() && components.size() < limit)
    if (const std::string_view component = take_component(path); !component.empty()) components.push_back(component);
  return components;
}

}  // namespace

SourceFiles::SourceFiles(const std::string& model_path, const std::string& source_root, Meter& meter)
    : meter_(meter), model_(model_path), given_root_(source_root) {}

/// Most inputs name no program.
void SourceFiles::find_roots() {
  if (knows_roots_) return;
  knows_roots_ = true;
  if (!given_root_.empty()) source_root_ = real_folder(given_root_);
  working_folder_ = real_folder(".");
  model_folder_ = real_folder(folder_of(model_));
  for (const std::string& root : {source_root_, working_folder_, model_folder_}) {
    // Below the root of the file system lies the whole machine: nobody means that by working there.
    if (root.size() > 1) roots_.push_back(root);
  }
}

std::string_view SourceFiles::program_line(std::string_view file, std::uint32_t line) {
  auto known = by_name_.find(file);
  if (known == by_name_.end()) {
    const std::string path = find(file);
    known = by_name_.emplace(file, path.empty() ? nullptr : read(path)).first;
  }
  return known->second == nullptr ? std::string_view() : known->second->line(line);
}

std::string_view SourceFiles::model_line(std::uint32_t line) {
  const auto [known, is_new] = by_name_.try_emplace(std::string(), nullptr);  // no program has that name
  if (is_new) known->second = read(model_);
  return known->second == nullptr ? std::string_view() : known->second->line(line);
}

std::string SourceFiles::find(std::string_view file) {
  if (file.size() > kMaxName || file.find('\0') != std::string_view::npos || !is_program(file)) return {};
  const std::vector<std::string_view> components = components_of(file, kMaxComponents + 1);
  const Components all(components);
  if (all.size() > kMaxComponents) return {};
  find_roots();
  if (!source_root_.empty())
    for (std::size_t first = 0; first < std::min(all.size(), kMaxParts); ++first)
      if (std::string found = below_a_root(source_root_, all.subspan(first)); !found.empty()) return found;
  if (file.starts_with('/')) return below_a_root("/", all);
  if (std::string found = below_a_root(working_folder_, all); !found.empty()) return found;
  return below_a_root(model_folder_, all);
}

/// The file itself, all links followed; empty where there is none below a root, or it is no program.
std::string SourceFiles::below_a_root(const std::string& folder, Components path) {
  std::string real = resolved(folder, path);
  const bool allowed =
      is_program(real) && std::ranges::any_of(roots_, [&](const std::string& root) { return is_below(real, root); });
  return allowed ? real : std::string();
}

/// As realpath, which follows any number of components; `folder` is a real one. Empty where a component does not
/// exist, or there are too many.
std::string SourceFiles::resolved(const std::string& folder, Components path) {
  if (folder.empty()) return {};
  std::string real = folder == "/" ? std::string() : folder;
  std::vector<std::string> of_links;  // the next one last
  for (std::size_t followed = 0; !path.empty() || !of_links.empty(); ++followed) {
    if (followed == kMaxComponents || !meter_.may_look_up(real.size())) return {};
    std::string component;
    if (!of_links.empty()) {
      component = std::move(of_links.back());
      of_links.pop_back();
    } else {
      component = path.front();
      path = path.subspan(1);
    }
    if (component == ".") continue;
    if (component == "..") {
      real.resize(std::min(real.rfind('/'), real.size()));
      continue;
    }
    std::string next = real + '/' + component;
    struct ::stat status{};
    if (::lstat(next.c_str(), &status) != 0) return {};
    if (!S_ISLNK(status.st_mode)) {
      real = std::move(next);
      continue;
    }
    char target[PATH_MAX];
    const ::ssize_t length = ::readlink(next.c_str(), target, sizeof target);
    if (length <= 0) return {};
    const std::string_view text(target, static_cast<std::size_t>(length));
    if (text.starts_with('/')) real.clear();
    const std::vector<std::string_view> more = components_of(text, kMaxComponents - followed);  // no more are followed
    of_links.insert(of_links.end(), more.rbegin(), more.rend());
  }
  return real;
}

const SourceFiles::File* SourceFiles::read(const std::string& path) {
  struct ::stat status{};
  if (::stat(path.c_str(), &status) != 0) return nullptr;
  const auto [known, is_new] = files_.try_emplace({status.st_dev, status.st_ino});
  File& file = known->second;
  if (!is_new) return &file;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > kMaxFileBytes || size > kMaxBytes - bytes_) return &file;
  if (size <= kMapped && size > kMaxHeld - held_) return &file;
  const auto bytes = FileBytes::open(path, kMapped);
  if (!bytes || (*bytes)->bytes().size() > kMaxFileBytes) return &file;  // it may have grown since
  file.owner = *bytes;
  file.owner->close_descriptor();
  file.text = (*bytes)->bytes();
  bytes_ += std::min(file.text.size(), kMaxBytes - bytes_);
  if (file.text.size() <= kMapped) held_ += std::min(file.text.size(), kMaxHeld - held_);
  std::uint32_t ends = 0;
  for (std::size_t at = 0; at < file.text.size(); at += kBlockBytes) {
    file.ends_before.push_back(ends);
    ends += static_cast<std::uint32_t>(std::ranges::count(file.text.substr(at, kBlockBytes), '\n'));
  }
  file.owner->release(file.text);
  return &file;
}

std::string_view SourceFiles::File::line(std::uint32_t number) const {
  if (number == 0 || text.empty()) return {};
  owner->release(text);  // of a large file, what lines before this one have mapped
  std::string_view rest = text;
  if (std::uint32_t ends = number - 1; ends != 0) {  // of lines before this one
    const auto block = std::ranges::lower_bound(ends_before, ends) - 1;
    rest.remove_prefix(static_cast<std::size_t>(block - ends_before.begin()) * kBlockBytes);
    for (ends -= *block; ends != 0; --ends) {
      const void* const end = std::memchr(rest.data(), '\n', rest.size());
      if (end == nullptr) return {};
      rest.remove_prefix(static_cast<std::size_t>(static_cast<const char*>(end) - rest.data()) + 1);
      if (rest.empty()) return {};
    }
  }
  std::string_view line = rest.substr(0, kMaxLine);
  line = line.substr(0, line.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace tensorlint::findings
