// One operand, element by element. Source: ONNX; opsets in the schemas, where they differ in more than dtypes here.
#include <algorithm>
#include <limits>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/element_functions.h"
#include "runtime/interpreter/ops/elementwise.h"
#include "runtime/interpreter/ops/function_loops.h"

namespace tensorlint::runtime {
namespace {

template <typename F>
void apply(Evaluation& e, const F& f) {
  apply_function(f, e.operand(0), e.result_over({0}));
}

/// Of functions without parameters.
template <typename F>
void function(Evaluation& e) {
  apply(e, F{});
}

double parameter(Evaluation& e, std::string_view name, double fallback) {
  return e.in().float_attribute(name, fallback);
}

// --- functions that integers have, too

/// The smallest integer wraps to itself.
std::int64_t negated(std::int64_t x) { return static_cast<std::int64_t>(-static_cast<std::uint64_t>(x)); }

bool is_unsigned(DType dtype) { return DTypeSet::unsigned_integers().contains(dtype); }

void neg(Evaluation& e) {
  if (is_float(e.operand(0).dtype())) return function<NegFunction>(e);
  apply_integers(e, negated);
}

void abs(Evaluation& e) {
  const DType dtype = e.operand(0).dtype();
  if (is_float(dtype)) return function<AbsFunction>(e);
  if (is_unsigned(dtype)) return e.set(0, e.value(0));
  apply_integers(e, [](std::int64_t x) { return x < 0 ? negated(x) : x; });
}

void sign(Evaluation& e) {
  const DType dtype = e.operand(0).dtype();
  if (is_float(dtype)) return function<SignFunction>(e);
  if (is_unsigned(dtype)) return apply_integers(e, [](std::int64_t x) -> std::int64_t { return x != 0 ? 1 : 0; });
  apply_integers(e, [](std::int64_t x) -> std::int64_t { return x > 0 ? 1 : x < 0 ? -1 : 0; });
}

void relu(Evaluation& e) {
  if (is_float(e.operand(0).dtype())) return function<ReluFunction>(e);
  apply_integers(e, [](std::int64_t x) { return std::max<std::int64_t>(x, 0); });
}

// --- Clip: bounds are attributes until opset 10, then operands; the upper one wins

template <typename T>
void clip_integers(Evaluation& e) {
  T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  if (e.has(1)) least = static_cast<T>(e.integer(1));
  if (e.has(2)) most = static_cast<T>(e.integer(2));
  apply_integers(
      e, [=](std::int64_t x) { return static_cast<std::int64_t>(std::min(std::max(static_cast<T>(x), least), most)); });
}

void clip(Evaluation& e) {
  const DType dtype = e.operand(0).dtype();
  if (dtype == DType::kUint64) return clip_integers<std::uint64_t>(e);
  if (!is_float(dtype)) return clip_integers<std::int64_t>(e);
  ClipFunction f{{}, -HUGE_VAL, HUGE_VAL};
  if (e.opset() < 11) {
    f.least = parameter(e, "min", f.least);
    f.most = parameter(e, "max", f.most);
  } else {
    if (e.has(1)) f.least = e.number(1);
    if (e.has(2)) f.most = e.number(2);
  }
  apply(e, f);
}

// --- functions with parameters

void leaky_relu(Evaluation& e) { apply(e, LeakyReluFunction{{}, parameter(e, "alpha", 0.01F)}); }
void thresholded_relu(Evaluation& e) { apply(e, ThresholdedReluFunction{{}, parameter(e, "alpha", 1)}); }
void elu(Evaluation& e) { apply(e, EluFunction{{}, parameter(e, "alpha", 1)}); }
void celu(Evaluation& e) { apply(e, CeluFunction{{}, parameter(e, "alpha", 1)}); }
void swish(Evaluation& e) { apply(e, SwishFunction{{}, parameter(e, "alpha", 1)}); }

/// Opset 1 has rounded defaults.
void selu(Evaluation& e) {
  const bool rounded = e.opset() < 6;
  apply(e, SeluFunction{{},
                        parameter(e, "alpha", rounded ? 1.6732F : 1.67326319F),
                        parameter(e, "gamma", rounded ? 1.0507F : 1.05070102F)});
}

void hard_sigmoid(Evaluation& e) {
  apply(e, HardSigmoidFunction{{}, parameter(e, "alpha", 0.2F), parameter(e, "beta", 0.5F)});
}

void shrink(Evaluation& e) { apply(e, ShrinkFunction{{}, parameter(e, "lambd", 0.5F), parameter(e, "bias", 0)}); }

void gelu(Evaluation& e) {
  if (e.in().string_attribute("approximate", "none") == "tanh") return function<TanhGeluFunction>(e);
  function<GeluFunction>(e);
}

Evaluator of(std::string_view name, EvaluateFunction evaluate, std::string_view function) {
  return Evaluator(name).evaluate(evaluate).error(Rounding::of(function));
}
Evaluator exact(std::string_view name, EvaluateFunction evaluate) {
  return Evaluator(name).evaluate(evaluate).error(Rounding::exact());
}
Evaluator rounded(std::string_view name, EvaluateFunction evaluate) {
  return Evaluator(name).evaluate(evaluate).error(Rounding::rounded());
}

Evaluator step(std::string_view name, EvaluateFunction evaluate) {
  return Evaluator(name).evaluate(evaluate).error(Rounding::exact().with_jumps());
}

const RegisterEvaluators kUnary{
    exact("Abs", abs),
    step("Ceil", function<CeilFunction>),
    exact("Clip", clip),
    step("Floor", function<FloorFunction>),
    exact("Neg", neg),
    exact("Relu", relu),
    step("Round", function<RoundFunction>),
    step("Sign", sign),
    step("ThresholdedRelu", thresholded_relu),
    rounded("LeakyRelu", leaky_relu),
    rounded("Reciprocal", function<ReciprocalFunction>),
    Evaluator("Shrink").evaluate(shrink).error(Rounding::rounded().with_jumps()),
    rounded("Sqrt", function<SqrtFunction>),
    of("Acos", function<AcosFunction>, "acos"),
    of("Acosh", function<AcoshFunction>, "acosh"),
    of("Asin", function<AsinFunction>, "asin"),
    of("Asinh", function<AsinhFunction>, "asinh"),
    of("Atan", function<AtanFunction>, "atan"),
    of("Atanh", function<AtanhFunction>, "atanh"),
    of("Celu", celu, "celu"),
    of("Cos", function<CosFunction>, "cos"),
    of("Cosh", function<CoshFunction>, "cosh"),
    of("Elu", elu, "elu"),
    of("Erf", function<ErfFunction>, "erf"),
    of("Exp", function<ExpFunction>, "exp"),
    of("Gelu", gelu, "gelu"),
    of("HardSigmoid", hard_sigmoid, "hard_sigmoid"),
    of("HardSwish", function<HardSwishFunction>, "hard_swish"),
    of("Log", function<LogFunction>, "log"),
    of("Mish", function<MishFunction>, "mish"),
    of("Selu", selu, "selu"),
    of("Sigmoid", function<SigmoidFunction>, "sigmoid"),
    of("Sin", function<SinFunction>, "sin"),
    of("Sinh", function<SinhFunction>, "sinh"),
    of("Softplus", function<SoftplusFunction>, "softplus"),
    of("Softsign", function<SoftsignFunction>, "softsign"),
    of("Swish", swish, "swish"),
    of("Tan", function<TanFunction>, "tan"),
    of("Tanh", function<TanhFunction>, "tanh"),
};

}  // namespace
}  // namespace tensorlint::runtime
