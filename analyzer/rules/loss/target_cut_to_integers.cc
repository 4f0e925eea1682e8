#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::LossKind;
using ops::Opcode;

class TargetCutToIntegers : public Rule {
 public:
  TargetCutToIntegers()
      : Rule({"TL-L351", "target-cut-to-integers", "loss", findings::Severity::kWarning,
              "a target of a regression whose fractions a cast to integers has cut off"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (loss.evidence == losses::LossEvidence::kMetadata || !ops::is_regression(loss.kind)) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const NodeId cast = where_cut(expressions, loss.target);
    if (cast == NodeId::kNone || is_used_as_integer(expressions, expressions.result(cast)) ||
        is_input(analysis, before_moves(expressions, loss.prediction)))
      return;
    const ValueId given = expressions.operand(cast, 0);
    if (analysis.taint(given).has(Aspect::kValue) || analysis.taint(given).has(Aspect::kDtype)) return;
    const DTypeSet target = analysis.fact(expressions.result(cast)).dtypes;
    const Operand fractions(analysis, given);
    if (const auto smoothed = labels_smoothed(expressions, given, loss.kind)) {
      out.report(cast, fmt::format("{} makes 0 of all elements of {}, labels that are {:.4g} and {:.4g}",
                                   NodeCall(analysis, cast).op_name(), fractions.name(), smoothed->zero, smoothed->one))
          .note_at(loss.anchor, fmt::format("{} takes them as targets", ops::to_text(loss.kind)))
          .fix("keep the floating-point numbers");
      return;
    }
    const ValueId source = before_standardisation(expressions, given);
    if (is_share(expressions, source, loss.kind)) {
      out.report(cast, fmt::format("the cast to {} makes 0 of all elements of {} that are less than 1, a target of {}",
                                   target.to_text(), fractions.name(), ops::to_text(loss.kind)))
          .origin(fractions, Aspect::kValue)
          .note_at(loss.anchor, "compared with the prediction here")
          .fix("keep the floating-point numbers");
      return;
    }
    if (!compares_numbers(loss.kind) || !is_input(analysis, source) ||
        !analysis.fact(source).dtypes.proves(DTypeSet::floats()))
      return;
    out.report(cast, fmt::format("the cast to {} cuts off the fractions of {}, a target of {}", target.to_text(),
                                 fractions.name(), ops::to_text(loss.kind)))
        .certainty(ops::Certainty::kMay, fmt::format("an element of {} is 0.9 and becomes 0", fractions.name()))
        .note_at(loss.anchor, "compared with the prediction here")
        .fix("keep the floating-point numbers: class indices alone have to be integers");
  }

 private:
  static constexpr int kMaxSteps = 12;

  /// Losses of any numbers; labels of 0 and 1 lose nothing.
  static bool compares_numbers(LossKind kind) {
    return kind == LossKind::kMse || kind == LossKind::kL1 || kind == LossKind::kHuber || kind == LossKind::kLogCosh ||
           kind == LossKind::kQuantile || kind == LossKind::kRelativeError;
  }

  static bool takes_probabilities(LossKind kind) {
    return kind == LossKind::kBinaryCrossEntropy || kind == LossKind::kBinaryCrossEntropyWithLogits ||
           kind == LossKind::kBinaryFocal;
  }

  /// x for (x - mean) / deviation of numbers, of which one at least is no whole one.
  static ValueId before_standardisation(const Expressions& expressions, ValueId given) {
    const ValueId moved = before_moves(expressions, given);
    const NodeId quotient = expressions.producer(moved);
    const auto divided = with_number(expressions, quotient);
    const Opcode opcode = expressions.op(quotient);
    if (!divided || divided->is_first || (opcode != Opcode::kDiv && opcode != Opcode::kMul)) return moved;
    const NodeId difference = expressions.producer(before_moves(expressions, divided->value));
    const auto centred = with_number(expressions, difference);
    const auto is_whole = [](double number) { return number == std::trunc(number); };
    if (!centred || centred->is_first || expressions.op(difference) != Opcode::kSub || centred->number == 0 ||
        (is_whole(centred->number) && is_whole(divided->number)))
      return moved;
    return before_moves(expressions, centred->value);
  }

  /// A quotient where a probability is wanted. What is known to be between 0 and 1 is another rule's.
  static bool is_share(const Expressions& expressions, ValueId source, LossKind kind) {
    const NodeId node = expressions.producer(source);
    return expressions.op(node) == Opcode::kDiv && takes_probabilities(kind) && !with_number(expressions, node);
  }

  /// The cast of floats to integers that a target went through, with nothing else than moves since; kNone without one.
  static NodeId where_cut(const Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId before = expressions.operand(node, 0);
      if (before == ValueId::kAbsent || (opcode != Opcode::kCast && !ops::picks_elements(opcode))) return NodeId::kNone;
      if (opcode == Opcode::kCast && analysis.fact(value).dtypes.proves(DTypeSet::integers()) &&
          analysis.fact(before).dtypes.proves(DTypeSet::floats()))
        return node;
      value = before;
    }
    return NodeId::kNone;
  }

  /// It counts as a class, an index or a bin somewhere, or more is computed with it.
  static bool is_used_as_integer(const Expressions& expressions, ValueId integers) {
    constexpr std::size_t kMaxValues = 16;
    const dataflow::Analysis& analysis = expressions.analysis();
    std::vector<ValueId> values{integers};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : analysis.users(values[i])) {
        const ValueId result = expressions.result(user);
        const Opcode opcode = expressions.op(user);
        const bool passes = (opcode == Opcode::kCast || ops::picks_elements(opcode)) &&
                            expressions.operand(user, 0) == values[i] && result != ValueId::kAbsent;
        if (!passes || values.size() >= kMaxValues) return true;
        if (analysis.fact(result).dtypes.proves(DTypeSet::integers())) values.push_back(result);
      }
    return analysis.model().value(integers).is_output;
  }

  struct Smoothed {
    double zero = 0, one = 0;  ///< what labels of 0 and 1 become
  };

  /// Integer labels, of which 0 and 1 are moved towards each other.
  static std::optional<Smoothed> labels_smoothed(const Expressions& expressions, ValueId value, LossKind kind) {
    const losses::Formula formula(expressions, before_moves(expressions, value));
    std::optional<std::size_t> leaf;
    for (std::size_t at = 0; at < formula.parts().size(); ++at) {
      const losses::Formula::Part& part = formula.parts()[at];
      if (part.kind != losses::Formula::PartKind::kLeaf) continue;
      if (leaf || part.value == ValueId::kAbsent ||
          !expressions.analysis().fact(part.value).dtypes.proves(DTypeSet::integers() | DTypeSet(DType::kBool)))
        return std::nullopt;
      leaf = at;
    }
    if (!leaf) return std::nullopt;
    const auto at = [&](double label) {
      const std::array assigned{losses::Formula::Assignment{*leaf, label}};
      return formula.evaluate(assigned, 0);
    };
    const Smoothed found{at(0), at(1)};
    const bool is_moved = found.zero > 0 || (found.zero == 0 && takes_probabilities(kind));
    if (!is_moved || !(found.zero < 0.5) || !(found.one > 0.5) || !(found.one < 1)) return std::nullopt;
    return found;
  }
};

const RegisterRule<TargetCutToIntegers> kRegisterTargetCutToIntegers;

}  // namespace
}  // namespace tensorlint::rules
