// Losses over classes. Source: ONNX SoftmaxCrossEntropyLoss (12, 13), NegativeLogLikelihoodLoss (12, 13, 22).
#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/element_functions.h"
#include "runtime/interpreter/ops/function_loops.h"
#include "runtime/values/codec.h"

namespace tensorlint::runtime {
namespace {

/// Scores [N, C, rest] and labels [N, rest].
struct ClassLoss {
  std::size_t batch, classes, rest;
  std::vector<std::int64_t> labels;
  std::vector<double> weights;  ///< one a class, or none
  bool may_ignore = false;
  std::int64_t ignored = 0;
};

ClassLoss read_loss(Evaluation& e) {
  const HostTensor& scores = e.operand(0);
  ClassLoss loss;
  loss.batch = static_cast<std::size_t>(scores.extent(0));
  loss.classes = static_cast<std::size_t>(scores.extent(1));
  loss.rest = 1;
  for (std::size_t axis = 2; axis < scores.rank(); ++axis) loss.rest *= static_cast<std::size_t>(scores.extent(axis));
  loss.labels = e.integers(1);
  if (e.has(2)) loss.weights = e.numbers(2);
  if (const auto ignored = e.in().int_attribute("ignore_index")) loss.may_ignore = true, loss.ignored = *ignored;
  return loss;
}

/// Classes of a row and rows of a batch.
double terms_of_loss(Evaluation& e) {
  const HostTensor& scores = e.operand(0);
  return static_cast<double>(scores.extent(1)) + static_cast<double>(e.operand(1).size());
}

/// Reduces -weight * log_probability(n, class, position) over the labels; ignored ones have weight 0.
template <typename LogProbability>
void reduce_losses(Evaluation& e, const ClassLoss& loss, const LogProbability& log_probability) {
  HostTensor& result = e.result();
  const std::string_view reduction = e.in().string_attribute("reduction", "mean");
  const bool each = reduction == "none";
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < loss.labels.size(); ++i) {
    const std::int64_t label = loss.labels[i];
    const bool is_ignored = loss.may_ignore && label == loss.ignored;
    if (!is_ignored && (label < 0 || label >= static_cast<std::int64_t>(loss.classes)))
      e.fail("label {} is outside the {} classes", label, loss.classes);
    double value = 0;
    if (!is_ignored) {
      const auto index = static_cast<std::size_t>(label);
      const double weight = loss.weights.empty() ? 1 : loss.weights[index];
      value = -log_probability(i / loss.rest, index, i % loss.rest) * weight;
      weights += weight;
    }
    sum += value;
    if (each) store(result, i, 1, &value);
  }
  if (each) return;
  if (reduction == "mean") sum /= weights;
  store(result, 0, 1, &sum);
}

void negative_log_likelihood(Evaluation& e) {
  const HostTensor& scores = e.operand(0);
  const ClassLoss loss = read_loss(e);
  reduce_losses(e, loss, [&](std::size_t n, std::size_t label, std::size_t position) {
    return number_at(scores, (n * loss.classes + label) * loss.rest + position);
  });
}

/// log_softmax(score) = (score - largest) - log_sum. In one number, log_sum would be lost beside a largest score of
/// 1e16 or more, as where a mask hides all of a row.
struct Normaliser {
  double largest = 0, log_sum = 0;

  double log_probability(double score) const { return (score - largest) - log_sum; }
  // The sum of exponentials has an error relative to itself, which its logarithm makes absolute.
  double amplitude(double score) const { return std::fabs(score) + std::fabs(largest + log_sum) + 1; }
};

Normaliser normaliser_of(List<double>& row) {
  static const auto powers_of = FunctionLoop<ExpFunction, double>::best();
  double best = -HUGE_VAL, sum = 0;
  for (const double x : row) best = x > best || x != x ? x : best;
  for (double& x : row) x -= best;
  powers_of(ExpFunction{}, row.data(), row.data(), row.size());
  for (const double power : row) sum += power;
  return {best, std::log(sum)};
}

/// One a position.
List<Normaliser> normalisers(const HostTensor& scores, const ClassLoss& loss, Memory& memory) {
  List<Normaliser> result(loss.batch * loss.rest, memory.resource());
  List<double> row(loss.classes, memory.resource());
  // Classes of some neighbouring positions at once: single numbers would be slow to read.
  const std::size_t width = std::min<std::size_t>(loss.rest, 64);
  List<double> block(loss.classes * width, memory.resource());
  for (std::size_t n = 0; n < loss.batch; ++n) {
    for (std::size_t first = 0; first < loss.rest; first += width) {
      const std::size_t count = std::min(width, loss.rest - first);
      if (loss.rest == 1) {
        load(scores, n * loss.classes, loss.classes, block.data());
      } else {
        for (std::size_t k = 0; k < loss.classes; ++k)
          load(scores, (n * loss.classes + k) * loss.rest + first, count, block.data() + k * count);
      }
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < loss.classes; ++k) row[k] = block[k * count + i];
        result[n * loss.rest + first + i] = normaliser_of(row);
      }
    }
  }
  return result;
}

void softmax_cross_entropy(Evaluation& e) {
  const HostTensor& scores = e.operand(0);
  const ClassLoss loss = read_loss(e);
  const List<Normaliser> by_position = normalisers(scores, loss, e.memory());
  reduce_losses(e, loss, [&](std::size_t n, std::size_t label, std::size_t position) {
    const double score = number_at(scores, (n * loss.classes + label) * loss.rest + position);
    const Normaliser& normaliser = by_position[n * loss.rest + position];
    return e.asks_amplitude() ? normaliser.amplitude(score) : normaliser.log_probability(score);
  });
  if (!e.wants(1)) return;
  HostTensor& log_probabilities = e.result(1);
  List<double> row(std::max(loss.rest, loss.classes), e.memory().resource());
  // Rows along the innermost axis that has more than one element.
  const bool by_class = loss.rest == 1;
  const std::size_t count = by_class ? loss.classes : loss.rest;
  for (std::size_t at = 0; at < scores.size(); at += count) {
    load(scores, at, count, row.data());
    const std::size_t image = at / (loss.classes * loss.rest);
    for (std::size_t i = 0; i < count; ++i) {
      const Normaliser& normaliser = by_position[image * loss.rest + (by_class ? 0 : i)];
      row[i] = e.asks_amplitude() ? normaliser.amplitude(row[i]) : normaliser.log_probability(row[i]);
    }
    store(log_probabilities, at, count, row.data());
  }
}

const RegisterEvaluators kLosses{
    Evaluator("SoftmaxCrossEntropyLoss")
        .evaluate(softmax_cross_entropy)
        .error(Rounding::composite(terms_of_loss).with_amplitude())
        .skips_empty_operands(),
    Evaluator("NegativeLogLikelihoodLoss")
        .evaluate(negative_log_likelihood)
        .error(Rounding::accumulates(terms_of_loss))
        .skips_empty_operands(),
};

}  // namespace
}  // namespace tensorlint::runtime
