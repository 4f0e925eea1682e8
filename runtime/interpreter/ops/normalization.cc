// Normalisations. Source: ONNX BatchNormalization (1, 6, 7, 9, 14, 15), InstanceNormalization (1, 6, 22),
// LayerNormalization (17), RMSNormalization (23), GroupNormalization (18, 21), LpNormalization (1, 22), LRN (1, 13),
// MeanVarianceNormalization (9, 13). Statistics are those of the population, in float64 and in two passes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/interpreter/axes.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/function_loops.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"
#include "runtime/values/offsets.h"
#include "runtime/values/parallel.h"

namespace tensorlint::runtime {
namespace {

/// Sums of up to kRow numbers in eight lanes, the same on every processor.
template <typename Term>
double sum_of(const double* row, std::size_t count, const Term& term) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(row[i + lane]);
  for (; i < count; ++i) lanes[0] += term(row[i]);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/// Calls use(row, count) for elements [first, first + count), a row at a time.
template <typename Use>
void for_each_normalised_row(const HostTensor& tensor, std::size_t first, std::size_t count, const Use& use) {
  std::array<double, kRow> row;
  for (std::size_t done = 0; done < count; done += kRow) {
    const std::size_t length = std::min(kRow, count - done);
    load(tensor, first + done, length, row.data());
    use(row.data(), length, first + done);
  }
}

constexpr std::size_t kElementsWorthThread = std::size_t{1} << 17;  // elements

struct Statistics {
  double mean = 0, variance = 0;
};

Statistics statistics_of(const HostTensor& data, std::size_t first, std::size_t count) {
  Statistics result;
  for_each_normalised_row(data, first, count, [&](const double* row, std::size_t length, std::size_t) {
    result.mean += sum_of(row, length, [](double x) { return x; });
  });
  result.mean /= static_cast<double>(count);
  for_each_normalised_row(data, first, count, [&](const double* row, std::size_t length, std::size_t) {
    result.variance += sum_of(row, length, [&](double x) { return (x - result.mean) * (x - result.mean); });
  });
  result.variance /= static_cast<double>(count);
  return result;
}

struct ScaleFunction {
  static constexpr bool kIsVector = true;
  double mean, factor, bias;
  double value(double x) const { return (x - mean) * factor + bias; }
};

/// result = (data - mean) * factor + bias on a range.
void scale_range(const HostTensor& data, HostTensor& result, std::size_t first, std::size_t count, double mean,
                 double factor, double bias) {
  const ScaleFunction scale{mean, factor, bias};
  if (data.dtype() == DType::kFloat32 && result.dtype() == DType::kFloat32) {
    static const auto loop = FunctionLoop<ScaleFunction, float>::best();
    return loop(scale, data.as<float>().data() + first, result.as_mutable<float>().data() + first, count);
  }
  for_each_normalised_row(data, first, count, [&](double* row, std::size_t length, std::size_t at) {
    for (std::size_t i = 0; i < length; ++i) row[i] = scale.value(row[i]);
    store(result, at, length, row);
  });
}

/// The variance may also be computed in one pass, as E[x^2] - E[x]^2 (onnxruntime's LayerNormalization, and ONNX's
/// function of it): by this much more is its error than that of the squares.
double cancellation_of(const Statistics& s, double epsilon) {
  return (s.variance + s.mean * s.mean) / (s.variance + epsilon);
}

/// Of (x - mean) * factor + bias, whose factor has an error of `cancellation` roundings.
double amplitude_of(double x, double mean, double factor, double bias, double cancellation) {
  return std::fabs(factor) * (std::fabs(x) + std::fabs(mean) + std::fabs(x - mean) * cancellation) + std::fabs(bias);
}

/// scale_range, or its amplitudes.
void normalise_range(Evaluation& e, std::size_t first, std::size_t count, const Statistics& s, double scale,
                     double bias, double epsilon, double cancellation) {
  const double factor = scale / std::sqrt(s.variance + epsilon);
  if (!e.asks_amplitude()) return scale_range(e.operand(0), e.result(), first, count, s.mean, factor, bias);
  for_each_normalised_row(e.operand(0), first, count, [&](double* row, std::size_t length, std::size_t at) {
    for (std::size_t i = 0; i < length; ++i) row[i] = amplitude_of(row[i], s.mean, factor, bias, cancellation);
    store(e.result(), at, length, row);
  });
}

/// [N, C, rest]; a list has one channel.
struct Channels {
  std::size_t batch = 1, channels = 1, rest = 1;
};

Channels channels_of(const HostTensor& data) {
  Channels result;
  for (std::size_t axis = 0; axis < data.rank(); ++axis)
    (axis == 0   ? result.batch
     : axis == 1 ? result.channels
                 : result.rest) *= static_cast<std::size_t>(data.extent(axis));
  return result;
}

/// Statistics over the batch and, unless `by_position`, over the positions of each channel.
List<Statistics> batch_statistics(const HostTensor& data, const Channels& c, bool by_position, Memory& memory) {
  const std::size_t parameters = by_position ? c.channels * c.rest : c.channels;
  List<Statistics> result(parameters, memory.resource());
  const auto count = static_cast<double>(by_position ? c.batch : c.batch * c.rest);
  const auto accumulate = [&](const auto& add) {
    if (data.size() == 0) return;
    for (std::size_t n = 0; n < c.batch; ++n)
      for (std::size_t channel = 0; channel < c.channels; ++channel)
        for_each_normalised_row(data, (n * c.channels + channel) * c.rest, c.rest,
                                [&](const double* row, std::size_t length, std::size_t at) {
                                  if (!by_position) return add(result[channel], row, length);
                                  for (std::size_t i = 0; i < length; ++i)
                                    add(result[(at + i) % (c.channels * c.rest)], row + i, std::size_t{1});
                                });
  };
  accumulate([](Statistics& s, const double* row, std::size_t length) {
    s.mean += sum_of(row, length, [](double x) { return x; });
  });
  for (Statistics& s : result) s.mean /= count;
  accumulate([](Statistics& s, const double* row, std::size_t length) {
    s.variance += sum_of(row, length, [&](double x) { return (x - s.mean) * (x - s.mean); });
  });
  for (Statistics& s : result) s.variance /= count;
  return result;
}

/// Opset 14 says with training_mode whether statistics are the batch's; before, is_test did (until 6) or asking for
/// more results than one (until 13).
bool uses_batch_statistics(Evaluation& e) {
  if (e.opset() >= 14) return e.in().int_attribute("training_mode", 0) != 0;
  if (e.opset() < 7) return e.in().int_attribute("is_test", 0) == 0;
  return e.result_count() > 1;
}

/// Results after the first: running mean and variance, and before opset 14 those of the batch.
void store_statistics(Evaluation& e, const List<Statistics>& batch, const std::vector<double>& means,
                      const std::vector<double>& variances) {
  const double momentum = e.in().float_attribute("momentum", 0.9);
  for (int result = 1; e.wants(result) && result <= 4; ++result) {
    HostTensor& to = e.result(result);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const bool is_mean = result % 2 == 1;
      const double fresh = is_mean ? batch[i].mean : batch[i].variance, old = is_mean ? means[i] : variances[i];
      const double value = result <= 2 ? old * momentum + fresh * (1 - momentum) : fresh;
      store(to, i, 1, &value);
    }
  }
}

void batch_normalization(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  e.result();
  const Channels c = channels_of(data);
  const bool by_position = e.opset() < 9 && e.in().int_attribute("spatial", 1) == 0;
  const std::vector<double> scales = e.numbers(1), biases = e.numbers(2);
  std::vector<double> means = e.numbers(3), variances = e.numbers(4);
  const std::size_t parameters = c.channels * (by_position ? c.rest : 1);
  for (const std::size_t given : {scales.size(), biases.size(), means.size(), variances.size()})
    if (given != parameters) e.fail("scale, bias and statistics have {} elements, {} needed", given, parameters);
  if (uses_batch_statistics(e)) {
    const List<Statistics> batch = batch_statistics(data, c, by_position, e.memory());
    store_statistics(e, batch, means, variances);
    for (std::size_t i = 0; i < batch.size(); ++i) means[i] = batch[i].mean, variances[i] = batch[i].variance;
  }
  if (data.size() == 0) return;
  const double epsilon = e.in().float_attribute("epsilon", 1e-5);
  const bool in_training = uses_batch_statistics(e);
  const auto normalise = [&](std::size_t first, std::size_t count, std::size_t at) {
    const Statistics s{means[at], variances[at]};
    normalise_range(e, first, count, s, scales[at], biases[at], epsilon, in_training ? cancellation_of(s, epsilon) : 0);
  };
  const auto planes = static_cast<std::int64_t>(c.batch * c.channels);
  const auto part = static_cast<std::int64_t>(kElementsWorthThread / std::max<std::size_t>(c.rest, 1) + 1);
  parallel_ranges(planes, part, [&](std::int64_t from, std::int64_t end) {
    for (auto plane = static_cast<std::size_t>(from); plane < static_cast<std::size_t>(end); ++plane) {
      const std::size_t channel = plane % c.channels, first = plane * c.rest;
      if (!by_position) {
        normalise(first, c.rest, channel);
        continue;
      }
      for (std::size_t i = 0; i < c.rest; ++i) {
        normalise(first + i, 1, channel * c.rest + i);
      }
    }
  });
}

void instance_normalization(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  e.result();
  const Channels c = channels_of(data);
  const std::vector<double> scales = e.numbers(1), biases = e.numbers(2);
  const double epsilon = e.in().float_attribute("epsilon", 1e-5);
  for (std::size_t i = 0; i < c.batch * c.channels; ++i) {
    const Statistics s = statistics_of(data, i * c.rest, c.rest);
    const std::size_t channel = i % c.channels;
    normalise_range(e, i * c.rest, c.rest, s, scales[channel], biases[channel], epsilon, cancellation_of(s, epsilon));
  }
}

/// Opset 18 scales groups, later ones channels.
void group_normalization(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  e.result();
  const Channels c = channels_of(data);
  const auto groups = static_cast<std::size_t>(e.in().int_attribute("num_groups", 1));
  const std::vector<double> scales = e.numbers(1), biases = e.numbers(2);
  const double epsilon = e.in().float_attribute("epsilon", 1e-5);
  const std::size_t group_channels = c.channels / groups, parameters = e.opset() < 21 ? groups : c.channels;
  for (const std::size_t given : {scales.size(), biases.size()})
    if (given != parameters) e.fail("scale and bias have {} elements, {} needed", given, parameters);
  for (std::size_t i = 0; i < c.batch * groups; ++i) {
    const Statistics s = statistics_of(data, i * group_channels * c.rest, group_channels * c.rest);
    for (std::size_t j = 0; j < group_channels; ++j) {
      const std::size_t group = i % groups, parameter = e.opset() < 21 ? group : group * group_channels + j;
      normalise_range(e, (i * group_channels + j) * c.rest, c.rest, s, scales[parameter], biases[parameter], epsilon,
                      cancellation_of(s, epsilon));
    }
  }
}

/// Scale or bias of a normalisation over the last axes, as one number an element of them or of the whole data.
struct Parameter {
  List<double> numbers;
  bool by_row = true;  ///< the same for every row

  Parameter(Evaluation& e, int operand, const HostTensor& data, std::size_t row) : numbers(e.memory().resource()) {
    if (!e.has(operand)) return;
    const HostTensor& tensor = e.operand(operand);
    const std::vector<double> given = e.numbers(operand);
    const std::vector<std::int64_t> strides = broadcast_strides(tensor.extents(), data.extents());
    std::size_t inner = 1, axis = data.rank();
    while (axis > 0 && inner < row) inner *= static_cast<std::size_t>(data.extent(--axis));
    by_row = std::all_of(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(axis),
                         [](std::int64_t stride) { return stride == 0; });
    const std::size_t begin = by_row ? axis : 0;
    Offsets<1> at(std::span(data.extents()).subspan(begin));
    at.strides(0, std::span(strides).subspan(begin));
    if (at.is_empty()) return;
    numbers.reserve(element_count(std::span(data.extents()).subspan(begin)));
    do {
      numbers.push_back(given[static_cast<std::size_t>(at[0])]);
    } while (at.next());
  }
  const double* row(std::size_t first) const {
    return numbers.empty() ? nullptr : numbers.data() + (by_row ? 0 : first);
  }
};

std::size_t last_axes(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  std::int64_t axis = e.in().int_attribute("axis", -1);
  if (axis < 0) axis += static_cast<std::int64_t>(data.rank());
  std::size_t row = 1;
  for (auto i = static_cast<std::size_t>(axis); i < data.rank(); ++i) row *= static_cast<std::size_t>(data.extent(i));
  return row;
}

double terms_of_last_axes(Evaluation& e) { return static_cast<double>(last_axes(e)); }

double terms_of_batch(Evaluation& e) {
  const Channels c = channels_of(e.operand(0));
  return uses_batch_statistics(e) ? static_cast<double>(c.batch * c.rest) : 1;
}

double terms_of_instance(Evaluation& e) { return static_cast<double>(channels_of(e.operand(0)).rest); }

double terms_of_group(Evaluation& e) {
  const Channels c = channels_of(e.operand(0));
  return static_cast<double>(c.channels * c.rest) / static_cast<double>(e.in().int_attribute("num_groups", 1));
}

/// Normalises the axes from `axis` on; with `centres` less their mean.
void normalise_last_axes(Evaluation& e, bool centres) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  const std::size_t row = last_axes(e);
  if (data.size() == 0) {  // statistics of rows without elements
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    for (int index = 1; centres && index <= 2 && e.wants(index); ++index)
      for (std::size_t i = 0; i < e.result(index).size(); ++i) store(e.result(index), i, 1, &kNone);
    return;
  }
  const Parameter scale(e, 1, data, row), bias(e, centres ? 2 : -1, data, row);
  const double epsilon = e.in().float_attribute("epsilon", 1e-5);
  List<double> elements(row, e.memory().resource());
  for (std::size_t first = 0, at = 0; first < data.size(); first += row, ++at) {
    load(data, first, row, elements.data());
    const double mean =
        centres ? sum_of(elements.data(), row, [](double x) { return x; }) / static_cast<double>(row) : 0;
    for (double& x : elements) x -= mean;
    const double variance = sum_of(elements.data(), row, [](double x) { return x * x; }) / static_cast<double>(row);
    const double factor = 1 / std::sqrt(variance + epsilon);
    if (e.asks_amplitude()) {
      const double cancellation = cancellation_of({mean, variance}, epsilon);
      const double magnitude = sum_of(elements.data(), row, [&](double x) { return std::fabs(x + mean); });
      const double mean_amplitude = magnitude / static_cast<double>(row), factor_amplitude = factor * cancellation;
      if (centres && e.wants(1)) store(e.result(1), at, 1, &mean_amplitude);
      if (centres && e.wants(2)) store(e.result(2), at, 1, &factor_amplitude);
      for (double& x : elements) x = amplitude_of(x + mean, mean, factor, 0, cancellation);
      if (const double* const factors = scale.row(first))
        for (std::size_t i = 0; i < row; ++i) elements[i] *= std::fabs(factors[i]);
      if (const double* const addends = bias.row(first))
        for (std::size_t i = 0; i < row; ++i) elements[i] += std::fabs(addends[i]);
      store(result, first, row, elements.data());
      continue;
    }
    if (centres && e.wants(1)) store(e.result(1), at, 1, &mean);
    if (centres && e.wants(2)) store(e.result(2), at, 1, &factor);
    for (double& x : elements) x *= factor;
    if (const double* const factors = scale.row(first))
      for (std::size_t i = 0; i < row; ++i) elements[i] *= factors[i];
    if (const double* const addends = bias.row(first))
      for (std::size_t i = 0; i < row; ++i) elements[i] += addends[i];
    store(result, first, row, elements.data());
  }
}

void layer_normalization(Evaluation& e) { normalise_last_axes(e, true); }
void rms_normalization(Evaluation& e) { normalise_last_axes(e, false); }

/// Vectors of norm 0 stay 0, as in runtimes.
void lp_normalization(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  if (data.size() == 0) return;
  const AxisSplit shape = split_at(data.extents(), axis_attribute(e, -1, data.rank()));
  const bool squares = e.in().int_attribute("p", 2) == 2;
  std::array<double, kRow> row, norms;
  for (std::size_t o = 0; o < shape.outer; ++o) {
    for (std::size_t first = 0; first < shape.inner; first += kRow) {
      const std::size_t count = std::min(kRow, shape.inner - first);
      norms.fill(0);
      const auto at = [&](std::size_t k) { return (o * shape.extent + k) * shape.inner + first; };
      for (std::size_t k = 0; k < shape.extent; ++k) {
        load(data, at(k), count, row.data());
        for (std::size_t i = 0; i < count; ++i) norms[i] += squares ? row[i] * row[i] : std::fabs(row[i]);
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (squares) norms[i] = std::sqrt(norms[i]);
        if (norms[i] == 0) norms[i] = 1;
      }
      for (std::size_t k = 0; k < shape.extent; ++k) {
        load(data, at(k), count, row.data());
        for (std::size_t i = 0; i < count; ++i) row[i] /= norms[i];
        store(result, at(k), count, row.data());
      }
    }
  }
}

/// x / (bias + alpha / size * sum of squares of the channels around)^beta.
void lrn(Evaluation& e) {
  const HostTensor& data = e.operand(0);
  HostTensor& result = e.result();
  const Channels c = channels_of(data);
  const auto size = static_cast<std::size_t>(e.in().int_attribute("size", 1));
  const double alpha = e.in().float_attribute("alpha", 1e-4), beta = e.in().float_attribute("beta", 0.75);
  const double bias = e.in().float_attribute("bias", 1);
  std::array<double, kRow> row, sums, all;
  for (std::size_t n = 0; n < c.batch; ++n) {
    for (std::size_t channel = 0; channel < c.channels; ++channel) {
      const std::size_t before = (size - 1) / 2, low = channel > before ? channel - before : 0;
      const std::size_t high = std::min(c.channels, channel + size / 2 + 1);
      for (std::size_t first = 0; first < c.rest; first += kRow) {
        const std::size_t count = std::min(kRow, c.rest - first);
        const auto at = [&](std::size_t k) { return (n * c.channels + k) * c.rest + first; };
        const auto add_squares = [&](std::array<double, kRow>& to, std::size_t from, std::size_t end) {
          to.fill(0);
          for (std::size_t k = from; k < end; ++k) {
            load(data, at(k), count, row.data());
            for (std::size_t i = 0; i < count; ++i) to[i] += row[i] * row[i];
          }
        };
        add_squares(sums, low, high);
        if (e.asks_amplitude()) add_squares(all, 0, c.channels);
        load(data, at(channel), count, row.data());
        for (std::size_t i = 0; i < count; ++i) {
          const double base = bias + alpha / static_cast<double>(size) * sums[i];
          // The usual exponent without its logarithm.
          row[i] /= beta == 0.75 ? std::sqrt(base) * std::sqrt(std::sqrt(base)) : std::pow(base, beta);
          // Engines that slide the window over the channels carry the roundings of all that it has left.
          if (e.asks_amplitude())
            row[i] = std::fabs(row[i]) * (1 + beta * alpha / static_cast<double>(size) * all[i] / base);
        }
        store(result, at(channel), count, row.data());
      }
    }
  }
}

const RegisterEvaluators kNormalizations{
    Evaluator("BatchNormalization")
        .evaluate(batch_normalization)
        .error(Rounding::composite(terms_of_batch).with_amplitude())
        .skips_empty_operands(),
    Evaluator("InstanceNormalization")
        .evaluate(instance_normalization)
        .error(Rounding::composite(terms_of_instance).with_amplitude()),
    Evaluator("GroupNormalization")
        .evaluate(group_normalization)
        .error(Rounding::composite(terms_of_group).with_amplitude()),
    Evaluator("LayerNormalization")
        .evaluate(layer_normalization)
        .error(Rounding::composite(terms_of_last_axes).with_amplitude()),
    Evaluator("RMSNormalization")
        .evaluate(rms_normalization)
        .error(Rounding::composite(terms_of_last_axes).with_amplitude()),
    Evaluator("LpNormalization").evaluate(lp_normalization).error(Rounding::composite()),
    Evaluator("LRN").evaluate(lrn).error(Rounding::composite().with_amplitude()),
};

}  // namespace
}  // namespace tensorlint::runtime
