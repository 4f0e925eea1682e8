// Gradients of losses on the emulated device: those of every exported loss equal central differences in the
// interpreter, and a loss whose gradient no kernel computes is refused.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ir/readers/onnx/reader.h"
#include "runtime/interpreter/graph_plan.h"
#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

/// The main graph, node by node, with one value as it is told.
class Perturbed {
 public:
  Perturbed(const Model& model, Memory& memory, std::span<const HostValue> inputs)
      : model_(model), memory_(memory), order_(model), interpreter_(model, memory) {
    const Graph& main = model.graph(GraphId::kMain);
    for (std::size_t i = 0; i < inputs.size(); ++i) interpreter_.hold(main.inputs[i], inputs[i]);
    for (const NodeId node : order_.steps(GraphId::kMain).nodes) run(node);
  }

  HostTensor value(ValueId id) { return interpreter_.held(id)->tensor(); }

  /// The sum of `of` where element `at` of `by` is so much more.
  double sum_of(ValueId of, ValueId by, std::size_t at, float more) {
    const HostTensor kept = value(by);
    HostTensor changed(DType::kFloat32, kept.extents(), memory_);
    std::ranges::copy(kept.as<float>(), changed.as_mutable<float>().begin());
    changed.as_mutable<float>()[at] += more;
    interpreter_.hold(by, HostValue(changed));
    bool is_after = model_.value(by).producer == NodeId::kNone;
    for (const NodeId node : order_.steps(GraphId::kMain).nodes) {
      if (is_after) run(node);
      is_after = is_after || node == model_.value(by).producer;
    }
    double sum = 0;
    const HostTensor result = value(of);
    for (const float element : result.as<float>()) sum += static_cast<double>(element);
    interpreter_.hold(by, HostValue(kept));
    return sum;
  }

 private:
  void run(NodeId node) {
    Result<std::vector<HostValue>> results = interpreter_.evaluate(node);
    ASSERT_TRUE(results.ok()) << results.error().message;
    const auto names = model_.results(model_.node(node));
    for (std::size_t r = 0; r < names.size(); ++r)
      if (names[r] != ValueId::kAbsent) interpreter_.hold(names[r], (*results)[r]);
  }

  const Model& model_;
  Memory& memory_;
  GraphPlan order_;
  Interpreter interpreter_;
};

/// What a value of a function is to the main graph; itself where it is of that.
ValueId in_main(const Model& model, ValueId value) {
  const GraphId graph = model.value(value).graph;
  if (graph == GraphId::kMain) return value;
  for (const NodeId node : model.graph(GraphId::kMain).nodes) {
    if (model.op(model.node(node)).function != graph) continue;
    const Graph& function = model.graph(graph);
    for (std::size_t i = 0; i < function.inputs.size(); ++i)
      if (function.inputs[i] == value) return model.operands(model.node(node))[i];
    for (std::size_t i = 0; i < function.outputs.size(); ++i)
      if (function.outputs[i] == value) return model.results(model.node(node))[i];
  }
  return ValueId::kAbsent;
}

class LossGradients : public Executing {
 protected:
  /// How many elements were held against differences; the gradient's own kinks are left out.
  std::size_t compare(const std::string& name, const Model& model, const std::vector<HostValue>& inputs) {
    Memory memory(kMemory);
    Executor executor(model, memory, *device_);
    executor.set_with_gradients(true);
    const auto outputs = executor.run(inputs);
    EXPECT_TRUE(outputs.ok()) << name << ": " << outputs.error().message;
    if (!outputs) return 0;
    EXPECT_EQ(executor.gradients().size(), 1U) << name;
    executor.release_memory();
    EXPECT_EQ(device_->counts().live_blocks, 0U);
    Perturbed host(model, memory, inputs);
    std::size_t compared = 0;
    for (const Executor::Gradient& gradient : executor.gradients()) {
      const ValueId by = in_main(model, gradient.by), of = in_main(model, gradient.of);
      if (by == ValueId::kAbsent || of == ValueId::kAbsent) continue;
      EXPECT_EQ(gradient.tensor.extents(), host.value(by).extents()) << name;
      constexpr float kStep = 0x1p-7F;
      for (std::size_t at = 0; at < gradient.tensor.size(); ++at) {
        const double before = host.sum_of(of, by, at, -kStep), after = host.sum_of(of, by, at, kStep),
                     here = host.sum_of(of, by, at, 0);
        if (std::abs(before + after - 2 * here) > 0.05 * static_cast<double>(kStep)) {
          // Not smooth at this scale: a kink or a steep curve, of which each side alone says too little.
          const auto [least, most] =
              std::minmax({(here - before) / static_cast<double>(kStep), (after - here) / static_cast<double>(kStep)});
          const auto given = static_cast<double>(gradient.tensor.as<float>()[at]);
          EXPECT_GE(given, least - 1e-3 - 1e-3 * std::abs(least)) << name << ' ' << at;
          EXPECT_LE(given, most + 1e-3 + 1e-3 * std::abs(most)) << name << ' ' << at;
          continue;
        }
        EXPECT_NEAR(static_cast<double>(gradient.tensor.as<float>()[at]),
                    (after - before) / (2 * static_cast<double>(kStep)), 1e-3)
            << name << ' ' << at;
        ++compared;
      }
    }
    return compared;
  }
};

TEST_F(LossGradients, OfExportedLossesAreDifferencesOfTheInterpreter) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator("tests/models/losses"))
    if (entry.path().extension() == ".onnx") paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::size_t compared = 0, losses = 0;
  for (const std::string& path : paths) {
    const Result<Model> model = read_onnx_file(path);
    ASSERT_TRUE(model.ok()) << path;
    Memory memory(kMemory);
    std::vector<HostValue> inputs(model->graph(GraphId::kMain).inputs.size());
    ASSERT_FALSE(draw_inputs(*model, 1, memory, inputs)) << path;
    // Targets that are probabilities, or classes, to all losses.
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (model->name_of(model->graph(GraphId::kMain).inputs[i]) != "target") continue;
      if (inputs[i].tensor().dtype() == DType::kInt64) {
        HostTensor labels(DType::kInt64, inputs[i].tensor().extents(), memory);
        for (std::size_t at = 0; at < labels.size(); ++at)
          labels.as_mutable<std::int64_t>()[at] = static_cast<std::int64_t>(at % 3);
        inputs[i] = HostValue(labels);
      }
      if (inputs[i].tensor().dtype() != DType::kFloat32) continue;
      HostTensor target(DType::kFloat32, inputs[i].tensor().extents(), memory);
      std::ranges::transform(inputs[i].tensor().as<float>(), target.as_mutable<float>().begin(),
                             [](float x) { return 1 / (1 + std::exp(-x)); });
      inputs[i] = HostValue(target);
    }
    if (!Interpreter(*model, memory).run(inputs)) {
      // ONNX has no cross-entropy with probabilities: what exporters write for it runs nowhere.
      EXPECT_NE(path.find("cross_entropy_prob"), std::string::npos) << path;
      continue;
    }
    Executor executor(*model, memory, *device_);
    executor.set_with_gradients(true);
    if (const auto outputs = executor.run(inputs); !outputs) {
      // The one that has no kernel.
      EXPECT_NE(path.find("hand_log_cosh"), std::string::npos) << path << ": " << outputs.error().message;
      EXPECT_NE(outputs.error().message.find("no kernel computes the gradient of this log-cosh loss"),
                std::string::npos)
          << outputs.error().message;
      continue;
    }
    executor.release_memory();
    const std::size_t elements = compare(path, *model, inputs);
    EXPECT_GT(elements, 0U) << path;
    compared += elements;
    ++losses;
  }
  EXPECT_GT(losses, 190U);
  EXPECT_GT(compared, 1100U);
  RecordProperty("losses", std::to_string(losses));
  RecordProperty("elements", std::to_string(compared));
}

class WrittenLossGradients : public LossGradients {
 protected:
  void of(std::string_view graph, std::string_view by) {
    const Result<Model> model = read_onnx_text(fmt::format("{}{}", kHead, graph), "m.onnxtxt");
    ASSERT_TRUE(model.ok()) << model.error().message;
    Memory memory(kMemory);
    std::vector<HostValue> inputs(model->graph(GraphId::kMain).inputs.size());
    ASSERT_FALSE(draw_inputs(*model, 2, memory, inputs));
    EXPECT_GT(compare(std::string(graph), *model, inputs), 0U);
    Executor executor(*model, memory, *device_);
    executor.set_with_gradients(true);
    ASSERT_TRUE(executor.run(inputs).ok());
    // Again, from a kept plan: those of the last run alone.
    ASSERT_TRUE(executor.run(inputs).ok());
    ASSERT_EQ(executor.gradients().size(), 1U);
    EXPECT_EQ(model->name_of(executor.gradients()[0].by), by);
  }
};

// The prediction is what parameters go into, on either side.
TEST_F(WrittenLossGradients, OfTheSideThatIsThePrediction) {
  const std::string_view head =
      "g (float[5, 4] x, float[5, 3] t) => (y) <float[4, 3] w = {1, 2, -1, 0.5, 3, 1, -2, 0.25, 1, 2, 0, -1}> {\n p = "
      "MatMul (x, w)\n";
  for (const std::string_view order : {"p, t", "t, p"}) {
    of(fmt::format("{} d = Sub ({})\n s = Mul (d, d)\n y = ReduceMean <keepdims = 0> (s)\n}}", head, order), "p");
    of(fmt::format("{} d = Sub ({})\n s = Abs (d)\n n = Neg (s)\n y = ReduceSum <keepdims = 0> (n)\n}}", head, order),
       "p");
  }
  // Of an autoencoder the target is what the prediction is made of.
  for (const std::string_view order : {"p, x", "x, p"})
    of(fmt::format(
           "g (float[5, 4] x) => (y) <float[4, 4] w = {{1, 2, -1, 0.5, 3, 1, -2, 0.25, 1, 2, 0, -1, 1, 0, 2, 1}}> {{\n"
           " p = MatMul (x, w)\n d = Sub ({})\n s = Mul (d, d)\n y = ReduceMean <keepdims = 0> (s)\n}}",
           order),
       "p");
  of("g (float[5, 3] x, float[5, 3] t) => (y) { y = tensorlint.HuberLoss <reduction = \"none\"> (x, t) }", "x");
}

TEST_F(WrittenLossGradients, EveryCallThatFailsLeavesNothing) {
  if (!is_emulated()) GTEST_SKIP();
  const Result<Model> model =
      read_onnx_text(fmt::format("{}g (float[6, 4] x, float[6, 4] t) => (y) {{\n d = Sub (x, t)\n s = Mul (d, d)\n"
                                 " [loss] y = ReduceMean <keepdims = 0> (s)\n}}",
                                 kHead),
                     "m.onnxtxt");
  ASSERT_TRUE(model.ok());
  Memory memory(kMemory);
  std::vector<HostValue> inputs(2);
  ASSERT_FALSE(draw_inputs(*model, 2, memory, inputs));
  Executor executor(*model, memory, *device_);
  executor.set_with_gradients(true);
  ASSERT_TRUE(executor.run(inputs).ok());
  const std::vector<float> expected(executor.gradients()[0].tensor.as<float>().begin(),
                                    executor.gradients()[0].tensor.as<float>().end());
  std::uint64_t call = 1;
  for (;; ++call) {
    ASSERT_TRUE(device_->fail_at(call, true));
    ASSERT_TRUE(device_->use_seed(call));
    const auto outputs = executor.run(inputs);
    ASSERT_TRUE(device_->fail_at(0));
    EXPECT_EQ(device_->counts().live_blocks, outputs ? 1U : 0U);
    if (outputs) break;
    EXPECT_NE(outputs.error().message.find("made to fail"), std::string::npos) << outputs.error().message;
    EXPECT_TRUE(executor.gradients().empty());
  }
  EXPECT_GT(call, 8U);
  ASSERT_EQ(executor.gradients().size(), 1U);
  const std::span<const float> given = executor.gradients()[0].tensor.as<float>();
  EXPECT_TRUE(std::ranges::equal(given, expected));
}

}  // namespace
}  // namespace tensorlint::runtime
