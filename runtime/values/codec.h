#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "runtime/values/host_tensor.h"

namespace tensorlint::runtime {

// Elements of any dtype as rows of float64 or int64, in which everything is computed.
//
// Loading is exact. Storing rounds once, to nearest with ties to even, straight from float64; float8 types saturate
// where the caller says so (Cast's `saturate`, opset 19), else they overflow to NaN or infinity as their format has it.
// Integers are stored modulo 2^bits; uint64 travels in int64 by its bits. Formats: ONNX "Float stored in 8 bits",
// "Float stored in 4 bits"; OCP Microscaling Formats 1.0 (float4e2m1, float8e8m0, float6).

/// Rows are at most this long.
inline constexpr std::size_t kRow = 1024;

/// Every floating dtype travels in float64, integers and bool in int64; strings and complex numbers in neither.
bool is_float(DType dtype);
bool is_integer_or_bool(DType dtype);

/// Elements [first, first + count) of any numeric dtype; of integers as numbers.
void load(const HostTensor& tensor, std::size_t first, std::size_t count, double* row);
void load(const HostTensor& tensor, std::size_t first, std::size_t count, std::int64_t* row);
void store(HostTensor& tensor, std::size_t first, std::size_t count, const double* row, bool saturate = true);
void store(HostTensor& tensor, std::size_t first, std::size_t count, const std::int64_t* row);

/// The same of `number(i)`, an integer, for each of them.
template <typename Number>
void store_integers(HostTensor& tensor, std::size_t first, std::size_t count, const Number& number) {
  std::array<std::int64_t, kRow> row;
  for (std::size_t done = 0; done < count; done += kRow) {
    const std::size_t part = std::min(kRow, count - done);
    for (std::size_t i = 0; i < part; ++i) row[i] = number(done + i);
    store(tensor, first + done, part, row.data());
  }
}

/// One element.
double number_at(const HostTensor& tensor, std::size_t index);
std::int64_t integer_at(const HostTensor& tensor, std::size_t index);

/// Truncated; NaN and what int64 cannot hold give its smallest number, as processors of x86 do.
inline std::int64_t truncated(double value) {
  constexpr double kLimit = 9223372036854775808.0;
  return value >= -kLimit && value < kLimit ? static_cast<std::int64_t>(value)
                                            : std::numeric_limits<std::int64_t>::min();
}

/// All elements of a numeric tensor in float64.
HostTensor to_float64(const HostTensor& tensor, Memory& memory);

/// The bits of a float16, bfloat16, float8, float6 or float4 number nearest to `value`, and back.
std::uint16_t encode(DType dtype, double value, bool saturate = true);
double decode(DType dtype, std::uint16_t bits);

}  // namespace tensorlint::runtime
