#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/reported_nodes.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/axis_way.h"
#include "passes/losses/normalised_axes.h"

namespace tensorlint::rules {
namespace {

/// Only in front of a loss is it known which axis holds the classes: elsewhere a softmax over axis 0 may be meant.
class SoftmaxOverBatchAxis : public Rule {
 public:
  SoftmaxOverBatchAxis()
      : Rule({"TL-S208", "softmax-over-batch-axis", "shape", findings::Severity::kWarning,
              "probabilities of a loss that are normalised over the batch"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    if (analysis.has_failed(loss.anchor)) return;
    check_labels(expressions, origins, loss, &out);
    const auto softmax = softmax_of(expressions, loss);
    if (!softmax) return;
    check_axes(expressions, origins, loss, *softmax, &out);
  }

  /// Probabilities that a loss takes for labels, such as those of a teacher: the node that normalises them, if wrong.
  static NodeId check_labels(const losses::Expressions& expressions, losses::AxisOrigins& origins,
                             const losses::LossSite& loss, Reporter* reporter) {
    const dataflow::Analysis& analysis = expressions.analysis();
    ValueId value = loss.target;
    for (int step = 0; step < kMaxSteps && is_copy(expressions.op_of(value)); ++step)
      value = expressions.operand(expressions.producer(value), 0);
    const auto softmax = expressions.normalised(value);
    if (!softmax || softmax->axes.size() != 1 || analysis.taint(softmax->scores).has(Aspect::kShape))
      return NodeId::kNone;
    const Fact& scores = analysis.fact(softmax->scores);
    if (scores.kind != ValueKind::kTensor || scores.shape == ShapeId::kUnranked) return NodeId::kNone;
    const auto dims = analysis.facts().dims_of(scores.shape);
    if (!takes_in_batch(origins, dims, *softmax, analysis.facts().dims())) return NodeId::kNone;
    if (reporter == nullptr) return softmax->node;
    reporter
        ->report(softmax->node,
                 fmt::format("{} normalises {} over axis 0, the batch: {} takes it for the labels of each "
                             "sample",
                             NodeCall(analysis, softmax->node).op_name(), described(analysis, softmax->scores),
                             ops::to_text(loss.kind)))
        .note_at(loss.anchor, "the loss is computed here")
        .fix("normalise over the axis of the classes, such as softmax(dim=1)");
    return softmax->node;
  }

  /// Weights of a sum: they have to add up to 1 along the axis that is summed over.
  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    if (view.losses().empty() && axis_mistakes(out).empty()) return;
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    std::set<NodeId> reported;
    for (const losses::LossSite& loss : view.losses()) {
      const auto softmax = softmax_of(expressions, loss);
      if (softmax && check_axes(expressions, origins, loss, *softmax, nullptr)) reported.insert(softmax->node);
      reported.insert(check_labels(expressions, origins, loss, nullptr));
    }
    for (const losses::AxisMistake& mistake : axis_mistakes(out))
      if (!reported.contains(mistake.node) && report_mistake(analysis, mistake, out)) reported.insert(mistake.node);
    if (view.losses().empty()) return;
    const Model& model = view.model();
    for (const NodeId id : analysis.nodes()) {
      if (model.node(id).graph != GraphId::kMain || expressions.op(id) != ops::Opcode::kSoftmax ||
          reported.contains(id))
        continue;
      const auto softmax = expressions.normalised(expressions.result(id));
      if (!softmax || softmax->axes.size() != 1 || analysis.taint(softmax->scores).has(Aspect::kShape)) continue;
      const Fact& scores = analysis.fact(softmax->scores);
      if (scores.kind != ValueKind::kTensor || scores.shape == ShapeId::kUnranked) continue;
      const auto dims = analysis.facts().dims_of(scores.shape);
      const std::size_t axis = softmax->axes.front();
      // Of one element every weight is 1, whatever the scores.
      const bool is_single = axis != 0 && axis < dims.size() && analysis.facts().dims().is_constant(dims[axis], 1);
      if (!is_single && (axis != 0 || !origins.is_batch(softmax->scores, 0))) continue;
      if (const NodeId sum = sum_over_another_axis(expressions, id, dims, 0); sum != NodeId::kNone)
        report_weights(expressions, *softmax, sum, dims, out);
    }
  }

 private:
  /// Copies and views in a row that are looked through.
  static constexpr int kMaxSteps = 16;

  /// The distribution of one of several actions, which another distribution weighs along the axis of the softmax.
  static bool is_weighed_along(const losses::Expressions& expressions, NodeId softmax, std::size_t axis,
                               std::size_t rank) {
    constexpr std::size_t kMaxValues = 12;
    const dataflow::Analysis& analysis = expressions.analysis();
    std::vector<ValueId> pending{expressions.result(softmax)};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const ops::Opcode opcode = expressions.op(user);
        const ValueId other = expressions.beside(user, pending[i]);
        const auto weights = expressions.dims(other);
        if (opcode == ops::Opcode::kMul && weights.size() == rank && !expressions.number(other) &&
            !analysis.facts().dims().is_constant(weights[axis], 1))
          return true;
        if (opcode == ops::Opcode::kGatherElements || opcode == ops::Opcode::kNeg)
          pending.push_back(expressions.result(user));
      }
    return false;
  }

  static bool report_mistake(const dataflow::Analysis& analysis, const losses::AxisMistake& mistake, Reporter& out) {
    using Kind = losses::AxisMistake::Kind;
    if (!mistake.is_batch) return false;
    const NodeCall call(analysis, mistake.node);
    const auto meets = [&] { return NodeCall(analysis, mistake.meets); };
    const std::size_t own = mistake.own_axis();
    const std::string moved = axis_before_moves(analysis, mistake);
    const std::string what =
        fmt::format("{} normalises {} over {}", call.op_name(), described(analysis, mistake.value),
                    mistake.axes.size() > 1 ? std::string("several axes, the batch among them")
                                            : fmt::format("axis {}, the batch", mistake.axes.front()));
    switch (mistake.kind) {
      case Kind::kSelectedElsewhere:
        out.report(mistake.node, fmt::format("{}; classes are picked along axis {}", what, own))
            .note_at(mistake.meets,
                     fmt::format("{} picks along axis {} here{}", meets().op_name(), mistake.other, moved))
            .fix(fmt::format("normalise over axis {}", own));
        return true;
      case Kind::kSummedElsewhere:
      case Kind::kAttention:
        out.report(mistake.node, fmt::format("{}; what it weighs is summed over axis {}", what, own))
            .note_at(mistake.meets, fmt::format("{} sums over axis {} here{}", meets().op_name(), mistake.other, moved))
            .fix(fmt::format("normalise over axis {}", own));
        return true;
      case Kind::kSingleScores:
        out.report(mistake.node,
                   fmt::format("{}: each sample has one score, and its probability depends on the others", what))
            .note_at(mistake.meets, "the loss is averaged over the batch here")
            .fix("use Sigmoid for a single score");
        return true;
      default:
        return false;
    }
  }

  /// The node that sums what the weights multiply, along an axis that they have and are not normalised over, and not
  /// along axis 0.
  static NodeId sum_over_another_axis(const losses::Expressions& expressions, NodeId weights, std::span<const Dim> dims,
                                      int depth) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const DimPool& pool = analysis.facts().dims();
    constexpr int kMaxDepth = 3;
    for (const NodeId user : expressions.users(expressions.result(weights))) {
      const ops::Opcode opcode = expressions.op(user);
      if (depth < kMaxDepth &&
          (opcode == ops::Opcode::kIdentity || opcode == ops::Opcode::kDropout || opcode == ops::Opcode::kCast)) {
        if (const NodeId sum = sum_over_another_axis(expressions, user, dims, depth + 1); sum != NodeId::kNone)
          return sum;
        continue;
      }
      if (opcode == ops::Opcode::kMatMul && dims.size() >= 3 &&
          expressions.operand(user, 0) == expressions.result(weights) && !pool.is_constant(dims.back(), 1))
        return user;
      if (opcode != ops::Opcode::kMul || expressions.result(user) == ValueId::kAbsent) continue;
      const Fact& product = analysis.fact(expressions.result(user));
      if (product.kind != ValueKind::kTensor || product.shape == ShapeId::kUnranked ||
          analysis.facts().dims_of(product.shape).size() != dims.size())
        continue;
      const auto is_sum = [&](NodeId sum) {
        const auto axes = expressions.op(sum) == ops::Opcode::kReduceSum ? expressions.axes_of(sum) : std::nullopt;
        return axes && axes->size() == 1 && axes->front() != 0 && axes->front() < dims.size() &&
               !pool.is_constant(dims[axes->front()], 1);
      };
      const auto sums = expressions.users(expressions.result(user));
      if (sums.size() == 1 && is_sum(sums.front())) return sums.front();
    }
    return NodeId::kNone;
  }

  static void report_weights(const losses::Expressions& expressions, const losses::Normalised& softmax, NodeId sum,
                             std::span<const Dim> dims, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const NodeCall call(analysis, softmax.node), total(analysis, sum);
    const bool product = total.is(ops::Opcode::kMatMul);
    const std::size_t axis =
        product ? dims.size() - 1 : expressions.axes_of(sum).value_or(std::vector<std::size_t>{1}).front();
    out.report(softmax.node,
               fmt::format("{} normalises {} {} over {}; what it weighs is summed over axis {}", call.op_name(),
                           Operand(analysis, softmax.scores).name(),
                           analysis.facts().shape_text(analysis.fact(softmax.scores).shape),
                           softmax.axes.front() == 0
                               ? std::string("axis 0, the batch")
                               : fmt::format("axis {} of extent 1, so that every weight is 1", softmax.axes.front()),
                           axis))
        .note_at(sum, fmt::format("{} sums over axis {} here", total.op_name(), axis))
        .fix(fmt::format("normalise over axis {}", axis));
  }

  /// What normalises the prediction: before the loss, or as its first part.
  static std::optional<losses::Normalised> softmax_of(const losses::Expressions& expressions,
                                                      const losses::LossSite& loss) {
    const bool is_operator = loss.evidence == losses::LossEvidence::kOperator;
    if (is_operator || !ops::takes_class_indices(loss.kind)) {
      if (is_operator && loss.kind == ops::LossKind::kCrossEntropy) return std::nullopt;
      // Of [N, T, C] that became [N * T, C] as well.
      const auto classes = classes_of_operator(expressions, loss);
      const ValueId value = classes ? classes->value : before_guard(expressions, loss.prediction);
      auto found = expressions.normalised(value);
      // The logarithm of probabilities, in front of a loss of logarithms.
      if (!found && expressions.op_of(value) == ops::Opcode::kLog)
        found = expressions.normalised(before_guard(expressions, expressions.operand(expressions.producer(value), 0)));
      return found;
    }
    for (const NodeId node : loss.nodes)
      if (auto found = expressions.normalised(expressions.result(node)); found && found->scores == loss.prediction)
        return found;
    return std::nullopt;
  }

  struct Classes {
    ValueId value;
    std::size_t axis;
  };

  /// What an operator takes class indices of, before views and the logarithm, and the axis of its classes there.
  static std::optional<Classes> classes_of_operator(const losses::Expressions& expressions,
                                                    const losses::LossSite& loss) {
    if (loss.evidence != losses::LossEvidence::kOperator || !ops::takes_class_indices(loss.kind)) return std::nullopt;
    const losses::AxisWay way(expressions);
    // A loss of PyTorch takes a single row of scores, too.
    Classes found{loss.prediction, expressions.dims(loss.prediction).size() == 1 ? 0U : 1U};
    for (int step = 0; step < kMaxSteps && found.value != ValueId::kAbsent; ++step) {
      if (expressions.normalised(found.value)) return found;
      const NodeId node = expressions.producer(found.value);
      const ops::Opcode opcode = expressions.op(node);
      const ValueId before = expressions.operand(node, 0);
      if (opcode == ops::Opcode::kLog) {
        found.value = before_guard(expressions, before);
        if (expressions.dims(found.value).size() != expressions.dims(before).size()) return std::nullopt;
        continue;
      }
      const bool keeps_axes = opcode == ops::Opcode::kIdentity || opcode == ops::Opcode::kCast;
      if (!keeps_axes && !keeps_elements(opcode) && opcode != ops::Opcode::kTranspose) break;
      std::optional<std::size_t> at;
      if (keeps_axes) at = found.axis;
      const std::size_t rank = expressions.dims(before).size();
      for (std::size_t i = 0; i < rank && !at; ++i)
        if (const auto kept = way.follow(node, 0, i); kept.fate == losses::AxisFate::kKept && kept.axis == found.axis)
          at = i;
      if (!at) break;
      found = {before, *at};
    }
    return std::nullopt;
  }

  static bool is_copy(ops::Opcode opcode) {
    return keeps_elements(opcode) || opcode == ops::Opcode::kCast || opcode == ops::Opcode::kExpand;
  }

  /// Whether the softmax is wrong; reported where `reporter` is given.
  static bool check_axes(const losses::Expressions& expressions, losses::AxisOrigins& origins,
                         const losses::LossSite& loss, const losses::Normalised& softmax, Reporter* reporter) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const Fact& scores = analysis.fact(softmax.scores);
    if (scores.kind != ValueKind::kTensor || scores.shape == ShapeId::kUnranked || softmax.axes.empty() ||
        analysis.taint(softmax.scores).has(Aspect::kShape))
      return false;
    const auto dims = analysis.facts().dims_of(scores.shape);
    const DimPool& pool = analysis.facts().dims();
    const NodeCall call(analysis, softmax.node);
    const Operand of(analysis, softmax.scores);
    const bool single = std::ranges::all_of(
        softmax.axes, [&](std::size_t axis) { return axis < dims.size() && pool.is_constant(dims[axis], 1); });
    if (single) {
      if (reporter == nullptr) return true;
      reporter
          ->report(softmax.node, fmt::format("{} normalises {} {} over an axis of extent 1: every probability is 1",
                                             call.op_name(), of.name(), analysis.facts().shape_text(scores.shape)))
          .note_at(loss.anchor, fmt::format("{} compares them here", ops::to_text(loss.kind)))
          .fix("use Sigmoid for a single score");
      return true;
    }
    const auto classes = class_axis(expressions, loss, softmax);
    const bool normalises_classes = !classes || std::ranges::find(softmax.axes, *classes) != softmax.axes.end();
    const bool of_batch =
        takes_in_batch(origins, dims, softmax, pool) || is_binary_over_batch(origins, loss, softmax, dims);
    if (normalises_classes && !of_batch) return false;
    if (classes && !normalises_classes && losses::is_normalised_before(expressions, softmax.scores, *classes))
      return false;
    if (!of_batch && softmax.axes.size() == 1 &&
        is_weighed_along(expressions, softmax.node, softmax.axes.front(), dims.size()))
      return false;
    if (reporter == nullptr || reporter->shared<ReportedNodes>().has("TL-L303", softmax.node)) return true;
    Reporter& out = *reporter;
    const bool first = softmax.axes.front() == 0;
    const std::string what = softmax.axes.size() > 1
                                 ? std::string("several axes, the batch among them")
                                 : fmt::format("axis {}{}", softmax.axes.front(),
                                               first && origins.is_batch(softmax.scores, 0) ? ", the batch" : "");
    FindingBuilder finding =
        normalises_classes
            ? out.report(softmax.node, fmt::format("{} normalises {} over {}, in front of {}", call.op_name(),
                                                   of.name(), what, ops::to_text(loss.kind)))
            : out.report(softmax.node,
                         fmt::format("{} normalises {} over {}; the classes of the loss are along axis {}",
                                     call.op_name(), of.name(), what, *classes));
    const bool turns = call.is(ops::Opcode::kSoftmax) || call.is(ops::Opcode::kLogSoftmax);
    std::vector<GraphEdit> edits;
    const std::size_t right = classes.value_or(1);
    if (turns && (classes || dims.size() == 2) && call.op().opset >= 13)
      edits.emplace_back(SetAttribute{
          softmax.node, {.name = "axis", .kind = AttributeKind::kInt, .i = static_cast<std::int64_t>(right)}});
    if (classes) {
      finding.note_at(loss.anchor, fmt::format("the loss takes its classes from axis {} here", *classes));
    } else {
      finding.note_at(loss.anchor, "the loss compares the probabilities here");
    }
    finding.fix(classes || dims.size() == 2 ? fmt::format("normalise over axis {}", right)
                                            : std::string("normalise over the axis of the classes"),
                findings::Applicability::kUnsafe, std::move(edits));
    return true;
  }

  /// One score for each sample, [N]: the losses of two classes take a Sigmoid.
  static bool is_binary_over_batch(losses::AxisOrigins& origins, const losses::LossSite& loss,
                                   const losses::Normalised& softmax, std::span<const Dim> dims) {
    return dims.size() == 1 && loss.kind == ops::LossKind::kBinaryCrossEntropy && !softmax.logarithm &&
           origins.is_batch(softmax.scores, 0);
  }

  /// Where the loss has its classes: along axis 1 of an operator, along the axis that is gathered from.
  static std::optional<std::size_t> class_axis(const losses::Expressions& expressions, const losses::LossSite& loss,
                                               const losses::Normalised& softmax) {
    if (loss.evidence == losses::LossEvidence::kOperator && ops::takes_class_indices(loss.kind)) {
      const auto classes = classes_of_operator(expressions, loss);
      return classes && expressions.producer(classes->value) == softmax.node ? std::optional(classes->axis)
                                                                             : std::nullopt;
    }
    if (expressions.op(loss.anchor) != ops::Opcode::kGatherElements) return std::nullopt;
    const Attribute* axis = expressions.analysis().attribute(loss.anchor, "axis");
    const auto rank = static_cast<std::int64_t>(
        expressions.analysis().facts().dims_of(expressions.analysis().fact(softmax.scores).shape).size());
    std::int64_t at = axis == nullptr ? 0 : axis->i;
    if (at < 0) at += rank;
    // Stretched over the classes: whole rows are picked, of which the classes are left.
    const ValueId index = expressions.source(expressions.operand(loss.anchor, 1));
    const Fact& places = expressions.analysis().fact(index);
    if (places.kind == ValueKind::kTensor && places.shape != ShapeId::kUnranked && softmax.axes.size() == 1) {
      const auto dims = expressions.analysis().facts().dims_of(places.shape);
      const bool is_stretched = index != expressions.operand(loss.anchor, 1) && softmax.axes[0] < dims.size() &&
                                expressions.analysis().facts().dims().is_constant(dims[softmax.axes[0]], 1);
      if (is_stretched) return softmax.axes[0];
    }
    return at < 0 || at >= rank ? std::nullopt : std::optional(static_cast<std::size_t>(at));
  }

  static bool takes_in_batch(losses::AxisOrigins& origins, std::span<const Dim> dims, const losses::Normalised& softmax,
                             const DimPool& pool) {
    if (dims.size() < 2 || softmax.axes.front() != 0) return false;
    return softmax.axes.size() > 1 ? is_first_axis_other(origins, softmax)
                                   : is_batch_alone(origins, dims, softmax.scores, pool);
  }

  /// Axis 0 is the batch, and no other axis is: of all pairs in a batch each may be normalised over either.
  static bool is_batch_alone(losses::AxisOrigins& origins, std::span<const Dim> dims, ValueId scores,
                             const DimPool& pool) {
    bool others = false;
    for (std::size_t i = 1; i < dims.size(); ++i) {
      if (origins.is_batch(scores, i) || pool.equal(dims[0], dims[i])) return false;
      others |= !pool.is_constant(dims[i], 1);
    }
    return others && origins.is_batch(scores, 0);
  }

  static bool is_first_axis_other(losses::AxisOrigins& origins, const losses::Normalised& softmax) {
    return origins.is_batch(softmax.scores, 0) && std::ranges::none_of(softmax.axes, [&](std::size_t axis) {
             return axis != 0 && origins.is_batch(softmax.scores, axis);
           });
  }
};

const RegisterRule<SoftmaxOverBatchAxis> kRegisterSoftmaxOverBatchAxis;

}  // namespace
}  // namespace tensorlint::rules
