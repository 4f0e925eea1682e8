#include "analyzer/cli/inputs.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>

#include "ir/readers/onnx/reader.h"
#include "ir/text/reader.h"

namespace tensorlint::cli {
namespace {

namespace fs = std::filesystem;

bool is_text_model(std::string_view path) { return path.ends_with(".onnxtxt"); }

void expand_folder(const std::string& folder, std::vector<InputFile>& out) {
  std::vector<InputFile> found;
  std::vector<std::string> pending{folder};
  while (!pending.empty()) {
    const std::string here = std::move(pending.back());
    pending.pop_back();
    std::error_code error;
    fs::directory_iterator it(here, error);
    for (; !error && it != fs::directory_iterator(); it.increment(error)) {
      std::error_code ignored;
      // What the folder's own entry says: a path that is too long for the system has no status, and is not left out.
      if (!it->is_symlink(ignored) && it->is_directory(ignored)) {
        pending.push_back(it->path().string());
      } else if (is_model_name(it->path().native()) && !it->is_directory(ignored)) {
        found.push_back({it->path().string(), {}});
      }
    }
    if (error) found.push_back({here, "cannot read the folder: " + error.message()});
  }
  if (found.empty()) found.push_back({folder, "no .onnx or .onnxtxt file in the folder"});
  std::ranges::sort(found, {}, &InputFile::path);
  std::ranges::move(found, std::back_inserter(out));
}

void expand_path(const std::string& path, std::vector<InputFile>& out) {
  if (path.empty()) {
    out.push_back({path, "the name is empty"});
    return;
  }
  std::error_code error;
  if (fs::is_directory(path, error)) {
    expand_folder(path, out);
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

void expand_glob(const std::string& pattern, std::vector<InputFile>& out) {
  ::glob_t matches{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &matches);
  if (status == 0) {
    for (std::size_t i = 0; i < matches.gl_pathc; ++i) expand_path(matches.gl_pathv[i], out);
  } else {
    out.push_back({pattern, "no file matches"});
  }
  ::globfree(&matches);
}

}  // namespace

bool is_model_name(std::string_view path) { return path.ends_with(".onnx") || is_text_model(path); }

std::vector<InputFile> expand_inputs(std::span<const std::string> arguments) {
  std::vector<InputFile> out;
  for (const std::string& argument : arguments) {
    std::error_code error;
    const bool is_pattern = argument.find_first_of("*?[") != std::string::npos && !fs::exists(argument, error);
    if (is_pattern) {
      expand_glob(argument, out);
    } else {
      expand_path(argument, out);
    }
  }
  std::set<fs::path> known;
  std::erase_if(out, [&](const InputFile& file) {
    std::error_code error;
    const fs::path whole = fs::absolute(file.path, error).lexically_normal();
    return !error && !known.insert(whole).second;
  });
  return out;
}

Result<Model> load_model(const std::string& path) {
  return is_text_model(path) ? read_onnx_text_file(path) : read_onnx_file(path);
}

}  // namespace tensorlint::cli
