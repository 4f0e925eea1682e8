// Reads each model of some folders, writes it anew from the graph and has libprotobuf compare the two. For
// round_trip_test.py; `rebuild FOLDER...` prints the models that differ and one line of counts, and fails when one
// differs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/file_bytes.h"
#include "ir/readers/onnx/reader.h"
#include "ir/writers/onnx/model_writer.h"
#include "tests/writers/normal_form.h"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : fs::recursive_directory_iterator(argv[i]))
      if (entry.path().extension() == ".onnx") paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::size_t equal = 0, literally = 0;
  for (const fs::path& path : paths) {
    const auto differs = [&](std::string_view why) { fmt::print("{}: {}\n", path.string(), why); };
    const auto file = tensorlint::FileBytes::open(path.string());
    if (!file) {
      differs(file.error().message);
      continue;
    }
    const auto model = tensorlint::read_onnx_bytes((*file)->bytes(), path.string());
    if (!model) {
      differs(model.error().message);
      continue;
    }
    const auto bytes = tensorlint::write_onnx(*model);
    if (!bytes) {
      differs(bytes.error().message);
      continue;
    }
    ::onnx::ModelProto original, rebuilt;
    if (!original.ParseFromArray((*file)->bytes().data(), static_cast<int>((*file)->bytes().size())) ||
        !rebuilt.ParseFromString(bytes->joined())) {
      differs("libprotobuf cannot parse it");
      continue;
    }
    if (original.SerializeAsString() == rebuilt.SerializeAsString()) ++literally;
    if (tensorlint::NormalForm::of(std::move(original)) == tensorlint::NormalForm::of(std::move(rebuilt))) {
      ++equal;
    } else {
      differs("the rebuilt model is another one");
    }
  }
  fmt::print("{} of {} models equal, {} of these without any normalisation\n", equal, paths.size(), literally);
  return equal == paths.size() ? 0 : 1;
}
