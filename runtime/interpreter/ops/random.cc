// Random numbers. Source: ONNX RandomNormal, RandomUniform and their Like forms (opsets 1, 22), Multinomial (7, 22),
// Bernoulli (15, 22), Dropout (1-22). ONNX fixes no generator: the same seed gives the same numbers here, but other
// ones than in other engines.
#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/function_loops.h"

namespace tensorlint::runtime {
namespace {

/// The Mersenne twister, seeded and read as numpy's RandomState does: with one seed, uniform numbers, normal numbers
/// and masks are those of ONNX's reference implementation.
class Generator {
 public:
  explicit Generator(std::uint32_t seed) : engine_(seed) {}

  /// [0, 1), of 53 bits.
  double uniform() {
    const std::uint64_t high = engine_() >> 5, low = engine_() >> 6;
    return static_cast<double>((high << 26) + low) * 0x1p-53;
  }
  /// Marsaglia's polar method, which gives pairs.
  double normal() {
    if (std::exchange(has_second_, false)) return second_;
    double x = 0, y = 0, square = 0;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double factor = std::sqrt(-2 * std::log(square) / square);
    second_ = factor * x;
    has_second_ = true;
    return factor * y;
  }
  /// One draw of numpy's binomial distribution.
  bool hit(double p) { return p <= 0.5 ? uniform() > 1 - p : uniform() <= p; }

 private:
  std::mt19937 engine_;
  double second_ = 0;
  bool has_second_ = false;
};

/// Of the node's `seed`, else of the run and the call.
Generator generator_of(Evaluation& e) {
  e.mark_random();
  const Attribute* const seed = e.in().attribute("seed");
  if (seed != nullptr && seed->kind == AttributeKind::kInt) return Generator(static_cast<std::uint32_t>(seed->i));
  if (seed != nullptr && !std::isnan(seed->f))
    return Generator(static_cast<std::uint32_t>(truncated(static_cast<double>(seed->f))));
  return Generator(static_cast<std::uint32_t>(e.seed() >> 32));
}

template <typename Draw>
void draw_floats(HostTensor& to, Draw draw) {
  double row[kRow];
  for (std::size_t first = 0; first < to.size(); first += kRow) {
    const std::size_t count = std::min(kRow, to.size() - first);
    std::generate_n(row, count, draw);
    store(to, first, count, row);
  }
}

void random_normal(Evaluation& e) {
  Generator generator = generator_of(e);
  const double mean = e.in().float_attribute("mean", 0), scale = e.in().float_attribute("scale", 1);
  draw_floats(e.result(), [&] { return mean + scale * generator.normal(); });
}

void random_uniform(Evaluation& e) {
  Generator generator = generator_of(e);
  const double low = e.in().float_attribute("low", 0), high = e.in().float_attribute("high", 1);
  draw_floats(e.result(), [&] { return low + (high - low) * generator.uniform(); });
}

/// Draws classes of each row of unnormalised log-probabilities.
void multinomial(Evaluation& e) {
  Generator generator = generator_of(e);
  const HostTensor& logits = e.operand(0);
  HostTensor& to = e.result();
  const auto classes = static_cast<std::size_t>(logits.extent(1)), samples = static_cast<std::size_t>(to.extent(1));
  List<double> sums(classes, e.memory().resource());
  for (std::size_t row = 0; row < static_cast<std::size_t>(logits.extent(0)); ++row) {
    if (classes == 0) e.fail("there is no class to draw");
    load(logits, row * classes, classes, sums.data());
    const double largest = *std::ranges::max_element(sums);
    double sum = 0;
    for (double& each : sums) each = sum += std::exp(each - largest);
    if (!(sum > 0) || std::isinf(sum)) e.fail("row {} of the log-probabilities has no finite sum", row);
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const auto at = std::ranges::upper_bound(sums, generator.uniform() * sum);
      const auto index = std::min<std::int64_t>(at - sums.begin(), static_cast<std::int64_t>(classes) - 1);
      store(to, row * samples + sample, 1, &index);
    }
  }
}

/// Ones with the probabilities of the operand.
void bernoulli(Evaluation& e) {
  Generator generator = generator_of(e);
  const HostTensor& x = e.operand(0);
  HostTensor& y = e.result();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double p = number_at(x, i);
    if (!(p >= 0 && p <= 1)) e.fail("{} is not a probability", p);
    const bool hit = generator.hit(p);
    const double number = hit ? 1 : 0;
    const std::int64_t whole = hit ? 1 : 0;
    if (is_float(y.dtype())) {
      store(y, i, 1, &number);
    } else {
      store(y, i, 1, &whole);
    }
  }
}

// --- Dropout

/// `is_test` until opset 6, `training_mode` from 12 on; between these the operator only infers.
bool is_training(Evaluation& e) {
  if (e.opset() < 7) return e.in().int_attribute("is_test", 0) == 0;
  return e.opset() >= 12 && e.has(2) && e.integer(2) != 0;
}

double dropout_ratio(Evaluation& e) {
  if (e.opset() < 12) return e.in().float_attribute("ratio", 0.5);
  return e.has(1) ? e.number(1) : 0.5;
}

/// The mask has the data's dtype until opset 9, then bool.
void set_mask(HostTensor& mask, std::size_t first, std::size_t count, const double* kept) {
  if (is_float(mask.dtype())) return store(mask, first, count, kept);
  std::transform(kept, kept + count, mask.as_mutable<std::uint8_t>().data() + first,
                 [](double x) { return static_cast<std::uint8_t>(x != 0); });
}

/// Drops elements with the probability `ratio` and scales the others by 1 / (1 - ratio).
void dropout(Evaluation& e) {
  const HostTensor& x = e.operand(0);
  const double ratio = dropout_ratio(e);
  const bool drops = is_training(e) && ratio != 0;
  double kept[kRow], row[kRow];
  if (!drops) {
    e.set(0, e.value(0));
    std::fill_n(kept, kRow, 1.0);
    if (!e.wants(1)) return;
    for (std::size_t first = 0; first < x.size() || first == 0; first += kRow)
      set_mask(e.result(1), first, std::min(kRow, x.size() - first), kept);
    return;
  }
  if (!(ratio >= 0 && ratio < 1)) e.fail("the ratio {} is outside [0, 1)", ratio);
  Generator generator = generator_of(e);
  HostTensor& y = e.result();
  if (e.wants(1)) e.result(1);
  for (std::size_t first = 0; first < x.size(); first += kRow) {
    const std::size_t count = std::min(kRow, x.size() - first);
    load(x, first, count, row);
    std::generate_n(kept, count, [&] { return generator.uniform() >= ratio ? 1.0 : 0.0; });
    for (std::size_t i = 0; i < count; ++i) row[i] = kept[i] * row[i] / (1 - ratio);
    store(y, first, count, row);
    if (e.wants(1)) set_mask(e.result(1), first, count, kept);
  }
}

const RegisterEvaluators kRandom{
    Evaluator("RandomNormal").evaluate(random_normal).error(Rounding::random()),
    Evaluator("RandomNormalLike").evaluate(random_normal).error(Rounding::random()),
    Evaluator("RandomUniform").evaluate(random_uniform).error(Rounding::random()),
    Evaluator("RandomUniformLike").evaluate(random_uniform).error(Rounding::random()),
    Evaluator("Multinomial").evaluate(multinomial).error(Rounding::random()),
    Evaluator("Bernoulli").evaluate(bernoulli).error(Rounding::random()),
    Evaluator("Dropout").evaluate(dropout).error(Rounding::rounded()),
};

}  // namespace
}  // namespace tensorlint::runtime
