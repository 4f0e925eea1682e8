#pragma once

#include <optional>
#include <vector>

#include "base/id_vector.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint::placement {

/// How often the graphs of a model run in one run of the model, both branches of an If included; a trip count that is
/// not known counts as kNominalExtent.
struct GraphVisits {
  IdVector<GraphId, double> times;
  std::vector<GraphId> functions;  ///< that are called, callees first
};

/// nullopt where functions call themselves.
std::optional<GraphVisits> count_visits(const dataflow::Analysis& analysis);

}  // namespace tensorlint::placement
