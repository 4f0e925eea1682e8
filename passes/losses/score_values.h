#pragma once

#include <map>
#include <optional>
#include <utility>

#include "passes/losses/expressions.h"
#include "passes/losses/formula.h"

namespace tensorlint::losses {

/// Which numbers come up in a value as the scores of layers vary. One element is evaluated as a formula at sample
/// points: scores are free, and what else it is made of (inputs, norms, probabilities) has to give the same answer
/// wherever it lies. So clamps, roots of squares, selections and additions of a guard are seen as what they do.
class ScoreValues {
 public:
  explicit ScoreValues(const Expressions& expressions) : expressions_(expressions) {}

  struct Reach {
    bool negative = false, positive = false;  ///< clearly below and above 0
    bool beyond_one = false;                  ///< clearly above 1 or below -1
    /// The same for labels and weights between 0 and 1, where they matter.
    bool may_be_negative = false, may_be_positive = false;
    /// Both, and that by adding scores up.
    bool sums_cross_zero = false;
    /// Exactly 0 or below for some scores and any data, and above 0 for others; at scores that are not large, or only
    /// where a squashing function gives its limit.
    bool comes_to_zero = false, saturates_at_zero = false;
    NodeId normaliser = NodeId::kNone;  ///< what makes probabilities that it is computed from
    /// All that it is computed from is followed, and nothing of it is negative.
    bool never_negative = false;
    bool is_share = false;         ///< divided by a norm or a sum of positive numbers on the way
    NodeId layer = NodeId::kNone;  ///< where one of the scores comes from; kNone where there are none
  };
  Reach of(ValueId value);

  /// The layer whose outputs, moved or picked, the value is; kNone where it is something else.
  NodeId layer_of(ValueId value) const;

 private:
  enum class LeafKind { kOther, kScore, kGreatest, kLeast, kPositive, kProbability };
  struct Leaf {
    std::size_t part = 0;
    LeafKind kind = LeafKind::kOther;
    NodeId layer = NodeId::kNone, normaliser = NodeId::kNone;
    bool is_sum = false, is_share = false, is_gram = false;
  };

  Reach evaluate(ValueId value);
  Leaf read_leaf(ValueId value);
  /// The probabilities that a sum over the classes picks one of, by a one-hot factor; kAbsent for any other sum.
  ValueId picked_by_one_hot(ValueId summed) const;
  bool picks(NodeId node) const;
  bool is_layer(NodeId node) const;
  bool is_product_of_vectors(NodeId node) const;
  NodeId lookup_of(ValueId value) const;
  bool is_counted(ValueId value) const;
  bool is_gram(NodeId node) const;
  bool comes_from_layer(ValueId value) const;
  bool is_weight(ValueId value) const;

  static constexpr int kMaxDepth = 6;

  const Expressions& expressions_;
  struct Known {
    Reach reach;
    int levels;  ///< of values, itself the first
  };
  std::map<ValueId, Known> known_;                          ///< of values that are followed to their ends
  std::map<std::pair<ValueId, int>, Reach> known_so_deep_;  ///< of the others, by the depth that they are met at
  int depth_ = 0;
  int deepest_ = 0;       ///< level that was needed for what is evaluated
  bool was_cut_ = false;  ///< what is evaluated is one of the others
};

}  // namespace tensorlint::losses
