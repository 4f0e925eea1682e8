#include "runtime/device/plugins/driver.h"

#include <gtest/gtest.h>

namespace tensorlint::plugins {
namespace {

TEST(CudaDriver, NoneAndOneThatIsTooOld) {
  EXPECT_EQ(unsuitable_driver(0, 13000),
            "this machine has no NVIDIA driver: install one that runs CUDA 13.0, or run with --device cpu");
  EXPECT_EQ(unsuitable_driver(12040, 13010),
            "the NVIDIA driver of this machine runs CUDA 12.4 at most: install one that runs CUDA 13.1");
}

}  // namespace
}  // namespace tensorlint::plugins
