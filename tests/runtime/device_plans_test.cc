// Plans of exported models: what their values take on a device, against the largest set that lives at one time.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/readers/onnx/reader.h"
#include "runtime/executor/execution_plan.h"
#include "runtime/files/drawn_inputs.h"

namespace tensorlint::runtime {
namespace {

TEST(DevicePlans, MemoryOfExportedModels) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("tests/models"))
    if (entry.path().extension() == ".onnx") paths.push_back(entry.path());
  std::ranges::sort(paths);
  ASSERT_GT(paths.size(), 100U) << "run in the root of the repository";
  const std::string devices[] = {"cuda:0"};
  std::size_t planned = 0, calls = 0;
  double worst = 1;
  for (const std::string& path : paths) {
    const Result<Model> model = read_onnx_file(path);
    if (!model) continue;  // some are there to be refused
    Memory memory(std::uint64_t{256} << 20);
    std::vector<HostValue> inputs(model->graph(GraphId::kMain).inputs.size());
    if (draw_inputs(*model, 1, memory, inputs)) continue;
    const Result<ExecutionPlan> plan = plan_execution(*model, inputs, devices, Sides::kKernels);
    ASSERT_TRUE(plan.ok()) << path << ": " << plan.error().message;
    std::vector<const GraphExecution*> graphs{&*plan};
    for (const auto& [id, body] : plan->bodies) graphs.push_back(&body);
    for (const GraphExecution* const graph : graphs) {
      const MemoryPlan& chosen = graph->schedule.memory[0];
      for (const PlanStep& step : graph->steps) calls += step.call ? 1 : 0;
      if (chosen.live_bytes == 0) continue;
      ++planned;
      const double ratio = static_cast<double>(chosen.bytes) / static_cast<double>(chosen.live_bytes);
      EXPECT_LE(ratio, 1.1) << path;
      worst = std::max(worst, ratio);
    }
  }
  EXPECT_GT(planned, 50U);
  RecordProperty("graphs_with_kernels", std::to_string(planned));
  RecordProperty("kernels", std::to_string(calls));
  RecordProperty("worst_ratio", std::to_string(worst));
}

}  // namespace
}  // namespace tensorlint::runtime
