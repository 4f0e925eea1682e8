#pragma once

// What the judge reads of a model that a builder writes.

#include <gtest/gtest.h>

#include "onnx.pb.h"
#include "tensorlint/builder.h"

namespace tensorlint::builder {

inline ::onnx::ModelProto parsed(const Builder& builder) {
  ::onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(builder.serialized()));
  return model;
}

}  // namespace tensorlint::builder
