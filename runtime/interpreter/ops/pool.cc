// Pools. Source: ONNX MaxPool (1, 8, 10, 11, 12, 22), AveragePool (1, 7, 10, 11, 19, 22), LpPool (1, 2, 11, 18, 22),
// GlobalAveragePool, GlobalMaxPool (1, 22), GlobalLpPool (1, 2, 22), MaxUnpool (9, 11, 22).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/products.h"
#include "runtime/interpreter/terms.h"
#include "runtime/interpreter/window_geometry.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

/// Results are allocated on the way.
WindowGeometry pool_geometry(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const auto kernel = e.in().ints_attribute("kernel_shape");
  if (!kernel) e.fail("the attribute kernel_shape is missing");
  for (int index = 0; e.wants(index); ++index) window_result(e, index, data.extents(), *kernel, data.extent(1));
  return window_geometry(e, data.extents(), *kernel, e.result().extents());
}

double terms_of_window(Evaluation& e) {
  const auto kernel = e.in().ints_attribute("kernel_shape");
  return kernel ? static_cast<double>(element_count(*kernel)) : 1;
}

/// Stores a row of a pool's results, which are integers for pools of integers.
void store_row(HostTensor& result, std::size_t first, std::span<const double> row) {
  if (is_float(result.dtype())) return store(result, first, row.size(), row.data());
  store_integers(result, first, row.size(), [&](std::size_t i) { return static_cast<std::int64_t>(row[i]); });
}

/// fold(sum, element) over the window of each element of the result, from `start` on; finish(image, first, row) turns a
/// row of sums into results.
template <typename T, typename Fold, typename Finish>
void fold_windows(const T* data, const WindowGeometry& g, std::int64_t images, double start, const Fold& fold,
                  HostTensor& result, Memory& memory, const Finish& finish) {
  const std::int64_t plane = g.in_size(), positions = g.out_size(), stride = g.strides.back();
  List<double> row(static_cast<std::size_t>(g.out.back()), memory.resource());
  for (std::int64_t image = 0; image < images; ++image) {
    const T* const from = data + image * plane;
    for_each_window_row(
        g, memory, [&] { std::ranges::fill(row, start); },
        [&](std::int64_t, std::int64_t at, std::int64_t first, std::int64_t end) {
          double* const to = row.data();
          for (std::int64_t x = first; x < end; ++x) to[x] = fold(to[x], static_cast<double>(from[at + x * stride]));
        },
        [&](std::int64_t first) {
          finish(first, row);
          store_row(result, static_cast<std::size_t>(image * positions + first), row);
        });
  }
}

/// What a window of nothing but padding has.
double lowest(DType dtype) {
  if (dtype == DType::kUint8) return 0;
  return dtype == DType::kInt8 ? -128 : -std::numeric_limits<double>::infinity();
}

/// The index of an element of an image, with the axes in the order that storage_order says.
std::int64_t stored_index(const WindowGeometry& g, std::int64_t index, bool column_major) {
  if (!column_major || g.in_size() == 0) return index;  // windows of padding alone have no element
  std::int64_t size = g.in_size(), result = 0;
  for (std::size_t axis = g.rank(); axis-- > 0;) {
    size /= g.in[axis];
    result += index % g.in[axis] * size;
    index /= g.in[axis];
  }
  return result;
}

template <typename T>
void max_pool_with_indices(Evaluation& e, const T* data, const WindowGeometry& g, std::int64_t images) {
  HostTensor &result = e.result(), &indices = e.result(1);
  const bool column_major = e.in().int_attribute("storage_order", 0) != 0;
  const std::int64_t plane = g.in_size(), positions = g.out_size(), stride = g.strides.back();
  const double start = lowest(result.dtype());
  List<double> row(static_cast<std::size_t>(g.out.back()), e.memory().resource());
  List<std::int64_t> where(row.size(), e.memory().resource());
  for (std::int64_t image = 0; image < images; ++image) {
    const T* const from = data + image * plane;
    for_each_window_row(
        g, e.memory(),
        [&] {
          std::ranges::fill(row, start);
          std::ranges::fill(where, -1);
        },
        [&](std::int64_t, std::int64_t at, std::int64_t first, std::int64_t end) {
          for (std::int64_t x = first; x < end; ++x) {
            const auto window = static_cast<std::size_t>(x);
            const auto element = static_cast<double>(from[at + x * stride]);
            if (element > row[window] || where[window] < 0) row[window] = element, where[window] = at + x * stride;
          }
        },
        [&](std::int64_t first) {
          for (std::int64_t& index : where)
            index = image * plane + stored_index(g, std::max<std::int64_t>(index, 0), column_major);
          const auto to = static_cast<std::size_t>(image * positions + first);
          store_row(result, to, row);
          store(indices, to, where.size(), where.data());
        });
  }
}

void max_pool(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const WindowGeometry g = pool_geometry(e);
  HostTensor& result = e.result();
  if (result.size() == 0) return;
  const std::int64_t images = data.extent(0) * data.extent(1);
  with_elements(Numbers(data, e.memory()), [&](const auto* elements) {
    if (e.wants(1)) return max_pool_with_indices(e, elements, g, images);
    fold_windows(
        elements, g, images, lowest(result.dtype()), [](double best, double x) { return x > best ? x : best; }, result,
        e.memory(), [](std::int64_t, std::span<const double>) {});
  });
}

/// Elements of each window along an axis that count: those in the image, and in its padding if `with_pads`.
List<std::int64_t> counted(const WindowGeometry& g, std::size_t axis, bool with_pads, Memory& memory) {
  List<std::int64_t> counts(static_cast<std::size_t>(g.out[axis]), 0, memory.resource());
  const std::int64_t low = with_pads ? -g.begin_pads[axis] : 0;
  const std::int64_t high = g.in[axis] + (with_pads ? g.end_pads[axis] : 0);
  for (std::int64_t window = 0; window < g.out[axis]; ++window) {
    const auto [first, end] = g.elements_inside(axis, window, low, high);
    counts[static_cast<std::size_t>(window)] = end - first;
  }
  return counts;
}

void average_pool(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const WindowGeometry g = pool_geometry(e);
  HostTensor& result = e.result();
  if (result.size() == 0) return;
  const bool with_pads = e.in().int_attribute("count_include_pad", 0) != 0;
  std::vector<List<std::int64_t>> counts;
  for (std::size_t axis = 0; axis < g.rank(); ++axis) counts.push_back(counted(g, axis, with_pads, e.memory()));
  const std::int64_t width = g.out.back();
  with_elements(Numbers(data, e.memory()), [&](const auto* elements) {
    fold_windows(
        elements, g, data.extent(0) * data.extent(1), 0.0, [](double sum, double x) { return sum + x; }, result,
        e.memory(),
        [&](std::int64_t first, std::span<double> row) {
          std::int64_t outer = 1, at = first / width;
          for (std::size_t axis = g.rank() - 1; axis-- > 0; at /= g.out[axis])
            outer *= counts[axis][static_cast<std::size_t>(at % g.out[axis])];
          for (std::size_t x = 0; x < row.size(); ++x) row[x] /= static_cast<double>(outer * counts.back()[x]);
        });
  });
}

/// `p` is a float in opset 1.
double order_of(Evaluation& e) {
  const Attribute* const p = e.in().attribute("p");
  if (p == nullptr) return 2;
  return p->kind == AttributeKind::kFloat ? static_cast<double>(p->f) : static_cast<double>(p->i);
}

double power(double x, double p) {
  if (p == 1) return std::fabs(x);
  return p == 2 ? x * x : std::pow(std::fabs(x), p);
}

double root(double x, double p) {
  if (p == 1) return x;
  return p == 2 ? std::sqrt(x) : std::pow(x, 1 / p);
}

void lp_pool(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  const double p = order_of(e);
  const WindowGeometry g = pool_geometry(e);
  HostTensor& result = e.result();
  if (result.size() == 0) return;
  with_elements(Numbers(data, e.memory()), [&](const auto* elements) {
    fold_windows(
        elements, g, data.extent(0) * data.extent(1), 0.0, [p](double sum, double x) { return sum + power(x, p); },
        result, e.memory(),
        [p](std::int64_t, std::span<double> row) {
          for (double& sum : row) sum = root(sum, p);
        });
  });
}

/// Folds all spatial axes of each image: finish(fold over its elements, their number).
template <typename Fold, typename Finish>
void global_pool(Evaluation& e, double start, const Fold& fold, const Finish& finish) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  if (result.size() == 0) return;
  const std::size_t plane = data.size() / result.size();
  std::array<double, kRow> row;
  for (std::size_t image = 0; image < result.size(); ++image) {
    double folded = start;
    for (std::size_t first = 0; first < plane; first += kRow) {
      const std::size_t count = std::min(kRow, plane - first);
      load(data, image * plane + first, count, row.data());
      for (std::size_t i = 0; i < count; ++i) folded = fold(folded, row[i]);
    }
    const double value = finish(folded, static_cast<double>(plane));
    store(result, image, 1, &value);
  }
}

void global_average_pool(Evaluation& e) {
  global_pool(e, 0, [](double sum, double x) { return sum + x; }, [](double sum, double count) { return sum / count; });
}

void global_max_pool(Evaluation& e) {
  global_pool(
      e, -std::numeric_limits<double>::infinity(), [](double best, double x) { return x > best || x != x ? x : best; },
      [](double best, double) { return best; });
}

void global_lp_pool(Evaluation& e) {
  const double p = order_of(e);
  global_pool(
      e, 0, [p](double sum, double x) { return sum + power(x, p); }, [p](double sum, double) { return root(sum, p); });
}

/// Elements go where their indices say in the extents that the windows imply, zeros elsewhere; a larger output_shape
/// adds zeros at the ends.
void max_unpool(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  const std::size_t spatial = data.rank() - 2;
  const auto kernel = ops::spatial_attribute(e.in(), "kernel_shape", spatial, 1, 1);
  const auto strides = ops::spatial_attribute(e.in(), "strides", spatial, 1, 1);
  const auto pads = ops::spatial_attribute(e.in(), "pads", 2 * spatial, 0, std::numeric_limits<std::int64_t>::min());
  if (!kernel || !strides || !pads) e.fail("the attributes of its windows do not fit");
  Extents extents{data.extent(0), data.extent(1)};
  std::fill_n(result.mutable_raw(), result.bytes(), std::byte{0});
  if (data.size() == 0) return;
  std::int64_t elements = data.extent(0) * data.extent(1);
  for (std::size_t axis = 0; axis < spatial; ++axis) {
    std::int64_t extent = 0;
    if (__builtin_mul_overflow(data.extent(axis + 2) - 1, (*strides)[axis], &extent) ||
        __builtin_sub_overflow(extent, (*pads)[axis], &extent) ||
        __builtin_sub_overflow(extent, (*pads)[axis + spatial], &extent) ||
        __builtin_add_overflow(extent, (*kernel)[axis], &extent) || extent < 0 ||
        __builtin_mul_overflow(elements, std::max<std::int64_t>(extent, 1), &elements))
      e.fail("the data was not pooled with these windows along axis {}", axis + 2);
    extents.push_back(extent);
  }
  const std::vector<std::int64_t> indices = e.integers(1);
  if (indices.size() != data.size()) e.fail("{} indices for {} elements", indices.size(), data.size());
  const std::vector<std::int64_t> to = strides_of(result.extents());
  const auto total = static_cast<std::int64_t>(element_count(extents));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= total)
      e.fail("index {} is outside the {} elements of the result", indices[i], total);
    std::int64_t rest = indices[i], at = 0;
    bool is_inside = true;
    for (std::size_t axis = extents.size(); axis-- > 0; rest /= extents[axis]) {
      is_inside = is_inside && rest % extents[axis] < result.extent(axis);
      at += rest % extents[axis] * to[axis];
    }
    if (is_inside) copy_elements(result, static_cast<std::size_t>(at), data, i, 1);
  }
}

const RegisterEvaluators kPools{
    Evaluator("MaxPool").evaluate(max_pool).error(Rounding::exact()),
    Evaluator("AveragePool").evaluate(average_pool).error(Rounding::accumulates(terms_of_window)),
    Evaluator("LpPool").evaluate(lp_pool).error(Rounding::composite(terms_of_window)),
    Evaluator("GlobalAveragePool")
        .evaluate(global_average_pool)
        .error(Rounding::accumulates(terms_of_reduction))
        .skips_empty_operands(),
    Evaluator("GlobalMaxPool").evaluate(global_max_pool).error(Rounding::exact()).skips_empty_operands(),
    Evaluator("GlobalLpPool")
        .evaluate(global_lp_pool)
        .error(Rounding::composite(terms_of_reduction))
        .skips_empty_operands(),
    Evaluator("MaxUnpool").evaluate(max_unpool).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
