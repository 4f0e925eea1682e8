// Attention. Source: ONNX Attention (23, 24, 25), RotaryEmbedding (23), LinearAttention, CausalConvWithState (27);
// ai.onnx.preview FlexAttention (1).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/element_functions.h"
#include "runtime/interpreter/ops/function_loops.h"
#include "runtime/interpreter/products.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A tensor as [batch, heads, length, size]: of 4 axes, or of 3 with the heads packed into the last one.
struct Heads {
  std::int64_t batch, heads, length, size;
  std::int64_t batch_stride, head_stride, row_stride;
  std::int64_t first(std::int64_t b, std::int64_t h) const { return b * batch_stride + h * head_stride; }
};

Heads heads_of(const Extents& extents, std::int64_t packed_heads) {
  if (extents.size() == 4)
    return {
        extents[0], extents[1], extents[2], extents[3], extents[1] * extents[2] * extents[3], extents[2] * extents[3],
        extents[3]};
  const std::int64_t heads = std::max<std::int64_t>(packed_heads, 1), size = extents[2] / heads;
  return {extents[0], heads, extents[1], size, extents[1] * extents[2], size, extents[2]};
}

/// Keys or values: those of the past before those of now, where there is a past or the result is asked for.
HostTensor with_past(Evaluation& e, int operand, int past, int result, const Heads& now) {
  const HostTensor& tensor = e.operand(operand);
  if (!e.has(past) && !e.wants(result)) return tensor;
  const std::int64_t before = e.has(past) ? e.operand(past).extent(2) : 0, total = before + now.length;
  HostTensor present(tensor.dtype(), {now.batch, now.heads, total, now.size}, e.memory());
  HostTensor current(tensor.dtype(), {now.batch, now.heads, now.length, now.size}, e.memory());
  copy_strided(current, tensor, 0, std::array{now.batch_stride, now.head_stride, now.row_stride, std::int64_t{1}});
  const auto elements = [&](std::int64_t length) { return static_cast<std::size_t>(length * now.size); };
  for (std::size_t i = 0; present.size() > 0 && i < static_cast<std::size_t>(now.batch * now.heads); ++i) {
    if (before > 0)
      copy_elements(present, i * elements(total), e.operand(past), i * elements(before), elements(before));
    copy_elements(present, i * elements(total) + elements(before), current, i * elements(now.length),
                  elements(now.length));
  }
  if (e.wants(result)) e.set(result, present);
  return present;
}

/// What is added to the scores: -infinity where a query does not see a key.
class Bias {
 public:
  Bias(Evaluation& e, const Heads& query, std::int64_t total, std::int64_t past) : total_(total), offset_(past) {
    causal_ = e.in().int_attribute("is_causal", 0) != 0;
    // No window is wider than all keys and queries.
    const std::int64_t most = total + query.length + past;
    left_ = std::min(e.in().int_attribute("left_window_size", -1), most);
    right_ = std::min(e.in().int_attribute("right_window_size", -1), most);
    const int lengths = e.call().schema->input_index("nonpad_kv_seqlen");
    if (lengths >= 0 && e.has(lengths)) {
      lengths_ = e.integers(lengths);
      for (const std::int64_t length : lengths_)
        if (length < 0 || length > total) e.fail("length {} of nonpad_kv_seqlen is outside 0 to {}", length, total);
      is_cache_outside_ = !e.has(e.in().index_of("past_key"));
      queries_ = query.length;
    }
    if (!e.has("attn_mask")) return;
    const HostTensor& mask = e.operand("attn_mask");
    mask_ = e.numbers(e.in().index_of("attn_mask"));
    if (mask.dtype() == DType::kBool)
      for (double& element : mask_) element = element != 0 ? 0 : -kInfinity;
    width_ = mask.extents().back();
    strides_ = broadcast_strides(mask.extents(), std::array{query.batch, query.heads, query.length, width_});
  }

  /// The row of a query; whether it sees a key at all.
  bool row(std::int64_t b, std::int64_t h, std::int64_t i, double* to) const {
    const auto batch = static_cast<std::size_t>(b);
    std::fill_n(to, total_, 0.0);
    if (!mask_.empty()) {
      const double* const mask = mask_.data() + b * strides_[0] + h * strides_[1] + i * strides_[2];
      for (std::int64_t j = 0; j < std::min(width_, total_); ++j) to[j] = mask[j * strides_[3]];
      std::fill(to + std::min(width_, total_), to + total_, -kInfinity);
    }
    const std::int64_t position = i + (is_cache_outside_ ? lengths_[batch] - queries_ : offset_);
    std::int64_t low = left_ >= 0 ? position - left_ : 0, high = right_ >= 0 ? position + right_ + 1 : total_;
    if (causal_) high = std::min(high, position + 1);
    if (!lengths_.empty()) high = std::min(high, lengths_[batch]);
    low = std::clamp<std::int64_t>(low, 0, total_);
    high = std::clamp<std::int64_t>(high, low, total_);
    std::fill(to, to + low, -kInfinity);
    std::fill(to + high, to + total_, -kInfinity);
    return std::any_of(to, to + total_, [](double bias) { return bias != -kInfinity; });
  }

 private:
  std::int64_t total_, offset_, left_ = -1, right_ = -1, width_ = 0, queries_ = 0;
  bool causal_ = false, is_cache_outside_ = false;
  std::vector<std::int64_t> lengths_, strides_;
  std::vector<double> mask_;
};

void exponentials(double* row, std::int64_t count) {
  static const auto loop = FunctionLoop<ExpFunction, double>::best();
  loop(ExpFunction{}, row, row, static_cast<std::size_t>(count));
}

void softmax(double* row, std::int64_t count) {
  double most = -kInfinity, sum = 0;
  for (std::int64_t j = 0; j < count; ++j) most = row[j] > most || row[j] != row[j] ? row[j] : most;
  for (std::int64_t j = 0; j < count; ++j) row[j] -= most;
  exponentials(row, count);
  for (std::int64_t j = 0; j < count; ++j) sum += row[j];
  for (std::int64_t j = 0; j < count; ++j) row[j] /= sum;
}

DenseFactor<double> dense(const List<double>& elements, std::int64_t width) { return {elements.data(), width, 1}; }

/// Which stage of the scores the fourth result has.
enum class Stage : std::uint8_t { kProduct, kCapped, kBiased, kProbabilities };

/// Calls transform(b, h, first query, queries, scores [queries, total]) on the scaled products of query and key, block
/// by block of queries, and stores what the transformed ones make of the values.
template <typename Transform>
void attend(Evaluation& e, const Heads& query, const Heads& key, const Heads& value, const HostTensor& keys,
            const HostTensor& values, double scale, const Transform& transform) {
  HostTensor& result = e.result();
  if (result.size() == 0 && !e.wants(3)) return;
  const Numbers q(e.operand(0), e.memory()), k(keys, e.memory()), v(values, e.memory());
  const Heads to = heads_of(result.extents(), query.heads);
  const std::int64_t total = key.length,
                     block = std::max<std::int64_t>((std::int64_t{1} << 19) / std::max<std::int64_t>(total, 1), 16);
  List<double> scores(e.memory().resource());
  for (std::int64_t b = 0; b < query.batch; ++b) {
    for (std::int64_t h = 0; h < query.heads; ++h) {
      const std::int64_t shared = h / (query.heads / key.heads);
      for (std::int64_t first = 0; first < query.length; first += block) {
        const std::int64_t count = std::min(block, query.length - first);
        scores.resize(static_cast<std::size_t>(count * total));
        gemm(
            count, total, query.size, {&q, query.first(b, h) + first * query.row_stride, query.row_stride, 1},
            {&k, key.first(b, shared), 1, key.row_stride}, e.memory(),
            [&](const ProductTile& tile) {
              for (std::int64_t i = 0; i < tile.rows; ++i)
                for (std::int64_t j = 0; j < tile.columns; ++j)
                  scores[static_cast<std::size_t>((tile.row + i) * total + tile.column + j)] =
                      tile.elements[i * tile.stride + j] * scale;
            },
            Tiles::kAnyThread);
        transform(b, h, first, count, scores.data());
        const auto store_tile = [&](const ProductTile& tile) {
          for (std::int64_t i = 0; i < tile.rows; ++i)
            store(result,
                  static_cast<std::size_t>(to.first(b, h) + (first + tile.row + i) * to.row_stride + tile.column),
                  static_cast<std::size_t>(tile.columns), tile.elements + i * tile.stride);
        };
        const std::int64_t at = value.first(b, shared);
        if (v.are_floats()) {
          gemm(count, value.size, total, dense(scores, total),
               DenseFactor(v.float_elements() + at, value.row_stride, 1), e.memory(), store_tile, Tiles::kAnyThread);
        } else {
          gemm(count, value.size, total, dense(scores, total),
               DenseFactor(v.double_elements() + at, value.row_stride, 1), e.memory(), store_tile, Tiles::kAnyThread);
        }
      }
    }
  }
}

double scale_of(Evaluation& e, std::int64_t size) {
  const Attribute* const scale = e.in().attribute("scale");
  return scale != nullptr ? static_cast<double>(scale->f) : 1 / std::sqrt(static_cast<double>(size));
}

/// softmax(cap(scale * Q K^T) + bias) V. A query that sees no key gives zeros.
void attention(Evaluation& e) {
  const Heads query = heads_of(e.operand(0).extents(), e.in().int_attribute("q_num_heads", 0));
  const std::int64_t shared = e.in().int_attribute("kv_num_heads", 0);
  Heads key = heads_of(e.operand(1).extents(), shared), value = heads_of(e.operand(2).extents(), shared);
  const int past_key = e.in().index_of("past_key"), past_value = e.in().index_of("past_value");
  const std::int64_t past = e.has(past_key) ? e.operand(past_key).extent(2) : 0;
  const HostTensor keys = with_past(e, 1, past_key, 1, key), values = with_past(e, 2, past_value, 2, value);
  if (keys.rank() == 4) key = heads_of(keys.extents(), 0);
  if (values.rank() == 4) value = heads_of(values.extents(), 0);
  if (value.length != key.length) e.fail("there are {} keys and {} values", key.length, value.length);
  const Bias bias(e, query, key.length, past);
  const double cap = e.in().float_attribute("softcap", 0);
  const std::int64_t mode = e.in().int_attribute("qk_matmul_output_mode", 0);
  if (e.wants(3) && (mode < 0 || mode > 3)) e.fail("qk_matmul_output_mode is {}, 0 to 3 needed", mode);
  const auto wanted = static_cast<Stage>(mode);
  if (e.wants(3)) e.result(3);
  const std::int64_t total = key.length;
  List<double> addends(static_cast<std::size_t>(total), e.memory().resource());
  attend(e, query, key, value, keys, values, scale_of(e, query.size),
         [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t count, double* scores) {
           for (std::int64_t i = 0; i < count; ++i) {
             double* const row = scores + i * total;
             const auto show = [&](Stage stage) {
               if (stage != wanted || !e.wants(3)) return;
               const std::int64_t at = ((b * query.heads + h) * query.length + first + i) * total;
               store(e.result(3), static_cast<std::size_t>(at), static_cast<std::size_t>(total), row);
             };
             show(Stage::kProduct);
             if (cap > 0)
               for (std::int64_t j = 0; j < total; ++j) row[j] = cap * std::tanh(row[j] / cap);
             show(Stage::kCapped);
             const bool sees = bias.row(b, h, first + i, addends.data());
             for (std::int64_t j = 0; j < total; ++j) row[j] += addends[static_cast<std::size_t>(j)];
             show(Stage::kBiased);
             if (sees) {
               softmax(row, total);
             } else {
               std::fill_n(row, total, 0.0);
             }
             show(Stage::kProbabilities);
           }
         });
}

/// Pairs of numbers turned by an angle a position; what rotary_embedding_dim leaves over stays.
void rotary_embedding(Evaluation& e) {
  const HostTensor &data = e.operand(0), &cosines = e.operand(1);
  HostTensor& result = e.result();
  const Heads heads = heads_of(data.extents(), e.in().int_attribute("num_heads", 0));
  std::int64_t rotated = e.in().int_attribute("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = heads.size;
  const std::int64_t half = rotated / 2;
  const bool interleaved = e.in().int_attribute("interleaved", 0) != 0;
  const std::vector<double> cosine = e.numbers(1), sine = e.numbers(2);
  const std::vector<std::int64_t> positions = e.has(3) ? e.integers(3) : std::vector<std::int64_t>{};
  const std::int64_t rows = cosine.empty() ? 0 : static_cast<std::int64_t>(cosine.size()) / cosines.extents().back();
  List<double> row(static_cast<std::size_t>(heads.size), e.memory().resource());
  for (std::int64_t b = 0; b < heads.batch; ++b) {
    for (std::int64_t t = 0; t < heads.length; ++t) {
      std::int64_t angle = b * heads.length + t;
      if (!positions.empty()) angle = positions[static_cast<std::size_t>(angle)];
      if (angle < 0) angle += rows;
      if (angle < 0 || angle >= rows) e.fail("position {} is outside the {} rows of the caches", angle, rows);
      const double *const c = cosine.data() + angle * half, *const s = sine.data() + angle * half;
      for (std::int64_t h = 0; h < heads.heads; ++h) {
        const auto at = static_cast<std::size_t>(heads.first(b, h) + t * heads.row_stride);
        load(data, at, row.size(), row.data());
        for (std::int64_t i = 0; i < half; ++i) {
          double& x = row[static_cast<std::size_t>(interleaved ? 2 * i : i)];
          double& y = row[static_cast<std::size_t>(interleaved ? 2 * i + 1 : half + i)];
          const double real = c[i] * x - s[i] * y;
          y = s[i] * x + c[i] * y;
          x = real;
        }
        store(result, at, row.size(), row.data());
      }
    }
  }
}

/// One step of a head of linear attention: decays the state [keys, values], corrects the value, adds key x value.
struct LinearStep {
  std::int64_t keys, values;
  const double* decay = nullptr;  ///< logarithms, one or one a key
  std::int64_t decay_stride = 0;
  bool corrects = false;
  double rate = 1;

  /// `known` has room for a value.
  void run(double* state, const double* key, List<double>& value, List<double>& known) const {
    if (decay != nullptr)
      for (std::int64_t i = 0; i < keys; ++i) {
        const double factor = std::exp(decay[i * decay_stride]);
        for (std::int64_t j = 0; j < values; ++j) state[i * values + j] *= factor;
      }
    if (corrects) {
      known.assign(value.size(), 0.0);
      for (std::int64_t i = 0; i < keys; ++i)
        for (std::int64_t j = 0; j < values; ++j) known[static_cast<std::size_t>(j)] += state[i * values + j] * key[i];
      for (std::size_t j = 0; j < value.size(); ++j) value[j] = rate * (value[j] - known[j]);
    }
    for (std::int64_t i = 0; i < keys; ++i)
      for (std::int64_t j = 0; j < values; ++j) state[i * values + j] += key[i] * value[static_cast<std::size_t>(j)];
  }
};

void linear_attention(Evaluation& e) {
  const std::int64_t query_heads = e.in().int_attribute("q_num_heads", 1),
                     heads = e.in().int_attribute("kv_num_heads", 1);
  const Heads query = heads_of(e.operand(0).extents(), query_heads), key = heads_of(e.operand(1).extents(), heads);
  const Heads value = heads_of(e.operand(2).extents(), heads);
  const std::string_view rule = e.in().string_attribute("update_rule", "gated_delta");
  const bool decays = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  const auto needed = [&](std::string_view name) {
    if (!e.has(name)) e.fail("the update rule {} needs the operand {}", rule, name);
    return e.numbers(e.in().index_of(name));
  };
  const std::vector<double> q = e.numbers(0), k = e.numbers(1), v = e.numbers(2);
  const std::vector<double> decay = decays ? needed("decay") : std::vector<double>{},
                            rates = corrects ? needed("beta") : std::vector<double>{};
  const std::int64_t decay_width = decays ? e.operand("decay").extents().back() : 0;
  const std::int64_t rate_width = corrects ? e.operand("beta").extents().back() : 0;
  double scale = e.in().float_attribute("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(key.size));
  const std::int64_t per_state = key.size * value.size, shares = query_heads / heads;
  std::pmr::memory_resource* const counted = e.memory().resource();
  List<double> states(static_cast<std::size_t>(query.batch * heads * per_state), 0.0, counted);
  if (e.has(3)) {
    if (e.operand(3).size() != states.size())
      e.fail("the state has {} elements, {} needed", e.operand(3).size(), states.size());
    load(e.operand(3), 0, states.size(), states.data());
  }
  List<double> step_value(static_cast<std::size_t>(value.size), counted), known(counted),
      row(step_value.size(), counted);
  const Heads to = heads_of(e.result().extents(), query_heads);
  for (std::int64_t b = 0; b < query.batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      double* const state = states.data() + (b * heads + h) * per_state;
      for (std::int64_t t = 0; t < query.length; ++t) {
        const std::int64_t at = b * query.length + t;
        LinearStep step{key.size, value.size};
        if (decays) {
          step.decay_stride = decay_width == heads ? 0 : 1;
          step.decay = decay.data() + at * decay_width + h * (decay_width / heads);
        }
        step.corrects = corrects;
        if (corrects) step.rate = rates[static_cast<std::size_t>(at * rate_width + (rate_width == 1 ? 0 : h))];
        std::copy_n(v.begin() + value.first(b, h) + t * value.row_stride, value.size, step_value.begin());
        step.run(state, k.data() + key.first(b, h) + t * key.row_stride, step_value, known);
        for (std::int64_t share = 0; share < shares; ++share) {
          const double* const ask = q.data() + query.first(b, h * shares + share) + t * query.row_stride;
          std::ranges::fill(row, 0.0);
          for (std::int64_t i = 0; i < key.size; ++i)
            for (std::int64_t j = 0; j < value.size; ++j)
              row[static_cast<std::size_t>(j)] += scale * ask[i] * state[i * value.size + j];
          store(e.result(), static_cast<std::size_t>(to.first(b, h * shares + share) + t * to.row_stride), row.size(),
                row.data());
        }
      }
    }
  }
  if (e.wants(1)) store(e.result(1), 0, states.size(), states.data());
}

/// A depthwise convolution over the past and the data; the last elements are the next past.
void causal_conv(Evaluation& e) {
  const HostTensor &data = e.operand(0), &weights = e.operand(1);
  HostTensor& result = e.result();
  const std::int64_t batch = data.extent(0), channels = data.extent(1), length = data.extent(2);
  const std::int64_t kernel = weights.extent(2), past = kernel - 1;
  const std::vector<double> filters = e.numbers(1), bias = e.has(2) ? e.numbers(2) : std::vector<double>{};
  const std::string_view activation = e.in().string_attribute("activation", "none");
  const bool gates = activation == "silu" || activation == "swish";
  List<double> row(static_cast<std::size_t>(past + length), e.memory().resource()),
      sums(static_cast<std::size_t>(length), e.memory().resource());
  for (std::int64_t i = 0; i < batch * channels; ++i) {
    const auto channel = static_cast<std::size_t>(i % channels);
    std::fill_n(row.begin(), past, 0.0);
    if (e.has(3)) load(e.operand(3), static_cast<std::size_t>(i * past), static_cast<std::size_t>(past), row.data());
    load(data, static_cast<std::size_t>(i * length), sums.size(), row.data() + past);
    std::ranges::fill(sums, bias.empty() ? 0.0 : bias[channel]);
    for (std::int64_t k = 0; k < kernel; ++k) {
      const double weight = filters[channel * static_cast<std::size_t>(kernel) + static_cast<std::size_t>(k)];
      for (std::int64_t t = 0; t < length; ++t)
        sums[static_cast<std::size_t>(t)] += weight * row[static_cast<std::size_t>(t + k)];
    }
    if (gates)
      for (double& sum : sums) sum /= 1 + std::exp(-sum);
    store(result, static_cast<std::size_t>(i * length), sums.size(), sums.data());
    if (e.wants(1))
      store(e.result(1), static_cast<std::size_t>(i * past), static_cast<std::size_t>(past), row.data() + length);
  }
}

/// A graph of the call applied to scores or probabilities, [batch, heads, queries, keys].
void modify(Evaluation& e, std::string_view attribute, DType dtype, const Extents& extents, List<double>& numbers) {
  const Attribute* const graph = e.in().attribute(attribute);
  if (graph == nullptr) return;
  HostTensor tensor(dtype, extents, e.memory());
  store(tensor, 0, numbers.size(), numbers.data());
  const std::array<HostValue, 1> inputs{HostValue(std::move(tensor))};
  const std::vector<HostValue> outputs = e.run_graph(graph->graph, inputs);
  if (outputs.size() != 1 || !outputs[0].is_tensor() || outputs[0].tensor().extents() != extents ||
      outputs[0].tensor().dtype() != dtype)
    e.fail("the graph {} has to give one tensor of the dtype and shape that it gets", attribute);
  load(outputs[0].tensor(), 0, numbers.size(), numbers.data());
}

/// Attention whose scores and probabilities graphs may change; they see all heads at once.
void flex_attention(Evaluation& e) {
  const Heads query = heads_of(e.operand(0).extents(), 0), key = heads_of(e.operand(1).extents(), 0);
  const Heads value = heads_of(e.operand(2).extents(), 0);
  const DType dtype = e.operand(0).dtype();
  const std::int64_t precision = e.in().int_attribute("softmax_precision", 0);
  const DType stage = precision != 0             ? static_cast<DType>(precision)
                      : dtype == DType::kFloat64 ? dtype
                                                 : DType::kFloat32;
  const std::int64_t total = key.length, plane = query.length * total;
  const Extents extents{query.batch, query.heads, query.length, total};
  const bool modifies = e.in().attribute("score_mod") != nullptr || e.in().attribute("prob_mod") != nullptr;
  const double scale = scale_of(e, query.size);
  const auto each_row = [&](double* scores, std::int64_t rows) {
    for (std::int64_t i = 0; i < rows; ++i) softmax(scores + i * total, total);
  };
  if (!modifies)
    return attend(
        e, query, key, value, e.operand(1), e.operand(2), scale,
        [&](std::int64_t, std::int64_t, std::int64_t, std::int64_t count, double* scores) { each_row(scores, count); });
  List<double> all(element_count(extents), e.memory().resource());
  const auto at = [&](std::int64_t b, std::int64_t h, std::int64_t first) {
    return all.begin() + (b * query.heads + h) * plane + first * total;
  };
  attend(e, query, key, value, e.operand(1), e.operand(2), scale,
         [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t count, double* scores) {
           std::copy_n(scores, count * total, at(b, h, first));
         });
  modify(e, "score_mod", stage, extents, all);
  each_row(all.data(), query.batch * query.heads * query.length);
  modify(e, "prob_mod", stage, extents, all);
  attend(e, query, key, value, e.operand(1), e.operand(2), scale,
         [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t count, double* scores) {
           std::copy_n(at(b, h, first), count * total, scores);
         });
}

const RegisterEvaluators kAttention{
    Evaluator("Attention").evaluate(attention).error(Rounding::composite()),
    Evaluator("RotaryEmbedding").evaluate(rotary_embedding).error(Rounding::composite()),
    Evaluator("LinearAttention").evaluate(linear_attention).error(Rounding::composite()),
    Evaluator("CausalConvWithState").evaluate(causal_conv).error(Rounding::composite()),
    Evaluator("FlexAttention", "ai.onnx.preview").evaluate(flex_attention).error(Rounding::composite()),
};

}  // namespace
}  // namespace tensorlint::runtime
