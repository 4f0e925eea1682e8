// Programs of element functions: every operation and dtype against plain loops in long double and exact integers, every
// way in which operands lie, and programs against calls of one step each.

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "kernels/common/convert.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/elementwise/kernel.h"
#include "kernels/elementwise/plan.h"
#include "tests/kernels/testing.h"

namespace tensorlint::kernels {
namespace {

using testing::Access;
using testing::Buffer;
using testing::clean;
using testing::use;

constexpr Dtype kDtypes[] = {Dtype::kFloat64, Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16, Dtype::kInt8,
                             Dtype::kInt16,   Dtype::kInt32,   Dtype::kInt64,   Dtype::kUInt8,    Dtype::kBool};
constexpr Dtype kFloats[] = {Dtype::kFloat64, Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16};
constexpr Dtype kIntegers[] = {Dtype::kInt8, Dtype::kInt16, Dtype::kInt32, Dtype::kInt64, Dtype::kUInt8};

bool is_float(Dtype dtype) { return dtype < Dtype::kInt8; }

struct Format {
  int precision, least, most;  // bits of the significand; exponents of the smallest subnormal and of the largest number
};
Format format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return {53, -1074, 1023};
    case Dtype::kFloat32:
      return {24, -149, 127};
    case Dtype::kFloat16:
      return {11, -24, 15};
    default:
      return {8, -133, 127};
  }
}

/// To nearest, ties to even, written from the formats alone.
long double rounded(Dtype dtype, long double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const Format format = format_of(dtype);
  const int quantum = std::max(std::ilogb(x) - (format.precision - 1), format.least);
  const long double result = std::scalbn(std::nearbyint(std::scalbn(x, -quantum)), quantum);
  return std::ilogb(result) > format.most ? std::copysign(static_cast<long double>(INFINITY), x) : result;
}

/// The distance of neighbours at `x`.
long double last_place(Dtype dtype, long double x) {
  const Format format = format_of(dtype);
  return x == 0 || !std::isfinite(x)
             ? std::scalbn(1.0L, format.least)
             : std::scalbn(1.0L, std::max(std::ilogb(x) - (format.precision - 1), format.least));
}

/// The low bits of an integer as an element.
std::int64_t wrapped_to(Dtype dtype, std::int64_t x) {
  switch (dtype) {
    case Dtype::kInt8:
      return static_cast<std::int8_t>(x);
    case Dtype::kInt16:
      return static_cast<std::int16_t>(x);
    case Dtype::kInt32:
      return static_cast<std::int32_t>(x);
    case Dtype::kUInt8:
      return static_cast<std::uint8_t>(x);
    case Dtype::kBool:
      return x != 0 ? 1 : 0;
    default:
      return x;
  }
}

template <typename Visit>
auto with_element(Dtype dtype, const Visit& visit) {
  switch (dtype) {
    case Dtype::kFloat64:
      return visit(double{});
    case Dtype::kFloat32:
      return visit(float{});
    case Dtype::kFloat16:
      return visit(Half{});
    case Dtype::kBFloat16:
      return visit(BFloat16{});
    case Dtype::kInt8:
      return visit(std::int8_t{});
    case Dtype::kInt16:
      return visit(std::int16_t{});
    case Dtype::kInt32:
      return visit(std::int32_t{});
    case Dtype::kInt64:
      return visit(std::int64_t{});
    default:
      return visit(std::uint8_t{});
  }
}

/// Elements of any dtype, `shift` elements past a 16-byte boundary.
class Tensor {
 public:
  Tensor(Dtype dtype, std::size_t count, Access access, const char* name, std::size_t shift = 0)
      : dtype_(dtype), memory_(count * size_of(dtype), access, name, shift * size_of(dtype), size_of(dtype)) {}
  Dtype dtype() const { return dtype_; }
  void* data() { return memory_.data(); }
  std::size_t size() const { return memory_.size() / size_of(dtype_); }
  void set(std::size_t i, long double x) {
    with_element(dtype_, [&](auto element) {
      using T = decltype(element);
      T value{};
      if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(static_cast<std::int64_t>(x));
      } else if constexpr (std::is_arithmetic_v<T>) {
        value = static_cast<T>(x);
      } else {  // exact: such a value is a float
        value = converted<T>(static_cast<float>(rounded(dtype_, x)));
      }
      std::memcpy(at(i), &value, sizeof value);
    });
  }
  long double value(std::size_t i) {
    return with_element(dtype_, [&](auto element) -> long double {
      std::memcpy(&element, at(i), sizeof element);
      if constexpr (std::is_arithmetic_v<decltype(element)>) {
        return static_cast<long double>(element);
      } else {
        return static_cast<long double>(to_float(element));
      }
    });
  }

 private:
  unsigned char* at(std::size_t i) { return memory_.data() + i * size_of(dtype_); }
  Dtype dtype_;
  Buffer<unsigned char> memory_;
};

Dtype compute_of(Dtype dtype) {
  return dtype == Dtype::kFloat64 ? Dtype::kFloat64 : is_float(dtype) ? Dtype::kFloat32 : Dtype::kInt64;
}

/// One step over dense operands of one axis.
Elementwise single(ElementOp op, Dtype compute, Dtype step, const std::vector<Tensor*>& operands, Tensor& result) {
  Elementwise request;
  request.compute = compute;
  request.rank = 1;
  request.extents[0] = static_cast<std::int64_t>(result.size());
  request.operand_count = static_cast<int>(operands.size());
  for (std::size_t k = 0; k < operands.size(); ++k) {
    request.operands[k].data = operands[k]->data();
    request.operands[k].dtype = operands[k]->dtype();
    request.operands[k].strides[0] = 1;
    request.steps[0].operands[k] = static_cast<int>(k);
  }
  request.step_count = 1;
  request.steps[0].op = op;
  request.steps[0].dtype = step;
  request.result = result.data();
  request.result_dtype = result.dtype();
  return request;
}

bool same(long double a, long double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && (a != 0 || std::signbit(a) == std::signbit(b));
}

// --- operations

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
/// Values where operations change their ways, all pairs of which are tried.
const std::vector<double> kSpecial = {0.0,   -0.0,  1.0,  -1.0, 0.5,    -0.5,    1.5,      -2.5,      2.0,
                                      3.0,   -3.0,  7.0,  -7.0, 100.25, 65504.0, -65504.0, 0x1p-14,   0x1p-24,
                                      1e-30, -1e30, 1e38, -6.0, 0x1p15, 0.1,     INFINITY, -INFINITY, kNaN};

using Reference = std::function<long double(const std::array<long double, 3>&)>;
struct Operation {
  ElementOp op;
  Reference value;
  bool is_predicate = false;
};

long double maximum(long double a, long double b) { return a > b || a != a ? a : b; }
long double minimum(long double a, long double b) { return a < b || a != a ? a : b; }

/// Those that are exact but for one rounding.
const std::vector<Operation>& exact_operations() {
  using X = const std::array<long double, 3>&;
  static const std::vector<Operation> all = {
      {ElementOp::kAdd, [](X x) { return x[0] + x[1]; }},
      {ElementOp::kSub, [](X x) { return x[0] - x[1]; }},
      {ElementOp::kMul, [](X x) { return x[0] * x[1]; }},
      {ElementOp::kDiv, [](X x) { return x[0] / x[1]; }},
      {ElementOp::kTruncatedMod, [](X x) { return std::fmod(x[0], x[1]); }},
      {ElementOp::kMin, [](X x) { return minimum(x[0], x[1]); }},
      {ElementOp::kMax, [](X x) { return maximum(x[0], x[1]); }},
      {ElementOp::kNeg, [](X x) { return -x[0]; }},
      {ElementOp::kAbs, [](X x) { return std::fabs(x[0]); }},
      {ElementOp::kSign, [](X x) { return x[0] > 0   ? 1.0L
                                          : x[0] < 0 ? -1.0L
                                                     : x[0]; }},
      {ElementOp::kRelu, [](X x) { return x[0] < 0 ? 0.0L : x[0]; }},
      {ElementOp::kClip,
       [](X x) {
         const long double raised = x[0] < x[1] ? x[1] : x[0];
         return raised > x[2] ? x[2] : raised;
       }},
      {ElementOp::kWhere, [](X x) { return x[0] != 0 ? x[1] : x[2]; }},
      {ElementOp::kCast, [](X x) { return x[0]; }},
      {ElementOp::kSqrt, [](X x) { return std::sqrt(x[0]); }},
      {ElementOp::kReciprocal, [](X x) { return 1 / x[0]; }},
      {ElementOp::kLeakyRelu, [](X x) { return x[0] < 0 ? 0.25L * x[0] : x[0]; }},
      {ElementOp::kFloor, [](X x) { return std::floor(x[0]); }},
      {ElementOp::kCeil, [](X x) { return std::ceil(x[0]); }},
      {ElementOp::kRound, [](X x) { return std::nearbyint(x[0]); }},
      {ElementOp::kEqual, [](X x) { return x[0] == x[1] ? 1.0L : 0.0L; }, true},
      {ElementOp::kGreater, [](X x) { return x[0] > x[1] ? 1.0L : 0.0L; }, true},
      {ElementOp::kLess, [](X x) { return x[0] < x[1] ? 1.0L : 0.0L; }, true},
      {ElementOp::kGreaterOrEqual, [](X x) { return x[0] >= x[1] ? 1.0L : 0.0L; }, true},
      {ElementOp::kLessOrEqual, [](X x) { return x[0] <= x[1] ? 1.0L : 0.0L; }, true},
      {ElementOp::kAnd, [](X x) { return x[0] != 0 && x[1] != 0 ? 1.0L : 0.0L; }, true},
      {ElementOp::kOr, [](X x) { return x[0] != 0 || x[1] != 0 ? 1.0L : 0.0L; }, true},
      {ElementOp::kXor, [](X x) { return (x[0] != 0) != (x[1] != 0) ? 1.0L : 0.0L; }, true},
      {ElementOp::kNot, [](X x) { return x[0] == 0 ? 1.0L : 0.0L; }, true},
      {ElementOp::kIsNaN, [](X x) { return std::isnan(x[0]) ? 1.0L : 0.0L; }, true},
  };
  return all;
}

/// Tensors with all pairs of values, the third one with the values in another order.
std::vector<std::unique_ptr<Tensor>> all_pairs(Dtype dtype, const std::vector<double>& values) {
  std::vector<std::unique_ptr<Tensor>> tensors;
  const std::size_t count = values.size() * values.size();
  for (int k = 0; k < 3; ++k) tensors.push_back(std::make_unique<Tensor>(dtype, count, Access::kReadOnly, "operand"));
  for (std::size_t i = 0; i < count; ++i) {
    tensors[0]->set(i, static_cast<long double>(values[i % values.size()]));
    tensors[1]->set(i, static_cast<long double>(values[i / values.size()]));
    tensors[2]->set(i, static_cast<long double>(values[(i * 7 + i / values.size()) % values.size()]));
  }
  return tensors;
}

TEST(Elementwise, ExactOperationsOfEveryFloat) {
  for (const Dtype dtype : kFloats) {
    const auto operands = all_pairs(dtype, kSpecial);
    for (const Operation& operation : exact_operations()) {
      const Dtype to = operation.is_predicate ? Dtype::kBool : dtype;
      Tensor result(to, operands[0]->size(), Access::kWriteFirst, "result");
      std::vector<Tensor*> given;
      for (int k = 0; k < arity_of(operation.op); ++k) given.push_back(operands[static_cast<std::size_t>(k)].get());
      use({});
      Elementwise request = single(operation.op, compute_of(dtype), to, given, result);
      request.steps[0].alpha = 0.25;
      ASSERT_EQ(elementwise(request, nullptr), Status::kOk);
      ASSERT_TRUE(clean());
      for (std::size_t i = 0; i < result.size(); ++i) {
        const std::array<long double, 3> x = {operands[0]->value(i), operands[1]->value(i), operands[2]->value(i)};
        const long double want = operation.is_predicate ? operation.value(x) : rounded(dtype, operation.value(x));
        const long double got = result.value(i);
        // Products of bfloat16 round in float32 first.
        const bool twice =
            dtype == Dtype::kBFloat16 && std::fabs(want) < 0x1p-126L && std::fabs(got - want) <= 0x1p-133L;
        ASSERT_TRUE(same(got, want) || twice)
            << "operation " << static_cast<int>(operation.op) << " dtype " << static_cast<int>(dtype) << " of "
            << static_cast<double>(x[0]) << ", " << static_cast<double>(x[1]) << ": " << static_cast<double>(got)
            << " for " << static_cast<double>(want);
      }
    }
  }
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::uint64_t result = 1;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(exponent, 64 + exponent % 64); ++i)
    result *= static_cast<std::uint64_t>(base);
  return static_cast<std::int64_t>(result);
}

TEST(Elementwise, IntegersWrapAround) {
  const std::vector<std::int64_t> values = {0,    1,   -1,  2,      -3,        7,         100,      127,
                                            -128, 255, 300, -32768, INT32_MAX, INT64_MIN, INT64_MAX};
  using Word = std::uint64_t;
  struct IntegerOperation {
    ElementOp op;
    std::function<std::int64_t(std::int64_t, std::int64_t, std::int64_t)> value;
    bool is_predicate = false;
  };
  const auto wrap = [](Word x) { return static_cast<std::int64_t>(x); };
  const std::vector<IntegerOperation> operations = {
      {ElementOp::kAdd, [&](auto a, auto b, auto) { return wrap(static_cast<Word>(a) + static_cast<Word>(b)); }},
      {ElementOp::kSub, [&](auto a, auto b, auto) { return wrap(static_cast<Word>(a) - static_cast<Word>(b)); }},
      {ElementOp::kMul, [&](auto a, auto b, auto) { return wrap(static_cast<Word>(a) * static_cast<Word>(b)); }},
      {ElementOp::kDiv,
       [&](auto a, auto b, auto) { return b == 0    ? 0
                                          : b == -1 ? wrap(-static_cast<Word>(a))
                                                    : a / b; }},
      {ElementOp::kTruncatedMod,
       [](auto a, auto b, auto) -> std::int64_t { return b == 0 || b == -1 ? 0 : a - a / b * b; }},
      {ElementOp::kFlooredMod,
       [&](auto a, auto b, auto) -> std::int64_t {
         if (b == 0 || b == -1) return 0;
         const std::int64_t down = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
         return wrap(static_cast<Word>(a) - static_cast<Word>(down) * static_cast<Word>(b));
       }},
      {ElementOp::kMin, [](auto a, auto b, auto) { return std::min(a, b); }},
      {ElementOp::kMax, [](auto a, auto b, auto) { return std::max(a, b); }},
      {ElementOp::kNeg, [&](auto a, auto, auto) { return wrap(-static_cast<Word>(a)); }},
      {ElementOp::kAbs, [&](auto a, auto, auto) { return a < 0 ? wrap(-static_cast<Word>(a)) : a; }},
      {ElementOp::kSign, [](auto a, auto, auto) -> std::int64_t { return a > 0   ? 1
                                                                         : a < 0 ? -1
                                                                                 : 0; }},
      {ElementOp::kRelu, [](auto a, auto, auto) { return std::max<std::int64_t>(a, 0); }},
      {ElementOp::kClip, [](auto a, auto b, auto c) { return std::min(std::max(a, b), c); }},
      {ElementOp::kWhere, [](auto a, auto b, auto c) { return a != 0 ? b : c; }},
      {ElementOp::kCast, [](auto a, auto, auto) { return a; }},
      {ElementOp::kEqual, [](auto a, auto b, auto) -> std::int64_t { return a == b; }, true},
      {ElementOp::kGreater, [](auto a, auto b, auto) -> std::int64_t { return a > b; }, true},
      {ElementOp::kLess, [](auto a, auto b, auto) -> std::int64_t { return a < b; }, true},
      {ElementOp::kGreaterOrEqual, [](auto a, auto b, auto) -> std::int64_t { return a >= b; }, true},
      {ElementOp::kLessOrEqual, [](auto a, auto b, auto) -> std::int64_t { return a <= b; }, true},
      {ElementOp::kNot, [](auto a, auto, auto) -> std::int64_t { return a == 0; }, true},
      {ElementOp::kXor, [](auto a, auto b, auto) -> std::int64_t { return (a != 0) != (b != 0); }, true},
      {ElementOp::kPow, [](auto a, auto b, auto) { return integer_power(a, b % 50); }},
  };
  for (const Dtype dtype : kIntegers) {
    const std::size_t count = values.size() * values.size();
    std::vector<std::unique_ptr<Tensor>> operands;
    std::vector<std::array<std::int64_t, 3>> given(count);
    for (int k = 0; k < 3; ++k)
      operands.push_back(std::make_unique<Tensor>(dtype, count, Access::kReadOnly, "operand"));
    for (const IntegerOperation& operation : operations) {
      for (std::size_t i = 0; i < count; ++i) {
        given[i] = {wrapped_to(dtype, values[i % values.size()]), wrapped_to(dtype, values[i / values.size()]),
                    wrapped_to(dtype, values[(i * 7 + 3) % values.size()])};
        if (operation.op == ElementOp::kPow) given[i][1] %= 50;
        for (std::size_t k = 0; k < 3; ++k) operands[k]->set(i, static_cast<long double>(given[i][k]));
      }
      const Dtype to = operation.is_predicate ? Dtype::kBool : dtype;
      Tensor result(to, count, Access::kWriteFirst, "result");
      std::vector<Tensor*> pointers;
      for (int k = 0; k < arity_of(operation.op); ++k) pointers.push_back(operands[static_cast<std::size_t>(k)].get());
      use({});
      ASSERT_EQ(elementwise(single(operation.op, Dtype::kInt64, to, pointers, result), nullptr), Status::kOk);
      ASSERT_TRUE(clean());
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t want = wrapped_to(to, operation.value(given[i][0], given[i][1], given[i][2]));
        ASSERT_EQ(static_cast<std::int64_t>(result.value(i)), want)
            << "operation " << static_cast<int>(operation.op) << " dtype " << static_cast<int>(dtype) << " of "
            << given[i][0] << ", " << given[i][1] << ", " << given[i][2];
      }
    }
  }
}

// The bounds of elementwise.h, over ordinary, large and tiny values of each float.
TEST(Elementwise, OtherOperationsWithinTheirBounds) {
  struct Bounded {
    ElementOp op;
    std::function<long double(long double, long double)> value;
    std::function<long double(long double)> units;
    double alpha = 0, beta = 0;
  };
  const auto constant = [](long double units) { return [=](long double) { return units; }; };
  constexpr long double kScale = 2 * 0.79788456080286535587989L;
  const std::vector<Bounded> operations = {
      {ElementOp::kExp, [](auto x, auto) { return std::exp(x); }, constant(2)},
      {ElementOp::kLog, [](auto x, auto) { return std::log(x); }, constant(2)},
      {ElementOp::kErf, [](auto x, auto) { return std::erf(x); }, constant(2)},
      {ElementOp::kTanh, [](auto x, auto) { return std::tanh(x); }, constant(2)},
      {ElementOp::kSin, [](auto x, auto) { return std::sin(x); }, constant(2)},
      {ElementOp::kCos, [](auto x, auto) { return std::cos(x); }, constant(2)},
      {ElementOp::kPow, [](auto x, auto y) { return std::pow(x, y); }, constant(8)},
      {ElementOp::kSigmoid, [](auto x, auto) { return 1 / (1 + std::exp(-x)); }, constant(4)},
      {ElementOp::kSoftplus, [](auto x, auto) { return std::fmax(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))); },
       constant(4)},
      {ElementOp::kElu, [](auto x, auto) { return x < 0 ? 1.25L * std::expm1(x) : x; }, constant(4), 1.25},
      {ElementOp::kSwish, [](auto x, auto) { return x / (1 + std::exp(-1.5L * x)); },
       [](long double x) { return 6 + 2 * std::fabs(1.5L * x); }, 1.5},
      {ElementOp::kTanhGelu, [](auto x, auto) { return x / (1 + std::exp(-kScale * (x + 0.044715L * x * x * x))); },
       [](long double x) { return 6 + 2 * std::fabs(kScale * (x + 0.044715L * x * x * x)); }},
      {ElementOp::kGelu, [](auto x, auto) { return x * 0.5L * std::erfc(-x * std::sqrt(0.5L)); },
       [](long double x) { return 8 + x * x; }},
      {ElementOp::kHardSigmoid, [](auto x, auto) { return std::fmin(std::fmax(0.25L * x + 0.375L, 0.0L), 1.0L); },
       constant(1), 0.25, 0.375},
      {ElementOp::kHardSwish, [](auto x, auto) { return x * std::fmin(std::fmax((x + 3) / 6, 0.0L), 1.0L); },
       constant(3)},
  };
  std::vector<double> values;
  for (int i = 0; i < 160; ++i) values.push_back((i - 80) * 0.11 + 0.003);
  for (const double x : {0.0,  -0.0,          1e-6, -1e-6,  1e-30, 12.5,   -12.5, 30.0, -40.0,
                         88.0, -88.0,         95.0, -100.0, 710.0, -745.0, 1e4,   -1e5, 3.1415927410125732,
                         1e10, 0x1.921fb6p60, 1e22, -1e30})
    values.push_back(x);
  for (const Dtype dtype : kFloats) {
    const Dtype compute = compute_of(dtype);
    Tensor x(dtype, values.size(), Access::kReadOnly, "x");
    Tensor y(dtype, values.size(), Access::kReadOnly, "y");
    for (std::size_t i = 0; i < values.size(); ++i) {
      x.set(i, static_cast<long double>(values[i]));
      y.set(i, static_cast<long double>(values[(i * 31 + 5) % 160]));
    }
    for (const Bounded& operation : operations) {
      Tensor result(dtype, values.size(), Access::kWriteFirst, "result");
      std::vector<Tensor*> operands = {&x};
      if (arity_of(operation.op) == 2) operands.push_back(&y);
      Elementwise request = single(operation.op, compute, dtype, operands, result);
      request.steps[0].alpha = operation.alpha;
      request.steps[0].beta = operation.beta;
      use({});
      ASSERT_EQ(elementwise(request, nullptr), Status::kOk);
      ASSERT_TRUE(clean());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const long double given = x.value(i), exact = operation.value(given, y.value(i)), got = result.value(i);
        if (std::isnan(exact) || !std::isfinite(given)) {
          // x sigmoid(-inf) and the like: NaN or a zero, as the operations of float have it.
          continue;
        }
        const long double want = rounded(dtype, exact);
        const long double bound = operation.units(given) * last_place(compute, exact) + last_place(dtype, exact) / 2;
        const bool overflows = std::isinf(got) && std::ilogb(exact) >= format_of(dtype).most;
        ASSERT_TRUE(same(got, want) || overflows || std::fabs(got - exact) <= bound)
            << "operation " << static_cast<int>(operation.op) << " dtype " << static_cast<int>(dtype) << " of "
            << static_cast<double>(given) << ", " << static_cast<double>(y.value(i)) << ": " << static_cast<double>(got)
            << " for " << static_cast<double>(exact) << ", off by "
            << static_cast<double>(std::fabs(got - exact) / last_place(compute, exact)) << " units";
      }
    }
  }
}

TEST(Elementwise, NotANumberAndInfinity) {
  const double values[] = {kNaN, INFINITY, -INFINITY};
  for (const Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32}) {
    Tensor x(dtype, 3, Access::kReadOnly, "x");
    for (std::size_t i = 0; i < 3; ++i) x.set(i, static_cast<long double>(values[i]));
    const std::pair<ElementOp, std::array<double, 3>> expected[] = {
        {ElementOp::kExp, {kNaN, INFINITY, 0}},      {ElementOp::kLog, {kNaN, INFINITY, kNaN}},
        {ElementOp::kSqrt, {kNaN, INFINITY, kNaN}},  {ElementOp::kErf, {kNaN, 1, -1}},
        {ElementOp::kTanh, {kNaN, 1, -1}},           {ElementOp::kSigmoid, {kNaN, 1, 0}},
        {ElementOp::kSoftplus, {kNaN, INFINITY, 0}}, {ElementOp::kElu, {kNaN, INFINITY, -1}},
        {ElementOp::kGelu, {kNaN, INFINITY, kNaN}},  {ElementOp::kTanhGelu, {kNaN, INFINITY, kNaN}},
        {ElementOp::kSwish, {kNaN, INFINITY, kNaN}}, {ElementOp::kHardSigmoid, {kNaN, 1, 0}},
        {ElementOp::kSin, {kNaN, kNaN, kNaN}},       {ElementOp::kCos, {kNaN, kNaN, kNaN}},
    };
    for (const auto& [op, wanted] : expected) {
      Tensor result(dtype, 3, Access::kWriteFirst, "result");
      Elementwise request = single(op, dtype, dtype, {&x}, result);
      request.steps[0].alpha = 1;
      request.steps[0].beta = 0.5;
      use({});
      ASSERT_EQ(elementwise(request, nullptr), Status::kOk);
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_TRUE(same(result.value(i), static_cast<long double>(wanted[i])))
            << static_cast<int>(op) << " of " << values[i] << ": " << static_cast<double>(result.value(i));
      ASSERT_TRUE(clean());
    }
  }
}

TEST(Elementwise, SineOfZeroKeepsItsSign) {
  for (const Dtype dtype : {Dtype::kFloat64, Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16}) {
    const Dtype compute = dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32;
    Tensor x(dtype, 2, Access::kReadOnly, "x"), result(dtype, 2, Access::kWriteFirst, "result");
    x.set(0, 0.0L);
    x.set(1, -0.0L);
    for (const ElementOp op : {ElementOp::kSin, ElementOp::kCos}) {
      use({});
      ASSERT_EQ(elementwise(single(op, compute, dtype, {&x}, result), nullptr), Status::kOk);
      ASSERT_TRUE(clean());
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(result.value(i), op == ElementOp::kSin ? 0 : 1);
        EXPECT_EQ(std::signbit(result.value(i)), op == ElementOp::kSin && i == 1);
      }
    }
  }
}

// Angles up to the largest number, and next to multiples of pi / 2.
TEST(Elementwise, AnglesOfAnySize) {
  std::vector<double> values = {0x1.6ac5b262ca1ffp+849,
                                1.7976931348623157e308,

                                0x1p40,
                                0x1p53,
                                0x1.921fb54442d18p0,
                                0x1.921fb54442d18p41,
                                -0x1p1023,
                                1e-300};
  for (int exponent = -30; exponent < 1023; exponent += 7)
    values.push_back(std::ldexp(1.0 + 0.37 * (exponent % 3) / 2 + exponent * 1e-5, exponent));
  Tensor x(Dtype::kFloat64, values.size(), Access::kReadOnly, "x");
  Tensor result(Dtype::kFloat64, values.size(), Access::kWriteFirst, "result");
  for (std::size_t i = 0; i < values.size(); ++i) x.set(i, static_cast<long double>(values[i]));
  for (const ElementOp op : {ElementOp::kSin, ElementOp::kCos}) {
    use({});
    ASSERT_EQ(elementwise(single(op, Dtype::kFloat64, Dtype::kFloat64, {&x}, result), nullptr), Status::kOk);
    ASSERT_TRUE(clean());
    for (std::size_t i = 0; i < values.size(); ++i) {
      // The library's double functions are right to one unit but for the double nearest to a multiple of pi / 2.
      // Source: Muller and others, Handbook of Floating-Point Arithmetic, on range reduction.
      const bool nearest = op == ElementOp::kCos && i == 0;
      const double want = nearest                 ? -4.68716592425462761112e-19
                          : op == ElementOp::kSin ? std::sin(values[i])
                                                  : std::cos(values[i]);
      const double got = static_cast<double>(result.value(i));
      EXPECT_LE(std::fabs(got - want),
                2 * static_cast<double>(last_place(Dtype::kFloat64, static_cast<long double>(want))))
          << values[i] << ": " << got << " for " << want;
    }
  }
}

// --- conversions

TEST(Elementwise, EveryPairOfDtypes) {
  std::vector<double> floats = kSpecial;
  for (const double x :
       {0.999,        -0.999,        127.5,      128.5,  255.5,  256.75,  -129.0,        32767.5,    65519.0, 65520.0,
        2147483648.0, -2147483649.0, 0x1p53 + 2, 0x1p62, 9.3e18, -9.3e18, 1.00048828125, 1.00390625, 3.4e38,  1e300})
    floats.push_back(x);
  const std::vector<std::int64_t> whole = {0,
                                           1,
                                           -1,
                                           127,
                                           128,
                                           -129,
                                           255,
                                           2047,
                                           2049,
                                           2051,
                                           65519,
                                           65520,
                                           16777217,
                                           16777219,
                                           (1LL << 53) + 1,
                                           (1LL << 53) + 3,
                                           257LL << 40,
                                           (257LL << 40) + 1,
                                           (259LL << 40) - 1,
                                           INT64_MAX,
                                           INT64_MIN,
                                           INT64_MAX - 511,
                                           -((1LL << 24) + 1)};
  for (const Dtype from : kDtypes) {
    for (const Dtype to : kDtypes) {
      const std::size_t count = is_float(from) ? floats.size() : whole.size();
      Tensor x(from, count, Access::kReadOnly, "x");
      for (std::size_t i = 0; i < count; ++i)
        x.set(i, is_float(from) ? static_cast<long double>(floats[i])
                                : static_cast<long double>(wrapped_to(from, whole[i])));
      Tensor result(to, count, Access::kWriteFirst, "result");
      // Computed as what is converted, so that it is rounded once.
      const Dtype compute = compute_of(from);
      const Dtype step = compute == Dtype::kInt64 ? Dtype::kInt64 : compute;
      use({});
      ASSERT_EQ(elementwise(single(ElementOp::kCast, compute, step, {&x}, result), nullptr), Status::kOk);
      ASSERT_TRUE(clean());
      for (std::size_t i = 0; i < count; ++i) {
        const long double given = x.value(i);
        long double want = 0;
        if (to == Dtype::kBool) {
          want = given != 0 ? 1 : 0;
        } else if (is_float(to)) {
          want = rounded(to, given);
        } else {
          const bool fits = given >= -0x1p63L && given < 0x1p63L;
          want = static_cast<long double>(wrapped_to(to, fits ? static_cast<std::int64_t>(given) : INT64_MIN));
        }
        ASSERT_TRUE(same(result.value(i), want))
            << static_cast<int>(from) << " to " << static_cast<int>(to) << " of " << static_cast<double>(given) << ": "
            << static_cast<double>(result.value(i)) << " for " << static_cast<double>(want);
      }
    }
  }
}

// --- where operands lie

struct Layout {
  std::vector<std::int64_t> extents;
  std::vector<std::vector<std::int64_t>> strides;  // of each operand
  std::vector<std::size_t> sizes;                  // elements of each operand
};

/// Operands of these shapes, broadcast to the largest.
Layout broadcast(const std::vector<std::int64_t>& target, const std::vector<std::vector<std::int64_t>>& shapes) {
  Layout layout{target, {}, {}};
  for (const std::vector<std::int64_t>& shape : shapes) {
    std::vector<std::int64_t> strides(target.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t back = 1; back <= shape.size(); ++back) {
      const std::int64_t extent = shape[shape.size() - back];
      if (extent != 1) strides[target.size() - back] = stride;
      stride *= extent;
    }
    layout.strides.push_back(strides);
    layout.sizes.push_back(static_cast<std::size_t>(stride));
  }
  return layout;
}

/// Adds all operands, which are small integers, so that the sum is exact whatever their dtypes.
void check_layout(const Layout& layout, const std::vector<Dtype>& dtypes, Dtype to, std::size_t shift,
                  const testing::Schedule& schedule) {
  Elementwise request;
  request.compute = Dtype::kFloat32;
  request.rank = static_cast<int>(layout.extents.size());
  std::copy(layout.extents.begin(), layout.extents.end(), request.extents);
  std::size_t count = 1;
  for (const std::int64_t extent : layout.extents) count *= static_cast<std::size_t>(extent);
  std::vector<std::unique_ptr<Tensor>> tensors;
  for (std::size_t k = 0; k < layout.strides.size(); ++k) {
    tensors.push_back(std::make_unique<Tensor>(dtypes[k % dtypes.size()], layout.sizes[k], Access::kReadOnly, "operand",
                                               shift == 0 ? 0 : (shift + k) % 5));
    for (std::size_t i = 0; i < layout.sizes[k]; ++i)
      tensors[k]->set(i, static_cast<long double>((i * 5 + k * 3) % 17));
    ElementOperand& operand = request.operands[request.operand_count++];
    operand.data = tensors[k]->data();
    operand.dtype = tensors[k]->dtype();
    std::copy(layout.strides[k].begin(), layout.strides[k].end(), operand.strides);
  }
  for (std::size_t k = 0; k < layout.strides.size(); ++k) {
    ElementStep& step = request.steps[request.step_count];
    step.op = k == 0 ? ElementOp::kCast : ElementOp::kAdd;
    step.operands[0] = k == 0 ? 0 : kMaxElementOperands + request.step_count - 1;
    step.operands[1] = static_cast<int>(k);
    ++request.step_count;
  }
  Tensor result(to, count, Access::kWriteFirst, "result", shift);
  request.result = result.data();
  request.result_dtype = to;
  use(schedule);
  ASSERT_EQ(elementwise(request, nullptr), Status::kOk);
  ASSERT_TRUE(clean());
  std::vector<std::int64_t> index(layout.extents.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    long double want = 0;
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      std::int64_t at = 0;
      for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * layout.strides[k][axis];
      want += tensors[k]->value(static_cast<std::size_t>(at));
    }
    ASSERT_EQ(result.value(i), static_cast<long double>(wrapped_to(to, static_cast<std::int64_t>(want))))
        << "element " << i << " of " << count << ", shift " << shift << ", dtype " << static_cast<int>(to);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < layout.extents[axis]) break;
      index[axis] = 0;
    }
  }
}

TEST(Elementwise, LengthsAroundEveryEdge) {
  for (const std::int64_t length : {0, 1, 7, 8, 31, 33, 255, 256, 511, 512, 513, 1024, 2047, 2048, 2049, 4100}) {
    for (const std::size_t shift : {0U, 1U, 3U}) {
      for (const Dtype dtype : {Dtype::kUInt8, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kInt64})
        check_layout(broadcast({length}, {{length}, {length}}), {dtype}, dtype, shift, {});
    }
  }
}

TEST(Elementwise, WidthsMeetInOneLane) {
  const std::vector<Dtype> mixed = {Dtype::kBool, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt8};
  for (const testing::Schedule& schedule : testing::schedules(testing::schedule_count(20)))
    for (const Dtype to : {Dtype::kUInt8, Dtype::kInt16, Dtype::kFloat32, Dtype::kFloat64})
      check_layout(broadcast({1500}, {{1500}, {1500}, {1500}, {1500}, {1500}}), mixed, to, 0, schedule);
}

TEST(Elementwise, Broadcasting) {
  const std::vector<Layout> layouts = {
      broadcast({7, 300}, {{7, 300}, {300}}),                // a bias
      broadcast({40, 64}, {{40, 64}, {64}}),                 // by vectors
      broadcast({33, 70}, {{33, 1}, {1, 70}}),               // an outer sum
      broadcast({2, 5, 6, 17}, {{2, 5, 6, 17}, {5, 1, 1}}),  // channels
      broadcast({2, 8, 16, 16}, {{8, 1, 16}, {2, 1, 16, 16}, {1}}),
      broadcast({3, 2, 3, 2, 3, 2, 3, 2}, {{3, 1, 3, 1, 3, 1, 3, 1}, {2, 1, 2, 1, 2, 1, 2}, {2}}),
      broadcast({4, 1, 600}, {{1, 1, 600}, {4, 1, 1}}),
      broadcast({0, 5}, {{0, 5}, {5}}),
      broadcast({}, {{}, {}}),
      broadcast({1, 1, 1}, {{1}, {1, 1, 1}}),
      broadcast({600}, {{1}, {1}}),
  };
  for (const Layout& layout : layouts) {
    for (const std::size_t shift : {0U, 2U}) {
      check_layout(layout, {Dtype::kFloat32}, Dtype::kFloat32, shift, {});
      check_layout(layout, {Dtype::kBFloat16, Dtype::kUInt8, Dtype::kFloat64}, Dtype::kInt16, shift, {});
    }
  }
  // Strides that no broadcasting gives: every other element, and a transposed matrix.
  check_layout({{300}, {{2}, {1}}, {599, 300}}, {Dtype::kFloat32}, Dtype::kFloat32, 0, {});
  check_layout({{30, 20}, {{1, 30}, {20, 1}}, {600, 600}}, {Dtype::kFloat16}, Dtype::kFloat32, 0, {});
}

TEST(Elementwise, IndicesAboveTwoToThe31) {
  Elementwise request;
  float nothing = 0;
  request.rank = 3;
  request.extents[0] = std::int64_t{1} << 20;
  request.extents[1] = 3;
  request.extents[2] = std::int64_t{1} << 20;
  request.operand_count = 2;
  for (ElementOperand& operand : request.operands) operand.data = &nothing;
  request.operands[0].strides[0] = std::int64_t{1} << 20;  // [2^20, 1, 2^20]
  request.operands[0].strides[2] = 1;
  request.operands[1].strides[1] = 1;  // [3, 1]
  request.step_count = 1;
  request.steps[0].operands[1] = 1;
  request.result = &nothing;
  ElementwiseParameters p;
  Geometry geometry;
  ASSERT_EQ(plan_elementwise(request, &p, &geometry), Status::kOk);
  const std::int64_t n = std::int64_t{1} << 20;
  EXPECT_EQ(p.elements, 3 * n * n);
  EXPECT_EQ(p.tiles, 3 * n * n / 512);
  for (const std::int64_t i :
       {std::int64_t{0}, n - 1, n, 3 * n * n - 1, 2 * n * n + 12345, (std::int64_t{1} << 33) + 77}) {
    EXPECT_EQ(offset_in(p.operands[0], p, i), i / (3 * n) * n + i % n);
    EXPECT_EQ(offset_in(p.operands[1], p, i), i / n % 3);
  }
  request.extents[1] = std::int64_t{1} << 30;
  EXPECT_EQ(plan_elementwise(request, &p, &geometry), Status::kBadShape);
  request.extents[0] = 0;
  EXPECT_EQ(plan_elementwise(request, &p, &geometry), Status::kOk);
  EXPECT_EQ(geometry.blocks, 0U);
}

// --- programs

/// A program of random steps, and the same as calls of one step each: the bits are equal.
TEST(Elementwise, ProgramsAreTheirStepsOneByOne) {
  std::mt19937 random(7);
  const auto pick = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  constexpr std::size_t kCount = 700;
  for (int round = 0; round < 60; ++round) {
    const Dtype compute = round % 3 == 0 ? Dtype::kFloat64 : round % 3 == 1 ? Dtype::kFloat32 : Dtype::kInt64;
    const bool floats = compute != Dtype::kInt64;
    std::vector<Dtype> dtypes =
        floats ? std::vector<Dtype>{Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16, Dtype::kBool}
               : std::vector<Dtype>{Dtype::kInt8, Dtype::kInt32, Dtype::kInt64, Dtype::kUInt8};
    if (compute == Dtype::kFloat64) dtypes.push_back(Dtype::kFloat64);
    Elementwise request;
    request.compute = compute;
    request.rank = 1;
    request.extents[0] = kCount;
    request.operand_count = 3;
    std::vector<std::unique_ptr<Tensor>> values;
    for (int k = 0; k < 3; ++k) {
      values.push_back(std::make_unique<Tensor>(dtypes[static_cast<std::size_t>(pick(static_cast<int>(dtypes.size())))],
                                                kCount, Access::kReadOnly, "operand"));
      for (std::size_t i = 0; i < kCount; ++i)
        values.back()->set(i, floats ? (static_cast<long double>(random() % 4096) - 2048) / 512
                                     : static_cast<long double>(static_cast<int>(random() % 512) - 256));
      request.operands[k] = {values.back()->data(), false, 0, values.back()->dtype(), {1}};
    }
    request.step_count = 2 + pick(9);
    std::vector<std::unique_ptr<Tensor>> results;
    for (int s = 0; s < request.step_count; ++s) {
      ElementStep& step = request.steps[s];
      step.op = static_cast<ElementOp>(pick(static_cast<int>(floats ? ElementOp::kIsNaN : ElementOp::kCast) + 1));
      step.dtype = dtypes[static_cast<std::size_t>(pick(static_cast<int>(dtypes.size())))];
      step.alpha = 0.25;
      step.beta = 0.5;
      Elementwise own;
      own.compute = compute;
      own.rank = 1;
      own.extents[0] = kCount;
      own.step_count = 1;
      own.steps[0] = step;
      for (int i = 0; i < arity_of(step.op); ++i) {
        const int source = pick(3 + s);
        step.operands[i] = source < 3 ? source : kMaxElementOperands + source - 3;
        Tensor& from =
            source < 3 ? *values[static_cast<std::size_t>(source)] : *results[static_cast<std::size_t>(source - 3)];
        own.operands[own.operand_count] = {from.data(), false, 0, from.dtype(), {1}};
        own.steps[0].operands[i] = own.operand_count++;
      }
      results.push_back(std::make_unique<Tensor>(step.dtype, kCount, Access::kWriteFirst, "step"));
      own.result = results.back()->data();
      own.result_dtype = step.dtype;
      use({});
      ASSERT_EQ(elementwise(own, nullptr), Status::kOk);
      ASSERT_TRUE(clean());
    }
    Tensor whole(request.steps[request.step_count - 1].dtype, kCount, Access::kWriteFirst, "whole");
    request.result = whole.data();
    request.result_dtype = whole.dtype();
    use({});
    const Status status = elementwise(request, nullptr);
    ASSERT_TRUE(status == Status::kOk || status == Status::kBadParameter);
    if (status != Status::kOk) continue;  // too many values at one time
    ASSERT_TRUE(clean());
    for (std::size_t i = 0; i < kCount; ++i)
      ASSERT_TRUE(same(whole.value(i), results.back()->value(i)))
          << "round " << round << ", element " << i << ": " << static_cast<double>(whole.value(i)) << " for "
          << static_cast<double>(results.back()->value(i));
  }
}

TEST(Elementwise, NumbersSlotsAndTooManyValues) {
  // x, 2 x, 3 x, ... each kept to the end, where they are added.
  constexpr std::size_t kCount = 600;
  Tensor x(Dtype::kFloat32, kCount, Access::kReadOnly, "x");
  for (std::size_t i = 0; i < kCount; ++i) x.set(i, static_cast<long double>(i % 97));
  for (const int kept : {2, 7, 8, 9}) {
    Tensor result(Dtype::kFloat32, kCount, Access::kWriteFirst, "result");
    Elementwise request = single(ElementOp::kMul, Dtype::kFloat32, Dtype::kFloat32, {&x}, result);
    request.step_count = 0;
    request.operand_count = 2;
    request.operands[1].is_number = true;
    request.operands[1].number = 1;
    for (int k = 0; k < kept; ++k)
      request.steps[request.step_count++] = {
          ElementOp::kAdd, Dtype::kFloat32, {k == 0 ? 0 : kMaxElementOperands + k - 1, k == 0 ? 1 : 0, 0}, 0, 0};
    for (int k = 0; k + 1 < kept; ++k) {
      request.steps[request.step_count] = {ElementOp::kAdd,
                                           Dtype::kFloat32,
                                           {kMaxElementOperands + request.step_count - 1, kMaxElementOperands + k, 0},
                                           0,
                                           0};
      ++request.step_count;
    }
    for (const testing::Schedule& schedule : testing::schedules(testing::schedule_count(4))) {
      use(schedule);
      ASSERT_EQ(elementwise(request, nullptr), kept <= 9 ? Status::kOk : Status::kBadParameter);
      ASSERT_TRUE(clean());
    }
    // (x + 1) + (2 x + 1) + ... + (kept x + 1)
    for (std::size_t i = 0; i < kCount; ++i)
      ASSERT_EQ(result.value(i), static_cast<long double>(static_cast<int>(i % 97) * kept * (kept + 1) / 2 + kept));
  }
}

// --- refusals

TEST(Elementwise, RefusesWhatItCannotDo) {
  Tensor x(Dtype::kFloat32, 64, Access::kReadWrite, "x");
  for (std::size_t i = 0; i < 64; ++i) x.set(i, static_cast<long double>(i));
  Tensor result(Dtype::kFloat32, 64, Access::kWriteFirst, "result");
  const Elementwise good = single(ElementOp::kAdd, Dtype::kFloat32, Dtype::kFloat32, {&x, &x}, result);
  const auto with = [&](const std::function<void(Elementwise&)>& change) {
    Elementwise request = good;
    change(request);
    use({});
    const Status status = elementwise(request, nullptr);
    EXPECT_TRUE(clean());
    return static_cast<Status::Code>(status);
  };
  EXPECT_EQ(with([](Elementwise&) {}), Status::kOk);
  EXPECT_EQ(with([](Elementwise& r) { r.extents[0] = -1; }), Status::kBadShape);
  EXPECT_EQ(with([](Elementwise& r) { r.rank = 9; }), Status::kBadShape);
  EXPECT_EQ(with([](Elementwise& r) { r.compute = Dtype::kFloat16; }), Status::kUnsupportedDtype);
  EXPECT_EQ(with([](Elementwise& r) { r.operands[0].dtype = Dtype::kFloat8E4M3; }), Status::kUnsupportedDtype);
  EXPECT_EQ(with([](Elementwise& r) { r.result_dtype = Dtype::kFloat8E5M2; }), Status::kUnsupportedDtype);
  EXPECT_EQ(with([](Elementwise& r) { r.steps[0].dtype = Dtype::kFloat64; }), Status::kUnsupportedDtype);
  EXPECT_EQ(with([](Elementwise& r) { r.steps[0].dtype = Dtype::kInt32; }), Status::kUnsupportedDtype);
  EXPECT_EQ(with([](Elementwise& r) { r.steps[0].op = static_cast<ElementOp>(kElementOpCount); }),
            Status::kBadParameter);
  EXPECT_EQ(with([](Elementwise& r) { r.steps[0].op = ElementOp::kFlooredMod; }), Status::kBadParameter);
  EXPECT_EQ(with([](Elementwise& r) { r.steps[0].operands[1] = 2; }), Status::kBadParameter);
  EXPECT_EQ(with([](Elementwise& r) { r.steps[0].operands[1] = kMaxElementOperands; }), Status::kBadParameter);
  EXPECT_EQ(with([](Elementwise& r) { r.step_count = 0; }), Status::kBadParameter);
  EXPECT_EQ(with([](Elementwise& r) { r.operands[0].strides[0] = -1; }), Status::kBadParameter);
  EXPECT_EQ(with([](Elementwise& r) {
              r.compute = r.steps[0].dtype = Dtype::kInt64;
              r.steps[0].op = ElementOp::kExp;
            }),
            Status::kBadParameter);
  EXPECT_EQ(with([](Elementwise& r) { r.operands[1].data = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(with([](Elementwise& r) { r.result = nullptr; }), Status::kNullPointer);
  EXPECT_EQ(with([&](Elementwise& r) { r.operands[1].data = static_cast<char*>(x.data()) + 1; }), Status::kMisaligned);
  EXPECT_EQ(with([&](Elementwise& r) { r.result = static_cast<char*>(result.data()) + 2; }), Status::kMisaligned);
  // Over an operand: one element on, over one that is stretched, and exactly.
  EXPECT_EQ(with([&](Elementwise& r) {
              r.result = static_cast<char*>(x.data()) + 4;
              r.extents[0] = 60;
            }),
            Status::kOverlap);
  EXPECT_EQ(with([&](Elementwise& r) {
              r.result = x.data();
              r.operands[1].strides[0] = 0;
            }),
            Status::kOverlap);
  EXPECT_EQ(with([&](Elementwise& r) { r.result = x.data(); }), Status::kOk);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(x.value(i), static_cast<long double>(2 * i));
}

}  // namespace
}  // namespace tensorlint::kernels
