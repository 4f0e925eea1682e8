#include "runtime/executor/sides.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "passes/losses/expressions.h"
#include "passes/placement/explicit_transfers.h"
#include "passes/placement/minimum_cut.h"
#include "passes/placement/nominal_work.h"
#include "runtime/executor/execution_plan.h"

namespace tensorlint::runtime {
namespace {

using placement::MinimumCut;
using Vertex = MinimumCut::Vertex;
constexpr Vertex kDevice = MinimumCut::kSource, kHost = MinimumCut::kSink;

/// One graph, split between the device and the interpreter.
class Split {
 public:
  Split(const dataflow::Analysis& analysis, const Readers& readers, const losses::Expressions& expressions)
      : model_(analysis.model()), readers_(readers), expressions_(expressions), work_(analysis) {}

  void add(const KernelCall& call) {
    const Vertex side = cut_.add_vertex();
    sides_[call.node] = side;
    for (const CallResult& result : call.results) made_by_[result.value] = side;
    double host = 0, device = 0;
    for (const std::vector<NodeId>* const nodes : {&call.nodes, &call.unused}) {
      for (const NodeId node : *nodes) {
        within_calls_.insert(node);
        for (const ValueId operand : model_.operands(model_.node(node))) host += bytes_of(operand);
        for (const ValueId result : model_.results(model_.node(node))) host += bytes_of(result);
        host += work_.products_of(model_.node(node), expressions_.op(node)) / placement::kProductsPerByte;
      }
    }
    for (const CallOperand& operand : call.operands) {
      if (operand.value != ValueId::kAbsent) reads_[operand.value].insert(operand.is_prepared() ? kHost : side);
      if (operand.is_prepared()) device += bytes_of(operand.value) + placement::kCopyOverhead;
    }
    if (report_bytes(call) > 0) device += placement::kCopyOverhead;
    cut_.add_edge(kDevice, side, placement::cut_weight(host, 1));
    cut_.add_edge(side, kHost, placement::cut_weight(device, 1));
  }

  /// After all calls.
  void solve(GraphId graph, std::set<NodeId>& host_calls) {
    for (const NodeId node : model_.graph(graph).nodes) {
      if (within_calls_.contains(node)) continue;
      for (const ValueId operand : model_.operands(model_.node(node))) reads_[operand].insert(kHost);
      for (const ValueId captured : readers_.captured(node)) reads_[captured].insert(kHost);
    }
    for (const ValueId output : model_.graph(graph).outputs) reads_[output].insert(kHost);
    for (const auto& [value, readers] : reads_) add_copies(value, readers);
    if (!cut_.solve(placement::kCutSteps + placement::kCutStepsPerEdge * cut_.edges())) return;
    for (const auto& [node, side] : sides_)
      if (!cut_.on_source_side(side)) host_calls.insert(node);
  }

 private:
  double bytes_of(ValueId value) { return value == ValueId::kAbsent ? 0 : work_.bytes_of(value); }

  /// One copy serves all readers on the other side.
  void add_copies(ValueId value, const std::set<Vertex>& readers) {
    if (value == ValueId::kAbsent) return;
    const auto made = made_by_.find(value);
    const Vertex own = made == made_by_.end() ? kHost : made->second;
    const std::int64_t cost = placement::cut_weight(bytes_of(value) + placement::kCopyOverhead, 1);
    const Vertex down = cut_.add_vertex(), up = cut_.add_vertex();
    cut_.add_edge(own, down, cost);
    cut_.add_edge(up, own, cost);
    for (const Vertex reader : readers) {
      if (reader == own) continue;
      cut_.add_edge(down, reader, MinimumCut::kInfinite);
      cut_.add_edge(reader, up, MinimumCut::kInfinite);
    }
  }

  const Model& model_;
  const Readers& readers_;
  const losses::Expressions& expressions_;
  placement::NominalWork work_;
  MinimumCut cut_;
  std::map<NodeId, Vertex> sides_;
  std::map<ValueId, Vertex> made_by_;
  std::map<ValueId, std::set<Vertex>> reads_;
  std::set<NodeId> within_calls_;
};

}  // namespace

std::set<NodeId> calls_not_worth_copies(const dataflow::Analysis& analysis, const Readers& readers,
                                        const std::map<NodeId, KernelCall>& calls) {
  std::map<GraphId, std::vector<const KernelCall*>> by_graph;
  for (const auto& [node, call] : calls) by_graph[analysis.model().node(node).graph].push_back(&call);
  const losses::Expressions expressions(analysis);
  std::set<NodeId> host_calls;
  for (const auto& [graph, of_graph] : by_graph) {
    Split split(analysis, readers, expressions);
    for (const KernelCall* const call : of_graph) split.add(*call);
    split.solve(graph, host_calls);
  }
  return host_calls;
}

}  // namespace tensorlint::runtime
