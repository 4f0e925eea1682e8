#pragma once

#include <optional>

#include "passes/losses/axis_origins.h"
#include "passes/losses/loss_sites.h"

namespace tensorlint::losses {

/// Two values of a loss, one of which is stretched along an axis that the loss did not mean.
struct LossBroadcast {
  NodeId node = NodeId::kNone;  ///< where they meet
  ValueId first = ValueId::kAbsent, second = ValueId::kAbsent;
  /// True: every element of one meets every element of the other, [N, 1] and [N]. False: `second` has one element where
  /// `first` has several, [N, C] and [N, 1].
  bool all_pairs = true;
  bool is_weight = false;  ///< the two are not prediction and target
};

/// The first one in a loss, if it has one. All pairs of one value's elements, of two values that are both turned or
/// given an axis for it, and one number for a whole row where an axis is added on purpose are what a program means.
std::optional<LossBroadcast> find_broadcast(const Expressions& expressions, AxisOrigins& origins, const LossSite& site);

/// The same in what an output sums up, whether or not it is a loss that is known: two values that both have the batch
/// meet as [N, 1] and [N], in a place that is not a similarity of pairs.
std::optional<LossBroadcast> find_broadcast_in_sum(const Expressions& expressions, AxisOrigins& origins,
                                                   ValueId output);

}  // namespace tensorlint::losses
