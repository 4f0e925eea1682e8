#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "ir/text/reader.h"

namespace tensorlint::runtime {

inline constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

/// A model of this graph, in opset 18.
inline Model read_graph(std::string_view graph) {
  Result<Model> model =
      read_onnx_text("<ir_version: 10, opset_import: [\"\": 18]>\n" + std::string(graph), "m.onnxtxt");
  if (!model) ADD_FAILURE() << model.error().message;
  return *std::move(model);
}

}  // namespace tensorlint::runtime
