#include "ir/readers/onnx/reader.h"

#include <fmt/format.h>

#include <utility>

#include "ir/readers/onnx/file_bytes.h"
#include "ir/readers/onnx/model_reader.h"
#include "ir/readers/onnx/wire.h"

namespace tensorlint {
namespace {

/// What a file that is no model begins with, where people are likely to pass one.
std::string_view known_format(std::string_view bytes) {
  struct Magic {
    std::string_view begin;
    std::string_view name;
  };
  using namespace std::string_view_literals;
  static constexpr Magic kMagic[] = {
      {"version https://git-lfs"sv, "a Git LFS pointer, whose file was not fetched"},
      {"\x89PNG"sv, "a PNG image"},
      {"\xff\xd8\xff"sv, "a JPEG image"},
      {"PK\x03\x04"sv, "a ZIP archive (PyTorch checkpoints are such)"},
      {"\x89HDF"sv, "an HDF5 file"},
      {"GGUF"sv, "a GGUF file"},
      {"%PDF"sv, "a PDF document"},
      {"\x1f\x8b"sv, "a gzip archive"},
      {"\x7f"
       "ELF"sv,
       "an ELF binary"},
      {"\x93NUMPY"sv, "a NumPy array"},
      {"<!DOCTYPE"sv, "an HTML page"},
      {"<html"sv, "an HTML page"},
      {"#!"sv, "a script"},
      {"\xfd"
       "7zXZ"sv,
       "an xz archive"},
      {"\x28\xb5\x2f\xfd"sv, "a Zstandard archive"},
      {"{\""sv, "JSON"},
      {"{\n"sv, "JSON"},
      {"<ir_version"sv, "a model in text, whose name has to end in .onnxtxt"},
      {"ir_version:"sv, "a model in protobuf's text format, which onnx.save can convert"},
  };
  for (const Magic& magic : kMagic)
    if (bytes.starts_with(magic.begin)) return magic.name;
  // Behind a number that is small: where a FlatBuffer begins, how long a header is. No protobuf has a field 0.
  const auto has_zeros = [&](std::size_t from, std::size_t count) {
    return bytes.substr(from, count).find_first_not_of('\0') == std::string_view::npos;
  };
  if (bytes.size() >= 8 && has_zeros(1, 3)) {
    if (bytes.substr(4, 4) == "ORTM") return "a model in ONNX Runtime's own format, made of an ONNX file";
    if (bytes.substr(4, 4) == "TFL3") return "a TensorFlow Lite model";
  }
  if (bytes.size() >= 10 && has_zeros(4, 4) && bytes.substr(8, 2) == "{\"") return "a safetensors file";
  return {};
}

Result<Model> read_bytes(std::string_view bytes, std::string path, std::shared_ptr<const void> owner,
                         const onnx::FileBytes* mapping) {
  if (bytes.empty()) return Error{fmt::format("`{}` is empty", path), {}};
  if (const std::string_view format = known_format(bytes); !format.empty())
    return Error{fmt::format("not an ONNX model: the file is {}", format), {}};
  try {
    onnx::Reader reader(bytes, std::move(path), mapping);
    Model model = reader.read();
    if (owner != nullptr) model.storage.push_back(std::move(owner));
    return model;
  } catch (onnx::WireFault& fault) {
    return Error{fmt::format("{} (at byte {})", fault.message, fault.offset), {.offset = fault.offset}};
  }
}

}  // namespace

Result<Model> read_onnx_bytes(std::string_view bytes, std::string path, std::shared_ptr<const void> owner) {
  return read_bytes(bytes, std::move(path), std::move(owner), nullptr);
}

Result<Model> read_onnx_file(const std::string& path) {
  Result<std::shared_ptr<const onnx::FileBytes>> file = onnx::FileBytes::open(path);
  if (!file) return file.error();
  Result<Model> model = read_bytes((*file)->bytes(), path, *file, file->get());
  // Bytes that moved while they were walked explain any other fault.
  if (auto changed = (*file)->check_unchanged()) return *std::move(changed);
  return model;
}

}  // namespace tensorlint
