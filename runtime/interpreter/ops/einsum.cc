// Einsum. Source: ONNX Einsum, opsets 12, 28. Operands are contracted from left to right, pairs as products of
// matrices.
#include <algorithm>
#include <map>
#include <vector>

#include "ir/ops/einsum.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/products.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"
#include "runtime/values/offsets.h"

namespace tensorlint::runtime {
namespace {

using Labels = std::vector<int>;

/// Letters are their code; the axes of an ellipsis count from its last one, down from here.
constexpr int kLastEllipsisAxis = -1;

bool holds(const Labels& labels, int label) { return std::ranges::find(labels, label) != labels.end(); }

/// A tensor with a label an axis, dense and row-major.
template <typename T>
struct Labelled {
  Labels labels;
  Extents extents;
  std::vector<T> elements;
};

Labels labels_of(const ops::EinsumTerm& term, std::size_t rank) {
  Labels labels(term.letters.begin(), term.letters.end());
  if (!term.has_ellipsis) return labels;
  const auto covered = static_cast<int>(rank - term.letters.size());
  Labels middle;
  for (int i = 0; i < covered; ++i) middle.push_back(kLastEllipsisAxis - (covered - 1 - i));
  labels.insert(labels.begin() + static_cast<std::ptrdiff_t>(term.ellipsis), middle.begin(), middle.end());
  return labels;
}

/// The extents of labels: where some axes are 1, they stretch to the others.
using LabelExtents = std::map<int, std::int64_t>;

/// The tensor with its axes in another order. Labels that it lacks stretch it; of a label that it has twice the
/// diagonal is taken.
template <typename T>
Labelled<T> arranged(const Labelled<T>& tensor, const Labels& labels, const LabelExtents& extents) {
  Labelled<T> result{labels, {}, {}};
  const std::vector<std::int64_t> own = strides_of(tensor.extents);
  std::vector<std::int64_t> strides(labels.size(), 0);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    result.extents.push_back(extents.at(labels[i]));
    for (std::size_t axis = 0; axis < tensor.labels.size(); ++axis)
      if (tensor.labels[axis] == labels[i] && tensor.extents[axis] != 1) strides[i] += own[axis];
  }
  result.elements.resize(element_count(result.extents));
  Offsets<1> at(result.extents);
  at.strides(0, strides);
  for (T& element : result.elements) {
    element = tensor.elements[static_cast<std::size_t>(at[0])];
    at.next();
  }
  return result;
}

/// Sums over the labels that are not wanted.
template <typename T>
Labelled<T> summed(const Labelled<T>& tensor, const Labels& wanted) {
  LabelExtents extents;
  Labels kept, dropped;
  for (std::size_t axis = 0; axis < tensor.labels.size(); ++axis) {
    std::int64_t& extent = extents.try_emplace(tensor.labels[axis], 1).first->second;
    extent = extent == 1 ? tensor.extents[axis] : extent;
    Labels& to = holds(wanted, tensor.labels[axis]) ? kept : dropped;
    if (!holds(to, tensor.labels[axis])) to.push_back(tensor.labels[axis]);
  }
  if (kept.size() == tensor.labels.size()) return tensor;
  Labels both = kept;
  both.insert(both.end(), dropped.begin(), dropped.end());
  const Labelled<T> sorted = arranged(tensor, both, extents);
  Labelled<T> result{
      kept, {sorted.extents.begin(), sorted.extents.begin() + static_cast<std::ptrdiff_t>(kept.size())}, {}};
  result.elements.assign(element_count(result.extents), T{0});
  const std::size_t count = result.elements.empty() ? 0 : sorted.elements.size() / result.elements.size();
  for (std::size_t i = 0; i < sorted.elements.size(); ++i) result.elements[i / count] += sorted.elements[i];
  return result;
}

std::int64_t product(const Labels& labels, const LabelExtents& extents) {
  std::int64_t result = 1;
  for (const int label : labels) result *= extents.at(label);
  return result;
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, const double* b, double* to) {
  gemm(m, n, k, DenseFactor(a, k, 1), DenseFactor(b, n, 1), [&](const ProductTile& tile) {
    for (std::int64_t i = 0; i < tile.rows; ++i)
      std::copy_n(tile.elements + i * tile.stride, tile.columns, to + (tile.row + i) * n + tile.column);
  });
}

/// Integers modulo 2^64.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const std::uint64_t* a, const std::uint64_t* b,
              std::uint64_t* to) {
  std::fill_n(to, m * n, std::uint64_t{0});
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t j = 0; j < n; ++j) to[i * n + j] += a[i * k + p] * b[p * n + j];
}

/// Product of two tensors, summed over labels that both have and nobody wants any more.
template <typename T>
Labelled<T> contracted(const Labelled<T>& a, const Labelled<T>& b, const Labels& wanted, const LabelExtents& extents) {
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
  const Labelled<T> left = arranged(a, joined(rows, inner), extents),
                    right = arranged(b, joined(inner, columns), extents);
  Labelled<T> result{joined(rows, columns), {}, {}};
  for (const int label : result.labels) result.extents.push_back(extents.at(label));
  result.elements.resize(element_count(result.extents));
  const std::int64_t m = product(rows, extents), n = product(columns, extents), k = product(inner, extents);
  for (std::int64_t i = 0; i < product(batch, extents); ++i)
    multiply(m, n, k, left.elements.data() + i * m * k, right.elements.data() + i * k * n,
             result.elements.data() + i * m * n);
  return result;
}

template <typename T>
Labelled<T> evaluate(std::vector<Labelled<T>> operands, const Labels& result, const LabelExtents& extents) {
  const auto wanted_after = [&](std::size_t index) {
    Labels wanted = result;
    for (std::size_t i = index; i < operands.size(); ++i)
      wanted.insert(wanted.end(), operands[i].labels.begin(), operands[i].labels.end());
    return wanted;
  };
  // Labels that only one operand has go first, and diagonals are taken.
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Labels wanted = result;
    for (std::size_t other = 0; other < operands.size(); ++other)
      if (other != i) wanted.insert(wanted.end(), operands[other].labels.begin(), operands[other].labels.end());
    operands[i] = summed(operands[i], wanted);
  }
  Labelled<T> product = operands.front();
  for (std::size_t i = 1; i < operands.size(); ++i)
    product = contracted(product, operands[i], wanted_after(i + 1), extents);
  return arranged(product, result, extents);
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
    labels.push_back(labels_of(equation->terms[i], operand.rank()));
    for (std::size_t axis = 0; axis < operand.rank(); ++axis) {
      std::int64_t& extent = extents.try_emplace(labels[i][axis], 1).first->second;
      if (extent == 1) extent = operand.extent(axis);
    }
  }
  const ops::EinsumTerm term = equation->result ? *equation->result : ops::implied_result(equation->terms);
  const Labels wanted = labels_of(term, result.rank());
  const auto run = [&]<typename T>(const auto& read) {
    std::vector<Labelled<T>> operands;
    for (std::size_t i = 0; i < labels.size(); ++i)
      operands.push_back({labels[i], e.operand(static_cast<int>(i)).extents(), read(static_cast<int>(i))});
    return evaluate(std::move(operands), wanted, extents).elements;
  };
  if (is_integer_or_bool(result.dtype())) {
    const auto sums = run.operator()<std::uint64_t>([&](int i) {
      const std::vector<std::int64_t> integers = e.integers(i);
      return std::vector<std::uint64_t>(integers.begin(), integers.end());
    });
    const std::vector<std::int64_t> integers(sums.begin(), sums.end());
    store(result, 0, integers.size(), integers.data());
  } else {
    const auto sums = run.operator()<double>([&](int i) { return e.numbers(i); });
    store(result, 0, sums.size(), sums.data());
  }
}

const RegisterEvaluators kEinsum{
    Evaluator("Einsum").evaluate(einsum).error(Rounding::accumulates()),
};

}  // namespace
}  // namespace tensorlint::runtime
