// Changes of dtype. Source: ONNX Cast (opsets 1-28), CastLike (15-25), BitCast (26). Floats round once, to nearest
// with ties to even; float8e8m0 by `round_mode` (24). Floats cast to integers truncate; out of range, which ONNX leaves
// undefined, the low bits of a 64-bit integer are kept. Integers are taken modulo 2^bits.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "base/text.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/elementwise.h"
#include "runtime/interpreter/ops/function_loops.h"

namespace tensorlint::runtime {
namespace {

enum class RoundMode : std::uint8_t { kUp, kDown, kNearest };

struct CastOptions {
  bool saturate = true;  ///< of float8 types
  RoundMode round_mode = RoundMode::kUp;
};

CastOptions options_of(Evaluation& e) {
  CastOptions options;
  options.saturate = e.in().int_attribute("saturate", 1) != 0;
  const std::string_view mode = e.in().string_attribute("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest") e.fail("`round_mode` {} is not up, down or nearest", mode);
  options.round_mode = mode == "down" ? RoundMode::kDown : mode == "nearest" ? RoundMode::kNearest : RoundMode::kUp;
  return options;
}

// --- numbers to numbers

/// The exponent of the number as a float32: of NaN and infinity NaN; of 0 and less than half the least power, the least
/// power. Source: ONNX "Float stored in 8 bits", float8e8m0.
std::uint8_t power_bits(double value, const CastOptions& options) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  const std::uint32_t exponent = (bits >> 23) & 0xffU, fraction = bits & 0x7fffffU;
  if (exponent == 0xff) return 0xff;
  bool up = options.round_mode == RoundMode::kUp && fraction != 0;
  if (options.round_mode == RoundMode::kNearest)
    up = (fraction & 0x400000U) != 0 && ((fraction & 0x3fffffU) != 0 || exponent > 0);
  if (up && exponent == 0xfe && options.saturate) up = false;
  return static_cast<std::uint8_t>(exponent + (up ? 1 : 0));
}

void store_numbers(HostTensor& to, std::size_t first, std::size_t count, const double* row,
                   const CastOptions& options) {
  if (to.dtype() != DType::kFloat8E8M0) return store(to, first, count, row, options.saturate);
  std::uint8_t* const bits = to.as_mutable<std::uint8_t>().data() + first;
  for (std::size_t i = 0; i < count; ++i) bits[i] = power_bits(row[i], options);
}

/// Truncated modulo 2^64.
std::int64_t truncated_unsigned(double value) {
  constexpr double kHalf = 9223372036854775808.0;
  return value >= kHalf && value < 2 * kHalf ? static_cast<std::int64_t>(static_cast<std::uint64_t>(value))
                                             : truncated(value);
}

/// An integer in float64, rounded to odd: rounding that again to fewer bits is rounding once.
template <typename Integer>
double rounded_to_odd(Integer value) {
  constexpr Integer kExact = Integer{1} << 53;
  const double nearest = static_cast<double>(value);
  if constexpr (std::is_signed_v<Integer>) {
    if (value >= -kExact && value <= kExact) return nearest;
  } else {
    if (value <= kExact) return nearest;
  }
  // Whether rounding went away from zero, towards it, or nowhere; 2^64 and 2^63 are no Integers.
  const bool beyond = nearest >= static_cast<double>(std::numeric_limits<Integer>::max());
  const bool exact = !beyond && static_cast<Integer>(nearest) == value;
  if (exact) return nearest;
  const bool away =
      beyond || (value > 0 ? static_cast<Integer>(nearest) > value : static_cast<Integer>(nearest) < value);
  const double toward = away ? std::nextafter(nearest, 0.0) : nearest;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(toward) | 1U);
}

void cast_floats(const HostTensor& from, HostTensor& to, const CastOptions& options) {
  double row[kRow];
  std::int64_t whole[kRow];
  for (std::size_t first = 0; first < from.size(); first += kRow) {
    const std::size_t count = std::min(kRow, from.size() - first);
    load(from, first, count, row);
    if (is_float(to.dtype())) {
      store_numbers(to, first, count, row, options);
      continue;
    }
    if (to.dtype() == DType::kBool) {
      std::transform(row, row + count, whole, [](double x) -> std::int64_t { return x != 0 ? 1 : 0; });
    } else {
      std::transform(row, row + count, whole, to.dtype() == DType::kUint64 ? truncated_unsigned : truncated);
    }
    store(to, first, count, whole);
  }
}

void cast_integers(const HostTensor& from, HostTensor& to, const CastOptions& options) {
  std::int64_t row[kRow];
  double numbers[kRow];
  const bool is_wide = bit_width(from.dtype()) == 64, to_float = is_float(to.dtype());
  for (std::size_t first = 0; first < from.size(); first += kRow) {
    const std::size_t count = std::min(kRow, from.size() - first);
    if (to_float && (!is_wide || to.dtype() == DType::kFloat64)) {
      load(from, first, count, numbers);
    } else {
      load(from, first, count, row);
    }
    if (!to_float) {
      store(to, first, count, row);
      continue;
    }
    if (is_wide && to.dtype() != DType::kFloat64) {
      for (std::size_t i = 0; i < count; ++i)
        numbers[i] = from.dtype() == DType::kUint64 ? rounded_to_odd(static_cast<std::uint64_t>(row[i]))
                                                    : rounded_to_odd(row[i]);
    }
    store_numbers(to, first, count, numbers, options);
  }
}

// --- numbers as text

/// The shortest text that gives the number back, in numpy's form: 0.1, 5.0, 1e-05, 1e+16, nan, inf.
std::string text_of(std::string digits) {
  // to_chars and %g write exponents of at least two digits, as numpy does.
  const bool is_plain = digits.find_first_of(".en") == std::string::npos;
  if (is_plain) digits += ".0";
  return digits;
}

template <typename Float>
std::string shortest(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[400];
  const auto magnitude = std::fabs(static_cast<double>(value));
  const bool scientific = magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16);
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, format);
  return error == std::errc() ? text_of({buffer, end}) : std::string();
}

/// Of formats below 32 bits: as few digits as the format needs.
std::string shortest_of(DType dtype, double value) {
  if (dtype == DType::kFloat64) return shortest(value);
  if (dtype == DType::kFloat32 || !std::isfinite(value)) return shortest(static_cast<float>(value));
  for (int digits = 1; digits < 9; ++digits) {
    std::string text = fmt::format("{:.{}g}", value, digits);
    if (decode(dtype, encode(dtype, std::strtod(text.c_str(), nullptr))) == value)
      return shortest(std::strtod(text.c_str(), nullptr));
  }
  return shortest(value);
}

void cast_to_text(const HostTensor& from, HostTensor& to) {
  Strings& texts = to.mutable_strings();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from.dtype() == DType::kBool) {
      texts[i] = integer_at(from, i) != 0 ? "True" : "False";
    } else if (from.dtype() == DType::kUint64) {
      texts[i] = fmt::format("{}", static_cast<std::uint64_t>(integer_at(from, i)));
    } else if (is_float(from.dtype())) {
      texts[i] = shortest_of(from.dtype(), number_at(from, i));
    } else {
      texts[i] = fmt::format("{}", integer_at(from, i));
    }
  }
}

/// The whole text as a number; "+1", "INF" and "NaN" in any case are numbers, too.
template <typename Number>
bool parse(std::string_view text, Number& number) {
  text = trimmed(text);
  if (text.starts_with('+') && !text.substr(1).starts_with('-')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// Numbers beyond float64 are infinite or 0, which from_chars does not say.
double parse_float(std::string_view text) {
  double number = 0;
  if (parse(text, number)) return number;
  const std::string copy(trimmed(text));
  char* end = nullptr;
  number = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0' || copy.find_first_of("xX") != std::string::npos)
    throw RunFault{fmt::format("the text `{}` is not a number", text)};
  return number;
}

std::int64_t parse_integer(std::string_view text, DType dtype) {
  if (dtype == DType::kBool) {
    const std::string_view word = trimmed(text);
    if (word == "True" || word == "true") return 1;
    if (word == "False" || word == "false") return 0;
    return parse_float(text) != 0 ? 1 : 0;
  }
  std::uint64_t large = 0;
  if (dtype == DType::kUint64 && parse(text, large)) return static_cast<std::int64_t>(large);
  std::int64_t number = 0;
  return parse(text, number) ? number : truncated(parse_float(text));
}

void cast_text(const HostTensor& from, HostTensor& to, const CastOptions& options) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::string_view text = from.strings()[i];
    if (is_float(to.dtype())) {
      // Straight to float32, not by way of float64.
      float single = 0;
      const bool is_single = to.dtype() == DType::kFloat32 && parse(text, single);
      const double number = is_single ? static_cast<double>(single) : parse_float(text);
      store_numbers(to, i, 1, &number, options);
    } else {
      const std::int64_t number = parse_integer(text, to.dtype());
      store(to, i, 1, &number);
    }
  }
}

void cast(Evaluation& e) {
  const HostTensor& from = e.operand(0);
  const std::optional<DType> dtype = e.type_of_result().dtype;
  if (dtype == from.dtype()) return e.set(0, e.value(0));
  HostTensor& to = e.result();
  const CastOptions options = options_of(e);
  if (from.dtype() == DType::kString) return cast_text(from, to, options);
  if (to.dtype() == DType::kString) return cast_to_text(from, to);
  if (is_float(from.dtype())) return cast_floats(from, to, options);
  cast_integers(from, to, options);
}

/// The same bits. Elements below a byte are bytes in memory: unsigned ones and floats with zeros above, signed ones
/// with their sign.
void bit_cast(Evaluation& e) {
  const HostTensor& from = e.operand(0);
  HostTensor& to = e.result();
  const int bits = bit_width(from.dtype());
  if (bits >= 8 && to.dtype() != DType::kBool) {
    if (from.bytes() != 0) std::memcpy(to.mutable_raw(), from.raw(), from.bytes());
    return;
  }
  const std::span<const std::uint8_t> x = from.as<std::uint8_t>();
  const std::span<std::uint8_t> y = to.as_mutable<std::uint8_t>();
  const bool is_signed = DTypeSet::signed_integers().contains(to.dtype());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const unsigned low = x[i] & ((1U << bits) - 1U), sign = 1U << (bits - 1);
    const unsigned value = is_signed && (low & sign) != 0 ? low | (0xffU << bits) : low;
    y[i] = static_cast<std::uint8_t>(to.dtype() == DType::kBool ? (low != 0 ? 1U : 0U) : value);
  }
}

const RegisterEvaluators kCasts{
    Evaluator("Cast").evaluate(cast).error(Rounding::rounded()),
    Evaluator("CastLike").evaluate(cast).error(Rounding::rounded()),
    Evaluator("BitCast").evaluate(bit_cast).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
