#include "passes/losses/score_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace tensorlint::losses {
namespace {

constexpr int kMaxMoves = 16;
/// Leaves that are free; each takes one of six numbers.
constexpr std::size_t kMaxScores = 4;

/// What scores of a network are: of both signs, small and not so small.
constexpr std::array kScores{-2.5, -0.7, -0.1, 0.1, 0.7, 2.5};
/// Products of what is divided by its length stay within [-1, 1].
constexpr double kCosine = 0.38;
constexpr std::array kPositive{1e-2, 1.0, 1e2, 1e4};
constexpr std::array kSampledProbabilities{0.05, 0.3, 0.6, 0.95};
/// Where tanh has rounded to its limits, other than an exponential, and softmax has given all to one class.
constexpr std::array kSaturated{-20.0, -0.7, 0.7, 20.0};
constexpr std::array kCertainProbabilities{0.3, 0.6, 1.0};
constexpr std::array kAnything{-1e4, -1.0, 0.5, 1e4};
/// What masks, labels and weights are.
constexpr std::array kLabels{0.3, 0.5, 1.0};

/// Less than what guards add, and more than what rounding leaves.
constexpr double kClearly = 2e-2;

}  // namespace

/// Elements of operand 0, moved, repeated or looked up.
bool ScoreValues::picks(NodeId node) const {
  const Opcode opcode = expressions_.op(node);
  return picks_elements(opcode) || opcode == Opcode::kTopK;
}

bool ScoreValues::is_weight(ValueId value) const {
  const auto& model = expressions_.analysis().model();
  if (expressions_.op_of(value) == Opcode::kTranspose) value = expressions_.operand(expressions_.producer(value), 0);
  return value != ValueId::kAbsent && model.value(value).initializer != nullptr &&
         expressions_.analysis().fact(value).range.lo < 0;
}

/// A product with weights or a bias of both signs, or what is normalised to a mean of 0.
bool ScoreValues::is_layer(NodeId node) const {
  const Opcode opcode = expressions_.op(node);
  if (opcode == Opcode::kNormalize || is_product_of_vectors(node)) return true;
  return (opcode == Opcode::kMatMul || opcode == Opcode::kConv) &&
         (is_weight(expressions_.operand(node, 0)) || is_weight(expressions_.operand(node, 1)) ||
          is_weight(expressions_.operand(node, 2)));
}

/// The lookup of rows in weights of both signs, perhaps moved since; kNone for anything else.
NodeId ScoreValues::lookup_of(ValueId value) const {
  for (int step = 0; step < kMaxMoves; ++step) {
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    if (opcode == Opcode::kGather && is_weight(expressions_.operand(node, 0))) return node;
    if (!moves_elements(opcode) && opcode != Opcode::kCast && opcode != Opcode::kDropout) return NodeId::kNone;
    value = expressions_.operand(node, 0);
  }
  return NodeId::kNone;
}

/// Rows of weights, multiplied with other rows and added up, as similarities of what was looked up.
bool ScoreValues::is_product_of_vectors(NodeId node) const {
  NodeId product = node;
  if (expressions_.op(node) == Opcode::kReduceSum)
    product = expressions_.producer(expressions_.operand(node, 0));
  else if (expressions_.op(node) != Opcode::kMatMul)
    return false;
  if (product != node && expressions_.op(product) != Opcode::kMul) return false;
  const NodeId first = lookup_of(expressions_.operand(product, 0));
  const NodeId second = first == NodeId::kNone ? first : lookup_of(expressions_.operand(product, 1));
  // Of the same row with itself they are squares.
  return second != NodeId::kNone && (expressions_.operand(first, 0) != expressions_.operand(second, 0) ||
                                     expressions_.operand(first, 1) != expressions_.operand(second, 1));
}

/// Places of elements, classes and ranks come from scores, and are integers within an axis.
bool ScoreValues::is_counted(ValueId value) const {
  return expressions_.analysis().fact(value).dtypes.proves(DTypeSet::integers() | DTypeSet(DType::kBool));
}

/// A product of a value with itself turned round: what lies on its diagonal are sums of squares.
bool ScoreValues::is_gram(NodeId node) const {
  const auto turned = [&](ValueId value) {
    return expressions_.op_of(value) == Opcode::kTranspose ? expressions_.operand(expressions_.producer(value), 0)
                                                           : ValueId::kAbsent;
  };
  const ValueId a = expressions_.operand(node, 0), b = expressions_.operand(node, 1);
  return a != ValueId::kAbsent && b != ValueId::kAbsent && (turned(a) == b || turned(b) == a);
}

NodeId ScoreValues::layer_of(ValueId value) const {
  for (int step = 0; step < kMaxMoves; ++step) {
    const NodeId node = expressions_.producer(value);
    if (node == NodeId::kNone || is_counted(value)) return NodeId::kNone;
    if (is_layer(node)) return node;
    const Opcode opcode = expressions_.op(node);
    if (opcode == Opcode::kAdd) {
      const auto& model = expressions_.analysis().model();
      const ValueId first = expressions_.operand(node, 0), second = expressions_.operand(node, 1);
      if (first == ValueId::kAbsent || second == ValueId::kAbsent) return NodeId::kNone;
      const bool bias_first = model.value(first).initializer != nullptr;
      if (!bias_first && model.value(second).initializer == nullptr) return NodeId::kNone;
      value = bias_first ? second : first;
    } else if (picks(node) || opcode == Opcode::kCast) {
      value = expressions_.operand(node, 0);
    } else {
      return NodeId::kNone;
    }
  }
  return NodeId::kNone;
}

ScoreValues::Reach ScoreValues::of(ValueId value) {
  if (value == ValueId::kAbsent) return {};
  // The answer must not depend on what was asked for first: what is known is used where it would be found out again.
  const auto found = known_.find(value);
  if (found != known_.end() && depth_ + found->second.levels <= kMaxDepth) {
    deepest_ = std::max(deepest_, depth_ + found->second.levels);
    return found->second.reach;
  }
  if (depth_ >= kMaxDepth) {
    was_cut_ = true;
    return {};
  }
  if (const auto found_so_deep = known_so_deep_.find({value, depth_}); found_so_deep != known_so_deep_.end()) {
    was_cut_ = true;
    return found_so_deep->second;
  }
  const bool was_cut_before = std::exchange(was_cut_, false);
  const int deepest_before = std::exchange(deepest_, depth_ + 1);
  ++depth_;
  const Reach reach = evaluate(value);
  --depth_;
  if (was_cut_)
    known_so_deep_.emplace(std::pair(value, depth_), reach);
  else
    known_.emplace(value, Known{reach, deepest_ - depth_});
  was_cut_ = was_cut_ || was_cut_before;
  deepest_ = std::max(deepest_, deepest_before);
  return reach;
}

ScoreValues::Leaf ScoreValues::read_leaf(ValueId value) {
  const Analysis& analysis = expressions_.analysis();
  Leaf leaf;
  bool picked = false;
  for (int step = 0; step < kMaxMoves; ++step) {
    const Range& range = analysis.fact(value).range;
    const NodeId node = expressions_.producer(value);
    const Opcode opcode = expressions_.op(node);
    if (node == NodeId::kNone) return leaf;
    if (is_counted(value)) {
      leaf.kind = range.lo >= 0 ? LeafKind::kPositive : LeafKind::kOther;
      return leaf;
    }
    if (is_layer(node)) {
      leaf.layer = node;
      if (leaf.kind == LeafKind::kOther) leaf.kind = LeafKind::kScore;
      return leaf;
    }
    if (expressions_.normalised(value) || opcode == Opcode::kSigmoid) {
      const auto softmax = expressions_.normalised(value);
      leaf.kind = softmax && softmax->logarithm ? LeafKind::kOther : LeafKind::kProbability;
      leaf.normaliser = node;
      return leaf;
    }
    if (picks(node) || opcode == Opcode::kCast) {
      picked = picked || (!ops::repeats_elements(opcode) && opcode != Opcode::kCast);
      value = expressions_.operand(node, 0);
      continue;
    }
    if (opcode == Opcode::kReduceMax || opcode == Opcode::kReduceMin || opcode == Opcode::kReduceLogSumExp) {
      leaf.kind = opcode == Opcode::kReduceMin ? LeafKind::kLeast : LeafKind::kGreatest;
      value = expressions_.operand(node, 0);
      continue;
    }
    if (opcode == Opcode::kReduceSum) {
      if (const ValueId picked = picked_by_one_hot(expressions_.operand(node, 0)); picked != ValueId::kAbsent) {
        value = picked;
        continue;
      }
    }
    if (opcode == Opcode::kReduceSum || opcode == Opcode::kReduceMean) {
      const Reach inner = of(expressions_.operand(node, 0));
      if (inner.may_be_negative && inner.may_be_positive) {
        leaf.kind = LeafKind::kScore;
        leaf.layer = inner.layer;
        leaf.is_sum = true;
        leaf.is_share = inner.is_share;
      } else if (inner.never_negative) {
        leaf.kind = LeafKind::kPositive;
        leaf.layer = inner.layer;
      }
      return leaf;
    }
    if (opcode == Opcode::kReduceL1 || opcode == Opcode::kReduceL2 || opcode == Opcode::kReduceSumSquare ||
        range.lo >= 0) {
      leaf.kind = LeafKind::kPositive;
      return leaf;
    }
    if (opcode == Opcode::kMatMul) {
      leaf.is_gram = is_gram(node);
      // What is picked of it may be the diagonal.
      if (leaf.is_gram && picked) {
        leaf.kind = LeafKind::kOther;
        return leaf;
      }
      const Reach a = of(expressions_.operand(node, 0)), b = of(expressions_.operand(node, 1));
      const bool a_signed = a.negative && a.positive, b_signed = b.negative && b.positive;
      if ((a_signed && (b_signed || b.never_negative)) || (b_signed && a.never_negative)) {
        leaf.kind = LeafKind::kScore;
        leaf.layer = a_signed ? a.layer : b.layer;
        leaf.is_share = a.is_share || b.is_share;
      } else if (a.never_negative && b.never_negative) {
        leaf.kind = LeafKind::kPositive;
        leaf.layer = a.layer != NodeId::kNone ? a.layer : b.layer;
      }
      return leaf;
    }
    // Scores that something is computed from before they are picked; at the first step it is the value itself.
    const Reach inner = step > 0 ? of(value) : Reach{};
    leaf.is_share = leaf.is_share || inner.is_share;
    leaf.layer = inner.layer;
    if (!inner.negative || !inner.positive) {
      leaf.kind = inner.never_negative ? LeafKind::kPositive : LeafKind::kOther;
    } else if (leaf.kind == LeafKind::kOther) {
      leaf.kind = LeafKind::kScore;
    }
    return leaf;
  }
  leaf.kind = LeafKind::kOther;
  return leaf;
}

ScoreValues::Reach ScoreValues::evaluate(ValueId value) {
  const Analysis& analysis = expressions_.analysis();
  const Fact& fact = analysis.fact(value);
  Reach reach;
  if (fact.kind != ValueKind::kTensor || fact.dtypes.proves(DTypeSet::integers() | DTypeSet(DType::kBool)))
    return reach;
  reach.never_negative = fact.range.lo >= 0;
  const Formula formula(expressions_, value);
  if (!formula.is_complete() || expressions_.is_spent()) return reach;
  const auto parts = formula.parts();
  std::vector<Leaf> scores, others;
  bool follows_all = true, sums = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind != Formula::PartKind::kLeaf || !formula.depends(parts.size() - 1, i)) continue;
    if (parts[i].value == ValueId::kAbsent) return reach;
    Leaf leaf = read_leaf(parts[i].value);
    leaf.part = i;
    const bool is_score =
        leaf.kind == LeafKind::kScore ||
        ((leaf.kind == LeafKind::kGreatest || leaf.kind == LeafKind::kLeast) && leaf.layer != NodeId::kNone);
    if (!is_score && (leaf.kind == LeafKind::kGreatest || leaf.kind == LeafKind::kLeast)) leaf.kind = LeafKind::kOther;
    // What is computed from scores in a way that is not followed may be anything; what inputs alone come to is data.
    if (leaf.kind == LeafKind::kOther && comes_from_layer(parts[i].value)) follows_all = false;
    (is_score ? scores : others).push_back(leaf);
    if (is_score || reach.layer == NodeId::kNone) reach.layer = leaf.layer;
    if (leaf.normaliser != NodeId::kNone) reach.normaliser = leaf.normaliser;
    sums = sums || leaf.is_sum;
  }
  for (const Leaf& leaf : scores) reach.layer = leaf.layer;
  const auto is_positive = [&](std::size_t part) {
    return std::ranges::any_of(
        others, [&](const Leaf& leaf) { return leaf.kind == LeafKind::kPositive && formula.depends(part, leaf.part); });
  };
  // Zeros and ones that multiply it may leave its diagonal.
  const bool is_masked = std::ranges::any_of(parts, [&](const Formula::Part& part) {
    if (part.kind != Formula::PartKind::kLeaf || part.value == ValueId::kAbsent) return false;
    const Range& range = analysis.fact(part.value).range;
    return range.lo == 0 && range.hi == 1;
  });
  follows_all = follows_all && !(is_masked && std::ranges::any_of(scores, &Leaf::is_gram));
  reach.is_share = std::ranges::any_of(scores, &Leaf::is_share);
  for (const Formula::Part& part : parts)
    if (expressions_.op(part.node) == Opcode::kDiv && part.operands.size() == 2 &&
        part.operands[1] != Formula::kNoPart && is_positive(part.operands[1]))
      reach.is_share = true;
  if (!follows_all || scores.size() > kMaxScores || others.size() > 4) return reach;
  const Reach without_scan = reach;
  const auto is_data = [&](const Leaf& leaf) { return leaf.kind == LeafKind::kOther; };
  std::span<const double> free = kScores;
  const auto numbers_of = [&](const Leaf& leaf, std::optional<double> data) -> std::vector<double> {
    if (leaf.kind == LeafKind::kPositive) return {kPositive.begin(), kPositive.end()};
    if (leaf.kind == LeafKind::kProbability) return {kSampledProbabilities.begin(), kSampledProbabilities.end()};
    const Range& range = analysis.fact(parts[leaf.part].value).range;
    if (std::isfinite(range.lo) && std::isfinite(range.hi)) return {range.lo, range.hi, (range.lo + range.hi) / 2};
    if (data) return {*data};
    if (range.lo >= 0) return {kPositive.begin(), kPositive.end()};
    return {kAnything.begin(), kAnything.end()};
  };
  const auto numbers_free = [&](const Leaf& leaf) -> std::span<const double> {
    return leaf.kind == LeafKind::kProbability ? std::span<const double>(kCertainProbabilities) : free;
  };
  double lowest = HUGE_VAL;
  std::vector<Formula::Assignment> given(scores.size() + others.size());
  /// The least and the greatest result over all numbers of the others, for each choice of the scores.
  const auto scan = [&](std::optional<double> data, const auto& found) {
    if (expressions_.is_spent()) return;
    std::vector<std::vector<double>> numbers;
    std::size_t combinations = 1, others_combined = 1;
    for (const Leaf& leaf : others) {
      numbers.push_back(numbers_of(leaf, data));
      others_combined *= numbers.back().size();
    }
    for (std::size_t i = 0; i < scores.size(); ++i) combinations *= numbers_free(scores[i]).size();
    analysis.facts().meter().charge(combinations * others_combined * parts.size() / 4);
    for (std::size_t at = 0; at < combinations && !expressions_.is_spent(); ++at) {
      std::size_t rest = at;
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const auto numbers_of_score = numbers_free(scores[i]);
        const double number = numbers_of_score[rest % numbers_of_score.size()];
        rest /= numbers_of_score.size();
        given[i] = {scores[i].part, (scores[i].is_share ? kCosine : 1) * number};
      }
      // The largest of some scores is not below one of them.
      const auto is_ordered = [&](std::size_t i, std::size_t k) {
        if (scores[i].layer != scores[k].layer) return true;
        if (scores[i].kind == LeafKind::kGreatest && given[i].value < given[k].value) return false;
        return scores[i].kind != LeafKind::kLeast || given[i].value <= given[k].value;
      };
      bool possible = true;
      for (std::size_t i = 0; i < scores.size(); ++i)
        for (std::size_t k = 0; k < scores.size(); ++k) possible = possible && is_ordered(i, k);
      if (!possible) continue;
      double low = HUGE_VAL, high = -HUGE_VAL;
      bool defined = true;
      for (std::size_t other = 0; other < others_combined && defined && !expressions_.is_spent(); ++other) {
        std::size_t left = other;
        for (std::size_t i = 0; i < others.size(); ++i) {
          given[scores.size() + i] = {others[i].part, numbers[i][left % numbers[i].size()]};
          left /= numbers[i].size();
        }
        const double number = formula.evaluate(given, 0);
        defined = !std::isnan(number);
        low = std::min(low, number);
        high = std::max(high, number);
      }
      if (defined) found(low, high);
    }
  };
  bool zero = false, above_zero = false;
  const auto look_for_zero = [&](double high) {
    zero = zero || high <= 0;
    above_zero = above_zero || high > 0;
  };
  // What is divided by a length is as small as the length is large.
  const double clearly = reach.is_share ? 0 : kClearly;
  scan(std::nullopt, [&](double low, double high) {
    lowest = std::min(lowest, low);
    if (scores.empty()) return;
    look_for_zero(high);
    reach.negative = reach.negative || high < -clearly;
    reach.positive = reach.positive || low > clearly;
    reach.beyond_one = reach.beyond_one || high < -1 - kClearly || low > 1 + kClearly;
  });
  reach.comes_to_zero = zero && above_zero;
  reach.may_be_negative = reach.negative;
  reach.may_be_positive = reach.positive;
  if (!scores.empty() && std::ranges::any_of(others, is_data))
    for (const double data : kLabels)
      scan(data, [&](double low, double high) {
        reach.may_be_negative = reach.may_be_negative || high < -clearly;
        reach.may_be_positive = reach.may_be_positive || low > clearly;
      });
  if (!reach.negative) {
    // Probabilities are free as well.
    const auto probabilities =
        std::ranges::stable_partition(others, [](const Leaf& leaf) { return leaf.kind != LeafKind::kProbability; });
    scores.insert(scores.end(), probabilities.begin(), probabilities.end());
    others.erase(probabilities.begin(), others.end());
    zero = above_zero = false;
    free = kSaturated;
    // An exporter writes a loss of scores with 1 - sigmoid: nothing of that is the program's.
    const bool has_sigmoid = std::ranges::any_of(
        parts, [&](const Formula::Part& part) { return expressions_.op(part.node) == Opcode::kSigmoid; });
    if (!has_sigmoid && !scores.empty() && scores.size() <= kMaxScores)
      scan(kLabels[1], [&](double, double high) { look_for_zero(high); });
    reach.saturates_at_zero = zero && above_zero;
  }
  if (expressions_.is_spent()) return without_scan;
  reach.negative = reach.negative && fact.range.lo < 0;
  reach.may_be_negative = reach.may_be_negative && fact.range.lo < 0;
  reach.never_negative = reach.never_negative || (lowest >= 0 && lowest < HUGE_VAL);
  reach.sums_cross_zero = sums && reach.may_be_negative && reach.may_be_positive;
  return reach;
}

ValueId ScoreValues::picked_by_one_hot(ValueId summed) const {
  const NodeId product = expressions_.producer(summed);
  if (expressions_.op(product) != Opcode::kMul) return ValueId::kAbsent;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const ValueId shares = expressions_.operand(product, side);
    const NodeId chooses = expressions_.producer(expressions_.source(expressions_.operand(product, 1 - side)));
    const auto softmax = expressions_.normalised(shares);
    if (!softmax || softmax->logarithm || chooses == NodeId::kNone) continue;
    if (expressions_.op(chooses) == Opcode::kOneHot || expressions_.op(chooses) == Opcode::kEqual) return shares;
  }
  return ValueId::kAbsent;
}

/// A layer is among what the value is computed from, or too much is.
bool ScoreValues::comes_from_layer(ValueId value) const {
  constexpr std::size_t kMaxValues = 64;
  std::vector<ValueId> pending{value};
  Visited<ValueId> seen(expressions_.analysis().meter());
  while (!pending.empty()) {
    const ValueId at = pending.back();
    pending.pop_back();
    const NodeId node = expressions_.producer(at);
    if (node == NodeId::kNone || !seen.insert(at)) continue;
    if (is_layer(node) || seen.size() > kMaxValues || expressions_.is_spent()) return true;
    for (const ValueId operand : expressions_.analysis().operands(node))
      if (!seen.contains(operand)) pending.push_back(operand);
  }
  return false;
}

}  // namespace tensorlint::losses
