#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "passes/losses/axis_origins.h"

namespace tensorlint::losses {

/// Mistakes about axes that need no known loss, only numbers that are computed from them: what one sample gives depends
/// on the others of its batch, or probabilities are read along another axis than the one along which they add up to 1.
struct AxisMistake {
  enum class Kind : std::uint8_t {
    kCumulative,          ///< sums over the samples so far
    kExtremeOfAll,        ///< the largest of the whole batch, for each sample
    kNormOfAll,           ///< samples are scaled by one norm of the whole batch
    kNormOfBatch,         ///< features are scaled by norms over the batch, and then summed
    kLogSumExpOfBatch,    ///< likelihoods of different samples are added up
    kDistanceOfColumns,   ///< one distance for each feature, over the batch
    kMarginOfSums,        ///< distances or products over the batch under a hinge
    kWeighsTotal,         ///< weights of single samples are multiplied with one loss of all
    kFocalOfTotal,        ///< a focal factor of the mean of all samples' losses, and not of each loss
    kBestOfTotals,        ///< the smaller one of two losses of all samples
    kMarginOfTotals,      ///< distances of whole batches under a hinge
    kProjectedOnAll,      ///< samples are scaled by one product of the whole batch
    kComparedNorms,       ///< norms over the batch less a number
    kExpectationOfBatch,  ///< an expectation that is summed over the batch
    kStepsOfBatch,        ///< a recurrent layer whose steps are the samples
    kSelectedElsewhere,   ///< a softmax over the batch, of which classes are picked
    kSummedElsewhere,     ///< a softmax whose log-probabilities or weights are summed over another axis
    kAttention,           ///< the weights of an average do not add up to 1 along what is averaged
    kSingleScores,        ///< a softmax of one score of each sample, over the batch
    kTurnedByView,        ///< a Reshape for a Transpose
    kTurnedByOneHead,     ///< maps of two heads become rows: `node` views one of them as it is, `meets` turns the other
    kPartsByView,         ///< parts that are joined along the batch, separated as if they were features
    kFlattenedClasses,    ///< rows of pixels instead of rows of classes
    kRowsByClass,         ///< class indices that pick samples
    kRowsOfFirstColumn,   ///< the same along axis 0, which leaves the first class
    kColumnsByClass,      ///< class indices of all samples that pick for each sample
    kCrossedAxes,         ///< axis `axes` of `value` meets axis `other` of `partner`, and is its axis `right`
    kNormElsewhere,       ///< vectors are scaled by norms over another axis than the one that their product sums over
    kSummedOverMore,      ///< weights of an average add up to 1 along one of two axes that are summed
    kAttentionOfBatch,    ///< queries and keys are the samples
    kPositionsOfBatch,    ///< a position for each sample, and the same for all steps
    kStepsAsChannels,     ///< a convolution takes time for its channels
    kFlattenedOrder,      ///< axis `axes` of `value` meets axis `right` of `partner`, flattened in another order
    kSeparatedOrder,      ///< a flattened axis is viewed as the axes that it was made of, in another order
    kTurnedPicture,       ///< height and width are exchanged in `value`, and not in `partner`
    kWeightsOfClasses,    ///< one number for each class, of axis `right` of `partner`, meets the losses of samples
    kLogarithmOfMean,     ///< the logarithm of the mean of the probabilities of all samples
    kSquareOfMean,        ///< differences of both signs are averaged before their size is taken
    kDivergenceOfBatch,   ///< a sum of each sample's classes is taken over the batch
    kLargestOfBatch,      ///< of probabilities, the largest sample of each class
    kRatioOfPixels,       ///< sums over the batch are divided, for each pixel
    kStandardisedOverBatch,  ///< less the mean and by the deviation over the batch, of several axes each
    kGateOfBatch,            ///< one gate for all samples
    kDeviationOfFeatures,    ///< a bound of deviations over features, not over samples
    kClassesElsewhere,       ///< a softmax along `axes` meets one-hot labels `partner` along `other`
    kSummedOverClasses,      ///< products [N, M, D] of samples and classes, summed over the classes
    kCentredOverBatch,       ///< signals less their means over the batch, whose products are summed along time
    kCorrelationOfSamples,   ///< features that are standardised over the batch, multiplied within samples
    kCorrelationOfLayers,    ///< samples that are standardised over their features, multiplied over the batch
    kOneForPair,             ///< numbers of all pairs of samples less one number of each sample
  };

  Kind kind;
  NodeId node = NodeId::kNone;  ///< works along `axes` of `value`
  ValueId value = ValueId::kAbsent;
  std::vector<std::size_t> axes;
  bool is_batch = false;         ///< an axis of `axes` is the batch
  NodeId meets = NodeId::kNone;  ///< where that is wrong
  std::size_t other = 0;         ///< the axis that is picked from or summed there
  ValueId partner = ValueId::kAbsent;
  std::size_t right = 0;
  std::optional<std::size_t> moved_from{};  ///< of a softmax: the axis of `value` that has become `other`, another one

  /// The axis of `value` that is picked from or summed.
  std::size_t own_axis() const { return moved_from.value_or(other); }
};

/// Looks at what goes into `outputs`, which are numbers. In the order of nodes, one for each node.
std::vector<AxisMistake> find_axis_mistakes(const Expressions& expressions, AxisOrigins& origins,
                                            std::span<const ValueId> outputs);

}  // namespace tensorlint::losses
