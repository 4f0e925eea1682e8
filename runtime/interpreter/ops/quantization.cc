// Quantisation. Source: ONNX QuantizeLinear, DequantizeLinear (10, 13, 19, 21, 23, 24, 25, 28), DynamicQuantizeLinear
// (11).
#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/elementwise.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// A number as the dtype holds it.
double rounded_to(DType dtype, double value) {
  if (dtype == DType::kFloat64) return value;
  if (dtype == DType::kFloat32) return static_cast<double>(static_cast<float>(value));
  return decode(dtype, encode(dtype, value));
}

/// Each entry along `axis` as often as a block is long.
HostTensor repeated(Evaluation& e, const HostTensor& tensor, std::size_t axis, std::int64_t block,
                    const Extents& extents) {
  Extents blocked = extents;
  blocked[axis] = extents[axis] / block + (extents[axis] % block != 0 ? 1 : 0);
  if (tensor.extents() != blocked)
    e.fail("[{}] in blocks of {} along axis {} has [{}] of them, not [{}]", fmt::join(extents, ", "), block, axis,
           fmt::join(blocked, ", "), fmt::join(tensor.extents(), ", "));
  HostTensor result(tensor.dtype(), extents, e.memory());
  const auto inner = static_cast<std::size_t>(strides_of(extents)[axis]);
  const auto along = static_cast<std::size_t>(extents[axis]), blocks = static_cast<std::size_t>(tensor.extent(axis));
  if (result.size() == 0) return result;
  const std::size_t outer = result.size() / (along * inner);
  for (std::size_t o = 0; o < outer; ++o)
    for (std::size_t i = 0; i < along; ++i)
      copy_elements(result, (o * along + i) * inner, tensor, (o * blocks + i / static_cast<std::size_t>(block)) * inner,
                    inner);
  return result;
}

/// Scale or zero point as it broadcasts to the data: one element, one an index of `axis`, or one a block.
HostTensor stretched(Evaluation& e, const HostTensor& tensor) {
  const Extents& data = e.operand(0).extents();
  if (tensor.size() == 1) return tensor.reshaped({});
  const auto rank = static_cast<std::int64_t>(data.size());
  std::int64_t axis = e.in().int_attribute("axis", 1);
  if (axis < 0) axis += rank;
  const auto along = static_cast<std::size_t>(axis);
  if (const std::int64_t block = e.in().int_attribute("block_size", 0); block > 0 && tensor.rank() == data.size())
    return repeated(e, tensor, along, block, data);
  Extents extents(data.size() - along, 1);
  extents.front() = tensor.extent(0);
  return tensor.reshaped(std::move(extents));
}

/// Data, scale and, where there is one, zero point.
BroadcastWalk quantization_operands(Evaluation& e) {
  std::vector<HostTensor> operands{e.operand(0), stretched(e, e.operand(1))};
  if (e.has(2)) operands.push_back(stretched(e, e.operand(2)));
  return {e.operand(0).extents(), std::move(operands), e.memory()};
}

/// Rows of float64 of all operands: visit(first element of the result, elements, rows).
template <typename Visit>
void for_each_row(const BroadcastWalk& walk, Visit visit) {
  alignas(64) double buffers[3][kRow];
  static constexpr double kZero = 0;
  Row<double> rows[3] = {{}, {}, {&kZero, false}};
  walk.for_each_run([&](std::size_t first, std::size_t run, std::span<const std::size_t> from) {
    for (std::size_t done = 0; done < run; done += kRow) {
      const std::size_t count = std::min(kRow, run - done);
      for (std::size_t k = 0; k < walk.count(); ++k)
        rows[k] = row_of(walk.operand(k), walk.varies(k), from[k] + (walk.varies(k) ? done : 0), count, buffers[k]);
      visit(first + done, count, rows);
    }
  });
}

double at(const Row<double>& row, std::size_t i) { return row.at[row.varies ? i : 0]; }

std::pair<double, double> limits_of(DType dtype) {
  const int bits = bit_width(dtype);
  const bool is_signed = DTypeSet::signed_integers().contains(dtype);
  return is_signed ? std::pair{-std::ldexp(1, bits - 1), std::ldexp(1, bits - 1) - 1}
                   : std::pair{0.0, std::ldexp(1, bits) - 1};
}

void divide(const double* x, const Row<double>& scale, double* to, std::size_t count) {
  if (scale.varies) {
    for (std::size_t i = 0; i < count; ++i) to[i] = x[i] / scale.at[i];
  } else {
    const double divisor = *scale.at;
    for (std::size_t i = 0; i < count; ++i) to[i] = x[i] / divisor;
  }
}

/// NaN gives the least.
double within(double value, double least, double most) {
  value = value > least ? value : least;
  return value < most ? value : most;
}

/// The quotient is rounded to the dtype of `precision`, else of the scale: rounding to an integer sees that.
void quantize_linear(Evaluation& e) {
  const BroadcastWalk walk = quantization_operands(e);
  HostTensor& to = e.result();
  const std::int64_t named = e.in().int_attribute("precision", 0);
  const DType scale = e.operand(1).dtype();
  const DType precision = is_known_dtype(named) ? static_cast<DType>(named) : is_float(scale) ? scale : DType::kFloat32;
  const bool saturate = e.in().int_attribute("saturate", 1) != 0;
  const bool integers = is_integer_or_bool(to.dtype());
  const auto [least, most] = integers ? limits_of(to.dtype()) : std::pair{0.0, 0.0};
  double numbers[kRow];
  std::int64_t whole[kRow];
  for_each_row(walk, [&](std::size_t first, std::size_t count, const Row<double>* rows) {
    divide(rows[0].at, rows[1], numbers, count);
    if (precision == DType::kFloat32) {
      for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<double>(static_cast<float>(numbers[i]));
    } else {
      for (std::size_t i = 0; i < count; ++i) numbers[i] = rounded_to(precision, numbers[i]);
    }
    if (!integers) {
      for (std::size_t i = 0; i < count; ++i) numbers[i] += at(rows[2], i);
      return store(to, first, count, numbers, saturate);
    }
    if (rows[2].varies) {
      for (std::size_t i = 0; i < count; ++i)
        numbers[i] = within(std::nearbyint(numbers[i]) + rows[2].at[i], least, most);
    } else {
      const double zero = *rows[2].at;
      for (std::size_t i = 0; i < count; ++i) numbers[i] = within(std::nearbyint(numbers[i]) + zero, least, most);
    }
    std::transform(numbers, numbers + count, whole, truncated);
    store(to, first, count, whole);
  });
}

void dequantize_linear(Evaluation& e) {
  const BroadcastWalk walk = quantization_operands(e);
  HostTensor& to = e.result();
  double numbers[kRow];
  for_each_row(walk, [&](std::size_t first, std::size_t count, const Row<double>* rows) {
    if (rows[1].varies || rows[2].varies) {
      for (std::size_t i = 0; i < count; ++i) numbers[i] = (rows[0].at[i] - at(rows[2], i)) * at(rows[1], i);
    } else {
      const double zero = *rows[2].at, scale = *rows[1].at;
      for (std::size_t i = 0; i < count; ++i) numbers[i] = (rows[0].at[i] - zero) * scale;
    }
    store(to, first, count, numbers);
  });
}

/// To uint8, with a range that has a 0. Each step in float32, as in the operator's function.
void dynamic_quantize_linear(Evaluation& e) {
  const std::span<const float> x = e.operand(0).as<float>();
  float least = 0, most = 0;
  for (const float value : x) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const float scale = (most == least ? 1.0F : most - least) / 255.0F;
  const float zero = std::nearbyint(std::clamp(0.0F - least / scale, 0.0F, 255.0F));
  if (e.wants(1)) e.result(1).as_mutable<float>()[0] = scale;
  if (e.wants(2))
    e.result(2).as_mutable<std::uint8_t>()[0] = static_cast<std::uint8_t>(truncated(static_cast<double>(zero)));
  const std::span<std::uint8_t> y = e.result().as_mutable<std::uint8_t>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float sum = std::nearbyint(x[i] / scale) + zero;
    y[i] = static_cast<std::uint8_t>(sum > 0 ? std::min(sum, 255.0F) : 0.0F);
  }
}

const RegisterEvaluators kQuantization{
    Evaluator("QuantizeLinear").evaluate(quantize_linear).error(Rounding::composite().with_jumps()),
    Evaluator("DequantizeLinear").evaluate(dequantize_linear).error(Rounding::rounded()),
    Evaluator("DynamicQuantizeLinear").evaluate(dynamic_quantize_linear).error(Rounding::composite()),
};

}  // namespace
}  // namespace tensorlint::runtime
