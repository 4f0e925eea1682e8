#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class TargetInStatistics : public Rule {
 public:
  TargetInStatistics()
      : Rule({"TL-L335", "target-in-statistics", "loss", findings::Severity::kWarning,
              "inputs that are normalised with statistics of the target that they are to predict"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (ops::takes_class_indices(loss.kind) || analysis.has_failed(loss.anchor)) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const ValueId target = loss.target == ValueId::kAbsent ? loss.target : before_stretch(expressions, loss.target);
    if (target == ValueId::kAbsent || !is_input(analysis, target) ||
        !analysis.fact(target).dtypes.proves(DTypeSet::floats()))
      return;
    const auto reduction = statistic_before_layers(expressions, loss.prediction, target);
    if (reduction == NodeId::kNone || !out.first(analysis.model().name_of(target))) return;
    out.report(reduction, fmt::format("statistics of {} go into what it is predicted from: they are not known where "
                                      "the prediction is needed",
                                      Operand(analysis, target).name()))
        .note_at(loss.anchor, "it is the target here")
        .fix("take the statistics of the inputs alone");
  }

 private:
  static bool is_layer(const Expressions& expressions, NodeId node) {
    const Opcode opcode = expressions.op(node);
    return opcode == Opcode::kMatMul || opcode == Opcode::kConv || opcode == Opcode::kRecurrence ||
           opcode == Opcode::kEinsum;
  }

  static bool is_statistic(const Expressions& expressions, NodeId node) {
    return has_trait(expressions.entry(node), ops::OpTrait::kReduction) && !expressions.makes_integers(node);
  }

  /// A reduction of the target's own numbers, whose result goes into a layer; kNone where the target itself does, or
  /// goes into the prediction otherwise: it is known there.
  static NodeId statistic_before_layers(const Expressions& expressions, ValueId prediction, ValueId target) {
    if (prediction == ValueId::kAbsent) return NodeId::kNone;
    std::vector<NodeId> layers, statistics;
    bool is_known = false;
    const auto reads_target = [&](NodeId node) {
      for (const ValueId operand : expressions.analysis().operands(node))
        if (operand == target && expressions.op(node) != Opcode::kShape) return true;
      return false;
    };
    // After the last layers statistics may scale a prediction back.
    walk_back(expressions, prediction, [&](ValueId, NodeId node) {
      if (is_layer(expressions, node)) {
        layers.push_back(node);
        return false;
      }
      if (is_statistic(expressions, node) || expressions.op(node) == Opcode::kShape) return false;
      is_known |= reads_target(node);
      return !is_known;
    });
    constexpr std::size_t kMaxLayers = 8;
    if (is_known || layers.size() > kMaxLayers) return NodeId::kNone;
    for (const NodeId layer : layers)
      walk_back(expressions, expressions.operand(layer, 0), [&](ValueId, NodeId node) {
        if (is_statistic(expressions, node)) statistics.push_back(node);
        if (is_statistic(expressions, node) || expressions.op(node) == Opcode::kShape) return false;
        is_known |= reads_target(node);
        return !is_known;
      });
    constexpr std::size_t kMaxStatistics = 16;
    if (is_known || layers.empty() || statistics.size() > kMaxStatistics) return NodeId::kNone;
    for (const NodeId statistic : statistics)
      if (is_of_numbers_of(expressions, statistic, target) && normalises_others(expressions, statistic, target))
        return statistic;
    return NodeId::kNone;
  }

  /// What is computed of the statistic is taken from, or divides, numbers that are none of the target.
  static bool normalises_others(const Expressions& expressions, NodeId statistic, ValueId target) {
    constexpr std::size_t kMaxValues = 24;
    std::vector<ValueId> pending{expressions.result(statistic)};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        const ValueId other = expressions.operand(user, 0), result = expressions.result(user);
        if ((opcode == Opcode::kSub || opcode == Opcode::kDiv) && other != pending[i] && other != ValueId::kAbsent &&
            !expressions.number(other)) {
          bool is_of_target = other == target;
          walk_back(expressions, other, [&](ValueId, NodeId node) {
            for (const ValueId operand : expressions.analysis().operands(node)) is_of_target |= operand == target;
            // What has been centred with the statistics of both is still one of the inputs.
            return !is_statistic(expressions, node);
          });
          if (!is_of_target) return true;
        }
        if (result != ValueId::kAbsent && !is_layer(expressions, user) &&
            is_reduction_or_elementwise(expressions, user))
          pending.push_back(result);
      }
    return false;
  }

  /// Of the target, joined with other inputs, and nothing that a layer makes of it.
  static bool is_of_numbers_of(const Expressions& expressions, NodeId statistic, ValueId target) {
    const ValueId data = expressions.operand(statistic, 0);
    if (data == ValueId::kAbsent) return false;
    bool found = data == target, is_computed = false;
    walk_back(expressions, data, [&](ValueId, NodeId node) {
      is_computed |= is_layer(expressions, node);
      if (is_computed || is_statistic(expressions, node) || expressions.op(node) == Opcode::kShape) return false;
      for (const ValueId operand : expressions.analysis().operands(node)) found |= operand == target;
      return true;
    });
    return found && !is_computed;
  }
};

const RegisterRule<TargetInStatistics> kRegisterTargetInStatistics;

}  // namespace
}  // namespace tensorlint::rules
