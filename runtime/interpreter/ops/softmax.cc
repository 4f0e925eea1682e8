// Normalisations along an axis to probabilities. Source: ONNX Softmax, LogSoftmax, Hardmax (1, 11, 13). Until opset 12
// the axes from `axis` on are normalised together.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/element_functions.h"
#include "runtime/interpreter/ops/function_loops.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

AxisSplit normalised(Evaluation& e) {
  const Extents& extents = e.operand(0).extents();
  if (extents.empty()) return {};
  if (e.opset() >= 13) return split_at(extents, axis_attribute(e, -1, extents.size()));
  const std::size_t axis = axis_attribute(e, 1, extents.size());
  AxisSplit shape;
  for (std::size_t i = 0; i < extents.size(); ++i)
    (i < axis ? shape.outer : shape.extent) *= static_cast<std::size_t>(extents[i]);
  return shape;
}

/// Runs `normalise(elements, extent, lanes)` on blocks [extent][lanes], of `lanes` neighbours along the inner axes.
template <typename Normalise>
void for_each_block(Evaluation& e, const Normalise& normalise) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result_over({0});
  if (data.size() == 0) return;
  const AxisSplit shape = normalised(e);
  // About 256 KiB, so that a block stays in the second cache.
  const std::size_t lanes =
      std::clamp<std::size_t>((std::size_t{1} << 15) / shape.extent, 1, std::min(kRow, shape.inner));
  List<double> block(shape.extent * lanes, e.memory().resource());
  for (std::size_t o = 0; o < shape.outer; ++o) {
    for (std::size_t first = 0; first < shape.inner; first += lanes) {
      const std::size_t count = std::min(lanes, shape.inner - first);
      const std::size_t begin = o * shape.extent * shape.inner + first;
      const bool whole = shape.inner == 1;
      if (whole) {
        load(data, begin, shape.extent, block.data());
      } else {
        for (std::size_t k = 0; k < shape.extent; ++k)
          load(data, begin + k * shape.inner, count, block.data() + k * count);
      }
      normalise(block.data(), shape.extent, count);
      if (whole) {
        store(result, begin, shape.extent, block.data());
      } else {
        for (std::size_t k = 0; k < shape.extent; ++k)
          store(result, begin + k * shape.inner, count, block.data() + k * count);
      }
    }
  }
}

/// The larger of two; NaN wins. Without a branch, for vectors.
double larger(double best, double x) {
  const bool is_larger = x > best, is_nan = x != x;
  return (is_larger | is_nan) ? x : best;
}

constexpr std::size_t kSide = 8;  // parts of a single lane that run side by side, on every processor alike

/// fold(a, b) over a row.
template <typename Fold>
double fold_row(const double* row, std::size_t count, double start, const Fold& fold) {
  std::array<double, kSide> parts;
  parts.fill(start);
  std::size_t i = 0;
  for (; i + kSide <= count; i += kSide)
    for (std::size_t part = 0; part < kSide; ++part) parts[part] = fold(parts[part], row[i + part]);
  for (; i < count; ++i) parts[0] = fold(parts[0], row[i]);
  for (std::size_t part = 1; part < kSide; ++part) parts[0] = fold(parts[0], parts[part]);
  return parts[0];
}

/// The largest of each lane.
void largest(const double* block, std::size_t extent, std::size_t lanes, double* best) {
  if (lanes == 1) {
    best[0] = fold_row(block, extent, block[0], larger);
    return;
  }
  std::copy_n(block, lanes, best);
  for (std::size_t k = 1; k < extent; ++k)
    for (std::size_t i = 0; i < lanes; ++i) best[i] = larger(best[i], block[k * lanes + i]);
}

/// Subtracts the largest of each lane and sums the exponentials, which replace the elements if `keep`.
void exponentials(double* block, std::size_t extent, std::size_t lanes, double* sums, bool keep) {
  static const auto powers_of = FunctionLoop<ExpFunction, double>::best();
  std::array<double, kRow> best, powers;
  largest(block, extent, lanes, best.data());
  if (lanes == 1) {
    for (std::size_t k = 0; k < extent; ++k) block[k] -= best[0];
  } else {
    for (std::size_t k = 0; k < extent; ++k)
      for (std::size_t i = 0; i < lanes; ++i) block[k * lanes + i] -= best[i];
  }
  std::fill_n(sums, lanes, 0.0);
  for (std::size_t first = 0; first < extent * lanes; first += kRow) {
    const std::size_t count = std::min(kRow, extent * lanes - first);
    double* const to = keep ? block + first : powers.data();
    powers_of(ExpFunction{}, block + first, to, count);
    if (lanes == 1) {
      sums[0] += fold_row(to, count, 0.0, [](double sum, double x) { return sum + x; });
    } else {
      for (std::size_t i = 0, lane = first % lanes; i < count; ++i, lane = lane + 1 == lanes ? 0 : lane + 1)
        sums[lane] += to[i];
    }
  }
}

double terms_of_softmax(Evaluation& e) { return static_cast<double>(normalised(e).extent); }

/// Each lane's `powers`, their sum and its elements less the largest, as `amplitude(x, power, sum, spread)`: a step
/// rounds x, which an exponential makes relative; `spread` is what that does to the sum, relative to it.
template <typename Amplitude>
void softmax_amplitudes(Evaluation& e, const Amplitude& amplitude) {
  for_each_block(e, [&](double* block, std::size_t extent, std::size_t lanes) {
    std::array<double, kRow> best;
    largest(block, extent, lanes, best.data());
    for (std::size_t i = 0; i < lanes; ++i) {
      double sum = 0, spread = 0;
      for (std::size_t k = 0; k < extent; ++k) {
        double& x = block[k * lanes + i];
        x -= best[i];
        const double power = std::exp(x);
        sum += power;
        if (power > 0) spread -= x * power;
      }
      for (std::size_t k = 0; k < extent; ++k) {
        double& x = block[k * lanes + i];
        x = amplitude(-x, std::exp(x), sum, spread / sum);
      }
    }
  });
}

void softmax(Evaluation& e) {
  if (e.asks_amplitude())
    return softmax_amplitudes(e, [](double x, double power, double sum, double spread) {
      return power > 0 ? power / sum * (1 + x + spread) : 0;
    });
  for_each_block(e, [](double* block, std::size_t extent, std::size_t lanes) {
    std::array<double, kRow> sums;
    exponentials(block, extent, lanes, sums.data(), true);
    for (std::size_t i = 0; i < lanes; ++i) sums[i] = 1 / sums[i];
    if (lanes == 1) {
      for (std::size_t k = 0; k < extent; ++k) block[k] *= sums[0];
    } else {
      for (std::size_t k = 0; k < extent; ++k)
        for (std::size_t i = 0; i < lanes; ++i) block[k * lanes + i] *= sums[i];
    }
  });
}

void log_softmax(Evaluation& e) {
  if (e.asks_amplitude())
    return softmax_amplitudes(
        e, [](double x, double /*power*/, double sum, double spread) { return 1 + x + std::log(sum) + spread; });
  for_each_block(e, [](double* block, std::size_t extent, std::size_t lanes) {
    std::array<double, kRow> sums;
    exponentials(block, extent, lanes, sums.data(), false);
    for (std::size_t i = 0; i < lanes; ++i) sums[i] = std::log(sums[i]);
    for (std::size_t k = 0; k < extent; ++k)
      for (std::size_t i = 0; i < lanes; ++i) block[k * lanes + i] -= sums[i];
  });
}

/// 1 at the first largest element, 0 elsewhere.
void hardmax(Evaluation& e) {
  for_each_block(e, [](double* block, std::size_t extent, std::size_t lanes) {
    for (std::size_t i = 0; i < lanes; ++i) {
      std::size_t best = 0;
      for (std::size_t k = 1; k < extent; ++k) {
        const double x = block[k * lanes + i], most = block[best * lanes + i];
        if (x > most || (std::isnan(x) && !std::isnan(most))) best = k;
      }
      for (std::size_t k = 0; k < extent; ++k) block[k * lanes + i] = k == best ? 1 : 0;
    }
  });
}

const RegisterEvaluators kSoftmaxes{
    Evaluator("Softmax").evaluate(softmax).error(Rounding::composite(terms_of_softmax).with_amplitude()),
    Evaluator("LogSoftmax").evaluate(log_softmax).error(Rounding::composite(terms_of_softmax).with_amplitude()),
    Evaluator("Hardmax").evaluate(hardmax).error(Rounding::exact().with_jumps()),
};

}  // namespace
}  // namespace tensorlint::runtime
