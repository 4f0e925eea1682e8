#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <span>
#include <string>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/axis_way.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ScoresScaledByOtherExtent : public Rule {
 public:
  ScoresScaledByOtherExtent()
      : Rule({"TL-V550", "scores-scaled-by-other-extent", "value", findings::Severity::kWarning,
              "scores of attention that are divided by the root of the number of tokens, not of the width of the "
              "heads, or multiplied with a root"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    Visited<NodeId> seen(view.analysis().meter());
    each_node(view, out, {Opcode::kSoftmax, Opcode::kLogSoftmax},
              [&](const Expressions& expressions, const NodeCall& call) {
                check_scores(expressions, call.operand(0).value(), seen, out);
              });
    if (!has_node(out, {Opcode::kMatMul, Opcode::kEinsum})) return;
    // Pointers are scores, too.
    for (const losses::LossSite& loss : view.losses())
      if (loss.kind == ops::LossKind::kCrossEntropy && !view.analysis().has_failed(loss.anchor))
        check_scores(out.shared<losses::LossAxes>().expressions, loss.prediction, seen, out);
  }

 private:
  /// What scores are divided by: a number, or the root of an extent that a run has.
  struct Scale {
    NodeId node = NodeId::kNone;
    double divisor = 0;
    std::optional<Dim> extent{};
    bool multiplies = false;  ///< with the root of the extent, where that is known
  };

  static void check_scores(const Expressions& expressions, ValueId value, Visited<NodeId>& seen, Reporter& out) {
    constexpr int kMaxSteps = 8;
    Scale scale;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kMul || opcode == Opcode::kDiv) {
        ValueId scores = ValueId::kAbsent;
        const auto found = scale_of(expressions, node, scores);
        if (!found || scale.node != NodeId::kNone) return;
        scale = *found;
        value = scores;
      } else if (opcode == Opcode::kAdd || opcode == Opcode::kTranspose || ops::keeps_elements(opcode)) {
        value = expressions.operand(node, 0);
      } else if (opcode == Opcode::kWhere) {
        value = expressions.operand(node, expressions.number(expressions.operand(node, 1)) ? 2 : 1);
      } else {
        if (opcode != Opcode::kMatMul && opcode != Opcode::kEinsum) return;
        if (check_factor(expressions, scale, node, seen, out)) return;
        if (scale.node != NodeId::kNone && !scale.multiplies && seen.insert(scale.node))
          check_divisor(expressions, scale, node, out);
        return;
      }
    }
  }

  static std::optional<Scale> scale_of(const Expressions& expressions, NodeId node, ValueId& scores) {
    const bool divides = expressions.op(node) == Opcode::kDiv;
    if (const auto scaled = with_number(expressions, node)) {
      if (scaled->number <= 0 || (divides && scaled->is_first)) return std::nullopt;
      scores = scaled->value;
      return Scale{node, divides ? scaled->number : 1 / scaled->number};
    }
    // A root that is computed when the model runs.
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      if (divides && side == 0) break;
      const ValueId factor = expressions.operand(node, side);
      const NodeId root =
          factor == ValueId::kAbsent ? NodeId::kNone : expressions.producer(before_stretch(expressions, factor));
      const auto power = expressions.op(root) == Opcode::kSqrt  ? std::optional(0.5)
                         : expressions.op(root) == Opcode::kPow ? expressions.number(expressions.operand(root, 1))
                                                                : std::nullopt;
      if (!power || std::abs(*power) != 0.5) continue;
      const bool multiplies = divides == (*power < 0);
      const ValueId size = before_stretch(expressions, expressions.operand(root, 0));
      scores = expressions.operand(node, 1 - side);
      if (const auto number = expressions.number(size); number && *number > 0)
        return Scale{node, std::pow(*number, multiplies ? -0.5 : 0.5)};
      const Content* content = size == ValueId::kAbsent ? nullptr : expressions.analysis().content(size);
      if (content != nullptr && content->integers.size() == 1) return Scale{node, 0, content->integers[0], multiplies};
    }
    return std::nullopt;
  }

  static void check_divisor(const Expressions& expressions, const Scale& scale, NodeId product, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const DimPool& pool = analysis.facts().dims();
    const losses::AxisWay way(expressions);
    const auto scores = expressions.dims(expressions.result(product)),
               queries = expressions.dims(expressions.operand(product, 0));
    const auto summed = way.summed(product, 0);
    if (scores.size() < 3 || analysis.operands(product).size() != 2 || summed.size() != 1 ||
        summed.front() >= queries.size() || expressions.dims(expressions.operand(product, 1)).size() < 3 ||
        NodeCall(analysis, product).attribute("alpha") != nullptr)
      return;
    const Dim width = queries[summed.front()];
    for (const std::size_t from_end : {std::size_t{1}, std::size_t{2}}) {
      const Dim tokens = scores[scores.size() - from_end];
      if (!(scale.extent ? is_other_extent(pool, *scale.extent, tokens, width)
                         : is_root_of(pool, scale.divisor, tokens, width, scores, from_end)))
        continue;
      const std::string wide = pool.to_text(width);
      out.report(scale.node, fmt::format("scores of vectors of {0} elements are divided by the root of {1}, the number "
                                         "of tokens: their spread is that of the root of {0}",
                                         wide, pool.to_text(tokens)))
          .note_at(product, fmt::format("sums over {} elements", wide))
          .fix("divide by the root of the last extent of the queries: q.size(-1) ** 0.5");
      return;
    }
  }

  /// Scores that are multiplied with the width of what they are sums over, or its root, together with what queries and
  /// keys were scaled by.
  static bool check_factor(const Expressions& expressions, const Scale& scale, NodeId product, Visited<NodeId>& seen,
                           Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const DimPool& pool = analysis.facts().dims();
    const losses::AxisWay way(expressions);
    const auto queries = expressions.dims(expressions.operand(product, 0));
    const auto summed = way.summed(product, 0);
    if (analysis.operands(product).size() != 2 || summed.size() != 1 || summed.front() >= queries.size() ||
        queries.size() < 3 || expressions.dims(expressions.operand(product, 1)).size() < 3 ||
        NodeCall(analysis, product).attribute("alpha") != nullptr)
      return false;
    Scale all = scale;
    double factor = scale.node == NodeId::kNone || scale.extent ? 1 : 1 / scale.divisor;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
      if (!has_free_length(expressions, expressions.operand(product, side), all.node, factor)) return false;
    const Dim width = queries[summed.front()];
    const auto constant = pool.as_constant(width);
    const auto is_about = [&](double expected) { return std::abs(factor - expected) < 1e-4 * expected; };
    bool is_root = false;
    if (scale.extent) {
      is_root = scale.multiplies && pool.equal(*scale.extent, width) && is_about(1);
      if (!is_root) return false;
    } else {
      constexpr std::int64_t kLeastWidth = 4;
      if (all.node == NodeId::kNone || !constant || *constant < kLeastWidth) return false;
      is_root = is_about(std::sqrt(static_cast<double>(*constant)));
      if (!is_root && !is_about(static_cast<double>(*constant))) return false;
    }
    if (!seen.insert(all.node)) return true;
    const std::string wide = pool.to_text(width);
    out.report(all.node,
               fmt::format("scores of vectors of {0} elements are multiplied with {1}{0}, where a division by "
                           "the root of {0} keeps them apart from 0 and 1: the softmax picks one of them",
                           wide, is_root ? "the root of " : ""))
        .note_at(product, fmt::format("sums over {} elements", wide))
        .fix("divide by the root of the last extent of the queries: q.size(-1) ** 0.5");
    return true;
  }

  /// Vectors that layers make, as long as they come: not normalised, no probabilities, and not looked
  /// up as they are, since tables are made for their use. Their scale by numbers goes to `factor`.
  static bool has_free_length(const Expressions& expressions, ValueId value, NodeId& scaled, double& factor) {
    constexpr int kMaxSteps = 12;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (node == NodeId::kNone) return false;
      const auto numbered = with_number(expressions, node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
      if (opcode == Opcode::kMul || opcode == Opcode::kDiv) {
        if (!numbered || numbered->number <= 0 || (opcode == Opcode::kDiv && numbered->is_first)) return false;
        factor *= opcode == Opcode::kMul ? numbered->number : 1 / numbered->number;
        scaled = node;
        value = numbered->value;
      } else if (opcode == Opcode::kAdd) {
        // A bias.
        if (first == ValueId::kAbsent || second == ValueId::kAbsent) return false;
        const bool is_bias_first = is_constant(expressions, first);
        if (!is_bias_first && !is_constant(expressions, second)) return false;
        value = is_bias_first ? second : first;
      } else if (opcode == Opcode::kMatMul || opcode == Opcode::kConv) {
        return (first != ValueId::kAbsent && is_constant(expressions, before_stretch(expressions, first))) ||
               (second != ValueId::kAbsent && is_constant(expressions, before_stretch(expressions, second)));
      } else if (opcode == Opcode::kRecurrence) {
        return true;
      } else if (opcode == Opcode::kGather) {
        // One of queries, keys and values that a layer makes together.
        if (first == ValueId::kAbsent || is_constant(expressions, before_stretch(expressions, first))) return false;
        value = first;
      } else if (ops::moves_elements(opcode) || opcode == Opcode::kSplit || opcode == Opcode::kCast ||
                 opcode == Opcode::kDropout) {
        value = first;
      } else {
        return false;
      }
    }
    return false;
  }

  static bool is_other_extent(const DimPool& pool, Dim extent, Dim tokens, Dim width) {
    return pool.equal(extent, tokens) && !pool.equal(extent, width);
  }

  static bool is_root_of(const DimPool& pool, double divisor, Dim extent, Dim vectors, std::span<const Dim> scores,
                         std::size_t from_end) {
    const auto width = pool.as_constant(vectors), tokens = pool.as_constant(extent);
    // A multiple of the width may be that of all heads.
    if (!width || !tokens || *width < 2 || *tokens < 2 || *tokens % *width == 0) return false;
    if (std::abs(divisor * divisor - static_cast<double>(*tokens)) > 1e-4 * static_cast<double>(*tokens)) return false;
    // A whole number is chosen as it is more often than a root of the number of queries.
    if (from_end == 2 && std::abs(divisor - std::round(divisor)) < 1e-4) return false;
    const auto heads = scores.size() == 4 ? pool.as_constant(scores[1]) : std::nullopt;
    return !heads || *heads * *width != *tokens;
  }
};

const RegisterRule<ScoresScaledByOtherExtent> kRegisterScoresScaledByOtherExtent;

}  // namespace
}  // namespace tensorlint::rules
