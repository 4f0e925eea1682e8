#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "base/file_bytes.h"
#include "ir/protobuf/onnx_messages.h"
#include "ir/readers/onnx/wire.h"

namespace tensorlint::onnx {

/// Passes over a message that nothing is read from, and over those in it: how many they are. `mapping`: as of
/// WeightParts. `numbers`: gets those of tensors in them, piece by piece. Throws WireFault where
/// one of them does not parse, or where they nest deeper than the reader follows graphs.
std::size_t pass_over(Cursor fields, wire::MessageType message, const FileBytes* mapping,
                      const std::function<void(std::string_view)>& numbers = {});

}  // namespace tensorlint::onnx
