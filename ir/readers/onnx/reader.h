#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file_bytes.h"
#include "base/result.h"
#include "ir/graph/model.h"

namespace tensorlint {

/// Reads a binary ONNX model (onnx.ModelProto, IR version 3 and later). Names and tensor bytes are views into the
/// file's bytes, which the model keeps alive; weights are not touched.
///
/// Errors, one per file and with the byte offset in message and position: the file cannot be opened or is not a regular
/// one, is empty, changed while being read; bytes that are no model or malformed anywhere on the way (the whole file
/// must be consumed); graphs nested deeper than 64, types deeper than 16; so many tiny messages that the model would
/// take more than 16 MiB + 36 bytes per byte of the file that is not weights. What is wrong within a well-formed file
/// (tensors, types, attributes, names) becomes Model::faults instead.
///
/// Not decoded: training_info, quantization annotations, documentation strings; device configurations of nodes only
/// when Provenance is asked for them.
Result<Model> read_onnx_file(const std::string& path);

/// The same from memory. `bytes` is not copied: `owner` (may be null for static bytes) is kept by the model.
/// `path` names the model in messages and is where external data is looked for.
///
/// `elsewhere`: elements of tensors that `bytes` has room for but does not hold, sorted by their place there; the model
/// reads them where they are. `mapping`: the file that they lie in, whose pages are let go of once they have been read;
/// null: in memory.
struct ElementsElsewhere {
  const char* place;          ///< in `bytes`
  std::string_view elements;  ///< as many bytes
};
Result<Model> read_onnx_bytes(std::string_view bytes, std::string path, std::shared_ptr<const void> owner = nullptr,
                              std::span<const ElementsElsewhere> elsewhere = {}, const FileBytes* mapping = nullptr);

}  // namespace tensorlint
