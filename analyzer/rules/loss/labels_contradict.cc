#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/one_score.h"
#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class LabelsContradict : public Rule {
 public:
  LabelsContradict()
      : Rule({"TL-L416", "labels-contradict", "loss", findings::Severity::kWarning,
              "scores of the same samples by the same network, of which one term raises what another one lowers"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    // Of more terms, some may be of what a generator makes, which two networks see with two aims.
    const std::vector<AddedReduction> reductions = added_reductions(expressions, outputs[0]);
    if (reductions.size() != 2) return;
    std::vector<Wanted> terms;
    for (const AddedReduction& reduction : reductions)
      if (const auto wanted = wanted_by(expressions, reduction)) terms.push_back(*wanted);
    for (const Wanted& up : terms)
      for (const Wanted& down : terms) {
        constexpr int kLayers = 24;
        if (!up.raises || down.raises ||
            (up.score != down.score && !are_computed_alike(expressions, up.score, down.score, kLayers)))
          continue;
        out.report(down.node, fmt::format("this term lowers {}, and another one raises the same scores of the same "
                                          "samples: one of the two is to be of other samples",
                                          Operand(view.analysis(), down.score).name()))
            .note_at(up.node, "the scores are raised here")
            .note_at(expressions.producer(down.score), "they are computed here")
            .fix("give one of the two terms the samples that it is about, such as those that the model makes");
        return;
      }
  }

 private:
  struct Wanted {
    NodeId node;
    ValueId score;
    bool raises;
  };

  /// A term of one score of a layer alone, which rises or falls with it everywhere.
  static std::optional<Wanted> wanted_by(const Expressions& expressions, const AddedReduction& term) {
    const Formula formula(expressions, expressions.operand(term.node, 0));
    auto one = one_score(expressions, formula);
    if (!one || one->score == ValueId::kAbsent) return std::nullopt;
    constexpr std::array kScores{-4.0, -2.0, -0.5, 0.5, 2.0, 4.0};
    bool rises = true, falls = true;
    double before = std::nan("");
    for (const double score : kScores) {
      one->given.back().value = score;
      const double value = std::copysign(1.0, term.factor) * formula.evaluate(one->given, 0);
      if (std::isnan(value)) return std::nullopt;
      rises = rises && !(value < before);
      falls = falls && !(value > before);
      before = value;
    }
    if (rises == falls) return std::nullopt;
    return Wanted{expressions.producer(expressions.operand(term.node, 0)), before_stretch(expressions, one->score),
                  falls};
  }
};

const RegisterRule<LabelsContradict> kRegisterLabelsContradict;

}  // namespace
}  // namespace tensorlint::rules
