#include "analyzer/findings/source_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <system_error>

#include "base/file_bytes.h"
#include "base/lines.h"

namespace tensorlint::findings {
namespace {

namespace fs = std::filesystem;

/// A program's source is small, and so are all of them together.
constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20, kMaxBytes = std::size_t{16} << 20;
/// What is searched for one line, of a file that may be a single one.
constexpr std::uint32_t kBlockLines = 64, kBlockBytes = 4096;
constexpr std::size_t kMaxParts = 64;
/// Of one name and the links on its way. Longer names are no system's.
constexpr std::size_t kMaxComponents = 256, kMaxName = 4096;

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::distance(folder.begin(), folder.end()) < std::distance(path.begin(), path.end()) &&
         std::equal(folder.begin(), folder.end(), path.begin());
}

}  // namespace

SourceFiles::SourceFiles(const std::string& model_path, const std::string& source_root, Meter& meter)
    : meter_(meter), model_(model_path) {
  const fs::path folder = model_.parent_path();
  const auto real = [](const fs::path& path) {
    std::error_code error;
    fs::path found = path.empty() ? path : fs::canonical(path, error);
    return error ? fs::path() : found;
  };
  source_root_ = real(source_root);
  working_folder_ = real(".");
  model_folder_ = folder.empty() ? working_folder_ : real(folder);
  for (const fs::path& root : {source_root_, working_folder_, model_folder_}) {
    // Below the root of the file system lies the whole machine: nobody means that by working there.
    if (root.has_relative_path()) roots_.push_back(root);
  }
}

std::string_view SourceFiles::program_line(std::string_view file, std::uint32_t line) {
  auto known = by_name_.find(file);
  if (known == by_name_.end()) {
    const fs::path path = find(file);
    known = by_name_.emplace(file, path.empty() ? nullptr : read(path)).first;
  }
  return known->second == nullptr ? std::string_view() : known->second->line(line);
}

std::string_view SourceFiles::model_line(std::uint32_t line) {
  const auto [known, is_new] = by_name_.try_emplace(std::string(), nullptr);  // no program has that name
  if (is_new) known->second = read(model_);
  return known->second == nullptr ? std::string_view() : known->second->line(line);
}

fs::path SourceFiles::find(std::string_view file) {
  if (file.size() > kMaxName || file.find('\0') != std::string_view::npos || !file.ends_with(".py")) return {};
  const fs::path path(file), relative = path.relative_path();
  const std::vector<fs::path> parts(relative.begin(), relative.end());
  const Components all(parts);
  if (all.size() > kMaxComponents) return {};
  if (!source_root_.empty())
    for (std::size_t first = 0; first < std::min(all.size(), kMaxParts); ++first)
      if (fs::path found = below_a_root(source_root_, all.subspan(first)); !found.empty()) return found;
  if (path.is_absolute()) return below_a_root("/", all);
  if (fs::path found = below_a_root(working_folder_, all); !found.empty()) return found;
  return below_a_root(model_folder_, all);
}

/// The file itself, all links followed; empty where there is none below a root.
fs::path SourceFiles::below_a_root(const fs::path& folder, Components path) {
  fs::path real = resolved(folder, path);
  const bool allowed = std::ranges::any_of(roots_, [&](const fs::path& root) { return is_below(real, root); });
  return allowed ? real : fs::path();
}

/// As fs::canonical, which follows any number of components; `folder` is a real one. Empty where a component does not
/// exist, or there are too many.
fs::path SourceFiles::resolved(const fs::path& folder, Components path) {
  if (folder.empty()) return {};
  fs::path real = folder;
  std::vector<fs::path> of_links;  // the next one last
  for (std::size_t followed = 0; !path.empty() || !of_links.empty(); ++followed) {
    if (followed == kMaxComponents || !meter_.may_look_up()) return {};
    fs::path component;
    if (!of_links.empty()) {
      component = std::move(of_links.back());
      of_links.pop_back();
    } else {
      component = path.front();
      path = path.subspan(1);
    }
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      real = real.parent_path();
      continue;
    }
    std::error_code error;
    fs::path next = real / component;
    const fs::file_status status = fs::symlink_status(next, error);
    if (error || !fs::exists(status)) return {};
    if (!fs::is_symlink(status)) {
      real = std::move(next);
      continue;
    }
    const fs::path target = fs::read_symlink(next, error);
    if (error) return {};
    if (target.is_absolute()) real = "/";
    const fs::path more = target.relative_path();
    of_links.insert(of_links.end(), std::make_reverse_iterator(more.end()), std::make_reverse_iterator(more.begin()));
  }
  return real;
}

const SourceFiles::File* SourceFiles::read(const fs::path& path) {
  struct ::stat status{};
  if (::stat(path.c_str(), &status) != 0) return nullptr;
  const auto [known, is_new] = files_.try_emplace({status.st_dev, status.st_ino});
  File& file = known->second;
  if (!is_new) return &file;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > kMaxFileBytes || size > kMaxBytes - bytes_) return &file;
  const auto bytes = FileBytes::open(path.string());
  if (!bytes || (*bytes)->bytes().size() > kMaxFileBytes) return &file;  // it may have grown since
  file.owner = *bytes;
  file.text = (*bytes)->bytes();
  bytes_ += std::min(file.text.size(), kMaxBytes - bytes_);
  file.find_blocks();
  return &file;
}

void SourceFiles::File::find_blocks() {
  std::uint32_t line = 0;
  for (std::string_view rest = text; !rest.empty(); take_line(rest), ++line) {
    const auto begin = static_cast<std::uint32_t>(text.size() - rest.size());
    if (blocks.empty() || line - blocks.back().first_line == kBlockLines || begin - blocks.back().begin >= kBlockBytes)
      blocks.push_back({begin, line});
  }
}

std::string_view SourceFiles::File::line(std::uint32_t number) const {
  const auto next = std::ranges::upper_bound(blocks, number, std::less_equal<>(), &Block::first_line);
  if (next == blocks.begin()) return {};
  const Block block = *std::prev(next);
  std::string_view rest = text.substr(block.begin, next == blocks.end() ? text.size() : next->begin - block.begin);
  for (std::uint32_t before = block.first_line + 1; before < number && !rest.empty(); ++before) take_line(rest);
  if (rest.empty()) return {};
  const bool is_last = next != blocks.end() && next->first_line == number;
  std::string_view line = is_last ? rest.substr(0, rest.size() - 1) : take_line(rest);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace tensorlint::findings
