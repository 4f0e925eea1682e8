#include "passes/placement/placement.h"

#include <algorithm>

#include "ir/graph/region_op.h"
#include "passes/placement/device_lattice.h"
#include "passes/placement/operator_traits.h"
#include "passes/placement/placer.h"
#include "passes/placement/transfer.h"

namespace tensorlint::placement {
namespace {

constexpr int kMaxPasses = 8;  // until every trip count has enough classes

}  // namespace

std::vector<std::string> Placement::devices(ValueId value) const {
  if (!any_source_) return {sources_.name(sources_.default_device())};
  const std::uint64_t bits = devices_[value];
  std::vector<std::string> names;
  if (bits == kAnywhere) return names;
  for (std::size_t d = 0; d < sources_.names().size(); ++d)
    if ((bits >> d) & 1U) names.push_back(sources_.names()[d]);
  std::sort(names.begin(), names.end());
  return names;
}

dataflow::Origin Placement::origin(const dataflow::Analysis& analysis, ValueId value, std::string_view device) const {
  const Model& model = analysis.model();
  const auto& names = sources_.names();
  const auto at = std::find(names.begin(), names.end(), device);
  const int number = at == names.end() ? -1 : static_cast<int>(at - names.begin());
  if (number < 0 || devices_.empty()) return {value, model.value(value).producer};
  const auto on_device = [&](ValueId candidate) { return candidate != ValueId::kAbsent && on(candidate, number); };
  // Walks from body to body. Carried values lead back to themselves: it ends where it meets the value again that it
  // had after the largest power of two of steps (Brent 1980).
  Meter& meter = analysis.facts().meter();
  ValueId met_again = ValueId::kAbsent;
  for (std::size_t steps = 1, power = 1; steps < 10'000 && !meter.is_spent() && value != met_again; ++steps) {
    constexpr std::uint64_t kStepsOfValue = 16;
    meter.charge(kStepsOfValue);
    if (steps == power) {
      met_again = value;
      power *= 2;
    }
    const Value& self = model.value(value);
    if (self.origin != ValueOrigin::kNode) {
      const Graph& graph = model.graph(self.graph);
      if (self.origin != ValueOrigin::kInput || graph.kind != GraphKind::kSubgraph || graph.owner == NodeId::kNone)
        return {value, NodeId::kNone};
      // A body's input: the operand that gives it its first value, else the output that gives it the next.
      const Node& owner = model.node(graph.owner);
      const RegionOp region = region_op(model, owner);
      const auto operand = region.operand_of_input(self.result_index);
      const auto output = region.next_output_of_input(self.result_index);
      if (operand && on_device(model.operands(owner)[*operand])) {
        value = model.operands(owner)[*operand];
      } else if (output && *output < graph.outputs.size() && on_device(graph.outputs[*output])) {
        value = graph.outputs[*output];
      } else {
        return {value, NodeId::kNone};
      }
      continue;
    }
    const NodeId producer = self.producer;
    const Node& node = model.node(producer);
    const Operator& op = model.op(node);
    if (sources_.node(producer) != DeviceSources::kUnplaced || is_transfer(model, op)) return {value, producer};
    ValueId source = ValueId::kAbsent;
    const RegionOp region = region_op(model, node);
    if (region.kind == RegionKind::kIf || is_loop(region.kind)) {
      const std::size_t output = region.output_of_result(self.result_index);
      for (std::size_t g = 0; g < region.graph_count() && source == ValueId::kAbsent; ++g) {
        if (region.graphs[g] == GraphId::kNone) continue;
        const std::vector<ValueId>& outputs = model.graph(region.graphs[g]).outputs;
        if (output < outputs.size() && on_device(outputs[output])) source = outputs[output];
      }
      if (source == ValueId::kAbsent && region.is_carried_result(self.result_index)) {
        const ValueId start = model.operands(node)[region.carried_operand(self.result_index)];
        if (on_device(start)) source = start;
      }
    } else if (!device_signature(model, op).has_host_results()) {
      const auto operands = analysis.operands(producer);
      const auto found = std::ranges::find_if(operands, on_device);
      if (found != operands.end()) source = *found;
    }
    if (source == ValueId::kAbsent) return {value, producer};
    value = source;
  }
  return {value, model.value(value).producer};
}

Placement place(const dataflow::Analysis& analysis, const PlacementOptions& options) {
  std::map<std::uint64_t, TripClasses> classes;
  dataflow::NodeOrders orders;
  for (int pass = 1;; ++pass) {
    Placement placement(analysis, options);
    placement.any_source_ = placement.sources_.any() || options.default_device != "cpu";
    if (!placement.any_source_) return placement;
    if (pass == 1) orders = dataflow::order_all_nodes(analysis.model(), analysis.meter());
    if (Placer(analysis, orders, placement, classes).run() || pass == kMaxPasses) return placement;
  }
}

}  // namespace tensorlint::placement
