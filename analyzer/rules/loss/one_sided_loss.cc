#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

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

class OneSidedLoss : public Rule {
 public:
  OneSidedLoss()
      : Rule({"TL-L312", "one-sided-loss", "loss", findings::Severity::kWarning,
              "a loss that falls as scores grow, whatever the labels are, or as the labels get less probable"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    // Beside other numbers it may be a metric.
    if (outputs.size() != 1) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    double sign = 1;
    const ValueId term = only_term(expressions, outputs[0], sign);
    if (term == ValueId::kAbsent || view.analysis().taint(term).has(Aspect::kValue)) return;
    if (sign > 0 && check_sign(expressions, term, out)) return;
    check_sides(expressions, term, sign, out);
  }

 private:
  static constexpr int kMaxSteps = 24;

  /// What the output is the mean or sum of, times a number; kAbsent where several terms are added.
  static ValueId only_term(const Expressions& expressions, ValueId value, double& sign) {
    bool reduced = false;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum) {
        reduced = true;
        value = expressions.operand(node, 0);
      } else if (opcode == Opcode::kNeg) {
        sign = -sign;
        value = expressions.operand(node, 0);
      } else if (ops::keeps_elements(opcode) || opcode == Opcode::kCast) {
        value = expressions.operand(node, 0);
      } else if (numbered && numbered->number != 0 &&
                 (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !numbered->is_first))) {
        sign = numbered->number < 0 ? -sign : sign;
        value = numbered->value;
      } else {
        return reduced ? value : ValueId::kAbsent;
      }
    }
    return ValueId::kAbsent;
  }

  /// The mean of the logarithms of the labels' probabilities, without the minus.
  static bool check_sign(const Expressions& expressions, ValueId term, Reporter& out) {
    const NodeId pick = expressions.producer(term);
    const Opcode opcode = expressions.op(pick);
    if (opcode != Opcode::kGatherElements && opcode != Opcode::kGatherND) return false;
    const dataflow::Analysis& analysis = expressions.analysis();
    ValueId logarithms = before_stretch(expressions, expressions.operand(pick, 0));
    const auto softmax = expressions.normalised(logarithms);
    bool is_logarithm = softmax && softmax->logarithm;
    if (const NodeId log = expressions.producer(logarithms); expressions.op(log) == Opcode::kLog) {
      const auto inner = expressions.normalised(before_stretch(expressions, expressions.operand(log, 0)));
      is_logarithm = inner && !inner->logarithm;
    }
    if (!is_logarithm) return false;
    out.report(pick,
               fmt::format("the loss is the mean of logarithms of probabilities: it falls without bound as {} get "
                           "less probable",
                           "what is picked"))
        .origin(Operand(analysis, logarithms), Aspect::kValue)
        .fix("put a minus in front of it");
    return true;
  }

  /// One element as a function of a label and of a score, which falls in one direction for each label.
  static void check_sides(const Expressions& expressions, ValueId term, double sign, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const Formula formula(expressions, term);
    if (!formula.is_complete()) return;
    losses::ScoreValues scores(expressions);
    std::optional<std::size_t> label, score;
    NodeId layer = NodeId::kNone;
    const auto parts = formula.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf) continue;
      if (parts[i].value == ValueId::kAbsent) return;
      const ValueId from = before_stretch(expressions, parts[i].value);
      if (is_input(analysis, from)) {
        if (label) return;
        label = i;
      } else if (const NodeId found = scores.layer_of(from); found != NodeId::kNone) {
        if (score) return;
        score = i;
        layer = found;
      } else {
        return;
      }
    }
    if (!label || !score) return;
    const auto at = [&](double y, double s) {
      const Formula::Assignment given[] = {{*label, y}, {*score, s}};
      return sign * formula.evaluate(given, 0);
    };
    constexpr std::array kScores{-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0};
    enum Way { kFalls, kRises, kSame, kNeither };
    const auto way = [&](double y) {
      bool falls = true, rises = true;
      for (std::size_t i = 1; i < kScores.size(); ++i) {
        const double before = at(y, kScores[i - 1]), after = at(y, kScores[i]);
        if (!std::isfinite(before) || !std::isfinite(after)) return kNeither;
        falls = falls && after <= before + 1e-9;
        rises = rises && after >= before - 1e-9;
      }
      const bool moves = std::abs(at(y, kScores.front()) - at(y, kScores.back())) > 1;
      return falls && rises ? kSame : !moves ? kNeither : falls ? kFalls : rises ? kRises : kNeither;
    };
    // Towards its lower end a logarithm of a probability comes to 0; what goes on falling is a difference of scores.
    const auto ends = [&](double y, double s) { return std::abs(at(y, s) - at(y, s + (s < 0 ? -4 : 4))) < 1e-2; };
    const Way yes = way(1), no = way(0), minus = way(-1);
    const std::string name = Operand(analysis, parts[*score].value).name(),
                      labels = Operand(analysis, before_stretch(expressions, parts[*label].value)).name();
    const auto report = [&](std::string situation, std::string_view cure) {
      out.report(expressions.producer(term), std::move(situation))
          .note_at(layer, fmt::format("{} may have any value", name))
          .fix(std::string(cure));
    };
    if (yes == kRises && no == kFalls && ends(1, 8) && ends(0, -8) && !ends(1, -8) && !ends(0, 8)) {
      report(
          fmt::format("the loss falls without bound as {} rises where {} is 0, and falls where it is 1", name, labels),
          "put a minus in front of it");
      return;
    }
    const bool positive_alone = yes == kFalls && no == kSame && ends(1, 8) && !ends(1, -8),
               negative_alone = no == kRises && yes == kSame && ends(0, -8) && !ends(0, 8);
    // Anything but integers may be a weight or a mask, as of what a generator is judged by.
    const bool is_class =
        analysis.fact(before_stretch(expressions, parts[*label].value)).dtypes.proves(DTypeSet::integers());
    if ((!positive_alone && !negative_alone) || !is_class) return;
    // Labels of -1 and 1.
    if (minus == kRises && ends(-1, -8)) return;
    report(fmt::format("the loss only {} as {} rises: nothing holds the scores {} where {} is {}",
                       positive_alone ? "falls" : "rises", name, positive_alone ? "down" : "up", labels,
                       positive_alone ? 0 : 1),
           positive_alone ? "add the term of the other label: (1 - y) * log(1 - p)"
                          : "add the term of the other label: y * log(p)");
  }
};

const RegisterRule<OneSidedLoss> kRegister;

}  // namespace
}  // namespace tensorlint::rules
