#include "analyzer/cli/inputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/foreign_format.h"
#include "base/paths.h"
#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"

namespace tensorlint::cli {
namespace {

namespace fs = std::filesystem;

enum class Entry : std::uint8_t { kFolder, kLinkToFolder, kOther };

/// By the folder that it is in, not by its path: one that is too long for the system has no status, and is not left
/// out.
Entry entry_of(::DIR* folder, const ::dirent& entry) {
  if (entry.d_type == DT_DIR) return Entry::kFolder;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return Entry::kOther;
  struct ::stat status{};
  if (::fstatat(::dirfd(folder), entry.d_name, &status, 0) != 0 || !S_ISDIR(status.st_mode)) return Entry::kOther;
  if (entry.d_type == DT_LNK || ::fstatat(::dirfd(folder), entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      S_ISLNK(status.st_mode))
    return Entry::kLinkToFolder;
  return Entry::kFolder;
}

/// Folders by device and inode.
using KnownFolders = std::set<std::pair<::dev_t, ::ino_t>>;

/// `known`: of one glob, whose links lead to folders that others of its matches lead to, or hold; these are gone
/// through once.
void expand_folder(const std::string& folder, KnownFolders& known, std::vector<InputFile>& out) {
  std::vector<InputFile> found;
  bool is_known = false;
  std::vector<std::string> pending{folder};
  std::string foreign;  // what to do about a file of another kind, the first by name
  std::string foreign_file;
  while (!pending.empty()) {
    const std::string here = std::move(pending.back());
    pending.pop_back();
    const std::unique_ptr<::DIR, int (*)(::DIR*)> folder(::opendir(here.c_str()), &::closedir);
    errno = folder == nullptr ? errno : 0;
    struct ::stat status{};
    if (folder != nullptr && ::fstat(::dirfd(folder.get()), &status) == 0 &&
        !known.emplace(status.st_dev, status.st_ino).second) {
      is_known = true;
      continue;
    }
    while (folder != nullptr) {
      const ::dirent* const entry = ::readdir(folder.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      const Entry kind = entry_of(folder.get(), *entry);
      std::string path = here.ends_with('/') ? here : here + '/';
      path += name;
      if (kind == Entry::kFolder) {
        pending.push_back(std::move(path));
      } else if (is_model_name(path) && kind != Entry::kLinkToFolder) {
        found.push_back({std::move(path), {}});
      } else if (std::string hint = foreign_name(path); !hint.empty() && (foreign.empty() || path < foreign_file)) {
        foreign = std::move(hint);
        foreign_file = std::move(path);
      }
      errno = 0;
    }
    if (errno != 0) found.push_back({here, fmt::format("cannot read the folder: {}", std::strerror(errno))});
  }
  if (found.empty() && !is_known)
    found.push_back({folder, foreign.empty() ? "no .onnx or .onnxtxt file in the folder"
                                             : "no .onnx or .onnxtxt file in the folder; " + foreign});
  std::ranges::sort(found, {}, &InputFile::path);
  std::ranges::move(found, std::back_inserter(out));
}

void expand_path(const std::string& path, KnownFolders& known, std::vector<InputFile>& out) {
  if (path.empty()) {
    out.push_back({path, "the name is empty"});
    return;
  }
  std::error_code error;
  if (fs::is_directory(path, error)) {
    expand_folder(path, known, out);
    return;
  }
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".py") {
    out.push_back({path, "Python programs belong to `tensorlint preflight`, which is not built yet"});
  } else if (extension == ".cpp" || extension == ".cc" || extension == ".cxx" || extension == ".cu") {
    out.push_back({path, "C++ inputs are not built yet"});
  } else {
    out.push_back({path, {}});
  }
}

constexpr std::size_t kMaxStandardInput = std::size_t{2} << 30;

Result<std::string> read_standard_input() {
  std::string text;
  struct ::stat status{};
  if (::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
    text.reserve(std::min(static_cast<std::size_t>(status.st_size), kMaxStandardInput));
  std::vector<char> block(std::size_t{1} << 18);
  while (true) {
    const ::ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error{fmt::format("cannot read standard input: {}", std::strerror(errno)), {}};
    if (count == 0) break;
    text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > kMaxStandardInput) return Error{"standard input is larger than 2 GiB", {}};
  }
  if (text.empty()) return Error{"standard input is empty", {}};
  return text;
}

/// A model in text begins with `<`, perhaps after comments and empty lines. No binary model begins so: these bytes
/// would be fields of other wire types than a ModelProto has.
bool begins_as_text_model(std::string_view bytes) {
  while (true) {
    const std::size_t first = bytes.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return false;
    bytes.remove_prefix(first);
    if (bytes.front() != '#') return bytes.front() == '<';
    bytes.remove_prefix(std::min(bytes.find('\n'), bytes.size()));
  }
}

/// The folders that an expansion has listed, each with the number of parts of the pattern before its entries.
using ListedFolders = std::set<std::tuple<::dev_t, ::ino_t, std::ptrdiff_t>>;
thread_local ListedFolders* listed_folders = nullptr;  // glob's functions are given no state

/// What a folder has, by name: which of several ways to a folder is taken does not depend on the disk.
struct SortedEntries {
  ::dirent** entries = nullptr;
  int count = 0, next = 0;
};

/// Lists a folder once for each part of a pattern: through links to folders above them, ways to it have no end.
void* open_once(const char* path) {
  struct ::stat status{};
  if (::stat(path, &status) != 0) return nullptr;
  const std::string_view name = path;
  const std::ptrdiff_t depth = name == "." ? -1 : std::ranges::count(name, '/');
  if (!listed_folders->emplace(status.st_dev, status.st_ino, depth).second) {
    errno = ENOENT;
    return nullptr;
  }
  SortedEntries found;
  const auto by_name = [](const ::dirent** a, const ::dirent** b) { return std::strcmp((*a)->d_name, (*b)->d_name); };
  found.count = ::scandir(path, &found.entries, nullptr, by_name);
  return found.count < 0 ? nullptr : new SortedEntries(found);
}

::dirent* next_entry(void* folder) {
  SortedEntries& sorted = *static_cast<SortedEntries*>(folder);
  return sorted.next < sorted.count ? sorted.entries[sorted.next++] : nullptr;
}

void close_entries(void* folder) {
  const std::unique_ptr<SortedEntries> sorted(static_cast<SortedEntries*>(folder));
  std::for_each_n(sorted->entries, sorted->count, std::free);
  std::free(sorted->entries);
}

void expand_glob(const std::string& pattern, std::vector<InputFile>& out) {
  ListedFolders listed;
  listed_folders = &listed;
  ::glob_t matches{};
  matches.gl_opendir = open_once;
  matches.gl_readdir = next_entry;
  matches.gl_closedir = close_entries;
  matches.gl_stat = ::stat;
  matches.gl_lstat = ::lstat;
  const int status = ::glob(pattern.c_str(), GLOB_ALTDIRFUNC, nullptr, &matches);
  if (status == 0) {
    KnownFolders known;
    for (std::size_t i = 0; i < matches.gl_pathc; ++i) expand_path(matches.gl_pathv[i], known, out);
  } else {
    out.push_back({pattern, "no file matches"});
  }
  ::globfree(&matches);
}

}  // namespace

bool is_text_model(std::string_view path) { return path.ends_with(".onnxtxt"); }

bool is_text_model(std::string_view path, std::string_view bytes) {
  return path == kStandardInput ? begins_as_text_model(bytes) : is_text_model(path);
}

bool is_model_name(std::string_view path) { return path.ends_with(".onnx") || is_text_model(path); }

std::vector<InputFile> expand_inputs(std::span<const std::string> arguments) {
  std::vector<InputFile> out;
  for (const std::string& argument : arguments) {
    if (argument == "-") {
      out.push_back({input_path(argument), {}});
      continue;
    }
    std::error_code error;
    const bool is_pattern = argument.find_first_of("*?[") != std::string::npos && !fs::exists(argument, error);
    if (is_pattern) {
      expand_glob(argument, out);
    } else {
      KnownFolders known;
      expand_path(input_path(argument), known, out);
    }
  }
  std::set<std::string> known;
  std::erase_if(out, [&](const InputFile& file) {
    return !known.insert(file.path == kStandardInput ? file.path : whole_path(file.path)).second;
  });
  return out;
}

std::string input_path(const std::string& argument) {
  if (argument == "-") return std::string(kStandardInput);
  return argument == kStandardInput ? fmt::format("./{}", argument) : argument;
}

Result<Model> load_model(const std::string& path) {
  if (path == kStandardInput) {
    const Result<ModelBytes> input = open_model(path);
    return input ? input->read(path) : input.error();
  }
  Result<Model> model = is_text_model(path) ? read_onnx_text_file(path) : read_onnx_file(path);
  std::error_code none;
  if (!model && fs::is_regular_file(path, none))
    if (const std::string hint = foreign_name(path);
        !hint.empty() && !model.error().message.starts_with("not an ONNX model: the file is "))  // which says more
      return Error{fmt::format("{}; {}", model.error().message, hint), model.error().position};
  return model;
}

Result<pipeline::Pipeline> load(const std::string& path, const pipeline::Options& options,
                                const Declarations& declared) {
  Result<Model> model = load_model(path);
  if (!model) return Error{fmt::format("{}: {}", path, model.error().message), {}};
  if (auto unknown = check_names(declared, *model, path)) return std::move(*unknown);
  return pipeline::Pipeline(std::move(*model), options);
}

Result<Model> ModelBytes::read(const std::string& path) const {
  return is_text ? read_onnx_text(bytes, path) : read_onnx_bytes(bytes, path, owner, {}, file.get());
}

Result<ModelBytes> open_model(const std::string& path) {
  if (path == kStandardInput) {
    Result<std::string> read = read_standard_input();
    if (!read) return read.error();
    const auto text = std::make_shared<const std::string>(std::move(*read));
    return ModelBytes{.bytes = *text, .is_text = is_text_model(path, *text), .owner = text, .file = nullptr};
  }
  Result<std::shared_ptr<const FileBytes>> file = FileBytes::open(path);
  if (!file) return file.error();
  return ModelBytes{.bytes = (*file)->bytes(), .is_text = is_text_model(path), .owner = *file, .file = *file};
}

}  // namespace tensorlint::cli
