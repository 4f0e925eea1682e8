#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class TemperatureMultiplied : public Rule {
 public:
  TemperatureMultiplied()
      : Rule({"TL-L339", "temperature-multiplied", "loss", findings::Severity::kWarning,
              "cosines that are made smaller before a softmax, where a temperature is to make them larger"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::takes_class_indices(loss.kind) || analysis.has_failed(loss.anchor)) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    ValueId scores = loss.prediction;
    if (const auto softmax = scores == ValueId::kAbsent ? std::nullopt : expressions.normalised(scores))
      scores = softmax->scores;
    if (scores == ValueId::kAbsent) return;
    const Scaled found = scaled_cosines(expressions, scores, 0);
    if (found.is_small()) report(analysis, found, out);
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    // A softmax that is written out, as of pairs of which some are left out, need be no known loss.
    if (has_node(out, {Opcode::kLog}))
      each_node(view, out, {Opcode::kExp}, [&](const Expressions& expressions, const NodeCall& call) {
        if (!call.operand(0).present() || !is_summed_in_logarithm(expressions, call.result())) return;
        const Scaled found = scaled_cosines(expressions, call.operand(0).value(), 0);
        if (found.is_small()) report(view.analysis(), found, out);
      });
  }

 private:
  // With 0.3 the likeliest of two classes gets no more than 65 %.
  static constexpr double kSmall = 0.3;

  struct Scaled {
    double scale = 1;
    NodeId node = NodeId::kNone;  ///< what scales them
    ValueId scores = ValueId::kAbsent;
    Cosine cosines{};  ///< without a node where there are none

    bool is_small() const { return node != NodeId::kNone && cosines.node != NodeId::kNone && scale <= kSmall; }
  };

  static void report(const dataflow::Analysis& analysis, const Scaled& found, Reporter& out) {
    if (!out.first(std::to_string(static_cast<std::size_t>(found.node)))) return;
    out.report(found.node,
               fmt::format("scores are between -{0:.4g} and {0:.4g}: {1} are cosines, and a softmax of so small "
                           "numbers is almost even",
                           found.scale, Operand(analysis, found.scores).name()))
        .note_at(found.cosines.node, "the cosines are computed here")
        .fix("divide by the temperature");
  }

  static Scaled scaled_cosines(const Expressions& expressions, ValueId scores, int depth) {
    constexpr int kMaxSteps = 8;
    Scaled found;
    for (int step = 0; step < kMaxSteps && scores != ValueId::kAbsent; ++step) {
      // Some pairs may have been left out.
      scores = before_moves(expressions, scores);
      const NodeId node = expressions.producer(scores);
      if (const ValueId shown = before_hiding(expressions, node); shown != ValueId::kAbsent) {
        scores = shown;
        continue;
      }
      const auto numbered = with_number(expressions, node);
      const bool multiplies = expressions.op(node) == Opcode::kMul,
                 divides = expressions.op(node) == Opcode::kDiv && numbered && !numbered->is_first;
      if (!numbered || (!multiplies && !divides) || !(numbered->number > 0)) break;
      found.scale *= multiplies ? numbered->number : 1 / numbered->number;
      scores = numbered->value;
      found.node = node;
    }
    if (scores == ValueId::kAbsent) return {};
    found.scores = scores;
    // Of each sample its own pair beside the others.
    if (const NodeId joined = expressions.producer(scores); expressions.op(joined) == Opcode::kConcat && depth == 0) {
      constexpr std::size_t kMaxParts = 4;
      const auto parts = expressions.analysis().operands(joined);
      if (parts.size() > kMaxParts) return {};
      double largest = 0;
      for (const ValueId part : parts) {
        const Scaled inner = scaled_cosines(expressions, part, depth + 1);
        if (inner.cosines.node == NodeId::kNone) return {};
        largest = std::max(largest, inner.scale);
        if (found.node == NodeId::kNone) found.node = inner.node;
        found.cosines = inner.cosines;
      }
      found.scale *= largest;
      return found;
    }
    found.cosines = cosines_of(expressions, scores);
    return found;
  }

  static Cosine cosines_of(const Expressions& expressions, ValueId scores) {
    const auto cosine = cosine_of(expressions, scores);
    return cosine && cosine->both_divided ? *cosine : Cosine{};
  }

  /// Scores of which some have a large negative number for their own, or with the largest one subtracted from all.
  static ValueId before_hiding(const Expressions& expressions, NodeId node) {
    constexpr double kHidden = -1e2;
    const Opcode opcode = expressions.op(node);
    const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
    if (opcode == Opcode::kWhere) {
      const ValueId third = expressions.operand(node, 2);
      if (expressions.number(second).value_or(0) < kHidden) return third;
      return expressions.number(third).value_or(0) < kHidden ? second : ValueId::kAbsent;
    }
    if ((opcode != Opcode::kAdd && opcode != Opcode::kSub) || first == ValueId::kAbsent || second == ValueId::kAbsent)
      return ValueId::kAbsent;
    if (opcode == Opcode::kSub && expressions.op_of(before_stretch(expressions, second)) == Opcode::kReduceMax)
      return first;
    const auto hides = [&](ValueId value, bool is_subtracted) {
      const Range& range = expressions.analysis().fact(value).range;
      return is_subtracted ? range.lo == 0 && range.hi > -kHidden && std::isfinite(range.hi)
                           : range.hi == 0 && range.lo < kHidden;
    };
    if (hides(second, opcode == Opcode::kSub)) return first;
    return opcode == Opcode::kAdd && hides(first, false) ? second : ValueId::kAbsent;
  }

  /// Exponentials that are added up, perhaps some of them alone, and stand under a logarithm, perhaps below a quotient.
  static bool is_summed_in_logarithm(const Expressions& expressions, ValueId exponentials) {
    constexpr std::size_t kMaxValues = 12;
    struct Place {
      ValueId value;
      bool is_sum;
    };
    std::vector<Place> pending{{exponentials, false}};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i) {
      const auto [value, is_sum] = pending[i];
      for (const NodeId user : expressions.users(value)) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (is_sum && opcode == Opcode::kLog) return true;
        if (result == ValueId::kAbsent) continue;
        const bool masks = opcode == Opcode::kWhere || opcode == Opcode::kMul;
        if (opcode == Opcode::kReduceSum || masks || ops::picks_elements(opcode) ||
            (is_sum && (opcode == Opcode::kAdd || opcode == Opcode::kSub || opcode == Opcode::kDiv)))
          pending.push_back({result, is_sum || opcode == Opcode::kReduceSum});
      }
    }
    return false;
  }
};

const RegisterRule<TemperatureMultiplied> kRegisterTemperatureMultiplied;

}  // namespace
}  // namespace tensorlint::rules
