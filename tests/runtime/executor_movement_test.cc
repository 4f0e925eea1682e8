// Operators that move elements on the emulated device: each against its evaluator, bit by bit, and what stays with the
// interpreter.
#include <string>
#include <string_view>
#include <utility>

#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

class ExecutingMovement : public Executing {
 protected:
  /// The kernel of `y`, whose elements have to be the interpreter's.
  std::string of(std::string_view graph) { return places(graph, 0).at("y"); }
};

TEST_F(ExecutingMovement, EveryOperatorAndWidth) {
  const std::pair<std::string_view, std::string_view> calls[] = {
      {"y = Transpose (x)", "move transpose"},
      {"y = Transpose <perm = [1, 0, 2]> (x)", "move transpose"},
      {"y = Reshape (x, s)", "view"},
      {"y = Flatten (x)", "view"},
      {"y = Unsqueeze (x, one)", "view"},
      {"y = Identity (x)", "view"},
      {"y = Expand (x, e)", "move expand"},
      {"y = Tile (x, r)", "move tile"},
      {"y = Slice (x, b, c, a, t)", "move slice"},
      {"y = Concat <axis = 1> (x, x, u)", "move concat of 3"},
      {"y = Concat <axis = -1> (x, x)", "move concat of 2"},
      {"y = Gather <axis = 1> (x, i)", "move gather"},
      {"y = Gather (x, i)", "move gather"},
  };
  for (const std::string_view dtype : {"double", "float", "float16", "int8", "int64", "uint16", "bool"}) {
    for (const auto& [call, kernel] : calls)
      EXPECT_EQ(of(fmt::format(
                    "g ({0}[4, 6, 8] x, {0}[4, 1, 8] u) => (y) {{\n"
                    " s = Constant <value = int64[2] {{12, 16}}> ()\n one = Constant <value = int64[1] {{1}}> ()\n"
                    " e = Constant <value = int64[4] {{3, 4, 6, 8}}> ()\n"
                    " r = Constant <value = int64[3] {{2, 1, 3}}> ()\n"
                    " a = Constant <value = int64[2] {{0, 2}}> ()\n b = Constant <value = int64[2] {{3, 7}}> ()\n"
                    " c = Constant <value = int64[2] {{0, -8}}> ()\n t = Constant <value = int64[2] {{-2, -3}}> ()\n"
                    " i = Constant <value = int64[2, 2] {{3, -1, 0, 3}}> ()\n {1}\n}}",
                    dtype, call)),
                kernel)
          << dtype << " " << call;
  }
}

TEST_F(ExecutingMovement, PadsAndBlocks) {
  const std::string_view head =
      "g (float[2, 8, 4, 6] x) => (y) {\n v = Constant <value = float {2.5}> ()\n"
      " p = Constant <value = int64[8] {0, 0, 1, 2, 0, 0, 3, 2}> ()\n"
      " n = Constant <value = int64[8] {0, -2, 1, 0, 0, 3, -1, -1}> ()\n"
      " q = Constant <value = int64[4] {1, 2, 2, 1}> ()\n a = Constant <value = int64[2] {-1, 2}> ()\n";
  const auto with = [&](std::string_view call) { return of(fmt::format("{}{}\n}}", head, call)); };
  EXPECT_EQ(with("y = Pad (x, p)"), "move pad constant");
  EXPECT_EQ(with("y = Pad (x, n, v)"), "move pad constant");
  EXPECT_EQ(with("y = Pad (x, q, v, a)"), "move pad constant");
  for (const std::string_view mode : {"edge", "reflect", "wrap"}) {
    EXPECT_EQ(with(fmt::format("y = Pad <mode = \"{}\"> (x, p)", mode)), fmt::format("move pad {}", mode));
    EXPECT_EQ(with(fmt::format("y = Pad <mode = \"{}\"> (x, n)", mode)), "host: there is no kernel for it");
  }
  for (const std::string_view mode : {"DCR", "CRD"}) {
    EXPECT_EQ(with(fmt::format("y = DepthToSpace <blocksize = 2, mode = \"{}\"> (x)", mode)), "move blocks");
  }
  EXPECT_EQ(with("y = SpaceToDepth <blocksize = 2> (x)"), "move blocks");
}

TEST_F(ExecutingMovement, Indices) {
  // From -1 to 1, some of them several times.
  const auto with = [&](std::string_view inputs, std::string_view index, std::string_view shape,
                        std::string_view call) {
    return of(
        fmt::format("g ({0}, {1}{2} k) => (y) {{\n d = Constant <value = {1} {{3}}> ()\n"
                    " one = Constant <value = {1} {{1}}> ()\n m = Mod (k, d)\n i = Sub (m, one)\n y = {3}\n}}",
                    inputs, index, shape, call));
  };
  for (const std::string_view index : {"int32", "int64"}) {
    EXPECT_EQ(with("float[5, 4] x", index, "[7]", "Gather <axis = 1> (x, i)"), "move gather");
    EXPECT_EQ(with("float[5, 4, 3] x", index, "[2, 4, 3]", "GatherElements (x, i)"), "move gather elements");
  }
  EXPECT_EQ(with("float[5, 4, 3] x", "int64", "[6, 2]", "GatherND (x, i)"), "move gather tuples");
  EXPECT_EQ(with("float[2, 4, 3] x", "int64", "[2, 6, 1]", "GatherND <batch_dims = 1> (x, i)"), "move gather tuples");
  EXPECT_EQ(with("float[5, 4] x, float[3, 4] u", "int64", "[3, 4]", "ScatterElements (x, i, u)"),
            "move scatter elements");
  EXPECT_EQ(with("float16[5, 4] x, float16[9, 4] u", "int64", "[9, 1]", "ScatterND (x, i, u)"), "move scatter tuples");
  EXPECT_EQ(with("float[5, 4] x, float[3, 4] u", "int64", "[3, 4]", "ScatterElements <reduction = \"add\"> (x, i, u)"),
            "host: there is no kernel for updates that are combined with what is there");
}

TEST_F(ExecutingMovement, Fills) {
  for (const std::string_view type : {"double", "float", "float16", "bfloat16", "int8", "int32", "uint16", "uint64"}) {
    const auto where = places(
        fmt::format("g ({0}[30, 70] x) => (y, z) {{\n s = Shape (x)\n f = ConstantOfShape <value = {0}[1] {{3}}> (s)\n"
                    " y = Concat <axis = 0> (f, x)\n z = Shape (y)\n}}",
                    type),
        0);
    EXPECT_EQ(where.at("f"), "move fill") << type;
    EXPECT_EQ(where.at("y"), "move concat of 2") << type;
    EXPECT_EQ(where.at("z"), "host: its elements are known before the run");
    EXPECT_EQ(where.at("s"), "unused");  // the extents are the plan's
    EXPECT_EQ(copies_.bytes_in, copies_.bytes_out / 2) << type;
  }
  EXPECT_EQ(of("g (bool[70, 30] x) => (y) {\n s = Shape (x)\n y = ConstantOfShape <value = bool[1] {1}> (s)\n}"),
            "move fill");
  EXPECT_EQ(of("g (float[0, 3] x) => (y) {\n s = Shape (x)\n y = ConstantOfShape (s)\n}"), "move fill");
  EXPECT_EQ(of("g (float x) => (y) {\n s = Shape (x)\n y = ConstantOfShape (s)\n}"), "move fill");
  // The interpreter keeps what is made of constants alone; a kernel is not given it again in each run.
  const std::string_view head = "g (float[2, 3] x) => (y) {\n s = Constant <value = int64[2] {2, 3}> ()\n";
  EXPECT_EQ(places(fmt::format("{} f = ConstantOfShape (s)\n y = Add (x, f)\n}}", head)).at("f"), "move fill");
  EXPECT_EQ(copies_.in, 1U);
  const auto kept = places(fmt::format("{} f = ConstantOfShape (s)\n e = Exp (f)\n y = Add (x, e)\n}}", head));
  EXPECT_EQ(kept.at("f"), "host: its operands are constants");
  EXPECT_EQ(kept.at("s"), "host: it is a constant");
  EXPECT_EQ(of("g (float[2, 3] x) => (y) {\n s = Shape (x)\n y = ConstantOfShape <value = int64[1] {4}> (s)\n}"),
            "host: its elements are known before the run");
}

TEST_F(ExecutingMovement, Diagonals) {
  for (const std::string_view type : {"double", "float", "float16", "int8", "int64", "bool"})
    for (const auto& [extents, k] :
         {std::pair("4, 4", 0), std::pair("3, 7", 2), std::pair("7, 3", -4), std::pair("3, 4", 4), std::pair("3, 4", 9),
          std::pair("4, 3", -4), std::pair("5, 2", 1), std::pair("1, 1", 0), std::pair("0, 3", 0)}) {
      const auto where = places(fmt::format("g ({}[{}] x) => (y) {{ y = EyeLike <k = {}> (x) }}", type, extents, k), 0);
      EXPECT_EQ(where.at("y"), "move fill, diagonal") << type << extents << k;
      EXPECT_EQ(copies_.in, 0U);
    }
  EXPECT_EQ(of("g (int64[3, 4] x) => (y) { y = EyeLike <dtype = 11, k = -1> (x) }"), "move fill, diagonal");
}

TEST_F(ExecutingMovement, OneHot) {
  // Indices from -4 to 12, of an axis of 5.
  const auto with = [&](std::string_view index, std::string_view shape, std::string_view values,
                        std::string_view attributes = "") {
    return of(
        fmt::format("g ({0}[{1}] k, {2}[2] v) => (y) {{\n d = Constant <value = {0} {{17}}> ()\n"
                    " low = Constant <value = {0} {{-4}}> ()\n n = Constant <value = int64 {{5}}> ()\n"
                    " m = Mod (k, d)\n i = Add (m, low)\n y = OneHot <{3}> (i, n, v)\n}}",
                    index, shape, values, attributes));
  };
  for (const std::string_view index : {"int32", "int64"})
    for (const std::string_view values : {"double", "float", "float16", "int64", "uint8", "bool"})
      for (const std::string_view attributes : {"", "axis = 0", "axis = 1", "axis = -2"})
        EXPECT_EQ(with(index, "3, 40", values, attributes), "move one hot") << index << values << attributes;
  EXPECT_EQ(with("int64", "9", "float"), "move one hot");
  EXPECT_EQ(with("int64", "2, 0", "float"), "move one hot");
  EXPECT_EQ(with("int64", "16385", "float"), "host: there is no kernel for more than 16384 indices");
  EXPECT_EQ(of("g (float[3] k, float[2] v) => (y) {\n n = Constant <value = int64 {5}> ()\n y = OneHot (k, n, v)\n}"),
            "host: there is no kernel for float32");
}

TEST_F(ExecutingMovement, BadIndexNamesTheNode) {
  for (const std::string_view call : {"y = Gather (x, i)", "y = GatherND (x, j)", "y = ScatterND (x, j, u)"}) {
    const Result<Model> model = read_onnx_text(
        fmt::format(
            "{}g (float[5, 4] x, float[3, 4] u, int64[3] k) => (y) {{\n h = Constant <value = int64 {{3}}> ()\n"
            " i = Add (k, h)\n one = Constant <value = int64[1] {{1}}> ()\n j = Unsqueeze (i, one)\n [picks] {}\n}}",
            kHead, call),
        "m.onnxtxt");
    ASSERT_TRUE(model.ok()) << model.error().message;
    Memory memory(kMemory);
    std::vector<HostValue> inputs(3);
    HostTensor x(DType::kFloat32, {5, 4}, memory), u(DType::kFloat32, {3, 4}, memory), k(DType::kInt64, {3}, memory);
    for (float& element : x.as_mutable<float>()) element = 1;
    for (float& element : u.as_mutable<float>()) element = 2;
    k.as_mutable<std::int64_t>()[0] = 1;
    k.as_mutable<std::int64_t>()[1] = 2;
    k.as_mutable<std::int64_t>()[2] = 9;
    inputs[0] = HostValue(x);
    inputs[1] = HostValue(u);
    inputs[2] = HostValue(k);
    Executor executor(*model, memory, *device_);
    const auto outputs = executor.run(inputs);
    ASSERT_FALSE(outputs.ok());
    EXPECT_NE(outputs.error().message.find("2 indices lie outside of their axis, the first one at position 1"),
              std::string::npos)
        << outputs.error().message;
    EXPECT_TRUE(outputs.error().message.starts_with("node `picks`")) << outputs.error().message;
    EXPECT_EQ(device_->counts().live_blocks, 0U);
  }
}

TEST_F(ExecutingMovement, ViewsTakeNoMemoryOfTheirOwn) {
  const std::string_view head = "g (float[64, 32] x) => (y) {\n s = Constant <value = int64[2] {16, 128}> ()\n";
  constexpr std::uint64_t kBytes = 64 * 32 * 4;
  EXPECT_EQ(places(fmt::format("{} a = Softmax (x)\n b = Reshape (a, s)\n y = Softmax (b)\n}}", head)).at("b"), "view");
  EXPECT_EQ(peak_, 2 * kBytes);
  // Memory of the data lives as long as the last view, and a view as long as the data's last reader.
  EXPECT_EQ(
      places(fmt::format("{} a = Softmax (x)\n b = Reshape (a, s)\n c = Flatten <axis = 0> (b)\n d = Softmax (c)\n"
                         " e = Softmax (b)\n h = Softmax (a)\n t = Reshape (h, s)\n u = Mul (e, t)\n"
                         " y = ReduceSum (u)\n}}",
                         head))
          .at("c"),
      "view");
  // Of what comes from the host, and goes there; that both see.
  EXPECT_EQ(places(fmt::format("{} y = Reshape (x, s)\n}}", head)).at("y"), "view");
  EXPECT_EQ(peak_, kBytes);
  EXPECT_EQ(copies_.in + copies_.out, 2U);
  EXPECT_EQ(places("g (float[4, 6] x) => (a, b, y) {\n a = Exp (x)\n b = Flatten <axis = 0> (a)\n c = Sinh (b)\n"
                   " s = Constant <value = int64[2] {4, 6}> ()\n d = Reshape (c, s)\n y = Softmax (d)\n}")
                .at("d"),
            "view");
  EXPECT_EQ(places("g (float[4, 6] x) => (y) {\n a = Exp (x)\n b = Flatten (a)\n y = Exp (x)\n}").at("b"), "view");
}

TEST_F(ExecutingMovement, SplitsIntoSeveralResults) {
  const auto kernel = [&](std::string_view graph, int opset = 21) {
    const auto where = places(graph, 0, fmt::format("<ir_version: 10, opset_import: [\"\": {}]>\n", opset));
    const auto found = where.find("a");
    return found == where.end() ? std::string("none") : found->second;
  };
  for (const std::string_view dtype : {"double", "float16", "int64", "uint8", "bool"}) {
    EXPECT_EQ(kernel(fmt::format("g ({}[4, 7, 3] x) => (a, b, c) {{ a, b, c = Split <axis = 1, num_outputs = 3> (x) }}",
                                 dtype)),
              "move split into 3")
        << dtype;
  }
  const std::string_view sizes = " s = Constant <value = int64[3] {1, 0, 4}> ()\n";
  EXPECT_EQ(kernel(fmt::format("g (float[2, 5] x) => (a, b, c) {{\n{} a, b, c = Split <axis = -1> (x, s)\n}}", sizes)),
            "move split into 3");
  EXPECT_EQ(kernel(fmt::format("g (float[5, 2] x) => (a, b, c) {{\n{} a, b, c = Split (x, s)\n}}", sizes), 13),
            "move split into 3");
  EXPECT_EQ(kernel("g (float[5, 2] x) => (a, b) { a, b = Split <split = [3, 2]> (x) }", 11), "move split into 2");
  EXPECT_EQ(kernel("g (float[6, 2] x) => (a, b) { a, b = Split (x) }", 2), "move split into 2");
  EXPECT_EQ(kernel("g (float[0, 2] x) => (a, b) { a, b = Split <axis = 1> (x) }", 13), "move split into 2");
  EXPECT_EQ(kernel("g (float[5, 2] x) => (a) { a = Split <num_outputs = 1> (x) }"), "move split into 1");
  // A result without a name has what the others leave.
  EXPECT_EQ(kernel("g (float[6, 2] x) => (a, b) { a, , b = Split <split = [1, 2, 3]> (x) }", 11), "move split into 2");
  EXPECT_EQ(kernel("g (float[6, 4] x, int64[2] k) => (a, b) {\n z = Constant <value = int64[2] {0, 0}> ()\n"
                   " h = Constant <value = int64[2] {3, 3}> ()\n t = Mul (k, z)\n s = Add (t, h)\n"
                   " a, b = Split (x, s)\n}"),
            "host: its extents are not known before the run");
}

TEST_F(ExecutingMovement, PartsThatNothingReadsAreLeftOut) {
  const auto where = places(
      "g (float[6, 4] x) => (y, z) {\n a, b, c = Split <num_outputs = 3> (x)\n d = Exp (c)\n"
      " y = Transpose (d)\n z = Identity (a)\n}");
  EXPECT_EQ(where.at("a"), "move split into 2");
  EXPECT_EQ(where.at("y"), "move transpose");
  // The whole comes in; two results go out.
  EXPECT_EQ(copies_.in, 1U);
  EXPECT_EQ(copies_.out, 2U);
  EXPECT_EQ(places("g (float[6, 4] x) => (y) {\n a, b = Split <num_outputs = 2> (x)\n y = Exp (x)\n}").at("a"),
            "host: nothing reads what it makes");
  // One of the parts is read by the host alone, another one in a body.
  const auto split = places(
      "g (float[6, 4] x, bool[1] q) => (y, z) {\n a, b = Split <num_outputs = 2> (x)\n y = Sinh (b)\n"
      " z = If (q) <then_branch = t () => (m) { m = Exp (a) }, else_branch = e () => (n) { n = Neg (a) }>\n}");
  EXPECT_EQ(split.at("a"), "move split into 2");
}

TEST_F(ExecutingMovement, WhatIsMovedStaysOnTheDevice) {
  // One copy there, one back: nothing between them sees the host.
  const auto where = places(
      "g (float[4, 6] x) => (y) {\n a = Exp (x)\n b = Transpose (a)\n s = Constant <value = int64[2] {8, 3}> ()\n"
      " c = Reshape (b, s)\n d = Concat <axis = 1> (c, c)\n y = ReduceSum <keepdims = 0> (d)\n}");
  EXPECT_EQ(where.at("d"), "move concat of 2");
  EXPECT_EQ(copies_.in + copies_.out, 2U);
  EXPECT_EQ(places("g (float[2, 3] x) => (y) {\n s = Shape (x)\n z = Constant <value = int64[1] {0}> ()\n"
                   " y = Gather (s, z)\n}")
                .at("y"),
            "host: its elements are known before the run");
  EXPECT_EQ(places("g (float[0, 3] x) => (y) { y = Transpose (x) }").at("y"), "move transpose");
}

}  // namespace
}  // namespace tensorlint::runtime
