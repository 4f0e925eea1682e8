#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/reported_nodes.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "ir/graph/new_nodes.h"
#include "passes/losses/attention_use.h"
#include "passes/losses/expressions.h"

namespace tensorlint::rules {
namespace {

/// Scores [N, T, C] with class indices [N, T]: what layers give, with the classes last, and not where the loss wants
/// them.
class ClassAxisPosition : public Rule {
 public:
  ClassAxisPosition()
      : Rule({"TL-L303", "class-axis-position", "loss", findings::Severity::kError,
              "scores whose classes are not where the loss takes them"},
             {passes::Pass::kLosses}) {}

  /// Rows of classes that a view has cut out of several axes.
  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::takes_class_indices(loss.kind) || analysis.has_failed(loss.anchor)) return;
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    check_largest(expressions, loss, out);
    const NodeId scores = view_of(expressions, loss.prediction), labels = view_of(expressions, loss.target);
    if (scores == NodeId::kNone) return;
    if (mixes_axes(expressions, scores)) {
      const Operand before(analysis, expressions.operand(scores, 0)), after(analysis, expressions.result(scores));
      out.report(findings::Severity::kWarning, scores,
                 fmt::format("each row of {} {} is cut out of several axes of {} {}: {} takes it for the classes of "
                             "one sample",
                             after.name(), analysis.facts().shape_text(after.fact().shape), before.name(),
                             analysis.facts().shape_text(before.fact().shape), ops::to_text(loss.kind)))
          .note_at(loss.anchor, "the loss is computed here")
          .fix(fmt::format("move the classes of {} to the last axis before it is reshaped", before.name()));
    } else if (labels != NodeId::kNone && are_in_another_order(expressions, scores, labels)) {
      const Operand a(analysis, expressions.operand(scores, 0)), b(analysis, expressions.operand(labels, 0));
      out.report(findings::Severity::kWarning, loss.anchor,
                 fmt::format("{} {} and {} {} are flattened in another order: scores meet the labels of other samples",
                             a.name(), analysis.facts().shape_text(a.fact().shape), b.name(),
                             analysis.facts().shape_text(b.fact().shape)))
          .note_at(scores, fmt::format("{} is flattened here", a.name()))
          .note_at(labels, fmt::format("{} is flattened here", b.name()))
          .fix(fmt::format("transpose {} first", b.name()));
    }
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    for (const losses::AxisMistake& mistake : axis_mistakes(out)) report_mistake(view.analysis(), mistake, out);
    if (!has_no_loss_output(view.analysis()) || view.model().graphs.empty()) return;
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    for (const losses::AxisMistake& mistake : losses::find_attention_mistakes(expressions, origins)) {
      if (mistake.kind == losses::AxisMistake::Kind::kSelectedElsewhere)
        report_largest(view.analysis(), mistake, out);
      else
        report_mistake(view.analysis(), mistake, out);
    }
  }

  Specificity match(const ViolationCase& violation) const override {
    return has_classes_last(violation) ? Specificity::kMostSpecific : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    const NodeCall call = violation.call();
    const Operand scores = call.operand(0);
    const auto rank = static_cast<std::int64_t>(call.facts().dims_of(scores.fact().shape).size());
    std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
    std::iota(order.begin() + 2, order.end(), 1);
    order[1] = rank - 1;
    const Model& model = violation.model();
    const std::string made = unused_name(model, fmt::format("{}_classes_first_{}", model.name_of(scores.value()),
                                                            static_cast<std::uint32_t>(call.id())));
    report_violation(violation,
                     fmt::format("the classes of {} {} are along the last axis, {} takes them along axis 1",
                                 scores.name(), call.facts().shape_text(scores.fact().shape), call.op_name()),
                     out)
        .fix(fmt::format("transpose {} so that the classes are along axis 1", scores.name()),
             findings::Applicability::kUnsafe,
             {InsertNode{call.id(), new_transpose(made, std::string(model.name_of(scores.value())), made, order)},
              SetOperand{call.id(), 0, made}});
  }

 private:
  /// argmax(-1) of scores [N, C, H, W], compared with the labels of a loss that takes their classes from axis 1. Of
  /// pairs, whose labels count them, either side may choose.
  static void check_largest(const losses::Expressions& expressions, const losses::LossSite& loss, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const auto classes = class_axis(expressions, loss);
    if (!classes || loss.target == ValueId::kAbsent || !is_input(analysis, expressions.source(loss.target))) return;
    std::vector<ValueId> scores{loss.prediction};
    const auto add = [&](ValueId value) {
      if (value != ValueId::kAbsent && std::ranges::find(scores, value) == scores.end()) scores.push_back(value);
    };
    const auto before = expressions.normalised(loss.prediction);
    if (before) add(before->scores);
    constexpr std::size_t kMaxValues = 6;
    for (std::size_t i = 0; i < scores.size() && scores.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(scores[i])) {
        const ops::Opcode opcode = expressions.op(user);
        if (opcode == ops::Opcode::kSoftmax || opcode == ops::Opcode::kLogSoftmax || opcode == ops::Opcode::kIdentity ||
            opcode == ops::Opcode::kCast)
          add(expressions.result(user));
        const auto along = opcode == ops::Opcode::kArgExtreme ? expressions.axes_of(user) : std::nullopt;
        if (!along || along->size() != 1 || along->front() == *classes) continue;
        const NodeId meets = compares(expressions, expressions.result(user), loss.target);
        if (meets == NodeId::kNone) continue;
        const NodeCall call(analysis, user);
        out.report(findings::Severity::kWarning, user,
                   fmt::format("{} searches {} along axis {}; {} takes the classes from axis {}", call.op_name(),
                               described(analysis, scores[i]), along->front(), ops::to_text(loss.kind), *classes))
            .note_at(meets, "what it finds is compared with the labels here")
            .note_at(loss.anchor, "the loss is computed here")
            .fix(fmt::format("search along axis {}", *classes));
      }
  }

  static std::optional<std::size_t> class_axis(const losses::Expressions& expressions, const losses::LossSite& loss) {
    const std::size_t rank = expressions.dims(loss.prediction).size();
    if (rank < 3) return std::nullopt;
    if (loss.evidence == losses::LossEvidence::kOperator) return 1;
    for (const NodeId node : loss.nodes)
      if (const auto found = expressions.normalised(expressions.result(node));
          found && found->scores == loss.prediction && found->axes.size() == 1)
        return found->axes.front();
    return std::nullopt;
  }

  /// The comparison of class indices with labels, behind copies.
  static NodeId compares(const losses::Expressions& expressions, ValueId indices, ValueId labels) {
    constexpr std::size_t kMaxValues = 6;
    if (labels == ValueId::kAbsent) return NodeId::kNone;
    std::vector<ValueId> pending{indices};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const ops::Opcode opcode = expressions.op(user);
        const ValueId other = expressions.beside(user, pending[i]);
        if (opcode == ops::Opcode::kEqual && other != ValueId::kAbsent &&
            expressions.source(other) == expressions.source(labels))
          return user;
        if (opcode == ops::Opcode::kCast || ops::keeps_elements(opcode)) pending.push_back(expressions.result(user));
      }
    return NodeId::kNone;
  }

  /// Before opset 13 a softmax takes in all axes after its own.
  static std::vector<GraphEdit> normalise_along(const NodeCall& softmax, std::size_t axis) {
    if ((!softmax.is(ops::Opcode::kSoftmax) && !softmax.is(ops::Opcode::kLogSoftmax)) || softmax.op().opset < 13)
      return {};
    return {SetAttribute{softmax.id(),
                         {.name = "axis", .kind = AttributeKind::kInt, .i = static_cast<std::int64_t>(axis)}}};
  }

  static void report_mistake(const dataflow::Analysis& analysis, const losses::AxisMistake& mistake, Reporter& out) {
    using Kind = losses::AxisMistake::Kind;
    const NodeCall call(analysis, mistake.node);
    const auto meets = [&] { return NodeCall(analysis, mistake.meets); };
    const std::string value = described(analysis, mistake.value);
    const std::size_t axis = mistake.axes.front(), own = mistake.own_axis();
    const std::string moved = axis_before_moves(analysis, mistake);
    const auto report = [&](std::string message) {
      return out.report(findings::Severity::kWarning, mistake.node, std::move(message));
    };
    // A sum of its own may be written far away; the weights of an average are used once. Letters may be wrong where the
    // softmax is over the last axis, as usual.
    const bool is_last = axis + 1 == analysis.facts().dims_of(analysis.fact(mistake.value).shape).size();
    const bool is_sum = mistake.kind == Kind::kSummedElsewhere ||
                        (is_last && mistake.meets != NodeId::kNone && meets().is(ops::Opcode::kEinsum));
    switch (mistake.kind) {
      case Kind::kSummedElsewhere:
      case Kind::kAttention:
        if (mistake.is_batch) return;
        out.report(findings::Severity::kWarning, is_sum ? mistake.meets : mistake.node,
                   fmt::format("{} normalises {} over axis {}; what it gives is summed over axis {}", call.op_name(),
                               value, axis, own))
            .note_at(is_sum ? mistake.node : mistake.meets,
                     is_sum ? fmt::format("{} normalises over axis {} here", call.op_name(), axis)
                            : fmt::format("{} sums over axis {} here{}", meets().op_name(), mistake.other, moved))
            .fix(fmt::format("normalise over axis {}", own));
        return;
      case Kind::kSelectedElsewhere:
        if (mistake.is_batch) return;
        out.shared<ReportedNodes>().add("TL-L303", mistake.node);
        report(fmt::format("{} normalises {} over axis {}; classes are picked along axis {}, and averaged as they are",
                           call.op_name(), value, axis, own))
            .note_at(mistake.meets, mistake.moved_from
                                        ? fmt::format("classes are picked along axis {} here{}", mistake.other, moved)
                                        : std::string("classes are picked here"))
            .fix(fmt::format("normalise over axis {}", own), findings::Applicability::kUnsafe,
                 normalise_along(call, own));
        return;
      case Kind::kClassesElsewhere:
        report(fmt::format("{} normalises {} over axis {}; the classes of its one-hot labels are along axis {}",
                           call.op_name(), value, axis, mistake.other))
            .note_at(analysis.model().value(mistake.partner).producer,
                     fmt::format("the classes of the labels become axis {} here", mistake.other))
            .note_at(mistake.meets, "scores and labels meet here")
            .fix("move the classes of the labels to the axis of the scores, such as movedim(-1, 1)");
        return;
      case Kind::kTurnedByOneHead:
        return report_other_head(analysis, mistake, out);
      case Kind::kCorrelationOfLayers:
        return report_standardised(analysis, mistake, out);
      case Kind::kTurnedByView:
        report(fmt::format("{} views {} as {}: the elements keep their order, so that {}", call.op_name(), value,
                           analysis.facts().shape_text(analysis.fact(call.result()).shape),
                           mistake.is_batch ? "samples are mixed" : "axes are mixed"))
            .fix("use Transpose (transpose or permute in PyTorch) to exchange axes");
        return;
      case Kind::kPartsByView:
        report(fmt::format("{} cuts {} into pairs of neighbours; its parts are joined one after the other along axis 0",
                           call.op_name(), value))
            .note_at(mistake.meets, "the parts are joined here")
            .fix("put the axis of the parts first, such as view(2, N, C) in place of view(N, 2, C)");
        return;
      case Kind::kFlattenedClasses:
        report(fmt::format("{} flattens {} into rows that are not its classes, which are along axis {}", call.op_name(),
                           value, axis))
            .note_at(mistake.meets, "the loss takes each row for the classes of one label")
            .fix("move the classes to the last axis before the scores are flattened");
        return;
      case Kind::kRowsByClass:
        report(fmt::format("{} picks samples of {} by class indices; all their classes go into the loss",
                           call.op_name(), value))
            .note_at(mistake.meets, "the classes are averaged here")
            .fix("pick along axis 1: gather(1, labels.unsqueeze(1))");
        return;
      case Kind::kRowsOfFirstColumn:
        report(fmt::format("{} picks along axis 0 of {}, the batch: the indices pick samples, and only the first "
                           "column of each",
                           call.op_name(), value))
            .fix("pick along axis 1: gather(1, indices.unsqueeze(1))");
        return;
      case Kind::kColumnsByClass:
        report(fmt::format("{} picks from each row of {} the classes of all samples, and not its own", call.op_name(),
                           value))
            .fix("pick one class of each row: gather(1, labels.unsqueeze(1))");
        return;
      case Kind::kSummedOverMore:
        report(fmt::format("{} normalises {} over axis {} alone; what its weights average is summed over axis {}, too: "
                           "they do not add up to 1",
                           call.op_name(), value, axis, mistake.other))
            .note_at(mistake.meets, "both axes are summed here")
            .fix("flatten both axes before the softmax: flatten(2).softmax(-1)");
        return;
      case Kind::kNormElsewhere:
        report(fmt::format("vectors of {} are divided by norms over axis {}, and the product after it sums over "
                           "another axis: it is not a cosine",
                           value, axis))
            .note_at(mistake.meets, "the product is computed here")
            .fix("take the norm over the axis that the product sums over, such as F.normalize(x, dim=-1)");
        return;
      case Kind::kSummedOverClasses:
        report(fmt::format("{} sums {} over axis {}, along which {} is only repeated: its features, along axis {}, are "
                           "left, and taken for classes",
                           call.op_name(), value, axis, described(analysis, mistake.partner), mistake.other))
            .note_at(mistake.meets, "they are taken for classes here")
            .fix(fmt::format("sum over the features: dim={}", mistake.other));
        return;
      case Kind::kCorrelationOfSamples:
        report(fmt::format("the features {} are standardised over axis {}, the batch; {} sums over axis {}: it "
                           "compares samples, and correlates no features",
                           value, axis, call.op_name(), mistake.other))
            .note_at(mistake.meets, "the matrix is read as correlations here")
            .fix("multiply along the batch: z1.T @ z2, which is [features, features]");
        return;
      case Kind::kFlattenedOrder: {
        auto finding = report(
            fmt::format("axis {} of {} and axis {} of {} are flattened in another order: {}", axis, value,
                        mistake.right, described(analysis, mistake.partner),
                        mistake.is_batch ? "samples meet other samples" : "elements meet those of other places"));
        if (mistake.meets != NodeId::kNone) finding.note_at(mistake.meets, fmt::format("axis {} is joined here", axis));
        finding.fix("flatten both in one order: transpose one of them first, or use repeat_interleave for repeat");
        return;
      }
      case Kind::kSeparatedOrder: {
        auto finding = report(fmt::format("{} separates axis {} of {} into {}, in another order than it was joined in",
                                          call.op_name(), axis, value,
                                          analysis.facts().shape_text(analysis.fact(call.result()).shape)));
        if (mistake.meets != NodeId::kNone) finding.note_at(mistake.meets, fmt::format("axis {} is joined here", axis));
        finding.fix("view it in the order in which it was joined, and transpose afterwards");
        return;
      }
      case Kind::kStepsAsChannels:
        report(fmt::format("{} takes axis {} of {} for its channels; its elements are steps in time", call.op_name(),
                           axis, value))
            .note_at(mistake.meets, "equal steps are added along this axis here")
            .fix("move the steps to the last axis, such as transpose(1, 2)");
        return;
      default:
        return;
    }
  }

  static void report_other_head(const dataflow::Analysis& analysis, const losses::AxisMistake& mistake, Reporter& out) {
    const NodeCall call(analysis, mistake.node);
    out.report(findings::Severity::kWarning, mistake.node,
               fmt::format("{} makes rows of {} as it is, with its channels first; the rows of another head of the "
                           "same features have the channels last",
                           call.op_name(), described(analysis, mistake.value)))
        .note_at(mistake.meets, "the channels of the other head are moved here")
        .fix("move the channels to the last axis first: permute(0, 2, 3, 1)");
  }

  static void report_standardised(const dataflow::Analysis& analysis, const losses::AxisMistake& mistake,
                                  Reporter& out) {
    const NodeCall meets(analysis, mistake.meets);
    out.report(findings::Severity::kWarning, mistake.node,
               fmt::format("each sample of {} is standardised over axis {}, its features; {} sums over the batch, and "
                           "gives no correlations of features",
                           described(analysis, mistake.value), mistake.axes.front(), meets.op_name()))
        .note_at(mistake.meets, "the product that is compared with the identity is computed here")
        .fix("standardise over the batch: (z - z.mean(0)) / z.std(0)");
  }

  static void report_largest(const dataflow::Analysis& analysis, const losses::AxisMistake& mistake, Reporter& out) {
    const NodeCall call(analysis, mistake.node), meets(analysis, mistake.meets);
    out.report(findings::Severity::kWarning, mistake.node,
               fmt::format("{} normalises {} over axis {}; the largest of its probabilities is taken along axis {}",
                           call.op_name(), described(analysis, mistake.value), mistake.axes.front(), mistake.other))
        .note_at(mistake.meets, fmt::format("{} along axis {} here", meets.op_name(), mistake.other))
        .fix(fmt::format("normalise over axis {}", mistake.other));
  }

  using Extents = std::vector<std::int64_t>;  ///< -1: not a number

  static std::optional<Extents> extents(const losses::Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    if (value == ValueId::kAbsent || analysis.taint(value).has(Aspect::kShape)) return std::nullopt;
    const Fact& fact = analysis.fact(value);
    if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return std::nullopt;
    Extents found;
    for (const Dim dim : analysis.facts().dims_of(fact.shape))
      found.push_back(analysis.facts().dims().as_constant(dim).value_or(-1));
    return found;
  }

  /// The Reshape that makes the value, before elementwise operators and copies.
  static NodeId view_of(const losses::Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const ops::Opcode opcode = expressions.op(node);
      if (opcode == ops::Opcode::kReshape) return node;
      if (opcode != ops::Opcode::kCast && opcode != ops::Opcode::kIdentity && opcode != ops::Opcode::kLogSoftmax &&
          opcode != ops::Opcode::kSoftmax && opcode != ops::Opcode::kLog)
        return NodeId::kNone;
      value = expressions.operand(node, 0);
    }
    return NodeId::kNone;
  }

  /// [..., A, B] to [-1, C], where C neither splits B nor is a whole number of B that divides A * B.
  static bool mixes_axes(const losses::Expressions& expressions, NodeId view) {
    const auto before = extents(expressions, expressions.operand(view, 0)),
               after = extents(expressions, expressions.result(view));
    if (!before || !after || before->size() < 3 || after->size() != 2 || after->back() < 2) return false;
    const std::int64_t classes = after->back();
    std::int64_t inner = 1;
    for (std::size_t i = before->size(); i-- > 0;) {
      const std::int64_t extent = (*before)[i];
      std::int64_t outer = 0;
      if (extent <= 0 || __builtin_mul_overflow(inner, extent, &outer)) return false;
      if (outer >= classes) return classes % inner != 0 || outer % classes != 0;
      inner = outer;
    }
    return false;
  }

  /// [A, B, C] to [-1, C] against [B, A] to [-1].
  static bool are_in_another_order(const losses::Expressions& expressions, NodeId scores, NodeId labels) {
    const DimPool& pool = expressions.analysis().facts().dims();
    const auto a = expressions.dims(expressions.operand(scores, 0)),
               b = expressions.dims(expressions.operand(labels, 0)),
               flat = expressions.dims(expressions.result(scores)),
               flat_labels = expressions.dims(expressions.result(labels));
    if (a.size() != 3 || b.size() != 2 || flat.size() != 2 || flat_labels.size() != 1) return false;
    const bool long_axes = !pool.is_constant(a[0], 1) && !pool.is_constant(a[1], 1);
    return long_axes && pool.equal(a[2], flat[1]) && pool.equal(a[0], b[1]) && pool.equal(a[1], b[0]) &&
           !pool.equal(a[0], a[1]);
  }

  static bool has_classes_last(const ViolationCase& violation) {
    if (violation.kind() != ops::ConstraintKind::kRank && violation.kind() != ops::ConstraintKind::kShapes)
      return false;
    if (!violation.has_node()) return false;
    const NodeCall call = violation.call();
    const auto kind = violation.loss_kind();
    if (!kind || !ops::takes_class_indices(*kind) || violation.loss == nullptr ||
        violation.loss->evidence != losses::LossEvidence::kOperator)
      return false;
    const Operand scores = call.operand(0), labels = call.operand(1);
    if (!scores.present() || !labels.present() || scores.fact().shape == ShapeId::kUnranked ||
        labels.fact().shape == ShapeId::kUnranked)
      return false;
    const auto given = call.facts().dims_of(scores.fact().shape), wanted = call.facts().dims_of(labels.fact().shape);
    if (given.size() < 3 || wanted.size() + 1 != given.size()) return false;
    return std::equal(wanted.begin(), wanted.end(), given.begin());
  }
};

const RegisterRule<ClassAxisPosition> kRegisterClassAxisPosition;

}  // namespace
}  // namespace tensorlint::rules
