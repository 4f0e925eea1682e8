#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
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

class UnboundedLoss : public Rule {
 public:
  UnboundedLoss()
      : Rule({"TL-L330", "unbounded-loss", "loss", findings::Severity::kWarning,
              "a loss of errors that is below 0 for errors of one side, and falls as they grow"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    // Beside other numbers it may be a metric.
    if (outputs.size() != 1) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    for (const Term& term : terms_of(expressions, outputs[0]))
      if (check_term(expressions, term, out)) return;
  }

 private:
  struct Term {
    ValueId value;
    double sign;
  };

  /// What is added up to the output, with its sign; none where there is too much, or another way of adding.
  static std::vector<Term> terms_of(const Expressions& expressions, ValueId loss) {
    constexpr std::size_t kMaxTerms = 64;
    std::vector<Term> pending{{loss, 1}}, found;
    bool reduced = false;
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxTerms; ++i) {
      const auto [value, sign] = pending[i];
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0);
      const auto numbered = with_number(expressions, node);
      expressions.charge(4);
      if (opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum) {
        reduced = true;
        pending.push_back({first, sign});
      } else if (ops::repeats_elements(opcode) || opcode == Opcode::kCast) {
        pending.push_back({first, sign});
      } else if (opcode == Opcode::kNeg) {
        pending.push_back({first, -sign});
      } else if (numbered && numbered->number != 0 &&
                 (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !numbered->is_first))) {
        pending.push_back({numbered->value, numbered->number < 0 ? -sign : sign});
      } else if (opcode == Opcode::kAdd || opcode == Opcode::kConcat) {
        for (const ValueId operand : expressions.analysis().operands(node))
          if (operand != ValueId::kAbsent) pending.push_back({operand, sign});
      } else {
        found.push_back(pending[i]);
      }
    }
    return reduced ? found : std::vector<Term>();
  }

  /// A difference of a label and of what a layer gives.
  struct Error {
    std::size_t part;
    ValueId score;
    bool label_first;
    NodeId layer;
  };

  static std::optional<Error> error_of(const Expressions& expressions, const Formula& formula) {
    const losses::ScoreValues scores(expressions);
    const auto parts = formula.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].value == ValueId::kAbsent || expressions.op(parts[i].node) != Opcode::kSub) continue;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const ValueId label = before_moves(expressions, expressions.operand(parts[i].node, side));
        const ValueId score = expressions.operand(parts[i].node, 1 - side);
        if (label == ValueId::kAbsent || score == ValueId::kAbsent || !is_input(expressions.analysis(), label))
          continue;
        if (const NodeId layer = scores.layer_of(score); layer != NodeId::kNone)
          return Error{i, score, side == 0, layer};
      }
    }
    return std::nullopt;
  }

  /// Quantiles are a few numbers: which loss it is for each of them.
  static bool check_term(const Expressions& expressions, const Term& term, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    if (term.value == ValueId::kAbsent || analysis.taint(term.value).has(Aspect::kValue)) return false;
    const Formula formula(expressions, term.value);
    if (!formula.is_complete()) return false;
    const auto parts = formula.parts();
    const auto error = error_of(expressions, formula);
    if (!error || error->part + 1 == parts.size()) return false;
    struct Weights {
      std::size_t part;
      const std::vector<double>* numbers;
    };
    std::vector<Weights> weights;
    std::size_t count = 1;
    constexpr std::size_t kMaxNumbers = 64;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf || formula.depends(error->part, i)) continue;
      if (parts[i].value == ValueId::kAbsent) return false;
      const Content* content = analysis.content(parts[i].value);
      if (content == nullptr || content->floats.empty() || content->floats.size() > kMaxNumbers) return false;
      weights.push_back({i, &content->floats});
      if (content->floats.size() == 1) continue;
      if (count != 1 && count != content->floats.size()) return false;
      count = content->floats.size();
    }
    for (std::size_t k = 0; k < count; ++k) {
      std::vector<Formula::Assignment> given{{error->part, 0}};
      for (const Weights& weight : weights)
        given.push_back({weight.part, (*weight.numbers)[weight.numbers->size() == 1 ? 0 : k]});
      analysis.facts().meter().charge(8 * parts.size());
      const auto at = [&](double e) {
        given[0].value = e;
        // Where only the error counts, other numbers for what it is computed from change nothing.
        const double number = term.sign * formula.evaluate(given, 0), again = term.sign * formula.evaluate(given, 1);
        return std::abs(number - again) <= 1e-9 * (1 + std::abs(number)) ? number : std::nan("");
      };
      constexpr double kLarge = 64, kLarger = 4 * kLarge;
      const double zero = at(0), up = at(kLarge), down = at(-kLarge);
      // A straight line on both sides of 0, a bend in between.
      const auto is_line = [&](double near, double far) {
        return std::abs(far - 4 * near) <= 0.05 * std::abs(far) + 0.1;
      };
      const bool is_bent = std::abs(zero) < 1e-3 && is_line(up, at(kLarger)) && is_line(down, at(-kLarger)) &&
                           std::abs(up + down) > 0.02 * std::max(std::abs(up), std::abs(down));
      // What is the same on both sides may be to be as far away as can be.
      const bool is_even = std::abs(up - down) <= 1e-6 * std::abs(up);
      if (!is_bent || is_even || std::min(up, down) > -1) continue;
      const bool falls_up = up < down;
      const Operand difference(analysis, parts[error->part].value), score(analysis, error->score);
      out.report(expressions.producer(term.value),
                 fmt::format("the loss is negative where {} is {} 0: it falls without bound as {} {}",
                             difference.name(), falls_up ? "above" : "below", score.name(),
                             falls_up == error->label_first ? "falls" : "rises"))
          .note_at(parts[error->part].node, "the error is computed here")
          .fix("weigh errors of both sides with numbers of opposite signs: max(q * e, (q - 1) * e) for the quantile q");
      return true;
    }
    return false;
  }
};

const RegisterRule<UnboundedLoss> kRegisterUnboundedLoss;

}  // namespace
}  // namespace tensorlint::rules
