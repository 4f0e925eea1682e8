#include "ir/readers/onnx/reader.h"

#include <fmt/format.h>

#include <utility>

#include "base/file_bytes.h"
#include "base/foreign_format.h"
#include "ir/readers/onnx/model_reader.h"
#include "ir/readers/onnx/wire.h"

namespace tensorlint {
namespace {

Result<Model> read_bytes(std::string_view bytes, std::string path, std::shared_ptr<const void> owner,
                         const FileBytes* mapping, std::span<const ElementsElsewhere> elsewhere,
                         const FileBytes* weights) {
  if (bytes.empty()) return Error{fmt::format("`{}` is empty", path), {}};
  if (const std::string format = foreign_format(bytes); !format.empty())
    return Error{fmt::format("not an ONNX model: the file is {}", format), {}};
  try {
    onnx::Reader reader(bytes, std::move(path), mapping, elsewhere, weights);
    Model model = reader.read();
    if (owner != nullptr) model.storage.push_back(std::move(owner));
    return model;
  } catch (onnx::WireFault& fault) {
    return Error{fmt::format("{} (at byte {})", fault.message, fault.offset), {.offset = fault.offset}};
  }
}

}  // namespace

Result<Model> read_onnx_bytes(std::string_view bytes, std::string path, std::shared_ptr<const void> owner,
                              std::span<const ElementsElsewhere> elsewhere, const FileBytes* mapping) {
  const bool is_mapped = mapping != nullptr && mapping->bytes().data() == bytes.data();
  return read_bytes(bytes, std::move(path), std::move(owner), is_mapped ? mapping : nullptr, elsewhere, mapping);
}

Result<Model> read_onnx_file(const std::string& path) {
  Result<std::shared_ptr<const FileBytes>> file = FileBytes::open(path);
  if (!file) return file.error();
  (*file)->read_page_by_page();
  Result<Model> model = read_bytes((*file)->bytes(), path, *file, file->get(), {}, file->get());
  // Bytes that moved while they were walked explain any other fault.
  if (auto changed = (*file)->check_unchanged()) return *std::move(changed);
  return model;
}

}  // namespace tensorlint
