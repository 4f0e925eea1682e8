#pragma once

#include <vector>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {

/// A table whose rows go along the batch: all places of a sample get the same row, by the number of the sample.
struct PositionsOfSamples {
  NodeId node = NodeId::kNone;
  ValueId table = ValueId::kAbsent, data = ValueId::kAbsent;
};
/// Of tables [samples, 1, width] that are added to [samples, places, width], where a loss has one label for each
/// sample.
std::vector<PositionsOfSamples> find_positions_of_samples(const ModelView& view, Reporter& out);

}  // namespace tensorlint::rules
