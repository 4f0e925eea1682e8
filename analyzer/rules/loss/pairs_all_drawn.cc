#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/formula.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

/// Hadsell, Chopra, LeCun, "Dimensionality Reduction by Learning an Invariant Mapping" (2006): pairs of one kind are
/// drawn together, those of the other kind cost relu(margin - d).
class PairsAllDrawn : public Rule {
 public:
  PairsAllDrawn()
      : Rule({"TL-L419", "pairs-all-drawn", "loss", findings::Severity::kWarning,
              "a loss of pairs that rises with the distance of both kinds, for one of them from a margin on"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1 || !has_node(out, {Opcode::kMul, Opcode::kWhere})) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const std::vector<AddedReduction> reductions = added_reductions(expressions, outputs[0]);
    if (reductions.size() == 1) check_term(expressions, reductions.front(), out);
  }

 private:
  static constexpr std::array kDistances{0.01, 0.04, 0.25, 1.0, 2.25, 4.0, 9.0, 36.0, 400.0};

  static void check_term(const Expressions& expressions, const AddedReduction& term, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const Formula formula(expressions, expressions.operand(term.node, 0));
    if (!formula.is_complete()) return;
    std::optional<std::size_t> label, distance;
    const auto parts = formula.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf) continue;
      if (parts[i].value == ValueId::kAbsent) return;
      auto& leaf = is_input(analysis, before_stretch(expressions, parts[i].value)) ? label : distance;
      if (leaf) return;
      leaf = i;
    }
    if (!label || !distance || !is_distance(expressions, parts[*distance].value) ||
        !out.shared<losses::Parameters>().reach(parts[*distance].value))
      return;
    bool rises[2] = {true, true}, is_flat_first[2] = {false, false};
    for (const std::size_t kind : {std::size_t{0}, std::size_t{1}}) {
      std::array<double, kDistances.size()> costs{};
      for (std::size_t i = 0; i < costs.size(); ++i)
        costs[i] = std::copysign(1.0, term.factor) *
                   formula.evaluate(std::array{Formula::Assignment{*label, static_cast<double>(kind)},
                                               Formula::Assignment{*distance, kDistances[i]}},
                                    0);
      for (std::size_t i = 1; i < costs.size(); ++i) rises[kind] = rises[kind] && costs[i] >= costs[i - 1] - 1e-9;
      rises[kind] = rises[kind] && costs.back() > costs.front() + 1e-3;
      is_flat_first[kind] = std::abs(costs[2] - costs[0]) < 1e-9;
    }
    if (!rises[0] || !rises[1] || is_flat_first[0] == is_flat_first[1]) return;
    const int apart = is_flat_first[0] ? 0 : 1;
    out.report(expressions.producer(expressions.operand(term.node, 0)),
               fmt::format("the loss rises with the distance of pairs of both kinds: those where {} is {} cost nothing "
                           "when they are near, and are drawn together from a margin on",
                           Operand(analysis, before_stretch(expressions, parts[*label].value)).name(), apart))
        .note_at(expressions.producer(before_stretch(expressions, parts[*distance].value)),
                 "the distance is computed here")
        .fix("let them cost what they lack to the margin: relu(margin - d)");
  }

  static bool is_distance(const Expressions& expressions, ValueId value) {
    value = before_guard(expressions, value);
    const Opcode opcode = expressions.op_of(value);
    return opcode == Opcode::kReduceL2 || opcode == Opcode::kReduceL1 || opcode == Opcode::kReduceSumSquare ||
           (opcode == Opcode::kReduceSum && expressions.square_base(expressions.source(expressions.operand(
                                                expressions.producer(value), 0))) != ValueId::kAbsent);
  }
};

const RegisterRule<PairsAllDrawn> kRegisterPairsAllDrawn;

}  // namespace
}  // namespace tensorlint::rules
