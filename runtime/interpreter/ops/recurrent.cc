// Recurrent layers. Source: ONNX RNN (1, 7, 14, 22), GRU (1, 3, 7, 14, 22), LSTM (1, 7, 14, 22). `clip` bounds what
// activations get; steps beyond a sequence's length keep its state and give zeros. The last state of a sequence without
// steps, which ONNX leaves open, is 0, as onnxruntime has it.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/letters.h"
#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/element_functions.h"
#include "runtime/interpreter/ops/function_loops.h"
#include "runtime/interpreter/products.h"
#include "runtime/values/codec.h"

namespace tensorlint::runtime {
namespace {

/// An activation with its parameters.
struct Activation {
  enum class Kind : std::uint8_t {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  };
  Kind kind = Kind::kTanh;
  double alpha = 0, beta = 0;

  void apply(double* row, std::size_t count) const;
};

template <typename Function>
void each(double* row, std::size_t count, const Function& function) {
  for (std::size_t i = 0; i < count; ++i) row[i] = function(row[i]);
}

template <typename Function>
void vector_loop(double* row, std::size_t count) {
  static const auto loop = FunctionLoop<Function, double>::best();
  loop(Function{}, row, row, count);
}

void Activation::apply(double* row, std::size_t count) const {
  const double a = alpha, b = beta;
  switch (kind) {
    case Kind::kRelu:
      return each(row, count, [](double x) { return x < 0 ? 0 : x; });
    case Kind::kTanh:
      return vector_loop<TanhFunction>(row, count);
    case Kind::kSigmoid:
      return vector_loop<SigmoidFunction>(row, count);
    case Kind::kAffine:
      return each(row, count, [=](double x) { return a * x + b; });
    case Kind::kLeakyRelu:
      return each(row, count, [=](double x) { return x >= 0 ? x : a * x; });
    case Kind::kThresholdedRelu:
      return each(row, count, [=](double x) { return x >= a ? x : 0; });
    case Kind::kScaledTanh:
      return each(row, count, [=](double x) { return a * std::tanh(b * x); });
    case Kind::kHardSigmoid:
      return each(row, count, [=](double x) { return std::clamp(a * x + b, 0.0, 1.0); });
    case Kind::kElu:
      return each(row, count, [=](double x) { return x >= 0 ? x : a * std::expm1(x); });
    case Kind::kSoftsign:
      return each(row, count, [](double x) { return x / (1 + std::fabs(x)); });
    case Kind::kSoftplus:
      return each(row, count, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); });
  }
}

struct KnownActivation {
  std::string_view name;
  Activation activation;  ///< with the default parameters: those of the operator of that name
  bool takes_alpha = false, takes_beta = false;
};

using Kind = Activation::Kind;
constexpr std::array kActivations{
    KnownActivation{"relu", {Kind::kRelu}},
    KnownActivation{"tanh", {Kind::kTanh}},
    KnownActivation{"sigmoid", {Kind::kSigmoid}},
    KnownActivation{"affine", {Kind::kAffine, 1, 0}, true, true},
    KnownActivation{"leakyrelu", {Kind::kLeakyRelu, 0.01}, true},
    KnownActivation{"thresholdedrelu", {Kind::kThresholdedRelu, 1}, true},
    KnownActivation{"scaledtanh", {Kind::kScaledTanh, 1, 1}, true, true},
    KnownActivation{"hardsigmoid", {Kind::kHardSigmoid, 0.2, 0.5}, true, true},
    KnownActivation{"elu", {Kind::kElu, 1}, true},
    KnownActivation{"softsign", {Kind::kSoftsign}},
    KnownActivation{"softplus", {Kind::kSoftplus}},
};

/// The activations of all directions. alpha and beta are lists that those which take one use up in order.
std::vector<Activation> read_activations(Evaluation& e, std::vector<std::string> names) {
  if (const Attribute* const given = e.in().attribute("activations")) {
    names.clear();
    for (const auto& name : given->strings) names.emplace_back(name);
  }
  std::vector<Activation> result;
  std::size_t alphas = 0, betas = 0;
  const auto parameter = [&](std::string_view name, std::size_t& used, double fallback) {
    const Attribute* const list = e.in().attribute(name);
    if (list == nullptr || used >= list->floats.size()) return fallback;
    return static_cast<double>(list->floats[used++]);
  };
  for (const std::string& name : names) {
    const auto known = std::ranges::find(kActivations, lower_case(name), &KnownActivation::name);
    if (known == kActivations.end()) e.fail("there is no activation {}", name);
    Activation activation = known->activation;
    if (known->takes_alpha) activation.alpha = parameter("activation_alpha", alphas, activation.alpha);
    if (known->takes_beta) activation.beta = parameter("activation_beta", betas, activation.beta);
    result.push_back(activation);
  }
  return result;
}

struct Layer {
  std::int64_t steps, batch, inputs, hidden, directions, gates;
  bool batch_first = false;
  std::vector<std::int64_t> lengths;  ///< one a sequence; none: all have all steps
  double clip = HUGE_VAL;
  std::vector<Activation> activations;  ///< of all directions
  std::int64_t length(std::int64_t sequence) const {
    return lengths.empty() ? steps : lengths[static_cast<std::size_t>(sequence)];
  }
  /// Where element 0 of (step, sequence) begins in data [.., .., width].
  std::int64_t at(std::int64_t step, std::int64_t sequence) const {
    return batch_first ? sequence * steps + step : step * batch + sequence;
  }
  /// Where the state of a direction and a sequence begins, in states.
  std::int64_t state_at(std::int64_t direction, std::int64_t sequence) const {
    return (batch_first ? sequence * directions + direction : direction * batch + sequence) * hidden;
  }
};

/// One direction: what it reads and where it is.
struct Direction {
  std::int64_t index = 0;
  bool is_reverse = false;
  /// The step of the data that a sequence sees at step `s` of the computation.
  std::int64_t step_of(const Layer& layer, std::int64_t s, std::int64_t sequence) const {
    return is_reverse ? layer.length(sequence) - 1 - s : s;
  }
};

Layer read_layer(Evaluation& e, std::int64_t gates, const std::vector<std::string>& default_activations) {
  const HostTensor &data = e.operand(0), &recurrence = e.operand(2);
  Layer layer;
  layer.batch_first = e.in().int_attribute("layout", 0) != 0;
  layer.steps = data.extent(layer.batch_first ? 1 : 0);
  layer.batch = data.extent(layer.batch_first ? 0 : 1);
  layer.inputs = data.extent(2);
  layer.directions = recurrence.extent(0);
  layer.hidden = recurrence.extent(2);
  layer.gates = gates;
  if (e.has(4)) layer.lengths = e.integers(4);
  for (const std::int64_t length : layer.lengths)
    if (length < 0 || length > layer.steps) e.fail("sequence length {} is outside 0 to {}", length, layer.steps);
  if (const double clip = e.in().float_attribute("clip", 0); clip > 0) layer.clip = clip;
  std::vector<std::string> names;
  for (std::int64_t d = 0; d < layer.directions; ++d)
    names.insert(names.end(), default_activations.begin(), default_activations.end());
  const std::size_t needed = names.size();
  layer.activations = read_activations(e, std::move(names));
  if (layer.activations.size() != needed)
    e.fail("{} activations are given, {} needed", layer.activations.size(), needed);
  return layer;
}

/// Rows of the data in the order of the computation, [steps * batch, inputs], from step `first` on.
class StepRows : public Factor {
 public:
  StepRows(const Numbers& data, const Layer& layer, const Direction& direction, std::int64_t first)
      : data_(data), layer_(layer), direction_(direction), first_(first) {}
  void pack(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, double* to,
            std::int64_t row_step, std::int64_t column_step) const override {
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t sequence = (row + i) % layer_.batch;
      const std::int64_t step = direction_.step_of(layer_, first_ + (row + i) / layer_.batch, sequence);
      const bool is_inside = step >= 0 && step < layer_.steps;  // else the sequence has ended
      const std::int64_t from = is_inside ? layer_.at(step, sequence) * layer_.inputs + column : 0;
      for (std::int64_t j = 0; j < columns; ++j)
        to[i * row_step + j * column_step] = is_inside ? data_[static_cast<std::size_t>(from + j)] : 0;
    }
  }

 private:
  const Numbers& data_;
  const Layer& layer_;
  const Direction& direction_;
  std::int64_t first_;
};

/// What a cell keeps from step to step, [batch, hidden] each.
struct State {
  List<double> hidden, cell;
};

/// Operand 1 or 2: the weights of data or state, whose rows have `width` elements.
struct Weights {
  Weights(Evaluation& e, int index) : width(e.operand(index).extent(2)), numbers(e, index) {}
  std::int64_t width;
  OperandNumbers numbers;
};

/// Weights of one direction, rows `first` to `first + rows` of its gates.
ConstantCache::Weights packed_gates(Evaluation& e, Weights& weights, const Layer& layer, const Direction& direction,
                                    std::int64_t first, std::int64_t rows) {
  const std::int64_t width = weights.width, begin = (direction.index * layer.gates * layer.hidden + first) * width;
  ConstantCache::Weights packed = e.kept_packed(weights.numbers.index(), begin);
  if (packed != nullptr) return packed;
  with_elements(weights.numbers.get(), [&](const auto* elements) {
    const DenseFactor factor(elements + begin, 1, width);
    packed = e.keep_packed(weights.numbers.index(), begin, factor, width, rows);
    if (packed != nullptr) return;
    weights.numbers.keep();
    packed = std::make_shared<const PackedFactor>(factor, width, rows, e.memory());
  });
  return packed;
}

/// to [batch, stride] += a [batch, hidden] times the packed gates.
void add_product(const Layer& layer, const List<double>& a, const PackedFactor& gates, double* to,
                 std::int64_t stride) {
  gemm(layer.batch, DenseFactor(a.data(), layer.hidden, 1), gates, [&](const ProductTile& tile) {
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      double* const row = to + (tile.row + i) * stride + tile.column;
      const double* const sums = tile.elements + i * tile.stride;
      for (std::int64_t j = 0; j < tile.columns; ++j) row[j] += sums[j];
    }
  });
}

void activate(const Layer& layer, const Activation& activation, double* row, std::int64_t count) {
  if (layer.clip != HUGE_VAL)
    for (std::int64_t i = 0; i < count; ++i) row[i] = std::clamp(row[i], -layer.clip, layer.clip);
  activation.apply(row, static_cast<std::size_t>(count));
}

List<double> initial_state(Evaluation& e, int operand, const Layer& layer, const Direction& direction) {
  List<double> state(static_cast<std::size_t>(layer.batch * layer.hidden), 0.0, e.memory().resource());
  if (!e.has(operand)) return state;
  for (std::int64_t b = 0; b < layer.batch; ++b)
    if (layer.length(b) > 0)
      load(e.operand(operand), static_cast<std::size_t>(layer.state_at(direction.index, b)),
           static_cast<std::size_t>(layer.hidden), state.data() + b * layer.hidden);
  return state;
}

void store_state(Evaluation& e, int result, const Layer& layer, const Direction& direction, const List<double>& state) {
  if (!e.wants(result)) return;
  for (std::int64_t b = 0; b < layer.batch; ++b)
    store(e.result(result), static_cast<std::size_t>(layer.state_at(direction.index, b)),
          static_cast<std::size_t>(layer.hidden), state.data() + b * layer.hidden);
}

/// The row of the first result that belongs to a step of the data.
void store_step(Evaluation& e, const Layer& layer, const Direction& direction, std::int64_t step, std::int64_t sequence,
                const double* hidden) {
  if (!e.wants(0)) return;
  const std::int64_t row = layer.batch_first ? (sequence * layer.steps + step) * layer.directions + direction.index
                                             : (step * layer.directions + direction.index) * layer.batch + sequence;
  store(e.result(0), static_cast<std::size_t>(row * layer.hidden), static_cast<std::size_t>(layer.hidden), hidden);
}

/// Both biases of a direction; where `joined`, as one.
List<double> biases(Evaluation& e, const Layer& layer, const Direction& direction) {
  const std::int64_t count = layer.gates * layer.hidden;
  List<double> result(static_cast<std::size_t>(2 * count), 0.0, e.memory().resource());
  if (e.has(3)) load(e.operand(3), static_cast<std::size_t>(direction.index * 2 * count), result.size(), result.data());
  return result;
}

/// Runs one direction. step(inputs, state, next): `inputs` [batch, gates * hidden] are the products of data and
/// weights; `next` gets the state after the step.
template <typename Step>
void run_direction(Evaluation& e, const Layer& layer, const Direction& direction, const Numbers& data, Weights& weights,
                   const Step& step) {
  const std::int64_t width = layer.gates * layer.hidden;
  const ConstantCache::Weights gates = packed_gates(e, weights, layer, direction, 0, width);
  std::pmr::memory_resource* const counted = e.memory().resource();
  State state{initial_state(e, 5, layer, direction),
              layer.gates == 4 ? initial_state(e, 6, layer, direction) : List<double>(counted)};
  // Inputs of several steps at once, in at most 8 MiB or so.
  const std::int64_t chunk =
      std::clamp<std::int64_t>((std::int64_t{1} << 20) / std::max<std::int64_t>(layer.batch * width, 1), 1,
                               std::max<std::int64_t>(layer.steps, 1));
  List<double> inputs(static_cast<std::size_t>(chunk * layer.batch * width), counted);
  const List<double> zeros(static_cast<std::size_t>(layer.hidden), 0.0, counted);
  State next{List<double>(state.hidden, counted), List<double>(state.cell, counted)};
  for (std::int64_t first = 0; first < layer.steps; first += chunk) {
    const std::int64_t count = std::min(chunk, layer.steps - first);
    gemm(count * layer.batch, StepRows(data, layer, direction, first), *gates, [&](const ProductTile& tile) {
      for (std::int64_t i = 0; i < tile.rows; ++i)
        std::copy_n(tile.elements + i * tile.stride, tile.columns,
                    inputs.begin() + (tile.row + i) * width + tile.column);
    });
    for (std::int64_t s = first; s < first + count; ++s) {
      step(inputs.data() + (s - first) * layer.batch * width, state, next);
      for (std::int64_t b = 0; b < layer.batch; ++b) {
        if (s >= layer.length(b)) {
          // Ended: nothing changes, and steps that no data belong to give zeros.
          store_step(e, layer, direction, s, b, zeros.data());
          continue;
        }
        std::copy_n(next.hidden.begin() + b * layer.hidden, layer.hidden, state.hidden.begin() + b * layer.hidden);
        if (!state.cell.empty())
          std::copy_n(next.cell.begin() + b * layer.hidden, layer.hidden, state.cell.begin() + b * layer.hidden);
        store_step(e, layer, direction, direction.step_of(layer, s, b), b, state.hidden.data() + b * layer.hidden);
      }
    }
  }
  store_state(e, 1, layer, direction, state.hidden);
  if (layer.gates == 4) store_state(e, 2, layer, direction, state.cell);
}

Direction direction_of(Evaluation& e, std::int64_t index) {
  return {index, index == 1 || e.in().string_attribute("direction", "forward") == "reverse"};
}

/// H = f(inputs + H R^T + Wb + Rb).
void rnn(Evaluation& e) {
  const Layer layer = read_layer(e, 1, {"Tanh"});
  const Numbers data(e.operand(0), e.memory());
  Weights weights(e, 1), recurrence(e, 2);
  const std::int64_t h = layer.hidden;
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    const Direction direction = direction_of(e, d);
    const ConstantCache::Weights gates = packed_gates(e, recurrence, layer, direction, 0, h);
    const List<double> bias = biases(e, layer, direction);
    run_direction(e, layer, direction, data, weights, [&](double* inputs, const State& state, State& next) {
      add_product(layer, state.hidden, *gates, inputs, h);
      for (std::int64_t b = 0; b < layer.batch; ++b) {
        double* const row = inputs + b * h;
        for (std::int64_t i = 0; i < h; ++i)
          row[i] += bias[static_cast<std::size_t>(i)] + bias[static_cast<std::size_t>(h + i)];
        activate(layer, layer.activations[static_cast<std::size_t>(d)], row, h);
        std::copy_n(row, h, next.hidden.begin() + b * h);
      }
    });
  }
}

/// Gates z, r, h: H = (1 - z) h + z H. linear_before_reset says on which side of the product r is.
void gru(Evaluation& e) {
  const Layer layer = read_layer(e, 3, {"Sigmoid", "Tanh"});
  const Numbers data(e.operand(0), e.memory());
  Weights weights(e, 1), recurrence(e, 2);
  const bool linear_before_reset = e.in().int_attribute("linear_before_reset", 0) != 0;
  const std::int64_t h = layer.hidden;
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    const Direction direction = direction_of(e, d);
    const ConstantCache::Weights update_reset = packed_gates(e, recurrence, layer, direction, 0, 2 * h);
    const ConstantCache::Weights hidden = packed_gates(e, recurrence, layer, direction, 2 * h, h);
    const List<double> bias = biases(e, layer, direction);
    const double *const input_bias = bias.data(), *const state_bias = bias.data() + 3 * h;
    const Activation &f = layer.activations[static_cast<std::size_t>(2 * d)],
                     &g = layer.activations[static_cast<std::size_t>(2 * d + 1)];
    List<double> reset(static_cast<std::size_t>(layer.batch * h), e.memory().resource()),
        product(reset.size(), e.memory().resource());
    run_direction(e, layer, direction, data, weights, [&](double* inputs, const State& state, State& next) {
      add_product(layer, state.hidden, *update_reset, inputs, 3 * h);
      for (std::int64_t b = 0; b < layer.batch; ++b) {
        double* const row = inputs + b * 3 * h;
        for (std::int64_t i = 0; i < 2 * h; ++i) row[i] += input_bias[i] + state_bias[i];
        activate(layer, f, row, 2 * h);
        for (std::int64_t i = 0; i < h; ++i)
          reset[static_cast<std::size_t>(b * h + i)] =
              (linear_before_reset ? 1 : row[h + i]) * state.hidden[static_cast<std::size_t>(b * h + i)];
      }
      std::ranges::fill(product, 0.0);
      add_product(layer, reset, *hidden, product.data(), h);
      for (std::int64_t b = 0; b < layer.batch; ++b) {
        double* const row = inputs + b * 3 * h;
        for (std::int64_t i = 0; i < h; ++i) {
          const double recurrent = product[static_cast<std::size_t>(b * h + i)] + state_bias[2 * h + i];
          row[2 * h + i] += input_bias[2 * h + i] + (linear_before_reset ? row[h + i] * recurrent : recurrent);
        }
        activate(layer, g, row + 2 * h, h);
        for (std::int64_t i = 0; i < h; ++i) {
          const auto at = static_cast<std::size_t>(b * h + i);
          next.hidden[at] = (1 - row[i]) * row[2 * h + i] + row[i] * state.hidden[at];
        }
      }
    });
  }
}

/// Gates i, o, f, c: C = f C + i c, H = o h(C). Peepholes let gates see the cell: i and f the old one, o the new one.
void lstm(Evaluation& e) {
  const Layer layer = read_layer(e, 4, {"Sigmoid", "Tanh", "Tanh"});
  const Numbers data(e.operand(0), e.memory());
  Weights weights(e, 1), recurrence(e, 2);
  const bool couples = e.in().int_attribute("input_forget", 0) != 0;
  const std::int64_t h = layer.hidden;
  for (std::int64_t d = 0; d < layer.directions; ++d) {
    const Direction direction = direction_of(e, d);
    const ConstantCache::Weights gates = packed_gates(e, recurrence, layer, direction, 0, 4 * h);
    List<double> bias = biases(e, layer, direction),
                 peepholes(static_cast<std::size_t>(3 * h), 0.0, e.memory().resource());
    for (std::int64_t i = 0; i < 4 * h; ++i)
      bias[static_cast<std::size_t>(i)] += bias[static_cast<std::size_t>(4 * h + i)];
    if (e.has(7)) load(e.operand(7), static_cast<std::size_t>(d * 3 * h), peepholes.size(), peepholes.data());
    const double* const peep = peepholes.data();
    const Activation* const functions = layer.activations.data() + 3 * d;
    List<double> squashed(static_cast<std::size_t>(h), e.memory().resource());
    run_direction(e, layer, direction, data, weights, [&](double* inputs, const State& state, State& next) {
      add_product(layer, state.hidden, *gates, inputs, 4 * h);
      for (std::int64_t b = 0; b < layer.batch; ++b) {
        double* const row = inputs + b * 4 * h;
        const double* const old = state.cell.data() + b * h;
        double *const cell = next.cell.data() + b * h, *const hidden = next.hidden.data() + b * h;
        for (std::int64_t i = 0; i < 4 * h; ++i) row[i] += bias[static_cast<std::size_t>(i)];
        for (std::int64_t i = 0; i < h; ++i) {
          row[i] += peep[i] * old[i];
          row[2 * h + i] += peep[2 * h + i] * old[i];
        }
        activate(layer, functions[0], row, h);
        if (couples) {
          for (std::int64_t i = 0; i < h; ++i) row[2 * h + i] = 1 - row[i];
        } else {
          activate(layer, functions[0], row + 2 * h, h);
        }
        activate(layer, functions[1], row + 3 * h, h);
        for (std::int64_t i = 0; i < h; ++i) {
          cell[i] = row[2 * h + i] * old[i] + row[i] * row[3 * h + i];
          row[h + i] += peep[h + i] * cell[i];
        }
        activate(layer, functions[0], row + h, h);
        std::copy_n(cell, h, squashed.begin());
        // The clip is the gates' alone, as in onnxruntime; the operator's text leaves it open for the cell.
        functions[2].apply(squashed.data(), static_cast<std::size_t>(h));
        for (std::int64_t i = 0; i < h; ++i) hidden[i] = row[h + i] * squashed[static_cast<std::size_t>(i)];
      }
    });
  }
}

// Gates are functions whose results lie between -1 and 1.
constexpr Rounding kGates = Rounding::composite().of_scale(1);

const RegisterEvaluators kRecurrent{
    Evaluator("RNN").evaluate(rnn).error(kGates),
    Evaluator("GRU").evaluate(gru).error(kGates),
    Evaluator("LSTM").evaluate(lstm).error(kGates),
};

}  // namespace
}  // namespace tensorlint::runtime
