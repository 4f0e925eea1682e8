#include "passes/dataflow/body_cache.h"

#include <algorithm>
#include <utility>

namespace tensorlint::dataflow {
namespace {

constexpr std::uint8_t kVisitsBeforeKept = 4;                    // of one body: few loops stand in others
constexpr std::size_t kMaxKeptVisits = 64;                       // of one body
constexpr std::size_t kRoomAtLeast = 1 << 20, kRoomPerNode = 8;  // values of kept visits: 8 bytes each

}  // namespace

BodyCache::BodyCache(const Model& model, const BodiesByGraph& bodies)
    : model_(model),
      bodies_(bodies),
      first_visits_(model.graphs.size()),
      room_(std::max<std::size_t>(kRoomAtLeast, kRoomPerNode * model.nodes.size())) {}

const std::vector<AbstractValue>* BodyCache::Body::find(std::span<const AbstractValue> given,
                                                        std::uint64_t& compared) const {
  for (const Visit& visit : visits) {
    const auto [known, differs] = std::ranges::mismatch(visit.given, given);
    compared += 1 + static_cast<std::uint64_t>(differs - given.begin());
    if (known == visit.given.end() && differs == given.end()) return &visit.outputs;
  }
  return nullptr;
}

BodyCache::Body* BodyCache::visit(GraphId id, std::uint64_t call) {
  std::uint8_t& visits = first_visits_[static_cast<std::size_t>(id)];
  if (visits < kVisitsBeforeKept) {
    ++visits;
    return nullptr;
  }
  const auto [place, is_new] = kept_.try_emplace(id);
  Body& body = place->second;
  if (is_new) {
    body.captures = captures_of(id);
    body.is_too_large = !take_room(body.captures.size());
    if (body.is_too_large) body.captures = {};
  }
  if (body.is_too_large) return nullptr;
  if (std::exchange(body.call, call) != call) {
    for (const Visit& visit : body.visits) room_ += visit.given.size() + visit.outputs.size();
    body.visits.clear();
  }
  return &body;
}

void BodyCache::keep(Body& body, std::vector<AbstractValue> given, const std::vector<AbstractValue>& outputs) {
  if (body.visits.size() < kMaxKeptVisits && take_room(given.size() + outputs.size()))
    body.visits.push_back({std::move(given), outputs});
}

bool BodyCache::take_room(std::size_t values) {
  if (values > room_) return false;
  room_ -= values;
  return true;
}

std::vector<ValueId> BodyCache::captures_of(GraphId body) const {
  std::vector<GraphId> graphs{body};
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const std::vector<GraphId>& nested = bodies_[graphs[g]];
    graphs.insert(graphs.end(), nested.begin(), nested.end());
  }
  std::vector<GraphId> inside = graphs;
  std::sort(inside.begin(), inside.end());
  std::vector<ValueId> captures;
  const auto add = [&](ValueId value) {
    if (value != ValueId::kAbsent && !std::binary_search(inside.begin(), inside.end(), model_.value(value).graph))
      captures.push_back(value);
  };
  for (const GraphId id : graphs) {
    const Graph& graph = model_.graph(id);
    for (const NodeId node : graph.nodes)
      for (const ValueId operand : model_.operands(model_.node(node))) add(operand);
    for (const ValueId output : graph.outputs) add(output);
  }
  std::sort(captures.begin(), captures.end());
  captures.erase(std::unique(captures.begin(), captures.end()), captures.end());
  return captures;
}

}  // namespace tensorlint::dataflow
