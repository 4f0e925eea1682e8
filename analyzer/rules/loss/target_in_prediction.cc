#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class TargetInPrediction : public Rule {
 public:
  TargetInPrediction()
      : Rule({"TL-L313", "target-in-prediction", "loss", findings::Severity::kWarning,
              "scores of tokens that are computed from the very tokens that they are to predict"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::takes_class_indices(loss.kind) || analysis.has_failed(loss.anchor)) return;
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    const Part target = part_of(expressions, before_views(expressions, loss.target));
    const ValueId tokens = target.of;
    if (tokens == ValueId::kAbsent || !is_input(analysis, tokens) ||
        !analysis.fact(tokens).dtypes.proves(DTypeSet::integers()) || expressions.dims(tokens).size() < 2)
      return;
    const NodeId lookup = looked_up(expressions, loss.prediction, tokens);
    if (lookup == NodeId::kNone) return;
    const ValueId read = before_views(expressions, expressions.operand(lookup, 1));
    const Part scores = part_of(expressions, before_layout(expressions, loss.prediction));
    // Position t of the scores has read element t + `seen`, and is to predict element t + `target.start`.
    const std::int64_t seen = scores.start + part_of(expressions, read).start;
    if (target.start > seen) return;
    // The steps of the scores are those of the tokens: none have been left out, pooled or copied.
    const auto axes = origins.of(scores.of);
    const auto is_step = [&](const losses::AxisSource& source) { return source.value == read && source.axis == 1; };
    const bool keeps_steps = std::ranges::any_of(
        axes, [&](const losses::AxisOrigins::Sources& sources) { return std::ranges::any_of(sources, is_step); });
    if (!keeps_steps) return;
    out.report(loss.anchor, fmt::format("each element of {} is predicted from {}", Operand(analysis, tokens).name(),
                                        target.start == seen ? "itself" : "a later one, which has been read after it"))
        .note_at(lookup, "the same elements are looked up here")
        .fix("predict the next elements: scores[:, :-1] against tokens[:, 1:]");
  }

 private:
  static ValueId before_views(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 8;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      if (!ops::keeps_elements(expressions.op(node)) && expressions.op(node) != Opcode::kCast) break;
      value = expressions.operand(node, 0);
    }
    return value;
  }

  /// A value from an element of its axis 1 on.
  struct Part {
    ValueId of = ValueId::kAbsent;
    std::int64_t start = 0;
  };

  static Part part_of(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) != Opcode::kSlice) return {value, 0};
    const auto number = [&](std::size_t operand, std::int64_t fallback) -> std::optional<std::int64_t> {
      const ValueId given = expressions.operand(node, operand);
      if (given == ValueId::kAbsent) return fallback;
      const FactStore& facts = expressions.analysis().facts();
      const Content* content = expressions.analysis().content(given);
      if (content == nullptr || content->integers.size() != 1) return std::nullopt;
      return facts.dims().as_constant(content->integers[0]);
    };
    const auto start = number(1, -1), axis = number(3, -1), step = number(4, 1);
    if (!start || *start < 0 || axis != 1 || step != 1) return {ValueId::kAbsent, 0};
    return {expressions.operand(node, 0), *start};
  }

  /// Before the classes were moved to axis 1, or the steps were flattened.
  static ValueId before_layout(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 8;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (!ops::keeps_elements(opcode) && opcode != Opcode::kCast && opcode != Opcode::kTranspose &&
          opcode != Opcode::kLogSoftmax)
        break;
      value = expressions.operand(node, 0);
    }
    return value;
  }

  /// A table that the scores are computed from, looked up at the tokens as they are; kNone where another value than
  /// that chooses among the rows, as of a part that is masked.
  static NodeId looked_up(const Expressions& expressions, ValueId scores, ValueId tokens) {
    NodeId found = NodeId::kNone;
    bool is_altered = false;
    walk_back(expressions, scores, [&](ValueId, NodeId node) {
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kGather &&
          part_of(expressions, before_views(expressions, expressions.operand(node, 1))).of == tokens &&
          expressions.analysis().fact(expressions.operand(node, 0)).dtypes.proves(DTypeSet::floats()))
        found = node;
      // Words that are dropped or replaced: not all of them are known. Scores that are hidden are no words.
      const auto hides = [&](std::size_t side) {
        return expressions.number(expressions.operand(node, side)).value_or(0) < -1e3;
      };
      is_altered |= opcode == Opcode::kDropout || (opcode == Opcode::kWhere && !hides(1) && !hides(2));
      return !is_altered;
    });
    return is_altered ? NodeId::kNone : found;
  }
};

const RegisterRule<TargetInPrediction> kRegisterTargetInPrediction;

}  // namespace
}  // namespace tensorlint::rules
