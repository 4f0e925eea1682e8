// CUDA's plug-in over a runtime that works on the host: what it does where calls of CUDA fail, and when it touches the
// host's memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/device/plugins/cuda.cu"

namespace tensorlint::plugins {
namespace {

class CudaPlugin : public ::testing::Test {
 protected:
  void SetUp() override {
    cuda() = {};
    std::array<char, 256> error{};
    device_ = table_.open(0, std::uint64_t{1} << 30, error.data(), error.size());
    ASSERT_NE(device_, nullptr) << error.data();
  }
  void TearDown() override {
    table_.close(device_);
    EXPECT_EQ(cuda().device_memory.size(), 0U);
    EXPECT_EQ(cuda().pinned_memory.size(), 0U);
    EXPECT_EQ(cuda().streams.size(), 0U);
    EXPECT_EQ(cuda().events, 0U);
  }

  static cuda_stand_in::Runtime& cuda() { return cuda_stand_in::runtime(); }
  /// The next call of that function.
  static void fail(const char* function, cudaError_t error = cudaErrorInvalidValue) {
    cuda().failing[function] = {0, error};
  }
  static bool is_idle() {
    for (const cudaStream_t stream : cuda().streams)
      if (!stream->work.empty()) return false;
    return true;
  }
  std::string error() { return table_.error(device_); }

  /// The sum of `count` numbers, through a workspace that all blocks share.
  int sum(const float* numbers, std::int64_t count, float* result) {
    const int axis = 0;
    kernels::Reduction request;
    request.extents = &count;
    request.rank = 1;
    request.axes = &axis;
    request.axis_count = 1;
    return table_.reduce(device_, &request, numbers, result);
  }

  const tensorlint_device_table_v1 table_ = *tensorlint_device_v1();
  tensorlint_device* device_ = nullptr;
};

TEST_F(CudaPlugin, SynchronizeWaitsForEveryStreamWhateverFails) {
  std::vector<float> from(16, 1), to(16);
  void* const block = table_.allocate(device_, 64);
  for (const char* const function : {"cudaSetDevice", "cudaStreamSynchronize"}) {
    ASSERT_EQ(table_.copy_in(device_, block, from.data(), 64), 0);
    ASSERT_EQ(table_.copy_out(device_, to.data(), block, 64), 0);
    fail(function);
    EXPECT_NE(table_.synchronize(device_), 0);
    if (std::string(function) == "cudaSetDevice") {
      EXPECT_TRUE(is_idle());
    }
    EXPECT_EQ(table_.synchronize(device_), 0);
    EXPECT_TRUE(is_idle());
  }
  table_.release(device_, block);
}

TEST_F(CudaPlugin, AWorkspaceIsZeroedBeforeItIsUsed) {
  constexpr std::int64_t kCount = 1 << 20;
  auto* const numbers = static_cast<float*>(table_.allocate(device_, kCount * sizeof(float)));
  auto* const result = static_cast<float*>(table_.allocate(device_, sizeof(float)));
  std::fill(numbers, numbers + kCount, 0.5F);
  for (const char* const function : {"cudaMemsetAsync", "cudaMalloc"}) {
    fail(function);
    EXPECT_NE(sum(numbers, kCount, result), 0) << function;
    EXPECT_TRUE(error().starts_with("workspace: ")) << error();
  }
  ASSERT_EQ(sum(numbers, kCount, result), 0) << error();
  EXPECT_EQ(*result, kCount / 2);
  table_.release(device_, numbers);
  table_.release(device_, result);
}

TEST_F(CudaPlugin, ValuesBeginWhereTheEmulatorLetsThem) {
  void* const block = table_.allocate(device_, 256);
  EXPECT_EQ(table_.begin_value(device_, block, 240, 32), nullptr);
  EXPECT_EQ(table_.begin_value(device_, block, 8, 16), nullptr);
  EXPECT_EQ(error(), "begin_value: the value lies outside of its block, or is not aligned");
  void* const value = table_.begin_value(device_, block, 16, 16);
  EXPECT_NE(value, nullptr);
  EXPECT_EQ(table_.counts(device_).live_values, 1U);
  table_.end_value(device_, value);
  table_.end_value(device_, value);  // has ended
  EXPECT_EQ(table_.counts(device_).live_values, 0U);
  table_.release(device_, block);
}

TEST_F(CudaPlugin, ErrorsOfEarlierWorkAreKnownAsSuch) {
  float data = 1;
  void* const block = table_.allocate(device_, 64);
  fail("cudaMemcpyAsync", cudaErrorIllegalAddress);
  EXPECT_NE(table_.copy_in(device_, block, &data, 4), 0);
  EXPECT_EQ(error(), "copy_in: an illegal memory access was encountered");
  EXPECT_EQ(table_.failed_step(device_), kTensorlintUnknownStep);
  fail("cudaMemcpyAsync");
  EXPECT_NE(table_.copy_in(device_, block, &data, 4), 0);
  EXPECT_EQ(table_.failed_step(device_), kTensorlintNoStep);
  table_.release(device_, block);
}

}  // namespace
}  // namespace tensorlint::plugins
