#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "analyzer/rules/loss/one_score.h"
#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class LabelsAllAlike : public Rule {
 public:
  LabelsAllAlike()
      : Rule({"TL-L319", "labels-all-alike", "loss", findings::Severity::kWarning,
              "a network that judges given and made samples, with one label for both"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    std::vector<Judged> judged;
    for (const AddedReduction& term : added_reductions(expressions, outputs[0]))
      if (!judge(expressions, term, judged)) return;
    for (const Judged& given : judged)
      for (const Judged& made : judged) {
        // The same network, of what more layers have made.
        if (given.last != made.last || given.best != made.best || given.weights.size() >= made.weights.size() ||
            !std::ranges::includes(made.weights, given.weights))
          continue;
        const bool has_other = std::ranges::any_of(
            judged, [&](const Judged& one) { return one.last == given.last && one.best != given.best; });
        if (has_other) continue;
        const dataflow::Analysis& analysis = view.analysis();
        out.report(made.node, fmt::format("{}, of what the model makes, has the same label as {}, of samples that are "
                                          "given: one score for all is the best one",
                                          Operand(analysis, made.score).name(), Operand(analysis, given.score).name()))
            .note_at(given.node, "the given samples have it here")
            .fix("give them different labels, such as 1 for given samples and 0 for made ones");
        return;
      }
  }

 private:
  struct Judged {
    NodeId node;
    ValueId score;
    ValueId last;  ///< weights of the layer that makes the score
    double best;   ///< the score at which the term is least
    std::set<ValueId> weights;
  };

  /// A term of one score alone: where it is least. False where scores are compared with each other, or with data.
  static bool judge(const Expressions& expressions, const AddedReduction& term, std::vector<Judged>& judged) {
    const Formula formula(expressions, expressions.operand(term.node, 0));
    auto one = one_score(expressions, formula);
    if (!one) return false;
    if (one->score == ValueId::kAbsent) return true;
    constexpr std::array kScores{-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0};
    double best = 0, least = HUGE_VAL, most = -HUGE_VAL;
    for (const double score : kScores) {
      one->given.back().value = score;
      const double value = std::copysign(1.0, term.factor) * formula.evaluate(one->given, 0);
      if (std::isnan(value)) return false;
      most = std::max(most, value);
      if (value < least) {
        least = value;
        best = score;
      }
    }
    // A score that is only kept small has no label.
    if (best == 0 || most - least < 0.1) return true;
    judged.push_back({expressions.producer(expressions.operand(term.node, 0)), one->score,
                      expressions.operand(one->layer, 1), best, weights_of(expressions, one->score)});
    return true;
  }

  /// Of all layers that the value comes from.
  static std::set<ValueId> weights_of(const Expressions& expressions, ValueId value) {
    std::set<ValueId> found;
    const Model& model = expressions.analysis().model();
    walk_back(expressions, value, [&](ValueId, NodeId node) {
      const ValueId weight = expressions.operand(node, 1);
      if ((expressions.op(node) == Opcode::kMatMul || expressions.op(node) == Opcode::kConv) &&
          weight != ValueId::kAbsent && model.value(weight).initializer != nullptr)
        found.insert(weight);
      return true;
    });
    return found;
  }
};

const RegisterRule<LabelsAllAlike> kRegisterLabelsAllAlike;

}  // namespace
}  // namespace tensorlint::rules
