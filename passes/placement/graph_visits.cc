#include "passes/placement/graph_visits.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ir/graph/region_op.h"
#include "passes/dataflow/order.h"
#include "passes/placement/explicit_transfers.h"
#include "passes/placement/tensor_facts.h"

namespace tensorlint::placement {
namespace {

constexpr std::int64_t kMostTrips = 1'000'000;
constexpr double kMostVisits = 1e30;  // finite, however deep loops are nested

double trips_of(const dataflow::Analysis& analysis, NodeId owner) {
  const Model& model = analysis.model();
  const Node& node = model.node(owner);
  const RegionOp region = region_op(model, node);
  if (region.kind == RegionKind::kIf) return 1;
  if (const auto known = known_integer(analysis, value_at(model.operands(node), region.trip_count_operand)))
    return static_cast<double>(std::clamp<std::int64_t>(*known, 0, kMostTrips));
  return static_cast<double>(kNominalExtent);
}

}  // namespace

std::optional<GraphVisits> count_visits(const dataflow::Analysis& analysis) {
  const Model& model = analysis.model();
  const auto graphs = ids_below<GraphId>(model.graphs.size());
  IdVector<GraphId, std::vector<std::pair<GraphId, double>>> inner(model.graphs.size());  // that one visit visits
  IdVector<GraphId, std::uint32_t> waiting(model.graphs.size());
  const auto visits = [&](GraphId from, GraphId to, double times) {
    inner[from].emplace_back(to, times);
    ++waiting[to];
  };
  for (const GraphId id : graphs)
    if (const Graph& graph = model.graph(id); graph.kind == GraphKind::kSubgraph)
      visits(graph.parent, id, trips_of(analysis, graph.owner));
  for (const Node& node : model.nodes)
    if (const GraphId function = model.op(node).function; function != GraphId::kNone) visits(node.graph, function, 1);
  GraphVisits found{.times = IdVector<GraphId, double>(model.graphs.size(), 0), .functions = {}};
  found.times[GraphId::kMain] = 1;
  std::vector<GraphId> ready;
  for (const GraphId id : graphs)
    if (waiting[id] == 0) ready.push_back(id);
  for (std::size_t at = 0; at < ready.size(); ++at) {
    const GraphId graph = ready[at];
    if (model.graph(graph).kind == GraphKind::kFunction && found.times[graph] > 0) found.functions.push_back(graph);
    for (const auto& [body, times] : inner[graph]) {
      found.times[body] = std::min(found.times[body] + found.times[graph] * times, kMostVisits);
      if (--waiting[body] == 0) ready.push_back(body);
    }
  }
  if (ready.size() < model.graphs.size()) return std::nullopt;
  std::ranges::reverse(found.functions);
  return found;
}

}  // namespace tensorlint::placement
