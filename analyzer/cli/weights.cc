#include "analyzer/cli/weights.h"

#include <sys/stat.h>

#include <algorithm>

#include "analyzer/config/small_file.h"

namespace tensorlint::cli {
namespace {

/// The two paths lie in one folder, however it is written.
bool same_folder(const std::string& a, const std::string& b) {
  struct ::stat x {}, y {};
  return ::stat(folder_of(a).c_str(), &x) == 0 && ::stat(folder_of(b).c_str(), &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

}  // namespace

bool would_lose_weights(const Model& model, const std::string& from, const std::string& to) {
  return std::ranges::any_of(model.values, [](const Value& value) { return value.initializer != nullptr && value.initializer->external; }) &&
         !same_folder(from, to);
}

}  // namespace tensorlint::cli
