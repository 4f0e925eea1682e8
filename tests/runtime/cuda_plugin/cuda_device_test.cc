// CUDA's plug-in over a runtime that works on the host: what it does where calls of CUDA fail, and when it touches the
// host's memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
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

TEST_F(CudaPlugin, CopiesReadTheHostAtOnceAndWriteItBeforeItHasWaited) {
  // Of no bytes, of some, of several pieces, and more than there is room for.
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{100}, 2 * Staging::kPiece + 12, 2 * Staging::kBytes + 4}) {
    for (unsigned seed = 1; seed <= (bytes < Staging::kPiece ? 8U : 2U); ++seed) {
      cuda().random.seed(seed);
      std::vector<unsigned char> from(bytes), expected(bytes), to(bytes, 0);
      for (std::size_t i = 0; i < bytes; ++i)
        expected[i] = from[i] = static_cast<unsigned char>(i * 7 + seed + i / 1000);
      void* const block = table_.allocate(device_, bytes);
      ASSERT_EQ(table_.make_events(device_, 2), 0);
      ASSERT_EQ(table_.copy_in(device_, block, from.data(), bytes), 0);
      std::fill(from.begin(), from.end(), 1);  // the host's again
      ASSERT_EQ(table_.record(device_, kTensorlintCopiesIn, 0), 0);
      ASSERT_EQ(table_.wait(device_, kTensorlintCopiesOut, 0), 0);
      ASSERT_EQ(table_.copy_out(device_, to.data(), block, bytes), 0);
      ASSERT_EQ(table_.record(device_, kTensorlintCopiesOut, 0), 0);
      // The host waits for another stream, which waits for the copy.
      ASSERT_EQ(table_.wait(device_, kTensorlintKernels, 0), 0);
      ASSERT_EQ(table_.record(device_, kTensorlintKernels, 1), 0);
      ASSERT_EQ(seed % 2 == 0 ? table_.synchronize(device_) : table_.host_wait(device_, 1), 0);
      EXPECT_TRUE(to == expected) << bytes << " " << seed;
      ASSERT_EQ(table_.synchronize(device_), 0);
      table_.release(device_, block);
    }
  }
  EXPECT_EQ(table_.counts(device_).copies_in, 20U);  // of whatever pieces
}

TEST_F(CudaPlugin, ManySmallCopies) {
  std::vector<std::uint64_t> from(3 * Staging::kMostCopies), to(from.size());
  auto* const block = static_cast<std::uint64_t*>(table_.allocate(device_, from.size() * 8));
  ASSERT_EQ(table_.make_events(device_, 1), 0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = i * i + 1;
    ASSERT_EQ(table_.copy_in(device_, block + i, &from[i], 8), 0);
    ASSERT_EQ(table_.record(device_, kTensorlintCopiesIn, 0), 0);
    ASSERT_EQ(table_.wait(device_, kTensorlintCopiesOut, 0), 0);
    ASSERT_EQ(table_.copy_out(device_, &to[i], block + i, 8), 0);
  }
  EXPECT_LE(cuda().events, 1 + 2 * Staging::kMostCopies);
  ASSERT_EQ(table_.synchronize(device_), 0);
  EXPECT_EQ(to, from);
  table_.release(device_, block);
}

TEST_F(CudaPlugin, NothingIsWrittenToTheHostAfterAnError) {
  void* const block = table_.allocate(device_, 64);
  for (const char* const function :
       {"cudaHostAlloc", "cudaMemcpyAsync", "cudaEventCreateWithFlags", "cudaEventRecord", "cudaStreamSynchronize"}) {
    std::vector<unsigned char> to(64, 0);
    fail(function, cudaErrorIllegalAddress);
    const int copied = table_.copy_out(device_, to.data(), block, 64);
    const int waited = table_.synchronize(device_);
    EXPECT_TRUE((copied != 0) != (waited != 0)) << function;
    EXPECT_EQ(table_.failed_step(device_), copied != 0 ? kTensorlintNoStep : kTensorlintUnknownStep);
    EXPECT_EQ(table_.synchronize(device_), 0);
    EXPECT_TRUE(is_idle());
    EXPECT_EQ(to, std::vector<unsigned char>(64, 0)) << function;  // given up
  }
  std::vector<unsigned char> to(64, 0);
  ASSERT_EQ(table_.copy_out(device_, to.data(), block, 64), 0);
  ASSERT_EQ(table_.synchronize(device_), 0);
  EXPECT_EQ(to, std::vector<unsigned char>(64, 0xa7));
  table_.release(device_, block);
}

/// All that a table calls throws.
struct ThrowingDevice {
  PluginState state;

  static ThrowingDevice* open(int index, std::uint64_t, std::string&) {
    return index == 0 ? new ThrowingDevice : throw std::bad_alloc();
  }
  static bool is_of_earlier_work(int) { return false; }
  void* allocate(std::size_t) { throw std::bad_alloc(); }
  void release(void*) { throw std::bad_alloc(); }
  void* begin_value(void*, std::uint64_t, std::size_t) { throw std::bad_alloc(); }
  void end_value(void*) { throw std::bad_alloc(); }
  std::size_t workspace_bytes() const { return 0; }
  void* workspace(std::size_t) { throw std::bad_alloc(); }
  void* library_workspace(std::size_t) { throw std::bad_alloc(); }
  int copy_in(void*, const void*, std::size_t) { throw std::bad_alloc(); }
  int copy_out(void*, const void*, std::size_t) { throw std::bad_alloc(); }
  int synchronize() { throw std::length_error("too long"); }
  int make_events(std::uint32_t) { throw std::bad_alloc(); }
  int record(tensorlint_stream, std::uint32_t) { throw std::bad_alloc(); }
  int wait(tensorlint_stream, std::uint32_t) { throw std::bad_alloc(); }
  int host_wait(std::uint32_t) { throw std::bad_alloc(); }
  int load_cublaslt(const char*, bool) { throw std::bad_alloc(); }
  std::uint64_t shared_bytes() const { return 0; }
  template <typename Launch>
  int launch(const KernelOperands&, const Launch&) {
    throw std::bad_alloc();
  }
};

/// Zeros that the emulated kernels reach.
struct Reachable {
  explicit Reachable(std::size_t size)
      : data(new std::max_align_t[size / sizeof(std::max_align_t) + 1]()), bytes(size) {
    kernels::emulator::register_buffer(data.get(), bytes, 4, kernels::emulator::Access::kUntracked, "memory");
  }
  Reachable& operator=(Reachable&& other) noexcept {
    std::swap(data, other.data);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~Reachable() { kernels::emulator::unregister_buffer(data.get()); }

  std::unique_ptr<std::max_align_t[]> data;
  std::size_t bytes;
};

/// Launches on the host, and notes the workspaces that are asked for.
struct HostDevice : ThrowingDevice {
  Reachable memory{0};
  std::vector<std::size_t> asked;
  std::vector<std::size_t> operand_bytes;

  static HostDevice* open(int, std::uint64_t, std::string&) { return new HostDevice; }
  std::size_t workspace_bytes() const { return memory.bytes; }
  void* workspace(std::size_t bytes) {
    asked.push_back(bytes);
    if (bytes > memory.bytes) memory = Reachable(bytes);
    return memory.data.get();
  }
  template <typename Launch>
  int launch(const KernelOperands& operands, const Launch& launch) {
    operand_bytes.clear();
    for (const KernelOperand& operand : operands) operand_bytes.push_back(operand.element_bytes);
    return launch(*this, nullptr);
  }
};

TEST(PluginTables, AskHowLargeAWorkspaceHasToBeWhereItIsTooSmall) {
  using Table = PluginTable<HostDevice>;
  const tensorlint_device_table_v1 table = Table::table();
  tensorlint_device* const device = table.open(0, 0, nullptr, 0);
  HostDevice& host = *Table::self(device);
  const auto sum = [&](std::int64_t count) {
    const Reachable numbers(static_cast<std::size_t>(count) * sizeof(float)), result(sizeof(float));
    std::fill_n(reinterpret_cast<float*>(numbers.data.get()), count, 0.5F);
    const int axis = 0;
    kernels::Reduction request;
    request.extents = &count;
    request.rank = 1;
    request.axes = &axis;
    request.axis_count = 1;
    kernels::emulator::clear_report();
    EXPECT_EQ(table.reduce(device, &request, numbers.data.get(), result.data.get()), 0) << table.error(device);
    EXPECT_EQ(*reinterpret_cast<const float*>(result.data.get()), static_cast<float>(count) / 2);
    EXPECT_TRUE(kernels::emulator::report().clean()) << kernels::emulator::report().first;
  };
  sum(1 << 18);
  ASSERT_EQ(host.asked.size(), 1U);  // none was there
  sum(1 << 18);
  ASSERT_EQ(host.asked.size(), 2U);
  EXPECT_EQ(host.asked[1], host.workspace_bytes());  // that one, without a question
  host.memory = Reachable(kernels::kTicketBytes);
  sum(1 << 18);
  ASSERT_EQ(host.asked.size(), 4U);  // it was too small
  EXPECT_EQ(host.asked[3], host.asked[0]);
  EXPECT_EQ(host.operand_bytes, (std::vector<std::size_t>{1, 4}));
  EXPECT_EQ(table.counts(device).launches, 3U);
  table.close(device);
}

TEST(PluginTables, LetNoExceptionPass) {
  const tensorlint_device_table_v1 table = PluginTable<ThrowingDevice>::table();
  char error[8];
  EXPECT_EQ(table.open(1, 0, error, sizeof error), nullptr);
  EXPECT_STREQ(error, "no memo");
  tensorlint_device* const device = table.open(0, 0, error, sizeof error);
  const auto said = [&] { return std::string(table.error(device)); };
  EXPECT_EQ(table.allocate(device, 1), nullptr);
  EXPECT_EQ(said(), "out of memory");
  table.release(device, nullptr);
  EXPECT_EQ(table.begin_value(device, nullptr, 0, 1), nullptr);
  table.end_value(device, nullptr);
  EXPECT_NE(table.copy_in(device, nullptr, nullptr, 1), 0);
  EXPECT_NE(table.copy_out(device, nullptr, nullptr, 1), 0);
  EXPECT_NE(table.synchronize(device), 0);
  EXPECT_EQ(said(), "an exception in the plug-in");
  EXPECT_NE(table.make_events(device, 1), 0);
  EXPECT_NE(table.record(device, kTensorlintKernels, 0), 0);
  EXPECT_NE(table.wait(device, kTensorlintKernels, 0), 0);
  EXPECT_NE(table.host_wait(device, 0), 0);
  EXPECT_NE(table.load_cublaslt(device, "", 0), 0);
  const kernels::Softmax softmax{};
  EXPECT_NE(table.softmax(device, &softmax), 0);
  EXPECT_EQ(said(), "out of memory");
  // What is reported next is its own fault.
  const kernels::MatrixProduct product{};
  EXPECT_NE(table.cublaslt_product(device, &product), 0);
  EXPECT_EQ(said(), "cublaslt_product: cublasLt is not loaded");
  table.close(device);
}

}  // namespace
}  // namespace tensorlint::plugins
