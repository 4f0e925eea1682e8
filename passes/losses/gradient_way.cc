#include "passes/losses/gradient_way.h"

#include <algorithm>
#include <set>
#include <vector>

#include "passes/losses/gradient_reach.h"

namespace tensorlint::losses {
namespace {

/// Of a value that no gradient passes: weights are among what it is computed from.
class Ancestors {
 public:
  explicit Ancestors(const Terms& terms) : terms_(terms), model_(terms.analysis().model()) {}

  bool have_weights(ValueId value) const {
    std::vector<ValueId> pending{value};
    std::set<ValueId> seen;
    while (!pending.empty() && seen.size() < kMaxValues) {
      const ValueId at = pending.back();
      pending.pop_back();
      if (at == ValueId::kAbsent || !seen.insert(at).second) continue;
      if (is_weight(at)) return true;
      if (const NodeId node = terms_.maker(at); node != NodeId::kNone)
        for (const ValueId operand : model_.operands(model_.node(node))) pending.push_back(operand);
    }
    return false;
  }

  bool is_weight(ValueId value) const {
    const Value& known = model_.value(value);
    if (known.initializer == nullptr || known.initializer->element_count().value_or(2) < 2 ||
        !terms_.analysis().fact(value).dtypes.proves(DTypeSet::floats()))
      return false;
    return std::ranges::any_of(terms_.users(value), [&](NodeId user) {
      const Opcode opcode = terms_.op(user);
      if (opcode == Opcode::kTranspose)
        return std::ranges::any_of(terms_.users(terms_.result(user)), [&](NodeId next) { return multiplies(next); });
      return multiplies(user) || (opcode == Opcode::kGather && terms_.operand(user, 0) == value);
    });
  }

  static constexpr std::size_t kMaxValues = 20'000;

 private:
  bool multiplies(NodeId node) const { return terms_.op(node) == Opcode::kMatMul || terms_.op(node) == Opcode::kConv; }

  const Terms& terms_;
  const Model& model_;
};

/// The derivative is zero wherever there is one: rounding, signs, comparisons.
bool is_stepwise(Opcode opcode) {
  return opcode == Opcode::kRound || opcode == Opcode::kSign || opcode == Opcode::kCompare ||
         opcode == Opcode::kArgExtreme || opcode == Opcode::kOneHot;
}

/// What a quantizer makes integers of: the node after it takes the same scale and gives floats again. Training passes
/// gradients straight through such a pair.
ValueId quantized(const Terms& terms, ValueId integers) {
  const NodeId node = terms.maker(integers);
  const ValueId scale = terms.operand(node, 1);
  if (node == NodeId::kNone || scale == ValueId::kAbsent || terms.op(node) != Opcode::kOther) return ValueId::kAbsent;
  const auto restores = [&](NodeId user) {
    return terms.result(user) != ValueId::kAbsent && terms.operand(user, 0) == integers &&
           terms.operand(user, 1) == scale && !terms.makes_integers(user);
  };
  return std::ranges::any_of(terms.users(integers), restores) ? terms.operand(node, 0) : ValueId::kAbsent;
}

GradientWay follow(const Terms& terms, ValueId value, bool inputs_are_data) {
  const dataflow::Analysis& analysis = terms.analysis();
  const Model& model = analysis.model();
  const Ancestors ancestors(terms);
  GradientWay way;
  std::vector<ValueId> pending{value};
  std::set<ValueId> seen;
  while (!pending.empty()) {
    const ValueId at = pending.back();
    pending.pop_back();
    if (at == ValueId::kAbsent || !seen.insert(at).second) continue;
    const NodeId node = terms.maker(at);
    const bool stops = !carries_gradients(analysis, at) || is_stepwise(terms.op(node));
    if (const ValueId before = stops ? quantized(terms, at) : ValueId::kAbsent; before != ValueId::kAbsent) {
      pending.push_back(before);
      continue;
    }
    if (stops) {
      if (way.stop == NodeId::kNone && node != NodeId::kNone && ancestors.have_weights(at)) way.stop = node;
      continue;
    }
    if (node == NodeId::kNone) {
      way.reaches_weight |= ancestors.is_weight(at);
      const Value& known = model.value(at);
      // What a body or a function gets is not followed to where it comes from.
      const bool is_data = inputs_are_data && known.origin == ValueOrigin::kInput && known.graph == GraphId::kMain;
      way.reaches_input |= known.initializer == nullptr && !is_data;
      continue;
    }
    // A body reads values around it that are no operands.
    if (seen.size() >= Ancestors::kMaxValues || has_trait(terms.entry(node), ops::OpTrait::kControlFlow))
      way.reaches_input = true;
    if (way.reaches_input || way.reaches_weight) return way;
    for (const ValueId operand : model.operands(model.node(node))) pending.push_back(operand);
  }
  return way;
}

}  // namespace

GradientWay gradient_way(const Terms& terms, ValueId value) { return follow(terms, value, false); }

GradientWay gradient_way_of_loss(const Terms& terms, ValueId value) { return follow(terms, value, true); }

}  // namespace tensorlint::losses
