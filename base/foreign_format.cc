#include "base/foreign_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace tensorlint {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kExportTorch = "export the model itself: torch.onnx.export(model, inputs, \"model.onnx\")";
constexpr std::string_view kConvertTensorFlow = "convert it to ONNX, for example with tf2onnx";
constexpr std::string_view kUnpack = "unpack it first";

struct Magic {
  std::string_view begin, name, advice;
};

constexpr Magic kMagics[] = {
    {"version https://git-lfs", "a Git LFS pointer", "run `git lfs pull` to fetch the file"},
    {"\x89PNG"sv, "a PNG image", ""},
    {"\xff\xd8\xff"sv, "a JPEG image", ""},
    {"\x89HDF"sv, "an HDF5 file (Keras saves such)", kConvertTensorFlow},
    {"GGUF"sv, "a GGUF file, which holds weights but no graph", "export the model itself to ONNX"},
    {"%PDF"sv, "a PDF document", ""},
    {"\x1f\x8b"sv, "a gzip archive", kUnpack},
    {"\x7f"
     "ELF"sv,
     "an ELF binary", ""},
    {"\x93NUMPY"sv, "a NumPy array", ""},
    {"<!DOCTYPE"sv, "an HTML page", "the download failed or needs a login"},
    {"<!doctype"sv, "an HTML page", "the download failed or needs a login"},
    {"<html"sv, "an HTML page", "the download failed or needs a login"},
    {"<?xml"sv, "an XML file", "pass the ONNX file that it was made from"},
    {"#!"sv, "a script", ""},
    {"\xfd"
     "7zXZ"sv,
     "an xz archive", kUnpack},
    {"\x28\xb5\x2f\xfd"sv, "a Zstandard archive", kUnpack},
    {"ftrt"sv, "a TensorRT engine", "pass the ONNX file that it was built from"},
    {"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9"sv, "a PyTorch checkpoint", kExportTorch},
    {"\x80\x02"sv, "a Python pickle (PyTorch checkpoints are such)", kExportTorch},
    {"\x80\x03"sv, "a Python pickle (PyTorch checkpoints are such)", kExportTorch},
    {"\x80\x04"sv, "a Python pickle (PyTorch checkpoints are such)", kExportTorch},
    {"\x80\x05"sv, "a Python pickle (PyTorch checkpoints are such)", kExportTorch},
    {"{\""sv, "JSON", ""},
    {"{\n"sv, "JSON", ""},
    {"<ir_version"sv, "a model in text, whose name has to end in .onnxtxt", "rename it"},
    {"ir_version:"sv, "a model in protobuf's text format", "onnx.save converts it"},
};

std::string described(std::string_view name, std::string_view advice) {
  return advice.empty() ? std::string(name) : fmt::format("{}; {}", name, advice);
}

/// A ZIP archive by the names of the first entries, which the local headers give: PyTorch writes `NAME/data.pkl`.
std::string zip_format(std::string_view bytes) {
  constexpr std::size_t kLooked = 4096;
  const std::string_view start = bytes.substr(0, kLooked);
  const auto has = [&](std::string_view name) { return start.find(name) != std::string_view::npos; };
  if (has("/data.pkl") || has("/.format_version") || has("/byteorder") || has("/constants.pkl") ||
      has("/archive_format"))
    return described("a PyTorch checkpoint", kExportTorch);
  if (has("config.json") && has("metadata.json")) return described("a Keras model", kConvertTensorFlow);
  return described("a ZIP archive", kUnpack);
}

/// Reads the few protobuf fields that tell TensorFlow's files and single tensors from a model. In a ModelProto field 1
/// is a number and field 2 is text.
class Prefix {
 public:
  explicit Prefix(std::string_view bytes) : bytes_(bytes) {}

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 63 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  bool take(char tag) {
    if (!bytes_.starts_with(tag)) return false;
    bytes_.remove_prefix(1);
    return true;
  }
  /// The bytes of a field with a length; cut where the file ends.
  std::optional<std::string_view> text() {
    const auto length = varint();
    if (!length) return std::nullopt;
    const std::string_view found = bytes_.substr(0, static_cast<std::size_t>(*length));
    bytes_.remove_prefix(found.size());
    return found;
  }

 private:
  std::string_view bytes_;
};

bool is_printable(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20 && c < 0x7f; });
}

/// tensorflow.GraphDef: nodes, each with a name and an operator.
bool is_graph_def(std::string_view bytes) {
  Prefix file(bytes);
  if (!file.take('\x0a')) return false;
  const auto node = file.text();
  if (!node) return false;
  Prefix fields(*node);
  if (!fields.take('\x0a')) return false;
  const auto name = fields.text();
  return name && is_printable(*name) && fields.take('\x12');
}

/// tensorflow.SavedModel: version 1 of its schema, and a graph that begins with tags and versions.
bool is_saved_model(std::string_view bytes) {
  if (!bytes.starts_with("\x08\x01\x12"sv)) return false;
  Prefix file(bytes.substr(3));
  const auto graph = file.text();
  return graph && graph->starts_with('\x0a') && graph->size() > 64;
}

/// onnx.TensorProto: dims and an element type, as the test data of a model.
bool is_tensor_proto(std::string_view bytes) {
  Prefix file(bytes);
  while (file.take('\x08'))
    if (!file.varint()) return false;
  if (!file.take('\x10')) return false;
  const auto dtype = file.varint();
  return dtype && *dtype > 0 && *dtype < 64;
}

}  // namespace

std::string foreign_name(std::string_view path) {
  struct Extension {
    std::string_view extension, name, advice;
  };
  static constexpr Extension kExtensions[] = {
      {".pt", "PyTorch checkpoint", kExportTorch},
      {".pth", "PyTorch checkpoint", kExportTorch},
      {".pt2", "PyTorch program", kExportTorch},
      {".ckpt", "checkpoint", kExportTorch},
      {".safetensors", "file of weights", kExportTorch},
      {".pb", "TensorFlow graph", kConvertTensorFlow},
      {".tflite", "TensorFlow Lite model", kConvertTensorFlow},
      {".h5", "Keras model", kConvertTensorFlow},
      {".keras", "Keras model", kConvertTensorFlow},
  };
  for (const Extension& known : kExtensions)
    if (path.ends_with(known.extension))
      return fmt::format("a {} file is usually a {}; {}", known.extension, known.name, known.advice);
  return {};
}

std::string foreign_format(std::string_view bytes) {
  if (bytes.starts_with("PK\x03\x04"sv)) return zip_format(bytes);
  for (const Magic& magic : kMagics)
    if (bytes.starts_with(magic.begin)) return described(magic.name, magic.advice);
  // After a number that is small: where a FlatBuffer begins, how long a header is. No protobuf has a field 0.
  const auto has_zeros = [&](std::size_t from, std::size_t count) {
    return bytes.substr(from, count).find_first_not_of('\0') == std::string_view::npos;
  };
  if (bytes.size() >= 8 && has_zeros(1, 3)) {
    if (bytes.substr(4, 4) == "ORTM")
      return described("a model in ONNX Runtime's own format", "pass the ONNX file that it was made from");
    if (bytes.substr(4, 4) == "TFL3") return described("a TensorFlow Lite model", kConvertTensorFlow);
  }
  if (bytes.size() >= 10 && has_zeros(4, 4) && bytes.substr(8, 2) == "{\"")
    return described("a safetensors file, which holds weights but no graph", kExportTorch);
  if (is_graph_def(bytes) || is_saved_model(bytes)) return described("a TensorFlow graph", kConvertTensorFlow);
  if (is_tensor_proto(bytes)) return described("a single tensor (onnx.TensorProto)", "pass the model that it is for");
  return {};
}

}  // namespace tensorlint
