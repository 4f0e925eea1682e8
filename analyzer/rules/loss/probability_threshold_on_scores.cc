#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::LossKind;
using losses::LossSite;
using ops::Opcode;

class ProbabilityThresholdOnScores : public Rule {
 public:
  ProbabilityThresholdOnScores()
      : Rule({"TL-L371", "probability-threshold-on-scores", "loss", findings::Severity::kWarning,
              "scores, of which a loss makes probabilities, are compared with a probability"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (view.losses().empty()) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    std::optional<std::vector<Scored>> losses;
    each_node(view, out, {Opcode::kCompare, Opcode::kRound}, [&](const Expressions&, const NodeCall& call) {
      if (call.model().node(call.id()).graph != GraphId::kMain) return;
      if (!losses) losses = scores_of_losses(expressions, view);
      check(expressions, call, *losses, out);
    });
  }

 private:
  static constexpr int kMaxSteps = 12;

  /// Which outputs of a layer, from the first to before the last.
  struct Channels {
    std::int64_t begin = 0, end = std::numeric_limits<std::int64_t>::max();
  };

  /// A loss that makes probabilities of what a layer gives, or takes the likeliest class of it for its label.
  struct Scored {
    NodeId layer;
    NodeId anchor;
    LossKind kind;
    Channels channels;
    bool is_label = false;  ///< the label is made of the scores, and not the prediction
  };

  static std::vector<Scored> scores_of_losses(const Expressions& expressions, const ModelView& view) {
    const losses::ScoreValues scores(expressions);
    std::vector<Scored> found;
    for (const LossSite& loss : view.losses()) {
      const bool classes = ops::takes_class_indices(loss.kind);
      if (classes) {
        const ValueId label = before_moves(expressions, loss.target);
        const NodeId extreme = expressions.producer(label);
        if (expressions.op(extreme) == Opcode::kArgExtreme)
          if (const NodeId layer = layer_of(scores, expressions, expressions.operand(extreme, 0));
              layer != NodeId::kNone)
            found.push_back({layer, loss.anchor, loss.kind,
                             channels_of(expressions, expressions.operand(extreme, 0), layer), true});
      }
      ValueId value = before_guard(expressions, loss.prediction);
      bool is_probability = false;
      if (const auto softmax = expressions.normalised(value)) {
        value = softmax->scores;
        is_probability = true;
      } else if (expressions.op_of(value) == Opcode::kSigmoid) {
        value = expressions.operand(expressions.producer(value), 0);
        is_probability = true;
      }
      const bool takes_scores = loss.kind == LossKind::kCrossEntropy || loss.kind == LossKind::kFocal ||
                                loss.kind == LossKind::kBinaryCrossEntropyWithLogits ||
                                loss.kind == LossKind::kBinaryFocal;
      if (!takes_scores && !is_probability) continue;
      const NodeId layer = layer_of(scores, expressions, value);
      if (layer != NodeId::kNone)
        found.push_back({layer, loss.anchor, loss.kind, channels_of(expressions, value, layer)});
    }
    return found;
  }

  /// The axis of a layer's result that its outputs lie along.
  static std::optional<std::size_t> channel_axis(const Expressions& expressions, NodeId layer) {
    const std::size_t rank = expressions.dims(expressions.result(layer)).size();
    if (expressions.op(layer) == Opcode::kConv) return rank > 1 ? std::optional<std::size_t>(1) : std::nullopt;
    if (expressions.op(layer) != Opcode::kMatMul || rank == 0) return std::nullopt;
    const ValueId weight = before_stretch(expressions, expressions.operand(layer, 1));
    if (weight == ValueId::kAbsent || expressions.analysis().model().value(weight).initializer == nullptr)
      return std::nullopt;
    return rank - 1;
  }

  /// The value that a layer's scores come from on their way to `value`: what is scaled, shifted, moved.
  static ValueId before(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(value);
    if (const auto numbered = with_number(expressions, node);
        numbered && !ops::picks_elements(expressions.op(node)) && expressions.op(node) != Opcode::kReduceMax)
      return numbered->value;
    const ValueId first = expressions.operand(node, 0);
    if (expressions.op(node) == Opcode::kAdd && first != ValueId::kAbsent &&
        expressions.analysis().model().value(first).initializer != nullptr)
      return expressions.operand(node, 1);
    return first;
  }

  /// Those outputs of the layer that `value` has, of which the layer was found; all of them where that is not known.
  static Channels channels_of(const Expressions& expressions, ValueId value, NodeId layer) {
    constexpr int kMaxWay = 32;
    std::vector<ValueId> way;
    const ValueId outputs = expressions.result(layer);
    for (int step = 0; step < kMaxWay && value != ValueId::kAbsent && value != outputs; ++step) {
      expressions.charge(1);
      way.push_back(value);
      value = before(expressions, value);
    }
    Channels channels;
    auto axis = channel_axis(expressions, layer);
    if (value != outputs || !axis) return channels;
    for (; !way.empty() && axis; way.pop_back()) {
      axis = narrow(expressions, value, way.back(), *axis, channels);
      value = way.back();
    }
    return channels;
  }

  /// Takes what is left out on the way from one value to the next from `channels`, which lie along `axis`, and gives
  /// the axis that they lie along then; nullopt where they do not any more, or nobody knows.
  static std::optional<std::size_t> narrow(const Expressions& expressions, ValueId from, ValueId to, std::size_t axis,
                                           Channels& channels) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const DimPool& pool = analysis.facts().dims();
    const auto whole = expressions.dims(from), part = expressions.dims(to);
    if (axis >= whole.size()) return std::nullopt;
    const NodeId node = expressions.producer(to);
    const Opcode opcode = expressions.op(node);
    const auto extent = pool.as_constant(whole[axis]);
    const auto integer = [&](std::string_view name) {
      const Attribute* given = analysis.attribute(node, name);
      const std::int64_t at = given == nullptr ? 0 : given->i;
      return static_cast<std::size_t>(at < 0 ? at + static_cast<std::int64_t>(whole.size()) : at);
    };
    const auto take = [&](std::int64_t begin, std::int64_t count) {
      channels.end = channels.begin + begin + count;
      channels.begin += begin;
    };
    // Elements are picked from the front or the end.
    const auto places = [&](ValueId value) -> std::optional<Channels> {
      if (value == ValueId::kAbsent || !extent) return std::nullopt;
      const Range& range = analysis.fact(value).range;
      const double shift = range.hi < 0 ? static_cast<double>(*extent) : 0;
      if (range.nan || !(range.lo + shift >= 0) || !(range.hi + shift < static_cast<double>(*extent)))
        return std::nullopt;
      return Channels{static_cast<std::int64_t>(range.lo + shift), static_cast<std::int64_t>(range.hi + shift) + 1};
    };
    if (opcode == Opcode::kTranspose) {
      const Attribute* given = analysis.attribute(node, "perm");
      if (given == nullptr || given->ints.size() != whole.size()) return std::nullopt;
      const auto found = std::ranges::find(given->ints, static_cast<std::int64_t>(axis));
      return found == given->ints.end() ? std::nullopt
                                        : std::optional(static_cast<std::size_t>(found - given->ints.begin()));
    }
    if (opcode == Opcode::kGather) {
      const std::size_t at = integer("axis");
      const auto picked = places(expressions.operand(node, 1));
      if (at != axis) return at > axis && part.size() + 1 >= whole.size() ? std::optional(axis) : std::nullopt;
      if (picked) take(picked->begin, picked->end - picked->begin);
      return std::nullopt;
    }
    if (part.size() != whole.size()) return std::nullopt;
    if (pool.equal(whole[axis], part[axis])) {
      const bool keeps = opcode == Opcode::kSlice || opcode == Opcode::kSplit || opcode == Opcode::kExpand ||
                         opcode == Opcode::kIdentity || opcode == Opcode::kCast || opcode == Opcode::kDropout ||
                         opcode == Opcode::kAdd || opcode == Opcode::kMul || opcode == Opcode::kDiv;
      return keeps ? std::optional(axis) : std::nullopt;
    }
    const auto count = pool.as_constant(part[axis]);
    if (!count) return std::nullopt;
    if (opcode == Opcode::kSplit && integer("axis") == axis) {
      std::int64_t begin = 0;
      for (const ValueId result : analysis.results(node)) {
        if (result == to) {
          take(begin, *count);
          return axis;
        }
        const auto dims = expressions.dims(result);
        const auto width = axis < dims.size() ? pool.as_constant(dims[axis]) : std::nullopt;
        if (!width) return std::nullopt;
        begin += *width;
      }
    }
    if (opcode == Opcode::kSlice) {
      // One start: of this axis, which alone is shorter.
      const ValueId step = expressions.operand(node, 4);
      const auto begin = places(expressions.operand(node, 1));
      if (!begin || begin->end != begin->begin + 1 || *count > *extent - begin->begin ||
          (step != ValueId::kAbsent && !expressions.is_number(step, 1)))
        return std::nullopt;
      for (std::size_t i = 0; i < whole.size(); ++i)
        if (i != axis && !pool.equal(whole[i], part[i])) return std::nullopt;
      take(begin->begin, *count);
      return axis;
    }
    return std::nullopt;
  }

  static NodeId layer_of(const losses::ScoreValues& scores, const Expressions& expressions, ValueId value) {
    value = before_scale(expressions, value);
    return value == ValueId::kAbsent ? NodeId::kNone : scores.layer_of(value);
  }

  static void check(const Expressions& expressions, const NodeCall& call, const std::vector<Scored>& losses,
                    Reporter& out) {
    const bool rounds = call.is(Opcode::kRound);
    const auto numbered = with_number(expressions, call.id());
    if (rounds ? !is_compared(expressions, call.result()) : !numbered || !is_probability(numbered->number)) return;
    const ValueId compared = rounds ? call.operand(0).value() : numbered->value;
    bool largest = false;
    const ValueId scores = before_largest(expressions, compared, largest);
    if (scores == ValueId::kAbsent || (rounds && largest)) return;
    if (const auto softmax = expressions.normalised(scores); softmax && softmax->logarithm && !rounds) {
      const Operand operand(call.analysis(), compared);
      out.report(call.id(), fmt::format("{} compares {} with {:.4g} as if it was a probability, but logarithms of "
                                        "probabilities are never above 0",
                                        call.op_name(), operand.name(), numbered->number))
          .note_at(softmax->node, "the logarithms are computed here")
          .fix("take the exponential first, or use softmax in place of log_softmax");
      return;
    }
    const NodeId layer = losses::ScoreValues(expressions).layer_of(scores);
    if (layer == NodeId::kNone || is_cosine(expressions, layer)) return;
    const Channels channels = channels_of(expressions, compared, layer);
    for (const Scored& loss : losses) {
      if (!is_same_layer(expressions, loss.layer, layer) || loss.channels.end <= channels.begin ||
          channels.end <= loss.channels.begin)
        continue;
      const bool binary =
          loss.kind != LossKind::kCrossEntropy && loss.kind != LossKind::kFocal && !ops::takes_class_indices(loss.kind);
      report(expressions, call, loss, rounds ? 0.5 : numbered->number, compared, binary, layer, out);
      return;
    }
  }

  static void report(const Expressions& expressions, const NodeCall& call, const Scored& loss, double limit,
                     ValueId compared, bool binary, NodeId layer, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const Operand operand(analysis, compared);
    const std::string situation =
        call.is(Opcode::kRound)
            ? fmt::format("{} makes labels of {} as if it was a probability", call.op_name(), operand.name())
            : fmt::format("{} compares {} with {:.4g} as if it was a probability", call.op_name(), operand.name(),
                          limit);
    const std::string cure =
        !binary        ? "take the softmax of the scores first: softmax(dim=-1).max(dim=-1)"
        : limit == 0.5 ? "take the sigmoid of the score first, or compare the score with 0: its sigmoid is 0.5 there"
                       : fmt::format(
                             "take the sigmoid of the score first, or compare the score with {:.3f}: its sigmoid is "
                             "{:.4g} there",
                             std::log(limit / (1 - limit)), limit);
    out.report(call.id(),
               fmt::format("{}, but {} gives scores of any size", situation, NodeCall(analysis, layer).op_name()))
        .note_at(layer, "the scores are computed here")
        .note_at(loss.anchor, loss.is_label ? "the class of the largest score is the label here"
                                            : fmt::format("{} makes probabilities of them here", to_text(loss.kind)))
        .fix(cure);
  }

  /// A number that a program writes for a probability: a logarithm of odds has more digits.
  static bool is_probability(double number) {
    constexpr double kDigits = 1000;
    return number > 0 && number < 1 && std::abs(number * kDigits - std::round(number * kDigits)) < 1e-4 * kDigits;
  }

  /// Before elements were moved, and before the largest was taken of each row.
  static ValueId before_largest(const Expressions& expressions, ValueId value, bool& largest) {
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kReduceMax || opcode == Opcode::kTopK) {
        largest = true;
      } else if (!ops::picks_elements(opcode) && opcode != Opcode::kCast) {
        break;
      } else if (opcode == Opcode::kGather &&
                 expressions.analysis().model().value(expressions.operand(node, 0)).initializer != nullptr) {
        break;
      }
      value = expressions.operand(node, 0);
    }
    return value;
  }

  /// Rounded to 0 and 1, to be compared with labels.
  static bool is_compared(const Expressions& expressions, ValueId rounded) {
    return std::ranges::any_of(expressions.users(rounded), [&](NodeId user) {
      return expressions.op(user) == Opcode::kEqual && !with_number(expressions, user);
    });
  }

  /// A product of what has been divided by its length.
  static bool is_cosine(const Expressions& expressions, NodeId layer) {
    return is_of_unit_length(expressions, expressions.operand(layer, 0)) ||
           is_of_unit_length(expressions, expressions.operand(layer, 1));
  }

  /// The same node, or the same weights on other data.
  static bool is_same_layer(const Expressions& expressions, NodeId a, NodeId b) {
    if (a == b) return true;
    const Model& model = expressions.analysis().model();
    if (expressions.op(a) != expressions.op(b)) return false;
    const ValueId weight = expressions.operand(a, 1);
    return weight != ValueId::kAbsent && weight == expressions.operand(b, 1) &&
           model.value(weight).initializer != nullptr;
  }
};

const RegisterRule<ProbabilityThresholdOnScores> kRegisterProbabilityThresholdOnScores;

}  // namespace
}  // namespace tensorlint::rules
