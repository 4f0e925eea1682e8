#pragma once

#include <string_view>

#include "base/file_bytes.h"
#include "ir/protobuf/onnx_messages.h"
#include "ir/readers/onnx/wire.h"

namespace tensorlint::onnx {

/// Throws WireFault where a packed list of the field that `fields` is at is not made of whole numbers: no parser of the
/// format takes such a message. `mapping`: of the file; null where it was read as a whole.
void check_packed(const Cursor& fields, wire::Packing packing, std::string_view packed, const FileBytes* mapping);

}  // namespace tensorlint::onnx
