#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class TemperatureAfterSoftmax : public Rule {
 public:
  TemperatureAfterSoftmax()
      : Rule({"TL-L362", "temperature-after-softmax", "loss", findings::Severity::kWarning,
              "log-probabilities of all classes that are divided by a temperature: the scores before were to be"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const auto outputs = one_float_outputs(view.analysis());
    if (outputs.empty()) return;
    each_node(view, out, {Opcode::kLogSoftmax}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto users = expressions.users(call.result());
      for (const NodeId user : users) {
        const auto scale = scale_of(expressions, user, call.result());
        if (!scale || !is_picked_for_loss(expressions, expressions.result(user), outputs)) continue;
        const Operand temperature(call.analysis(), *scale);
        out.report(user,
                   fmt::format("{} scales the logarithms of probabilities by {}: the loss gets another factor, and "
                               "the probabilities stay as they are",
                               NodeCall(call.analysis(), user).op_name(), temperature.name()))
            .note_at(call.id(), "they are normalised here")
            .fix("divide the scores first: log_softmax(scores / T, dim=-1)");
        return;
      }
    });
  }

 private:
  /// One number, the same for all classes and samples, that may be a temperature.
  static std::optional<ValueId> scale_of(const Expressions& expressions, NodeId node, ValueId logarithms) {
    const Opcode opcode = expressions.op(node);
    if (opcode != Opcode::kMul && opcode != Opcode::kDiv) return std::nullopt;
    const bool is_first = expressions.operand(node, 0) == logarithms;
    if (opcode == Opcode::kDiv && !is_first) return std::nullopt;
    const ValueId scale = expressions.operand(node, is_first ? 1 : 0);
    if (scale == ValueId::kAbsent || scale == logarithms || !is_one_float(expressions.analysis(), scale))
      return std::nullopt;
    const auto number = expressions.number(scale);
    if (!number) return is_trained(expressions, scale) ? std::optional(scale) : std::nullopt;
    // A sign, and logarithms of another base.
    if (!(*number > 0) || *number == 1) return std::nullopt;
    for (const double base : {2.0, 10.0}) {
      const double unit = std::log(base);
      if (std::abs(*number - unit) < 1e-4 || std::abs(*number - 1 / unit) < 1e-4) return std::nullopt;
    }
    const auto dims = expressions.dims(logarithms);
    const DimPool& pool = expressions.analysis().facts().dims();
    for (const Dim dim : dims)
      if (const auto extent = pool.as_constant(dim);
          extent && *extent > 1 &&
          (*number == static_cast<double>(*extent) ||
           std::abs(*number - std::log(static_cast<double>(*extent))) < 1e-4))
        return std::nullopt;
    // A weight of the loss is less than 1; a temperature that is multiplied with is as well, and says nothing.
    return opcode == Opcode::kDiv ? std::optional(scale) : std::nullopt;
  }

  static bool is_trained(const Expressions& expressions, ValueId value) {
    bool has_parameter = false, has_input = false;
    const dataflow::Analysis& analysis = expressions.analysis();
    const auto look_at = [&](ValueId operand) {
      if (operand == ValueId::kAbsent) return;
      has_input |= is_input(analysis, operand);
      has_parameter |= analysis.model().value(operand).initializer != nullptr;
    };
    look_at(value);
    walk_back(expressions, value, [&](ValueId, NodeId node) {
      for (const ValueId operand : analysis.operands(node)) look_at(operand);
      return true;
    });
    return has_parameter && !has_input;
  }

  /// The logarithm of the label's probability is the loss, with nothing added to it.
  static bool is_picked_for_loss(const Expressions& expressions, ValueId value, std::span<const ValueId> outputs) {
    constexpr int kMaxSteps = 12;
    bool is_picked = false;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      if (std::ranges::find(outputs, value) != outputs.end()) return is_picked;
      NodeId user = NodeId::kNone;
      for (const NodeId each : expressions.users(value)) {
        if (expressions.op(each) == Opcode::kShape) continue;
        if (user != NodeId::kNone) return false;
        user = each;
      }
      if (user == NodeId::kNone) return false;
      const Opcode opcode = expressions.op(user);
      const ops::OpEntry* entry = expressions.entry(user);
      // A cross-entropy normalises once more.
      const bool picks = entry != nullptr && entry->loss() == ops::LossKind::kNegativeLogLikelihood;
      if (opcode == Opcode::kGatherElements || opcode == Opcode::kGatherND || picks) {
        if (is_picked || expressions.operand(user, 0) != value) return false;
        is_picked = true;
      } else if (opcode == Opcode::kMul || opcode == Opcode::kDiv || opcode == Opcode::kWhere) {
        if (!is_picked) return false;
      } else if (opcode != Opcode::kNeg && opcode != Opcode::kCast && opcode != Opcode::kReduceMean &&
                 opcode != Opcode::kReduceSum && !ops::repeats_elements(opcode)) {
        return false;
      }
      value = expressions.result(user);
    }
    return false;
  }
};

const RegisterRule<TemperatureAfterSoftmax> kRegisterTemperatureAfterSoftmax;

}  // namespace
}  // namespace tensorlint::rules
