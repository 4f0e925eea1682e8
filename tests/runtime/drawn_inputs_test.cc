// Models of ONNX's backend tests on drawn inputs: every evaluator ends with results or with an error, whatever its
// operands hold, and each result lies inside its fact. Under the sanitizers this is what shows an index out of bounds.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "passes/dataflow/analysis.h"
#include "runtime/files/drawn_inputs.h"
#include "runtime/interpreter/concrete_facts.h"
#include "runtime/interpreter/interpreter.h"
#include "tests/ops/backend_corpus.h"

namespace tensorlint::runtime {
namespace {

constexpr std::uint64_t kMemory = std::uint64_t{64} << 20;

/// What one model does: "ran", or the start of an error; failures of facts are test failures.
bool run_case(const std::string& name, const Model& model, std::uint64_t seed) {
  Memory memory(kMemory);
  std::vector<HostValue> inputs(model.graph(GraphId::kMain).inputs.size());
  if (draw_inputs(model, seed, memory, inputs)) return false;  // strings, sequences
  const dataflow::Analysis analysis = dataflow::analyse(model, {});
  const NodeObserver observer = [&](NodeId node, std::span<const HostValue> results) {
    const std::span<const ValueId> values = model.results(model.node(node));
    for (std::size_t r = 0; r < results.size(); ++r) {
      std::string why;
      if (values[r] == ValueId::kAbsent) continue;
      EXPECT_TRUE(contains(analysis.facts(), analysis.fact_id(values[r]), results[r], why))
          << name << ", seed " << seed << ": `" << model.name_of(values[r]) << "`: " << why;
    }
  };
  Interpreter interpreter(model, memory, {.seed = seed, .observer = observer});
  return interpreter.run(std::move(inputs)).ok();
}

class DrawnInputs : public testing::TestWithParam<int> {};

TEST_P(DrawnInputs, ResultsLieInsideTheirFacts) {
  const ops::Corpus& corpus = ops::Corpus::get();
  int ran = 0, cases = 0;
  for (const ops::Json& entry : corpus.cases) {
    const std::string name = entry["name"];
    if (entry["variant"] != "declared" || static_cast<int>(name.back()) % 4 != GetParam()) continue;
    const Result<Model> model = ops::model_of(entry);
    ASSERT_TRUE(model.ok()) << name;
    ++cases;
    for (const std::uint64_t seed : {1, 2}) ran += run_case(name, *model, seed) ? 1 : 0;
  }
  EXPECT_GT(ran, cases / 2) << "of " << cases;
}

INSTANTIATE_TEST_SUITE_P(OfBackendTests, DrawnInputs, testing::Range(0, 4));

}  // namespace
}  // namespace tensorlint::runtime
