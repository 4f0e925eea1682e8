#pragma once

#include <cstdint>

#include "ir/readers/onnx/wire.h"

namespace tensorlint::onnx {

/// Messages of onnx.proto (IR version 14) that have others in them, or stand in others; those without any are kPlain.
enum class WireMessage : std::uint8_t {
  kPlain,
  kTrainingInfo,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparseTensor,
  kValueInfo,
  kType,
  kTypeOfTensor,
  kTypeOfElements,
  kTypeOfMap,
  kShape,
  kAnnotation,
  kDeviceConfiguration,
  kShardingSpec,
  kShardedDim,
};

/// Passes over a message that nothing is read from, and over those in it. Throws WireFault where one of them does not
/// parse, or where they nest deeper than the reader follows graphs.
void pass_over(Cursor fields, WireMessage message);

}  // namespace tensorlint::onnx
