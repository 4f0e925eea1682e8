#include "analyzer/rules/loss/token_shift.h"

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

constexpr int kMaxStepsOfShift = 8;

std::optional<std::int64_t> whole_number(const Expressions& expressions, NodeId node, std::size_t operand,
                                         std::int64_t fallback) {
  const ValueId given = expressions.operand(node, operand);
  if (given == ValueId::kAbsent) return fallback;
  const FactStore& facts = expressions.analysis().facts();
  const Content* content = expressions.analysis().content(given);
  if (content == nullptr || content->integers.size() != 1) return std::nullopt;
  return facts.dims().as_constant(content->integers[0]);
}

/// How many steps are put in front of a slice of the others; nullopt for anything else.
std::optional<std::int64_t> put_in_front(const Expressions& expressions, NodeId node, ValueId& rest) {
  const dataflow::Analysis& analysis = expressions.analysis();
  if (expressions.op(node) == Opcode::kConcat) {
    const Attribute* axis = analysis.attribute(node, "axis");
    const ValueId first = expressions.operand(node, 0);
    const auto dims = expressions.dims(first);
    if (axis == nullptr || analysis.operands(node).size() != 2 || dims.size() < 2 ||
        (axis->i != 1 && axis->i + static_cast<std::int64_t>(dims.size()) != 1))
      return std::nullopt;
    rest = expressions.operand(node, 1);
    return analysis.facts().dims().as_constant(dims[1]);
  }
  if (expressions.op(node) != Opcode::kPad || expressions.operand(node, 3) != ValueId::kAbsent) return std::nullopt;
  rest = expressions.operand(node, 0);
  const auto pads = constant_numbers(expressions, expressions.operand(node, 1));
  const std::size_t rank = expressions.dims(rest).size();
  return pads && rank >= 2 && pads->size() == 2 * rank ? std::optional(static_cast<std::int64_t>((*pads)[1]))
                                                       : std::nullopt;
}

}  // namespace

StepsOf steps_of(const Expressions& expressions, ValueId value) {
  const NodeId node = expressions.producer(value);
  if (expressions.op(node) == Opcode::kSlice) {
    const auto start = whole_number(expressions, node, 1, -1), axis = whole_number(expressions, node, 3, -1),
               step = whole_number(expressions, node, 4, 1);
    if (!start || *start < 0 || axis != 1 || step != 1) return {};
    return {expressions.operand(node, 0), *start};
  }
  // The first steps come again behind the last ones, where they are left out.
  if (const auto roll = rolled_by(expressions, node); roll && roll->axis == 1)
    return {roll->from, 2 * roll->shift <= roll->extent ? roll->shift : roll->shift - roll->extent};
  ValueId rest = ValueId::kAbsent;
  if (const auto ahead = put_in_front(expressions, node, rest); ahead && expressions.op_of(rest) == Opcode::kSlice) {
    const StepsOf part = steps_of(expressions, rest);
    if (part.of != ValueId::kAbsent) return {part.of, part.start - *ahead};
  }
  return {value, 0};
}

ValueId before_layout(const Expressions& expressions, ValueId scores) {
  for (int step = 0; step < kMaxStepsOfShift && scores != ValueId::kAbsent; ++step) {
    const NodeId node = expressions.producer(scores);
    const Opcode opcode = expressions.op(node);
    if (!ops::keeps_elements(opcode) && opcode != Opcode::kCast && opcode != Opcode::kTranspose &&
        opcode != Opcode::kLogSoftmax)
      break;
    scores = expressions.operand(node, 0);
  }
  return scores;
}

std::optional<StepShift> step_shift(const Expressions& expressions, const losses::LossSite& loss) {
  const dataflow::Analysis& analysis = expressions.analysis();
  if (loss.target == ValueId::kAbsent || loss.prediction == ValueId::kAbsent) return std::nullopt;
  const StepsOf target = steps_of(expressions, before_views(expressions, loss.target));
  if (target.of == ValueId::kAbsent || !is_input(analysis, target.of)) return std::nullopt;
  const StepsOf scores = steps_of(expressions, before_layout(expressions, loss.prediction));
  if (scores.of == ValueId::kAbsent) return std::nullopt;
  std::optional<std::int64_t> read;
  bool several = false;
  walk_back(expressions, scores.of, [&](ValueId, NodeId node) {
    // What moves the input is looked at where it is read.
    if (ops::moves_elements(expressions.op(node)) || expressions.op(node) == Opcode::kCast) return true;
    for (const ValueId operand : analysis.operands(node)) {
      if (operand == ValueId::kAbsent) continue;
      const StepsOf part = steps_of(expressions, before_views(expressions, operand));
      if (part.of != target.of) continue;
      several = several || (read && *read != part.start);
      read = part.start;
    }
    return !several;
  });
  if (!read || several) return std::nullopt;
  return StepShift{target.of, target.start, scores.start + *read};
}

bool reads_from_the_end(const Expressions& expressions, ValueId scores) {
  Triangles triangles(expressions);
  bool found = false;
  walk_back(expressions, scores, [&](ValueId value, NodeId node) {
    // Pads and sizes that are computed, which exporters reverse.
    if (expressions.analysis().content(value) != nullptr) return false;
    switch (expressions.op(node)) {
      case Opcode::kSoftmax:
      case Opcode::kDiv:
        if (const auto softmax = expressions.normalised(value)) {
          const auto triangle = triangles.before(*softmax);
          found = found || (triangle && triangle->hides_past);
        }
        break;
      case Opcode::kRecurrence: {
        const Attribute* direction = expressions.analysis().attribute(node, "direction");
        found = found || (direction != nullptr && direction->s == "reverse");
        break;
      }
      case Opcode::kSlice:
        found = found || whole_number(expressions, node, 4, 1).value_or(1) < 0;
        break;
      default:
        break;
    }
    return !found;
  });
  return found;
}

}  // namespace tensorlint::rules
