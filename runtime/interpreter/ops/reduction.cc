// Reductions. Source: ONNX Reduce* (1, 11, 13, 18, 20; axes are an operand from 18 on, from 13 for ReduceSum), ArgMax,
// ArgMin (1, 11, 12, 13), CumSum (11, 14), CumProd (26).
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/ops/contents.h"
#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/element_functions.h"
#include "runtime/interpreter/ops/function_loops.h"
#include "runtime/interpreter/terms.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"
#include "runtime/values/offsets.h"

namespace tensorlint::runtime {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The operand as groups of elements that become one: neighbouring axes of the same fate are one axis.
struct Groups {
  std::vector<std::int64_t> kept, kept_strides, reduced, reduced_strides;  ///< without the innermost axis
  std::int64_t row = 1;                                                    ///< elements along the innermost axis
  bool reduces_row = false;
  std::int64_t count = 1;  ///< elements a group
};

/// Which axes go. An empty list means all, or none with noop_with_empty_axes: then single elements are reduced.
std::vector<bool> reduced_axes(Evaluation& e, std::size_t rank) {
  bool given = false;
  std::vector<std::int64_t> axes;
  if (const auto attribute = e.in().ints_attribute("axes")) {
    axes.assign(attribute->begin(), attribute->end());
  } else if (const int index = e.call().schema->input_index("axes"); index >= 0 && e.has(index)) {
    axes = e.integers(index);
  }
  given = !axes.empty();
  if (!given) return std::vector<bool>(rank, e.in().int_attribute("noop_with_empty_axes", 0) == 0);
  std::vector<bool> reduced(rank, false);
  for (const std::int64_t axis : axes)
    reduced[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis)] = true;
  return reduced;
}

Groups groups_of(const Extents& extents, const std::vector<bool>& reduced) {
  struct Axis {
    std::int64_t extent, stride;
    bool is_reduced;
  };
  std::vector<Axis> axes;
  std::int64_t stride = 1;
  Groups groups;
  for (std::size_t i = extents.size(); i-- > 0;) {
    if (reduced[i]) groups.count *= extents[i];
    if (extents[i] == 1) continue;
    if (!axes.empty() && axes.back().is_reduced == reduced[i]) {
      axes.back().extent *= extents[i];
    } else {
      axes.push_back({extents[i], stride, reduced[i]});
    }
    stride *= extents[i];
  }
  if (!axes.empty()) {
    groups.row = axes.front().extent;
    groups.reduces_row = axes.front().is_reduced;
  }
  for (std::size_t i = axes.size(); i-- > 1;) {
    (axes[i].is_reduced ? groups.reduced : groups.kept).push_back(axes[i].extent);
    (axes[i].is_reduced ? groups.reduced_strides : groups.kept_strides).push_back(axes[i].stride);
  }
  return groups;
}

/// Folds of float64. Lanes run side by side through a row and meet at its end, on every processor alike.
struct Sum {
  static constexpr double kStart = 0;
  static double step(double sum, double x) { return sum + x; }
};
struct SumOfMagnitudes {
  static constexpr double kStart = 0;
  static double step(double sum, double x) { return sum + std::fabs(x); }
  static double join(double a, double b) { return a + b; }
};
struct SumOfSquares {
  static constexpr double kStart = 0;
  static double step(double sum, double x) { return sum + x * x; }
  static double join(double a, double b) { return a + b; }
};
struct Product {
  static constexpr double kStart = 1;
  static double step(double product, double x) { return product * x; }
};
/// NaN wins, as in numpy. Without a branch, for vectors.
struct Largest {
  static constexpr double kStart = -kInfinity;
  static double step(double best, double x) {
    const bool takes = x > best, is_nan = x != x;
    return (takes | is_nan) ? x : best;
  }
};
struct Smallest {
  static constexpr double kStart = kInfinity;
  static double step(double best, double x) {
    const bool takes = x < best, is_nan = x != x;
    return (takes | is_nan) ? x : best;
  }
};

template <typename Fold, typename Value>
Value join(Value a, Value b) {
  if constexpr (requires { Fold::join(a, b); }) {
    return Fold::join(a, b);
  } else {
    return Fold::step(a, b);
  }
}

constexpr std::size_t kLanes = 8;

template <typename Fold, typename Value>
Value fold_row(Value start, const Value* row, std::size_t count) {
  std::array<Value, kLanes> lanes;
  lanes.fill(Fold::kStart);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = Fold::step(lanes[lane], row[i + lane]);
  for (; i < count; ++i) start = Fold::step(start, row[i]);
  if (count < kLanes) return start;
  for (const Value lane : lanes) start = join<Fold>(start, lane);
  return start;
}

/// Room for a row of elements and for the results of a block of groups.
template <typename Value>
struct Rows {
  std::array<Value, kRow> elements;
  std::array<Value, kRow> results;
};

/// Calls visit(first result, results, each) a block of groups; each(fold) calls fold(first element, count) for all rows
/// of the block: of the elements of one group, or of one element each of `results` groups.
template <typename Visit>
void for_each_group(const Groups& groups, const Visit& visit) {
  Offsets<1> kept(groups.kept), reduced(groups.reduced);
  kept.strides(0, groups.kept_strides);
  reduced.strides(0, groups.reduced_strides);
  if (kept.is_empty()) return;
  std::size_t result = 0;
  const auto rows = [&](std::int64_t first, std::int64_t step, std::int64_t end, const auto& fold) {
    if (reduced.is_empty() || groups.row == 0) return;
    do {
      for (std::int64_t at = first; at < end; at += step)
        fold(static_cast<std::size_t>(kept[0] + reduced[0] + at), static_cast<std::size_t>(std::min(step, end - at)));
    } while (reduced.next());
  };
  constexpr auto kStep = static_cast<std::int64_t>(kRow);
  do {
    if (groups.reduces_row) {
      visit(result, std::size_t{1}, [&](const auto& fold) { rows(0, kStep, groups.row, fold); });
      ++result;
      continue;
    }
    for (std::int64_t first = 0; first < groups.row; first += kStep) {
      const std::int64_t end = std::min(first + kStep, groups.row);
      visit(result, static_cast<std::size_t>(end - first), [&](const auto& fold) { rows(first, kStep, end, fold); });
      result += static_cast<std::size_t>(end - first);
    }
  } while (kept.next());
}

/// One fold over the groups of a block.
template <typename Fold, typename Value, typename Each>
void fold_block(const HostTensor& data, bool reduces_row, std::size_t results, const Each& each, Rows<Value>& rows) {
  std::fill_n(rows.results.begin(), results, Fold::kStart);
  each([&](std::size_t first, std::size_t count) {
    load(data, first, count, rows.elements.data());
    if (reduces_row) {
      rows.results[0] = fold_row<Fold>(rows.results[0], rows.elements.data(), count);
    } else {
      for (std::size_t i = 0; i < count; ++i) rows.results[i] = Fold::step(rows.results[i], rows.elements[i]);
    }
  });
}

/// finish(folded, elements a group).
template <typename Fold, typename Value, auto kFinish>
void reduce_as(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  const Groups groups = groups_of(data.extents(), reduced_axes(e, data.rank()));
  Rows<Value> rows;
  for_each_group(groups, [&](std::size_t first, std::size_t results, const auto& each) {
    fold_block<Fold>(data, groups.reduces_row, results, each, rows);
    for (std::size_t i = 0; i < results; ++i) rows.results[i] = kFinish(rows.results[i], groups.count);
    store(result, first, results, rows.results.data());
  });
}

double keep(double folded, std::int64_t /*count*/) { return folded; }
double divide(double folded, std::int64_t count) { return folded / static_cast<double>(count); }
double root(double folded, std::int64_t /*count*/) { return std::sqrt(folded); }
double logarithm(double folded, std::int64_t /*count*/) { return std::log(folded); }

std::int64_t keep_integer(std::int64_t folded, std::int64_t /*count*/) { return folded; }
/// Truncated, as runtimes do.
std::int64_t divide_integer(std::int64_t folded, std::int64_t count) { return count == 0 ? 0 : folded / count; }
std::int64_t root_integer(std::int64_t folded, std::int64_t /*count*/) {
  return truncated(std::sqrt(static_cast<double>(folded)));
}
std::int64_t logarithm_integer(std::int64_t folded, std::int64_t /*count*/) {
  return truncated(std::log(static_cast<double>(folded)));
}

/// Folds of integers, modulo 2^64.
std::int64_t wrapped(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

struct IntegerSum {
  static constexpr std::int64_t kStart = 0;
  static std::int64_t step(std::int64_t sum, std::int64_t x) { return wrapped(bits(sum) + bits(x)); }
};
struct IntegerSumOfMagnitudes {
  static constexpr std::int64_t kStart = 0;
  static std::int64_t step(std::int64_t sum, std::int64_t x) {
    return wrapped(x < 0 ? bits(sum) - bits(x) : bits(sum) + bits(x));
  }
  static std::int64_t join(std::int64_t a, std::int64_t b) { return IntegerSum::step(a, b); }
};
struct IntegerSumOfSquares {
  static constexpr std::int64_t kStart = 0;
  static std::int64_t step(std::int64_t sum, std::int64_t x) { return wrapped(bits(sum) + bits(x) * bits(x)); }
  static std::int64_t join(std::int64_t a, std::int64_t b) { return IntegerSum::step(a, b); }
};
struct IntegerProduct {
  static constexpr std::int64_t kStart = 1;
  static std::int64_t step(std::int64_t product, std::int64_t x) { return wrapped(bits(product) * bits(x)); }
};
struct IntegerLargest {
  static constexpr std::int64_t kStart = std::numeric_limits<std::int64_t>::min();
  static std::int64_t step(std::int64_t best, std::int64_t x) { return std::max(best, x); }
};
struct IntegerSmallest {
  static constexpr std::int64_t kStart = std::numeric_limits<std::int64_t>::max();
  static std::int64_t step(std::int64_t best, std::int64_t x) { return std::min(best, x); }
};
struct UnsignedLargest {
  static constexpr std::int64_t kStart = 0;
  static std::int64_t step(std::int64_t best, std::int64_t x) { return bits(x) > bits(best) ? x : best; }
};
struct UnsignedSmallest {
  static constexpr std::int64_t kStart = -1;
  static std::int64_t step(std::int64_t best, std::int64_t x) { return bits(x) < bits(best) ? x : best; }
};

template <typename Fold, auto kFinish, typename IntegerFold, auto kIntegerFinish>
void reduce(Evaluation& e) {
  if (is_integer_or_bool(e.operand(0).dtype())) {
    reduce_as<IntegerFold, std::int64_t, kIntegerFinish>(e);
  } else {
    reduce_as<Fold, double, kFinish>(e);
  }
}

std::int64_t divide_unsigned(std::int64_t sum, std::int64_t count) {
  return count == 0 ? std::int64_t{0} : wrapped(bits(sum) / bits(count));
}

void reduce_mean(Evaluation& e) {
  if (e.operand(0).dtype() == DType::kUint64) {
    reduce_as<IntegerSum, std::int64_t, divide_unsigned>(e);
  } else {
    reduce<Sum, divide, IntegerSum, divide_integer>(e);
  }
}

/// Of no elements: the least value of the dtype, or the largest.
std::int64_t limit_of(DType dtype, bool largest) {
  if (dtype == DType::kBool) return largest ? 1 : 0;
  const int width = static_cast<int>(bit_width(dtype));
  if (DTypeSet(dtype).is_subset_of(DTypeSet::unsigned_integers()))
    return largest ? wrapped(~std::uint64_t{0} >> (64 - width)) : 0;
  return largest ? wrapped(~std::uint64_t{0} >> (65 - width)) : -wrapped(~std::uint64_t{0} >> (65 - width)) - 1;
}

template <typename Fold, typename IntegerFold, typename UnsignedFold, bool kOfLargest>
void reduce_extreme(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  if (!is_integer_or_bool(data.dtype())) return reduce_as<Fold, double, keep>(e);
  if (data.size() == 0) {
    HostTensor& result = e.result();
    const std::int64_t limit = limit_of(data.dtype(), !kOfLargest);
    for (std::size_t i = 0; i < result.size(); ++i) store(result, i, 1, &limit);
    return;
  }
  if (data.dtype() == DType::kUint64) return reduce_as<UnsignedFold, std::int64_t, keep_integer>(e);
  reduce_as<IntegerFold, std::int64_t, keep_integer>(e);
}

/// Less the largest of each group, so that no exponential overflows.
void reduce_log_sum_exp(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  const Groups groups = groups_of(data.extents(), reduced_axes(e, data.rank()));
  Rows<double> rows;
  std::array<double, kRow> sums;
  static const auto powers_of = FunctionLoop<ExpFunction, double>::best();
  for_each_group(groups, [&](std::size_t first, std::size_t results, const auto& each) {
    fold_block<Largest>(data, groups.reduces_row, results, each, rows);
    for (std::size_t i = 0; i < results; ++i)
      if (std::isinf(rows.results[i])) rows.results[i] = 0;
    std::fill_n(sums.begin(), results, 0.0);
    each([&](std::size_t start, std::size_t count) {
      load(data, start, count, rows.elements.data());
      for (std::size_t i = 0; i < count; ++i) rows.elements[i] -= rows.results[groups.reduces_row ? 0 : i];
      powers_of(ExpFunction{}, rows.elements.data(), rows.elements.data(), count);
      for (std::size_t i = 0; i < count; ++i) sums[groups.reduces_row ? 0 : i] += rows.elements[i];
    });
    std::array<std::int64_t, kRow> integers;
    for (std::size_t i = 0; i < results; ++i) {
      const double logarithm = std::log(sums[i]);
      // The sum has an error relative to itself, which its logarithm makes absolute.
      sums[i] =
          e.asks_amplitude() ? std::fabs(logarithm) + std::fabs(rows.results[i]) + 1 : logarithm + rows.results[i];
      integers[i] = is_float(data.dtype()) ? 0 : truncated(sums[i]);
    }
    if (is_float(data.dtype())) {
      store(result, first, results, sums.data());
    } else {
      store(result, first, results, integers.data());
    }
  });
}

/// better(x, best): x takes the place of the best so far.
template <typename Value, typename Better>
void arg_extreme_as(Evaluation& e, const Better& better) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  const AxisSplit shape = split_at(data.extents(), axis_attribute(e, 0, data.rank()));
  if (shape.extent == 0 && result.size() > 0) e.fail("the axis to search has no elements");
  std::array<Value, kRow> row, best;
  std::int64_t* const where = result.as_mutable<std::int64_t>().data();
  for (std::size_t o = 0; o < shape.outer; ++o) {
    if (shape.inner == 1) {
      for (std::size_t first = 0; first < shape.extent; first += kRow) {
        const std::size_t count = std::min(kRow, shape.extent - first);
        load(data, o * shape.extent + first, count, row.data());
        if (first == 0) best[0] = row[0], where[o] = 0;
        for (std::size_t i = 0; i < count; ++i)
          if (better(row[i], best[0])) best[0] = row[i], where[o] = static_cast<std::int64_t>(first + i);
      }
      continue;
    }
    for (std::size_t first = 0; first < shape.inner; first += kRow) {
      const std::size_t count = std::min(kRow, shape.inner - first);
      std::int64_t* const found = where + o * shape.inner + first;
      for (std::size_t k = 0; k < shape.extent; ++k) {
        load(data, (o * shape.extent + k) * shape.inner + first, count, row.data());
        for (std::size_t i = 0; i < count; ++i)
          if (k == 0 || better(row[i], best[i])) best[i] = row[i], found[i] = static_cast<std::int64_t>(k);
      }
    }
  }
}

/// The first NaN counts as the extreme, as in numpy; of equal elements the first, or the last with select_last_index.
template <bool kLargest>
void arg_extreme(Evaluation& e) {
  const bool last = e.in().int_attribute("select_last_index", 0) != 0;
  const auto beats = [last](auto x, auto best) {
    return kLargest ? (last ? x >= best : x > best) : (last ? x <= best : x < best);
  };
  const DType dtype = e.operand(0).dtype();
  if (dtype == DType::kUint64) {
    arg_extreme_as<std::int64_t>(e, [&](std::int64_t x, std::int64_t best) { return beats(bits(x), bits(best)); });
  } else if (is_integer_or_bool(dtype)) {
    arg_extreme_as<std::int64_t>(e, beats);
  } else {
    arg_extreme_as<double>(
        e, [&](double x, double best) { return beats(x, best) || (std::isnan(x) && (last || !std::isnan(best))); });
  }
}

/// The running fold along an axis, of the elements up to each, or with `exclusive` of those before.
template <typename Fold, typename Value>
void cumulate(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  const AxisSplit shape = split_at(data.extents(), from_front(e.integer(1), data.rank()));
  const bool exclusive = e.in().int_attribute("exclusive", 0) != 0, reverse = e.in().int_attribute("reverse", 0) != 0;
  std::array<Value, kRow> row, running, out;
  const std::size_t step = shape.inner == 1 ? 1 : std::min(kRow, shape.inner);
  List<Value> whole(e.memory().resource());
  for (std::size_t o = 0; o < shape.outer; ++o) {
    if (shape.inner == 1) {
      whole.resize(shape.extent);
      load(data, o * shape.extent, shape.extent, whole.data());
      Value sum = Fold::kStart;
      for (std::size_t k = 0; k < shape.extent; ++k) {
        Value& at = whole[reverse ? shape.extent - 1 - k : k];
        const Value next = Fold::step(sum, at);
        at = exclusive ? sum : next;
        sum = next;
      }
      store(result, o * shape.extent, shape.extent, whole.data());
      continue;
    }
    for (std::size_t first = 0; first < shape.inner; first += step) {
      const std::size_t count = std::min(step, shape.inner - first);
      running.fill(Fold::kStart);
      for (std::size_t k = 0; k < shape.extent; ++k) {
        const std::size_t at = (o * shape.extent + (reverse ? shape.extent - 1 - k : k)) * shape.inner + first;
        load(data, at, count, row.data());
        for (std::size_t i = 0; i < count; ++i) {
          const Value next = Fold::step(running[i], row[i]);
          out[i] = exclusive ? running[i] : next;
          running[i] = next;
        }
        store(result, at, count, out.data());
      }
    }
  }
}

template <typename Fold, typename IntegerFold>
void cumulative(Evaluation& e) {
  if (is_integer_or_bool(e.operand(0).dtype())) {
    cumulate<IntegerFold, std::int64_t>(e);
  } else {
    cumulate<Fold, double>(e);
  }
}

constexpr Rounding kSums = Rounding::accumulates(terms_of_reduction);

const RegisterEvaluators kReductions{
    Evaluator("ReduceSum").evaluate(reduce<Sum, keep, IntegerSum, keep_integer>).error(kSums).skips_empty_operands(),
    Evaluator("ReduceMean").evaluate(reduce_mean).error(kSums).skips_empty_operands(),
    Evaluator("ReduceProd")
        .evaluate(reduce<Product, keep, IntegerProduct, keep_integer>)
        .error(kSums)
        .skips_empty_operands(),
    Evaluator("ReduceL1")
        .evaluate(reduce<SumOfMagnitudes, keep, IntegerSumOfMagnitudes, keep_integer>)
        .error(kSums)
        .skips_empty_operands(),
    Evaluator("ReduceL2")
        .evaluate(reduce<SumOfSquares, root, IntegerSumOfSquares, root_integer>)
        .error(Rounding::composite(terms_of_reduction))
        .skips_empty_operands(),
    Evaluator("ReduceSumSquare")
        .evaluate(reduce<SumOfSquares, keep, IntegerSumOfSquares, keep_integer>)
        .error(kSums)
        .skips_empty_operands(),
    Evaluator("ReduceLogSum")
        .evaluate(reduce<Sum, logarithm, IntegerSum, logarithm_integer>)
        .error(Rounding::composite(terms_of_reduction))
        .skips_empty_operands(),
    Evaluator("ReduceLogSumExp")
        .evaluate(reduce_log_sum_exp)
        .error(Rounding::composite(terms_of_reduction).with_amplitude())
        .skips_empty_operands(),
    Evaluator("ReduceMax")
        .evaluate(reduce_extreme<Largest, IntegerLargest, UnsignedLargest, true>)
        .error(Rounding::exact())
        .skips_empty_operands(),
    Evaluator("ReduceMin")
        .evaluate(reduce_extreme<Smallest, IntegerSmallest, UnsignedSmallest, false>)
        .error(Rounding::exact())
        .skips_empty_operands(),
    Evaluator("ArgMax").evaluate(arg_extreme<true>).error(Rounding::selects()),
    Evaluator("ArgMin").evaluate(arg_extreme<false>).error(Rounding::selects()),
    Evaluator("CumSum").evaluate(cumulative<Sum, IntegerSum>).error(Rounding::accumulates(terms_along_axis)),
    Evaluator("CumProd").evaluate(cumulative<Product, IntegerProduct>).error(Rounding::accumulates(terms_along_axis)),
};

}  // namespace
}  // namespace tensorlint::runtime
