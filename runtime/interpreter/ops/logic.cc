// Comparisons, logic and selection. Source: ONNX Equal, Less, Greater (opsets 1-19), LessOrEqual, GreaterOrEqual (12,
// 16), And, Or, Xor (1, 7), Not (1), Where (9, 16), IsNaN (9-20), IsInf (10, 20). NaN compares as C++ does.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/elementwise.h"

namespace tensorlint::runtime {
namespace {

struct EqualOp {
  template <typename T>
  static std::uint8_t apply(T a, T b) {
    return a == b;
  }
};

struct LessOp {
  template <typename T>
  static std::uint8_t apply(T a, T b) {
    return a < b;
  }
};

struct GreaterOp {
  template <typename T>
  static std::uint8_t apply(T a, T b) {
    return a > b;
  }
};

struct LessOrEqualOp {
  template <typename T>
  static std::uint8_t apply(T a, T b) {
    return a <= b;
  }
};

struct GreaterOrEqualOp {
  template <typename T>
  static std::uint8_t apply(T a, T b) {
    return a >= b;
  }
};

// Elements of bool are 0 or 1.
struct LogicalAnd {
  static std::uint8_t apply(std::uint8_t a, std::uint8_t b) { return a & b; }
};
struct LogicalOr {
  static std::uint8_t apply(std::uint8_t a, std::uint8_t b) { return a | b; }
};
struct LogicalXor {
  static std::uint8_t apply(std::uint8_t a, std::uint8_t b) { return a ^ b; }
};

template <typename Op>
void compare(Evaluation& e) {
  const BroadcastWalk walk = binary_operands(e);
  run_rows(walk, e.result(), predicate_rows<Op>());
}

void equal(Evaluation& e) {
  if (e.operand(0).dtype() != DType::kString) return compare<EqualOp>(e);
  const BroadcastWalk walk = binary_operands(e);
  const Strings &a = walk.operand(0).strings(), &b = walk.operand(1).strings();
  std::uint8_t* const to = e.result().as_mutable<std::uint8_t>().data();
  walk.for_each_run([&](std::size_t first, std::size_t run, std::span<const std::size_t> from) {
    for (std::size_t i = 0; i < run; ++i)
      to[first + i] = a[from[0] + (walk.varies(0) ? i : 0)] == b[from[1] + (walk.varies(1) ? i : 0)];
  });
}

template <typename Op>
void logical(Evaluation& e) {
  PredicateRows rows;
  rows.boolean = binary_row<Op, std::uint8_t>;
  const BroadcastWalk walk = binary_operands(e);
  run_rows(walk, e.result(), rows);
}

void logical_not(Evaluation& e) {
  const std::span<const std::uint8_t> x = e.operand(0).as<std::uint8_t>();
  std::uint8_t* const y = e.result().as_mutable<std::uint8_t>().data();
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] ^ 1U;
}

// --- Where

struct Word128 {
  std::uint64_t low, high;
};

template <typename T>
void choose_row(const std::uint8_t* condition, Row<T> x, Row<T> y, T* to, std::size_t count) {
  // Words in registers: `to` may share memory with the operands. A string would be a copy.
  using One = std::conditional_t<std::is_trivially_copyable_v<T>, const T, const T&>;
  if (x.varies && y.varies) {
    for (std::size_t i = 0; i < count; ++i) to[i] = condition[i] != 0 ? x.at[i] : y.at[i];
  } else if (x.varies) {
    One one = *y.at;
    for (std::size_t i = 0; i < count; ++i) to[i] = condition[i] != 0 ? x.at[i] : one;
  } else if (y.varies) {
    One one = *x.at;
    for (std::size_t i = 0; i < count; ++i) to[i] = condition[i] != 0 ? one : y.at[i];
  } else {
    One one = *x.at, other = *y.at;
    for (std::size_t i = 0; i < count; ++i) to[i] = condition[i] != 0 ? one : other;
  }
}

template <typename T>
void choose(const BroadcastWalk& walk, const T* x, const T* y, T* to) {
  const std::uint8_t* const condition = walk.operand(0).as<std::uint8_t>().data();
  walk.for_each_run([&](std::size_t first, std::size_t run, std::span<const std::size_t> from) {
    const Row<T> a{x + from[1], walk.varies(1)}, b{y + from[2], walk.varies(2)};
    if (walk.varies(0)) return choose_row(condition + from[0], a, b, to + first, run);
    const Row<T> chosen = condition[from[0]] != 0 ? a : b;
    if (chosen.varies) {
      std::copy_n(chosen.at, run, to + first);
    } else {
      std::fill_n(to + first, run, *chosen.at);
    }
  });
}

template <typename T>
void choose_words(const BroadcastWalk& walk, HostTensor& to) {
  choose(walk, walk.operand(1).as<T>().data(), walk.operand(2).as<T>().data(), to.as_mutable<T>().data());
}

void where(Evaluation& e) {
  const BroadcastWalk walk = variadic_operands(e);
  HostTensor& to = e.result();
  if (to.dtype() == DType::kString)
    return choose(walk, walk.operand(1).strings().data(), walk.operand(2).strings().data(),
                  to.mutable_strings().data());
  switch (element_bytes(to.dtype())) {
    case 1:
      return choose_words<std::uint8_t>(walk, to);
    case 2:
      return choose_words<std::uint16_t>(walk, to);
    case 4:
      return choose_words<std::uint32_t>(walk, to);
    case 8:
      return choose_words<std::uint64_t>(walk, to);
    default:
      return choose_words<Word128>(walk, to);
  }
}

// --- classes of numbers

template <typename Predicate>
void classify(Evaluation& e, Predicate predicate) {
  const HostTensor& x = e.operand(0);
  std::uint8_t* const y = e.result().as_mutable<std::uint8_t>().data();
  double row[kRow];
  for (std::size_t first = 0; first < x.size(); first += kRow) {
    const std::size_t count = std::min(kRow, x.size() - first);
    load(x, first, count, row);
    for (std::size_t i = 0; i < count; ++i) y[first + i] = predicate(row[i]) ? 1 : 0;
  }
}

void is_nan(Evaluation& e) {
  classify(e, [](double x) { return x != x; });
}

void is_inf(Evaluation& e) {
  const bool positive = e.in().int_attribute("detect_positive", 1) != 0;
  const bool negative = e.in().int_attribute("detect_negative", 1) != 0;
  classify(e, [=](double x) { return (positive && x == HUGE_VAL) || (negative && x == -HUGE_VAL); });
}

const RegisterEvaluators kLogic{
    Evaluator("Equal").evaluate(equal).error(Rounding::exact()),
    Evaluator("Less").evaluate(compare<LessOp>).error(Rounding::exact()),
    Evaluator("Greater").evaluate(compare<GreaterOp>).error(Rounding::exact()),
    Evaluator("LessOrEqual").evaluate(compare<LessOrEqualOp>).error(Rounding::exact()),
    Evaluator("GreaterOrEqual").evaluate(compare<GreaterOrEqualOp>).error(Rounding::exact()),
    Evaluator("And").evaluate(logical<LogicalAnd>).error(Rounding::exact()),
    Evaluator("Or").evaluate(logical<LogicalOr>).error(Rounding::exact()),
    Evaluator("Xor").evaluate(logical<LogicalXor>).error(Rounding::exact()),
    Evaluator("Not").evaluate(logical_not).error(Rounding::exact()),
    Evaluator("Where").evaluate(where).error(Rounding::exact()),
    Evaluator("IsNaN").evaluate(is_nan).error(Rounding::exact()),
    Evaluator("IsInf").evaluate(is_inf).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
