#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/rules/loss/token_shift.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/text.h"
#include "passes/dataflow/element_function.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class LevelsCountedOtherwise : public Rule {
 public:
  LevelsCountedOtherwise()
      : Rule({"TL-L385", "levels-counted-otherwise", "loss", findings::Severity::kWarning,
              "ordered classes that are made levels from another first number than the one that levels are counted to"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kCompare}) || !has_node(out, {Opcode::kReduceSum})) return;
    constexpr std::size_t kMostLosses = 4;
    std::vector<Levels> found;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    for (const losses::LossSite& loss : view.losses()) {
      if (found.size() >= kMostLosses) break;
      if (loss.target == ValueId::kAbsent || loss.prediction == ValueId::kAbsent) continue;
      if (const auto levels = levels_of(expressions, loss)) found.push_back(*levels);
    }
    if (found.empty()) return;
    each_node(view, out, {Opcode::kSub, Opcode::kEqual}, [&](const Expressions&, const NodeCall& call) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        for (const Levels& levels : found)
          check_count(expressions, call, call.operand(side).value(), call.operand(1 - side).value(), levels, out);
    });
  }

 private:
  /// input > 0, 1, 2, ...: as many are true as the input says, and `above` more.
  struct Levels {
    NodeId node = NodeId::kNone;
    ValueId input = ValueId::kAbsent, scores = ValueId::kAbsent;
    double above = 0;
  };

  /// A value and a whole number that is added to it.
  struct Shifted {
    ValueId value = ValueId::kAbsent;
    double by = 0;
  };
  static Shifted shifted(const Expressions& expressions, ValueId value) {
    constexpr int kMaxShifts = 3;
    Shifted found{before_stretch(expressions, value), 0};
    for (int step = 0; step < kMaxShifts; ++step) {
      const NodeId node = expressions.producer(found.value);
      const auto numbered = with_number(expressions, node);
      const bool adds = expressions.op(node) == Opcode::kAdd;
      if (!numbered || (!adds && (expressions.op(node) != Opcode::kSub || numbered->is_first)) ||
          numbered->number != std::round(numbered->number))
        break;
      found = {before_stretch(expressions, numbered->value), found.by + (adds ? numbered->number : -numbered->number)};
    }
    return found;
  }

  static std::optional<Levels> levels_of(const Expressions& expressions, const losses::LossSite& loss) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const NodeId compare = expressions.producer(before_stretch(expressions, loss.target));
    if (expressions.op(compare) != Opcode::kCompare) return std::nullopt;
    const ops::ElementValue element = dataflow::element_function(analysis, compare, 2);
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId label = expressions.operand(compare, side), table = expressions.operand(compare, 1 - side);
      if (element == nullptr || label == ValueId::kAbsent || table == ValueId::kAbsent) continue;
      const auto numbers = constant_numbers(expressions, before_stretch(expressions, table));
      const Shifted input = shifted(expressions, label);
      if (!numbers || numbers->size() < 2 || numbers->size() > 64 || !is_input(analysis, input.value) ||
          !analysis.fact(input.value).dtypes.proves(DTypeSet::integers()))
        continue;
      double count = 0;
      const double first = numbers->front();
      for (std::size_t i = 0; i < numbers->size(); ++i) {
        if ((*numbers)[i] != first + static_cast<double>(i)) return std::nullopt;
        const std::array both{side == 0 ? first + 1 : (*numbers)[i], side == 0 ? (*numbers)[i] : first + 1};
        const double is_reached = element({both, {}});
        if (i == 0 && is_reached != 1) return std::nullopt;
        count += is_reached;
      }
      // What is compared is first + 1 there.
      if (count < 1 || count > 2) return std::nullopt;
      return Levels{compare, input.value, before_sigmoid(expressions, loss.prediction), count - (first + 1 - input.by)};
    }
    return std::nullopt;
  }

  static void check_count(const Expressions& expressions, const NodeCall& call, ValueId counted, ValueId label,
                          const Levels& levels, Reporter& out) {
    if (counted == ValueId::kAbsent || label == ValueId::kAbsent) return;
    const Shifted input = shifted(expressions, label), count = shifted(expressions, counted);
    const NodeId sum = expressions.producer(count.value);
    if (input.value != levels.input || expressions.op(sum) != Opcode::kReduceSum) return;
    const NodeId compare = expressions.producer(before_stretch(expressions, expressions.operand(sum, 0)));
    if (expressions.op(compare) != Opcode::kCompare || !compares_scores(expressions, compare, levels.scores)) return;
    if (levels.above == input.by - count.by) return;
    out.report(levels.node,
               fmt::format("{} is made {}, and the levels that scores pass are counted as if it were made {}",
                           Operand(call.analysis(), levels.input).name(), as_many(levels.above),
                           as_many(input.by - count.by)))
        .note_at(call.id(), "the count is compared with it here")
        .fix("let both begin at the same number: labels - 1 for classes that begin at 1");
  }

  static std::string as_many(double above) {
    if (above == 0) return "as many levels as it says";
    return fmt::format("{} {}", counted(std::abs(above), "level"), above > 0 ? "more" : "fewer");
  }

  static bool compares_scores(const Expressions& expressions, NodeId compare, ValueId scores) {
    const auto threshold = with_number(expressions, compare);
    if (!threshold || threshold->is_first) return false;
    return before_sigmoid(expressions, threshold->value) == scores;
  }

  static ValueId before_sigmoid(const Expressions& expressions, ValueId value) {
    value = before_stretch(expressions, value);
    const NodeId sigmoid = expressions.producer(value);
    return expressions.op(sigmoid) == Opcode::kSigmoid ? before_stretch(expressions, expressions.operand(sigmoid, 0))
                                                       : value;
  }
};

const RegisterRule<LevelsCountedOtherwise> kRegisterLevelsCountedOtherwise;

}  // namespace
}  // namespace tensorlint::rules
