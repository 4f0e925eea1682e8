#include <fmt/format.h>

#include <optional>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

/// Where the largest elements along one axis are: numbers of that axis, which mean nothing along another one.
class IndexOfOtherAxis : public Rule {
 public:
  IndexOfOtherAxis()
      : Rule({"TL-V570", "index-of-other-axis", "value", findings::Severity::kWarning,
              "places along one axis that are used along another one, or as the classes of another one"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kGatherElements},
              [&](const Expressions& expressions, const NodeCall& call) { check_elements(expressions, call, out); });
    each_node(view, out, {Opcode::kGather},
              [&](const Expressions& expressions, const NodeCall& call) { check_rows(expressions, call, out); });
    if (view.losses().empty()) return;
    each_node(view, out, {Opcode::kEqual}, [&](const Expressions& expressions, const NodeCall& call) {
      check_labels(view, expressions, call, out);
    });
  }

 private:
  static constexpr int kMaxSteps = 10;

  /// Places along `axis` of `data`.
  struct Places {
    NodeId node = NodeId::kNone;
    ValueId data = ValueId::kAbsent;
    std::size_t axis = 0;
    bool are_in_order = true;  ///< no axis was exchanged or added since
  };

  static std::optional<Places> places_of(const Expressions& expressions, ValueId value) {
    bool in_order = true;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId data = expressions.operand(node, 0);
      if (opcode == Opcode::kTopK ? expressions.result(node) != value : opcode == Opcode::kArgExtreme) {
        const auto axis = axis_of(expressions, node, expressions.dims(data).size());
        if (!axis) return std::nullopt;
        return Places{node, data, *axis, in_order && expressions.dims(value).size() == expressions.dims(data).size()};
      }
      if (!ops::moves_elements(opcode) && opcode != Opcode::kCast) return std::nullopt;
      in_order = in_order && (opcode == Opcode::kSlice || opcode == Opcode::kCast || opcode == Opcode::kIdentity);
      value = data;
    }
    return std::nullopt;
  }

  static std::optional<std::size_t> axis_of(const Expressions& expressions, NodeId node, std::size_t rank) {
    const Attribute* const given = expressions.analysis().attribute(node, "axis");
    const std::int64_t fallback = expressions.op(node) == Opcode::kTopK ? -1 : 0;
    const std::int64_t axis = given == nullptr ? fallback : given->i;
    const std::int64_t at = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
    if (at < 0 || at >= static_cast<std::int64_t>(rank)) return std::nullopt;
    return static_cast<std::size_t>(at);
  }

  /// s.gather(0, order) where order = r.argsort(dim=1), of s and r with one shape.
  static void check_elements(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const DimPool& pool = analysis.facts().dims();
    const ValueId data = call.operand(0).value();
    const auto dims = expressions.dims(data);
    const auto axis = axis_of(expressions, call.id(), dims.size());
    const auto places = places_of(expressions, call.operand(1).value());
    if (!axis || !places || !places->are_in_order || *axis == places->axis) return;
    const auto ranked = expressions.dims(places->data);
    if (ranked.size() != dims.size() || pool.is_constant(dims[*axis], 1) || pool.is_constant(dims[places->axis], 1))
      return;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (!pool.equal(dims[i], ranked[i])) return;
    // Of all pairs of one set either axis counts the same.
    losses::AxisOrigins& origins = out.shared<losses::LossAxes>().origins;
    if (pool.equal(dims[*axis], dims[places->axis]) &&
        (origins.are_same(data, *axis, places->data, places->axis) ||
         !origins.are_same(data, places->axis, places->data, places->axis)))
      return;
    report(call, *places, *axis, out);
  }

  /// x[scores.argmax(1)] of x [N, D] and scores [N, C]: samples are picked by numbers of classes.
  static void check_rows(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const DimPool& pool = call.facts().dims();
    const ValueId data = call.operand(0).value();
    const auto dims = expressions.dims(data);
    const auto axis = axis_of(expressions, call.id(), dims.size());
    const auto places = places_of(expressions, call.operand(1).value());
    if (!axis || !places || pool.is_constant(dims[*axis], 1)) return;
    const auto ranked = expressions.dims(places->data);
    if (pool.equal(dims[*axis], ranked[places->axis])) return;
    losses::AxisOrigins& origins = out.shared<losses::LossAxes>().origins;
    if (!origins.is_batch(data, *axis) || origins.is_batch(places->data, places->axis)) return;
    for (std::size_t i = 0; i < ranked.size(); ++i)
      if (i != places->axis && origins.are_same(data, *axis, places->data, i) && !pool.is_constant(ranked[i], 1)) {
        // Where other axes lie between, samples may have been joined with them.
        report(call, *places, *axis, out);
        return;
      }
  }

  static void report(const NodeCall& call, const Places& places, std::size_t axis, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const Operand data = call.operand(0), ranked(analysis, places.data);
    out.report(call.id(), fmt::format("{} takes elements along axis {} of {} {}, by places along axis {} of {} {}",
                                      call.op_name(), axis, data.name(), analysis.facts().shape_text(data.fact().shape),
                                      places.axis, ranked.name(), analysis.facts().shape_text(ranked.fact().shape)))
        .note_at(places.node, fmt::format("the places along axis {} are found here", places.axis))
        .fix(fmt::format("take the elements along axis {}", places.axis));
  }

  /// (scores.topk(3, dim=0).indices == labels) where a loss takes the labels for classes, along axis 1 of the scores.
  static void check_labels(const ModelView& view, const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    for (std::size_t i = 0; i < 2; ++i) {
      const auto places = places_of(expressions, call.operand(i).value());
      if (!places) continue;
      const ValueId labels = before_stretch(expressions, call.operand(1 - i).value());
      const auto ranked = expressions.dims(places->data);
      losses::AxisOrigins& origins = out.shared<losses::LossAxes>().origins;
      const DimPool& pool = analysis.facts().dims();
      if (!is_input(analysis, labels) || ranked.size() < 2 || places->axis != 0 || !origins.is_batch(places->data, 0) ||
          origins.is_batch(places->data, 1) || pool.is_constant(ranked[0], 1) || pool.is_constant(ranked[1], 1))
        continue;
      for (const losses::LossSite& loss : view.losses()) {
        if (!ops::takes_class_indices(loss.kind) || before_stretch(expressions, loss.target) != labels) continue;
        const auto scores = expressions.dims(loss.prediction);
        if (scores.size() != ranked.size() || !pool.equal(scores[0], ranked[0]) || !pool.equal(scores[1], ranked[1]))
          continue;
        const Operand data(analysis, places->data);
        out.report(places->node,
                   fmt::format("the places are numbers of samples, along axis 0 of {} {}, and are compared with the "
                               "classes {}",
                               data.name(), analysis.facts().shape_text(data.fact().shape),
                               Operand(analysis, labels).name()))
            .note_at(call.id(), "they are compared here")
            .fix("search along the classes: dim=1");
        return;
      }
    }
  }
};

const RegisterRule<IndexOfOtherAxis> kRegisterIndexOfOtherAxis;

}  // namespace
}  // namespace tensorlint::rules
