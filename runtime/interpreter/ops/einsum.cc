// Einsum. Source: ONNX Einsum, opsets 12, 28. Operands are contracted from left to right, pairs as products of
// matrices.
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/ops/einsum.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/products.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

using Labels = std::vector<int>;  // see ops::einsum_labels

bool holds(const Labels& labels, int label) { return std::ranges::find(labels, label) != labels.end(); }

/// float64 or, modulo 2^64, integers.
template <typename T>
constexpr DType kDtypeOf = std::is_same_v<T, double> ? DType::kFloat64 : DType::kUint64;

/// A tensor with a label an axis, dense and row-major. Copies share the elements.
template <typename T>
struct Labelled {
  Labels labels;
  HostTensor tensor;

  Labelled(Labels its_labels, HostTensor its_tensor) : labels(std::move(its_labels)), tensor(std::move(its_tensor)) {}
  Labelled(Labels its_labels, Extents extents, Memory& memory)
      : labels(std::move(its_labels)), tensor(kDtypeOf<T>, std::move(extents), memory) {}
  const Extents& extents() const { return tensor.extents(); }
  std::span<const T> elements() const { return tensor.as<T>(); }
  std::span<T> elements() { return tensor.as_mutable<T>(); }
};

/// The extents of labels: where some axes are 1, they stretch to the others.
using LabelExtents = std::map<int, std::int64_t>;

/// The tensor with its axes in another order. Labels that it lacks stretch it; of a label that it has twice the
/// diagonal is taken.
template <typename T>
Labelled<T> arranged(const Labelled<T>& operand, const Labels& labels, const LabelExtents& extents, Memory& memory) {
  const std::vector<std::int64_t> own = strides_of(operand.extents());
  std::vector<std::int64_t> strides(labels.size(), 0);
  Extents arranged_extents;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    arranged_extents.push_back(extents.at(labels[i]));
    for (std::size_t axis = 0; axis < operand.labels.size(); ++axis)
      if (operand.labels[axis] == labels[i] && operand.extents()[axis] != 1) strides[i] += own[axis];
  }
  if (operand.labels == labels && operand.extents() == arranged_extents) return operand;
  Labelled<T> result(labels, std::move(arranged_extents), memory);
  copy_strided(result.tensor, operand.tensor, 0, strides);
  return result;
}

/// Sums over the labels that are not wanted.
template <typename T>
Labelled<T> summed(const Labelled<T>& operand, const Labels& wanted, Memory& memory) {
  LabelExtents extents;
  Labels kept, dropped;
  for (std::size_t axis = 0; axis < operand.labels.size(); ++axis) {
    std::int64_t& extent = extents.try_emplace(operand.labels[axis], 1).first->second;
    extent = extent == 1 ? operand.extents()[axis] : extent;
    Labels& to = holds(wanted, operand.labels[axis]) ? kept : dropped;
    if (!holds(to, operand.labels[axis])) to.push_back(operand.labels[axis]);
  }
  if (kept.size() == operand.labels.size()) return operand;
  Labels both = kept;
  both.insert(both.end(), dropped.begin(), dropped.end());
  const Labelled<T> sorted = arranged(operand, both, extents, memory);
  Extents kept_extents(sorted.extents().begin(), sorted.extents().begin() + static_cast<std::ptrdiff_t>(kept.size()));
  Labelled<T> result(std::move(kept), std::move(kept_extents), memory);
  const std::span<T> sums = result.elements();
  const std::span<const T> terms = sorted.elements();
  std::ranges::fill(sums, T{0});
  const std::size_t count = sums.empty() ? 0 : terms.size() / sums.size();
  for (std::size_t i = 0; i < terms.size(); ++i) sums[i / count] += terms[i];
  return result;
}

std::int64_t product(const Labels& labels, const LabelExtents& extents) {
  std::int64_t result = 1;
  for (const int label : labels) result *= extents.at(label);
  return result;
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double* to,
              Memory& memory) {
  gemm(m, n, k, DenseFactor(a, k, 1), DenseFactor(b, n, 1), memory, [&](const ProductTile& tile) {
    for (std::int64_t i = 0; i < tile.rows; ++i)
      std::copy_n(tile.elements + i * tile.stride, tile.columns, to + (tile.row + i) * n + tile.column);
  });
}

/// Integers modulo 2^64.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const std::uint64_t* a, const std::uint64_t* b,
              std::uint64_t* to, Memory& /*memory*/) {
  std::fill_n(to, m * n, std::uint64_t{0});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j) to[i * n + j] += a[i * k + p] * b[p * n + j];
}

/// Product of two tensors, summed over labels that both have and nobody wants any more.
template <typename T>
Labelled<T> contracted(const Labelled<T>& a, const Labelled<T>& b, const Labels& wanted, const LabelExtents& extents,
                       Memory& memory) {
  Labels batch, inner, rows, columns;
  for (const int label : a.labels)
    (!holds(b.labels, label) ? rows : holds(wanted, label) ? batch : inner).push_back(label);
  for (const int label : b.labels)
    if (!holds(a.labels, label)) columns.push_back(label);
  const auto joined = [&](const Labels& second, const Labels& third) {
    Labels labels = batch;
    labels.insert(labels.end(), second.begin(), second.end());
    labels.insert(labels.end(), third.begin(), third.end());
    return labels;
  };
  const Labelled<T> left = arranged(a, joined(rows, inner), extents, memory),
                    right = arranged(b, joined(inner, columns), extents, memory);
  Labels labels = joined(rows, columns);
  Extents result_extents;
  for (const int label : labels) result_extents.push_back(extents.at(label));
  Labelled<T> result(std::move(labels), std::move(result_extents), memory);
  if (result.elements().empty()) return result;
  const std::int64_t m = product(rows, extents), n = product(columns, extents), k = product(inner, extents);
  for (std::int64_t i = 0; i < product(batch, extents); ++i)
    multiply(m, n, k, left.elements().data() + i * m * k, right.elements().data() + i * k * n,
             result.elements().data() + i * m * n, memory);
  return result;
}

template <typename T>
Labelled<T> evaluate(Evaluation& e, std::vector<Labelled<T>> operands, const Labels& result,
                     const LabelExtents& extents) {
  Memory& memory = e.memory();
  std::map<int, std::ptrdiff_t> uses;  // by operands that are not done
  const auto count = [&](const Labels& labels, std::ptrdiff_t change) {
    for (const int label : labels) uses[label] += change;
  };
  const auto wanted_of = [&](std::initializer_list<const Labels*> all) {
    Labels wanted = result;
    for (const Labels* const labels : all)
      std::ranges::copy_if(*labels, std::back_inserter(wanted), [&](int label) { return uses[label] > 0; });
    return wanted;
  };
  for (const Labelled<T>& operand : operands) count(operand.labels, 1);
  // Labels that only one operand has go first, and diagonals are taken.
  for (Labelled<T>& operand : operands) {
    count(operand.labels, -1);
    operand = summed(operand, wanted_of({&operand.labels}), memory);
    count(operand.labels, 1);
  }
  Labelled<T> product = operands.front();
  count(product.labels, -1);
  for (Labelled<T>& operand : std::span(operands).subspan(1)) {
    count(operand.labels, -1);
    double products = 1;
    for (const int label : product.labels) products *= static_cast<double>(extents.at(label));
    for (const int label : operand.labels)
      if (!holds(product.labels, label)) products *= static_cast<double>(extents.at(label));
    e.charge(products);
    product = contracted(product, operand, wanted_of({&product.labels, &operand.labels}), extents, memory);
    operand.tensor = {};
  }
  return arranged(product, result, extents, memory);
}

/// The elements as T.
template <typename T>
HostTensor converted(const HostTensor& operand, Memory& memory) {
  if constexpr (std::is_same_v<T, double>) return to_float64(operand, memory);
  if (operand.dtype() == kDtypeOf<T>) return operand;
  HostTensor result(kDtypeOf<T>, operand.extents(), memory);
  load(operand, 0, operand.size(), reinterpret_cast<std::int64_t*>(result.mutable_raw()));
  return result;
}

void einsum(Evaluation& e) {
  ops::Message error;
  const auto equation = ops::parse_einsum(e.in().string_attribute("equation", ""), error);
  if (!equation) e.fail("the equation is malformed");
  HostTensor& result = e.result();
  std::vector<Labels> labels;
  LabelExtents extents;
  for (std::size_t i = 0; i < equation->terms.size(); ++i) {
    const HostTensor& operand = e.operand(static_cast<int>(i));
    labels.push_back(ops::einsum_labels(equation->terms[i], operand.rank()));
    for (std::size_t axis = 0; axis < operand.rank(); ++axis) {
      std::int64_t& extent = extents.try_emplace(labels[i][axis], 1).first->second;
      if (extent == 1) extent = operand.extent(axis);
    }
  }
  const ops::EinsumTerm term = equation->result ? *equation->result : ops::implied_result(equation->terms);
  const Labels wanted = ops::einsum_labels(term, result.rank());
  const auto run = [&]<typename T>() {
    std::vector<Labelled<T>> operands;
    for (std::size_t i = 0; i < labels.size(); ++i)
      operands.push_back({labels[i], converted<T>(e.operand(static_cast<int>(i)), e.memory())});
    return evaluate(e, std::move(operands), wanted, extents).tensor;
  };
  if (is_integer_or_bool(result.dtype())) {
    const HostTensor sums = run.operator()<std::uint64_t>();
    store(result, 0, sums.size(), reinterpret_cast<const std::int64_t*>(sums.raw()));
  } else {
    const HostTensor sums = run.operator()<double>();
    store(result, 0, sums.size(), sums.as<double>().data());
  }
}

const RegisterEvaluators kEinsum{
    Evaluator("Einsum").evaluate(einsum).error(Rounding::accumulates()).skips_empty_operands(),
};

}  // namespace
}  // namespace tensorlint::runtime
