#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/batch_name.h"
#include "passes/losses/normalised_axes.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

/// Of training steps softmax-over-batch-axis and reduction-over-batch-axis tell more.
class SamplesDependOnEachOther : public Rule {
 public:
  SamplesDependOnEachOther()
      : Rule({"TL-S214", "samples-depend-on-each-other", "shape", findings::Severity::kWarning,
              "a model without a loss that normalises, selects or recurs along the batch"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    if (view.model().graphs.empty() || !has_no_loss_output(analysis)) return;
    Batches batches = batched_inputs(analysis);
    if (batches.inputs.empty()) return;
    losses::AxisOrigins& origins = out.shared<losses::LossAxes>().origins;
    static constexpr std::initializer_list<Opcode> kWanted{Opcode::kSoftmax, Opcode::kLogSoftmax, Opcode::kArgExtreme,
                                                           Opcode::kDiv,     Opcode::kSub,        Opcode::kRecurrence};
    each_node(view, out, kWanted, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.node().graph != GraphId::kMain || call.operand(0).taint().has(Aspect::kShape)) return;
      if (call.is(Opcode::kRecurrence)) {
        check_steps(expressions, origins, batches, call, out);
      } else if (call.is(Opcode::kSub) || call.is(Opcode::kDiv)) {
        check_statistic(expressions, origins, batches, call, out);
      } else if (const auto axes = expressions.axes_of(call.id())) {
        check_axis(expressions, origins, batches, call, *axes, out);
      }
    });
  }

 private:
  /// A model has one name for its batch, or a few: each node's extent is compared with all of them.
  static constexpr std::size_t kMaxExtents = 16;

  struct Batches {
    std::set<ValueId> inputs{};
    std::vector<Dim> extents{};         ///< of their first axes
    std::optional<bool> has_results{};  ///< for each sample; asked where there is something to report
  };

  static Batches batched_inputs(const dataflow::Analysis& analysis) {
    const DimPool& pool = analysis.facts().dims();
    Batches found;
    for (const ValueId input : analysis.inputs(GraphId::kMain)) {
      const Fact& fact = analysis.fact(input);
      if (fact.kind != ValueKind::kTensor || !analysis.facts().is_ranked(fact.shape)) continue;
      const auto dims = analysis.facts().dims_of(fact.shape);
      if (!dims.empty() && pool.is_symbol(dims.front()) && losses::is_batch_name(pool.to_text(dims.front()))) {
        found.inputs.insert(input);
        if (found.extents.size() < kMaxExtents && std::ranges::find(found.extents, dims.front()) == found.extents.end())
          found.extents.push_back(dims.front());
      }
    }
    return found;
  }

  static bool is_batch(losses::AxisOrigins& origins, Batches& batches, ValueId value, std::size_t axis) {
    const auto axes = origins.of(value);
    return axis < axes.size() && std::ranges::any_of(
                                     axes[axis],
                                     [&](const losses::AxisSource& source) {
                                       return source.axis == 0 && batches.inputs.contains(source.value);
                                     });
  }

  static bool has_result_for_each(const dataflow::Analysis& analysis, Batches& batches, losses::AxisOrigins& origins) {
    return std::ranges::any_of(analysis.outputs(GraphId::kMain), [&](ValueId output) {
      return output != ValueId::kAbsent && is_batch(origins, batches, output, 0);
    });
  }

  /// The batch is the only axis of the node, and no other axis of its operand counts samples: pairs of samples are
  /// compared on purpose.
  static bool is_along_batch(const Expressions& expressions, losses::AxisOrigins& origins, Batches& batches,
                             ValueId value, std::span<const std::size_t> axes) {
    // Origins are followed through the whole graph: only where the extent fits.
    const dataflow::Analysis& analysis = expressions.analysis();
    const auto dims = expressions.dims(value);
    const auto fits = [&](Dim extent) { return analysis.facts().dims().equal(dims[axes.front()], extent); };
    if (axes.size() != 1 || axes.front() >= dims.size() || std::ranges::none_of(batches.extents, fits) ||
        !is_batch(origins, batches, value, axes.front()))
      return false;
    const std::size_t rank = origins.of(value).size();
    for (std::size_t axis = 0; axis < rank; ++axis)
      if (axis != axes.front() && is_batch(origins, batches, value, axis)) return false;
    if (!batches.has_results) batches.has_results = has_result_for_each(analysis, batches, origins);
    return rank > 1 && *batches.has_results;
  }

  static void check_axis(const Expressions& expressions, losses::AxisOrigins& origins, Batches& batches,
                         const NodeCall& call, std::span<const std::size_t> axes, Reporter& out) {
    const ValueId data = call.operand(0).value();
    if (!is_along_batch(expressions, origins, batches, data, axes) ||
        (!call.is(Opcode::kArgExtreme) && is_softmax_in_turn(expressions, call, axes.front())))
      return;
    out.report(call.id(),
               fmt::format("{} {} {} along axis {}, the batch: the result for a sample depends on the others",
                           call.op_name(), call.is(Opcode::kArgExtreme) ? "selects from" : "normalises",
                           described(call.analysis(), data), axes.front()))
        .fix("give the axis of the classes or features, such as axis = -1");
  }

  /// A recurrent layer that takes the samples for steps.
  static void check_steps(const Expressions& expressions, losses::AxisOrigins& origins, Batches& batches,
                          const NodeCall& call, Reporter& out) {
    const Attribute* layout = call.attribute("layout");
    const ValueId data = call.operand(0).value();
    constexpr std::size_t kSteps[] = {0};
    if (data == ValueId::kAbsent || (layout != nullptr && layout->i != 0) ||
        !is_along_batch(expressions, origins, batches, data, kSteps))
      return;
    const auto dims = expressions.dims(data);
    if (dims.size() != 3 || losses::is_batch_name(call.facts().dims().to_text(dims[1]))) return;
    out.report(call.id(), fmt::format("{} goes along axis 0 of {}, the batch: the result for a sample depends on the "
                                      "ones before it",
                                      call.op_name(), described(call.analysis(), data)))
        .fix("create the layer with batch_first=True, or move the steps to axis 0");
  }

  /// x - mean(x) and x / norm(x), with a guard or without.
  static void check_statistic(const Expressions& expressions, losses::AxisOrigins& origins, Batches& batches,
                              const NodeCall& call, Reporter& out) {
    const Operand data = call.operand(0), statistic = call.operand(1);
    if (!data.present() || !statistic.present() || !data.fact().dtypes.proves(DTypeSet::floats())) return;
    const NodeId reduction = reduction_of(expressions, statistic.value(), data.value());
    if (reduction == NodeId::kNone) return;
    const auto axes = expressions.axes_of(reduction);
    const ValueId reduced = expressions.operand(reduction, 0);
    if (!axes || !is_along_batch(expressions, origins, batches, reduced, *axes) ||
        is_divided_in_turn(expressions, call, axes->front()))
      return;
    out.report(reduction,
               fmt::format("{} of {} along axis {}, the batch: what it is {} depends on the other samples",
                           NodeCall(call.analysis(), reduction).op_name(), described(call.analysis(), reduced),
                           axes->front(), call.is(Opcode::kSub) ? "subtracted from" : "divided into"))
        .note_at(call.id(), "used for each sample here")
        .fix("reduce the axis of the features, such as axis -1");
  }

  /// A plan of transport: rows and columns are normalised in turn, so that the samples share what they get.
  static bool is_softmax_in_turn(const Expressions& expressions, const NodeCall& softmax, std::size_t axis) {
    const ValueId scores = softmax.operand(0).value();
    const std::size_t rank = expressions.dims(scores).size();
    for (std::size_t other = 0; other < rank; ++other)
      if (other != axis && losses::is_normalised_before(expressions, scores, other)) return true;
    return std::ranges::any_of(expressions.users(softmax.result()), [&](NodeId user) {
      const auto next = expressions.op(user) == Opcode::kLogSoftmax ? expressions.axes_of(user) : std::nullopt;
      return softmax.is(Opcode::kLogSoftmax) && next && std::ranges::find(*next, axis) == next->end();
    });
  }

  /// The same of quotients by sums, the one before or the one after.
  static bool is_divided_in_turn(const Expressions& expressions, const NodeCall& division, std::size_t axis) {
    constexpr std::size_t kMaxValues = 4;
    const auto own = axis_of_own_sum(expressions, division.id());
    if (own != axis) return false;
    const auto is_other = [&](NodeId node) {
      const auto other = axis_of_own_sum(expressions, node);
      return other && *other != axis;
    };
    if (is_other(expressions.producer(before_scale(expressions, division.operand(0).value())))) return true;
    std::vector<ValueId> values{division.result()};
    for (std::size_t i = 0; i < values.size() && i < kMaxValues; ++i)
      for (const NodeId user : expressions.users(values[i])) {
        if (expressions.op(user) == Opcode::kDiv && expressions.operand(user, 0) == values[i] && is_other(user))
          return true;
        const auto scaled = with_number(expressions, user);
        if (scaled && !scaled->is_first &&
            (expressions.op(user) == Opcode::kMul || expressions.op(user) == Opcode::kDiv))
          values.push_back(expressions.result(user));
      }
    return false;
  }

  /// The axis of sum(x) for x / sum(x).
  static std::optional<std::size_t> axis_of_own_sum(const Expressions& expressions, NodeId division) {
    const ValueId data = expressions.operand(division, 0), statistic = expressions.operand(division, 1);
    if (expressions.op(division) != Opcode::kDiv || data == ValueId::kAbsent || statistic == ValueId::kAbsent)
      return std::nullopt;
    const NodeId sum = reduction_of(expressions, statistic, data);
    if (expressions.op(sum) != Opcode::kReduceSum ||
        before_stretch(expressions, expressions.operand(sum, 0)) != before_stretch(expressions, data))
      return std::nullopt;
    const auto axes = expressions.axes_of(sum);
    return axes && axes->size() == 1 ? std::optional(axes->front()) : std::nullopt;
  }

  /// What sums the same data up, before roots, guards and views.
  static NodeId reduction_of(const Expressions& expressions, ValueId statistic, ValueId data) {
    constexpr int kMaxSteps = 6;
    const ValueId same = before_stretch(expressions, data);
    for (int step = 0; step < kMaxSteps; ++step) {
      statistic = before_stretch(expressions, statistic);
      const NodeId node = expressions.producer(statistic);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kReduceSum || opcode == Opcode::kReduceMean || opcode == Opcode::kReduceL2 ||
          opcode == Opcode::kReduceL1 || opcode == Opcode::kReduceSumSquare) {
        const ValueId reduced = before_stretch(expressions, expressions.operand(node, 0));
        const ValueId base = expressions.square_base(reduced);
        return reduced == same || (base != ValueId::kAbsent && before_stretch(expressions, base) == same)
                   ? node
                   : NodeId::kNone;
      }
      const auto guarded = with_number(expressions, node);
      const bool is_guard = guarded && (opcode == Opcode::kMax || opcode == Opcode::kAdd);
      if (!is_guard && opcode != Opcode::kSqrt && opcode != Opcode::kClip) return NodeId::kNone;
      statistic = is_guard ? guarded->value : expressions.operand(node, 0);
      if (statistic == ValueId::kAbsent) return NodeId::kNone;
    }
    return NodeId::kNone;
  }
};

const RegisterRule<SamplesDependOnEachOther> kRegisterSamplesDependOnEachOther;

}  // namespace
}  // namespace tensorlint::rules
