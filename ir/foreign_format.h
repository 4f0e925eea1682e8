#pragma once

#include <string>
#include <string_view>

namespace tensorlint {

/// What a file that is not an ONNX model holds and what to do about it, as far as its first bytes tell: "a Git LFS
/// pointer; run `git lfs pull` to fetch the file". Empty for a format that is not recognised. Looks only at formats
/// that cannot be the beginning of an onnx.ModelProto.
std::string foreign_format(std::string_view bytes);

}  // namespace tensorlint
