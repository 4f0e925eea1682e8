// What elementwise operators make of one element, against the definitions of ONNX.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "ir/ops/entry.h"

namespace tensorlint::ops {
namespace {

double evaluate(std::string_view name, std::vector<double> operands, std::vector<Attribute> attributes = {}) {
  const OpEntry* entry = find_entry("", name, 21);
  EXPECT_NE(entry, nullptr) << name;
  EXPECT_NE(entry->element(), nullptr) << name;
  return entry->element()({operands, attributes});
}

Attribute number(std::string_view name, float value) {
  Attribute attribute;
  attribute.name = name;
  attribute.kind = AttributeKind::kFloat;
  attribute.f = value;
  return attribute;
}

TEST(Element, ArithmeticTakesItsOperandsInOrder) {
  EXPECT_DOUBLE_EQ(evaluate("Add", {3, 5}), 8);
  EXPECT_DOUBLE_EQ(evaluate("Sub", {3, 5}), -2);
  EXPECT_DOUBLE_EQ(evaluate("Mul", {3, 5}), 15);
  EXPECT_DOUBLE_EQ(evaluate("Div", {3, 5}), 0.6);
  EXPECT_DOUBLE_EQ(evaluate("Pow", {3, 5}), 243);
  EXPECT_DOUBLE_EQ(evaluate("PRelu", {-3, 5}), -15);
  EXPECT_DOUBLE_EQ(evaluate("PRelu", {3, 5}), 3);
  EXPECT_DOUBLE_EQ(evaluate("PRelu", {0, std::numeric_limits<double>::infinity()}), 0);
}

TEST(Element, VariadicOperatorsTakeAnyNumber) {
  EXPECT_DOUBLE_EQ(evaluate("Min", {3, 5, -1}), -1);
  EXPECT_DOUBLE_EQ(evaluate("Max", {3, 5, -1}), 5);
  EXPECT_DOUBLE_EQ(evaluate("Sum", {3, 5, -1}), 7);
  EXPECT_DOUBLE_EQ(evaluate("Mean", {3, 5, 1}), 3);
}

TEST(Element, ComparisonsAndChoices) {
  EXPECT_EQ(evaluate("Less", {1, 2}), 1);
  EXPECT_EQ(evaluate("Less", {2, 2}), 0);
  EXPECT_EQ(evaluate("LessOrEqual", {2, 2}), 1);
  EXPECT_EQ(evaluate("Greater", {2, 2}), 0);
  EXPECT_EQ(evaluate("GreaterOrEqual", {2, 2}), 1);
  EXPECT_EQ(evaluate("Equal", {2, 2}), 1);
  EXPECT_EQ(evaluate("And", {1, 0}), 0);
  EXPECT_EQ(evaluate("Or", {1, 0}), 1);
  EXPECT_EQ(evaluate("Xor", {1, 1}), 0);
  EXPECT_EQ(evaluate("Not", {0}), 1);
  EXPECT_EQ(evaluate("Where", {1, 7, 9}), 7);
  EXPECT_EQ(evaluate("Where", {0, 7, 9}), 9);
}

TEST(Element, FunctionsOfOneOperand) {
  EXPECT_DOUBLE_EQ(evaluate("Sigmoid", {0.4}), 1 / (1 + std::exp(-0.4)));
  EXPECT_DOUBLE_EQ(evaluate("Softplus", {0.4}), std::log(1 + std::exp(0.4)));
  EXPECT_DOUBLE_EQ(evaluate("Softplus", {800}), 800);
  EXPECT_DOUBLE_EQ(evaluate("Round", {2.5}), 2);  // to even
  EXPECT_DOUBLE_EQ(evaluate("Relu", {-2}), 0);
  EXPECT_DOUBLE_EQ(evaluate("Neg", {-2}), 2);
  EXPECT_DOUBLE_EQ(evaluate("Reciprocal", {4}), 0.25);
  EXPECT_DOUBLE_EQ(evaluate("Sign", {-4}), -1);
  EXPECT_DOUBLE_EQ(evaluate("Mish", {1}), std::tanh(std::log1p(std::exp(1.0))));
  EXPECT_TRUE(std::isnan(evaluate("Log", {-1})));
}

TEST(Element, AttributesHaveTheDefaultsOfTheStandard) {
  EXPECT_FLOAT_EQ(static_cast<float>(evaluate("LeakyRelu", {-1})), -0.01F);
  EXPECT_DOUBLE_EQ(evaluate("LeakyRelu", {-1}, {number("alpha", 0.5F)}), -0.5);
  EXPECT_DOUBLE_EQ(evaluate("HardSigmoid", {1}), 0.7);
  EXPECT_DOUBLE_EQ(evaluate("Elu", {-1}, {number("alpha", 2)}), 2 * std::expm1(-1.0));
  EXPECT_DOUBLE_EQ(evaluate("ThresholdedRelu", {0.5}), 0);
}

TEST(Element, ClipTakesItsBoundsFromOperandsOrAttributes) {
  const double none = std::nan("");
  EXPECT_DOUBLE_EQ(evaluate("Clip", {5, 0, 1}), 1);
  EXPECT_DOUBLE_EQ(evaluate("Clip", {-5, 0}), 0);
  EXPECT_DOUBLE_EQ(evaluate("Clip", {-5, none, 1}), -5);
  EXPECT_DOUBLE_EQ(evaluate("Clip", {5}, {number("max", 2)}), 2);
  EXPECT_DOUBLE_EQ(evaluate("Clip", {5, 3, 1}), 1);  // the maximum wins
}

}  // namespace
}  // namespace tensorlint::ops
