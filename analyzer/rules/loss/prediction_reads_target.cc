#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class PredictionReadsTarget : public Rule {
 public:
  PredictionReadsTarget()
      : Rule({"TL-L344", "prediction-reads-target", "loss", findings::Severity::kWarning,
              "a prediction of the next steps by convolutions that read those steps"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kConv})) return;
    each_node(view, out, {Opcode::kSub}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (check_side(expressions, call, call.operand(side).value(), call.operand(1 - side).value(), out)) return;
    });
  }

 private:
  /// Which steps of which input a value has at step t of its last axis: t + ahead.
  struct Reading {
    ValueId of = ValueId::kAbsent;
    double ahead = 0;
    NodeId convolution = NodeId::kNone;  ///< the one that reads farthest ahead
  };

  static bool check_side(const Expressions& expressions, const NodeCall& call, ValueId prediction, ValueId target,
                         Reporter& out) {
    const auto reads = reading_of(expressions, prediction, 0), is = reading_of(expressions, target, 0);
    if (!reads || !is || reads->convolution == NodeId::kNone || is->convolution != NodeId::kNone ||
        reads->of != is->of || is->ahead < 1 || reads->ahead < is->ahead)
      return false;
    out.report(reads->convolution,
               fmt::format("{} reads {} up to {} steps ahead, and is to predict the one that is {} ahead",
                           NodeCall(call.analysis(), reads->convolution).op_name(),
                           Operand(call.analysis(), reads->of).name(), reads->ahead, is->ahead))
        .note_at(call.id(), "the prediction is compared with that step here")
        .fix("let the convolution read the past alone: all padding in front, or the end cut off");
    return true;
  }

  /// The farthest step that is read. Only what keeps the steps of the last axis in their places is followed.
  static std::optional<Reading> reading_of(const Expressions& expressions, ValueId value, int depth) {
    constexpr int kMaxDepth = 24;
    const dataflow::Analysis& analysis = expressions.analysis();
    if (value == ValueId::kAbsent || depth > kMaxDepth || expressions.is_spent()) return std::nullopt;
    if (is_input(analysis, value))
      return expressions.dims(value).size() == 3 ? std::optional(Reading{value, 0, NodeId::kNone}) : std::nullopt;
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    if (node == NodeId::kNone || expressions.dims(value).size() != 3) return std::nullopt;
    const NodeCall call(analysis, node);
    const ValueId data = expressions.operand(node, 0);
    if (opcode == Opcode::kConv) {
      auto found = reading_of(expressions, data, depth + 1);
      const auto reach = found ? reach_of(expressions, call) : std::nullopt;
      if (!reach) return std::nullopt;
      if (*reach > 0 || found->convolution == NodeId::kNone) found->convolution = node;
      found->ahead += *reach;
      return found;
    }
    if (opcode == Opcode::kSlice) {
      auto found = reading_of(expressions, data, depth + 1);
      const auto start = expressions.number(expressions.operand(node, 1)),
                 axis = expressions.number(expressions.operand(node, 3));
      const auto step = expressions.operand(node, 4) == ValueId::kAbsent
                            ? std::optional<double>(1)
                            : expressions.number(expressions.operand(node, 4));
      if (!found || !start || *start < 0 || step != 1 || (axis != 2 && axis != -1)) return std::nullopt;
      found->ahead += *start;
      return found;
    }
    if (opcode == Opcode::kPad) {
      auto found = reading_of(expressions, data, depth + 1);
      const auto pads = constant_numbers(expressions, expressions.operand(node, 1));
      if (!found || !pads || pads->size() != 6 || (*pads)[0] != 0 || (*pads)[1] != 0 ||
          expressions.operand(node, 3) != ValueId::kAbsent)
        return std::nullopt;
      found->ahead -= (*pads)[2];
      return found;
    }
    if (opcode == Opcode::kIdentity || opcode == Opcode::kDropout || opcode == Opcode::kCast ||
        (has_trait(call.entry(), ops::OpTrait::kElementwise) && call.operand_count() == 1))
      return reading_of(expressions, data, depth + 1);
    if (opcode != Opcode::kAdd && opcode != Opcode::kMul && opcode != Opcode::kSub) return std::nullopt;
    // Numbers and tables that are the same for all inputs read nothing.
    std::optional<Reading> farthest;
    for (const ValueId operand : call.operands()) {
      if (operand == ValueId::kAbsent) return std::nullopt;
      if (analysis.model().value(operand).initializer != nullptr || expressions.number(operand)) continue;
      const auto found = reading_of(expressions, operand, depth + 1);
      if (!found || (farthest && farthest->of != found->of)) return std::nullopt;
      if (!farthest || found->ahead > farthest->ahead) farthest = found;
    }
    return farthest;
  }

  /// How far ahead of its place a convolution along one axis reads.
  static std::optional<double> reach_of(const Expressions& expressions, const NodeCall& call) {
    const auto weights = expressions.dims(call.operand(1).value());
    if (weights.size() != 3) return std::nullopt;
    const auto taps = call.facts().dims().as_constant(weights[2]);
    const auto first_of = [&](std::string_view name, std::int64_t otherwise) {
      const Attribute* given = call.attribute(name);
      return given == nullptr || given->ints.empty() ? otherwise : given->ints[0];
    };
    const Attribute* automatic = call.attribute("auto_pad");
    if (!taps || first_of("strides", 1) != 1 || (automatic != nullptr && automatic->s != "NOTSET")) return std::nullopt;
    return static_cast<double>((*taps - 1) * first_of("dilations", 1) - first_of("pads", 0));
  }
};

const RegisterRule<PredictionReadsTarget> kRegister;

}  // namespace
}  // namespace tensorlint::rules
