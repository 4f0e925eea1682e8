#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
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

  /// A loss that makes probabilities of what a layer gives, or takes the likeliest class of it for its label.
  struct Scored {
    NodeId layer;
    NodeId anchor;
    LossKind kind;
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
            found.push_back({layer, loss.anchor, loss.kind, true});
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
      if (layer != NodeId::kNone) found.push_back({layer, loss.anchor, loss.kind});
    }
    return found;
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
    for (const Scored& loss : losses) {
      if (!is_same_layer(expressions, loss.layer, layer)) continue;
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

const RegisterRule<ProbabilityThresholdOnScores> kRegister;

}  // namespace
}  // namespace tensorlint::rules
