#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/formula.h"
#include "passes/losses/score_values.h"

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
    if (!formula.is_complete()) return std::nullopt;
    const losses::ScoreValues scores(expressions);
    std::optional<std::size_t> leaf;
    std::vector<Formula::Assignment> given;
    const auto parts = formula.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf) continue;
      if (parts[i].value == ValueId::kAbsent) return std::nullopt;
      if (const auto label = same_number(expressions.analysis(), parts[i].value)) {
        given.push_back({i, *label});
        continue;
      }
      if (leaf || scores.layer_of(before_stretch(expressions, parts[i].value)) == NodeId::kNone) return std::nullopt;
      leaf = i;
    }
    if (!leaf) return std::nullopt;
    given.push_back({*leaf, 0});
    constexpr std::array kScores{-4.0, -2.0, -0.5, 0.5, 2.0, 4.0};
    bool rises = true, falls = true;
    double before = std::nan("");
    for (const double score : kScores) {
      given.back().value = score;
      const double value = std::copysign(1.0, term.factor) * formula.evaluate(given, 0);
      if (std::isnan(value)) return std::nullopt;
      rises = rises && !(value < before);
      falls = falls && !(value > before);
      before = value;
    }
    if (rises == falls) return std::nullopt;
    return Wanted{expressions.producer(expressions.operand(term.node, 0)),
                  before_stretch(expressions, parts[*leaf].value), falls};
  }
};

const RegisterRule<LabelsContradict> kRegisterLabelsContradict;

}  // namespace
}  // namespace tensorlint::rules
