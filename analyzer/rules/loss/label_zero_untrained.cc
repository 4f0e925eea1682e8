#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/formula.h"
#include "passes/losses/gradient_way.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class LabelZeroUntrained : public Rule {
 public:
  LabelZeroUntrained()
      : Rule({"TL-L365", "label-zero-untrained", "loss", findings::Severity::kWarning,
              "labels of 0 and 1 in a loss that takes -1 and 1"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    for (const ValueId output : one_float_outputs(view.analysis())) {
      losses::GradientWays& ways = out.shared<losses::GradientWays>();
      for (const AddedReduction& term : added_reductions(ways.expressions(), output)) check_term(ways, term, out);
    }
  }

 private:
  struct Leaves {
    std::size_t label = 0;
    std::vector<std::size_t> scores;
  };

  /// One truth value as a number, and scores that are trained; nothing else.
  static std::optional<Leaves> leaves_of(losses::GradientWays& ways, const Formula& formula) {
    constexpr std::size_t kMaxScores = 3;
    const dataflow::Analysis& analysis = ways.expressions().analysis();
    Leaves leaves;
    bool has_label = false;
    const auto is_truth = [&](std::size_t i) {
      const ValueId value = formula.parts()[i].value;
      return value != ValueId::kAbsent && analysis.fact(value).dtypes == DTypeSet(DType::kBool);
    };
    for (std::size_t i = 0; i < formula.parts().size(); ++i)
      if (is_truth(i)) {
        has_label = true;
        leaves.label = i;  // the last one: what the others are combined to
      }
    for (std::size_t i = 0; i < formula.parts().size(); ++i) {
      const Formula::Part& part = formula.parts()[i];
      if (has_label && formula.depends(leaves.label, i)) continue;
      if (is_truth(i)) return std::nullopt;
      if (part.kind != Formula::PartKind::kLeaf) continue;
      if (part.value == ValueId::kAbsent || analysis.taint(part.value).has(Aspect::kValue) ||
          leaves.scores.size() >= kMaxScores || !ways.of_loss(part.value).reaches_weight)
        return std::nullopt;
      leaves.scores.push_back(i);
    }
    return has_label && !leaves.scores.empty() ? std::optional(leaves) : std::nullopt;
  }

  static void check_term(losses::GradientWays& ways, const AddedReduction& term, Reporter& out) {
    const Expressions& expressions = ways.expressions();
    const dataflow::Analysis& analysis = expressions.analysis();
    const Formula formula(expressions, expressions.operand(term.node, 0));
    if (!formula.is_complete()) return;
    // Where the label multiplies the score; a Where that chooses by it has another coding in mind.
    const auto leaves = leaves_of(ways, formula);
    if (!leaves) return;
    const Formula::Part* meeting = nullptr;
    for (std::size_t i = 0; i < formula.parts().size() && meeting == nullptr; ++i) {
      const auto depends = [&](std::size_t leaf) { return formula.depends(i, leaf); };
      if (depends(leaves->label) && std::ranges::any_of(leaves->scores, depends)) meeting = &formula.parts()[i];
    }
    if (meeting == nullptr || expressions.op(meeting->node) != Opcode::kMul) return;
    const auto range_at = [&](double label) {
      constexpr std::array kScores{-3.0, -1.0, -0.3, 0.3, 1.0, 3.0};
      double least = HUGE_VAL, most = -HUGE_VAL;
      for (std::size_t at = 0; at < kScores.size(); ++at) {
        std::vector<Formula::Assignment> given{{leaves->label, label}};
        for (std::size_t i = 0; i < leaves->scores.size(); ++i)
          given.push_back({leaves->scores[i], kScores[(at * (i + 1) + i) % kScores.size()]});
        const double value = formula.evaluate(given, 0);
        if (std::isnan(value)) return Range{0, 0, true};
        least = std::min(least, value);
        most = std::max(most, value);
      }
      return Range{least, most, false};
    };
    constexpr double kRounding = 1e-6, kClearly = 0.05;
    const Range zero = range_at(0), one = range_at(1), minus = range_at(-1);
    // What a mask hides is 0 in the sum. And for -1 the loss has to turn round.
    if (zero.nan || one.nan || minus.nan || zero.hi - zero.lo > kRounding || std::abs(zero.lo) < kClearly ||
        one.hi - one.lo < kClearly || minus.hi - minus.lo < kClearly)
      return;
    // The factor that is made of the label.
    ValueId label = formula.parts()[leaves->label].value;
    for (const std::uint32_t factor : meeting->operands)
      if (factor != Formula::kNoPart && formula.depends(factor, leaves->label)) label = formula.parts()[factor].value;
    out.report(meeting->node,
               fmt::format("where {} is 0 the loss is {:.4g} whatever the score is: these samples are not trained",
                           Operand(analysis, label).name(), zero.lo))
        .origin(Operand(analysis, label), Aspect::kValue)
        .fix("make the labels -1 and 1: 2 * labels - 1");
  }
};

const RegisterRule<LabelZeroUntrained> kRegisterLabelZeroUntrained;

}  // namespace
}  // namespace tensorlint::rules
