// What the executor asks of a device, seen from the device's side: every call fails in turn, every wait is left out in
// turn, and the orders that remain give one result. The emulator has no place under the sanitizers: there this is
// skipped.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

struct Case {
  std::string_view name, graph;
};

// A loss; a softmax; a chain between host and device; two outputs with labels; memory that several values use in turn;
// one call with several results, which the host, kernels and an output read; views, of which the last one is an output.
constexpr Case kCases[] = {
    {"loss",
     "g (float[6, 4] x, float[6, 4] t) => (y) {\n [difference] d = Sub (x, t)\n [square] s = Mul (d, d)\n"
     " h = Constant <value = float {0.5}> ()\n [half] e = Mul (s, h)\n [loss] y = ReduceMean <keepdims = 0> (e)\n}"},
    {"softmax", "g (float[5, 7] x) => (y) { [soft] y = Softmax (x) }"},
    {"chain",
     "g (float[8, 9] x) => (y) {\n [a] a = Softmax (x)\n [b] b = Sinh (a)\n [c] c = LogSoftmax (b)\n"
     " [d] d = Sinh (c)\n [e] e = ReduceMax (d)\n [f] y = Sinh (e)\n}"},
    {"outputs",
     "g (float[6, 4] x, float[6, 4] t, float[6, 4] u) => (a, b, c, e) {\n [pick] l = ArgMax <axis = 1, keepdims = 0> "
     "(u)\n"
     " [difference] d = Sub (x, t)\n [square] s = Mul (d, d)\n [loss] a = ReduceMean <keepdims = 0> (s)\n"
     " [classes] b = SoftmaxCrossEntropyLoss (x, l)\n [soft] p = Softmax (x)\n [most] c = ReduceMax (p)\n"
     " [turned] e = Sinh (p)\n}"},
    {"memory",
     "g (float[40, 30] x, float[40, 30] u, float[40, 30] v, float[40, 30] w) => (a, b, c, d, z) {\n"
     " [p] p = Softmax (x)\n [q] q = LogSoftmax (p)\n [a] a = ReduceMax (q)\n [r] r = Softmax (u)\n"
     " [b] b = ReduceMin (r)\n [s] s = LogSoftmax (v)\n [c] c = ReduceSum (s)\n [t] t = Softmax (w)\n"
     " [d] d = ReduceSumSquare (t)\n [z] z = Sinh (s)\n}"},
    {"parts",
     "g (float[8, 9] x) => (y, b, z) {\n [a] a = Softmax (x)\n [parts] b, c, d = Split <num_outputs = 3> (a)\n"
     " [e] e = Sinh (c)\n [f] y = ReduceMax (e)\n [g] z = ReduceSum (d)\n}"},
    {"views",
     "g (float[8, 9] x, float[9, 8] w) => (y, d) {\n [a] a = Softmax (x)\n s = Constant <value = int64[2] {9, 8}> ()\n"
     " [b] b = Reshape (a, s)\n [c] c = LogSoftmax (b)\n [e] e = Sinh (b)\n [f] f = Mul (c, e)\n"
     " [g] g = Mul (f, w)\n [d] d = Flatten <axis = 0> (g)\n [h] y = ReduceMax (a)\n}"},
};

class DeviceFaults : public Executing, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    if (!is_emulated()) GTEST_SKIP() << "only the emulator fails where it is told to";
    Executing::SetUp();
    if (device_ == nullptr) return;
    Result<Model> read =
        read_onnx_text(fmt::format("<ir_version: 10, opset_import: [\"\": 21]>\n{}", GetParam().graph), "m");
    ASSERT_TRUE(read.ok()) << read.error().message;
    model_ = std::make_unique<Model>(*std::move(read));
    inputs_.resize(model_->graph(GraphId::kMain).inputs.size());
    ASSERT_FALSE(draw_inputs(*model_, 1, memory_, inputs_));
    executor_ = std::make_unique<Executor>(*model_, memory_, *device_);
    auto first = executor_->run(inputs_);
    ASSERT_TRUE(first.ok()) << first.error().message;
    expected_ = *std::move(first);
    const auto host = Interpreter(*model_, memory_).run(inputs_);
    ASSERT_TRUE(host.ok()) << host.error().message;
    for (std::size_t i = 0; i < host->size(); ++i) ASSERT_EQ(disagreement(expected_[i], (*host)[i], {2e-6, 2e-6}), "");
  }

  void TearDown() override {
    executor_.reset();
    if (device_ != nullptr) {
      EXPECT_EQ(device_->counts().live_blocks, 0U);
    }
  }

  /// Empty, or what is wrong.
  std::string run() {
    const auto outputs = executor_->run(inputs_);
    if (!outputs) return outputs.error().message;
    for (std::size_t i = 0; i < outputs->size(); ++i)
      if (const std::string wrong = disagreement((*outputs)[i], expected_[i], {0, 0}); !wrong.empty())
        return "differs: " + wrong;
    return {};
  }

  Memory memory_{kMemory};
  std::unique_ptr<Model> model_;
  std::unique_ptr<Executor> executor_;
  std::vector<HostValue> inputs_, expected_;
};

TEST_P(DeviceFaults, EveryCallThatFailsNamesTheNodeAndLeavesNothing) {
  std::set<std::string> named;
  const std::uint64_t held = memory_.live();
  for (const bool late : {false, true}) {
    std::uint64_t call = 1;
    for (;; ++call) {
      executor_->release_memory();
      ASSERT_TRUE(device_->fail_at(call, late));
      ASSERT_TRUE(device_->use_seed(call));
      const std::string message = run();
      if (message.empty()) break;
      ASSERT_NE(message.find("emulated:0: "), std::string::npos) << message;
      ASSERT_NE(message.find("made to fail"), std::string::npos) << message;
      const std::string where = message.substr(0, message.find(": "));
      EXPECT_TRUE(where.starts_with("node `") || where.starts_with("the output `") ||
                  where == "before the first node" || where == "after the last node")
          << message;
      named.insert(where);
      EXPECT_EQ(device_->counts().live_blocks, 0U) << message;
      EXPECT_EQ(device_->counts().live_bytes, 0U) << message;
      EXPECT_EQ(device_->counts().live_values, 0U) << message;
      EXPECT_EQ(memory_.live(), held) << message;
      ASSERT_TRUE(device_->fail_at(0));
      EXPECT_EQ(run(), "") << "after: " << message;
    }
    ASSERT_TRUE(device_->fail_at(0));
    EXPECT_GT(call, 8U);
  }
  // Each kernel, and each output of one.
  for (const PlanStep& step : executor_->plan().steps) {
    if (!step.call || std::holds_alternative<ViewCall>(step.call->request)) continue;
    EXPECT_TRUE(named.contains(fmt::format("node `{}` ({})", model_->label(step.node),
                                           model_->text(model_->op(model_->node(step.node)).name))))
        << model_->label(step.node);
  }
  for (const PlannedCopy& copy : executor_->plan().last_copies)
    EXPECT_TRUE(named.contains(fmt::format("the output `{}`", model_->name_of(copy.value))))
        << model_->name_of(copy.value);
}

TEST_P(DeviceFaults, WorkOfUnknownStepsIsBlamedOnNoNode) {
  const auto node_of = [](const std::string& message) { return message.substr(0, message.find(": ")); };
  std::uint64_t late = 0;
  for (std::uint64_t call = 1;; ++call) {
    const auto fail = [&](bool is_timed, bool is_hidden) {
      executor_->release_memory();
      executor_->set_timed(is_timed);
      EXPECT_TRUE(device_->use_seed(call) && device_->hide_steps(is_hidden) && device_->fail_at(call, true));
      std::string message = run();
      EXPECT_TRUE(device_->fail_at(0) && device_->hide_steps(false));
      return message;
    };
    const std::string known = fail(true, false), exact = fail(true, true), hidden = fail(false, true);
    if (known.empty()) break;
    EXPECT_EQ(node_of(exact), node_of(known)) << exact;
    // A call that failed itself still names its node.
    const bool is_work = hidden.find("made to fail late") != std::string::npos;
    late += is_work ? 1 : 0;
    EXPECT_EQ(hidden.starts_with("earlier work on the device failed (--timings names its node), noticed "), is_work)
        << hidden;
  }
  EXPECT_GT(late, 2U);
}

TEST_P(DeviceFaults, EveryOrderThatEventsLeaveOpenIsRight) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ASSERT_TRUE(device_->use_seed(seed));
    EXPECT_EQ(run(), "") << seed;
  }
}

TEST_P(DeviceFaults, EveryWaitIsNeeded) {
  const std::uint64_t before = device_->counts().waits;
  ASSERT_EQ(run(), "");
  const std::uint64_t waits = device_->counts().waits - before;
  EXPECT_GT(waits, 0U);
  for (std::uint64_t wait = 1; wait <= waits; ++wait) {
    std::string noticed;
    for (std::uint64_t seed = 1; seed <= 100 && noticed.empty(); ++seed) {
      ASSERT_TRUE(device_->use_seed(seed));
      ASSERT_TRUE(device_->skip_wait(wait));
      noticed = run();
      EXPECT_EQ(device_->counts().live_blocks, noticed.empty() || noticed.starts_with("differs") ? 1U : 0U);
    }
    EXPECT_NE(noticed, "") << "wait " << wait << " of " << waits;
    ASSERT_TRUE(device_->skip_wait(0));
  }
  EXPECT_EQ(run(), "");
}

TEST_P(DeviceFaults, MemoryIsThatOfTheLargestLiveSet) {
  const MemoryPlan& memory = executor_->plan().schedule.memory[0];
  EXPECT_LE(static_cast<double>(memory.bytes), 1.1 * static_cast<double>(memory.live_bytes));
  EXPECT_EQ(device_->counts().peak_bytes, memory.bytes);
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceFaults, ::testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

class EmulatedDevice : public Executing {
 protected:
  void SetUp() override {
    if (!is_emulated()) GTEST_SKIP();
    Executing::SetUp();
    if (device_ == nullptr) return;
    block_ = device_->allocate(256);
    device_->make_events(2);
  }

  /// Empty, or what the device complains about when the host waits, in any of many orders.
  template <typename Calls>
  std::string complaint(const Calls& calls) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      (void)device_->use_seed(seed);
      try {
        calls();
        device_->synchronize();
      } catch (const DeviceFault& fault) {
        device_->synchronize();
        return fault.message;
      }
    }
    return {};
  }

  DeviceBlock block_;
};

TEST_F(EmulatedDevice, ReadsNothingThatIsNotWritten) {
  const DeviceValue value = device_->place(block_, 0, 64);
  float read[16] = {};
  EXPECT_NE(complaint([&] { device_->copy_out(read, value, 64); }).find("never written"), std::string::npos);
  // In two streams without an event, and with one.
  const float data[16] = {1, 2};
  const auto copy = [&](bool waits) {
    const DeviceValue fresh = device_->place(block_, 64, 64);
    device_->copy_in(fresh, data, 64);
    device_->record(kTensorlintCopiesIn, 0);
    if (waits) device_->wait(kTensorlintCopiesOut, 0);
    device_->copy_out(read, fresh, 64);
  };
  EXPECT_NE(complaint([&] { copy(false); }).find("never written (work in the order of seed"), std::string::npos);
  EXPECT_EQ(complaint([&] { copy(true); }), "");
  EXPECT_EQ(read[1], 2);
}

TEST_F(EmulatedDevice, WorkIsDoneLate) {
  const DeviceValue value = device_->place(block_, 0, 4);
  float data = 3, read = 5;
  device_->copy_in(value, &data, 4);
  data = 4;  // the host's again
  device_->record(kTensorlintCopiesIn, 0);
  device_->wait(kTensorlintCopiesOut, 0);
  device_->copy_out(&read, value, 4);
  device_->record(kTensorlintCopiesOut, 1);
  EXPECT_NE(read, 3);
  EXPECT_NE(read, 5);
  device_->host_wait(1);
  EXPECT_EQ(read, 3);
}

TEST_F(EmulatedDevice, ValuesEndAndDoNotOverlap) {
  float data[16] = {}, read[16] = {};
  DeviceValue value = device_->place(block_, 0, 64);
  EXPECT_THROW((void)device_->place(block_, 48, 64), DeviceFault);
  EXPECT_THROW((void)device_->place(block_, 240, 32), DeviceFault);
  EXPECT_THROW((void)device_->place(block_, 8 * 16 + 8, 16), DeviceFault);
  const DeviceValue beside = device_->place(block_, 64, 64);
  device_->copy_in(beside, data, 64);
  EXPECT_THROW(device_->copy_in(beside, data, 68), DeviceFault);
  void* const address = value.data();
  value = {};
  EXPECT_NE(address, nullptr);
  // Its memory is another value's now, which finds nothing of it.
  const DeviceValue next = device_->place(block_, 0, 64);
  EXPECT_NE(complaint([&] { device_->copy_out(read, next, 64); }).find("never written"), std::string::npos);
}

TEST_F(EmulatedDevice, MemoryIsNotUsedAgainWhileWorkOnItIsUnderWay) {
  const float data[16] = {};
  float read[16] = {};
  const auto reuse = [&](bool waits) {
    DeviceValue first = device_->place(block_, 0, 64);
    device_->copy_in(first, data, 64);
    device_->record(kTensorlintCopiesIn, 0);
    device_->wait(kTensorlintCopiesOut, 0);
    device_->copy_out(read, first, 64);
    device_->record(kTensorlintCopiesOut, 1);
    first = {};
    const DeviceValue second = device_->place(block_, 48, 64);
    if (waits) device_->wait(kTensorlintCopiesIn, 1);
    device_->copy_in(second, data, 64);
  };
  EXPECT_NE(complaint([&] { reuse(false); }).find("an event is missing"), std::string::npos);
  EXPECT_EQ(complaint([&] { reuse(true); }), "");
}

TEST_F(EmulatedDevice, EventsAreRecordedBeforeTheyAreWaitedFor) {
  EXPECT_THROW(device_->wait(kTensorlintKernels, 0), DeviceFault);
  EXPECT_THROW(device_->host_wait(1), DeviceFault);
  EXPECT_THROW(device_->record(kTensorlintKernels, 2), DeviceFault);
}

TEST_F(EmulatedDevice, AnEventCanBeRecordedAgainBeforeItOccurs) {
  // Who waits for the first recording is not served by the second one, in another stream.
  float data = 3, read = 5;
  EXPECT_EQ(complaint([&] {
              const DeviceValue fresh = device_->place(block_, 64, 4);
              device_->copy_in(fresh, &data, 4);
              device_->record(kTensorlintCopiesIn, 0);
              device_->wait(kTensorlintCopiesOut, 0);
              device_->record(kTensorlintKernels, 0);
              device_->copy_out(&read, fresh, 4);
            }),
            "");
  EXPECT_EQ(read, 3);
}

TEST_F(EmulatedDevice, MemoryGivenBackUnderWorkIsReported) {
  const float data[16] = {};
  DeviceBlock other = device_->allocate(64);
  DeviceValue value = device_->place(other, 0, 64);
  device_->copy_in(value, data, 64);
  value = {};
  other = {};
  EXPECT_THROW(device_->synchronize(), DeviceFault);
  EXPECT_NO_THROW(device_->synchronize());
}

TEST_F(EmulatedDevice, OpeningCanFail) {
  ASSERT_TRUE(device_->fail_open_at(1));
  const auto refused = Device::open("emulated:1", kMemory);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "emulated:1: open: made to fail");
  EXPECT_TRUE(Device::open("emulated:1", kMemory).ok());
}

}  // namespace
}  // namespace tensorlint::runtime
