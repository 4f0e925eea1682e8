#include "runtime/files/agreement.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/escape.h"
#include "runtime/values/codec.h"

namespace tensorlint::runtime {
namespace {

/// The parts of complex numbers are numbers of their own.
std::size_t parts_of(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128 ? 2 : 1; }

double part_at(const HostTensor& tensor, std::size_t index) {
  if (tensor.dtype() == DType::kComplex64)
    return static_cast<double>(reinterpret_cast<const float*>(tensor.raw())[index]);
  if (tensor.dtype() == DType::kComplex128) return reinterpret_cast<const double*>(tensor.raw())[index];
  return number_at(tensor, index);
}

/// What differs, and by how much.
struct Differences {
  std::size_t wrong = 0, worst = 0, first = 0;
  double worst_error = -1;
  void add(std::size_t at, double error) {
    if (wrong++ == 0) first = at;
    if (error > worst_error) worst = at, worst_error = error;
  }
};

/// Beyond 2^53 float64 cannot tell all integers apart: their difference is taken as they are.
template <typename Integer>
Differences integer_differences(const HostTensor& value, const HostTensor& expected, const Tolerance& tolerance) {
  Differences differences;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Integer a = value.as<Integer>()[i], b = expected.as<Integer>()[i];
    if (a == b) continue;
    const auto error = static_cast<double>(a > b ? static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)
                                                 : static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a));
    if (error > tolerance.absolute + tolerance.relative * std::fabs(static_cast<double>(b))) differences.add(i, error);
  }
  return differences;
}

Differences number_differences(const HostTensor& value, const HostTensor& expected, const Tolerance& tolerance) {
  Differences differences;
  const std::size_t count = value.size() * parts_of(value.dtype());
  for (std::size_t i = 0; i < count; ++i) {
    const double a = part_at(value, i), b = part_at(expected, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double error = std::isfinite(a) && std::isfinite(b) ? std::fabs(a - b) : HUGE_VAL;
    if (error > tolerance.absolute + tolerance.relative * std::fabs(b)) differences.add(i, error);
  }
  return differences;
}

std::string part_text(const HostTensor& tensor, std::size_t index) {
  if (tensor.dtype() == DType::kInt64) return fmt::format("{}", tensor.as<std::int64_t>()[index]);
  if (tensor.dtype() == DType::kUint64) return fmt::format("{}", tensor.as<std::uint64_t>()[index]);
  return fmt::format("{}", part_at(tensor, index));
}

std::string tensor_disagreement(const HostTensor& value, const HostTensor& expected, const Tolerance& tolerance) {
  if (value.dtype() == DType::kString) {
    for (std::size_t i = 0; i < value.size(); ++i)
      if (value.strings()[i] != expected.strings()[i])
        return fmt::format("element {} is \"{}\" instead of \"{}\"", i, escape_for_display(value.strings()[i], 60),
                           escape_for_display(expected.strings()[i], 60));
    return {};
  }
  const auto differences_of = value.dtype() == DType::kInt64    ? integer_differences<std::int64_t>
                              : value.dtype() == DType::kUint64 ? integer_differences<std::uint64_t>
                                                                : number_differences;
  const auto [wrong, worst, first, worst_error] = differences_of(value, expected, tolerance);
  if (wrong == 0) return {};
  return fmt::format("{} of {} elements differ, first element {}: {} instead of {}; most, element {}: {} instead of {}",
                     wrong, value.size() * parts_of(value.dtype()), first, part_text(value, first),
                     part_text(expected, first), worst, part_text(value, worst), part_text(expected, worst));
}

std::string element_text(const HostTensor& tensor, std::size_t index) {
  if (tensor.dtype() == DType::kString) return fmt::format("\"{}\"", escape_for_display(tensor.strings()[index], 60));
  if (parts_of(tensor.dtype()) == 2)
    return fmt::format("{}{:+}j", part_at(tensor, 2 * index), part_at(tensor, 2 * index + 1));
  if (tensor.dtype() == DType::kBool) return integer_at(tensor, index) != 0 ? "true" : "false";
  if (tensor.dtype() == DType::kUint64) return fmt::format("{}", tensor.as<std::uint64_t>()[index]);
  if (is_integer_or_bool(tensor.dtype())) return fmt::format("{}", integer_at(tensor, index));
  if (tensor.dtype() == DType::kFloat64) return fmt::format("{}", number_at(tensor, index));
  return fmt::format("{}", static_cast<float>(number_at(tensor, index)));
}

/// `left`: how many elements more are shown.
std::string elements_of(const HostTensor& tensor, std::size_t& left) {
  std::string text;
  const std::size_t shown = std::min(left, tensor.size());
  left -= shown;
  for (std::size_t i = 0; i < shown; ++i) {
    // A bracket opens where an axis begins, and closes where it ends.
    std::size_t run = 1, opened = 0;
    for (std::size_t axis = tensor.rank(); axis-- > 0;) {
      run *= static_cast<std::size_t>(tensor.extent(axis));
      if (i % run == 0) ++opened;
    }
    if (i > 0) text.append(opened, ']');
    if (i > 0) text += ", ";
    text.append(opened, '[');
    text += element_text(tensor, i);
  }
  if (shown < tensor.size()) return text + ", ...";
  if (tensor.size() == 0) return "[]";
  return text + std::string(tensor.rank(), ']');
}

/// Sequences nest; an element takes as many of `left` as it shows, at least one.
std::string elements_of(const HostValue& sequence, std::size_t& left) {
  std::string text;
  for (const HostValue& element : sequence.elements()) {
    if (!text.empty()) text += ", ";
    if (left == 0) {
      text += "...";
      break;
    }
    if (!element.is_tensor() || element.tensor().size() == 0) --left;
    text += element.is_tensor() ? elements_of(element.tensor(), left) : elements_of(element, left);
  }
  return "(" + text + ")";
}

}  // namespace

std::string disagreement(const HostValue& value, const HostValue& expected, const Tolerance& tolerance) {
  if (value.kind() != expected.kind())
    return fmt::format("it is {} instead of {}", type_text(value), type_text(expected));
  if (!value.is_tensor()) {
    if (value.elements().size() != expected.elements().size())
      return fmt::format("it is {} instead of {}", type_text(value), type_text(expected));
    for (std::size_t i = 0; i < value.elements().size(); ++i)
      if (std::string inner = disagreement(value.elements()[i], expected.elements()[i], tolerance); !inner.empty())
        return fmt::format("in element {}: {}", i, inner);
    return {};
  }
  if (value.tensor().dtype() != expected.tensor().dtype() || value.tensor().extents() != expected.tensor().extents())
    return fmt::format("it is {} instead of {}", type_text(value), type_text(expected));
  return tensor_disagreement(value.tensor(), expected.tensor(), tolerance);
}

std::string type_text(const HostValue& value) {
  if (value.is_absent()) return "nothing";
  if (value.is_tensor())
    return fmt::format("{}[{}]", to_text(value.tensor().dtype()), fmt::join(value.tensor().extents(), ", "));
  if (value.kind() == ValueKind::kOptional)
    return value.elements().empty() ? "an empty optional" : "optional " + type_text(value.elements().front());
  return fmt::format("a sequence of {}", value.elements().size());
}

std::string elements_text(const HostValue& value, std::size_t limit) {
  return value.is_tensor() ? elements_of(value.tensor(), limit) : elements_of(value, limit);
}

}  // namespace tensorlint::runtime
