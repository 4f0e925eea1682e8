#include <cmath>

#include "tests/ops/op_test.h"

namespace tensorlint::ops {
namespace {

using Labels = std::vector<std::string>;

struct ContentCase {
  const char* op;
  int opset;
  std::initializer_list<std::string_view> a, b;
  const char* content;
};

TEST(Arithmetic, IntegerContents) {
  const ContentCase cases[] = {
      {"Add", 14, {"N", "1"}, {"2"}, "N + 2 3"},
      {"Sub", 14, {"N", "1"}, {"N"}, "0 -N + 1"},
      {"Mul", 14, {"N", "3"}, {"4"}, "4*N 12"},
      {"Div", 14, {"N", "7", "-7"}, {"2"}, "floor(N/2) 3 -3"},
      {"Mod", 13, {"N", "7", "-7"}, {"4"}, "mod(N, 4) 3 1"},
      {"Pow", 15, {"2", "-3"}, {"3"}, "8 -27"},
      {"Max", 13, {"N", "-1"}, {"0"}, "N 0"},
      {"Min", 13, {"5", "-1"}, {"0"}, "0 -1"},
      {"BitwiseAnd", 18, {"6", "5"}, {"4"}, "4 4"},
      {"Div", 14, {"-9223372036854775808", "1"}, {"-1"}, "? -1"},
      {"Mod", 13, {"-9223372036854775808", "1"}, {"-1"}, "0 0"},
      {"Add", 14, {"9223372036854775807", "1"}, {"1"}, "? 2"},
      {"Mul", 14, {"-9223372036854775808", "1"}, {"-1"}, "? -1"},
  };
  for (const ContentCase& c : cases) {
    SCOPED_TRACE(std::string(c.op) + " " + c.content);
    Op op(c.op, c.opset);
    const Outcome outcome = op.elements(c.a).elements(c.b).infer();
    EXPECT_EQ(op.content(outcome), c.content);
    EXPECT_EQ(outcome.failures, Labels{});
  }
}

TEST(Arithmetic, NarrowIntegersAndFloats) {
  Op wraps("Add", 14), half("Mul", 14), third("Div", 14), sign("Mod", 13);
  EXPECT_EQ(wraps.content(wraps.constant({2147483647, 1}, "int32[2]").constant({1}, "int32[]").infer()), "? 2");
  Op wrapped("Add", 14);
  EXPECT_EQ(wrapped.fact(wrapped.constant({2147483647, 3}, "int32[2]").constant({7}, "int32[]").infer()).range,
            (Range{-2147483648.0, 2147483647, false}));
  EXPECT_EQ(half.content(half.floats({3, 4}).floats({0.5}).infer()), "1.5 2");
  EXPECT_EQ(third.fact(third.floats({1}).floats({3}).infer()).range.lo, static_cast<double>(1.0F / 3.0F));
  EXPECT_EQ(sign.content(sign.constant({-7, 7}).constant({4}).with("fmod", 1).infer()), "-3 3");
}

TEST(Arithmetic, Ranges) {
  const auto range = [](const char* name, int opset, const char* dtype, Range a, Range b) {
    Op op(name, opset);
    return op
        .fact(op.in(std::string(dtype) + "[N]")
                  .range(a.lo, a.hi, a.nan)
                  .in(std::string(dtype) + "[N]")
                  .range(b.lo, b.hi, b.nan)
                  .infer())
        .range;
  };
  EXPECT_EQ(range("Add", 14, "int64", {0, 5, false}, {1, 2, false}), (Range{1, 7, false}));
  EXPECT_EQ(range("Mul", 14, "int32", {-2, 5, false}, {1, 3, false}), (Range{-6, 15, false}));
  EXPECT_EQ(range("Add", 14, "int8", {0, 100, false}, {0, 100, false}), (Range{-128, 127, false}));
  EXPECT_LT(range("Add", 14, "int64", {0, 0x1p53, false}, {1, 1, false}).lo, 0);  // 2^53 + 1 is no double
  EXPECT_EQ(range("Mod", 13, "int64", {-9, 9, false}, {1, 10, false}), (Range{0, 9, false}));
  EXPECT_EQ(range("Max", 13, "float32", {-1, 2, false}, {0, HUGE_VAL, true}), (Range{0, HUGE_VAL, true}));
  const Range sum = range("Add", 14, "float32", {0, 1, false}, {0, 1, false});
  EXPECT_TRUE(sum.lo <= 0 && sum.lo > -1e-30 && sum.hi >= 2 && sum.hi < 2.001 && !sum.nan);
  EXPECT_TRUE(range("Sub", 14, "float32", {0, HUGE_VAL, false}, {0, HUGE_VAL, false}).nan);
  EXPECT_TRUE(range("Mul", 14, "float32", {0, 1, false}, {0, HUGE_VAL, false}).nan);
}

TEST(Arithmetic, Failures) {
  EXPECT_EQ(Op("Div", 14).in("int64[N]").constant({2, 0}).infer().failures, Labels{"integer_divisor?"});
  EXPECT_EQ(Op("Div", 14).in("int64[2]").constant({2, 0}).infer().failures, Labels{"integer_divisor"});
  EXPECT_EQ(Op("Mod", 13).in("int32[2]").constant({0}, "int32[]").infer().failures, Labels{"integer_divisor"});
  EXPECT_EQ(Op("PRelu", 16).in("float32[2, 3]").in("float32[2]").infer().failures, Labels{"prelu_slope_shape"});
  EXPECT_EQ(Op("PRelu", 16).in("float32[2, 3]").in("float32[3]").infer().result(), "float32[2, 3]");
  EXPECT_EQ(Op("PRelu", 16).in("float32[3, 1]").in("float32[2, 1, 4]").infer().result(),
            "float32[2, 3, 4]");  // runtimes stretch the data, too
  EXPECT_EQ(Op("Mod", 13).in("float32[2]").in("float32[2]").infer().failures, Labels{"mod_of_floats"});
  EXPECT_TRUE(Op("Mod", 13).in("float32[2]").in("float32[2]").with("fmod", 1).infer().failures.empty());
  EXPECT_EQ(Op("Max", 13).in("float32[2]").absent().infer().failures, Labels{"operand_count"});
  EXPECT_EQ(Op("Max", 6).in("float32[2]").in("float32[3]").infer().failures, Labels{"same_shapes_until_opset_7"});
  EXPECT_EQ(Op("Sum", 13).in("float32[2, 1]").in("float32[3]").in("float32[4, 1, 1]").infer().result(),
            "float32[4, 2, 3]");
  EXPECT_EQ(Op("Mean", 13).in("float32[2]").in("float32[3]").infer().failures, Labels{"broadcastable"});
  EXPECT_EQ(Op("BitShift", 11).in("uint8[2]").in("uint8[2]").with("direction", "UP").infer().failures,
            Labels{"bit_shift_direction"});
  EXPECT_EQ(Op("SwiGLU", 28).in("float32[2, 3]").in("float32[2, 4]").infer().failures, Labels{"swiglu_shapes"});
}

TEST(Unary, EveryOperatorKeepsTheShape) {
  for (const char* name :
       {"Abs",        "Acos",     "Acosh",       "Asin",      "Asinh",     "Atan",    "Atanh", "Ceil",
        "Celu",       "Clip",     "Cos",         "Cosh",      "Dropout",   "Elu",     "Erf",   "Exp",
        "Floor",      "Gelu",     "HardSigmoid", "HardSwish", "LeakyRelu", "Log",     "Mish",  "Neg",
        "Reciprocal", "Relu",     "Round",       "Selu",      "Shrink",    "Sigmoid", "Sign",  "Sin",
        "Sinh",       "Softplus", "Softsign",    "Sqrt",      "Swish",     "Tan",     "Tanh",  "ThresholdedRelu"}) {
    const Outcome outcome = Op(name, 27).in("float32[N, 3]").infer();
    EXPECT_EQ(outcome.result(), "float32[N, 3]") << name;
    EXPECT_EQ(outcome.failures, Labels{}) << name;
  }
  EXPECT_EQ(Op("IsNaN", 20).in("float32[N]").infer().result(), "bool[N]");
  EXPECT_EQ(Op("Not", 1).in("bool[N]").infer().result(), "bool[N]");
}

/// Concrete values of a function lie inside the range that is inferred for its operand's range.
TEST(Unary, RangesContainTheValues) {
  const struct {
    const char* name;
    double (*function)(double);
  } cases[] = {
      {"Abs", [](double x) { return std::fabs(x); }},
      {"Acos", [](double x) { return std::acos(x); }},
      {"Asin", [](double x) { return std::asin(x); }},
      {"Atan", [](double x) { return std::atan(x); }},
      {"Atanh", [](double x) { return std::atanh(x); }},
      {"Acosh", [](double x) { return std::acosh(x); }},
      {"Asinh", [](double x) { return std::asinh(x); }},
      {"Sinh", [](double x) { return std::sinh(x); }},
      {"Cosh", [](double x) { return std::cosh(x); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Sin", [](double x) { return std::sin(x); }},
      {"Cos", [](double x) { return std::cos(x); }},
      {"Exp", [](double x) { return std::exp(x); }},
      {"Log", [](double x) { return std::log(x); }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
      {"Erf", [](double x) { return std::erf(x); }},
      {"Reciprocal", [](double x) { return 1 / x; }},
      {"Neg", [](double x) { return -x; }},
      {"Floor", [](double x) { return std::floor(x); }},
      {"Ceil", [](double x) { return std::ceil(x); }},
      {"Round", [](double x) { return std::nearbyint(x); }},
      {"Relu", [](double x) { return std::fmax(x, 0); }},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"Elu", [](double x) { return x < 0 ? std::exp(x) - 1 : x; }},
      {"Celu", [](double x) { return std::fmax(0, x) + std::fmin(0, std::exp(x) - 1); }},
      {"Selu", [](double x) { return 1.05070102 * (x <= 0 ? 1.67326319 * (std::exp(x) - 1) : x); }},
      {"Gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
      {"Mish", [](double x) { return x * std::tanh(std::log(1 + std::exp(x))); }},
      {"Swish", [](double x) { return x / (1 + std::exp(-x)); }},
      {"HardSigmoid", [](double x) { return std::fmax(0, std::fmin(1, 0.2 * x + 0.5)); }},
      {"HardSwish", [](double x) { return x * std::fmax(0, std::fmin(1, x / 6 + 0.5)); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Softplus", [](double x) { return std::log(1 + std::exp(x)); }},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"Sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : 0.0; }},
      {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }},
  };
  const Range operands[] = {{-3, 3, false},  {-0.5, 0.25, false}, {0, 10, false},
                            {1.5, 7, false}, {-20, -2, false},    {0.125, 0.75, false}};
  for (const auto& c : cases) {
    for (const Range& operand : operands) {
      Op op(c.name, 27);
      const Range range = op.fact(op.in("float32[3]").range(operand.lo, operand.hi).infer()).range;
      for (int i = 0; i <= 64; ++i) {
        const double x = operand.lo + (operand.hi - operand.lo) * i / 64, exact = c.function(x);
        const auto value = static_cast<double>(static_cast<float>(exact));
        EXPECT_TRUE(std::isnan(value) ? range.nan : range.lo <= value && value <= range.hi)
            << c.name << "(" << x << ") = " << value << " in " << range.to_text();
      }
    }
  }
}

TEST(Unary, NarrowRanges) {
  const auto range = [](const char* name, Range operand) {
    Op op(name, 20);
    return op.fact(op.in("float32[3]").range(operand.lo, operand.hi, operand.nan).infer()).range;
  };
  EXPECT_EQ(range("Sigmoid", Range{-HUGE_VAL, HUGE_VAL, false}), (Range{0, 1, false}));
  EXPECT_EQ(range("Relu", Range{}), (Range{0, HUGE_VAL, true}));
  EXPECT_EQ(range("Tanh", Range{}), (Range{-1, 1, true}));
  EXPECT_EQ(range("Exp", Range{-HUGE_VAL, 0, false}).lo, 0);
  EXPECT_LT(range("Exp", Range{-HUGE_VAL, 0, false}).hi, 1.001);
  EXPECT_TRUE(range("Sqrt", Range{-1, 1, false}).nan);
  EXPECT_EQ(range("Abs", Range{-3, 2, false}), (Range{0, 3, false}));
}

TEST(Unary, DomainsAndBounds) {
  const auto outside = [](const char* name, double lo, double hi) {
    return Op(name, 22).in("float32[3]").range(lo, hi).infer().failures;
  };
  EXPECT_EQ(outside("Log", -5, -1), Labels{"log_domain"});
  EXPECT_EQ(outside("Log", -5, 1), Labels{});
  EXPECT_EQ(outside("Sqrt", -5, -1), Labels{"sqrt_domain"});
  EXPECT_EQ(outside("Asin", 2, 3), Labels{"arc_domain"});
  EXPECT_EQ(outside("Acosh", -2, 0), Labels{"acosh_domain"});
  Op operands("Clip", 13), attributes("Clip", 6), content("Clip", 12);
  EXPECT_EQ(operands
                .fact(operands.in("float32[N]")
                          .floats({0}, "float32[]")
                          .range(0, 0)
                          .floats({6}, "float32[]")
                          .range(6, 6)
                          .infer())
                .range,
            (Range{0, 6, true}));
  EXPECT_EQ(attributes.fact(attributes.in("float32[N]").with("min", -1.0).with("max", 2.0).infer()).range,
            (Range{-1, 2, true}));
  EXPECT_EQ(content.content(content.elements({"N", "-4", "9"}).scalar(0).scalar(5).infer()), "min(N, 5) 0 5");
  EXPECT_EQ(Op("Clip", 13).in("float32[N]").in("float32[2]").infer().failures, Labels{"clip_scalar_bounds"});
  EXPECT_EQ(Op("Gelu", 20).in("float32[N]").with("approximate", "fast").infer().failures, Labels{"gelu_approximate"});
}

TEST(Dropout, Versions) {
  const auto run = [](Op& op) {
    const Outcome outcome = op.results(2).infer();
    return outcome.result(0) + " " + outcome.result(1) + " " + op.content(outcome);
  };
  Op seven("Dropout", 7), ten("Dropout", 10), evaluates("Dropout", 13), trains("Dropout", 13);
  EXPECT_EQ(run(seven.floats({1, 2})), "float32[2] float32[2] 1 2");
  EXPECT_EQ(run(ten.floats({1, 2})), "float32[2] bool[2] 1 2");
  EXPECT_EQ(run(evaluates.floats({1, 2}).floats({0.5}, "float32[]")), "float32[2] bool[2] 1 2");
  EXPECT_EQ(run(trains.floats({1, 2}).floats({0.5}, "float32[]").constant({1}, "bool[]")), "float32[2] bool[2] none");
  EXPECT_EQ(Op("Dropout", 13).in("float32[2]").floats({1.5}, "float32[]").constant({1}, "bool[]").infer().failures,
            Labels{"dropout_ratio"});
}

}  // namespace
}  // namespace tensorlint::ops
