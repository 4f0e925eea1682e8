// A model on two emulated devices: each call where the model's tags and Transfers place it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

constexpr std::string_view kPlaced =
    "g (float[9, 8] x) => (y, z) {\n a = tensorlint.Transfer <device = \"emulated:0\"> (x)\n"
    " [first] p = Softmax (a)\n [again] q = LogSoftmax (p)\n"
    " b = tensorlint.Transfer <device = \"emulated:1\"> (q)\n"
    " [second] r = Softmax (b)\n [most] s = ReduceMax (r)\n"
    " y = tensorlint.Transfer <device = \"cpu\"> (s)\n"
    " c = tensorlint.Transfer <device = \"cpu\"> (p)\n [host] z = ReduceMin (c)\n}";

class TwoDevices : public Executing {
 protected:
  void SetUp() override {
    if (!is_emulated()) GTEST_SKIP() << "the models place values on the emulated devices";
    Executing::SetUp();
    if (IsSkipped()) return;
    Result<std::unique_ptr<Device>> opened = Device::open("emulated:1", kMemory);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    other_ = *std::move(opened);
  }
  void read(std::string_view graph) {
    Result<Model> read = read_onnx_text(fmt::format("{}{}", kHead, graph), "m");
    ASSERT_TRUE(read.ok()) << read.error().message;
    model_ = std::make_unique<Model>(*std::move(read));
    inputs_.assign(model_->graph(GraphId::kMain).inputs.size(), {});
    ASSERT_FALSE(draw_inputs(*model_, 1, memory_, inputs_));
    const auto expected = Interpreter(*model_, memory_).run(inputs_);
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    expected_ = *expected;
    executor_ = std::make_unique<Executor>(*model_, memory_, std::vector<Device*>{device_.get(), other_.get()});
  }
  /// Empty, or what is wrong.
  std::string run() {
    const auto outputs = executor_->run(inputs_);
    executor_->release_memory();
    for (const Device* const device : {device_.get(), other_.get()}) {
      EXPECT_EQ(device->counts().live_blocks, 0U);
      EXPECT_EQ(device->counts().live_values, 0U);
    }
    if (!outputs) return outputs.error().message;
    for (std::size_t i = 0; i < outputs->size(); ++i)
      if (const std::string wrong = disagreement((*outputs)[i], expected_[i], {2e-6, 2e-6}); !wrong.empty())
        return "differs: " + wrong;
    return {};
  }
  std::map<std::string, std::string> where() const {
    std::map<std::string, std::string> where;
    std::vector<NodePlace> places = executor_->plan().places;
    for (const auto& [id, body] : executor_->plan().bodies)
      places.insert(places.end(), body.places.begin(), body.places.end());
    for (const NodePlace& place : places)
      where[std::string(model_->name_of(model_->results(model_->node(place.node))[0]))] =
          place.kind == NodePlace::Kind::kKernel ? executor_->devices()[place.device]->name() : place.reason;
    return where;
  }

  Memory memory_{kMemory};
  std::unique_ptr<Device> other_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Executor> executor_;
  std::vector<HostValue> inputs_, expected_;
};

TEST_F(TwoDevices, CallsRunWhereTheModelPlacesThem) {
  read(kPlaced);
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    ASSERT_TRUE(device_->use_seed(seed) && other_->use_seed(3 * seed));
    ASSERT_EQ(run(), "") << seed;
  }
  const auto places = where();
  EXPECT_EQ(places.at("p"), "emulated:0");
  EXPECT_EQ(places.at("q"), "emulated:0");
  EXPECT_EQ(places.at("r"), "emulated:1");
  EXPECT_EQ(places.at("s"), "emulated:1");
  EXPECT_EQ(places.at("z"), "the model places it on cpu");
  // x, and q to the other one; out p, q and the maximum.
  EXPECT_EQ(executor_->copies(),
            (ExecutionPlan::Copies{.in = 2, .bytes_in = 2 * 288, .out = 3, .bytes_out = 2 * 288 + 4}));
  EXPECT_EQ(executor_->plan().device_bytes, (std::vector<std::uint64_t>{2 * 288, 2 * 288}));
}

TEST_F(TwoDevices, NoCallIsOfNodesOfBoth) {
  read(
      "g (float[9, 8] x, float[9, 8] t) => (y) {\n a = tensorlint.Transfer <device = \"emulated:0\"> (x)\n"
      " b = tensorlint.Transfer <device = \"emulated:0\"> (t)\n d = Sub (a, b)\n n = Neg (d)\n"
      " c = tensorlint.Transfer <device = \"emulated:1\"> (n)\n s = Mul (c, c)\n m = ReduceMean <keepdims = 0> (s)\n"
      " y = tensorlint.Transfer <device = \"cpu\"> (m)\n}");
  ASSERT_EQ(run(), "");
  const auto places = where();
  EXPECT_EQ(places.at("d"), "emulated:0");
  EXPECT_EQ(places.at("n"), "emulated:0");
  EXPECT_EQ(places.at("s"), "emulated:1");
  EXPECT_EQ(places.at("m"), "emulated:1");
}

TEST_F(TwoDevices, EveryWaitIsNeeded) {
  read(kPlaced);
  ASSERT_EQ(run(), "");
  for (Device* const device : {device_.get(), other_.get()}) {
    const std::uint64_t before = device->counts().waits;
    ASSERT_EQ(run(), "");
    const std::uint64_t waits = device->counts().waits - before;
    EXPECT_GT(waits, 0U);
    for (std::uint64_t wait = 1; wait <= waits; ++wait) {
      std::string noticed;
      for (std::uint64_t seed = 1; seed <= 100 && noticed.empty(); ++seed) {
        ASSERT_TRUE(device->use_seed(seed) && device->skip_wait(wait));
        noticed = run();
      }
      EXPECT_NE(noticed, "") << device->name() << ", wait " << wait << " of " << waits;
      ASSERT_TRUE(device->skip_wait(0));
    }
  }
}

TEST_F(TwoDevices, FaultsOfEitherNameTheNode) {
  read(kPlaced);
  for (Device* const device : {device_.get(), other_.get()}) {
    for (const bool late : {false, true}) {
      bool names = false;
      for (std::uint64_t call = 1;; ++call) {
        ASSERT_TRUE(device->fail_at(call, late));
        const std::string message = run();
        if (message.empty()) break;
        ASSERT_NE(message.find(device->name() + ": "), std::string::npos) << message;
        ASSERT_NE(message.find("made to fail"), std::string::npos) << message;
        names = names || message.starts_with(device == device_.get() ? "node `first` (Softmax): emulated:0"
                                                                     : "node `most` (ReduceMax): emulated:1");
        ASSERT_TRUE(device->fail_at(0));
        EXPECT_EQ(run(), "");
      }
      EXPECT_TRUE(names);
      ASSERT_TRUE(device->fail_at(0));
    }
  }
}

TEST_F(TwoDevices, ABodyOnTheOtherDevice) {
  read(
      "g (float[4, 6] x, bool c) => (y) {\n y = If (c) <then_branch = a () => (float[4, 6] p) {\n"
      " t = tensorlint.Transfer <device = \"emulated:1\"> (x)\n s = Softmax (t)\n"
      " p = tensorlint.Transfer <device = \"cpu\"> (s)\n },"
      " else_branch = b () => (float[4, 6] q) {\n u = tensorlint.Transfer <device = \"emulated:0\"> (x)\n"
      " v = LogSoftmax (u)\n q = tensorlint.Transfer <device = \"cpu\"> (v)\n }>\n}");
  for (const bool condition : {false, true}) {
    HostTensor tensor(DType::kBool, {}, memory_);
    tensor.as_mutable<unsigned char>()[0] = condition ? 1 : 0;
    inputs_[1] = HostValue(std::move(tensor));
    const auto expected = Interpreter(*model_, memory_).run(inputs_);
    ASSERT_TRUE(expected.ok());
    expected_ = *expected;
    EXPECT_EQ(run(), "");
  }
  EXPECT_EQ(where().at("s"), "emulated:1");
  EXPECT_EQ(where().at("v"), "emulated:0");
}

TEST_F(TwoDevices, WithoutPlacesTheFirstRunsAll) {
  read("g (float[4, 6] x) => (y) {\n p = Softmax (x)\n y = ReduceMax (p)\n}");
  EXPECT_EQ(run(), "");
  EXPECT_EQ(where().at("y"), "emulated:0");
  EXPECT_EQ(executor_->plan().device_bytes[1], 0U);
}

TEST_F(TwoDevices, MemoryOfEachIsLimited) {
  Result<std::unique_ptr<Device>> small = Device::open("emulated:1", 400);
  ASSERT_TRUE(small.ok());
  read(kPlaced);
  other_ = *std::move(small);
  executor_ = std::make_unique<Executor>(*model_, memory_, std::vector<Device*>{device_.get(), other_.get()});
  EXPECT_EQ(run(), "node `second` (Softmax): emulated:1: 576 bytes of the device are needed and the limit is 400");
}

}  // namespace
}  // namespace tensorlint::runtime
