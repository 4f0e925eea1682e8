// Every version of every operator has inference, and calls of it are inferred.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "ir/ops/inference.h"
#include "ir/ops/tools/operator_table.h"
#include "ir/ops/tools/probe.h"
#include "ir/text/reader.h"
#include "passes/dataflow/analysis.h"
#include "tests/sanitized.h"

namespace tensorlint::ops {
namespace {

constexpr std::size_t kStride = stride(7);

std::string text_of(const OpSchema& schema) {
  return std::string(schema.domain) + "." + std::string(schema.name) + "-" + std::to_string(schema.since_version);
}

TEST(EveryVersion, HasInference) {
  std::size_t versions = 0;
  for (const OpSchema& schema : all_schemas()) {
    const OpEntry* entry = find_entry(schema.domain, schema.name, schema.since_version);
    ASSERT_NE(entry, nullptr) << text_of(schema);
    EXPECT_TRUE(entry->inference() != nullptr || entry->has(OpTrait::kControlFlow)) << text_of(schema);
    ++versions;
  }
  EXPECT_EQ(versions, 659U);
}

TEST(EveryVersion, IsInferredForSomeCall) {
  for (const OpSchema& schema : all_schemas()) {
    if (find_entry(schema.domain, schema.name, schema.since_version)->has(OpTrait::kControlFlow) || schema.deprecated)
      continue;
    const Probe found = probe(schema, kStride);
    EXPECT_GT(found.calls, 0) << text_of(schema);
    EXPECT_EQ(found.fault, "") << text_of(schema);
    EXPECT_TRUE(kStride > 1 || found.accepted > 0) << text_of(schema) << " takes none of " << found.calls << " calls";
  }
}

/// Why no call that is made up from the schema gives a result whose extents are all known.
struct Shapeless {
  std::string_view name, reason;
};
constexpr Shapeless kShapeless[] = {
    {"CastMap", "as many columns as the longest key allows, or as max_map says"},
    {"DictVectorizer", "the rank follows from the map's keys, which no fact holds"},
    {"ImageDecoder", "the size is in the encoded image"},
    {"LinearClassifier", "one column per label, and the schema requires none"},
    {"LpPool", "version 1 does not require kernel_shape"},
    {"Reshape", "version 1 does not require the attribute shape"},
    {"SequenceEmpty", "no element says a shape"},
    {"StringSplit", "as many columns as the longest text has parts"},
    {"TreeEnsembleClassifier", "one column per label, and the schema requires none"},
    {"TreeEnsembleRegressor", "one column per target, and the schema requires no n_targets"},
    {"ZipMap", "elements of maps have no shape"},
};

// The call of each version whose result is known best, as tests/ops/every_version.expected.txt has it. Execution holds
// the facts against values elsewhere (tests/soundness/operator_versions_test.py); here no version may lose its shape.
TEST(EveryVersion, HasShapes) {
  if (kStride > 1) GTEST_SKIP() << "tries each call, which takes long under the sanitizers";
  std::string text;
  std::set<std::string_view> used;
  for (const OpSchema& schema : all_schemas()) {
    if (find_entry(schema.domain, schema.name, schema.since_version)->has(OpTrait::kControlFlow) || schema.deprecated)
      continue;
    const Probe found = probe(schema);
    text += fmt::format("{} {}\n", text_of(schema), found.clearest);
    const auto* const listed = std::ranges::find(kShapeless, schema.name, &Shapeless::name);
    if (listed != std::end(kShapeless) && !found.shaped) used.insert(listed->name);
    EXPECT_TRUE(found.shaped || listed != std::end(kShapeless)) << text_of(schema) << " " << found.clearest;
  }
  for (const Shapeless& listed : kShapeless)
    EXPECT_TRUE(used.contains(listed.name)) << listed.name << " has a shape in each version";

  const std::string path = TENSORLINT_SOURCE_DIR "/tests/ops/every_version.expected.txt";
  if (std::getenv("TENSORLINT_UPDATE") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::stringstream written;
  written << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(written.str(), text) << "run `./dev update EveryVersion` and review the difference";
}

/// The result `y` of a graph under an opset, as text.
std::string solved(int opset, std::string_view graph) {
  const std::string text =
      "<ir_version: 10, opset_import: [\"\" : " + std::to_string(opset) + "]>\n" + std::string(graph);
  const Result<Model> model = read_onnx_text(text, "test.onnxtxt");
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  const dataflow::Analysis analysis = dataflow::analyse(*model, {});
  EXPECT_TRUE(analysis.violations().empty()) << opset;
  return analysis.facts().to_text(analysis.fact_id(model->find_value(GraphId::kMain, "y")));
}

TEST(EveryVersion, OfControlFlowIsFollowed) {
  constexpr std::string_view kIf =
      "g (bool c, float[N, 3] x) => (y) { y = If(c) <then_branch = a () => (float[N, 3] p) { p = Abs(x) }, "
      "else_branch = b () => (float[N, 3] q) { q = Neg(x) }> }";
  constexpr std::string_view kLoop =
      "g (int64 m, bool c, float[N, 3] x) => (y) { y = Loop(m, c, x) "
      "<body = b (int64 i, bool k, float[N, 3] s) => (bool l, float[N, 3] t) { l = Identity(k) t = Abs(s) }> }";
  constexpr std::string_view kScan =
      "g (float[3] x, float[N, 3] z) => (s, y) { s, y = Scan <num_scan_inputs = 1, "
      "body = b (float[3] a, float[3] e) => (float[3] n, float[3] o) { n = Abs(a) o = Neg(e) }> (x, z) }";
  constexpr std::string_view kBatchedScan =
      "g (float[B, 3] x, float[B, N, 3] z) => (s, y) { s, y = Scan <num_scan_inputs = 1, "
      "body = b (float[3] a, float[3] e) => (float[3] n, float[3] o) { n = Abs(a) o = Neg(e) }> (, x, z) }";
  constexpr std::string_view kMap =
      "g (seq(float[N, 3]) x) => (y) { y = SequenceMap(x) <body = b (float[N, 3] e) => (float[N, 3] o) { o = Abs(e) }> "
      "}";
  for (const OpSchema& schema : all_schemas()) {
    const int opset = schema.since_version;
    const OpEntry* entry = find_entry(schema.domain, schema.name, opset);
    if (!entry->has(OpTrait::kControlFlow)) continue;
    if (schema.name == "If")
      EXPECT_EQ(solved(opset, kIf), "float32[N, 3]") << opset;
    else if (schema.name == "Loop")
      EXPECT_EQ(solved(opset, kLoop), "float32[N, 3]") << opset;
    else if (schema.name == "Scan" && opset == 8)
      EXPECT_EQ(solved(opset, kBatchedScan), "float32[B, N, 3]");
    else if (schema.name == "Scan")
      EXPECT_EQ(solved(opset, kScan), "float32[N, 3]") << opset;
    else if (schema.name == "SequenceMap")
      EXPECT_EQ(solved(opset, kMap), "seq(float32[?, 3])") << opset;
    else
      ADD_FAILURE() << schema.name << " has no call here";
  }
}

TEST(EveryVersion, PageIsCurrent) {
  if (kSanitized) GTEST_SKIP() << "makes the whole table of operators, which takes long under the sanitizers";
  const std::string path = TENSORLINT_SOURCE_DIR "/docs/operators.md", page = operator_page();
  if (std::getenv("TENSORLINT_UPDATE") != nullptr) std::ofstream(path, std::ios::binary) << page;
  std::stringstream written;
  written << std::ifstream(path, std::ios::binary).rdbuf();
  EXPECT_EQ(written.str(), page) << "run `./dev ops --write`";
}

TEST(EveryVersion, ContribOperatorsWithoutInferenceAreListed) {
  if (kSanitized) GTEST_SKIP() << "makes the whole table of operators, which takes long under the sanitizers";
  const std::string lacking = operator_table(true);
  EXPECT_NE(lacking.find("\ncom.microsoft.AttnLSTM\n"), std::string::npos) << lacking;
  EXPECT_EQ(lacking.find("com.microsoft.FusedMatMul"), std::string::npos);
  EXPECT_EQ(operator_table(false).find("com.microsoft"), std::string::npos);
}

}  // namespace
}  // namespace tensorlint::ops
