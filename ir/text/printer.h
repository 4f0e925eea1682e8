#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "base/output.h"
#include "ir/graph/model.h"

namespace tensorlint {

struct TextOptions {
  /// Elements shown of a constant; of a longer one as many, then `...`, which makes a text for people only.
  std::size_t max_elements = std::numeric_limits<std::size_t>::max();
};

/// The model in the syntax that read_onnx_text() reads. Reading it back gives a model with the same text.
/// What the syntax has no place for is left out, as is what Model does not hold; but a `tensorlint.device` tag on a
/// node, input or initializer becomes the model's metadata `tensorlint.device:NAME`, unless that key is there.
/// Constants that do not fit their dims print the elements that they have.
std::string to_text(const Model& model, const TextOptions& options = {});
/// The same piece by piece: the bodies of a binary model, indented, may take ten times its memory.
void to_text(const Model& model, const TextOptions& options, const TextSink& out);

}  // namespace tensorlint
