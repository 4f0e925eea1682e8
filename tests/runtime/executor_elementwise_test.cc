// Element by element operators on the emulated device: each of them against its evaluator, what is one call and what is
// not, and why something stays with the interpreter.
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/values/codec.h"
#include "tests/runtime/executing.h"

namespace tensorlint::runtime {
namespace {

class ExecutingElements : public Executing {
 protected:
  /// The same model on values of our own, of which all outputs have to agree.
  void compare(std::string_view graph, const std::vector<std::vector<double>>& values, double tolerance) {
    const Result<Model> model = read_onnx_text(fmt::format("{}{}", kHead, graph), "m.onnxtxt");
    ASSERT_TRUE(model.ok()) << model.error().message;
    Memory memory(kMemory);
    std::vector<HostValue> inputs;
    const auto& names = model->graph(GraphId::kMain).inputs;
    for (std::size_t k = 0; k < names.size(); ++k) {
      const auto& given = values[k % values.size()];
      const DType dtype = static_cast<DType>(model->value(names[k]).type->element_code);
      Extents extents;
      if (model->value(names[k]).type->dims.size() == 1) extents.push_back(static_cast<std::int64_t>(given.size()));
      HostTensor tensor(dtype, extents, memory);
      for (std::size_t i = 0; i < given.size(); ++i) {
        const double value = given[(i * (k + 1) + k) % given.size()];
        const auto whole = static_cast<std::int64_t>(std::isfinite(value) && std::fabs(value) < 1e18 ? value : 77);
        if (DTypeSet::floats().contains(dtype)) {
          store(tensor, i, 1, &value);
        } else {
          store(tensor, i, 1, &whole);
        }
      }
      inputs.emplace_back(std::move(tensor));
    }
    const auto expected = Interpreter(*model, memory).run(inputs);
    Executor executor(*model, memory, *device_);
    const auto outputs = executor.run(inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    for (const NodePlace& place : executor.plan().places)
      EXPECT_EQ(place.kind, NodePlace::Kind::kKernel) << model->label(place.node) << ": " << place.reason;
    for (std::size_t i = 0; i < outputs->size(); ++i)
      EXPECT_EQ(disagreement((*outputs)[i], (*expected)[i], {tolerance, tolerance}), "")
          << model->name_of(model->graph(GraphId::kMain).outputs[i]);
  }

  /// A model with a node for each call, all of them outputs: "Neg (x)".
  static std::string model_of(std::string_view inputs, const std::vector<std::string>& calls) {
    std::string outputs, nodes;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      outputs += fmt::format("{}y{}", i == 0 ? "" : ", ", i);
      nodes += fmt::format(" y{} = {}\n", i, calls[i]);
    }
    return fmt::format("g ({}) => ({}) {{\n{}}}", inputs, outputs, nodes);
  }
};

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const std::vector<double> kSpecial = {0.0, -0.0, 1,    -1,    0.5,   -0.5, 1.5,   2.5, -2.5,     3,         -3,   7,
                                      -7,  100,  1e-5, -1e-5, 60000, 12.5, -12.5, 0.1, INFINITY, -INFINITY, kNaN, 1e-7};

const std::vector<std::string> kExact = {"Add (x, y)",
                                         "Sub (x, y)",
                                         "Mul (x, y)",
                                         "Div (x, y)",
                                         "Mod <fmod = 1> (x, y)",
                                         "Min (x, y, z)",
                                         "Max (x, y, z)",
                                         "Max (x)",
                                         "Sum (x, y)",
                                         "Neg (x)",
                                         "Abs (x)",
                                         "Sign (x)",
                                         "Relu (x)",
                                         "Sqrt (x)",
                                         "Reciprocal (x)",
                                         "LeakyRelu (x)",
                                         "Floor (x)",
                                         "Ceil (x)",
                                         "Round (x)",
                                         "Equal (x, y)",
                                         "Greater (x, y)",
                                         "Less (x, y)",
                                         "GreaterOrEqual (x, y)",
                                         "LessOrEqual (x, y)",
                                         "IsNaN (x)",
                                         "Where (c, x, y)",
                                         "LeakyRelu <alpha = 0.25> (x)"};
const std::vector<std::string> kOthers = {"Exp (x)",
                                          "Log (x)",
                                          "Erf (x)",
                                          "Tanh (x)",
                                          "Sigmoid (x)",
                                          "Elu <alpha = 0.75> (x)",
                                          "Gelu (x)",
                                          "HardSwish (x)",
                                          "HardSigmoid (x)",
                                          "Softplus (x)",
                                          "Sin (x)",
                                          "Cos (x)",
                                          "Elu (x)",
                                          "Gelu <approximate = \"tanh\"> (x)",
                                          "HardSigmoid <alpha = 0.3, beta = 0.4> (x)"};

/// Without those that opset 21 has not for bfloat16.
std::vector<std::string> declared(std::vector<std::string> calls, std::string_view dtype) {
  if (dtype == "bfloat16")
    std::erase_if(calls, [](const std::string& call) {
      for (const std::string_view name : {"Round", "Elu", "HardS", "Softplus", "Sin", "Cos"})
        if (call.starts_with(name)) return true;
      return false;
    });
  return calls;
}

TEST_F(ExecutingElements, EveryOperatorOnSpecialValues) {
  const auto n = kSpecial.size();
  for (const auto& [name, unit] : {std::pair("double", 0x1p-52), std::pair("float", 0x1p-23),
                                   std::pair("float16", 0x1p-10), std::pair("bfloat16", 0x1p-7)}) {
    SCOPED_TRACE(name);
    const std::string inputs = fmt::format("{0}[{1}] x, {0}[{1}] y, {0}[{1}] z, bool[{1}] c", name, n);
    compare(model_of(inputs, declared(kExact, name)), {kSpecial}, 0);
    // Powers of large numbers have the error of the logarithm; 8 units else.
    compare(model_of(inputs, declared(kOthers, name)), {kSpecial}, 8 * unit);
    compare(model_of(inputs, {"Pow (x, y)"}), {{0.5, 1.5, 2, 3, 0.1, 4}}, 8 * unit);
    compare(fmt::format("g ({0}[{1}] x, {0} least, {0} most) => (a, b, c, d) {{\n a = Clip (x)\n b = Clip (x, least)\n"
                        " c = Clip (x, , most)\n d = Clip (x, most, least)\n}}",
                        name, n),
            {kSpecial, {-1.5}, {2}}, 0);
  }
}

TEST_F(ExecutingElements, EveryOperatorOnIntegers) {
  const std::vector<std::string> calls = {
      "Add (x, y)",      "Sub (x, y)",     "Mul (x, y)",        "Min (x, y, z)", "Max (x, y)",
      "Abs (x)",         "Sign (x)",       "Equal (x, y)",      "Less (x, y)",   "GreaterOrEqual (x, y)",
      "Where (c, x, y)", "Greater (x, y)", "LessOrEqual (x, y)"};
  std::vector<double> values;
  for (int i = -40; i < 40; ++i) values.push_back(i * 1013.0 * (i % 3 == 0 ? 1e6 : 1));
  for (const std::string_view name : {"int8", "int16", "int32", "int64", "uint8"}) {
    SCOPED_TRACE(name);
    auto all = calls;
    if (name != "uint8") all.insert(all.end(), {"Neg (x)"});
    if (name == "int32" || name == "int8") all.insert(all.end(), {"Relu (x)", "Clip (x)"});
    compare(model_of(fmt::format("{0}[{1}] x, {0}[{1}] y, {0}[{1}] z, bool[{1}] c", name, values.size()), all),
            {values}, 0);
  }
  EXPECT_EQ(places("g (int64[9] x) => (y) {\n d = Constant <value = int64[3] {-3, 2, -1}> ()\n"
                   " s = Constant <value = int64[2] {3, 3}> ()\n r = Reshape (x, s)\n y = Div (r, d)\n}")
                .at("y"),
            "elementwise Div");
  EXPECT_EQ(places("g (int64[9] x) => (y) {\n d = Constant <value = int64 {3}> ()\n y = Pow (x, d)\n}").at("y"),
            "elementwise Pow");
  compare(model_of("bool[4] x, bool[4] y", {"And (x, y)", "Or (x, y)", "Xor (x, y)", "Not (x)", "Equal (x, y)"}),
          {{0, 1, 1, 0}, {0, 0, 1, 1}}, 0);
}

TEST_F(ExecutingElements, EveryCast) {
  const std::pair<std::string_view, int> dtypes[] = {{"float", 1},   {"uint8", 2},    {"int8", 3}, {"int16", 5},
                                                     {"int32", 6},   {"int64", 7},    {"bool", 9}, {"float16", 10},
                                                     {"double", 11}, {"bfloat16", 16}};
  std::vector<double> values = kSpecial;
  for (const double x : {127.5, 128.0, 255.5, 256.0, 32768.0, 2147483648.0, 16777217.0, 16777219.0, 4294967297.0,
                         9007199254740993.0, 1.00048828125, 1.00390625, 65519.0, 65520.0, 1e300, 3.4e38})
    values.push_back(x);
  for (const auto& [from, ignored] : dtypes) {
    SCOPED_TRACE(from);
    std::vector<std::string> casts;
    for (const auto& [to, number] : dtypes)
      if (to != from) casts.push_back(fmt::format("Cast <to = {}> (x)", number));
    compare(model_of(fmt::format("{}[{}] x", from, values.size()), casts), {values}, 0);
  }
}

TEST_F(ExecutingElements, ChainsAreOneCall) {
  // Gelu as it was exported before it was an operator: numbers are no operands, and nothing but x is copied.
  auto where = places(
      "g (float[6, 40] x) => (float[6, 40] y) {\n s = Constant <value = float {1.41421354}> ()\n"
      " one = Constant <value = float {1}> ()\n h = Constant <value = float {0.5}> ()\n"
      " d = Div (x, s)\n e = Erf (d)\n a = Add (e, one)\n m = Mul (x, a)\n y = Mul (m, h)\n}");
  EXPECT_EQ(where.at("y"), "elementwise Div, Erf, Add, Mul, Mul");
  EXPECT_EQ(where.at("e"), "part of `#7(Mul)`");
  EXPECT_EQ(where.at("one"), "unused");
  EXPECT_EQ(copies_, (ExecutionPlan::Copies{.in = 1, .bytes_in = 960, .out = 1, .bytes_out = 960}));
  // Both sides of a diamond, a bias and a mask.
  where = places(
      "g (float[6, 40] x, float[40] b, bool[6, 1] c) => (float[6, 40] y) {\n a = Add (x, b)\n s = Sigmoid (a)\n"
      " m = Mul (a, s)\n n = Not (c)\n y = Where (n, m, x)\n}");
  EXPECT_EQ(where.at("y"), "elementwise Add, Sigmoid, Mul, Where");
  EXPECT_EQ(where.at("n"), "elementwise Not") << "of other extents";
  EXPECT_EQ(copies_.in, 3U);
  EXPECT_EQ(copies_.out, 1U);
  // What others read, what is an output, and what is read by a body, stays a call of its own.
  where = places(
      "g (float[30] x, bool c) => (float[30] y, float[30] p, float[30] z) {\n a = Exp (x)\n p = Neg (a)\n"
      " q = Abs (p)\n r = Relu (q)\n y = Sqrt (r)\n z = If (c) <then_branch = t () => (float[30] u) { u = Neg (q) },"
      " else_branch = e () => (float[30] v) { v = Identity (q) }>\n}");
  EXPECT_EQ(where.at("y"), "elementwise Relu, Sqrt");
  EXPECT_EQ(where.at("q"), "elementwise Abs");
  EXPECT_EQ(where.at("p"), "elementwise Exp, Neg");
}

TEST_F(ExecutingElements, EachNodeOfAChainRounds) {
  // Float16 and bfloat16 by the bits: of a chain as the interpreter has it, which stores each result.
  for (const std::string_view name : {"float16", "bfloat16"})
    EXPECT_EQ(
        places(fmt::format("g ({0}[50, 7] x, {0}[50, 7] t, {0}[7] u) => (y) {{\n a = Add (x, t)\n b = Mul (a, u)\n"
                           " c = Sub (b, x)\n d = Div (c, t)\n e = Mul (d, d)\n y = Sqrt (e)\n}}",
                           name),
               0)
            .at("y"),
        "elementwise Add, Mul, Sub, Div, Mul, Sqrt");
  EXPECT_EQ(
      places("g (int8[90] x, int8[90] t) => (y) {\n a = Mul (x, t)\n b = Mul (a, a)\n y = Sub (b, x)\n}", 0).at("y"),
      "elementwise Mul, Mul, Sub");
}

TEST_F(ExecutingElements, CallsEndAndBeginAtCasts) {
  auto where = places(
      "g (int64[30] x, float[30] t) => (y) {\n f = Cast <to = 1> (x)\n m = Mul (f, t)\n e = Exp (m)\n"
      " i = Cast <to = 7> (e)\n j = Add (i, x)\n y = Cast <to = 10> (j)\n}",
      1e-3);
  EXPECT_EQ(where.at("i"), "elementwise Cast, Mul, Exp, Cast");
  EXPECT_EQ(where.at("y"), "elementwise Add, Cast");
  where = places(
      "g (double[30] x, float[30] t) => (y) {\n f = Cast <to = 11> (t)\n g = Greater (f, x)\n"
      " c = Cast <to = 11> (g)\n m = Mul (x, c)\n y = Cast <to = 1> (m)\n}");
  EXPECT_EQ(where.at("y"), "elementwise Cast, Greater, Cast, Mul, Cast");
  // Integers of 64 bits to bfloat16 round once, so not by way of float32.
  where = places("g (int64[30] x, bfloat16[30] t) => (y) {\n f = Cast <to = 16> (x)\n y = Mul (f, t)\n}", 0);
  EXPECT_EQ(where.at("f"), "elementwise Cast");
  EXPECT_EQ(where.at("y"), "elementwise Mul");
}

TEST_F(ExecutingElements, LongChainsAreSeveralCalls) {
  std::string graph = "g (float[40] x) => (y) {\n v0 = Abs (x)\n";
  for (int i = 1; i < 60; ++i) graph += fmt::format(" v{} = {} (v{})\n", i, i % 2 == 0 ? "Sqrt" : "Neg", i - 1);
  graph += " y = Neg (v59)\n}";
  const auto where = places(graph);
  int calls = 0;
  for (const auto& [name, place] : where) calls += place.starts_with("elementwise") ? 1 : 0;
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(copies_.in + copies_.out, 2U);
}

TEST_F(ExecutingElements, WhyNodesStayWithTheInterpreter) {
  EXPECT_EQ(places("g (float[30] x) => (y) {\n n = NonZero (x)\n y = Neg (n)\n}").at("y"),
            "host: its extents are not known before the run");
  EXPECT_EQ(places("g (uint32[30] x) => (y) { y = Add (x, x) }").at("y"), "host: there is no kernel for uint32");
  EXPECT_EQ(places("g (int32[4] x, int32[4] t) => (y) {\n o = Constant <value = int32 {1}> ()\n a = Abs (t)\n"
                   " d = Max (a, o)\n y = Div (x, d)\n}")
                .at("y"),
            "host: its divisor may be 0");
  EXPECT_EQ(
      places("g (float[2, 3] x) => (y) {\n s = Shape (x)\n o = Constant <value = int64 {1}> ()\n y = Add (s, o)\n}")
          .at("y"),
      "host: its elements are known before the run");
  EXPECT_EQ(
      places(
          "g (float[3] x) => (y, z) {\n c = Constant <value = float[3] {1, 2, 3}> ()\n y = Exp (c)\n z = Mul (x, y)\n}")
          .at("y"),
      "host: its operands are constants");
  EXPECT_EQ(places("g (float[1, 1, 1, 1, 1, 1, 1, 1, 2] x) => (y) { y = Neg (x) }").at("y"),
            "host: its result has more than 8 axes");
  EXPECT_EQ(places("g (float[3] x, float[3] t, float[3] u) => (y) { y = Sum (x, t, u) }").at("y"),
            "host: there is no kernel for more than two operands");
}

TEST_F(ExecutingElements, NothingAtAll) {
  EXPECT_EQ(places("g (float[0, 4] x, float[4] t) => (y) { y = Add (x, t) }").at("y"), "elementwise Add");
  EXPECT_EQ(places("g (float x) => (y) { y = Neg (x) }").at("y"), "elementwise Neg");
}

}  // namespace
}  // namespace tensorlint::runtime
