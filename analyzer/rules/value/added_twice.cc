#include <fmt/format.h>

#include <algorithm>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class AddedTwice : public Rule {
 public:
  AddedTwice()
      : Rule({"TL-V528", "added-twice", "value", findings::Severity::kWarning,
              "a value that is added to a sum which has it already"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const auto check = [&](const Expressions& expressions, const NodeCall& call, ValueId a, ValueId b) {
      if (!report(expressions, call, a, b, out)) report(expressions, call, b, a, out);
    };
    each_node(view, out, {Opcode::kAdd}, [&](const Expressions& expressions, const NodeCall& call) {
      check(expressions, call, call.operand(0).value(), call.operand(1).value());
    });
    // A normalisation that adds a second value first.
    const Model& model = view.model();
    IdVector<OperatorId, int> skips(model.operators.size(), -1);
    bool any = false;
    for (const OperatorId id : model.operators.ids()) {
      const OpSchema* schema = model.operators[id].schema;
      if (schema != nullptr) skips[id] = schema->input_index("skip");
      any = any || skips[id] >= 0;
    }
    if (!any) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    for (const NodeId node : view.analysis().nodes()) {
      const int skip = skips[model.node(node).op];
      if (skip < 0 || !view.analysis().is_visited(node) || view.analysis().has_failed(node)) continue;
      const NodeCall call(view.analysis(), node);
      check(expressions, call, call.operand(0).value(), call.operand(static_cast<std::size_t>(skip)).value());
    }
  }

 private:
  static bool report(const Expressions& expressions, const NodeCall& call, ValueId sum, ValueId value, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const NodeId inner = expressions.producer(sum);
    if (value == ValueId::kAbsent || sum == ValueId::kAbsent || expressions.op(inner) != Opcode::kAdd || sum == value)
      return false;
    const ValueId a = expressions.operand(inner, 0), b = expressions.operand(inner, 1);
    const ValueId other = a == value ? b : b == value ? a : ValueId::kAbsent;
    // What is used elsewhere as well, as by a branch of its own, is part of a larger plan.
    if (other == ValueId::kAbsent || other == value || expressions.users(sum).size() != 1 ||
        !is_branch(expressions, other) || is_only_measured(expressions, call.result()) ||
        !is_layer_data(analysis, value) || is_output(analysis, sum))
      return false;
    out.report(call.id(), fmt::format("{} is added to {}, which is a sum that has it already",
                                      Operand(analysis, value).name(), Operand(analysis, sum).name()))
        .note_at(inner, "added here first")
        .fix(fmt::format("add {} once: {} + {}", Operand(analysis, value).name(), Operand(analysis, other).name(),
                         Operand(analysis, value).name()));
    return true;
  }

  /// What a node makes, and not of one number alone.
  static bool is_branch(const Expressions& expressions, ValueId value) {
    return expressions.producer(value) != NodeId::kNone && !expressions.number(value);
  }

  /// An exporter adds values up to see what shape they have together.
  static bool is_only_measured(const Expressions& expressions, ValueId value) {
    const auto users = expressions.users(value);
    return !users.empty() && std::ranges::all_of(users, [&](NodeId user) {
      return has_trait(expressions.entry(user), ops::OpTrait::kShapeOf);
    });
  }

  /// Features of several axes: not a number, a bias or a coefficient.
  static bool is_layer_data(const dataflow::Analysis& analysis, ValueId value) {
    const Fact& fact = analysis.fact(value);
    return fact.kind == ValueKind::kTensor && fact.shape != ShapeId::kUnranked &&
           fact.dtypes.proves(DTypeSet::floats()) && analysis.facts().dims_of(fact.shape).size() >= 2 &&
           analysis.model().value(value).initializer == nullptr;
  }

  static bool is_output(const dataflow::Analysis& analysis, ValueId value) {
    return std::ranges::any_of(analysis.outputs(GraphId::kMain), [&](ValueId output) { return output == value; });
  }
};

const RegisterRule<AddedTwice> kRegister;

}  // namespace
}  // namespace tensorlint::rules
