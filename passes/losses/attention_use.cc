#include "passes/losses/attention_use.h"

#include <algorithm>
#include <optional>

#include "passes/losses/axis_finders.h"

namespace tensorlint::losses {
namespace {

using Kind = AxisMistake::Kind;

/// Scores of queries and keys, which may be normalised over either, as where pairs are matched.
bool is_product_of_data(const LossCone& cone, ValueId scores) {
  const Expressions& expressions = cone.expressions();
  for (int step = 0; step < 8; ++step) {
    const NodeId node = expressions.producer(scores);
    const Opcode opcode = expressions.op(node);
    if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum)
      return !cone.is_constant(expressions.operand(node, 0)) && !cone.is_constant(expressions.operand(node, 1));
    if (!ops::moves_elements(opcode) && !has_trait(expressions.entry(node), ops::OpTrait::kElementwise)) return false;
    scores = expressions.operand(node, 0);
  }
  return true;
}

/// Nothing but factors comes between the probabilities and the largest of them along another axis than theirs.
std::optional<AxisMistake> largest_elsewhere(const LossCone& cone, NodeId softmax, ValueId scores, std::size_t axis) {
  constexpr std::size_t kMaxValues = 8;
  const Expressions& expressions = cone.expressions();
  struct Reading {
    ValueId value;
    std::size_t axis;
  };
  std::vector<Reading> pending{{expressions.result(softmax), axis}};
  std::optional<AxisMistake> found;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (pending.size() > kMaxValues) return std::nullopt;
    const auto [value, along] = pending[i];
    for (const NodeId user : expressions.users(value)) {
      if (!cone.has(user)) continue;
      const Opcode opcode = expressions.op(user);
      const std::size_t operand = cone.operand_index(user, value);
      if (opcode == Opcode::kArgExtreme || opcode == Opcode::kReduceMax) {
        const auto axes = expressions.axes_of(user);
        if (!axes || axes->size() != 1 || axes->front() == along || !cone.is_long(value, axes->front()))
          return std::nullopt;
        found = AxisMistake{Kind::kSelectedElsewhere, softmax, scores, {axis}, false, user, axes->front()};
        continue;
      }
      const AxisStep step = cone.way().follow(user, operand, along);
      const bool scales = opcode == Opcode::kMul && !cone.depends(expressions.beside(user, value), scores);
      if (step.fate != AxisFate::kKept ||
          (!scales && opcode != Opcode::kIdentity && opcode != Opcode::kCast && opcode != Opcode::kDropout))
        return std::nullopt;
      pending.push_back({expressions.result(user), step.axis});
    }
  }
  return found;
}

/// A value that is divided by its own norm, and the axis of the norm, in the value's own order of axes.
struct Unit {
  NodeId norm = NodeId::kNone;
  ValueId of = ValueId::kAbsent;
  std::size_t axis = 0;  ///< of `of`
  std::size_t now = 0;   ///< of the value
};

std::optional<Unit> unit_of(const LossCone& cone, ValueId value) {
  constexpr std::size_t kMaxSteps = 4;
  const Expressions& expressions = cone.expressions();
  std::vector<NodeId> turns;
  while (turns.size() < kMaxSteps && expressions.op_of(value) == Opcode::kTranspose) {
    turns.push_back(expressions.producer(value));
    value = expressions.operand(turns.back(), 0);
  }
  const NodeId division = expressions.producer(value);
  if (expressions.op(division) != Opcode::kDiv) return std::nullopt;
  Unit unit;
  unit.of = cone.norm_of(expressions.operand(division, 1), unit.norm);
  const auto axes = unit.of == ValueId::kAbsent ? std::nullopt : expressions.axes_of(unit.norm);
  if (!axes || axes->size() != 1 || unit.of != expressions.operand(division, 0) ||
      cone.dims(unit.of).size() != cone.dims(value).size() || !cone.is_long(unit.of, axes->front()))
    return std::nullopt;
  unit.axis = unit.now = axes->front();
  for (std::size_t i = turns.size(); i-- > 0;) {
    const AxisStep step = cone.way().follow(turns[i], 0, unit.now);
    if (step.fate != AxisFate::kKept) return std::nullopt;
    unit.now = step.axis;
  }
  return unit;
}

/// A product of vectors of unit length with others that are divided by norms along another axis than the product's.
std::optional<AxisMistake> norm_elsewhere(const LossCone& cone, NodeId product) {
  if (cone.operands(product).size() != 2) return std::nullopt;
  std::optional<Unit> units[2];
  AxisFate fates[2] = {AxisFate::kUnknown, AxisFate::kUnknown};
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    units[side] = unit_of(cone, cone.expressions().operand(product, side));
    if (!units[side]) return std::nullopt;
    fates[side] = cone.way().follow(product, side, units[side]->now).fate;
  }
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
    if (fates[side] == AxisFate::kKept && fates[1 - side] == AxisFate::kSummed)
      return AxisMistake{
          Kind::kNormElsewhere, units[side]->norm, units[side]->of, {units[side]->axis}, false, product, 0};
  return std::nullopt;
}

}  // namespace

std::vector<AxisMistake> find_attention_mistakes(const Expressions& expressions, AxisOrigins& origins) {
  const Analysis& analysis = expressions.analysis();
  const Model& model = analysis.model();
  // Attention as it should be is normalised over the last axis, and contracted by a product of matrices.
  std::vector<NodeId> softmaxes;
  std::vector<NodeId> products;
  bool has_letters = false, has_norms = false;
  for (const NodeId node : analysis.nodes()) {
    const Opcode opcode = expressions.op(node);
    has_letters = has_letters || opcode == Opcode::kEinsum;
    has_norms = has_norms || opcode == Opcode::kReduceL2 || opcode == Opcode::kReduceSumSquare;
    if (opcode == Opcode::kMatMul && model.node(node).graph == GraphId::kMain && !analysis.has_failed(node))
      products.push_back(node);
    if (opcode == Opcode::kSoftmax && model.node(node).graph == GraphId::kMain && !analysis.has_failed(node))
      softmaxes.push_back(node);
  }
  if (!has_letters)
    std::erase_if(softmaxes, [&](NodeId node) {
      const auto axes = expressions.axes_of(node);
      return !axes || axes->size() != 1 || axes->front() + 1 >= expressions.dims(expressions.result(node)).size();
    });
  if (!has_norms) products.clear();
  if ((softmaxes.empty() && products.empty()) || expressions.is_spent()) return {};
  const auto& outputs = model.graph(GraphId::kMain).outputs;
  const LossCone cone(expressions, origins, outputs);
  SoftmaxUse use(cone);
  std::vector<AxisMistake> found;
  for (const NodeId node : softmaxes) {
    if (expressions.is_spent()) break;
    auto mistake = use.at(node);
    if (mistake && mistake->kind != Kind::kAttention) mistake.reset();
    if (!mistake) {
      const auto axes = expressions.axes_of(node);
      const ValueId scores = expressions.operand(node, 0);
      if (axes && axes->size() == 1 && axes->front() > 0 && cone.is_long(scores, axes->front()) &&
          !is_product_of_data(cone, scores))
        mistake = largest_elsewhere(cone, node, scores, axes->front());
    }
    if (mistake) found.push_back(std::move(*mistake));
  }
  for (const NodeId node : products) {
    if (expressions.is_spent()) break;
    if (auto mistake = norm_elsewhere(cone, node)) found.push_back(std::move(*mistake));
  }
  return found;
}

std::vector<AxisMistake> find_positions_of_batch(const Expressions& expressions, AxisOrigins& origins) {
  constexpr std::size_t kMaxAdditions = 16;
  const Analysis& analysis = expressions.analysis();
  const Model& model = analysis.model();
  const auto is_column_of_rows = [&](ValueId value) {
    const auto dims = expressions.dims(value);
    const DimPool& pool = analysis.facts().dims();
    return dims.size() == 3 && !pool.is_constant(dims[0], 1) && pool.is_constant(dims[1], 1) &&
           !pool.is_constant(dims[2], 1);
  };
  std::vector<NodeId> additions;
  bool has_softmax = false;
  for (const NodeId node : analysis.nodes()) {
    const Opcode opcode = expressions.op(node);
    has_softmax = has_softmax || opcode == Opcode::kSoftmax;
    if (opcode == Opcode::kAdd && model.node(node).graph == GraphId::kMain && !analysis.has_failed(node) &&
        additions.size() < kMaxAdditions &&
        (is_column_of_rows(expressions.operand(node, 0)) || is_column_of_rows(expressions.operand(node, 1))))
      additions.push_back(node);
  }
  std::vector<AxisMistake> found;
  if (!has_softmax || additions.empty() || expressions.is_spent()) return found;
  const auto& outputs = model.graph(GraphId::kMain).outputs;
  const LossCone cone(expressions, origins, outputs);
  SequenceAxes axes(cone);
  for (const NodeId node : additions)
    if (auto mistake = axes.at(node); mistake && mistake->kind == Kind::kPositionsOfBatch)
      found.push_back(std::move(*mistake));
  return found;
}

}  // namespace tensorlint::losses
