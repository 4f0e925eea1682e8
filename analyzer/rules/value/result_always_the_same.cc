#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "ir/graph/region_op.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ResultAlwaysTheSame : public Rule {
 public:
  ResultAlwaysTheSame()
      : Rule({"TL-V521", "result-always-the-same", "value", findings::Severity::kWarning,
              "a comparison, softmax, selection or loop that comes to the same whatever it gets"},
             {passes::Pass::kLosses}) {}

  /// A selection of boxes, or a Loop.
  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry*) const override {
    const OpSchema* schema = find_any_version(domain, name);
    return schema != nullptr && (schema->input_index("score_threshold") >= 0 ||
                                 (schema->input_index("M") == 0 && schema->input_index("cond") == 1));
  }

  void check(const NodeCall& call, Reporter& out) const override {
    if (call.analysis().has_failed(call.id())) return;
    check_threshold(call, out);
    check_loop(call, out);
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    const bool is_step = !has_no_loss_output(view.analysis());
    std::optional<std::set<NodeId>> of_losses;  // made for the first softmax of a step
    static constexpr std::initializer_list<Opcode> kWanted{Opcode::kSoftmax, Opcode::kLogSoftmax, Opcode::kEqual,
                                                           Opcode::kCompare};
    each_node(view, out, kWanted, [&](const Expressions& expressions, const NodeCall& call) {
      switch (expressions.op(call.id())) {
        case Opcode::kSoftmax:
        case Opcode::kLogSoftmax:
          if (is_step && !of_losses) of_losses = normalised_for_losses(view, expressions);
          return check_softmax(expressions, call, of_losses, out);
        case Opcode::kEqual:
          check_nan(call, out);
          return check_truth(expressions, call, out);
        case Opcode::kCompare:
          return check_comparison(expressions, call, out);
        default:
          return;
      }
    });
  }

 private:
  using Axes = std::vector<std::size_t>;

  static bool is_known(const Operand& operand) {
    return operand.present() && operand.fact().kind == ValueKind::kTensor && !operand.taint().has(Aspect::kValue);
  }
  static bool is_constant(const NodeCall& call, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    const Value& known = call.model().value(value);
    if (known.producer == NodeId::kNone) return known.initializer != nullptr && known.origin != ValueOrigin::kInput;
    return NodeCall(call.analysis(), known.producer).is(Opcode::kConstant);
  }
  /// The one number that a constant of floats holds; NaN is none.
  static std::optional<double> number(const NodeCall& call, const Operand& operand) {
    return is_known(operand) && is_constant(call, operand.value()) ? number_of(operand) : std::nullopt;
  }

  /// What normalises the sides of known losses: softmax-over-batch-axis reports these, and weights of a sum beside a
  /// known loss.
  static std::set<NodeId> normalised_for_losses(const ModelView& view, const Expressions& expressions) {
    constexpr int kMaxSteps = 16;
    std::set<NodeId> found;
    for (const losses::LossSite& loss : Walk(std::span(view.losses()), view.analysis().meter())) {
      for (const NodeId node : Walk(std::span(loss.nodes), view.analysis().meter())) found.insert(node);
      for (ValueId value : {loss.prediction, loss.target})
        for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
          const NodeId node = expressions.producer(value);
          const Opcode opcode = expressions.op(node);
          found.insert(node);
          const bool goes_on = ops::picks_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kLog ||
                               opcode == Opcode::kNeg || opcode == Opcode::kClip || opcode == Opcode::kAdd ||
                               opcode == Opcode::kMax || opcode == Opcode::kMin;
          if (!goes_on) break;
          value = expressions.operand(node, expressions.number(expressions.operand(node, 0)) ? 1 : 0);
        }
    }
    return found;
  }

  /// A product with the weights, or one that is summed along an axis.
  static bool weighs_a_sum(const Expressions& expressions, NodeId softmax) {
    constexpr int kMaxSteps = 4;
    ValueId weights = expressions.result(softmax);
    for (int step = 0; step < kMaxSteps && weights != ValueId::kAbsent; ++step) {
      ValueId next = ValueId::kAbsent;
      for (const NodeId user : expressions.users(weights)) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (opcode == Opcode::kMatMul) return true;
        if (opcode == Opcode::kMul && result != ValueId::kAbsent)
          for (const NodeId sum : expressions.users(result))
            if (expressions.op(sum) == Opcode::kReduceSum && expressions.axes_of(sum).value_or(Axes()).size() == 1)
              return true;
        if (opcode == Opcode::kIdentity || opcode == Opcode::kDropout || opcode == Opcode::kCast) next = result;
      }
      weights = next;
    }
    return false;
  }

  /// Only of a layer with one feature: an axis of steps may have one where a model was traced. `of_losses`: in a
  /// training step.
  static void check_softmax(const Expressions& expressions, const NodeCall& call,
                            const std::optional<std::set<NodeId>>& of_losses, Reporter& out) {
    if (of_losses && (of_losses->contains(call.id()) || (!of_losses->empty() && weighs_a_sum(expressions, call.id()))))
      return;
    const Operand data = call.operand(0);
    if (!is_known(data) || data.taint().has(Aspect::kShape)) return;
    const auto axes = expressions.axes_of(call.id());
    const auto dims = expressions.dims(data.value());
    const DimPool& pool = call.facts().dims();
    if (!axes || axes->empty() || !std::ranges::all_of(*axes, [&](std::size_t axis) {
          return axis < dims.size() && pool.is_constant(dims[axis], 1);
        }))
      return;
    const NodeId layer = layer_of_one(expressions, data.value());
    if (layer == NodeId::kNone || (of_losses && !is_along_feature(expressions, layer, dims.size(), *axes))) return;
    out.report(call.id(), fmt::format("{} of {} is always {}: axis {} has extent 1", call.op_name(), data.name(),
                                      call.is(Opcode::kSoftmax) ? 1 : 0, axes->front()))
        .note_at(layer, "this layer makes one score")
        .origin(data, Aspect::kShape)
        .fix("use Sigmoid for one score, or a layer with a score for each class");
  }

  /// Of a batch of one, another axis has one element as well.
  static bool is_along_feature(const Expressions& expressions, NodeId layer, std::size_t rank, const Axes& axes) {
    const std::size_t feature = expressions.op(layer) == Opcode::kConv ? 1 : rank - 1;
    return axes.size() == 1 && axes.front() == feature && expressions.dims(expressions.result(layer)).size() == rank;
  }

  /// The product with weights of one column, before an addend, numbers and views.
  static NodeId layer_of_one(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 6;
    const DimPool& pool = expressions.analysis().facts().dims();
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kMatMul || opcode == Opcode::kConv) {
        const auto made = expressions.dims(expressions.result(node));
        const std::size_t feature = opcode == Opcode::kConv ? 1 : made.size() - 1;
        return !made.empty() && feature < made.size() && pool.is_constant(made[feature], 1) &&
                       is_parameter(expressions, expressions.operand(node, 1))
                   ? node
                   : NodeId::kNone;
      }
      if (opcode != Opcode::kAdd && opcode != Opcode::kMul && opcode != Opcode::kDiv && opcode != Opcode::kCast &&
          !ops::keeps_elements(opcode))
        return NodeId::kNone;
      const bool first_is_constant = is_parameter(expressions, expressions.operand(node, 0));
      value = expressions.operand(node, first_is_constant ? 1 : 0);
    }
    return NodeId::kNone;
  }
  static bool is_parameter(const Expressions& expressions, ValueId value) {
    return value != ValueId::kAbsent && expressions.analysis().model().value(value).initializer != nullptr;
  }

  static void check_nan(const NodeCall& call, Reporter& out) {
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Operand operand = call.operand(side);
      if (!is_known(operand) || !is_constant(call, operand.value())) continue;
      const Content* content = call.analysis().content(operand.value());
      if (content == nullptr || content->floats.empty() ||
          !std::ranges::all_of(content->floats, [](double x) { return std::isnan(x); }))
        continue;
      out.report(call.id(), fmt::format("{} with {} is always false: NaN equals nothing, not even itself",
                                        call.op_name(), operand.name()))
          .fix("use IsNaN");
      return;
    }
  }

  /// What was compared before, as a number: 0 or 1. Where it is asked for another one, another coding was meant.
  static void check_truth(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Operand compared = call.operand(1 - side);
      const auto asked = number(call, call.operand(side));
      if (!asked || !is_known(compared) || is_constant(call, compared.value()) || *asked == 0 || *asked == 1) continue;
      if (!is_truth(expressions, compared.value())) continue;
      const NodeId maker = expressions.producer(before_moves(expressions, compared.value()));
      out.report(call.id(), fmt::format("{} is compared with {:.4g}, and is 0 or 1: the result is always false",
                                        compared.name(), *asked))
          .note_at(maker == NodeId::kNone ? call.id() : maker, "it is 0 or 1 from here on")
          .fix(*asked == -1 ? "make the labels -1 and 1: 2 * labels - 1" : "compare with 0 or 1");
      return;
    }
  }

  /// A truth value as a number, or what Where chooses of 0 and 1.
  static bool is_truth(const Expressions& expressions, ValueId value) {
    const ValueId source = before_moves(expressions, value);
    const NodeId node = expressions.producer(source);
    if (expressions.op(node) != Opcode::kWhere)
      return expressions.analysis().fact(source).dtypes.proves(DTypeSet(DType::kBool));
    const auto yes = expressions.number(expressions.operand(node, 1)),
               no = expressions.number(expressions.operand(node, 2));
    return yes && no && std::min(*yes, *no) == 0 && std::max(*yes, *no) == 1;
  }

  /// Probabilities that are computed with exponentials are above 0, but for rounding.
  static bool is_above_zero(const Expressions& expressions, ValueId value) {
    const Opcode opcode = expressions.op_of(before_moves(expressions, value));
    return opcode == Opcode::kSigmoid || opcode == Opcode::kSoftmax;
  }

  static bool is_chosen_by(const Expressions& expressions, ValueId truth) {
    return std::ranges::any_of(expressions.users(truth),
                               [&](NodeId user) { return expressions.op(user) == Opcode::kWhere; });
  }

  static void check_comparison(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Operand compared = call.operand(1 - side);
      const auto threshold = number(call, call.operand(side));
      if (!threshold || !is_known(compared) || is_constant(call, compared.value()) ||
          !compared.fact().dtypes.proves(DTypeSet::floats()) || !is_above_zero(expressions, compared.value()))
        continue;
      const Range& range = compared.fact().range;
      if (*threshold > range.lo && *threshold < range.hi) return;
      // Exporters ask whether a logarithm may be taken, and choose by the answer.
      if (!(range.lo >= 0) || !(range.hi <= 1) || is_chosen_by(expressions, call.result())) return;
      out.report(call.id(),
                 fmt::format("{} of {}, which is between 0 and 1, with {:.4g} has the same result for each element",
                             call.op_name(), compared.name(), *threshold))
          .origin(compared, Aspect::kValue)
          .fix("compare with a threshold between 0 and 1, such as 0.5, or compare the scores themselves");
      return;
    }
  }

  /// Boxes of which only those with a better score are selected.
  static void check_threshold(const NodeCall& call, Reporter& out) {
    const OpSchema* schema = call.op().schema;
    if (schema == nullptr) return;
    const int threshold_index = schema->input_index("score_threshold"), scores_index = schema->input_index("scores");
    if (threshold_index < 0 || scores_index < 0) return;
    const Operand scores = call.operand(static_cast<std::size_t>(scores_index));
    const auto threshold = number(call, call.operand(static_cast<std::size_t>(threshold_index)));
    if (!threshold || !is_known(scores) || is_constant(call, scores.value())) return;
    const Range& range = scores.fact().range;
    if (!(range.hi < *threshold) || range.lo > range.hi) return;
    out.report(call.id(), fmt::format("{} selects nothing: {} is at most {}, and the threshold is {:.4g}",
                                      call.op_name(), scores.name(), bound_text(range.hi), *threshold))
        .origin(scores, Aspect::kValue)
        .fix("give the threshold in the unit of the scores, such as 0.5 for 50 percent");
  }

  static void check_loop(const NodeCall& call, Reporter& out) {
    const RegionOp region = region_op(call.model(), call.node());
    if (!region.condition_operand || !region.trip_count_operand) return;
    const Operand condition = call.operand(*region.condition_operand), trips = call.operand(*region.trip_count_operand);
    const auto is_zero = [&](const Operand& operand) {
      return is_known(operand) && is_constant(call, operand.value()) && operand.fact().range.lo == 0 &&
             operand.fact().range.hi == 0;
    };
    const bool is_false = is_zero(condition);
    if (!is_false && !is_zero(trips)) return;
    out.report(call.id(), fmt::format("the loop never runs: its {} is {}", is_false ? "condition" : "trip count",
                                      is_false ? "false" : "0"))
        .fix(is_false ? "begin with the condition true" : "give the number of iterations");
  }
};

const RegisterRule<ResultAlwaysTheSame> kRegisterResultAlwaysTheSame;

}  // namespace
}  // namespace tensorlint::rules
