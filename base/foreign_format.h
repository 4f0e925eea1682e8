#pragma once

#include <string>
#include <string_view>

namespace tensorlint {

/// What a file that is not an ONNX model holds and what to do about it, as far as its first bytes tell: "a Git LFS
/// pointer; run `git lfs pull` to fetch the file". Empty for a format that is not recognised. Looks only at formats
/// that cannot be the beginning of an onnx.ModelProto.
std::string foreign_format(std::string_view bytes);

/// The same by a file's name, for what its bytes do not tell: "a .pt file is usually a PyTorch checkpoint; ...". Empty
/// for other names.
std::string foreign_name(std::string_view path);

}  // namespace tensorlint
