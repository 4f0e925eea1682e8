#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/loss/token_shift.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "base/text.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/axis_way.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class PredictionReadsTarget : public Rule {
 public:
  PredictionReadsTarget()
      : Rule({"TL-L344", "prediction-reads-target", "loss", findings::Severity::kWarning,
              "a prediction of the next steps that is computed from those steps"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    Visited<NodeId> seen(view.analysis().meter());
    if (has_node(out, {Opcode::kConv, Opcode::kRecurrence, Opcode::kConcat}))
      each_node(view, out, {Opcode::kSub}, [&](const Expressions& expressions, const NodeCall& call) {
        check_sides(expressions, {call.id(), call.operand(0).value(), call.operand(1).value()}, seen, out);
      });
    for (const losses::LossSite& loss : view.losses())
      if (loss.anchor == NodeId::kNone || view.analysis().has_failed(loss.anchor))
        continue;
      else if (ops::takes_class_indices(loss.kind))
        check_classes(out.shared<losses::LossAxes>().expressions, loss, seen, out);
      else {
        const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
        check_sides(expressions, {loss.anchor, loss.prediction, loss.target}, seen, out);
        if (!seen.contains(loss.anchor)) check_all_steps(expressions, loss, out);
      }
    if (!has_node(out, {Opcode::kSoftmax})) return;
    for (const losses::LossSite& loss : view.losses())
      if (loss.anchor != NodeId::kNone && !view.analysis().has_failed(loss.anchor) && !seen.contains(loss.anchor))
        check_attention(loss, out);
  }

 private:
  static constexpr int kMaxDepth = 24, kMaxTargetDepth = 8;

  struct Meeting {
    NodeId node;
    ValueId a, b;
  };

  /// Which steps of which input a value has at step t of one of its axes: t + ahead.
  struct Reading {
    ValueId of = ValueId::kAbsent;
    std::size_t axis = 0;
    double ahead = 0;
    NodeId layer = NodeId::kNone;  ///< the one that reads farthest ahead
    double cut = 0;                ///< the steps that are left out in front after that
    double behind = 0;             ///< the first one that is read
    bool is_padded = false;
  };

  /// Steps from `start` to before `end` of an axis; one of them alone for an index.
  struct Part {
    ValueId of = ValueId::kAbsent;
    std::size_t axis = 0;
    double start = 0, end = 0;
  };

  static void check_sides(const Expressions& expressions, const Meeting& meeting, Visited<NodeId>& seen,
                          Reporter& out) {
    if (meeting.a == ValueId::kAbsent || meeting.b == ValueId::kAbsent || seen.contains(meeting.node)) return;
    for (const bool turned : {false, true}) {
      const ValueId prediction = turned ? meeting.b : meeting.a, target = turned ? meeting.a : meeting.b;
      const auto found = [&] {
        if (check_side(expressions, meeting.node, prediction, target, out)) return true;
        const auto wanted = part_of(expressions, target);
        return wanted && (check_roll(expressions, meeting.node, prediction, *wanted, out) ||
                          check_window(expressions, meeting.node, prediction, *wanted, out));
      };
      if (!found()) continue;
      seen.insert(meeting.node);
      return;
    }
  }

  static bool check_side(const Expressions& expressions, NodeId meeting, ValueId prediction, ValueId target,
                         Reporter& out) {
    constexpr std::size_t kMaxRank = 4;
    const std::size_t rank = expressions.dims(target).size();
    if (rank > kMaxRank || expressions.dims(prediction).size() != rank || !comes_of_slice(expressions, target))
      return false;
    for (std::size_t axis = 0; axis < rank; ++axis)
      if (check_axis(expressions, meeting, {prediction, axis}, {target, axis}, out)) return true;
    return false;
  }

  /// Whether a step of an input may have been picked for it, which is asked before each axis is followed.
  static bool comes_of_slice(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMaxValues = 12;
    std::array<ValueId, kMaxValues> values{value};
    std::size_t count = 1;
    for (std::size_t i = 0; i < count; ++i) {
      const NodeId node = expressions.producer(values[i]);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kSlice || opcode == Opcode::kGather || opcode == Opcode::kPad) return true;
      if (node == NodeId::kNone ||
          (!ops::moves_elements(opcode) && !ops::has_trait(expressions.entry(node), ops::OpTrait::kElementwise)))
        continue;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const ValueId operand = expressions.operand(node, side);
        if (operand != ValueId::kAbsent && count < kMaxValues) values[count++] = operand;
      }
    }
    return false;
  }

  /// Attention to all steps of an input, of which later ones are to be predicted. Where other layers see the earlier
  /// steps alone, this one may read the whole sequence on purpose, as the encoder of an autoencoder does.
  static void check_attention(const losses::LossSite& loss, Reporter& out) {
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    losses::LossSite given = loss;
    given.prediction = loss.prediction_source;
    given.target = loss.target_source;
    const auto shift = step_shift(expressions, given);
    if (!shift || shift->wanted <= shift->seen) return;
    Triangles triangles(expressions);
    NodeId open = NodeId::kNone;
    bool is_ordered = false;
    const losses::AxisSource steps{shift->input, 1};
    walk_back(expressions, loss.prediction, [&](ValueId value, NodeId node) {
      const Opcode opcode = expressions.op(node);
      is_ordered |= opcode == Opcode::kRecurrence;
      const auto softmax = expressions.normalised(value);
      if (!softmax || softmax->logarithm || is_ordered) return !is_ordered;
      if (triangles.before(*softmax)) {
        is_ordered = true;
        return false;
      }
      const auto dims = expressions.dims(value);
      if (softmax->axes.size() != 1 || dims.size() < 3 || softmax->axes.front() + 1 != dims.size() ||
          !is_product_alone(expressions, softmax->scores) || !weighs_alone(expressions, value))
        return true;
      const auto last = static_cast<std::uint32_t>(dims.size() - 1);
      if (descends(expressions, origins, {value, last}, steps, 0) &&
          descends(expressions, origins, {value, last - 1}, steps, 0))
        open = node;
      return true;
    });
    if (is_ordered || open == NodeId::kNone) return;
    const dataflow::Analysis& analysis = expressions.analysis();
    out.report(open, fmt::format("each step attends to all steps of {}, and is to predict the one that is {} ahead",
                                 Operand(analysis, shift->input).name(), shift->wanted - shift->seen))
        .note_at(loss.anchor, "the prediction is compared with that step here")
        .fix("hide the later steps before the softmax: is_causal=True, or masked_fill(triu(ones, 1), -inf)");
  }

  /// Products of matrices are all that the weights are used for: none is removed later.
  static bool weighs_alone(const Expressions& expressions, ValueId weights) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps && weights != ValueId::kAbsent; ++step) {
      const auto users = expressions.users(weights);
      if (users.empty()) return false;
      const Opcode opcode = expressions.op(users[0]);
      if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) return users.size() == 1;
      if (users.size() != 1 || (!ops::keeps_elements(opcode) && opcode != Opcode::kDropout && opcode != Opcode::kCast))
        return false;
      weights = expressions.result(users[0]);
    }
    return false;
  }

  /// Products of queries and keys, scaled perhaps, of which nothing is hidden.
  static bool is_product_alone(const Expressions& expressions, ValueId scores) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps && scores != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(scores);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) return true;
      const auto scaled = with_number(expressions, node);
      if (ops::keeps_elements(opcode) || opcode == Opcode::kCast)
        scores = expressions.operand(node, 0);
      else if (scaled && (opcode == Opcode::kMul || opcode == Opcode::kDiv))
        scores = scaled->value;
      else
        return false;
    }
    return false;
  }

  /// Scores [N, C, T] or [N, T, C] of labels [N, T], which may have been flattened.
  static void check_classes(const Expressions& expressions, const losses::LossSite& loss, Visited<NodeId>& seen,
                            Reporter& out) {
    if (loss.prediction == ValueId::kAbsent || loss.target == ValueId::kAbsent || seen.contains(loss.anchor)) return;
    const ValueId labels = before_flattening(expressions, loss.target);
    ValueId scores = loss.prediction;
    for (int step = 0; step < 2 && expressions.op_of(scores) == Opcode::kLogSoftmax; ++step)
      scores = expressions.operand(expressions.producer(scores), 0);
    const bool is_flat = labels != loss.target;
    if (is_flat) scores = before_flattening(expressions, scores);
    const auto x = expressions.dims(scores), y = expressions.dims(labels);
    const DimPool& pool = expressions.analysis().facts().dims();
    if (x.size() != 3 || y.size() != 2) return;
    for (const std::size_t axis : {std::size_t{2}, std::size_t{1}}) {
      if (!pool.equal(x[axis], y[1]) || (axis == 2) == is_flat) continue;
      if (check_axis(expressions, loss.anchor, {scores, axis}, {labels, 1}, out)) seen.insert(loss.anchor);
      return;
    }
  }

  /// [N, T] before it became one axis.
  static ValueId before_flattening(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    ValueId before = value;
    for (int step = 0; step < kMaxSteps && before != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(before);
      if (!ops::keeps_elements(expressions.op(node)) && expressions.op(node) != Opcode::kCast) break;
      const ValueId from = expressions.operand(node, 0);
      if (expressions.dims(from).size() > expressions.dims(value).size()) return from;
      before = from;
    }
    return value;
  }

  struct Along {
    ValueId value;
    std::size_t axis;
  };

  static bool check_axis(const Expressions& expressions, NodeId meeting, const Along& prediction, const Along& target,
                         Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    if (analysis.facts().dims().is_constant(expressions.dims(target.value)[target.axis], 1)) return false;
    // What is to be predicted is a slice of an input, moved and scaled: most values are not, and are soon known not to
    // be.
    const auto is = reading_of(expressions, target.value, target.axis, kMaxDepth - kMaxTargetDepth);
    if (!is || is->layer != NodeId::kNone || is->ahead < 1) return false;
    const auto reads = reading_of(expressions, prediction.value, prediction.axis, 0);
    // Where both lack the same steps at their ends, the input is what is to come out.
    if (!reads || reads->layer == NodeId::kNone || reads->of != is->of || reads->axis != is->axis ||
        reads->ahead < is->ahead || reads->cut == is->ahead ||
        (!reads->is_padded && reads->ahead - is->ahead == is->ahead - reads->behind))
      return false;
    const NodeCall layer(analysis, reads->layer);
    const std::string name = Operand(analysis, reads->of).name();
    out.report(reads->layer, std::isinf(reads->ahead)
                                 ? fmt::format("{} reads all of {}, and is to predict the step that is {} ahead",
                                               layer.op_name(), name, is->ahead)
                                 : fmt::format("{} reads {} up to {} ahead, and is to predict the one that is {} ahead",
                                               layer.op_name(), name, counted(reads->ahead, "step"), is->ahead))
        .note_at(meeting, "the prediction is compared with that step here")
        .fix(std::isinf(reads->ahead) ? "let it run forward alone: bidirectional=False"
                                      : "let the convolution read the past alone: all padding in front, or the end "
                                        "cut off");
    return true;
  }

  /// The differences of a series that is rolled have the last step in the first one: where the first ones predict the
  /// last one, it is known.
  static bool check_roll(const Expressions& expressions, NodeId meeting, ValueId prediction, const Part& last,
                         Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    if (last.start < 1) return false;
    const auto roll = roll_in(expressions, last.of);
    if (!roll || roll->axis != last.axis || last.start < static_cast<double>(roll->shift)) return false;
    NodeId first = NodeId::kNone;
    for (const NodeId user : expressions.users(last.of)) {
      const auto part = part_of(expressions, expressions.result(user));
      if (part && part->of == last.of && part->axis == last.axis && part->start == 0 && part->end <= last.start)
        first = user;
    }
    if (first == NodeId::kNone) return false;
    bool is_read = false;
    walk_back(expressions, prediction, [&](ValueId, NodeId node) {
      is_read |= node == first;
      return !is_read;
    });
    if (!is_read) return false;
    out.report(roll->node, fmt::format("{} is rolled, and its last step comes before the first one: the first "
                                       "difference has the step that is to be predicted",
                                       Operand(analysis, roll->from).name()))
        .note_at(first, "the prediction reads the first differences here")
        .note_at(meeting, "it is compared with the last one here")
        .fix("subtract neighbours without rolling: x[:, 1:] - x[:, :-1]");
    return true;
  }

  /// One number or state is made of a part of the steps, and the steps that it is to predict are among them. Where the
  /// prediction still has the axis of these steps, or some elements are hidden, they are to be restored.
  static bool check_window(const Expressions& expressions, NodeId meeting, ValueId prediction, const Part& wanted,
                           Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    if (!is_input(analysis, wanted.of) || wanted.axis == 0 ||
        !analysis.fact(wanted.of).dtypes.proves(DTypeSet::floats()))
      return false;
    NodeId window = NodeId::kNone;
    bool is_hidden = false;
    walk_back(expressions, prediction, [&](ValueId value, NodeId node) {
      const Opcode opcode = expressions.op(node);
      is_hidden |= opcode == Opcode::kWhere;
      if (opcode == Opcode::kMul)
        for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
          is_hidden |= is_input(analysis, before_stretch(expressions, expressions.operand(node, side)));
      const auto part = opcode == Opcode::kSlice ? part_of(expressions, value) : std::nullopt;
      if (!part || part->of != wanted.of || part->axis != wanted.axis) return !is_hidden;
      if (reaches_into(*part, wanted, extent_of(expressions, part->of, part->axis))) window = node;
      return false;
    });
    if (window == NodeId::kNone || is_hidden) return false;
    auto& origins = out.shared<losses::LossAxes>().origins;
    const losses::AxisSource steps{expressions.result(window), static_cast<std::uint32_t>(wanted.axis)};
    for (std::uint32_t axis = 0; axis < expressions.dims(prediction).size(); ++axis)
      if (descends(expressions, origins, {prediction, axis}, steps, 0)) return false;
    const double read = std::min(wanted.end, part_of(expressions, steps.value)->end) - 1;
    const std::string which =
        read > wanted.start ? fmt::format("steps {} to {}", wanted.start, read) : fmt::format("step {}", wanted.start);
    out.report(window,
               fmt::format("{} of {} {} to be predicted, and {} among those that the prediction is computed from",
                           which, Operand(analysis, wanted.of).name(), read > wanted.start ? "are" : "is",
                           read > wanted.start ? "are" : "is"))
        .note_at(meeting, "the prediction is compared with them here")
        .fix(fmt::format("end before step {}", wanted.start));
    return true;
  }

  /// One number is made of all steps of an input, and is to be the last of them.
  static void check_all_steps(const Expressions& expressions, const losses::LossSite& loss, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    if (loss.prediction == ValueId::kAbsent || loss.target == ValueId::kAbsent) return;
    const auto wanted = part_of(expressions, loss.target);
    if (!wanted || wanted->axis == 0 || wanted->start < 1 || !is_input(analysis, wanted->of) ||
        wanted->end < extent_of(expressions, wanted->of, wanted->axis) ||
        !analysis.fact(wanted->of).dtypes.proves(DTypeSet::floats()))
      return;
    const NodeId layer = layer_of_all(expressions, wanted->of, loss.prediction);
    if (layer == NodeId::kNone) return;
    auto& origins = out.shared<losses::LossAxes>().origins;
    const losses::AxisSource steps{wanted->of, static_cast<std::uint32_t>(wanted->axis)};
    for (std::uint32_t axis = 0; axis < expressions.dims(loss.prediction).size(); ++axis)
      if (descends(expressions, origins, {loss.prediction, axis}, steps, 0)) return;
    out.report(layer, fmt::format("{} reads all steps of {}, and its last one is to be predicted",
                                  NodeCall(analysis, layer).op_name(), Operand(analysis, wanted->of).name()))
        .note_at(loss.anchor, "the prediction is compared with that step here")
        .fix(fmt::format("end before step {}", wanted->start));
  }

  /// The layer that reads all steps of an input, of which the value is made without leaving out the last ones.
  static NodeId layer_of_all(const Expressions& expressions, ValueId input, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const auto leaves_out = [&](NodeId node) {
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kPad) {
        const auto pads = constant_numbers(expressions, expressions.operand(node, 1));
        return !pads || std::ranges::any_of(*pads, [](double pad) { return pad < 0; });
      }
      if (opcode != Opcode::kSlice && opcode != Opcode::kGather) return false;
      const auto part = part_of(expressions, expressions.result(node));
      return !part || part->end < extent_of(expressions, part->of, part->axis);
    };
    struct Reached {
      ValueId value;
      NodeId layer;
    };
    Visited<ValueId> seen(analysis.meter());
    std::vector<Reached> pending{{input, NodeId::kNone}};
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const Reached reached = pending[i];
      if (reached.value == value) return reached.layer;
      for (const NodeId user : expressions.users(reached.value)) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        // Of a table, target-in-prediction reports the column.
        const bool is_layer = opcode == Opcode::kConv || opcode == Opcode::kRecurrence ||
                              (opcode == Opcode::kMatMul && expressions.dims(input).size() > 2);
        // In front of a layer, what is multiplied with the steps may hide some.
        const bool passes = reached.layer != NodeId::kNone || is_layer || ops::moves_elements(opcode) ||
                            opcode == Opcode::kCast || opcode == Opcode::kPad || opcode == Opcode::kNormalize ||
                            with_number(expressions, user).has_value();
        if (result == ValueId::kAbsent || expressions.is_spent() || !passes || leaves_out(user)) continue;
        for (const ValueId each : analysis.results(user))
          if (each != ValueId::kAbsent && seen.insert(each))
            pending.push_back({each, reached.layer == NodeId::kNone && is_layer ? user : reached.layer});
      }
    }
    return NodeId::kNone;
  }

  /// The window has all of the wanted steps and more, but not the whole input, or it ends among them.
  static bool reaches_into(const Part& window, const Part& wanted, double length) {
    if (window.start <= wanted.start && window.end >= wanted.end)
      return window.end - window.start < length && window.end - window.start > wanted.end - wanted.start;
    return window.start < wanted.start && window.end > wanted.start && window.end < wanted.end;
  }

  /// The axis is one of steps, perhaps of fewer of them.
  static bool descends(const Expressions& expressions, losses::AxisOrigins& origins, const losses::AxisSource& axis,
                       const losses::AxisSource& steps, int depth) {
    constexpr int kMaxDepth = 6;
    const auto sources = origins.of(axis.value);
    if (axis.axis >= sources.size() || depth > kMaxDepth) return false;
    return std::ranges::any_of(sources[axis.axis], [&](const losses::AxisSource& source) {
      if (source == steps) return true;
      const NodeId node = expressions.producer(source.value);
      const ValueId before = expressions.operand(node, 0);
      return before != ValueId::kAbsent && descends(expressions, origins, {before, source.axis}, steps, depth + 1);
    });
  }

  static double extent_of(const Expressions& expressions, ValueId value, std::size_t axis) {
    const auto dims = expressions.dims(value);
    if (axis >= dims.size()) return 0;
    return static_cast<double>(expressions.analysis().facts().dims().as_constant(dims[axis]).value_or(0));
  }

  static std::optional<Part> part_of(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    const DimPool& pool = expressions.analysis().facts().dims();
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId from = expressions.operand(node, 0);
      const auto dims = expressions.dims(from);
      const bool slices = opcode == Opcode::kSlice;
      if (!slices && opcode != Opcode::kGather) {
        if (!ops::keeps_elements(opcode) && opcode != Opcode::kCast && opcode != Opcode::kExpand) return std::nullopt;
        value = from;
        continue;
      }
      const Attribute* given = expressions.analysis().attribute(node, "axis");
      const auto asked = slices ? expressions.number(expressions.operand(node, 3))
                                : std::optional(given == nullptr ? 0.0 : static_cast<double>(given->i));
      auto start = expressions.number(expressions.operand(node, 1));
      if (!asked || !start) return std::nullopt;
      const double at = *asked < 0 ? *asked + static_cast<double>(dims.size()) : *asked;
      if (at < 0 || at >= static_cast<double>(dims.size())) return std::nullopt;
      const auto axis = static_cast<std::size_t>(at);
      const auto extent = pool.as_constant(dims[axis]);
      if (!extent) return std::nullopt;
      const auto length = static_cast<double>(*extent);
      const auto place = [&](double number) { return std::clamp(number < 0 ? number + length : number, 0.0, length); };
      if (!slices) return Part{from, axis, place(*start), place(*start) + 1};
      const auto end = expressions.number(expressions.operand(node, 2));
      const ValueId stride = expressions.operand(node, 4);
      if (!end || (stride != ValueId::kAbsent && !expressions.is_number(stride, 1))) return std::nullopt;
      return Part{from, axis, place(*start), place(*end)};
    }
    return std::nullopt;
  }

  /// x - roll(x), with nothing done about the first steps.
  static std::optional<Roll> roll_in(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kSub || opcode == Opcode::kDiv) {
        const ValueId now = expressions.operand(node, 0), before = expressions.operand(node, 1);
        const auto roll =
            before == ValueId::kAbsent ? std::nullopt : rolled_by(expressions, expressions.producer(before));
        if (roll && roll->from == now) {
          // Towards the end, by less than half of it.
          auto backward = *roll;
          backward.shift = roll->extent - roll->shift;
          return backward.shift * 2 < roll->extent ? std::optional(backward) : std::nullopt;
        }
        if (const auto prepended = last_in_front(expressions, now, before)) return prepended;
      }
      const auto scaled = with_number(expressions, node);
      if (opcode == Opcode::kCast || opcode == Opcode::kIdentity || opcode == Opcode::kLog)
        value = expressions.operand(node, 0);
      else if (scaled && (opcode == Opcode::kMul || opcode == Opcode::kDiv || opcode == Opcode::kSub))
        value = scaled->value;
      else
        return std::nullopt;
      if (value == ValueId::kAbsent) return std::nullopt;
    }
    return std::nullopt;
  }

  /// c[1:] and c[:-1] of the last step of x, joined with x.
  static std::optional<Roll> last_in_front(const Expressions& expressions, ValueId now, ValueId before) {
    const auto later = part_of(expressions, now), earlier = part_of(expressions, before);
    if (!later || !earlier || later->of != earlier->of || later->axis != earlier->axis || later->start != 1 ||
        earlier->start != 0 || expressions.op_of(later->of) != Opcode::kConcat)
      return std::nullopt;
    const NodeId join = expressions.producer(later->of);
    const ValueId first = expressions.operand(join, 0), rest = expressions.operand(join, 1);
    if (first == ValueId::kAbsent || rest == ValueId::kAbsent || expressions.analysis().operands(join).size() != 2)
      return std::nullopt;
    const auto last = part_of(expressions, first);
    const auto dims = expressions.dims(rest);
    if (!last || last->of != rest || last->axis != later->axis || last->axis >= dims.size()) return std::nullopt;
    const auto extent = expressions.analysis().facts().dims().as_constant(dims[last->axis]);
    if (!extent || *extent < 2 || last->start != static_cast<double>(*extent - 1)) return std::nullopt;
    return Roll{join, rest, last->axis, 1, *extent};
  }

  /// The farthest step that is read. Only what keeps the steps of the axis in their places is followed.
  static std::optional<Reading> reading_of(const Expressions& expressions, ValueId value, std::size_t axis, int depth) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const auto dims = expressions.dims(value);
    if (value == ValueId::kAbsent || depth > kMaxDepth || expressions.is_spent() || axis >= dims.size())
      return std::nullopt;
    expressions.charge(16);
    if (is_input(analysis, value))
      return axis > 0 && !analysis.fact(value).dtypes.proves(DTypeSet(DType::kBool))
                 ? std::optional(Reading{value, axis, 0, NodeId::kNone})
                 : std::nullopt;
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    if (node == NodeId::kNone) return std::nullopt;
    const NodeCall call(analysis, node);
    const ValueId data = expressions.operand(node, 0);
    if (opcode == Opcode::kConv) {
      auto found = axis >= 2 ? reading_of(expressions, data, axis, depth + 1) : std::nullopt;
      const auto reach = found ? reach_of(expressions, call, axis - 2) : std::nullopt;
      if (!reach) return std::nullopt;
      if (reach->last > 0 || found->layer == NodeId::kNone) found->layer = node;
      found->ahead += reach->last;
      found->behind += reach->first;
      found->is_padded = found->is_padded || reach->is_padded;
      found->cut = 0;
      return found;
    }
    if (opcode == Opcode::kRecurrence) return of_states(expressions, call, axis, depth);
    if (opcode == Opcode::kSlice) {
      auto found = reading_of(expressions, data, axis, depth + 1);
      const auto start = found ? start_at(expressions, node, axis) : std::nullopt;
      // The states of one direction, perhaps.
      if (!start || (std::isinf(found->ahead) && !is_along(expressions, node, axis))) return std::nullopt;
      found->ahead += *start;
      found->behind += *start;
      found->cut += *start;
      return found;
    }
    if (opcode == Opcode::kPad) {
      auto found = reading_of(expressions, data, axis, depth + 1);
      const auto pads = constant_numbers(expressions, expressions.operand(node, 1));
      if (!found || !pads || pads->size() != 2 * dims.size() || expressions.operand(node, 3) != ValueId::kAbsent)
        return std::nullopt;
      found->ahead -= (*pads)[axis];
      found->behind -= (*pads)[axis];
      found->is_padded = found->is_padded || (*pads)[axis] > 0 || (*pads)[axis + dims.size()] > 0;
      return found;
    }
    if (opcode == Opcode::kConcat) return joined(expressions, call, axis, depth);
    if (ops::keeps_elements(opcode) || opcode == Opcode::kTranspose || opcode == Opcode::kGather ||
        opcode == Opcode::kMatMul || opcode == Opcode::kExpand) {
      const ValueId places = expressions.operand(node, 1);
      if (opcode == Opcode::kGather && analysis.model().value(data).initializer != nullptr)  // rows of a table
        return axis + 1 < dims.size() && expressions.dims(data).size() == 2
                   ? reading_of(expressions, places, axis, depth + 1)
                   : std::nullopt;
      const auto at = axis_before(expressions, node, axis);
      auto found = at ? reading_of(expressions, data, *at, depth + 1) : std::nullopt;
      return found && opcode == Opcode::kGather && std::isinf(found->ahead) ? std::nullopt : found;
    }
    // What normalises over steps as well reads more; this is the least.
    if (opcode == Opcode::kNormalize)
      return expressions.dims(data).size() == dims.size() ? reading_of(expressions, data, axis, depth + 1)
                                                          : std::nullopt;
    if (opcode != Opcode::kDropout && opcode != Opcode::kCast && !has_trait(call.entry(), ops::OpTrait::kElementwise))
      return std::nullopt;
    return of_elements(expressions, call, axis, depth);
  }

  /// [steps, directions, samples, states] of [steps, samples, features].
  static std::optional<Reading> of_states(const Expressions& expressions, const NodeCall& call, std::size_t axis,
                                          int depth) {
    const Attribute *direction = call.attribute("direction"), *layout = call.attribute("layout");
    if (axis != 0 || (layout != nullptr && layout->i != 0)) return std::nullopt;
    auto found = reading_of(expressions, call.operand(0).value(), 0, depth + 1);
    if (!found) return std::nullopt;
    if (direction != nullptr && direction->s != "forward") {
      found->ahead = HUGE_VAL;
      found->is_padded = true;
      found->layer = call.id();
    }
    found->cut = 0;
    return found;
  }

  static std::optional<Reading> of_elements(const Expressions& expressions, const NodeCall& call, std::size_t axis,
                                            int depth) {
    // Numbers and tables that are the same for all inputs read nothing.
    const std::size_t rank = expressions.dims(call.result()).size();
    std::optional<Reading> farthest;
    for (const ValueId operand : call.operands()) {
      if (operand == ValueId::kAbsent) continue;
      if (call.model().value(operand).initializer != nullptr || expressions.number(operand)) continue;
      if (expressions.dims(operand).size() != rank) return std::nullopt;
      const auto found = reading_of(expressions, operand, axis, depth + 1);
      if (!found || (farthest && (farthest->of != found->of || farthest->axis != found->axis))) return std::nullopt;
      const double behind = farthest ? std::min(farthest->behind, found->behind) : found->behind;
      if (!farthest || found->ahead > farthest->ahead) farthest = found;
      farthest->behind = behind;
    }
    return farthest;
  }

  /// Zeros in front of the steps.
  static std::optional<Reading> joined(const Expressions& expressions, const NodeCall& call, std::size_t axis,
                                       int depth) {
    const Attribute* given = call.attribute("axis");
    const std::size_t rank = expressions.dims(call.result()).size();
    const ValueId first = call.operand(0).value(), second = call.operand(1).value();
    if (given == nullptr || call.operand_count() != 2 || first == ValueId::kAbsent || second == ValueId::kAbsent ||
        static_cast<std::size_t>(given->i < 0 ? given->i + static_cast<std::int64_t>(rank) : given->i) != axis)
      return std::nullopt;
    const auto dims = expressions.dims(first);
    const auto ahead = axis < dims.size() ? call.facts().dims().as_constant(dims[axis]) : std::nullopt;
    if (!ahead || !number_of(call.operand(0))) return std::nullopt;
    auto found = reading_of(expressions, second, axis, depth + 1);
    if (!found) return std::nullopt;
    found->ahead -= static_cast<double>(*ahead);
    found->behind -= static_cast<double>(*ahead);
    found->is_padded = true;
    return found;
  }

  /// The axis of operand 0 that becomes the axis of the result.
  static std::optional<std::size_t> axis_before(const Expressions& expressions, NodeId node, std::size_t axis) {
    const losses::AxisWay way(expressions);
    const ValueId data = expressions.operand(node, 0);
    const std::size_t rank = expressions.dims(data).size();
    for (std::size_t i = 0; i < rank; ++i) {
      const auto step = way.follow(node, 0, i);
      const DimPool& pool = expressions.analysis().facts().dims();
      if (step.fate == losses::AxisFate::kKept && step.axis == axis && !pool.is_constant(expressions.dims(data)[i], 1))
        return i;
    }
    return std::nullopt;
  }

  static bool is_along(const Expressions& expressions, NodeId slice, std::size_t axis) {
    const auto given = expressions.number(expressions.operand(slice, 3));
    const auto rank = static_cast<double>(expressions.dims(expressions.operand(slice, 0)).size());
    return given && (*given < 0 ? *given + rank : *given) == static_cast<double>(axis);
  }

  /// Where a slice begins along the axis: 0 for one of another axis.
  static std::optional<double> start_at(const Expressions& expressions, NodeId slice, std::size_t axis) {
    const ValueId data = expressions.operand(slice, 0);
    const auto start = expressions.number(expressions.operand(slice, 1)),
               given = expressions.number(expressions.operand(slice, 3));
    const ValueId stride = expressions.operand(slice, 4);
    if (!start || !given || (stride != ValueId::kAbsent && !expressions.is_number(stride, 1))) return std::nullopt;
    const auto dims = expressions.dims(data);
    if ((*given < 0 ? *given + static_cast<double>(dims.size()) : *given) != static_cast<double>(axis)) return 0;
    if (*start >= 0) return start;
    const auto extent = expressions.analysis().facts().dims().as_constant(dims[axis]);
    return extent ? std::optional(std::max(0.0, *start + static_cast<double>(*extent))) : std::nullopt;
  }

  struct Reach {
    double first = 0, last = 0;
    bool is_padded = false;
  };

  /// What a convolution reads around each place along an axis of its kernel.
  static std::optional<Reach> reach_of(const Expressions& expressions, const NodeCall& call, std::size_t axis) {
    const auto weights = expressions.dims(call.operand(1).value());
    if (axis + 2 >= weights.size()) return std::nullopt;
    const auto taps = call.facts().dims().as_constant(weights[axis + 2]);
    const auto first_of = [&](std::string_view name, std::int64_t otherwise) {
      const Attribute* given = call.attribute(name);
      return given == nullptr || axis >= given->ints.size() ? otherwise : given->ints[axis];
    };
    if (!taps || first_of("strides", 1) != 1) return std::nullopt;
    const Attribute* pads = call.attribute("pads");
    const std::size_t at = axis + weights.size() - 2;
    const double width = static_cast<double>(*taps - 1) * static_cast<double>(first_of("dilations", 1));
    double before = static_cast<double>(first_of("pads", 0)),
           behind = pads == nullptr || at >= pads->ints.size() ? 0 : static_cast<double>(pads->ints[at]);
    if (const Attribute* automatic = call.attribute("auto_pad"); automatic != nullptr) {
      if (automatic->s == "SAME_UPPER") before = std::floor(width / 2), behind = std::ceil(width / 2);
      if (automatic->s == "SAME_LOWER") before = std::ceil(width / 2), behind = std::floor(width / 2);
    }
    return Reach{-before, width - before, before > 0 || behind > 0};
  }
};

const RegisterRule<PredictionReadsTarget> kRegisterPredictionReadsTarget;

}  // namespace
}  // namespace tensorlint::rules
