#include "passes/losses/gradient_way.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "passes/losses/gradient_reach.h"

namespace tensorlint::losses {
namespace {

constexpr std::size_t kMaxValuesOnWay = 20'000;
constexpr std::size_t kMaxStops = 8;
/// Of the meter, to visit a value that is kept in a set.
constexpr std::uint64_t kStepsOfVisit = 8;

bool multiplies(const Expressions& expressions, NodeId node) {
  return expressions.op(node) == Opcode::kMatMul || expressions.op(node) == Opcode::kConv;
}

bool is_weight(const Expressions& expressions, ValueId value) {
  const Value& known = expressions.analysis().model().value(value);
  if (known.initializer == nullptr || known.initializer->element_count().value_or(2) < 2 ||
      !expressions.analysis().fact(value).dtypes.proves(DTypeSet::floats()))
    return false;
  return std::ranges::any_of(expressions.users(value), [&](NodeId user) {
    const Opcode opcode = expressions.op(user);
    if (opcode == Opcode::kTranspose)
      return std::ranges::any_of(expressions.users(expressions.result(user)),
                                 [&](NodeId next) { return multiplies(expressions, next); });
    return multiplies(expressions, user) || (opcode == Opcode::kGather && expressions.operand(user, 0) == value);
  });
}

/// The derivative is zero wherever there is one: rounding, signs, comparisons.
bool is_stepwise(Opcode opcode) {
  return opcode == Opcode::kRound || opcode == Opcode::kSign || opcode == Opcode::kCompare ||
         opcode == Opcode::kArgExtreme || opcode == Opcode::kOneHot;
}

/// What a quantizer makes integers of: the node after it takes the same scale and gives floats again. Training passes
/// gradients straight through such a pair.
ValueId quantized(const Expressions& expressions, ValueId integers) {
  const NodeId node = expressions.producer(integers);
  const ValueId scale = expressions.operand(node, 1);
  if (node == NodeId::kNone || scale == ValueId::kAbsent || expressions.op(node) != Opcode::kOther)
    return ValueId::kAbsent;
  const auto restores = [&](NodeId user) {
    return expressions.result(user) != ValueId::kAbsent && expressions.operand(user, 0) == integers &&
           expressions.operand(user, 1) == scale && !expressions.makes_integers(user);
  };
  return std::ranges::any_of(expressions.users(integers), restores) ? expressions.operand(node, 0) : ValueId::kAbsent;
}

}  // namespace

GradientWays::GradientWays(const Analysis& analysis) : expressions_(analysis), seen_(analysis.model().values.size()) {}

bool GradientWays::has_weights_before(ValueId value) {
  if (!behind_weights_.empty()) return behind_weights_[value];
  const Model& model = expressions_.analysis().model();
  behind_weights_ = IdVector<ValueId, bool>(model.values.size());
  std::vector<ValueId> pending;
  const auto add = [&](ValueId behind) {
    if (behind == ValueId::kAbsent || behind_weights_[behind]) return;
    behind_weights_[behind] = true;
    pending.push_back(behind);
  };
  for (const ValueId id : expressions_.analysis().values())
    if (is_weight(expressions_, id)) add(id);
  while (!pending.empty()) {
    const ValueId at = pending.back();
    pending.pop_back();
    for (const NodeId user : expressions_.analysis().users(at)) {
      // An extent depends on no element.
      if (expressions_.op(user) == Opcode::kShape) continue;
      for (const ValueId result : expressions_.analysis().results(user)) add(result);
    }
  }
  return behind_weights_[value];
}

NodeId GradientWays::cut_before(NodeId node) {
  constexpr int kMaxSteps = 64;
  for (int step = 0; step < kMaxSteps && !expressions_.is_spent(); ++step) {
    expressions_.charge(kStepsOfVisit);
    NodeId before = NodeId::kNone;
    for (const ValueId operand : expressions_.analysis().operands(node)) {
      if (operand == ValueId::kAbsent || !has_weights_before(operand)) continue;
      if (carries_gradients(expressions_.analysis(), operand)) return node;
      if (before == NodeId::kNone) before = expressions_.producer(operand);
    }
    if (before == NodeId::kNone) return node;
    node = before;
  }
  return node;
}

NodeId GradientWays::bypassed(ValueId value, ValueId input) {
  const dataflow::Analysis& analysis = expressions_.analysis();
  const std::uint32_t walk = ++walks_;
  std::size_t seen = 0;
  NodeId stop = NodeId::kNone;
  std::vector<ValueId> pending{value};
  while (!pending.empty()) {
    const ValueId at = pending.back();
    pending.pop_back();
    if (at == ValueId::kAbsent || std::exchange(seen_[at], walk) == walk) continue;
    const NodeId node = expressions_.producer(at);
    expressions_.charge(kStepsOfVisit);
    if (expressions_.is_spent()) return NodeId::kNone;
    if (at == input || ++seen >= kMaxValuesOnWay || has_trait(expressions_.entry(node), ops::OpTrait::kControlFlow))
      return NodeId::kNone;
    if (node == NodeId::kNone) continue;
    const bool stops = !carries_gradients(analysis, at) || is_stepwise(expressions_.op(node));
    if (const ValueId before = stops ? quantized(expressions_, at) : ValueId::kAbsent; before != ValueId::kAbsent) {
      pending.push_back(before);
      continue;
    }
    if (stops) {
      if (stop == NodeId::kNone && has_weights_before(at) && comes_from(at, input)) stop = cut_before(node);
      continue;
    }
    for (const ValueId operand : analysis.operands(node)) pending.push_back(operand);
  }
  return stop;
}

bool GradientWays::comes_from(ValueId value, ValueId input) const {
  constexpr std::size_t kMaxBefore = 400;
  std::vector<ValueId> pending{value};
  Visited<ValueId> seen(expressions_.analysis().meter());
  while (!pending.empty() && seen.size() < kMaxBefore) {
    const ValueId at = pending.back();
    pending.pop_back();
    if (at == input) return true;
    const NodeId node = expressions_.producer(at);
    // An extent depends on no element.
    if (node == NodeId::kNone || expressions_.op(node) == Opcode::kShape || !seen.insert(at)) continue;
    if (expressions_.is_spent()) return false;
    for (const ValueId operand : expressions_.analysis().operands(node))
      if (operand != ValueId::kAbsent) pending.push_back(operand);
  }
  return false;
}

std::optional<std::set<ValueId>> GradientWays::reached(const std::vector<ValueId>& from) {
  const dataflow::Analysis& analysis = expressions_.analysis();
  constexpr std::size_t kMaxReached = 4'000;
  std::set<ValueId> found;
  std::vector<ValueId> pending = from;
  while (!pending.empty()) {
    const ValueId at = pending.back();
    pending.pop_back();
    if (at == ValueId::kAbsent || found.contains(at)) continue;
    expressions_.charge(kStepsOfVisit);
    const NodeId node = expressions_.producer(at);
    const bool stops = !carries_gradients(analysis, at) || is_stepwise(expressions_.op(node));
    if (stops) {
      pending.push_back(quantized(expressions_, at));
      continue;
    }
    found.insert(at);
    if (found.size() >= kMaxReached || expressions_.is_spent() ||
        has_trait(expressions_.entry(node), ops::OpTrait::kControlFlow))
      return std::nullopt;
    if (node == NodeId::kNone) continue;
    for (const ValueId operand : analysis.operands(node)) pending.push_back(operand);
  }
  return found;
}

GradientWay GradientWays::follow(ValueId value, bool inputs_are_data) {
  const dataflow::Analysis& analysis = expressions_.analysis();
  const Model& model = analysis.model();
  const std::uint32_t walk = ++walks_;
  std::size_t seen = 0;
  GradientWay way;
  std::vector<ValueId> pending{value};
  while (!pending.empty()) {
    const ValueId at = pending.back();
    pending.pop_back();
    if (at == ValueId::kAbsent || std::exchange(seen_[at], walk) == walk) continue;
    ++seen;
    expressions_.charge(kStepsOfVisit);
    const NodeId node = expressions_.producer(at);
    const bool stops = !carries_gradients(analysis, at) || is_stepwise(expressions_.op(node));
    if (const ValueId before = stops ? quantized(expressions_, at) : ValueId::kAbsent; before != ValueId::kAbsent) {
      pending.push_back(before);
      continue;
    }
    if (stops) {
      if (way.stops.size() < kMaxStops && node != NodeId::kNone && has_weights_before(at))
        if (const NodeId cut = cut_before(node); std::ranges::find(way.stops, cut) == way.stops.end())
          way.stops.push_back(cut);
      continue;
    }
    if (node == NodeId::kNone) {
      way.reaches_weight |= is_weight(expressions_, at);
      const Value& known = model.value(at);
      // What a body or a function gets is not followed to where it comes from.
      const bool is_data = inputs_are_data && known.origin == ValueOrigin::kInput && known.graph == GraphId::kMain;
      way.reaches_input |= known.initializer == nullptr && !is_data;
      continue;
    }
    // A body reads values around it that are no operands.
    if (seen >= kMaxValuesOnWay || expressions_.is_spent() ||
        has_trait(expressions_.entry(node), ops::OpTrait::kControlFlow))
      way.reaches_input = true;
    if (way.reaches_input || way.reaches_weight) return way;
    for (const ValueId operand : analysis.operands(node)) pending.push_back(operand);
  }
  std::ranges::sort(way.stops);
  return way;
}

}  // namespace tensorlint::losses
