#include <fmt/format.h>

#include <algorithm>

#include "analyzer/rules/loss/prediction.h"
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
    const bool has_loss = !has_no_loss_output(view.analysis());
    const auto check = [&](const Expressions& expressions, const NodeCall& call, ValueId a, ValueId b) {
      if (!report(expressions, call, a, b, out) && !report(expressions, call, b, a, out) && has_loss)
        report_direction(expressions, call, a, b, out);
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

  /// The loss of pairs in one direction, twice: of images among texts, and of texts among images. The scores of the
  /// second have to be transposed.
  static void report_direction(const Expressions& expressions, const NodeCall& call, ValueId a, ValueId b,
                               Reporter& out) {
    if (a != b && !are_computed_alike(expressions, a, b)) return;
    const NodeId scores = pairs_of(expressions, a, out);
    if (scores == NodeId::kNone) return;
    const dataflow::Analysis& analysis = expressions.analysis();
    const Operand pairs(analysis, expressions.result(scores));
    out.report(call.id(),
               fmt::format("{} is added to itself: both losses of the pairs {} {} compare its rows, and "
                           "none its columns",
                           Operand(analysis, a).name(), pairs.name(), analysis.facts().shape_text(pairs.fact().shape)))
        .note_at(scores, "all pairs are scored here")
        .fix(fmt::format("transpose {} for the second loss", pairs.name()));
  }

  /// The product of two different batches whose rows a loss with labels 0, 1, 2, ... reads, before sums, means, scales
  /// and moves.
  static NodeId pairs_of(const Expressions& expressions, ValueId loss, Reporter& out) {
    constexpr int kMaxSteps = 10;
    const dataflow::Analysis& analysis = expressions.analysis();
    ValueId scores = ValueId::kAbsent;
    for (int step = 0; step < kMaxSteps && scores == ValueId::kAbsent; ++step) {
      loss = before_scale(expressions, loss);
      const NodeId node = expressions.producer(loss);
      const Opcode opcode = expressions.op(node);
      const ops::OpEntry* const entry = expressions.entry(node);
      const ValueId data = expressions.operand(node, 0);
      if (entry != nullptr && entry->loss()) {
        if (!ops::takes_class_indices(*entry->loss()) || !counts_up(expressions, expressions.operand(node, 1)))
          return NodeId::kNone;
        scores = data;
        if (expressions.op_of(data) == Opcode::kLogSoftmax) scores = expressions.operand(expressions.producer(data), 0);
      } else if (opcode == Opcode::kLogSoftmax) {
        scores = data;
      } else if (opcode == Opcode::kMul) {  // the diagonal, taken with the identity
        const ValueId other = expressions.operand(node, 1);
        loss = expressions.op_of(data) == Opcode::kLogSoftmax ? data : other;
        if (expressions.op_of(loss) != Opcode::kLogSoftmax) return NodeId::kNone;
      } else if (opcode == Opcode::kNeg || opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum ||
                 opcode == Opcode::kCast || ops::picks_elements(opcode)) {
        loss = data;
      } else {
        return NodeId::kNone;
      }
    }
    // Scales may be of weights, such as a learnt temperature.
    for (int step = 0; step < kMaxSteps && expressions.op_of(scores) != Opcode::kMatMul; ++step) {
      const NodeId node = expressions.producer(scores);
      const Opcode opcode = expressions.op(node);
      const bool scales = opcode == Opcode::kMul || opcode == Opcode::kDiv || opcode == Opcode::kAdd;
      if (!scales && opcode != Opcode::kCast && opcode != Opcode::kTranspose && !ops::keeps_elements(opcode))
        return NodeId::kNone;
      const bool second = opcode == Opcode::kMul && expressions.dims(expressions.operand(node, 0)).size() < 2;
      scores = expressions.operand(node, second ? 1 : 0);
    }
    const NodeId product = expressions.producer(scores);
    const auto dims = expressions.dims(scores);
    if (expressions.op(product) != Opcode::kMatMul || dims.size() != 2 ||
        !analysis.facts().dims().equal(dims[0], dims[1]))
      return NodeId::kNone;
    losses::AxisOrigins& origins = out.shared<losses::LossAxes>().origins;
    const ValueId left = before_stretch(expressions, before_scale(expressions, expressions.operand(product, 0))),
                  right = before_stretch(expressions, before_scale(expressions, expressions.operand(product, 1)));
    return left != right && origins.is_batch(scores, 0) && origins.is_batch(scores, 1) ? product : NodeId::kNone;
  }

  /// 0, 1, 2, ...: each sample is its own class.
  static bool counts_up(const Expressions& expressions, ValueId labels) {
    const ValueId value = before_stretch(expressions, labels);
    if (expressions.op_of(value) == Opcode::kRange) return true;
    const auto numbers = constant_numbers(expressions, value);
    if (!numbers || numbers->size() < 2) return false;
    for (std::size_t i = 0; i < numbers->size(); ++i)
      if ((*numbers)[i] != static_cast<double>(i)) return false;
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

const RegisterRule<AddedTwice> kRegisterAddedTwice;

}  // namespace
}  // namespace tensorlint::rules
