#include "runtime/values/codec.h"
#include "runtime/values/simd_target.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

namespace tensorlint::runtime {
namespace {

/// A floating-point format below 32 bits.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  std::uint16_t largest;   ///< bits of the largest finite number
  std::uint16_t infinity;  ///< bits; 0: the format has none
  std::uint16_t nan;       ///< bits; 0: the format has none
  bool negative_zero = true;
  bool is_signed = true;

  int bits() const { return exponent_bits + mantissa_bits + (is_signed ? 1 : 0); }
  unsigned sign_bit() const { return is_signed ? 1U << (exponent_bits + mantissa_bits) : 0U; }
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {5, 10, 15, 0x7bff, 0x7c00, 0x7e00};
    case DType::kBFloat16:
      return {8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0};
    case DType::kFloat8E4M3FN:
      return {4, 3, 7, 0x7e, 0, 0x7f};
    case DType::kFloat8E4M3FNUZ:
      return {4, 3, 8, 0x7f, 0, 0x80, false};
    case DType::kFloat8E5M2:
      return {5, 2, 15, 0x7b, 0x7c, 0x7e};
    case DType::kFloat8E5M2FNUZ:
      return {5, 2, 16, 0x7f, 0, 0x80, false};
    case DType::kFloat8E8M0:
      return {8, 0, 127, 0xfe, 0, 0xff, false, false};
    case DType::kFloat4E2M1:
      return {2, 1, 1, 0x7, 0, 0};
    case DType::kFloat6E2M3:
      return {2, 3, 1, 0x1f, 0, 0};
    default:
      assert(dtype == DType::kFloat6E3M2);
      return {3, 2, 3, 0x1f, 0, 0};
  }
}

/// float8e8m0 is a power of two: the exponent alone, with no zero and no subnormal numbers.
double decode_power(std::uint16_t bits) {
  return bits == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, int{bits} - 127);
}

std::uint16_t encode_power(double value) {
  if (std::isnan(value)) return 0xff;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return 0;
  if (std::isinf(magnitude)) return 0xfe;
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // [0.5, 1)
  // Halfway between 2^(e-1) and 2^e lies 0.75 * 2^e; the tie goes up.
  const int rounded = exponent - 1 + (fraction >= 0.75 ? 1 : 0);
  return static_cast<std::uint16_t>(std::clamp(rounded + 127, 0, 0xfe));
}

double decode(const Format& format, std::uint16_t bits) {
  if (!format.negative_zero && bits == format.nan) return std::numeric_limits<double>::quiet_NaN();
  const unsigned sign = bits & format.sign_bit();
  const auto magnitude = static_cast<std::uint16_t>(bits & (format.sign_bit() - 1U));
  double value = 0;
  if (format.infinity != 0 && magnitude == format.infinity) {
    value = std::numeric_limits<double>::infinity();
  } else if (magnitude > format.largest) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    const int exponent = magnitude >> format.mantissa_bits;
    const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
    const int scale = 1 - format.bias - format.mantissa_bits;
    value = exponent == 0 ? std::ldexp(mantissa, scale)
                          : std::ldexp(mantissa + (1 << format.mantissa_bits), scale + exponent - 1);
  }
  return sign != 0 ? -value : value;
}

std::uint16_t overflowed(const Format& format, double value, bool saturate) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? format.sign_bit() : 0U);
  // float16 and bfloat16 never saturate; formats without infinity and NaN always do.
  const bool is_half = format.bits() == 16;
  if ((saturate && !is_half) || (format.infinity == 0 && format.nan == 0))
    return static_cast<std::uint16_t>(sign | format.largest);
  if (format.infinity != 0) return static_cast<std::uint16_t>(sign | format.infinity);
  return format.negative_zero ? static_cast<std::uint16_t>(sign | format.nan) : format.nan;
}

std::uint16_t encode(const Format& format, double value, bool saturate) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? format.sign_bit() : 0U);
  if (std::isnan(value)) {
    if (format.nan == 0) return static_cast<std::uint16_t>(format.sign_bit());  // as ml_dtypes: minus zero
    return format.negative_zero ? static_cast<std::uint16_t>(sign | format.nan) : format.nan;
  }
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return overflowed(format, value, saturate);
  unsigned bits = 0;
  if (magnitude != 0) {
    const int lowest = 1 - format.bias;  // exponent of the smallest normal number, and of subnormal ones
    const int exponent = std::max(std::ilogb(magnitude), lowest);
    if (exponent > lowest + (1 << format.exponent_bits)) return overflowed(format, value, saturate);
    // A multiple of the distance between neighbours; a carry into the next exponent is right as it stands.
    const double steps = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
    bits = (static_cast<unsigned>(exponent - lowest) << format.mantissa_bits) + static_cast<unsigned>(steps);
    if (bits > format.largest) return overflowed(format, value, saturate);
  }
  if (bits == 0 && !format.negative_zero) return 0;
  return static_cast<std::uint16_t>(sign | bits);
}

/// All numbers of a format, by their bits.
template <DType dtype>
const std::vector<double>& numbers_of() {
  static const std::vector<double> numbers = [] {
    std::vector<double> all(std::size_t{1} << bit_width(dtype));
    for (std::size_t bits = 0; bits < all.size(); ++bits)
      all[bits] = runtime::decode(dtype, static_cast<std::uint16_t>(bits));
    return all;
  }();
  return numbers;
}

const std::vector<double>& small_numbers(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return numbers_of<DType::kFloat16>();
    case DType::kBFloat16:
      return numbers_of<DType::kBFloat16>();
    case DType::kFloat8E4M3FN:
      return numbers_of<DType::kFloat8E4M3FN>();
    case DType::kFloat8E4M3FNUZ:
      return numbers_of<DType::kFloat8E4M3FNUZ>();
    case DType::kFloat8E5M2:
      return numbers_of<DType::kFloat8E5M2>();
    case DType::kFloat8E5M2FNUZ:
      return numbers_of<DType::kFloat8E5M2FNUZ>();
    case DType::kFloat8E8M0:
      return numbers_of<DType::kFloat8E8M0>();
    case DType::kFloat4E2M1:
      return numbers_of<DType::kFloat4E2M1>();
    case DType::kFloat6E2M3:
      return numbers_of<DType::kFloat6E2M3>();
    default:
      return numbers_of<DType::kFloat6E3M2>();
  }
}

/// Loops for one kind of processor: exact or correctly rounded, the same on all.
struct Loops {
  void (*widen)(const float* from, double* to, std::size_t count);
  void (*narrow)(const double* from, float* to, std::size_t count);
  void (*encode_float16)(const double* from, std::uint16_t* to, std::size_t count);
  void (*encode_bfloat16)(const double* from, std::uint16_t* to, std::size_t count);
};

/// float16 and bfloat16, of `mantissa` bits, with exponents from `lowest`: `value` rounded to nearest, ties to even.
template <int mantissa, int lowest>
[[gnu::always_inline]] inline std::uint16_t encode_half(double value) {
  constexpr int kDropped = 52 - mantissa;
  constexpr std::uint64_t kInfinity = ((std::uint64_t{1} << (15 - mantissa)) - 1) << mantissa;
  constexpr std::uint64_t kBias = static_cast<std::uint64_t>(1023 + lowest - 1) << mantissa;
  // Added to a number below the normal ones, it leaves the multiple of the smallest one in the low bits.
  constexpr double kShift = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + 52 + lowest - mantissa) << 52);
  constexpr double kLeastNormal = std::bit_cast<double>(static_cast<std::uint64_t>(1023 + lowest) << 52);
  const auto all = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t bits = all & ~(std::uint64_t{1} << 63), sign = all >> 63 << 15;
  const double magnitude = std::bit_cast<double>(bits);
  const std::uint64_t tie = (std::uint64_t{1} << (kDropped - 1)) - 1 + ((bits >> kDropped) & 1);
  std::uint64_t normal = ((bits + tie) >> kDropped) - kBias;
  const std::uint64_t small = std::bit_cast<std::uint64_t>(magnitude + kShift) - std::bit_cast<std::uint64_t>(kShift);
  std::uint64_t result = magnitude < kLeastNormal ? small : normal;
  result = magnitude >= 0x1p128 || (magnitude >= kLeastNormal && normal > kInfinity) ? kInfinity : result;
  result = magnitude != magnitude ? kInfinity | (std::uint64_t{1} << (mantissa - 1)) : result;
  return static_cast<std::uint16_t>(sign | result);
}

// NOLINTBEGIN: a function's target cannot be a template's parameter
#define TENSORLINT_LOOPS(name, target)                                                    \
  target void name##_widen(const float* from, double* to, std::size_t count) {            \
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<double>(from[i]);         \
  }                                                                                       \
  target void name##_narrow(const double* from, float* to, std::size_t count) {           \
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);          \
  }                                                                                       \
  target void name##_float16(const double* from, std::uint16_t* to, std::size_t count) {  \
    for (std::size_t i = 0; i < count; ++i) to[i] = encode_half<10, -14>(from[i]);        \
  }                                                                                       \
  target void name##_bfloat16(const double* from, std::uint16_t* to, std::size_t count) { \
    for (std::size_t i = 0; i < count; ++i) to[i] = encode_half<7, -126>(from[i]);        \
  }                                                                                       \
  constexpr Loops name##_loops{name##_widen, name##_narrow, name##_float16, name##_bfloat16};

TENSORLINT_LOOPS(basic, )
#if defined(__x86_64__)
TENSORLINT_LOOPS(avx2, [[gnu::target("avx2")]])
TENSORLINT_LOOPS(avx512, [[TENSORLINT_AVX512_TARGET("avx512f,avx512dq,avx512bw,avx512vl")]])
#endif
#undef TENSORLINT_LOOPS
// NOLINTEND

const Loops& loops() {
  static const Loops best = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
      return avx512_loops;
    if (__builtin_cpu_supports("avx2")) return avx2_loops;
#endif
    return basic_loops;
  }();
  return best;
}

template <typename T, typename Row>
void load_as(const HostTensor& tensor, std::size_t first, std::size_t count, Row* row) {
  const T* const from = tensor.as<T>().data() + first;
  for (std::size_t i = 0; i < count; ++i) row[i] = static_cast<Row>(from[i]);
}

template <typename T, typename Row>
void store_as(HostTensor& tensor, std::size_t first, std::size_t count, const Row* row) {
  T* const to = tensor.as_mutable<T>().data() + first;
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(row[i]);
}

/// Integers and bool into a row of any kind.
template <typename Row>
void load_integers(const HostTensor& tensor, std::size_t first, std::size_t count, Row* row) {
  switch (tensor.dtype()) {
    case DType::kBool:
    case DType::kUint8:
    case DType::kUint4:
    case DType::kUint2:
      return load_as<std::uint8_t>(tensor, first, count, row);
    case DType::kInt8:
    case DType::kInt4:
    case DType::kInt2:
      return load_as<std::int8_t>(tensor, first, count, row);
    case DType::kUint16:
      return load_as<std::uint16_t>(tensor, first, count, row);
    case DType::kInt16:
      return load_as<std::int16_t>(tensor, first, count, row);
    case DType::kUint32:
      return load_as<std::uint32_t>(tensor, first, count, row);
    case DType::kInt32:
      return load_as<std::int32_t>(tensor, first, count, row);
    case DType::kUint64:
      return load_as<std::uint64_t>(tensor, first, count, row);
    case DType::kInt64:
      return load_as<std::int64_t>(tensor, first, count, row);
    default:
      throw RunFault{fmt::format("elements of {} are not numbers", to_text(tensor.dtype()))};
  }
}

/// The low bits of an integer as one of fewer bits.
std::int64_t narrowed(DType dtype, std::int64_t value) {
  const int bits = bit_width(dtype);
  const std::int64_t low = value & ((std::int64_t{1} << bits) - 1);
  const bool is_signed = dtype == DType::kInt4 || dtype == DType::kInt2;
  return is_signed && ((low >> (bits - 1)) & 1) != 0 ? low - (std::int64_t{1} << bits) : low;
}

}  // namespace

bool is_float(DType dtype) { return DTypeSet(dtype).is_subset_of(DTypeSet::floats()); }
bool is_integer_or_bool(DType dtype) {
  return dtype == DType::kBool || DTypeSet(dtype).is_subset_of(DTypeSet::integers());
}

std::uint16_t encode(DType dtype, double value, bool saturate) {
  return dtype == DType::kFloat8E8M0 ? encode_power(value) : encode(format_of(dtype), value, saturate);
}

double decode(DType dtype, std::uint16_t bits) {
  return dtype == DType::kFloat8E8M0 ? decode_power(bits) : decode(format_of(dtype), bits);
}

void load(const HostTensor& tensor, std::size_t first, std::size_t count, double* row) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::kFloat32) return loops().widen(tensor.as<float>().data() + first, row, count);
  if (dtype == DType::kFloat64) return load_as<double>(tensor, first, count, row);
  if (!is_float(dtype)) return load_integers(tensor, first, count, row);
  const std::vector<double>& numbers = small_numbers(dtype);
  if (element_bytes(dtype) == 2) {
    const std::uint16_t* const from = tensor.as<std::uint16_t>().data() + first;
    for (std::size_t i = 0; i < count; ++i) row[i] = numbers[from[i]];
  } else {
    const std::uint8_t* const from = tensor.as<std::uint8_t>().data() + first;
    for (std::size_t i = 0; i < count; ++i) row[i] = numbers[from[i] & (numbers.size() - 1)];
  }
}

void load(const HostTensor& tensor, std::size_t first, std::size_t count, std::int64_t* row) {
  load_integers(tensor, first, count, row);
}

void store(HostTensor& tensor, std::size_t first, std::size_t count, const double* row, bool saturate) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::kFloat32) return loops().narrow(row, tensor.as_mutable<float>().data() + first, count);
  if (dtype == DType::kFloat64) return store_as<double>(tensor, first, count, row);
  if (!is_float(dtype)) throw RunFault{fmt::format("numbers are not stored as {}", to_text(dtype))};
  if (dtype == DType::kFloat8E8M0) {
    std::uint8_t* const to = tensor.as_mutable<std::uint8_t>().data() + first;
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(encode_power(row[i]));
    return;
  }
  if (element_bytes(dtype) == 2) {
    std::uint16_t* const to = tensor.as_mutable<std::uint16_t>().data() + first;
    return (dtype == DType::kFloat16 ? loops().encode_float16 : loops().encode_bfloat16)(row, to, count);
  }
  const Format format = format_of(dtype);
  std::uint8_t* const to = tensor.as_mutable<std::uint8_t>().data() + first;
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(encode(format, row[i], saturate));
}

void store(HostTensor& tensor, std::size_t first, std::size_t count, const std::int64_t* row) {
  switch (tensor.dtype()) {
    case DType::kBool: {
      std::uint8_t* const to = tensor.as_mutable<std::uint8_t>().data() + first;
      for (std::size_t i = 0; i < count; ++i) to[i] = row[i] != 0 ? 1 : 0;
      return;
    }
    case DType::kInt4:
    case DType::kUint4:
    case DType::kInt2:
    case DType::kUint2: {
      std::uint8_t* const to = tensor.as_mutable<std::uint8_t>().data() + first;
      for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(narrowed(tensor.dtype(), row[i]));
      return;
    }
    case DType::kUint8:
      return store_as<std::uint8_t>(tensor, first, count, row);
    case DType::kInt8:
      return store_as<std::int8_t>(tensor, first, count, row);
    case DType::kUint16:
      return store_as<std::uint16_t>(tensor, first, count, row);
    case DType::kInt16:
      return store_as<std::int16_t>(tensor, first, count, row);
    case DType::kUint32:
      return store_as<std::uint32_t>(tensor, first, count, row);
    case DType::kInt32:
      return store_as<std::int32_t>(tensor, first, count, row);
    case DType::kUint64:
    case DType::kInt64:
      return store_as<std::int64_t>(tensor, first, count, row);
    default:
      throw RunFault{fmt::format("integers are not stored as {}", to_text(tensor.dtype()))};
  }
}

double number_at(const HostTensor& tensor, std::size_t index) {
  double value = 0;
  load(tensor, index, 1, &value);
  return value;
}

std::int64_t integer_at(const HostTensor& tensor, std::size_t index) {
  std::int64_t value = 0;
  load(tensor, index, 1, &value);
  return value;
}

HostTensor to_float64(const HostTensor& tensor, Memory& memory) {
  if (tensor.dtype() == DType::kFloat64) return tensor;
  HostTensor wide(DType::kFloat64, tensor.extents(), memory);
  load(tensor, 0, tensor.size(), wide.as_mutable<double>().data());
  return wide;
}

}  // namespace tensorlint::runtime
