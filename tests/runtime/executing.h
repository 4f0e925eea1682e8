#pragma once

// A model on a device, held against the interpreter. The device is the one that TENSORLINT_TEST_DEVICE names, else the
// emulator, which has no place under the sanitizers: there this is skipped.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ir/text/reader.h"
#include "runtime/device/device.h"
#include "runtime/executor/executor.h"
#include "runtime/files/agreement.h"
#include "runtime/files/drawn_inputs.h"
#include "runtime/interpreter/interpreter.h"
#include "tests/sanitized.h"

namespace tensorlint::runtime {

inline constexpr std::uint64_t kMemory = std::uint64_t{64} << 20;
inline constexpr std::string_view kHead = "<ir_version: 10, opset_import: [\"\": 21, \"tensorlint\": 1]>\n";

inline std::string test_device() {
  const char* const named = std::getenv("TENSORLINT_TEST_DEVICE");
  return named == nullptr ? "emulated:0" : named;
}

class Executing : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Device>> opened = Device::open(test_device(), kMemory);
    if (kSanitized && !opened) GTEST_SKIP() << opened.error().message;
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    device_ = *std::move(opened);
  }

  static bool is_emulated() { return test_device().starts_with("emulated:"); }

  /// Runs the model on drawn inputs on the device and in the interpreter; the results agree. Gives where its nodes ran:
  /// by the name of the first result the kernel, "part of ..", "unused", or "host: " and the reason.
  std::map<std::string, std::string> places(std::string_view graph, double tolerance = 2e-6,
                                            std::string_view head = kHead) {
    return places_of_text(fmt::format("{}{}", head, graph), tolerance);
  }

  /// Of `y`, which `call` makes of operands of these extents: "MatMul <...>".
  std::string place_of_call(std::string_view call, std::string_view a, std::string_view b,
                            std::string_view dtype = "float", double tolerance = 1e-5) {
    return places(fmt::format("g ({0}[{1}] a, {0}[{2}] b) => (y) {{ y = {3} (a, b) }}", dtype, a, b, call), tolerance)
        .at("y");
  }
  std::string place_of_einsum(std::string_view equation, std::string_view a, std::string_view b) {
    return place_of_call(fmt::format("Einsum <equation = \"{}\">", equation), a, b);
  }

  /// The same of a whole model in text.
  std::map<std::string, std::string> places_of_text(const std::string& graph, double tolerance = 2e-6) {
    const Result<Model> model = read_onnx_text(graph, "m.onnxtxt");
    EXPECT_TRUE(model.ok()) << model.error().message;
    if (!model) return {};
    Memory memory(kMemory);
    std::vector<HostValue> inputs(model->graph(GraphId::kMain).inputs.size());
    EXPECT_FALSE(draw_inputs(*model, 3, memory, inputs));
    const auto expected = Interpreter(*model, memory).run(inputs);
    Executor executor(*model, memory, *device_);
    executor.set_with_cublaslt(with_cublaslt_);
    const auto outputs = executor.run(inputs);
    EXPECT_TRUE(expected.ok()) << expected.error().message;
    EXPECT_TRUE(outputs.ok()) << outputs.error().message;
    if (!expected || !outputs) return {};
    for (std::size_t i = 0; i < outputs->size(); ++i)
      EXPECT_EQ(disagreement((*outputs)[i], (*expected)[i], {tolerance, tolerance}), "") << graph;
    // As planned, and nothing is left. How often bodies run is up to the run, which checks their copies, too.
    if (executor.plan().bodies.empty()) {
      EXPECT_EQ(executor.copies(), executor.plan().copies());
    }
    executor.release_memory();
    EXPECT_EQ(device_->counts().live_blocks, 0U);
    copies_ = executor.copies();
    peak_ = executor.plan().device_bytes[0];
    EXPECT_EQ(device_->counts().live_values, 0U);
    std::map<std::string, std::string> places;
    std::vector<NodePlace> all = executor.plan().places;
    for (const auto& [graph_id, body] : executor.plan().bodies)
      all.insert(all.end(), body.places.begin(), body.places.end());
    for (const NodePlace& place : all) {
      const auto results = model->results(model->node(place.node));
      const std::string name = results.empty() ? "" : std::string(model->name_of(results[0]));
      places[name] = place.kind == NodePlace::Kind::kKernel        ? place.reason
                     : place.kind == NodePlace::Kind::kInterpreter ? "host: " + place.reason
                                                                   : "unused";
    }
    return places;
  }

  std::unique_ptr<Device> device_;
  bool with_cublaslt_ = false;
  ExecutionPlan::Copies copies_;
  std::uint64_t peak_ = 0;
};

}  // namespace tensorlint::runtime
