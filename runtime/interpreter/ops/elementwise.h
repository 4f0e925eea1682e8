#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "runtime/interpreter/evaluation.h"
#include "runtime/values/codec.h"
#include "runtime/values/simd_target.h"

namespace tensorlint::runtime {

// Operators that work element by element: their operands, broadcast to the result, are cut into runs along which an
// operand is either dense or one element, and runs into rows that plain loops compute.

/// Tensors broadcast to one shape, walked together. Axes along which all of them go on evenly are one axis.
class BroadcastWalk {
 public:
  /// Broadcasts `operands` (numpy's rules) to `target`. Operands that would take many short runs are broadcast in
  /// memory.
  BroadcastWalk(std::span<const std::int64_t> target, std::vector<HostTensor> operands, Memory& memory);
  BroadcastWalk(const BroadcastWalk&) = delete;
  BroadcastWalk& operator=(const BroadcastWalk&) = delete;

  std::size_t count() const { return operands_.size(); }
  const HostTensor& operand(std::size_t k) const { return operands_[k]; }
  /// Whether the operand's elements follow each other in a run; else one element serves it all.
  bool varies(std::size_t k) const { return varies_[k] != 0; }

  /// Calls visit(first element of the target, elements, first element of each operand) for each run, in order.
  template <typename Visit>
  void for_each_run(Visit&& visit) const {
    if (run_ == 0) return;
    std::array<std::byte, kScratch> memory;
    std::pmr::monotonic_buffer_resource scratch(memory.data(), memory.size());
    std::pmr::vector<std::int64_t> index(outer_.size(), 0, &scratch);
    std::pmr::vector<std::size_t> from(operands_.size(), 0, &scratch);
    for (std::size_t to = 0;; to += run_) {
      visit(to, run_, std::span<const std::size_t>(from));
      if (!advance(index, from)) return;
    }
  }

 private:
  static constexpr std::size_t kScratch = 512;  // bytes: most walks take no memory from the heap

  void collapse(std::span<const std::int64_t> target);
  std::size_t runs() const;
  bool advance(std::span<std::int64_t> index, std::span<std::size_t> from) const;
  std::int64_t stride(std::size_t axis, std::size_t k) const { return strides_[axis * operands_.size() + k]; }

  std::vector<HostTensor> operands_;
  std::array<std::byte, kScratch> memory_;
  std::pmr::monotonic_buffer_resource scratch_{memory_.data(), memory_.size()};
  std::pmr::vector<std::int64_t> outer_{&scratch_};    ///< extents of the axes around a run, the innermost first
  std::pmr::vector<std::int64_t> strides_{&scratch_};  ///< by axis of these and operand
  std::pmr::vector<char> varies_{&scratch_};
  std::size_t run_ = 0;
};

/// A part of a run: elements that follow each other, or one for them all.
template <typename T>
struct Row {
  const T* at = nullptr;
  bool varies = true;
};

template <typename T, typename R>
using BinaryRow = void (*)(Row<T> a, Row<T> b, R* to, std::size_t count);

/// to[i] = Op::apply(a[i], b[i]).
template <typename Op, typename T, typename R = T>
void binary_row(Row<T> a, Row<T> b, R* to, std::size_t count) {
  const T x = *a.at, y = *b.at;
  if (a.varies && b.varies) {
    TENSORLINT_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) to[i] = Op::apply(a.at[i], b.at[i]);
  } else if (b.varies) {
    TENSORLINT_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) to[i] = Op::apply(x, b.at[i]);
  } else if (a.varies) {
    TENSORLINT_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) to[i] = Op::apply(a.at[i], y);
  } else {
    for (std::size_t i = 0; i < count; ++i) to[i] = Op::apply(x, y);
  }
}

/// An operator's loop for each type that its rows may have. Floating dtypes without one of their own go through
/// float64, signed integers (and bool) through int64; null where the operator has no such operands.
template <typename F32, typename F64, typename I64, typename U64>
struct BinaryRows {
  BinaryRow<float, F32> f32 = nullptr;
  BinaryRow<double, F64> f64 = nullptr;
  BinaryRow<std::int64_t, I64> i64 = nullptr;
  BinaryRow<std::uint64_t, U64> u64 = nullptr;
  BinaryRow<std::uint8_t, std::uint8_t> boolean = nullptr;
};
/// Of operators whose result has the operands' dtype.
using ArithmeticRows = BinaryRows<float, double, std::int64_t, std::uint64_t>;
/// Of operators whose result is bool.
using PredicateRows = BinaryRows<std::uint8_t, std::uint8_t, std::uint8_t, std::uint8_t>;

template <typename Op>
constexpr ArithmeticRows arithmetic_rows() {
  return {binary_row<Op, float>, binary_row<Op, double>, binary_row<Op, std::int64_t>, binary_row<Op, std::uint64_t>,
          nullptr};
}
template <typename Op>
constexpr ArithmeticRows integer_rows() {
  return {nullptr, nullptr, binary_row<Op, std::int64_t>, binary_row<Op, std::uint64_t>, nullptr};
}
template <typename Op>
constexpr PredicateRows predicate_rows() {
  return {binary_row<Op, float, std::uint8_t>, binary_row<Op, double, std::uint8_t>,
          binary_row<Op, std::int64_t, std::uint8_t>, binary_row<Op, std::uint64_t, std::uint8_t>,
          binary_row<Op, std::uint8_t, std::uint8_t>};
}

/// The result from operands of one dtype.
void run_rows(const BroadcastWalk& walk, HostTensor& to, const ArithmeticRows& rows);
void run_rows(const BroadcastWalk& walk, HostTensor& to, const PredicateRows& rows);

/// Operands 0 and 1 as they meet the result: by numpy's rules from opset 7 on; before, operand 1 begins at `axis` of
/// operand 0, or ends where that ends.
/// Both also allocate the result, in the memory of an operand where they can.
BroadcastWalk binary_operands(Evaluation& e);
/// All operands.
BroadcastWalk variadic_operands(Evaluation& e);

/// Elements [first, first + count) as T, in `buffer` where they are not so in memory; one element where it is not
/// `varies`. T: float, double, std::int64_t, std::uint64_t or, of bool, std::uint8_t.
template <typename T>
Row<T> row_of(const HostTensor& tensor, bool varies, std::size_t first, std::size_t count, T* buffer);

/// T is how elements of the dtype lie in memory.
template <typename T>
bool is_stored_as(DType dtype);

/// The result is function(x) for each integer x of operand 0.
template <typename Function>
void apply_integers(Evaluation& e, Function function) {
  const HostTensor& x = e.operand(0);
  HostTensor& y = e.result_over({0});
  std::int64_t row[kRow];
  for (std::size_t first = 0; first < x.size(); first += kRow) {
    const std::size_t count = std::min(kRow, x.size() - first);
    load(x, first, count, row);
    for (std::size_t i = 0; i < count; ++i) row[i] = function(row[i]);
    store(y, first, count, row);
  }
}

/// Whether an integer operand has a 0.
bool has_zero(const HostTensor& tensor);

}  // namespace tensorlint::runtime
