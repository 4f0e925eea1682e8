#include <fmt/format.h>

#include <optional>
#include <set>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/gradient_way.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ChoiceNeverTrained : public Rule {
 public:
  ChoiceNeverTrained()
      : Rule({"TL-L352", "choice-never-trained", "loss", findings::Severity::kWarning,
              "a layer whose scores only choose which features a model reads, and which no gradient reaches"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (view.losses().empty()) return;
    const dataflow::Analysis& analysis = view.analysis();
    std::optional<Reached> reached;
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      const bool is_top = call.is(Opcode::kTopK);
      if (!is_top && !call.is(Opcode::kArgExtreme)) return;
      const auto scorer = scorer_of(expressions, call.operand(0).value());
      if (!scorer) return;
      const auto results = call.results().read();
      const ValueId places = is_top ? (results.size() > 1 ? results[1] : ValueId::kAbsent) : call.result();
      if (places == ValueId::kAbsent) return;
      if (!reached) reached = find_reached(view, out);
      if (!reached->is_complete) return;
      // By another way the gradient comes to the scores, or to another layer with the same weights.
      if (reached->of_loss.contains(expressions.result(scorer->layer)) || reached->of_loss.contains(scorer->weights))
        return;
      const NodeId choice = where_chosen(expressions, places, call.operand(0).value(), *reached);
      if (choice == NodeId::kNone) return;
      const Operand scores(analysis, expressions.result(scorer->layer));
      out.report(call.id(), fmt::format("{} of scores chooses what the model reads, and no gradient reaches {}, which "
                                        "the scores are made with",
                                        call.op_name(), Operand(analysis, scorer->weights).name()))
          .note_at(scorer->layer, fmt::format("{} are computed here", scores.name()))
          .note_at(choice, "chosen here, by place alone")
          .fix(
              "weigh with a Softmax of the scores, multiply what is chosen by its score, or use a straight-through "
              "estimate");
    });
  }

 private:
  static constexpr int kMaxSteps = 12;

  struct Reached {
    bool is_complete = false;
    std::set<ValueId> of_loss, of_predictions;
  };

  static Reached find_reached(const ModelView& view, Reporter& out) {
    losses::GradientWays& ways = out.shared<losses::GradientWays>();
    std::vector<ValueId> predictions;
    for (const losses::LossSite& loss : view.losses())
      if (view.model().node(loss.anchor).graph == GraphId::kMain) predictions.push_back(loss.prediction);
    auto of_loss = ways.reached(one_float_outputs(view.analysis()));
    auto of_predictions = ways.reached(predictions);
    if (!of_loss || !of_predictions) return {};
    return {true, std::move(*of_loss), std::move(*of_predictions)};
  }

  struct Scorer {
    NodeId layer = NodeId::kNone;
    ValueId weights = ValueId::kAbsent;
  };

  /// The layer whose outputs scores are, in their order: one output for each item, or one for each choice with a bias
  /// of both signs. Distances to centres and random projections have neither, and need no training.
  static std::optional<Scorer> scorer_of(const Expressions& expressions, ValueId scores) {
    const dataflow::Analysis& analysis = expressions.analysis();
    bool is_learned = false;
    for (int step = 0; step < kMaxSteps && scores != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(scores);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
      const auto has_both_signs = [&](ValueId bias) {
        return is_constant(expressions, bias) && analysis.fact(bias).range.lo < 0 && analysis.fact(bias).range.hi > 0;
      };
      if (opcode == Opcode::kMatMul || opcode == Opcode::kConv) {
        const ValueId weights = is_constant(expressions, second) ? second
                                : expressions.op_of(second) == Opcode::kTranspose
                                    ? expressions.operand(expressions.producer(second), 0)
                                    : ValueId::kAbsent;
        if (!is_constant(expressions, weights)) return std::nullopt;
        const auto dims = expressions.dims(scores);
        const std::size_t axis = opcode == Opcode::kConv ? 1 : dims.size() - 1;
        is_learned = is_learned || has_both_signs(expressions.operand(node, 2)) ||
                     (axis < dims.size() && analysis.facts().dims().is_constant(dims[axis], 1));
        return is_learned ? std::optional(Scorer{node, weights}) : std::nullopt;
      }
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kAdd && (is_constant(expressions, first) || is_constant(expressions, second))) {
        const bool bias_first = is_constant(expressions, first);
        is_learned = is_learned || has_both_signs(bias_first ? first : second);
        scores = bias_first ? second : first;
      } else if ((opcode == Opcode::kMul || opcode == Opcode::kDiv) && numbered && !numbered->is_first) {
        scores = numbered->value;
      } else if (opcode == Opcode::kSoftmax || opcode == Opcode::kLogSoftmax || opcode == Opcode::kSigmoid ||
                 opcode == Opcode::kCast || ops::moves_elements(opcode)) {
        scores = first;
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  /// Where places choose among the features that the scores were made from, on the way to a layer and a prediction;
  /// kNone where they do not. Rows of a table are codes, whose encoder may be trained elsewhere.
  static NodeId where_chosen(const Expressions& expressions, ValueId places, ValueId scores, const Reached& reached) {
    constexpr std::size_t kMaxValues = 16;
    std::vector<ValueId> values{places};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const ValueId result = expressions.result(user);
        const Opcode opcode = expressions.op(user);
        const ValueId first = expressions.operand(user, 0), second = expressions.operand(user, 1);
        if (result == ValueId::kAbsent) continue;
        const bool picks =
            (opcode == Opcode::kGather || opcode == Opcode::kGatherElements || opcode == Opcode::kGatherND) &&
            second == values[i];
        const bool multiplies = opcode == Opcode::kMul || opcode == Opcode::kMatMul || opcode == Opcode::kEinsum;
        if (picks || multiplies) {
          const ValueId features = picks || second == values[i] ? first : second;
          if (reached.of_predictions.contains(result) && is_scored(expressions, features, scores) &&
              meets_layer(expressions, result, reached))
            return user;
        } else if ((opcode == Opcode::kCast || ops::moves_elements(opcode) || opcode == Opcode::kOneHot ||
                    (opcode == Opcode::kEqual && is_constant(expressions, expressions.beside(user, values[i])))) &&
                   values.size() < kMaxValues) {
          values.push_back(result);
        }
      }
    return NodeId::kNone;
  }

  /// The features are what the scores are computed from.
  static bool is_scored(const Expressions& expressions, ValueId features, ValueId scores) {
    const ValueId source = before_stretch(expressions, features);
    bool found = false;
    walk_back(expressions, scores, [&](ValueId, NodeId node) {
      for (const ValueId operand : expressions.analysis().operands(node))
        found = found || (operand != ValueId::kAbsent && before_stretch(expressions, operand) == source);
      return !found;
    });
    return found && !is_constant(expressions, source);
  }

  /// A layer with weights takes it: features, and no loss terms that labels choose among.
  static bool meets_layer(const Expressions& expressions, ValueId chosen, const Reached& reached) {
    constexpr std::size_t kMaxValues = 24;
    std::vector<ValueId> values{chosen};
    std::set<ValueId> seen{chosen};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent || !reached.of_predictions.contains(result)) continue;
        const Opcode opcode = expressions.op(user);
        if (opcode == Opcode::kRecurrence) return true;
        if (opcode == Opcode::kMatMul || opcode == Opcode::kConv) {
          const ValueId weights = expressions.beside(user, values[i]);
          if (is_constant(expressions, before_stretch(expressions, weights))) return true;
        }
        if (values.size() < kMaxValues && seen.insert(result).second) values.push_back(result);
      }
    return false;
  }
};

const RegisterRule<ChoiceNeverTrained> kRegisterChoiceNeverTrained;

}  // namespace
}  // namespace tensorlint::rules
