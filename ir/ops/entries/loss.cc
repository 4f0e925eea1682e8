// Losses over classes. Source: ONNX SoftmaxCrossEntropyLoss (12, 13), NegativeLogLikelihoodLoss (12, 13, 22).
#include <algorithm>
#include <cmath>

#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kLossScores{"loss_scores_rank", ConstraintKind::kRank, "scores have batch and class axes", true};
const Constraint kLossLabels{"loss_labels_shape", ConstraintKind::kShapes,
                             "labels have the scores' shape without the class axis", true};
const Constraint kLossWeights{"loss_weights_shape", ConstraintKind::kShapes, "one weight a class"};
const Constraint kLossClass{"loss_class_in_range", ConstraintKind::kClassRange,
                            "0 <= label < number of classes, or label = ignore_index"};

/// A label that is outside [0, classes) in every execution fails; what may be ignored is let through.
void check_classes(Inference& in, Dim classes) {
  DimPool& pool = in.dims();
  const Bounds count = pool.bounds(classes);
  const auto ignored = in.int_attribute("ignore_index");
  const auto outside = [&](Bounds label) {
    if (ignored && label.contains(*ignored)) return false;
    return label.hi < 0 || label.lo >= count.hi;
  };
  const auto report = [&](Argument label) {
    const Message legal = ignored ? Message(" and is not ignore_index = {}", *ignored) : Message();
    in.fail(kLossClass, {1, 0},
            {"label {} in {} is outside the {} classes of {}{}", std::move(label), OperandRef(1), classes,
             OperandRef(0), legal});
  };
  if (const auto labels = in.elements(1)) {
    for (const Dim label : *labels) {
      if (!outside(pool.bounds(label))) continue;
      report(Index(label));
      return;
    }
  }
  // All labels lie in the range, and there is at least one.
  const auto shape = in.shape(1);
  const Range range = in.operand(1).range;
  const bool some =
      shape && std::all_of(shape->begin(), shape->end(), [&](Dim dim) { return pool.bounds(dim).lo >= 1; });
  if (!some || std::isnan(range.lo) || std::isnan(range.hi) || range.lo > range.hi) return;
  const bool may_be_ignored =
      ignored && range.lo <= static_cast<double>(*ignored) && static_cast<double>(*ignored) <= range.hi;
  if (may_be_ignored || in.elements(1)) return;
  const bool above = count.hi < (std::int64_t{1} << 53) && range.lo >= static_cast<double>(count.hi);
  if (range.hi < 0 || above) report(Message("in {}", range));
}

void class_loss(Inference& in) {
  const auto scores = in.shape(0), labels = in.shape(1), weights = in.shape(2);
  const std::string_view reduction = in.string_attribute("reduction", "mean");
  if (scores && scores->size() < 2) {
    in.fail(kLossScores, {0},
            {"{} has rank {}, {} needs batch and class axes", OperandRef(0), scores->size(), in.call().name});
    return;
  }
  std::optional<Dims> each;
  if (labels) each = copy_dims(*labels);
  if (scores) {
    Dims expected{scores->front()};
    expected.insert(expected.end(), scores->begin() + 2, scores->end());
    if (!each) each = expected;
    if (labels && labels->size() != expected.size()) {
      in.fail(kLossLabels, {1, 0},
              {"labels {} of shape {} for scores {} of shape {}: shape {} needed", OperandRef(1), *labels,
               OperandRef(0), *scores, expected});
      each = expected;
    } else if (labels) {
      for (std::size_t i = 0; i < expected.size(); ++i)
        (*each)[i] = same_extent(in, expected[i], (*labels)[i], 0, 1, kLossLabels,
                                 {"scores and labels along axis {} of the labels", Axis(i)});
    }
    if (weights && weights->size() != 1) {
      in.fail(kLossWeights, {2}, {"weights {} have rank {}, they have to have 1 axis", OperandRef(2), weights->size()});
    } else if (weights) {
      same_extent(in, (*scores)[1], weights->front(), 0, 2, kLossWeights, {"classes and weights"});
    }
    check_classes(in, (*scores)[1]);
  }
  if (reduction == "none") {
    if (each) in.set_shape(0, *each);
  } else if (reduction == "mean" || reduction == "sum") {
    in.set_shape(0, {});
  }
}

/// Without weights each loss is at least 0; the mean over nothing is NaN.
void softmax_cross_entropy(Inference& in) {
  class_loss(in);
  if (!in.has(2)) in.set_range(0, {0, HUGE_VAL, true});
  if (in.result_count() < 2) return;
  if (const auto scores = in.shape(0)) in.set_shape(1, *scores);
  in.set_range(1, {-HUGE_VAL, 0, true});
}

OpEntry class_loss_entry(std::string_view name, LossKind kind, std::string_view scores, std::string_view labels,
                         InferFunction function) {
  return OpEntry(name)
      .loss(kind, scores, labels)
      .infer(function)
      .constraint(kLossScores)
      .constraint(kLossLabels)
      .constraint(kLossWeights)
      .constraint(kLossClass);
}

const RegisterOps kRegisterLoss{
    class_loss_entry("SoftmaxCrossEntropyLoss", LossKind::kCrossEntropy, "scores", "labels", softmax_cross_entropy),
    class_loss_entry("NegativeLogLikelihoodLoss", LossKind::kNegativeLogLikelihood, "input", "target", class_loss),
};

}  // namespace
}  // namespace tensorlint::ops
