// Products by cublasLt, of which a stand-in is loaded: what a product is for it, what stays with our kernels and why,
// and what happens where a call of it fails.
#include <dlfcn.h>

#include <filesystem>
#include <set>

#include "tests/runtime/cublas_lt_stand_in.h"
#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

std::string beside_the_test(const char* file) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / file;
}

class CublasLtProducts : public Executing {
 protected:
  void SetUp() override {
    Executing::SetUp();
    if (device_ == nullptr) return;
    if (!is_emulated()) {
      // The system's own, of which nothing is counted.
      if (const auto missing = device_->load_cublaslt("", false)) GTEST_SKIP() << missing->message;
      with_cublaslt_ = true;
      return;
    }
    const auto failed = device_->load_cublaslt(library_, false);
    ASSERT_FALSE(failed) << failed->message;
    with_cublaslt_ = true;
    void* const loaded = ::dlopen(library_.c_str(), RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(loaded, nullptr);
    find(counts_, loaded, "stand_in_counts");
    find(complaint_, loaded, "stand_in_complaint");
    find(fail_at_, loaded, "stand_in_fail_at");
    find(find_none_, loaded, "stand_in_find_no_algorithm");
    before_ = counts_();
  }

  void TearDown() override {
    if (device_ == nullptr || !is_emulated()) return;
    EXPECT_STREQ(complaint_(), "");
    device_.reset();
    EXPECT_EQ(counts_().live, 0);
  }

  template <typename Function>
  static void find(Function*& function, void* library, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    ASSERT_NE(function, nullptr) << name;
  }

  std::string matmul(std::string_view a, std::string_view b, std::string_view dtype = "float",
                     double tolerance = 1e-5) {
    return place_of_call("MatMul", a, b, dtype, tolerance);
  }
  std::string gemm(std::string_view attributes, std::string_view a, std::string_view b, std::string_view c,
                   std::string_view dtype = "float") {
    return places(fmt::format("g ({4}[{0}] a, {4}[{1}] b, {4}[{2}] c) => (y) {{ y = Gemm <{3}> (a, b, c) }}", a, b, c,
                              attributes, dtype),
                  1e-5)
        .at("y");
  }
  void expect_products(std::uint64_t products) const {
    if (is_emulated()) {
      EXPECT_EQ(counts_().products - before_.products, products);
    }
  }

  const std::string library_ = beside_the_test("libcublaslt_stand_in.so");
  StandInCounts (*counts_)() = nullptr;
  const char* (*complaint_)() = nullptr;
  void (*fail_at_)(std::uint64_t) = nullptr;
  void (*find_none_)(int) = nullptr;
  StandInCounts before_{};
};

constexpr std::string_view kProduct = "matrix_product, by cublasLt";
constexpr std::string_view kAdding = "matrix_product, addend, by cublasLt";

TEST_F(CublasLtProducts, MatMulOfAllRanks) {
  EXPECT_EQ(matmul("5, 7", "7, 3"), kProduct);
  EXPECT_EQ(matmul("7", "7, 3"), kProduct);
  EXPECT_EQ(matmul("5, 7", "7"), kProduct);
  EXPECT_EQ(matmul("7", "7"), kProduct);
  EXPECT_EQ(matmul("1, 1", "1, 9"), kProduct);
  EXPECT_EQ(matmul("2, 5, 7", "7, 3"), kProduct);           // one matrix of ten rows
  EXPECT_EQ(matmul("5, 7", "2, 7, 3"), kProduct);           // the first one repeats
  EXPECT_EQ(matmul("2, 3, 5, 7", "2, 3, 7, 4"), kProduct);  // two axes that are one
  EXPECT_EQ(matmul("2, 3, 4, 7", "7"), kProduct);
  expect_products(9);
}

TEST_F(CublasLtProducts, Dtypes) {
  EXPECT_EQ(matmul("2, 5, 7", "2, 7, 3", "double", 1e-13), kProduct);
  EXPECT_EQ(matmul("2, 5, 7", "2, 7, 3", "float16", 2e-3), kProduct);
  EXPECT_EQ(matmul("2, 5, 7", "2, 7, 3", "bfloat16", 2e-2), kProduct);
  expect_products(3);
  if (is_emulated()) {
    EXPECT_EQ(counts_().tf32, before_.tf32);
  }
}

TEST_F(CublasLtProducts, TransposesAndWhatIsAdded) {
  for (const std::string_view a : {"transA = 0", "transA = 1"})
    for (const std::string_view b : {"transB = 0", "transB = 1"}) {
      const std::string_view left = a.ends_with('1') ? "7, 5" : "5, 7", right = b.ends_with('1') ? "3, 7" : "7, 3";
      for (const std::string_view added : {"5, 3", "3", "1, 3"})
        EXPECT_EQ(gemm(fmt::format("{}, {}, alpha = 0.5", a, b), left, right, added), kAdding) << a << b << added;
    }
  EXPECT_EQ(gemm("alpha = 2.0, beta = 0.25", "5, 7", "7, 3", "5, 3"), kAdding);
  EXPECT_EQ(gemm("beta = 0.0", "5, 7", "7, 3", "5, 1"), kAdding);  // not read
  EXPECT_EQ(gemm("beta = 2.0", "1, 7", "7, 3", "3"), kAdding);     // a matrix of one row
  EXPECT_EQ(gemm("beta = 2.0", "5, 7", "7, 1", "5, 1"), kAdding);  // and of one column
  EXPECT_EQ(gemm("beta = 2.0", "5, 7", "7, 3", "5, 3", "double"), kAdding);
  expect_products(17);
}

TEST_F(CublasLtProducts, StridesOfEinsum) {
  const auto of = [&](std::string_view equation, std::string_view a, std::string_view b) {
    return place_of_einsum(equation, a, b);
  };
  EXPECT_EQ(of("bqhd,bkhd->bhqk", "1, 5, 3, 8", "1, 7, 3, 8"), kProduct);  // heads lie within rows
  EXPECT_EQ(of("ik,jk->ij", "5, 7", "3, 7"), kProduct);
  EXPECT_EQ(of("ki,kj->ji", "7, 5", "7, 3"), kProduct);
  EXPECT_EQ(of("bqhd,bkhd->bhqk", "2, 5, 3, 8", "2, 7, 3, 8"),
            "matrix_product, not by cublasLt because its matrices lie along several axes that are no single one");
  EXPECT_EQ(of("ihk,kj->hij", "5, 2, 7", "7, 3"), kProduct);
  expect_products(4);
}

TEST_F(CublasLtProducts, WhatOurKernelsKeep) {
  EXPECT_EQ(matmul("0, 7", "7, 3"), "matrix_product, not by cublasLt because it is empty");
  EXPECT_EQ(matmul("5, 0", "0, 3"), "matrix_product, not by cublasLt because it is empty");
  EXPECT_EQ(matmul("2, 1, 5, 7", "3, 7, 4"),
            "matrix_product, not by cublasLt because its matrices lie along several axes that are no single one");
  EXPECT_EQ(gemm("alpha = 0.0", "5, 7", "7, 3", "3"),
            "matrix_product, addend, not by cublasLt because its factor is 0");
  EXPECT_EQ(gemm("beta = 2.0", "5, 7", "7, 3", "3"),
            "matrix_product, addend, not by cublasLt because the row that it adds is scaled");
  EXPECT_EQ(gemm("beta = 1.0", "5, 7", "7, 3", "3", "double"),
            "matrix_product, addend, not by cublasLt because it adds a row of float64");
  EXPECT_EQ(gemm("beta = 1.0", "5, 7", "7, 3", "5, 1"),
            "matrix_product, addend, not by cublasLt because what it adds is neither a matrix that lies row by row nor "
            "one row");
  expect_products(0);
}

TEST_F(CublasLtProducts, AnAlgorithmIsChosenOnceForAShape) {
  if (!is_emulated()) GTEST_SKIP();
  const auto heuristics = [&] { return counts_().heuristics - before_.heuristics; };
  const std::string layers =
      "g (float[5, 7] x, float[7, 7] v, float[7, 7] w, float[7] b, float[7] c) => (y) {\n"
      " h = Gemm (x, v, b)\n i = Gemm (h, w, c)\n y = MatMul (i, w)\n}";
  (void)places(layers, 1e-5);
  EXPECT_EQ(heuristics(), 2U);  // both layers, whose biases differ, are one shape
  expect_products(3);
  (void)places(layers, 1e-5);
  EXPECT_EQ(heuristics(), 2U);
  expect_products(6);
  EXPECT_EQ(matmul("6, 7", "7, 7"), kProduct);
  EXPECT_EQ(heuristics(), 3U);
}

TEST_F(CublasLtProducts, Tf32IsOfFloat32Alone) {
  if (!is_emulated()) GTEST_SKIP();
  const auto failed = device_->load_cublaslt(library_, true);
  ASSERT_FALSE(failed) << failed->message;
  EXPECT_EQ(matmul("5, 7", "7, 3", "float", 1e-2), kProduct);
  EXPECT_EQ(counts_().tf32 - before_.tf32, 1U);
  EXPECT_EQ(matmul("5, 7", "7, 3", "float16", 2e-3), kProduct);
  EXPECT_EQ(matmul("5, 7", "7, 3", "double", 1e-13), kProduct);
  EXPECT_EQ(counts_().tf32 - before_.tf32, 1U);
}

TEST_F(CublasLtProducts, EveryCallOfTheLibraryThatFailsNamesTheNode) {
  if (!is_emulated()) GTEST_SKIP();
  const Result<Model> model = read_onnx_text(
      fmt::format("{}g (float[4, 5] a, float[5, 6] b, float[6] c) => (y) {{ p = Softmax (a)\n [product] y = Gemm "
                  "(p, b, c) }}",
                  kHead),
      "m.onnxtxt");
  ASSERT_TRUE(model.ok()) << model.error().message;
  Memory memory(kMemory);
  std::vector<HostValue> inputs(3);
  ASSERT_FALSE(draw_inputs(*model, 1, memory, inputs));
  const std::int64_t live = counts_().live;
  // More calls than loading, two runs and the end make: some of them only destroy, and then nothing is wrong.
  std::set<std::string> failed;
  for (std::uint64_t call = 1; call <= 60; ++call) {
    {
      Result<std::unique_ptr<Device>> device = Device::open("emulated:1", kMemory);
      ASSERT_TRUE(device.ok());
      fail_at_(call);
      if (const auto refused = (*device)->load_cublaslt(library_, false)) {
        EXPECT_EQ(refused->message, "emulated:1: cublasLtCreate: CUBLAS_STATUS_EXECUTION_FAILED (status 13)");
        continue;
      }
      Executor executor(*model, memory, **device);
      executor.set_with_cublaslt(true);
      for (int run = 0; run < 2; ++run) {
        const auto outputs = executor.run(inputs);
        if (outputs.ok()) continue;
        const std::string& message = outputs.error().message;
        const std::string_view where = "node `product` (Gemm): emulated:1: ";
        ASSERT_TRUE(message.starts_with(where)) << message;
        EXPECT_NE(message.find(": CUBLAS_STATUS_EXECUTION_FAILED (status 13)"), std::string::npos) << message;
        failed.insert(fmt::format("{} {}", run, message.substr(where.size(), message.find(": CUBLAS") - where.size())));
        EXPECT_EQ((*device)->counts().live_values, 0U);
        EXPECT_EQ((*device)->counts().live_blocks, 0U);
        EXPECT_TRUE(executor.run(inputs).ok());
      }
    }
    EXPECT_EQ(counts_().live, live);
  }
  fail_at_(0);
  EXPECT_EQ(failed,
            (std::set<std::string>{"0 cublasLtMatmul", "0 cublasLtMatmulAlgoGetHeuristic", "0 cublasLtMatmulDescCreate",
                                   "0 cublasLtMatmulDescSetAttribute", "0 cublasLtMatmulPreferenceCreate",
                                   "0 cublasLtMatmulPreferenceSetAttribute", "0 cublasLtMatrixLayoutCreate",
                                   "1 cublasLtMatmul", "1 cublasLtMatmulDescSetAttribute"}));
}

TEST_F(CublasLtProducts, AProductWithoutAnAlgorithm) {
  if (!is_emulated()) GTEST_SKIP();
  const Result<Model> model = read_onnx_text(
      fmt::format("{}g (float[4, 5] a, float[5, 6] b) => (y) {{ [product] y = MatMul (a, b) }}", kHead), "m.onnxtxt");
  ASSERT_TRUE(model.ok());
  Memory memory(kMemory);
  std::vector<HostValue> inputs(2);
  ASSERT_FALSE(draw_inputs(*model, 1, memory, inputs));
  Executor executor(*model, memory, *device_);
  executor.set_with_cublaslt(true);
  find_none_(1);
  const auto outputs = executor.run(inputs);
  find_none_(0);
  ASSERT_FALSE(outputs.ok());
  EXPECT_TRUE(outputs.error().message.starts_with(
      "node `product` (MatMul): emulated:0: cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_SUPPORTED (status 15)"))
      << outputs.error().message;
}

TEST_F(CublasLtProducts, LibrariesThatAreNone) {
  if (!is_emulated()) GTEST_SKIP();
  const auto loading = [&](const std::string& file) {
    const auto failed = device_->load_cublaslt(file, false);
    return failed ? failed->message : std::string();
  };
  EXPECT_TRUE(loading("/nowhere/libcublasLt.so").starts_with("emulated:0: cublasLt cannot be loaded: /nowhere/"))
      << loading("/nowhere/libcublasLt.so");
  EXPECT_EQ(loading(beside_the_test("libcublaslt_without_product.so")),
            "emulated:0: the library is not a cublasLt of CUDA 12 or 13: it lacks cublasLtMatmul");
  EXPECT_EQ(loading(beside_the_test("libtensorlint_emulated.so")),
            "emulated:0: cublasLt needs a GPU; this device is emulated");
  // What is not there is not used.
  Result<std::unique_ptr<Device>> other = Device::open("emulated:1", kMemory);
  ASSERT_TRUE(other.ok());
  EXPECT_THROW((*other)->cublaslt_product({}), DeviceFault);
}

}  // namespace
}  // namespace tensorlint::runtime
