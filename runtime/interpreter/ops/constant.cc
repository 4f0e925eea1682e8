// Values that come from nowhere, from a shape or from positions. Source: ONNX Constant (opsets 1-25), ConstantOfShape
// (9-25), Range (11, 27), EyeLike (9, 22), OneHot (9-28).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/interpreter/constants.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/elementwise.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// Attributes belong to the model, which outlives its run: views of their bytes need no owner.
HostTensor constant_tensor(Evaluation& e, const Tensor& tensor) {
  return load_constant(tensor, {}, nullptr, e.memory());
}

void constant(Evaluation& e) {
  for (const Attribute& attribute : e.call().attributes) {
    if (attribute.name == "value" && attribute.tensor != nullptr) {
      e.set(0, constant_tensor(e, *attribute.tensor));
    } else if (attribute.name == "sparse_value" && attribute.sparse != nullptr) {
      e.set(0, load_constant(*attribute.sparse, {}, nullptr, e.memory()));
    } else if (attribute.name == "value_int") {
      e.result().as_mutable<std::int64_t>()[0] = attribute.i;
    } else if (attribute.name == "value_ints") {
      std::ranges::copy(attribute.ints, e.result().as_mutable<std::int64_t>().begin());
    } else if (attribute.name == "value_float") {
      e.result().as_mutable<float>()[0] = attribute.f;
    } else if (attribute.name == "value_floats") {
      std::ranges::copy(attribute.floats, e.result().as_mutable<float>().begin());
    } else if (attribute.name == "value_string") {
      e.result().mutable_strings()[0] = attribute.s;
    } else if (attribute.name == "value_strings") {
      std::ranges::copy(attribute.strings, e.result().mutable_strings().begin());
    }
  }
}

void set_zero(HostTensor& tensor) {
  if (tensor.bytes() != 0) std::memset(tensor.mutable_raw(), 0, tensor.bytes());
}

void constant_of_shape(Evaluation& e) {
  const Attribute* const value = e.in().attribute("value");
  // Inference follows the elements of short shapes only.
  const Extents extents = e.integers(0);
  if (std::ranges::any_of(extents, [](std::int64_t extent) { return extent < 0; })) e.fail("an extent is negative");
  if (value == nullptr || value->tensor == nullptr) return set_zero(e.allocate(0, DType::kFloat32, extents));
  const HostTensor one = constant_tensor(e, *value->tensor);
  if (one.size() != 1) e.fail("`value` has {} elements instead of one", one.size());
  fill(e.allocate(0, one.dtype(), extents), one);
}

// --- Range

/// Element i is start + i delta, rounded once.
template <typename T>
void count_up(HostTensor& to, T start, T delta) {
  T row[kRow];
  for (std::size_t first = 0; first < to.size(); first += kRow) {
    const std::size_t count = std::min(kRow, to.size() - first);
    for (std::size_t i = 0; i < count; ++i) row[i] = start + static_cast<T>(first + i) * delta;
    if constexpr (std::is_same_v<T, double>) {
      store(to, first, count, row);
    } else {
      store(to, first, count, reinterpret_cast<const std::int64_t*>(row));
    }
  }
}

double terms_of_range(Evaluation& e) {
  return is_float(e.operand(0).dtype()) ? std::ceil(std::fabs((e.number(1) - e.number(0)) / e.number(2))) : 1;
}

void range(Evaluation& e) {
  const DType dtype = e.operand(0).dtype();
  if (is_float(dtype)) {
    const double start = e.number(0), limit = e.number(1), delta = e.number(2);
    const double count = std::ceil((limit - start) / delta);
    if (delta == 0) e.fail("the step is 0");
    if (!(count < 0x1p62)) e.fail("{} elements from {} to {} by {}", count, start, limit, delta);
    HostTensor& result = e.allocate(0, dtype, {static_cast<std::int64_t>(std::max(count, 0.0))});
    // Engines may add up steps.
    return e.asks_amplitude() ? count_up(result, std::fabs(start), std::fabs(delta)) : count_up(result, start, delta);
  }
  const std::int64_t start = e.integer(0), limit = e.integer(1), delta = e.integer(2);
  if (delta == 0) e.fail("the step is 0");
  const bool rises = delta > 0;
  const bool empty = rises ? start >= limit : start <= limit;
  // Distances between int64 numbers fit uint64.
  const auto low = static_cast<std::uint64_t>(rises ? start : limit),
             high = static_cast<std::uint64_t>(rises ? limit : start);
  const auto step = rises ? static_cast<std::uint64_t>(delta) : -static_cast<std::uint64_t>(delta);
  const std::uint64_t count = empty ? 0 : (high - low - 1) / step + 1;
  if (count > std::uint64_t{1} << 62) e.fail("{} elements from {} to {} by {}", count, start, limit, delta);
  count_up(e.allocate(0, dtype, {static_cast<std::int64_t>(count)}), static_cast<std::uint64_t>(start),
           static_cast<std::uint64_t>(delta));
}

// --- positions

void eye_like(Evaluation& e) {
  HostTensor& to = e.result();
  set_zero(to);
  const std::int64_t rows = to.extent(0), columns = to.extent(1);
  const std::int64_t offset = std::clamp(e.in().int_attribute("k", 0), -rows, columns);
  constexpr double kOne = 1;
  constexpr std::int64_t kOneWhole = 1;
  for (std::int64_t row = std::max<std::int64_t>(0, -offset); row < rows && row < columns - offset; ++row) {
    const auto at = static_cast<std::size_t>(row * columns + row + offset);
    if (is_float(to.dtype())) {
      store(to, at, 1, &kOne);
    } else {
      store(to, at, 1, &kOneWhole);
    }
  }
}

/// Indices as integers: floats are truncated.
std::int64_t index_at(const HostTensor& indices, std::size_t i) {
  return is_float(indices.dtype()) ? truncated(number_at(indices, i)) : integer_at(indices, i);
}

/// Values are (off, on). Negative indices count from the end; those out of range are off everywhere.
void one_hot(Evaluation& e) {
  const HostTensor &indices = e.operand(0), &values = e.operand(2);
  HostTensor& to = e.result();
  fill(to, values);
  std::int64_t axis = e.in().int_attribute("axis", -1);
  if (axis < 0) axis += static_cast<std::int64_t>(to.rank());
  const std::int64_t depth = to.extent(static_cast<std::size_t>(axis));
  const auto inner = static_cast<std::size_t>(strides_of(to.extents())[static_cast<std::size_t>(axis)]);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::int64_t index = index_at(indices, i);
    if (index < -depth || index >= depth) continue;
    if (index < 0) index += depth;
    const std::size_t outer = i / inner, rest = i % inner;
    copy_elements(to, (outer * static_cast<std::size_t>(depth) + static_cast<std::size_t>(index)) * inner + rest,
                  values, 1, 1);
  }
}

const RegisterEvaluators kConstants{
    Evaluator("Constant").evaluate(constant).error(Rounding::exact()),
    Evaluator("ConstantOfShape").evaluate(constant_of_shape).error(Rounding::exact()),
    Evaluator("Range").evaluate(range).error(Rounding::composite(terms_of_range).with_amplitude()),
    Evaluator("EyeLike").evaluate(eye_like).error(Rounding::exact()),
    Evaluator("OneHot").evaluate(one_hot).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
