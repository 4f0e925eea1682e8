// The domain `tensorlint`, opset 1: losses as PyTorch 2.13 computes them (torch.nn.functional; ATen's Loss.cpp and
// LossNLL.cpp), in float64. The builder's functions of the same names run as functions.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "runtime/interpreter/evaluator.h"
#include "runtime/interpreter/ops/elementwise.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"

namespace tensorlint::runtime {
namespace {

constexpr std::string_view kDomain = "tensorlint";

/// On the host all devices are one.
void transfer(Evaluation& e) { e.set(0, e.value(0)); }

/// numpy's rules.
Extents broadcast_extents(const Extents& a, const Extents& b) {
  const Extents &longer = a.size() >= b.size() ? a : b, &shorter = a.size() >= b.size() ? b : a;
  Extents result = longer;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& extent = result[longer.size() - shorter.size() + i];
    if (extent == 1) extent = shorter[i];
  }
  return result;
}

/// A loss of each element, and their reduction.
class LossReduction {
 public:
  explicit LossReduction(Evaluation& e) : result_(e.result()), name_(e.in().string_attribute("reduction", "mean")) {}

  void add(std::size_t first, std::size_t count, const double* losses) {
    if (name_ == "none") return store(result_, first, count, losses);
    for (std::size_t i = 0; i < count; ++i) sum_ += losses[i];
  }
  /// `mean_of`: what a mean divides by; `batch`: what KlDivLoss divides a "batchmean" by.
  void finish(double mean_of, double batch = 1) {
    if (name_ == "none") return;
    if (name_ == "mean") sum_ /= mean_of;
    if (name_ == "batchmean") sum_ /= batch;
    store(result_, 0, 1, &sum_);
  }

 private:
  HostTensor& result_;
  std::string_view name_;
  double sum_ = 0;
};

/// loss(x, target, third operand or 1) of each element of operands that broadcast.
template <typename Loss>
void elementwise_loss(Evaluation& e, const Loss& loss) {
  std::vector<HostTensor> operands{e.operand(0), e.operand(1)};
  Extents extents = broadcast_extents(operands[0].extents(), operands[1].extents());
  if (e.has(2)) operands.push_back(e.operand(2));
  const double batch = extents.empty() ? 1 : static_cast<double>(extents.front());
  const auto count_of_all = static_cast<double>(element_count(extents));
  e.charge(count_of_all);
  LossReduction reduction(e);
  const BroadcastWalk walk(extents, std::move(operands), e.memory());
  static constexpr double kOne = 1;
  Row<double> rows[3] = {{}, {}, {&kOne, false}};
  alignas(64) double buffers[3][kRow], losses[kRow];
  walk.for_each_run([&](std::size_t first, std::size_t run, std::span<const std::size_t> from) {
    for (std::size_t done = 0; done < run; done += kRow) {
      const std::size_t count = std::min(kRow, run - done);
      for (std::size_t k = 0; k < walk.count(); ++k)
        rows[k] = row_of(walk.operand(k), walk.varies(k), from[k] + (walk.varies(k) ? done : 0), count, buffers[k]);
      const auto at = [&](int k, std::size_t i) { return rows[k].at[rows[k].varies ? i : 0]; };
      for (std::size_t i = 0; i < count; ++i) losses[i] = loss(at(0, i), at(1, i), at(2, i));
      reduction.add(first + done, count, losses);
    }
  });
  reduction.finish(count_of_all, batch);
}

void mse_loss(Evaluation& e) {
  elementwise_loss(e, [](double x, double target, double) { return (x - target) * (x - target); });
}

void l1_loss(Evaluation& e) {
  elementwise_loss(e, [](double x, double target, double) { return std::fabs(x - target); });
}

void smooth_l1_loss(Evaluation& e) {
  const double beta = e.in().float_attribute("beta", 1);
  elementwise_loss(e, [=](double x, double target, double) {
    const double distance = std::fabs(x - target);
    return distance < beta ? 0.5 * distance * distance / beta : distance - 0.5 * beta;
  });
}

void huber_loss(Evaluation& e) {
  const double delta = e.in().float_attribute("delta", 1);
  elementwise_loss(e, [=](double x, double target, double) {
    const double distance = std::fabs(x - target);
    return distance < delta ? 0.5 * distance * distance : delta * (distance - 0.5 * delta);
  });
}

/// Logarithms end at -100, so that a prediction of 0 or 1 has a finite loss.
void bce_loss(Evaluation& e) {
  elementwise_loss(e, [&](double x, double target, double) {
    if (x < 0 || x > 1) e.fail("the prediction {} is outside [0, 1]", x);
    return (target - 1) * std::max(std::log1p(-x), -100.0) - target * std::max(std::log(x), -100.0);
  });
}

void bce_with_logits_loss(Evaluation& e) {
  // -log(1 - sigmoid(x)) and -log(sigmoid(x)), each without cancellation.
  elementwise_loss(e, [](double x, double target, double positive_weight) {
    const double small = std::log1p(std::exp(-std::fabs(x)));
    return (1 - target) * (small + std::max(x, 0.0)) + positive_weight * target * (small + std::max(-x, 0.0));
  });
}

void kl_div_loss(Evaluation& e) {
  if (e.in().int_attribute("log_target", 0) != 0)
    return elementwise_loss(e, [](double x, double target, double) { return std::exp(target) * (target - x); });
  elementwise_loss(
      e, [](double x, double target, double) { return (target == 0 ? 0 : target * std::log(target)) - target * x; });
}

// --- losses over classes

/// Scores [N, C, rest] or [C], weights of the classes, and what a loss needs of each position.
class Classes {
 public:
  explicit Classes(Evaluation& e, bool takes_logits)
      : scores_(e.operand(0)),
        around_(split_at(scores_.extents(), scores_.rank() == 1 ? 0 : 1)),
        weights_(e.has(2) ? e.numbers(2) : std::vector<double>{}),
        row_(around_.extent, e.memory().resource()),
        takes_logits_(takes_logits) {}

  std::size_t count() const { return around_.extent; }
  std::size_t positions() const { return around_.outer * around_.inner; }
  double weight(std::size_t k) const { return weights_.empty() ? 1 : weights_[k]; }
  /// Where class `k` of a position lies.
  std::size_t index(std::size_t position, std::size_t k) const {
    return (position / around_.inner * around_.extent + k) * around_.inner + position % around_.inner;
  }
  /// Logarithms of the probabilities of a position.
  std::span<const double> at(std::size_t position) {
    for (std::size_t k = 0; k < row_.size(); ++k) row_[k] = number_at(scores_, index(position, k));
    if (!takes_logits_) return row_;
    double best = -HUGE_VAL, sum = 0;
    for (const double x : row_) best = x > best || x != x ? x : best;
    for (const double x : row_) sum += std::exp(x - best);
    const double log_sum = std::log(sum);
    for (double& x : row_) x = (x - best) - log_sum;
    return row_;
  }

 private:
  const HostTensor& scores_;
  AxisSplit around_;
  std::vector<double> weights_;  ///< one a class; none: all 1
  List<double> row_;
  bool takes_logits_;
};

/// -weight * logarithm of the class that each position names; `smoothing` of the loss goes to all classes alike.
void index_loss(Evaluation& e, Classes& classes, double smoothing) {
  const std::vector<std::int64_t> labels = e.integers(1);
  const std::int64_t ignored = e.in().int_attribute("ignore_index", -100);
  LossReduction reduction(e);
  double weights = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    double loss = 0;
    if (labels[i] != ignored) {
      if (labels[i] < 0 || labels[i] >= static_cast<std::int64_t>(classes.count()))
        e.fail("label {} is outside the {} classes", labels[i], classes.count());
      const auto label = static_cast<std::size_t>(labels[i]);
      const std::span<const double> logarithms = classes.at(i);
      loss = -(1 - smoothing) * classes.weight(label) * logarithms[label];
      for (std::size_t k = 0; smoothing > 0 && k < classes.count(); ++k)
        loss -= smoothing / static_cast<double>(classes.count()) * classes.weight(k) * logarithms[k];
      weights += classes.weight(label);
    }
    reduction.add(i, 1, &loss);
  }
  reduction.finish(weights);
}

/// -weight * probability * logarithm, summed over the classes of each position.
void probability_loss(Evaluation& e, Classes& classes, double smoothing) {
  const HostTensor& target = e.operand(1);
  const auto count = static_cast<double>(classes.count());
  LossReduction reduction(e);
  for (std::size_t i = 0; i < classes.positions(); ++i) {
    const std::span<const double> logarithms = classes.at(i);
    double loss = 0;
    for (std::size_t k = 0; k < classes.count(); ++k) {
      const double probability = number_at(target, classes.index(i, k)) * (1 - smoothing) + smoothing / count;
      loss -= classes.weight(k) * probability * logarithms[k];
    }
    reduction.add(i, 1, &loss);
  }
  reduction.finish(static_cast<double>(classes.positions()));
}

void cross_entropy_loss(Evaluation& e) {
  Classes classes(e, true);
  const double smoothing = e.in().float_attribute("label_smoothing", 0);
  if (is_float(e.operand(1).dtype())) return probability_loss(e, classes, smoothing);
  index_loss(e, classes, smoothing);
}

void nll_loss(Evaluation& e) {
  Classes classes(e, false);
  index_loss(e, classes, 0);
}

Evaluator loss(std::string_view name, EvaluateFunction evaluate) {
  return Evaluator(name, kDomain).evaluate(evaluate).error(Rounding::composite());
}

const RegisterEvaluators kOwn{
    loss("MseLoss", mse_loss),
    loss("L1Loss", l1_loss),
    loss("SmoothL1Loss", smooth_l1_loss),
    loss("HuberLoss", huber_loss),
    loss("BceLoss", bce_loss),
    loss("BceWithLogitsLoss", bce_with_logits_loss),
    loss("KlDivLoss", kl_div_loss),
    loss("CrossEntropyLoss", cross_entropy_loss),
    loss("NllLoss", nll_loss),
    Evaluator("Transfer", kDomain).evaluate(transfer).error(Rounding::exact()),
};

}  // namespace
}  // namespace tensorlint::runtime
