#include "passes/losses/gradient_reach.h"

#include <algorithm>
#include <string_view>

namespace tensorlint::losses {
namespace {

IdVector<ValueId, bool> reached_from(const dataflow::Analysis& analysis, const std::vector<ValueId>& parameters) {
  const Model& model = analysis.model();
  IdVector<ValueId, bool> reached(model.values.size());
  std::vector<ValueId> pending;
  const auto reach = [&](ValueId value) {
    if (value == ValueId::kAbsent || reached[value] || !carries_gradients(analysis, value)) return;
    reached[value] = true;
    pending.push_back(value);
  };
  IdVector<NodeId, std::vector<GraphId>> bodies(model.nodes.size());
  for (const GraphId id : model.graphs.ids())
    if (model.graph(id).owner != NodeId::kNone) bodies[model.graph(id).owner].push_back(id);
  for (const ValueId parameter : parameters) reach(parameter);
  while (!pending.empty()) {
    const ValueId value = pending.back();
    pending.pop_back();
    for (NodeId user : analysis.users(value)) {
      while (user != NodeId::kNone) {
        for (const ValueId result : analysis.results(user)) reach(result);
        for (const GraphId body : bodies[user])
          for (const ValueId input : analysis.inputs(body)) reach(input);
        user = model.graph(model.node(user).graph).owner;
      }
    }
  }
  return reached;
}

}  // namespace

std::vector<ValueId> trained_parameters(const Model& model) {
  constexpr std::string_view kKey = "tensorlint.requires_grad";
  std::vector<ValueId> parameters;
  if (model.graphs.empty() || model.provenance == nullptr || !model.provenance->mentions(kKey)) return parameters;
  const Graph& main = model.graph(GraphId::kMain);
  std::vector<ValueId> candidates = main.inputs;
  candidates.insert(candidates.end(), main.initializers.begin(), main.initializers.end());
  std::ranges::sort(candidates);
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (const ValueId value : candidates) {
    const std::vector<MetadataEntry> entries = model.provenance->value_metadata(value);
    const auto is_trained = [kKey](const MetadataEntry& entry) { return entry.key == kKey && entry.value == "true"; };
    if (std::ranges::any_of(entries, is_trained)) parameters.push_back(value);
  }
  return parameters;
}

GradientReach find_gradient_reach(const dataflow::Analysis& analysis) {
  GradientReach reach{.parameters = trained_parameters(analysis.model()), .reached = {}};
  if (!reach.parameters.empty()) reach.reached = reached_from(analysis, reach.parameters);
  return reach;
}

bool carries_gradients(const dataflow::Analysis& analysis, ValueId value) {
  const Fact& fact = analysis.fact(value);
  return fact.kind != ValueKind::kTensor || !fact.dtypes.proves(DTypeSet::integers() | DType::kBool);
}

NodeId where_gradients_stop(const dataflow::Analysis& analysis, ValueId value) {
  constexpr int kLongestWay = 64;
  NodeId stop = NodeId::kNone;
  for (int step = 0; step < kLongestWay && value != ValueId::kAbsent; ++step) {
    const bool carries = carries_gradients(analysis, value);
    const NodeId producer = analysis.model().value(value).producer;
    if (producer == NodeId::kNone || (carries && stop != NodeId::kNone)) return stop;
    if (!carries) stop = producer;
    const auto operands = analysis.operands(producer);
    value = operands.empty() ? ValueId::kAbsent : operands[0];
  }
  return stop;
}

}  // namespace tensorlint::losses
