#pragma once

#include <string_view>

#include "ir/ops/entry.h"
#include "ir/ops/inference.h"

namespace tensorlint::ops {

/// The extent of the last axis.
inline Dim last(const Inference& in, int operand) {
  const auto shape = in.shape(operand);
  return shape && !shape->empty() ? shape->back() : Dim(Unknown::kNotTracked);
}

inline OpEntry contrib(std::string_view name, InferFunction function) {
  return OpEntry(name, "com.microsoft").infer(function);
}

}  // namespace tensorlint::ops
