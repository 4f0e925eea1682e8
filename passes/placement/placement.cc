#include "passes/placement/placement.h"

#include <algorithm>

#include "passes/placement/device_lattice.h"
#include "passes/placement/placer.h"

namespace tensorlint {
namespace {

constexpr int kMaxPasses = 8;  // until every trip count has enough classes

}  // namespace

std::vector<std::string> Placement::devices(ValueId value) const {
  if (!any_source_) return {sources_.names()[static_cast<std::size_t>(sources_.default_device())]};
  const std::uint64_t bits = devices_[static_cast<std::size_t>(value)];
  std::vector<std::string> names;
  if (bits == kAnywhere) return names;
  for (std::size_t d = 0; d < sources_.names().size(); ++d)
    if ((bits >> d) & 1U) names.push_back(sources_.names()[d]);
  std::sort(names.begin(), names.end());
  return names;
}

Origin Placement::origin(const Analysis& analysis, ValueId value, std::string_view device) const {
  const Model& model = analysis.model();
  const auto& names = sources_.names();
  const auto at = std::find(names.begin(), names.end(), device);
  const int number = at == names.end() ? -1 : static_cast<int>(at - names.begin());
  if (number < 0 || devices_.empty()) return {value, model.value(value).producer};
  const auto on_device = [&](ValueId candidate) { return candidate != ValueId::kAbsent && on(candidate, number); };
  // Walks from body to body: bounded, since carried values lead back to themselves.
  for (std::size_t steps = 0; steps < 10'000; ++steps) {
    const Value& self = model.value(value);
    if (self.origin != ValueOrigin::kNode) {
      const Graph& graph = model.graph(self.graph);
      if (self.origin != ValueOrigin::kInput || graph.kind != GraphKind::kSubgraph || graph.owner == NodeId::kNone)
        return {value, NodeId::kNone};
      // A body's input: the carried value's start, else what the body hands on.
      const Node& owner = model.node(graph.owner);
      const std::string_view op = model.text(model.op(owner).name);
      const auto operands = model.operands(owner);
      const std::size_t start = self.result_index;
      if (start < operands.size() && on_device(operands[start])) {
        value = operands[start];
        continue;
      }
      const std::size_t output = op == "Loop" ? start - std::min<std::size_t>(start, 1) : start;
      if (output < graph.outputs.size() && on_device(graph.outputs[output])) {
        value = graph.outputs[output];
        continue;
      }
      return {value, NodeId::kNone};
    }
    const NodeId producer = self.producer;
    const Node& node = model.node(producer);
    const std::string_view op = model.text(model.op(node).name);
    if (sources_.node(producer) != DeviceSources::kUnplaced || op == "Transfer") return {value, producer};
    ValueId source = ValueId::kAbsent;
    const std::string_view domain = model.text(model.op(node).domain);
    if (domain.empty() && (op == "If" || op == "Loop" || op == "Scan")) {
      for (const Attribute& attribute : model.attributes(node)) {
        if (attribute.kind != AttributeKind::kGraph || attribute.graph == GraphId::kNone || source != ValueId::kAbsent)
          continue;
        const Graph& body = model.graph(attribute.graph);
        const std::size_t output = self.result_index + (op == "Loop" ? 1 : 0);
        if (output < body.outputs.size() && on_device(body.outputs[output])) source = body.outputs[output];
      }
      const std::size_t start = self.result_index + (op == "Loop" ? 2 : 0);
      if (source == ValueId::kAbsent && op != "If" && start < node.operand_count &&
          on_device(model.operands(node)[start]))
        source = model.operands(node)[start];
    } else if (op != "Shape" && op != "Size") {
      for (const ValueId operand : model.operands(node))
        if (source == ValueId::kAbsent && on_device(operand)) source = operand;
    }
    if (source == ValueId::kAbsent) return {value, producer};
    value = source;
  }
  return {value, model.value(value).producer};
}

Placement place(const Analysis& analysis, const PlacementOptions& options) {
  std::map<std::uint64_t, TripClasses> classes;
  for (int pass = 1;; ++pass) {
    Placement placement(analysis, options);
    placement.any_source_ = placement.sources_.any() || options.default_device != "cpu";
    if (!placement.any_source_) return placement;
    if (Placer(analysis, placement, classes).run() || pass == kMaxPasses) return placement;
  }
}

}  // namespace tensorlint
