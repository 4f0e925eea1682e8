#include "analyzer/findings/source_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <system_error>

#include "base/file_bytes.h"
#include "base/lines.h"

namespace tensorlint::findings {
namespace {

namespace fs = std::filesystem;

/// A program's source is small, and so are all of them together.
constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20, kMaxBytes = std::size_t{16} << 20;
constexpr std::uint32_t kBlock = 64;
constexpr std::ptrdiff_t kMaxParts = 64;
/// Of one name and the links on its way, and of all names of a model: a link of a page of `d/../` makes thousands of
/// calls of the system.
constexpr std::size_t kMaxComponents = 256, kMaxLookups = std::size_t{1} << 16;

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::distance(folder.begin(), folder.end()) < std::distance(path.begin(), path.end()) &&
         std::equal(folder.begin(), folder.end(), path.begin());
}

}  // namespace

SourceFiles::SourceFiles(const std::string& model_path, const std::string& source_root) : model_(model_path) {
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
  if (file.find('\0') != std::string_view::npos || !file.ends_with(".py")) return {};
  const fs::path path(file);
  if (!source_root_.empty()) {
    const fs::path parts = path.relative_path();
    auto first = parts.begin();
    for (auto left = std::min(std::distance(parts.begin(), parts.end()), kMaxParts); left > 0; --left, ++first) {
      fs::path candidate;
      for (auto part = first; part != parts.end(); ++part) candidate /= *part;
      if (fs::path found = below_a_root(source_root_, candidate); !found.empty()) return found;
    }
  }
  if (path.is_absolute()) return below_a_root("/", path.relative_path());
  if (fs::path found = below_a_root(working_folder_, path); !found.empty()) return found;
  return below_a_root(model_folder_, path);
}

/// The file itself, all links followed; empty where there is none below a root.
fs::path SourceFiles::below_a_root(const fs::path& folder, const fs::path& path) {
  fs::path real = resolved(folder, path);
  const bool allowed = std::ranges::any_of(roots_, [&](const fs::path& root) { return is_below(real, root); });
  return allowed ? real : fs::path();
}

/// As fs::canonical, which follows any number of components; `folder` is a real one. Empty where a component does not
/// exist, or there are too many.
fs::path SourceFiles::resolved(const fs::path& folder, const fs::path& path) {
  if (folder.empty()) return {};
  fs::path real = folder;
  std::vector<fs::path> pending;  // the next one last
  const auto add = [&](const fs::path& more) {
    pending.insert(pending.end(), std::make_reverse_iterator(more.end()), std::make_reverse_iterator(more.begin()));
  };
  add(path);
  for (std::size_t followed = 0; !pending.empty(); ++followed) {
    if (followed == kMaxComponents || lookups_ == kMaxLookups) return {};
    ++lookups_;
    const fs::path component = std::move(pending.back());
    pending.pop_back();
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
    add(target.relative_path());
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
  std::uint32_t count = 0;
  for (std::string_view rest = file.text; !rest.empty(); take_line(rest))
    if (count++ % kBlock == 0) file.blocks.push_back(static_cast<std::uint32_t>(file.text.size() - rest.size()));
  return &file;
}

std::string_view SourceFiles::File::line(std::uint32_t number) const {
  if (number == 0 || (number - 1) / kBlock >= blocks.size()) return {};
  std::string_view rest = text.substr(blocks[(number - 1) / kBlock]), line;
  for (std::uint32_t skipped = 0; skipped <= (number - 1) % kBlock; ++skipped) {
    if (rest.empty()) return {};
    line = take_line(rest);
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace tensorlint::findings
