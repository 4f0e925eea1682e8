#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class UnsureLabelsKept : public Rule {
 public:
  UnsureLabelsKept()
      : Rule({"TL-L376", "unsure-labels-kept", "loss", findings::Severity::kWarning,
              "labels that a model makes itself, of which the unsure ones count and the sure ones do not"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::takes_class_indices(loss.kind) || analysis.has_failed(loss.anchor)) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const NodeId choice = expressions.producer(before_moves(expressions, loss.target));
    if (expressions.op(choice) != Opcode::kArgExtreme) return;
    const ValueId mask = weight_of(expressions, expressions.result(loss.anchor));
    if (mask == ValueId::kAbsent || !falls_with_confidence(expressions, mask, expressions.operand(choice, 0))) return;
    const NodeId compared = expressions.producer(before_stretch(expressions, mask));
    const Operand probabilities(analysis, expressions.operand(choice, 0));
    out.report(compared == NodeId::kNone ? loss.anchor : compared,
               fmt::format("the labels are the most likely classes of {}, and only those count whose probability is "
                           "below the threshold: the sure ones are left out",
                           probabilities.name()))
        .note_at(loss.anchor, "they are taken as labels here")
        .fix("keep the sure ones: probability >= threshold");
  }

 private:
  /// What the losses of single samples are multiplied by, or chosen with; kAbsent without it.
  static ValueId weight_of(const Expressions& expressions, ValueId losses) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps && losses != ValueId::kAbsent; ++step) {
      const auto users = expressions.users(losses);
      if (users.size() != 1) break;
      const NodeId user = users.front();
      const Opcode opcode = expressions.op(user);
      if (opcode == Opcode::kMul && !with_number(expressions, user)) return expressions.beside(user, losses);
      if (opcode == Opcode::kWhere && expressions.operand(user, 1) == losses &&
          expressions.is_number(expressions.operand(user, 2), 0))
        return expressions.operand(user, 0);
      if (!ops::keeps_elements(opcode) && opcode != Opcode::kNeg && opcode != Opcode::kMul && opcode != Opcode::kCast)
        break;
      losses = expressions.result(user);
    }
    return ValueId::kAbsent;
  }

  /// 1 where the largest of the probabilities is small, 0 where it is nearly 1. Thresholds that are no constants are
  /// between; other masks are 1.
  static bool falls_with_confidence(const Expressions& expressions, ValueId mask, ValueId probabilities) {
    constexpr double kUnsure = 1e-3, kSure = 1 - 1e-3, kThreshold = 0.5;
    const Formula formula(expressions, mask);
    if (!formula.is_complete()) return false;
    std::vector<Formula::Assignment> unsure, sure;
    bool has_confidence = false;
    const auto parts = formula.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf) continue;
      if (parts[i].value == ValueId::kAbsent) return false;
      const NodeId node = expressions.producer(before_stretch(expressions, parts[i].value));
      const bool is_confidence =
          expressions.op(node) == Opcode::kReduceMax && is_of(expressions, expressions.operand(node, 0), probabilities);
      const bool is_threshold = expressions.analysis().fact(parts[i].value).dtypes.proves(DTypeSet::floats());
      has_confidence |= is_confidence;
      unsure.push_back({i, is_confidence ? kUnsure : is_threshold ? kThreshold : 1});
      sure.push_back({i, is_confidence ? kSure : is_threshold ? kThreshold : 1});
    }
    if (!has_confidence) return false;
    expressions.charge(4 * parts.size());
    return formula.evaluate(unsure, 0) == 1 && formula.evaluate(sure, 0) == 0;
  }

  /// The probabilities that the class was chosen from, or those of the scores that it was.
  static bool is_of(const Expressions& expressions, ValueId probabilities, ValueId chosen_from) {
    const auto scores_of = [&](ValueId value) {
      const auto softmax = expressions.normalised(value);
      return softmax && !softmax->logarithm ? softmax->scores : value;
    };
    return probabilities == chosen_from ||
           (scores_of(probabilities) != probabilities &&
            (scores_of(probabilities) == chosen_from || scores_of(probabilities) == scores_of(chosen_from)));
  }
};

const RegisterRule<UnsureLabelsKept> kRegisterUnsureLabelsKept;

}  // namespace
}  // namespace tensorlint::rules
