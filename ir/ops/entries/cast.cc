// Identity and changes of dtype. Source: ONNX Identity, Cast (opsets 1-28), CastLike (15-25), BitCast (26).
// Until opset 5 `to` of Cast is a dtype's name. Out of range, integers lose their high bits; floats cast to integers
// are undefined.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/contents.h"
#include "ir/ops/ranges.h"
#include "ir/ops/readable_strings.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kCastTarget{"cast_target", ConstraintKind::kAttribute,
                             "`to` is a dtype that the operator can cast to"};
const Constraint kCastStrings{"cast_strings", ConstraintKind::kDomain, "strings that become numbers are numbers"};
const Constraint kBitCastWidths{"bit_cast_widths", ConstraintKind::kAttribute, "both dtypes have the same width", true};

bool is_integer(DType dtype) { return DTypeSet::integers().contains(dtype); }

/// The low bits of a value, read as that integer dtype.
std::int64_t wrap(std::int64_t value, DType dtype) {
  const int bits = bit_width(dtype);
  if (bits >= 64) return value;
  const auto low = static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << bits) - 1);
  const bool negative = DTypeSet::signed_integers().contains(dtype) && ((low >> (bits - 1)) & 1U) != 0;
  return static_cast<std::int64_t>(low) - (negative ? std::int64_t{1} << bits : 0);
}

Dim cast_element(DimPool& pool, Dim element, DType to) {
  if (element.is_unknown()) return element;
  const auto value = pool.as_constant(element);
  if (to == DType::kBool) {
    if (value) return pool.constant(*value != 0 ? 1 : 0);
    return pool.never_equal(element, pool.constant(0)) ? pool.constant(1) : Dim(Unknown::kDataDependent);
  }
  if (value) {
    const std::int64_t wrapped = wrap(*value, to);
    return to == DType::kUint64 && wrapped < 0 ? Dim(Unknown::kOverflow) : pool.constant(wrapped);
  }
  // Symbols are extents. One that a cast to 32 bits would cut has more elements than any tensor that inference follows
  // the contents of; a negative value read as unsigned is another matter.
  const Bounds bounds = pool.bounds(element);
  const Range limits = range_of(DTypeSet(to));
  const bool fits = static_cast<double>(bounds.lo) >= limits.lo && static_cast<double>(bounds.hi) <= limits.hi;
  const bool wide = bit_width(to) >= 32 && (bounds.lo >= 0 || DTypeSet::signed_integers().contains(to));
  return fits || wide ? element : Dim(Unknown::kOverflow);
}

/// The number as the float dtype holds it; nullopt for dtypes whose rounding is not followed.
std::optional<double> round_to(double value, DType to) {
  if (to == DType::kFloat64) return value;
  if (to == DType::kFloat32) return static_cast<double>(static_cast<float>(value));
  const int precision = to == DType::kFloat16 ? 11 : to == DType::kBFloat16 ? 8 : 0;
  if (precision == 0 || !std::isfinite(value)) return std::nullopt;
  if (value == 0) return value;
  int exponent = 0;
  const double scaled = std::ldexp(std::frexp(value, &exponent), precision);
  const bool in_range = to == DType::kFloat16 ? exponent > -13 && exponent <= 16 : exponent > -125 && exponent <= 127;
  return in_range && scaled == std::floor(scaled) ? std::optional(value) : std::nullopt;
}

void cast_content(Inference& in, DType to) {
  const Content* content = content_of(in, 0);
  if (content == nullptr) return;
  DimPool& pool = in.dims();
  const bool integral = is_integer(to) || to == DType::kBool;
  if (content->floats.empty()) {
    if (integral) {
      Dims elements;
      for (const Dim element : content->integers) elements.push_back(cast_element(pool, element, to));
      in.set_elements(0, std::move(elements));
      return;
    }
    std::vector<double> floats;
    for (const Dim element : content->integers) {
      const auto value = pool.as_constant(element);
      const auto rounded = value ? round_to(static_cast<double>(*value), to) : std::nullopt;
      if (!rounded) return;
      floats.push_back(*rounded);
    }
    in.set_floats(0, std::move(floats));
    return;
  }
  if (!integral) {
    std::vector<double> floats;
    for (const double value : content->floats) {
      const auto rounded = round_to(value, to);
      if (!rounded) return;
      floats.push_back(*rounded);
    }
    in.set_floats(0, std::move(floats));
    return;
  }
  Dims elements;
  const Range limits = range_of(DTypeSet(to));
  for (const double value : content->floats) {
    if (to == DType::kBool) {
      elements.push_back(pool.constant(value != 0 ? 1 : 0));  // NaN is not 0
      continue;
    }
    const double whole = std::trunc(value);
    // Beyond 2^62 the limits' own rounding would matter.
    const bool fits = whole >= limits.lo && whole <= limits.hi && std::fabs(whole) < 4.6e18;
    elements.push_back(fits ? pool.constant(static_cast<std::int64_t>(whole)) : Dim(Unknown::kOverflow));
  }
  in.set_elements(0, std::move(elements));
}

void cast_range(Inference& in, DTypeSet from, DType to) {
  const Range& range = in.operand(0).range;
  const Range limits = range_of(DTypeSet(to));
  const DTypeSet integral = DTypeSet::integers() | DTypeSet(DType::kBool);
  const bool fits = range.lo >= limits.lo && range.hi <= limits.hi;
  if (from.proves(integral)) {
    if (to == DType::kBool) {
      const bool never_zero = range.lo > 0 || range.hi < 0;
      in.set_range(0, range.lo == 0 && range.hi == 0 ? range : Range{never_zero ? 1.0 : 0.0, 1, false});
    } else if (is_integer(to)) {
      if (fits) in.set_range(0, {range.lo, range.hi, false});
    } else if (DTypeSet::floats().contains(to)) {
      Range result = widened({range.lo, range.hi, false}, to);
      in.set_range(0, result);
    }
  } else if (from.proves(DTypeSet::floats())) {
    if (DTypeSet::floats().contains(to)) {
      in.set_range(0, widened(range, to));
    } else if (is_integer(to) && fits && !range.nan && std::fabs(range.lo) < 4.6e18 && std::fabs(range.hi) < 4.6e18) {
      in.set_range(0, {std::trunc(range.lo), std::trunc(range.hi), false});
    }
  }
}

void cast_to(Inference& in, std::optional<DType> to) {
  if (const auto shape = in.shape(0)) in.set_shape(0, *shape);
  if (!to) return;
  in.set_dtype(0, *to);
  const DTypeSet from = in.operand(0).dtypes;
  cast_range(in, from, *to);
  if (!readable_dtypes(in.facts(), in.operand(0)).contains(*to))
    in.fail(kCastStrings, {0}, {"an element of {} is not a number, Cast to {} reads each as one", OperandRef(0), *to});
  const DTypeSet numbers = DTypeSet::integers() | DTypeSet::floats() | DTypeSet(DType::kBool);
  if (from.single() && from.is_subset_of(numbers) && numbers.contains(*to)) cast_content(in, *to);
}

void cast(Inference& in) {
  const DTypeSet allowed = in.call().schema->types[in.call().formal_result(0)->type].allowed.tensor;
  const Attribute* attribute = in.attribute("to");
  std::optional<DType> to;
  std::string asked;
  if (attribute->kind == AttributeKind::kString) {
    to = dtype_named(attribute->s);
    asked = attribute->s;
  } else {
    if (is_known_dtype(attribute->i)) to = static_cast<DType>(attribute->i);
    asked = fmt::format("dtype code {}", attribute->i);
  }
  if (!to) {
    in.fail(kCastTarget, {}, {"{} of Cast asks for {}, which is not a dtype", AttributeName("to"), asked});
  } else if (!allowed.contains(*to)) {
    in.fail(kCastTarget, {},
            {"Cast of opset {} gives {}, {} asks for {}", in.opset(), allowed, AttributeName("to"), *to});
  }
  cast_to(in, to);
}

void cast_like(Inference& in) {
  cast_to(in, in.operand(1).kind == ValueKind::kTensor ? in.operand(1).dtypes.single() : std::nullopt);
}

void bit_cast(Inference& in) {
  if (const auto shape = in.shape(0)) in.set_shape(0, *shape);
  const std::int64_t code = in.int_attribute("to", 0);
  const auto from = in.operand(0).dtypes.single();
  if (!is_known_dtype(code) || static_cast<DType>(code) == DType::kString) {
    in.fail(kBitCastWidths, {},
            {"{} of BitCast asks for dtype code {}, which it cannot give", AttributeName("to"), code});
    return;
  }
  const auto to = static_cast<DType>(code);
  in.set_dtype(0, to);
  if (from && bit_width(*from) != bit_width(to))
    in.fail(kBitCastWidths, {0},
            {"{} is {} of {} bits, {} asks for {} of {} bits", OperandRef(0), *from, bit_width(*from),
             AttributeName("to"), to, bit_width(to)});
}

void identity(Inference& in) { in.set_same(0, 0); }

const RegisterOps kRegisterCast{
    OpEntry("Identity").computes(Opcode::kIdentity).infer(identity),
    OpEntry("Cast")
        .computes(Opcode::kCast)
        .trait(OpTrait::kElementwise)
        .infer(cast)
        .constraint(kCastTarget)
        .constraint(kCastStrings),
    OpEntry("CastLike").computes(Opcode::kCast).infer(cast_like).constraint(kCastStrings),
    OpEntry("BitCast").infer(bit_cast).constraint(kBitCastWidths),
};

}  // namespace
}  // namespace tensorlint::ops
