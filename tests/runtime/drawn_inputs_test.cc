// Models of ONNX's backend tests on drawn inputs: every evaluator ends with results or with an error, whatever its
// operands hold, and each result lies inside its fact. Under the sanitizers this is what shows an index out of bounds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"
#include "runtime/files/drawn_inputs.h"
#include "runtime/files/runnable_inputs.h"
#include "runtime/interpreter/concrete_facts.h"
#include "runtime/interpreter/interpreter.h"
#include "tests/ops/backend_corpus.h"
#include "tests/sanitized.h"

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

/// Draws with each seed inside what the model asks for, and runs it; says what went wrong.
std::string run_drawn(std::string_view graph, std::uint64_t seed) {
  const Result<Model> model =
      read_onnx_text("<ir_version: 10, opset_import: [\"\": 18]>\n" + std::string(graph), "m.onnxtxt");
  if (!model) return model.error().message;
  Memory memory(kMemory);
  std::vector<HostValue> inputs(model->graph(GraphId::kMain).inputs.size());
  if (auto error =
          draw_inputs(*model, seed, memory, inputs, runnable_inputs(*model, seed, inputs, dataflow::meter_of(*model))))
    return error->message;
  Interpreter interpreter(*model, memory);
  const auto outputs = interpreter.run(std::move(inputs));
  return outputs ? "" : outputs.error().message;
}

TEST(DrawnIndices, FitWhatTheyBecome) {
  constexpr std::string_view kGraphs[]{
      // The score of each row's class, as exporters write `scores[arange(n), y]`: in the flat scores...
      "g (float[6, 5] scores, int64[6] y) => (float[6] z) { first = Constant <value_int = 0> () "
      "last = Constant <value_int = 6> () one = Constant <value_int = 1> () rows = Range (first, last, one) "
      "five = Constant <value_int = 5> () begins = Mul (rows, five) at = Add (begins, y) "
      "flat = Constant <value_ints = [-1]> () all = Reshape (scores, flat) z = Gather (all, at) }",
      // ... and by tuples.
      "g (float[6, 5] scores, int64[6] y) => (float[6] z) { first = Constant <value_int = 0> () "
      "last = Constant <value_int = 6> () one = Constant <value_int = 1> () rows = Range (first, last, one) "
      "end = Constant <value_ints = [1]> () a = Unsqueeze (rows, end) b = Unsqueeze (y, end) "
      "at = Concat <axis = -1> (a, b) z = GatherND (scores, at) }",
      // Counted from one.
      "g (float[10, 3] table, int64[4] t) => (float[4, 3] z) { one = Constant <value_int = 1> () at = Add (t, one) "
      "z = Gather (table, at) }",
      "g (float[8, 5] scores, int64[8] y) => (float z) { one = Constant <value_int = 1> () label = Add (y, one) "
      "z = SoftmaxCrossEntropyLoss (scores, label) }",
  };
  for (const std::string_view graph : kGraphs)
    for (std::uint64_t seed = 0; seed < 8; ++seed) EXPECT_EQ(run_drawn(graph, seed), "") << graph << ", seed " << seed;
}

TEST(DrawnLengths, AreWithinTheSequences) {
  constexpr std::string_view kGraphs[]{
      "g (float[S, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r, int32[2] n) => (float[S, 1, 2, 4] y) "
      "{ y = LSTM <hidden_size = 4> (x, w, r, , n) }",
      "g (float[3, B, 3] x, float[1, 12, 3] w, float[1, 12, 4] r, int32[B] n) => (float[3, 1, B, 4] y) "
      "{ y = GRU <hidden_size = 4> (x, w, r, , n) }",
      "g (float[B, 5, 3] x, float[1, 4, 3] w, float[1, 4, 4] r, int32[B] n) => (float[B, 5, 1, 4] y) "
      "{ y = RNN <hidden_size = 4, layout = 1> (x, w, r, , n) }",
      "g (float[T, B] x, int64[B] n) => (float[T, B] y) { y = ReverseSequence (x, n) }",
      // Of the steps that a Slice leaves.
      "g (float[4, 3] x, int64[3] n) => (float[2, 3] y) { a = Constant <value_ints = [0]> () "
      "b = Constant <value_ints = [2]> () s = Slice (x, a, b) y = ReverseSequence (s, n) }",
  };
  for (const std::string_view graph : kGraphs)
    for (std::uint64_t seed = 0; seed < 8; ++seed) EXPECT_EQ(run_drawn(graph, seed), "") << graph << ", seed " << seed;
}

TEST(DrawnIndices, ThatCannotFitAreTheFaultOfTheModel) {
  const std::string said = run_drawn(
      "g (float[4, 3] table, int64[4] t) => (float[4, 3] z) { nine = Constant <value_int = 9> () at = Add (t, nine) "
      "z = Gather (table, at) }",
      1);
  EXPECT_NE(said.find("outside [-4, 4)"), std::string::npos) << said;
}

class DrawnInputs : public testing::TestWithParam<int> {};

TEST_P(DrawnInputs, ResultsLieInsideTheirFacts) {
  const ops::Corpus& corpus = ops::Corpus::get();
  int ran = 0, cases = 0;
  unsigned number = 0;
  for (const ops::BackendCase& entry : corpus.cases) {
    if (entry.variant != "declared" || static_cast<int>(entry.name.back()) % 4 != GetParam()) continue;
    if (number++ % stride(4) != 0) continue;
    const Result<Model> model = ops::model_of(entry);
    ASSERT_TRUE(model.ok()) << entry.name;
    ++cases;
    for (const std::uint64_t seed : {1U, 2U}) ran += run_case(entry.name, *model, seed) ? 1 : 0;
  }
  EXPECT_GT(ran, cases / 2) << "of " << cases;
}

INSTANTIATE_TEST_SUITE_P(OfBackendTests, DrawnInputs, testing::Range(0, 4));

}  // namespace
}  // namespace tensorlint::runtime
