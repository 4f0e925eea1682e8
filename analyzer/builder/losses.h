#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/model.h"
#include "tensorlint/dtype.h"

namespace tensorlint::builder {

class LossWriter;

/// What a loss of the domain `tensorlint` computes, as a function of ONNX's operators: runtimes that do not know the
/// domain call it. One for each way in which calls of the operator differ; `overload` tells them apart.
struct LossFunction {
  std::string_view op;
  std::string overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> attributes;
  DType dtype;  ///< of the numbers in it
  std::function<ValueId(LossWriter&)> write;
};

}  // namespace tensorlint::builder
