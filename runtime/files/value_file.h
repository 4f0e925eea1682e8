#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/graph/model.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// A value from a file: `.pb` (onnx.TensorProto, SequenceProto or OptionalProto, by the type that is declared) or
/// `.npy` (numpy's format 1 to 3, both byte orders, both orders of axes; no objects; two opaque bytes are a bfloat16,
/// as the package ml_dtypes writes it). Errors name the file.
Result<HostValue> read_value_file(const std::string& path, const TypeDecl* declared, Memory& memory);

/// The bytes of a `.npy` file.
Result<HostTensor> read_npy(std::string_view bytes, Memory& memory);

/// Writes a value as an onnx.TensorProto, SequenceProto or OptionalProto, which read_value_file reads again.
/// `memory` counts what is written beside the elements of tensors that lie as they are written.
std::optional<Error> write_value_file(const std::string& path, const HostValue& value, std::string_view name,
                                      Memory& memory);

struct NamedValue {
  std::string_view name;
  const HostValue* value;
};
/// Writes the tensors among the values as initializers of models, values-0000.initializers and so on: any number of
/// them in few files.
std::optional<Error> write_value_models(const std::string& folder, std::span<const NamedValue> values, Memory& memory);

}  // namespace tensorlint::runtime
