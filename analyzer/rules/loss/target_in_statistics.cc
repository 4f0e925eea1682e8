#include <fmt/format.h>

#include <algorithm>
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
    if (target != ValueId::kAbsent && check_series(expressions, loss, target, out)) return;
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
  /// A series that is centred as a whole, of whose later part the earlier one is to tell: it has the mean of both.
  static bool check_series(const Expressions& expressions, const losses::LossSite& loss, ValueId target,
                           Reporter& out) {
    const NodeId later = expressions.producer(target);
    if (expressions.op(later) != Opcode::kSlice || loss.prediction == ValueId::kAbsent) return false;
    const ValueId series = expressions.operand(later, 0);
    const auto along = expressions.number(expressions.operand(later, 3));
    const NodeId mean = centred_by(expressions, series);
    if (!along || mean == NodeId::kNone) return false;
    const auto axes = expressions.axes_of(mean);
    const auto rank = static_cast<double>(expressions.dims(series).size());
    const auto axis = static_cast<std::size_t>(*along < 0 ? *along + rank : *along);
    if (!axes || axis == 0 || std::ranges::find(*axes, axis) == axes->end()) return false;
    bool reads_part = false, reads_all = false;
    walk_back(expressions, loss.prediction, [&](ValueId, NodeId node) {
      const bool is_part = expressions.op(node) == Opcode::kSlice && expressions.operand(node, 0) == series &&
                           expressions.number(expressions.operand(node, 3)) == along;
      reads_part |= is_part && node != later;
      const auto operands = expressions.analysis().operands(node);
      reads_all |= !is_part && std::ranges::find(operands, series) != operands.end();
      return !is_part && !reads_all;
    });
    if (!reads_part || reads_all) return false;
    out.report(mean, fmt::format("{} takes the mean of all steps, of those that are to be predicted, too: it is not "
                                 "known where the prediction is needed",
                                 NodeCall(expressions.analysis(), mean).op_name()))
        .note_at(later, "the target is cut off here")
        .fix("cut the series first, and take mean and deviation of the earlier part alone");
    return true;
  }

  /// The mean that has been subtracted from an input, before it was divided by anything; kNone without one.
  static NodeId centred_by(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
      if (opcode == Opcode::kSub && second != ValueId::kAbsent) {
        const NodeId mean = expressions.producer(before_stretch(expressions, second));
        return expressions.op(mean) == Opcode::kReduceMean && expressions.operand(mean, 0) == first &&
                       is_input(expressions.analysis(), before_stretch(expressions, first))
                   ? mean
                   : NodeId::kNone;
      }
      if (opcode != Opcode::kDiv && opcode != Opcode::kCast && opcode != Opcode::kIdentity) break;
      value = first;
    }
    return NodeId::kNone;
  }

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
