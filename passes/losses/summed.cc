#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "passes/losses/formula.h"
#include "passes/losses/known_losses.h"
#include "passes/losses/loss_pattern_matcher.h"

namespace tensorlint::losses {
namespace {

/// Of a formula, whose evaluation for a pair is one try: larger ones count as several.
constexpr std::size_t kPartsOfTry = 8;

/// Nodes that are looked at from one output: a loss with many terms and weights has some dozens. An output with
/// elements of its own is rarely a loss, and a residual stream is long.
constexpr int kMaxNodesOfScalar = 600;
constexpr int kMaxNodesOfTensor = 24;

bool is_norm(Opcode opcode) {
  return opcode == Opcode::kReduceL1 || opcode == Opcode::kReduceL2 || opcode == Opcode::kReduceSumSquare;
}

}  // namespace

/// The way back from one output of a graph to what it sums up.
struct LossPatternMatcher::SumWalk {
  ValueId output = ValueId::kAbsent;
  Nodes path;  ///< the nodes between the output and the value that is looked at
  int left = 0;
  /// Factors of one product that are computed from one another: neither is a term that the other one weighs.
  int entangled = 0;
  bool negative = false;  ///< the output falls as the value rises
  std::set<std::pair<ValueId, Outer>> seen;
};

double LossPatternMatcher::apply(Outer outer, double value) {
  switch (outer) {
    case Outer::kNone:
      return value;
    case Outer::kSize:
      return std::abs(value);
    case Outer::kSquare:
      return value * value;
  }
  return value;
}

/// Losses by what they compute: the terms that outputs sum up.
void LossPatternMatcher::add_summed(const CalledGraphs& is_called) {
  for (const GraphId id : model_.graphs.ids()) {
    const Graph& graph = model_.graph(id);
    if (graph.kind == GraphKind::kSubgraph || !is_called[id]) continue;
    std::set<ValueId> walked;
    for (const ValueId output : analysis_.outputs(id)) {
      if (!walked.insert(output).second || expressions_.is_spent()) continue;
      const bool scalar = is_scalar(output);
      SumWalk walk{.output = output, .path = {}, .left = scalar ? kMaxNodesOfScalar : kMaxNodesOfTensor, .seen = {}};
      go_back(walk, output, Outer::kNone, false);
    }
  }
  // What such a formula computes is known, and it is not what it looks like.
  std::erase_if(sites_, [&](const LossSite& site) {
    return site.evidence == LossEvidence::kPattern && site.output == ValueId::kAbsent &&
           (site.kind == LossKind::kMse || site.kind == LossKind::kL1) && unexplained_.contains(site.anchor);
  });
}

/// One element, as far as it is known.
bool LossPatternMatcher::is_scalar(ValueId value) const {
  const Fact& fact = analysis_.fact(value);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return true;
  const auto dims = analysis_.facts().dims_of(fact.shape);
  return std::ranges::all_of(dims, [&](Dim dim) { return analysis_.facts().dims().is_constant(dim, 1); });
}

/// Looks at what makes `value`: a term of a loss, or what terms are summed, weighed, selected or averaged by.
void LossPatternMatcher::go_back(SumWalk& walk, ValueId value, Outer outer, bool reduced) {
  const NodeId node = expressions_.producer(value);
  if (node == NodeId::kNone || walk.left-- <= 0 || steps_left_-- <= 0 || !walk.seen.emplace(value, outer).second)
    return;
  if (const ops::OpEntry* entry = expressions_.entry(node); entry != nullptr && entry->loss()) {
    reach_site(walk, node);
    return;
  }
  if (reduced && walk.entangled == 0 && add_term(walk, value, outer)) return;
  walk.path.push_back(node);
  const Opcode opcode = expressions_.op(node);
  const auto operand = [&](std::size_t index) { return expressions_.operand(node, index); };
  switch (opcode) {
    case Opcode::kReduceMean:
    case Opcode::kReduceSum: {
      const auto axes = expressions_.axes_of(node);
      go_back(walk, operand(0), outer, reduced || !axes || !axes->empty());
      break;
    }
    case Opcode::kReduceL1:
    case Opcode::kReduceL2:
    case Opcode::kReduceSumSquare:
      go_back(walk, operand(0), opcode == Opcode::kReduceL1 ? Outer::kSize : Outer::kSquare, true);
      break;
    case Opcode::kMul:
    case Opcode::kDiv: {
      const bool entangled = reduced && share_leaves(operand(0), operand(1));
      walk.entangled += entangled ? 1 : 0;
      go_back_to_factor(walk, operand(0), operand(1), outer, reduced);
      if (opcode == Opcode::kMul) go_back_to_factor(walk, operand(1), operand(0), outer, reduced);
      walk.entangled -= entangled ? 1 : 0;
      break;
    }
    case Opcode::kSub:
      go_back(walk, operand(0), outer, reduced);
      walk.negative = !walk.negative;
      go_back(walk, operand(1), outer, reduced);
      walk.negative = !walk.negative;
      break;
    case Opcode::kNeg:
      walk.negative = !walk.negative;
      go_back(walk, operand(0), outer, reduced);
      walk.negative = !walk.negative;
      break;
    case Opcode::kAdd:
    case Opcode::kMin:
    case Opcode::kMax:
      for (const ValueId each : analysis_.operands(node)) go_back(walk, each, outer, reduced);
      break;
    case Opcode::kWhere:
      go_back(walk, operand(1), outer, reduced);
      go_back(walk, operand(2), outer, reduced);
      break;
    case Opcode::kPow:
    case Opcode::kSqrt:
    case Opcode::kClip:
    case Opcode::kCast:
    case Opcode::kIdentity:
    case Opcode::kReshape:
    case Opcode::kSqueeze:
    case Opcode::kUnsqueeze:
    case Opcode::kExpand:
      go_back(walk, operand(0), outer, reduced);
      break;
    case Opcode::kLog:
    case Opcode::kExp:
      if (is_scalar(value)) go_back(walk, operand(0), outer, reduced);
      break;
    case Opcode::kConcat:  // terms that are stacked to be summed
      if (reduced)
        for (const ValueId each : analysis_.operands(node)) go_back(walk, each, outer, reduced);
      break;
    default:
      break;
  }
  walk.path.pop_back();
}

/// One factor of a product, or what is divided; times 0 it is nothing.
void LossPatternMatcher::go_back_to_factor(SumWalk& walk, ValueId value, ValueId other, Outer outer, bool reduced) {
  const std::optional<double> scale = expressions_.number(other);
  if (scale == 0) return;
  const bool turns = scale.value_or(1) < 0;
  walk.negative ^= turns;
  go_back(walk, value, outer, reduced);
  walk.negative ^= turns;
}

/// Both are computed from one value that is not a constant.
bool LossPatternMatcher::share_leaves(ValueId a, ValueId b) const {
  if (a == b) return true;
  const Formula x(expressions_, a), y(expressions_, b);
  if (!x.is_complete() || !y.is_complete()) return false;
  return std::ranges::any_of(x.parts(), [&](const Formula::Part& part) {
    return part.kind == Formula::PartKind::kLeaf &&
           std::ranges::find(y.parts(), part.value, &Formula::Part::value) != y.parts().end();
  });
}

/// The loss that is one operator: what comes of it is known now.
void LossPatternMatcher::reach_site(const SumWalk& walk, NodeId anchor) {
  expressions_.charge(sites_.size());
  for (LossSite& site : sites_) {
    if (site.anchor != anchor || site.output != ValueId::kAbsent) continue;
    site.output = walk.output;
    site.path = walk.path;
  }
}

bool LossPatternMatcher::add_term(const SumWalk& walk, ValueId value, Outer outer) {
  if (is_scalar(value) && analysis_.fact(value).shape != ShapeId::kUnranked) return false;
  if (tries_left_ <= 0) return false;
  const Formula formula(expressions_, value);
  if (!formula.is_complete()) return false;
  if (add_pair(walk, formula, outer) || (outer == Outer::kNone && add_log_probability(walk, formula))) return true;
  for (const Formula::Part& part : formula.parts())
    if (part.kind != Formula::PartKind::kLeaf && part.node != NodeId::kNone) unexplained_.insert(part.node);
  return false;
}

/// A function of two values, whatever else it is weighed by.
bool LossPatternMatcher::add_pair(const SumWalk& walk, const Formula& formula, Outer outer) {
  const auto parts = formula.parts();
  struct Pair {
    std::size_t a, b;
  };
  std::vector<Pair> pairs;
  for (std::size_t b = 0; b + 1 < parts.size(); ++b)
    for (std::size_t a = 0; a < b; ++a)
      if (is_pair(formula, a, b) && !is_exponent(formula, a) && !is_exponent(formula, b) &&
          !is_statistic_of(parts[a].value, parts[b].value) && !is_statistic_of(parts[b].value, parts[a].value))
        pairs.push_back({a, b});
  // Closest to where they meet first; numbers are targets only where there is no other.
  const auto rank = [&](const Pair& pair) {
    const bool constant =
        parts[pair.a].kind == Formula::PartKind::kConstant || parts[pair.b].kind == Formula::PartKind::kConstant;
    return std::pair(constant ? 1 : 0, parts.size() * 2 - pair.a - pair.b);
  };
  std::ranges::stable_sort(pairs, {}, rank);
  const std::vector<double> constants = formula.constants();
  for (const Pair& pair : pairs) {
    for (const auto& [p, t] : {std::pair(pair.a, pair.b), std::pair(pair.b, pair.a)}) {
      if (parts[p].kind == Formula::PartKind::kConstant) continue;
      tries_left_ -= 1 + static_cast<int>(parts.size() / kPartsOfTry);
      if (tries_left_ <= 0) return false;
      const auto kind_in = [&, prediction = p, target = t](int variant) {
        return identify_pair(
            [&](double x, double y) {
              const Formula::Assignment given[] = {{prediction, x}, {target, y}};
              return apply(outer, formula.evaluate(given, variant));
            },
            constants);
      };
      const auto kind = kind_in(0);
      if (!kind || kind_in(1) != kind) continue;
      add_evaluated(walk, formula, *kind, p, t);
      return true;
    }
  }
  return false;
}

/// A number that something is raised to: y * log(p) of log(p ** y) is no loss of a label y.
bool LossPatternMatcher::is_exponent(const Formula& formula, std::size_t part) const {
  if (formula.parts()[part].kind != Formula::PartKind::kConstant) return false;
  return std::ranges::any_of(formula.parts(), [&](const Formula::Part& user) {
    return expressions_.op(user.node) == Opcode::kPow && user.operands.size() == 2 && user.operands[1] == part;
  });
}

/// A mean or another reduction of the value: their difference is a deviation.
bool LossPatternMatcher::is_statistic_of(ValueId statistic, ValueId value) const {
  bool reduced = false;
  for (int i = 0; i < kMaxTail; ++i) {
    if (statistic == value) return reduced;
    const NodeId node = expressions_.producer(statistic);
    const bool reduces = has_trait(expressions_.entry(node), ops::OpTrait::kReduction);
    if (!reduces && !moves_elements(expressions_.op(node)) && expressions_.op(node) != Opcode::kCast) return false;
    reduced |= reduces;
    statistic = expressions_.operand(node, 0);
  }
  return false;
}

/// Neither is computed from the other, the root is computed from both, and from nothing else that either is computed
/// from.
bool LossPatternMatcher::is_pair(const Formula& formula, std::size_t a, std::size_t b) const {
  const auto parts = formula.parts();
  const std::size_t root = parts.size() - 1;
  const auto is_constant = [&](std::size_t part) { return parts[part].kind == Formula::PartKind::kConstant; };
  if (parts[a].value == ValueId::kAbsent || parts[b].value == ValueId::kAbsent || (is_constant(a) && is_constant(b)) ||
      formula.depends(a, b) || formula.depends(b, a) || !formula.depends(root, a) || !formula.depends(root, b))
    return false;
  expressions_.charge(parts.size());
  std::vector<std::size_t> pending{root};
  std::vector<bool> seen(parts.size());
  while (!pending.empty()) {
    const std::size_t at = pending.back();
    pending.pop_back();
    if (at == a || at == b || seen[at]) continue;
    seen[at] = true;
    if (parts[at].kind == Formula::PartKind::kLeaf && (formula.depends(a, at) || formula.depends(b, at))) return false;
    for (const std::uint32_t operand : parts[at].operands)
      if (operand != Formula::kNoPart) pending.push_back(operand);
  }
  return true;
}

void LossPatternMatcher::add_evaluated(const SumWalk& walk, const Formula& formula, LossKind kind,
                                       std::size_t prediction, std::size_t target) {
  const auto parts = formula.parts();
  NodeId anchor = NodeId::kNone;
  Nodes nodes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool of_prediction = formula.depends(i, prediction) && i != prediction,
               of_target = formula.depends(i, target) && i != target;
    if (parts[i].node == NodeId::kNone || (!of_prediction && !of_target)) continue;
    nodes.push_back(parts[i].node);
    if (!of_prediction || !of_target || anchor != NodeId::kNone || parts[i].operands.size() < 2) continue;
    anchor = parts[i].node;
    // As the program writes them, where the loss does not say which is which.
    const std::uint32_t first = parts[i].operands[0];
    const bool swapped = first != Formula::kNoPart && formula.depends(first, target);
    if (is_symmetric(kind) && swapped && parts[target].kind != Formula::PartKind::kConstant)
      std::swap(prediction, target);
  }
  if (anchor == NodeId::kNone) anchor = parts.back().node;
  for (const NodeId node : walk.path)
    if (const Opcode opcode = expressions_.op(node);
        opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum || is_norm(opcode))
      nodes.push_back(node);
  ValueId first = parts[prediction].value, second = parts[target].value;
  if (is_symmetric(kind)) std::tie(first, second) = parameters_.tell_apart(first, second);
  std::ranges::sort(nodes);
  bool known = false;
  constexpr std::uint64_t kStepsOfSite = 8;
  expressions_.charge(kStepsOfSite * sites_.size());
  for (LossSite& site : sites_) {
    if (!std::ranges::binary_search(site.nodes, anchor) && !std::ranges::binary_search(nodes, site.anchor)) continue;
    known = true;
    if (site.output != ValueId::kAbsent) continue;
    site.output = walk.output;
    site.path = walk.path;
    if (site.kind == LossKind::kMse || site.kind == LossKind::kL1) site.kind = kind;
    if (site.evidence == LossEvidence::kOperator) continue;
    site.nodes.insert(site.nodes.end(), nodes.begin(), nodes.end());
    std::ranges::sort(site.nodes);
    site.nodes.erase(std::unique(site.nodes.begin(), site.nodes.end()), site.nodes.end());
  }
  if (known) return;
  add(kind, LossEvidence::kFormula, anchor, first, second, std::move(nodes));
  if (sites_.empty() || sites_.back().anchor != anchor) return;
  sites_.back().output = walk.output;
  sites_.back().path = walk.path;
}

bool LossPatternMatcher::is_symmetric(LossKind kind) {
  return kind == LossKind::kMse || kind == LossKind::kL1 || kind == LossKind::kHuber || kind == LossKind::kLogCosh;
}

/// Where `weight` is 0, `part` does not count.
bool LossPatternMatcher::is_weighed_by(const Formula& formula, std::size_t part, std::size_t weight) {
  const Formula::Assignment low[] = {{part, 0.31}, {weight, 0}}, high[] = {{part, 0.77}, {weight, 0}};
  return std::abs(formula.evaluate(low, 0) - formula.evaluate(high, 0)) < 1e-9;
}

/// A function of log-probabilities: gathered at class indices, or times probabilities.
bool LossPatternMatcher::add_log_probability(const SumWalk& walk, const Formula& formula) {
  const auto parts = formula.parts();
  const std::vector<double> constants = formula.constants();
  for (std::size_t i = 0; i + 1 < parts.size() || i == 0; ++i) {
    if (parts[i].value == ValueId::kAbsent || parts[i].kind != Formula::PartKind::kLeaf) continue;
    const NodeId selection = expressions_.producer(parts[i].value);
    const bool gathered = expressions_.op(selection) == Opcode::kGatherElements;
    const ValueId values = gathered ? expressions_.operand(selection, 0) : parts[i].value;
    auto normalised = expressions_.normalised(expressions_.source(values));
    NodeId logarithm = NodeId::kNone;
    if (!normalised && gathered && expressions_.op_of(expressions_.source(values)) == Opcode::kLog) {
      logarithm = expressions_.producer(expressions_.source(values));
      normalised = expressions_.normalised(expressions_.operand(logarithm, 0));
      if (normalised) normalised->logarithm = true;
    }
    if (!normalised) continue;
    const auto kind_in = [&](int variant) {
      return identify_log_probability(
          [&](double log) {
            const Formula::Assignment given[] = {{i, normalised->logarithm ? log : std::exp(log)}};
            return (walk.negative ? -1 : 1) * formula.evaluate(given, variant);
          },
          constants);
    };
    if (tries_left_-- <= 0) return false;
    const auto kind = kind_in(0);
    if (!kind || kind_in(1) != kind) continue;
    std::size_t other = parts.size();
    for (std::size_t k = 0; k + 1 < parts.size(); ++k)
      if (!gathered && parts[k].value != ValueId::kAbsent && parts[k].kind != Formula::PartKind::kConstant &&
          !formula.depends(k, i))
        other = k;
    if (!gathered && (other == parts.size() || !is_weighed_by(formula, i, other))) continue;
    const ValueId target = gathered ? index_source(expressions_.operand(selection, 1)) : parts[other].value;
    // p * log(p): an entropy.
    if (const auto weights = expressions_.normalised(expressions_.source(target));
        weights && weights->scores == normalised->scores)
      return false;
    Nodes nodes{normalised->node};
    if (logarithm != NodeId::kNone) nodes.push_back(logarithm);
    NodeId anchor = gathered ? selection : NodeId::kNone;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      if (k == i || parts[k].node == NodeId::kNone || !formula.depends(k, i)) continue;
      nodes.push_back(parts[k].node);
      if (anchor == NodeId::kNone && formula.depends(k, other)) anchor = parts[k].node;
    }
    expressions_.charge(2 * sites_.size());
    if (std::ranges::any_of(sites_, [&](const LossSite& site) { return site.anchor == anchor; })) {
      for (LossSite& site : sites_) {
        if (site.anchor != anchor || site.output != ValueId::kAbsent) continue;
        site.output = walk.output;
        site.path = walk.path;
        if (site.evidence != LossEvidence::kOperator) site.kind = *kind;
      }
      return true;
    }
    add(*kind, LossEvidence::kFormula, anchor, normalised->scores, target, std::move(nodes));
    if (!sites_.empty() && sites_.back().anchor == anchor) {
      sites_.back().output = walk.output;
      sites_.back().path = walk.path;
    }
    return true;
  }
  return false;
}

}  // namespace tensorlint::losses
