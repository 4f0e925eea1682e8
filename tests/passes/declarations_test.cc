// Where facts begin: declared inputs, initializers, what the user says of an input; and declarations of results.
#include <cmath>

#include "tests/passes/solved.h"

namespace tensorlint::dataflow {
namespace {

Solved relu_of(std::string_view input, const AnalysisOptions& options = {}) {
  return Solved(with_header(fmt::format("g ({} x) => (y) {{ y = Identity(x) }}", input)), options);
}

// ---- inputs

TEST(Declarations, OfInputs) {
  EXPECT_EQ(relu_of("float[2, N]").fact("x"), "float32[2, N]");
  EXPECT_EQ(relu_of("seq(float[N])").fact("x"), "seq(float32[?])");
  EXPECT_EQ(relu_of("seq(float[4])").fact("x"), "seq(float32[4])");
  EXPECT_EQ(relu_of("optional(int64[2])").fact("x"), "optional(int64[2])");
  EXPECT_EQ(relu_of("sparse_tensor(float[3])").fact("x"), "sparse float32[3]");
}

TEST(Declarations, NamesOfExtents) {
  // A name has a letter; a word that stands for nothing known is another extent each time.
  EXPECT_EQ(relu_of("float[a, Z, _, n1]").fact("y"), "float32[a, Z, _, n1]");
  EXPECT_EQ(relu_of("float[None, \"?\", \"-1\", \"12\"]").fact("y"), "float32[?, ?, ?, ?]");
  EXPECT_EQ(relu_of("float[\"z-1\", \"None1\"]").fact("y"), "float32[z-1, None1]");
}

TEST(Declarations, AnInitializerOfAnInputIsItsDefaultSinceIrVersion4) {
  const auto with_version = [](int version) {
    return Solved(
        fmt::format("<ir_version: {}, opset_import: [\"\": 13]>\ng (float[N] x, int64[2] k) => (y) <int64[2] k = {{4, "
                    "5}}> {{ y = Add(k, k) }}",
                    version));
  };
  EXPECT_EQ(with_version(3).content("y"), "8 10");
  EXPECT_EQ(with_version(4).content("y"), "none");
  EXPECT_EQ(with_version(4).fact("y"), "int64[2]");
}

TEST(Declarations, ADefaultGivesTheTypeWhereNoneIsDeclared) {
  const Solved solved(
      "<ir_version: 4, opset_import: [\"\": 13]>\ng (k) => (y) <int64[2] k = {4, 5}> { y = Add(k, k) }");
  EXPECT_EQ(solved.fact("y"), "int64[2]");
  EXPECT_EQ(solved.content("y"), "none");
  EXPECT_LT(solved.range("k").lo, -1e18);
}

// ---- what the user says

AnalysisOptions with(InputDeclaration declaration) {
  AnalysisOptions options;
  options.values["x"] = std::move(declaration);
  return options;
}

TEST(Declarations, OfTheUser) {
  InputDeclaration shape;
  shape.has_shape = true;
  shape.dims = {"2", "batch", "?", "-1", "3x"};
  EXPECT_EQ(relu_of("float[N]", with(shape)).fact("y"), "float32[2, batch, ?, -1, 3x]");
  shape.dims = {"0", "12"};
  EXPECT_EQ(relu_of("float[N]", with(shape)).fact("y"), "float32[0, 12]");
  InputDeclaration dtype;
  dtype.dtypes = DType::kInt8;
  EXPECT_EQ(relu_of("float[N]", with(dtype)).fact("y"), "int8[N]");
  EXPECT_EQ(relu_of("float[N]", with(dtype)).range("y"), (Range{-128, 127, false}));
  InputDeclaration range;
  range.range = Range{0, 1, false};
  EXPECT_EQ(relu_of("float[N]", with(range)).range("y"), (Range{0, 1, false}));
  EXPECT_EQ(relu_of("float[N]", with(range)).fact("y"), "float32[N]");
  EXPECT_TRUE(std::isinf(relu_of("float[N]").range("y").hi));
}

// ---- initializers

TEST(Declarations, OfInitializers) {
  const Solved solved(with_header(R"(g () => (y)
    <int64[2] k = {4, 5}, float[3] f = {0.5, 1, 2}, bool b = {1}, int64[0] e = {}> { y = Identity(f) })"));
  EXPECT_EQ(solved.content("k"), "4 5");
  EXPECT_EQ(solved.range("k"), (Range{4, 5, false}));
  EXPECT_EQ(solved.content("y"), "0.5 1 2");
  EXPECT_EQ(solved.range("y"), (Range{0.5, 2, false}));
  EXPECT_EQ(solved.content("b"), "1");
  EXPECT_EQ(solved.fact("e"), "int64[0]");
}

// ---- results

std::vector<std::string> faults(std::string_view nodes, std::string_view output, std::string_view noted = "") {
  return Solved(with_header(fmt::format("g (float[N, 3] x) => ({}){} {{ {} }}", output, noted, nodes))).messages();
}

TEST(Declarations, OfResultsAgreeWithWhatIsInferred) {
  EXPECT_EQ(faults("y = Relu(x)", "float[N, 3] y"), Labels{});
  EXPECT_EQ(faults("y = Relu(x)", "float[M, 3] y"), Labels{});
  EXPECT_EQ(faults("y = Relu(x)", "y"), Labels{});
  EXPECT_EQ(faults("y = Relu(x)", "int64[N, 3] y"), Labels{"declared_type: {r0} is declared as int64 but is float32"});
  EXPECT_EQ(faults("y = Relu(x)", "float[N, 4] y"),
            Labels{"declared_shape: {r0} is declared with shape [N, 4] but has shape [N, 3]"});
  EXPECT_EQ(faults("y = Relu(x)", "float[N] y"),
            Labels{"declared_shape: {r0} is declared with shape [N] but has shape [N, 3]"});
  EXPECT_EQ(faults("y = Relu(x)", "seq(float[3]) y").size(), 1U);
  EXPECT_EQ(faults("z = Relu(x) y = Relu(z)", "float[N, 3] y", " <float[N, 4] z>"),
            Labels{"noted_shape: {r0} is declared with shape [N, 4] but has shape [N, 3]"});
}

TEST(Declarations, OfResultsSayWhatIsNotInferred) {
  const Solved solved(
      with_header("g (float[N, 3] x) => (float[2, M] y, z) <float[4, K] u> "
                  "{ y = other.Thing(x) u = NonZero(x) z = other.Thing(u) }"));
  EXPECT_EQ(solved.fact("y"), "float32[2, M]");
  EXPECT_EQ(solved.fact("z"), "unknown");
  // In a body a name is another extent in each visit.
  const Solved inside(with_header(R"(g (bool c, float[N, 3] x) => (y) {
    y = If(c) <
      then_branch = a () => (float[2, M] t) { t = other.Thing(x) },
      else_branch = b () => (float[2, M] e) { e = other.Thing(x) } >
  })"));
  EXPECT_EQ(inside.fact("t"), "float32[2, ?]");
}

// ---- questions about an analysis

TEST(Declarations, UsersInTheOrderOfTheFile) {
  const Solved solved(with_header("g (float[3] x, float[3] w) => (y) { a = Add(x, x) b = Relu(w) y = Add(a, x) }"));
  const auto users = [&](std::string_view name) {
    std::string text;
    for (const NodeId node : solved.analysis().users(solved.value(name)))
      text += fmt::format("{} ", static_cast<std::uint32_t>(node));
    return text;
  };
  EXPECT_EQ(users("x"), "0 0 2 ");
  EXPECT_EQ(users("w"), "1 ");
  EXPECT_EQ(users("a"), "2 ");
  EXPECT_EQ(users("b"), "");
  EXPECT_EQ(users("y"), "");
}

TEST(Declarations, ReasonsAndFailuresOfNodes) {
  const Solved solved(with_header("g (float[3] x, float[4] w) => (y) { a = Add(x, w) y = Relu(w) }"));
  const Analysis& analysis = solved.analysis();
  EXPECT_TRUE(analysis.has_failed(NodeId{0}));
  EXPECT_FALSE(analysis.has_failed(NodeId{1}));
  EXPECT_EQ(analysis.reason(NodeId{0}), "");
  ASSERT_NE(analysis.fatal_violation(), nullptr);
  EXPECT_EQ(analysis.fatal_violation()->node, NodeId{0});
  const Solved unknown(with_header("g (float[3] x) => (y) { a = Relu(x) y = other.Thing(a) }"));
  EXPECT_EQ(unknown.analysis().reason(NodeId{0}), "");
  EXPECT_EQ(unknown.analysis().reason(NodeId{1}), "the operator is not known");
  const Solved warned(with_header("g (float[3] x) => (float[4] y) { y = Relu(x) }"));
  EXPECT_EQ(warned.messages().size(), 1U);
  EXPECT_EQ(warned.analysis().fatal_violation(), nullptr);
}

std::string origin(const Solved& solved, std::string_view name, Aspect aspect) {
  const Origin origin = origin_of(solved.analysis(), solved.value(name), aspect);
  const Model& model = solved.model();
  return fmt::format("{}{}", model.text(model.value(origin.value).name),
                     origin.node == NodeId::kNone ? "" : " by its node");
}

TEST(Declarations, OriginsOfAnAspect) {
  const Solved solved(with_header(R"(g (float[N, 3] x, float[3] w) => (y) {
    a = Relu(x)
    b = Transpose(a)
    c = Cast <to = 11> (b)
    y = Identity(c)
  })"));
  EXPECT_EQ(origin(solved, "y", Aspect::kDtype), "c by its node");
  EXPECT_EQ(origin(solved, "b", Aspect::kDtype), "x");
  EXPECT_EQ(origin(solved, "y", Aspect::kShape), "b by its node");
  EXPECT_EQ(origin(solved, "a", Aspect::kShape), "x");
  EXPECT_EQ(origin(solved, "a", Aspect::kValue), "a by its node");
  EXPECT_EQ(origin(solved, "b", Aspect::kValue), "a by its node");
  EXPECT_EQ(origin(solved, "w", Aspect::kDtype), "w");
}

}  // namespace
}  // namespace tensorlint::dataflow
