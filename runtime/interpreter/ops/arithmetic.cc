// Element by element arithmetic. Source: ONNX Add, Sub, Mul, Div, Pow (opsets 1-15), Mod (10, 13, 28), Min, Max, Sum,
// Mean (1-13), PRelu (1-16), BitShift (11, 28), BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot (18), SwiGLU (28).
// Integers wrap around; integers divided by 0 end the run. Add, Sub, Mul and Div of float32 in float32 round as in
// float64 and then to float32: 53 >= 2 * 24 + 2.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/element_functions.h"
#include "runtime/interpreter/ops/elementwise.h"
#include "runtime/interpreter/ops/function_loops.h"
#include "runtime/interpreter/terms.h"

namespace tensorlint::runtime {
namespace {

/// Signed integers wrap around as unsigned ones do.
template <typename T>
using Wrapping = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;

struct AddOp {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct SubOp {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};

struct MulOp {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

/// Integers truncate. The smallest one by -1 wraps to itself.
struct DivOp {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_same_v<T, std::int64_t>)
      if (b == -1) return SubOp::apply(T{0}, a);
    return a / b;
  }
};

/// The remainder with the dividend's sign (C's), of `fmod` = 1.
struct TruncatedModOp {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else if constexpr (std::is_signed_v<T>) {
      return b == -1 ? 0 : a % b;
    } else {
      return a % b;
    }
  }
};

/// The remainder with the divisor's sign (Python's).
struct FlooredModOp {
  template <typename T>
  static T apply(T a, T b) {
    const T rest = TruncatedModOp::apply(a, b);
    if constexpr (std::is_unsigned_v<T>) return rest;
    if constexpr (std::is_floating_point_v<T>)
      if (rest == 0) return std::copysign(rest, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};

/// NaN wins, as in numpy.
struct MinOp {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a < b || a != a ? a : b;
    return a < b ? a : b;
  }
};

struct MaxOp {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a > b || a != a ? a : b;
    return a > b ? a : b;
  }
};

struct BitwiseAnd {
  template <typename T>
  static T apply(T a, T b) {
    return a & b;
  }
};

struct BitwiseOr {
  template <typename T>
  static T apply(T a, T b) {
    return a | b;
  }
};

struct BitwiseXor {
  template <typename T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};

/// Shifting by as many bits as there are, or more, leaves none (numpy).
struct ShiftLeftOp {
  template <typename T>
  static T apply(T a, T b) {
    const auto bits = static_cast<std::uint64_t>(b);
    return bits < 64 ? static_cast<T>(static_cast<std::uint64_t>(a) << bits) : T{0};
  }
};

struct ShiftRightOp {
  template <typename T>
  static T apply(T a, T b) {
    const auto bits = static_cast<std::uint64_t>(b);
    return bits < 64 ? a >> bits : a < 0 ? static_cast<T>(-1) : T{0};
  }
};

/// Data times slope where negative.
struct PReluOp {
  template <typename T>
  static T apply(T a, T b) {
    return a < 0 ? MulOp::apply(a, b) : a;
  }
};

void run_binary(Evaluation& e, const ArithmeticRows& rows) {
  const BroadcastWalk walk = binary_operands(e);
  run_rows(walk, e.result(), rows);
}

template <typename Op>
void binary(Evaluation& e) {
  run_binary(e, arithmetic_rows<Op>());
}

template <typename Op>
void bitwise(Evaluation& e) {
  run_binary(e, integer_rows<Op>());
}

void check_divisor(Evaluation& e) {
  if (is_integer_or_bool(e.operand(1).dtype()) && e.result_over({0, 1}).size() != 0 && has_zero(e.operand(1)))
    e.fail("an integer is divided by 0");
}

void div(Evaluation& e) {
  check_divisor(e);
  run_binary(e, arithmetic_rows<DivOp>());
}

void mod(Evaluation& e) {
  check_divisor(e);
  run_binary(
      e, e.in().int_attribute("fmod", 0) != 0 ? arithmetic_rows<TruncatedModOp>() : arithmetic_rows<FlooredModOp>());
}

void bit_shift(Evaluation& e) {
  const bool left = e.in().string_attribute("direction", "") == "LEFT";
  run_binary(e, left ? integer_rows<ShiftLeftOp>() : integer_rows<ShiftRightOp>());
}

void bitwise_not(Evaluation& e) {
  apply_integers(e, [](std::int64_t x) { return ~x; });
}

/// Until opset 6 a slope of one axis belongs to the channels, wherever these are.
void prelu(Evaluation& e) {
  const HostTensor& x = e.operand(0);
  HostTensor slope = e.operand(1);
  if (e.opset() < 7 && slope.rank() == 1 && x.rank() > 2 && slope.size() != 1) {
    Extents extents(x.rank() - 1, 1);
    extents.front() = slope.extent(0);
    slope = slope.reshaped(std::move(extents));
  }
  HostTensor& to = e.result_over({0});
  run_rows(BroadcastWalk(to.extents(), {x, slope}, e.memory()), to, arithmetic_rows<PReluOp>());
}

// --- any number of operands

/// Folds rows of all operands into one that `finish` gets before it is stored.
template <typename Op, typename T, typename Finish>
void fold_as(const BroadcastWalk& walk, HostTensor& to, Finish finish) {
  alignas(64) T sums[2][kRow];
  alignas(64) T buffer[kRow];
  const auto row = [&](std::size_t k, std::size_t from, std::size_t done, std::size_t count) {
    return row_of(walk.operand(k), walk.varies(k), from + (walk.varies(k) ? done : 0), count, buffer);
  };
  walk.for_each_run([&](std::size_t first, std::size_t run, std::span<const std::size_t> from) {
    for (std::size_t done = 0; done < run; done += kRow) {
      const std::size_t count = std::min(kRow, run - done);
      T *now = sums[0], *next = sums[1];
      const Row<T> start = row(0, from[0], done, count);
      for (std::size_t i = 0; i < count; ++i) now[i] = start.at[start.varies ? i : 0];
      for (std::size_t k = 1; k < walk.count(); ++k) {
        binary_row<Op, T>({now, true}, row(k, from[k], done, count), next, count);
        std::swap(now, next);
      }
      finish(now, count);
      if constexpr (std::is_same_v<T, std::uint64_t>) {
        store(to, first + done, count, reinterpret_cast<const std::int64_t*>(now));
      } else {
        store(to, first + done, count, now);
      }
    }
  });
}

constexpr auto kAsIs = [](auto*, std::size_t) {};

template <typename Op>
void extreme(Evaluation& e) {
  if (e.operand_count() == 1) return e.set(0, e.value(0));
  const BroadcastWalk walk = variadic_operands(e);
  if (e.operand_count() == 2) return run_rows(walk, e.result(), arithmetic_rows<Op>());
  const DType dtype = e.result().dtype();
  if (is_float(dtype)) return fold_as<Op, double>(walk, e.result(), kAsIs);
  if (dtype == DType::kUint64) return fold_as<Op, std::uint64_t>(walk, e.result(), kAsIs);
  fold_as<Op, std::int64_t>(walk, e.result(), kAsIs);
}

void sum(Evaluation& e) {
  if (e.operand_count() == 1) return e.set(0, e.value(0));
  const BroadcastWalk walk = variadic_operands(e);
  if (e.operand_count() == 2) return run_rows(walk, e.result(), arithmetic_rows<AddOp>());
  fold_as<AddOp, double>(walk, e.result(), kAsIs);
}

void mean(Evaluation& e) {
  if (e.operand_count() == 1) return e.set(0, e.value(0));
  const auto operands = static_cast<double>(e.operand_count());
  const BroadcastWalk walk = variadic_operands(e);
  fold_as<AddOp, double>(walk, e.result(), [=](double* row, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) row[i] /= operands;
  });
}

// --- powers

/// base^exponent modulo 2^64. A negative exponent truncates 1 / base^-exponent.
std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) throw RunFault{"an integer 0 has no power with a negative exponent"};
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return base == 1 ? 1 : 0;
  }
  std::uint64_t result = 1, square = static_cast<std::uint64_t>(base);
  for (auto left = static_cast<std::uint64_t>(exponent); left != 0; left >>= 1, square *= square)
    if ((left & 1U) != 0) result *= square;
  return static_cast<std::int64_t>(result);
}

void power_row(Row<double> a, Row<double> b, double* to, std::size_t count) {
  const double exponent = *b.at;
  if (a.varies && !b.varies && exponent == 2) {
    for (std::size_t i = 0; i < count; ++i) to[i] = a.at[i] * a.at[i];
  } else if (a.varies && !b.varies && exponent == 3) {
    for (std::size_t i = 0; i < count; ++i) to[i] = a.at[i] * a.at[i] * a.at[i];
  } else {
    for (std::size_t i = 0; i < count; ++i) to[i] = std::pow(a.at[a.varies ? i : 0], b.at[b.varies ? i : 0]);
  }
}

/// Base and exponent have dtypes of their own; the result has the base's.
void pow(Evaluation& e) {
  const BroadcastWalk walk = binary_operands(e);
  HostTensor& to = e.result();
  const HostTensor &base = walk.operand(0), &exponent = walk.operand(1);
  const bool integers = is_integer_or_bool(base.dtype());
  const bool exact = integers && is_integer_or_bool(exponent.dtype());
  alignas(64) double a[kRow], b[kRow], powers[kRow];
  std::int64_t x[kRow], y[kRow];
  walk.for_each_run([&](std::size_t first, std::size_t run, std::span<const std::size_t> from) {
    for (std::size_t done = 0; done < run; done += kRow) {
      const std::size_t count = std::min(kRow, run - done);
      const std::size_t at_a = from[0] + (walk.varies(0) ? done : 0), at_b = from[1] + (walk.varies(1) ? done : 0);
      if (exact) {
        const Row<std::int64_t> p = row_of(base, walk.varies(0), at_a, count, x),
                                q = row_of(exponent, walk.varies(1), at_b, count, y);
        std::int64_t results[kRow];
        for (std::size_t i = 0; i < count; ++i)
          results[i] = integer_power(p.at[p.varies ? i : 0], q.at[q.varies ? i : 0]);
        store(to, first + done, count, results);
        continue;
      }
      power_row(row_of(base, walk.varies(0), at_a, count, a), row_of(exponent, walk.varies(1), at_b, count, b), powers,
                count);
      if (!integers) {
        store(to, first + done, count, powers);
        continue;
      }
      for (std::size_t i = 0; i < count; ++i) x[i] = truncated(powers[i]);
      store(to, first + done, count, x);
    }
  });
}

/// Swish of the gate times the value; both have one shape.
void swiglu(Evaluation& e) {
  const HostTensor &gate = e.operand(0), &value = e.operand(1);
  HostTensor& to = e.result_over({0, 1});
  const SwishFunction swish{{}, e.in().float_attribute("alpha", 1)};
  const auto loop = FunctionLoop<SwishFunction, double>::best();
  alignas(64) double a[kRow], b[kRow], gates[kRow];
  for (std::size_t first = 0; first < to.size(); first += kRow) {
    const std::size_t count = std::min(kRow, to.size() - first);
    load(gate, first, count, a);
    load(value, first, count, b);
    loop(swish, a, gates, count);
    for (std::size_t i = 0; i < count; ++i) gates[i] *= b[i];
    store(to, first, count, gates);
  }
}

const RegisterEvaluators kArithmetic{
    Evaluator("Add").evaluate(binary<AddOp>).error(Rounding::rounded()),
    Evaluator("Sub").evaluate(binary<SubOp>).error(Rounding::rounded()),
    Evaluator("Mul").evaluate(binary<MulOp>).error(Rounding::rounded()),
    Evaluator("Div").evaluate(div).error(Rounding::rounded()),
    Evaluator("Mod").evaluate(mod).error(Rounding::rounded().with_jumps()),
    Evaluator("Pow").evaluate(pow).error(Rounding::of("pow")),
    Evaluator("Min").evaluate(extreme<MinOp>).error(Rounding::exact()),
    Evaluator("Max").evaluate(extreme<MaxOp>).error(Rounding::exact()),
    Evaluator("Sum").evaluate(sum).error(Rounding::accumulates(terms_of_variadic)),
    Evaluator("Mean").evaluate(mean).error(Rounding::accumulates(terms_of_variadic)),
    Evaluator("PRelu").evaluate(prelu).error(Rounding::rounded()),
    Evaluator("BitShift").evaluate(bit_shift).error(Rounding::exact()),
    Evaluator("BitwiseAnd").evaluate(bitwise<BitwiseAnd>).error(Rounding::exact()),
    Evaluator("BitwiseOr").evaluate(bitwise<BitwiseOr>).error(Rounding::exact()),
    Evaluator("BitwiseXor").evaluate(bitwise<BitwiseXor>).error(Rounding::exact()),
    Evaluator("BitwiseNot").evaluate(bitwise_not).error(Rounding::exact()),
    Evaluator("SwiGLU").evaluate(swiglu).error(Rounding::composite()),
};

}  // namespace
}  // namespace tensorlint::runtime
