// Models of ONNX's backend tests on drawn inputs: every evaluator ends with results or with an error, whatever its
// operands hold, and each result lies inside its fact. Under the sanitizers this is what shows an index out of bounds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ir/text/reader.h"
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

/// What check_input says of a value for the input `x` of that type; empty where it fits.
std::string said_of(std::string_view type, const HostValue& value) {
  const Result<Model> model = read_onnx_text(
      fmt::format("<ir_version: 10, opset_import: [\"\": 21]>\ng ({} x) => (y) {{ y = Identity (x) }}", type),
      "m.onnxtxt");
  if (!model.ok()) return model.error().message;
  const auto error = check_input(*model, model->graph(GraphId::kMain).inputs[0], value);
  return error ? error->message : "";
}

TEST(CheckInput, TensorsSequencesAndOptionals) {
  Memory memory(kMemory);
  const HostValue pair = HostTensor(DType::kFloat32, {1, 3}, memory);
  const HostValue list = HostValue::sequence({pair, pair}, DType::kFloat32, memory);
  EXPECT_EQ(said_of("float[N, 3]", pair), "");
  EXPECT_EQ(said_of("float[-1, 3]", pair), "");  // as some exporters write an axis of any length
  EXPECT_EQ(said_of("float[2, 3]", pair), "the input `x` is float32[1, 3], the model declares float32[2, 3]");
  EXPECT_EQ(said_of("int64[N, 3]", pair), "the input `x` is float32[1, 3], the model declares int64[N, 3]");
  EXPECT_EQ(said_of("seq(float[N, 3])", list), "");
  EXPECT_NE(said_of("seq(float[N, 3])", pair), "");
  EXPECT_NE(said_of("seq(float[N, 4])", list), "");
  EXPECT_NE(said_of("seq(seq(float))", list), "");
  EXPECT_NE(said_of("seq(float)", HostValue::sequence({list}, DType::kFloat32, memory)), "");
  EXPECT_EQ(said_of("optional(float[N, 3])", pair), "");
  EXPECT_EQ(said_of("optional(float[N, 3])", HostValue::optional(pair)), "");
  EXPECT_NE(said_of("optional(seq(float))", HostValue::optional(pair)), "");
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
    for (const std::uint64_t seed : {1U, 2U}) ran += run_case(name, *model, seed) ? 1 : 0;
  }
  EXPECT_GT(ran, cases / 2) << "of " << cases;
}

INSTANTIATE_TEST_SUITE_P(OfBackendTests, DrawnInputs, testing::Range(0, 4));

}  // namespace
}  // namespace tensorlint::runtime
