#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::AxisMistake;
using losses::Expressions;
using losses::LossSite;
using ops::Opcode;

/// Only where a loss says what the axes mean: a mean over the batch is a statistic elsewhere.
class ReductionOverBatchAxis : public Rule {
 public:
  ReductionOverBatchAxis()
      : Rule({"TL-S207", "reduction-over-batch-axis", "shape", findings::Severity::kWarning,
              "a reduction over the batch where the loss needs one over another axis"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    const std::vector<ValueId> numbers = one_float_outputs(analysis);
    if (view.losses().empty() && numbers.empty()) return;
    std::set<NodeId> mixing;
    for (const AxisMistake& mistake : axis_mistakes(out))
      if (report_mixing(analysis, mistake, out)) mixing.insert(mistake.node);
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    Search search{expressions, analysis, view.model(), origins, std::move(mixing)};
    const bool has_scalar = std::ranges::any_of(view.analysis().outputs(GraphId::kMain), [&](ValueId output) {
      return output != ValueId::kAbsent && is_one_float(analysis, output);
    });
    for (const LossSite& loss : view.losses()) {
      if (!has_scalar) check_kept_axes(search, loss, out);
      check_operand(search, loss, loss.prediction, loss.target, out);
      check_operand(search, loss, loss.target, loss.prediction, out);
      check_labels(search, loss, out);
    }
    for (const ValueId output : numbers) check_similarities(search, output, out);
  }

 private:
  /// Nodes in a row that are looked through on the way to a reduction.
  static constexpr int kMaxSteps = 24;

  struct Search {
    const Expressions& expressions;
    const dataflow::Analysis& analysis;
    const Model& model;
    losses::AxisOrigins& origins;
    std::set<NodeId> reported;
  };

  static bool report_mixing(const dataflow::Analysis& analysis, const AxisMistake& mistake, Reporter& out) {
    const NodeCall call(analysis, mistake.node);
    const std::string value = described(analysis, mistake.value);
    const std::size_t axis = mistake.axes.front();
    switch (mistake.kind) {
      case AxisMistake::Kind::kCumulative:
        out.report(mistake.node, fmt::format("{} accumulates over axis {} of {}, the batch: each sample gets what the "
                                             "samples before it have",
                                             call.op_name(), axis, value))
            .note_at(mistake.meets, "what is accumulated meets the numbers of each sample here")
            .fix("accumulate over the axis of the steps or classes, such as dim=1");
        return true;
      case AxisMistake::Kind::kExtremeOfAll:
        out.report(mistake.meets, fmt::format("every sample gets the same number here: {} reduces all axes of {}, the "
                                              "batch among them",
                                              call.op_name(), value))
            .note_at(mistake.node, "all axes are reduced here")
            .fix("reduce the last axis alone, such as max(dim=1)");
        return true;
      case AxisMistake::Kind::kNormOfAll:
        out.report(mistake.node, fmt::format("one norm of the whole batch scales every sample of {}", value))
            .note_at(mistake.meets, "the features of each sample are summed here")
            .fix("take the norm of each sample: norm(dim=1, keepdim=True)");
        return true;
      case AxisMistake::Kind::kNormOfBatch:
        out.report(mistake.node, fmt::format("{} is scaled by norms over axis {}, the batch, and its features are "
                                             "summed afterwards",
                                             value, axis))
            .note_at(mistake.meets, "the features of each sample are summed here")
            .fix("take the norm over the axis of the features: dim=1, or dim=-1");
        return true;
      case AxisMistake::Kind::kLogSumExpOfBatch:
        out.report(mistake.node, fmt::format("{} adds exponentials of {} over axis {}, the batch, under the logarithm",
                                             call.op_name(), value, axis))
            .note_at(mistake.meets, "the loss is the mean or sum of this logarithm")
            .fix("sum over the axis of the components or classes, such as logsumexp(dim=1)");
        return true;
      case AxisMistake::Kind::kDistanceOfColumns:
        out.report(mistake.node, fmt::format("{} takes the norm of a difference over axis {} of {}, the batch: one "
                                             "distance per feature",
                                             call.op_name(), axis, value))
            .note_at(mistake.meets, "the difference is computed here")
            .fix("take the norm over the axis of the features, such as norm(dim=1)");
        return true;
      case AxisMistake::Kind::kMarginOfSums:
        out.report(mistake.node, fmt::format("{} reduces axis {} of {}, the batch: the margin is compared with one "
                                             "number per feature",
                                             call.op_name(), axis, value))
            .note_at(mistake.meets, "the margin is applied here")
            .fix("sum over the axis of the features, such as sum(dim=1)");
        return true;
      default:
        return report_total(analysis, mistake, out);
    }
  }

  /// Several things that are done with one number of the batch are one mistake.
  static std::string total_key(NodeId total) { return fmt::format("total {}", static_cast<std::uint32_t>(total)); }

  static bool report_total(const dataflow::Analysis& analysis, const AxisMistake& mistake, Reporter& out) {
    const NodeCall call(analysis, mistake.node);
    const std::string value = described(analysis, mistake.value);
    const std::size_t axis = mistake.axes.front();
    switch (mistake.kind) {
      case AxisMistake::Kind::kWeighsTotal:
        out.report(mistake.node, fmt::format("{} makes one number of the whole batch of {} before it is weighted: the "
                                             "weights of single samples have no effect but by their mean",
                                             call.op_name(), value))
            .note_at(mistake.meets, "one weight per sample is applied here")
            .cause(total_key(mistake.node))
            .fix("keep one number per sample, such as reduction=\"none\", until it has been weighted");
        return true;
      case AxisMistake::Kind::kFocalOfTotal:
        out.report(mistake.meets,
                   fmt::format("the factor of a focal loss is computed from one number: {} has made it of the whole "
                               "batch of {}, so that hard and easy samples count alike",
                               call.op_name(), value))
            .note_at(mistake.node, "the losses of all samples become one number here")
            .cause(total_key(mistake.node))
            .fix("compute the factor of each loss before the mean is taken: reduction=\"none\"");
        return true;
      case AxisMistake::Kind::kBestOfTotals:
        out.report(mistake.node,
                   fmt::format("{} makes one number of the whole batch of {} before the smaller one of two "
                               "losses is taken: all samples get the same assignment",
                               call.op_name(), value))
            .note_at(mistake.meets, "the smaller loss is taken here")
            .fix("keep one loss per sample, take the smaller one of each, and average afterwards");
        return true;
      case AxisMistake::Kind::kMarginOfTotals:
        out.report(mistake.node, fmt::format("the margin is applied to distances of the whole batch: {} reduces all "
                                             "axes, the batch of {} among them",
                                             call.op_name(), value))
            .note_at(mistake.meets, "the margin is applied here")
            .fix("reduce the axis of the features alone: norm(dim=1)");
        return true;
      case AxisMistake::Kind::kProjectedOnAll:
        out.report(mistake.node, fmt::format("one product of the whole batch scales every sample of {}", value))
            .note_at(mistake.meets, "the features of each sample are summed here")
            .fix("sum over the axis of the features alone: sum(dim=1, keepdim=True)");
        return true;
      case AxisMistake::Kind::kLogarithmOfMean:
        out.report(mistake.node,
                   fmt::format("{} of the mean of the probabilities {} of all samples: the logarithm of each "
                               "is to be averaged",
                               call.op_name(), value))
            .note_at(mistake.meets, "they are averaged here")
            .fix("take the logarithm first, and average afterwards");
        return true;
      case AxisMistake::Kind::kSquareOfMean:
        out.report(mistake.node,
                   fmt::format("{} averages the differences {} before their size is taken: errors of both "
                               "signs cancel",
                               call.op_name(), value))
            .note_at(mistake.meets, "the size of the mean is taken here")
            .fix("take the square or the absolute value of each difference first, and average afterwards");
        return true;
      case AxisMistake::Kind::kComparedNorms:
        out.report(mistake.node, fmt::format("{} takes norms of {} over axis {}, the batch, and each is compared with "
                                             "a number",
                                             call.op_name(), value, axis))
            .note_at(mistake.meets, "the norms are compared here")
            .fix("take the norm of each sample: norm(dim=1)");
        return true;
      case AxisMistake::Kind::kExpectationOfBatch:
        out.report(mistake.node, fmt::format("{} sums probabilities times values {} over axis {}, the batch, and not "
                                             "over the axis along which the probabilities add up to 1",
                                             call.op_name(), value, axis))
            .note_at(mistake.meets, "the sum is added to one number per sample here")
            .fix("sum over the classes or actions: sum(dim=1)");
        return true;
      case AxisMistake::Kind::kDivergenceOfBatch:
        out.report(mistake.node,
                   fmt::format("{} adds up {} over axis {}, the batch, and the mean is over the classes or "
                               "features: the size of the loss grows with the batch",
                               call.op_name(), value, axis))
            .note_at(mistake.meets, "the mean over the other axes is taken here")
            .fix("sum over the classes or features, sum(dim=-1), and average over the batch");
        return true;
      case AxisMistake::Kind::kLargestOfBatch:
        out.report(mistake.node, fmt::format("{} takes the largest probability of each class over axis {} of {}, the "
                                             "batch, and not the most likely class of each sample",
                                             call.op_name(), axis, value))
            .note_at(mistake.meets, "they are averaged over the classes here")
            .fix("take the largest along the classes: max(dim=-1)");
        return true;
      case AxisMistake::Kind::kRatioOfPixels:
        out.report(mistake.node, fmt::format("{} adds up {} over axis {}, the batch: the ratio is one of each pixel",
                                             call.op_name(), value, axis))
            .note_at(mistake.meets, "the ratio is computed here")
            .fix("add up the pixels of each sample: sum(dim=1) of what was flattened from axis 1 on");
        return true;
      case AxisMistake::Kind::kStandardisedOverBatch:
        out.report(mistake.node,
                   fmt::format("{} takes the mean of {} over axis {} alone, the batch: each position gets "
                               "a mean of its own over the samples",
                               call.op_name(), value, axis))
            .note_at(mistake.meets, "it is divided by the deviation here")
            .fix("take mean and deviation over the features: dim=-1");
        return true;
      case AxisMistake::Kind::kCentredOverBatch:
        out.report(mistake.node,
                   fmt::format("{} takes the mean of {} over axis {}, the batch; what is less this mean is "
                               "projected along axis {}",
                               call.op_name(), value, axis, mistake.other))
            .note_at(mistake.meets, "its products are summed here")
            .fix(fmt::format("take the mean along the axis that the products are summed over: dim={}", mistake.other));
        return true;
      case AxisMistake::Kind::kGateOfBatch:
        out.report(mistake.node, fmt::format("{} averages {} over the batch, too: all samples get the same gate",
                                             call.op_name(), value))
            .note_at(mistake.meets, "the gate is applied here")
            .fix("average over the places of each sample alone: mean(dim=(2, 3))");
        return true;
      case AxisMistake::Kind::kDeviationOfFeatures:
        out.report(mistake.node,
                   fmt::format("the deviation of {} over axis {} is kept above a number: over its features, "
                               "and not over the samples of the batch",
                               value, axis))
            .note_at(mistake.meets, "it is bounded here")
            .fix("take the deviation of each feature over the batch: dim=0");
        return true;
      case AxisMistake::Kind::kStepsOfBatch: {
        const NodeCall meets(analysis, mistake.meets);
        auto finding =
            out.report(mistake.node, fmt::format("{} goes along axis 0 of {}, the batch: each sample depends "
                                                 "on the samples before it",
                                                 call.op_name(), value));
        if (meets.is(ops::Opcode::kSlice) || meets.is(ops::Opcode::kCompare))
          finding.note_at(mistake.meets, "the steps are those of axis 1 here");
        else if (mistake.meets != mistake.node)
          finding.note_at(mistake.meets,
                          fmt::format("{} removes axis 1, which the layer takes for the samples", meets.op_name()));
        finding.fix("create the layer with batch_first=True, or move the steps to axis 0");
        return true;
      }
      case AxisMistake::Kind::kAttentionOfBatch:
        out.report(mistake.node, fmt::format("attention goes along axis 0 of {}, the batch: each sample depends on the "
                                             "other ones",
                                             value))
            .note_at(mistake.meets, "the steps are reduced to one here, and the samples are kept")
            .fix("create the layer with batch_first=True, or move the steps to axis 0");
        return true;
      default:
        return false;
    }
  }

  using Reduces = bool (*)(Search&, NodeId);

  static std::span<const Dim> dims_of(const Search& search, ValueId value) {
    const Fact& fact = search.analysis.fact(value);
    if (fact.kind != ValueKind::kTensor || search.analysis.taint(value).has(Aspect::kShape)) return {};
    return search.analysis.facts().dims_of(fact.shape);
  }

  /// The node reduces the batch, and keeps another axis that has more than one element.
  static bool reduces_batch_alone(Search& search, NodeId node) {
    if (node == NodeId::kNone) return false;
    const auto axes = search.expressions.axes_of(node);
    if (!axes || axes->size() != 1) return false;
    const ValueId data = search.expressions.operand(node, 0);
    const auto dims = dims_of(search, data);
    const DimPool& pool = search.analysis.facts().dims();
    if (dims.size() < 2 || !search.origins.is_batch(data, axes->front())) return false;
    bool keeps = false;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (i == axes->front()) continue;
      // Of all pairs in a batch either axis is one.
      if (search.origins.is_batch(data, i) || pool.equal(dims[i], dims[axes->front()])) return false;
      keeps |= !pool.is_constant(dims[i], 1);
    }
    return keeps;
  }

  /// The node reduces the steps of [N, T, C], and keeps the features that a layer made.
  static bool reduces_steps_alone(Search& search, NodeId node) {
    constexpr std::int64_t kFewestFeatures = 8;  // fewer may be channels, whose course over time is compared
    const auto axes = search.expressions.axes_of(node);
    const ValueId data = search.expressions.operand(node, 0);
    const auto dims = dims_of(search, data);
    if (!axes || axes->size() != 1 || axes->front() != 1 || dims.size() != 3 ||
        search.analysis.facts().dims().as_constant(dims[2]).value_or(0) < kFewestFeatures ||
        !search.origins.is_batch(data, 0))
      return false;
    const auto is_weight = [&](const losses::AxisSource& source) {
      return search.model.value(source.value).initializer != nullptr;
    };
    const NodeId product = search.expressions.producer(data);
    return std::ranges::any_of(search.analysis.operands(product), [&](ValueId factor) {
      const auto origins = search.origins.of(search.expressions.source(factor));
      return origins.size() == 3 && !origins[2].empty() && std::ranges::all_of(origins[2], is_weight) &&
             !origins[1].empty() && std::ranges::none_of(origins[1], is_weight);
    });
  }

  static bool reduces_squared_steps_alone(Search& search, NodeId node) {
    const auto axes = search.expressions.axes_of(node);
    return axes && axes->size() == 1 && axes->front() == 1 &&
           dims_of(search, search.expressions.operand(node, 0)).size() == 3;
  }

  /// A loss that is an output with an axis of classes left, where no output is a scalar.
  static void check_kept_axes(Search& search, const LossSite& loss, Reporter& out) {
    if (loss.output == ValueId::kAbsent || search.model.value(loss.output).graph != GraphId::kMain) return;
    const auto dims = dims_of(search, loss.output);
    if (dims.empty() || is_one_float(search.analysis, loss.output)) return;
    NodeId reduction = NodeId::kNone;
    for (const NodeId node : loss.path) {
      const Opcode opcode = search.expressions.op(node);
      if (opcode != Opcode::kReduceMean && opcode != Opcode::kReduceSum && !is_norm(opcode)) continue;
      if (!reduces_batch_alone(search, node)) return;
      reduction = node;
    }
    if (reduction == NodeId::kNone || !search.reported.insert(reduction).second) return;
    const NodeCall call(search.analysis, reduction);
    out.report(reduction, fmt::format("{} reduces the batch alone: {} {} has one number per element of the other axes",
                                      call.op_name(), Operand(search.analysis, loss.output).name(),
                                      search.analysis.facts().shape_text(search.analysis.fact(loss.output).shape)))
        .note_at(loss.anchor, fmt::format("{} is computed here", ops::to_text(loss.kind)))
        .fix("reduce all axes, so that the loss is one number");
  }

  static bool is_norm(Opcode opcode) {
    return opcode == Opcode::kReduceL1 || opcode == Opcode::kReduceL2 || opcode == Opcode::kReduceSumSquare;
  }

  static bool is_average(Opcode opcode) {
    return opcode == Opcode::kReduceMean || opcode == Opcode::kReduceMax || opcode == Opcode::kReduceL2 ||
           opcode == Opcode::kReduceL1;
  }

  /// One side of the loss has lost its batch to a mean, the other one has not; or is scaled by norms over the batch.
  static void check_operand(Search& search, const LossSite& loss, ValueId value, ValueId other, Reporter& out) {
    const bool lost = !has_batch(search, value) && has_batch(search, other) && !dims_of(search, value).empty();
    bool is_product = false;  // which axis it sums decides about norms before it: norm_in_divisor
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = search.expressions.producer(value);
      if (node == NodeId::kNone) return;
      const Opcode opcode = search.expressions.op(node);
      is_product |= opcode == Opcode::kMatMul;
      if (lost && is_average(opcode) && reduces_batch_alone(search, node) && has_extent(search, other, node)) {
        report_operand(search, loss, node, out);
        return;
      }
      if (opcode == Opcode::kDiv && !is_product) {
        if (const NodeId norm = norm_along(search, search.expressions.operand(node, 1), reduces_batch_alone);
            norm != NodeId::kNone && search.expressions.operand(norm, 0) == search.expressions.operand(node, 0) &&
            !is_centred(search, search.expressions.operand(node, 0))) {
          report_operand(search, loss, norm, out);
          return;
        }
      }
      const bool passes = moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kMatMul ||
                          opcode == Opcode::kConv || opcode == Opcode::kSoftmax || opcode == Opcode::kLogSoftmax ||
                          opcode == Opcode::kDropout ||
                          has_trait(search.expressions.entry(node), ops::OpTrait::kElementwise);
      if (!passes) return;
      value = search.expressions.operand(node, 0);
    }
  }

  /// The other side has as many samples as the node reduces.
  static bool has_extent(Search& search, ValueId value, NodeId node) {
    const auto dims = dims_of(search, search.expressions.operand(node, 0));
    const auto axes = search.expressions.axes_of(node);
    // Nothing is known any more once the meter is spent.
    if (!axes || axes->empty() || axes->front() >= dims.size()) return false;
    const Dim samples = dims[axes->front()];
    return std::ranges::any_of(dims_of(search, value),
                               [&](Dim dim) { return search.analysis.facts().dims().equal(dim, samples); });
  }

  static bool has_batch(Search& search, ValueId value) {
    const std::size_t rank = dims_of(search, value).size();
    for (std::size_t i = 0; i < rank; ++i)
      if (search.origins.is_batch(value, i)) return true;
    return false;
  }

  static void report_operand(Search& search, const LossSite& loss, NodeId node, Reporter& out) {
    const auto axes = search.expressions.axes_of(node);
    if (!axes || axes->empty() || !search.reported.insert(node).second) return;
    const NodeCall call(search.analysis, node);
    out.report(node, fmt::format("{} reduces axis {} of {}, the batch, in front of {}", call.op_name(), axes->front(),
                                 call.operand(0).name(), ops::to_text(loss.kind)))
        .note_at(loss.anchor, fmt::format("{} is computed here", ops::to_text(loss.kind)))
        .fix("reduce the axis of the features instead");
  }

  /// Labels that say, of each class, which sample of the batch is the largest.
  static void check_labels(Search& search, const LossSite& loss, Reporter& out) {
    if (!ops::takes_class_indices(loss.kind)) return;
    ValueId value = loss.target;
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = search.expressions.producer(value);
      const Opcode opcode = search.expressions.op(node);
      if (opcode == Opcode::kArgExtreme) {
        if (reduces_batch_alone(search, node)) report_operand(search, loss, node, out);
        return;
      }
      if (!moves_elements(opcode) && opcode != Opcode::kCast) return;
      value = search.expressions.operand(node, 0);
    }
  }

  /// Sums of products over the batch, divided by norms over the batch: a cosine between columns, not between samples.
  static void check_similarities(Search& search, ValueId output, Reporter& out) {
    std::vector<ValueId> pending{output};
    Visited<ValueId> seen(search.expressions.analysis().meter());
    std::vector<NodeId> divisions;
    constexpr std::size_t kMaxValues = 400;
    while (!pending.empty() && seen.size() < kMaxValues) {
      const ValueId value = pending.back();
      pending.pop_back();
      const NodeId node = search.expressions.producer(value);
      if (node == NodeId::kNone || !seen.insert(value)) continue;
      const Opcode opcode = search.expressions.op(node);
      if (opcode == Opcode::kReduceSum && is_product_of_two(search, search.expressions.operand(node, 0)) &&
          (reduces_batch_alone(search, node) || reduces_steps_alone(search, node))) {
        report_similarity(search, node, divisions, out);
        continue;
      }
      if (opcode == Opcode::kDiv) divisions.push_back(node);
      const bool passes = moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kReduceMean ||
                          opcode == Opcode::kReduceSum ||
                          has_trait(search.expressions.entry(node), ops::OpTrait::kElementwise);
      if (!passes) continue;
      for (const ValueId operand : search.expressions.analysis().operands(node))
        if (operand != ValueId::kAbsent) pending.push_back(operand);
    }
  }

  static bool is_product_of_two(const Search& search, ValueId value) {
    const NodeId node = search.expressions.producer(value);
    return search.expressions.op(node) == Opcode::kMul &&
           search.expressions.source(search.expressions.operand(node, 0)) !=
               search.expressions.source(search.expressions.operand(node, 1)) &&
           !search.expressions.number(search.expressions.operand(node, 0)) &&
           !search.expressions.number(search.expressions.operand(node, 1));
  }

  static void report_similarity(Search& search, NodeId sum, std::span<const NodeId> divisions, Reporter& out) {
    const NodeId product = search.expressions.producer(search.expressions.operand(sum, 0));
    const bool is_batch = reduces_batch_alone(search, sum);
    const Reduces reduces = is_batch ? reduces_batch_alone : reduces_squared_steps_alone;
    NodeId norm = NodeId::kNone;
    for (std::size_t i = 0; i < 2 && norm == NodeId::kNone; ++i) {
      const NodeId factor = search.expressions.producer(search.expressions.operand(product, i));
      if (search.expressions.op(factor) == Opcode::kDiv)
        norm = norm_along(search, search.expressions.operand(factor, 1), reduces);
    }
    for (const NodeId division : divisions) {
      if (norm != NodeId::kNone) break;
      const ValueId above = search.expressions.operand(division, 0);
      if (above == search.expressions.result(sum))
        norm = norm_along(search, search.expressions.operand(division, 1), reduces);
    }
    if (norm == NodeId::kNone || is_centred(search, search.expressions.operand(norm, 0)) ||
        !search.reported.insert(sum).second)
      return;
    const auto axes = search.expressions.axes_of(sum);
    if (!axes || axes->empty()) return;
    const ValueId data = search.expressions.operand(sum, 0);
    out.report(sum, fmt::format("the cosine similarity {} is taken over axis {} of {}, the {}",
                                Operand(search.analysis, search.expressions.result(sum)).name(), axes->front(),
                                search.analysis.facts().shape_text(search.analysis.fact(data).shape),
                                is_batch ? "batch" : "steps"))
        .note_at(norm, fmt::format("the norm is taken over the {} too", is_batch ? "batch" : "steps"))
        .fix("take it over the axis of the features: dim=1, or dim=-1");
  }

  /// The node that sums squares along the axis in question; roots, bounds and products with another sum may follow.
  static NodeId norm_along(Search& search, ValueId value, Reduces reduces) {
    std::vector<ValueId> pending{value};
    for (std::size_t i = 0; i < pending.size() && pending.size() < 32; ++i) {
      const NodeId node = search.expressions.producer(pending[i]);
      switch (search.expressions.op(node)) {
        case Opcode::kReduceL2:
          if (reduces(search, node)) return node;
          break;
        case Opcode::kReduceSum: {
          const NodeId square = search.expressions.producer(search.expressions.operand(node, 0));
          const bool squares = (search.expressions.op(square) == Opcode::kMul &&
                                search.expressions.operand(square, 0) == search.expressions.operand(square, 1)) ||
                               (search.expressions.op(square) == Opcode::kPow &&
                                search.expressions.is_number(search.expressions.operand(square, 1), 2));
          if (squares && reduces(search, node)) return node;
          break;
        }
        case Opcode::kClip:
        case Opcode::kSqrt:
        case Opcode::kExpand:
        case Opcode::kSqueeze:
        case Opcode::kUnsqueeze:
        case Opcode::kPow:
          pending.push_back(search.expressions.operand(node, 0));
          break;
        case Opcode::kMul:
        case Opcode::kMax:
        case Opcode::kAdd:
          pending.push_back(search.expressions.operand(node, 0));
          pending.push_back(search.expressions.operand(node, 1));
          break;
        default:
          break;
      }
    }
    return NodeId::kNone;
  }

  /// Less its mean over the batch: then the cosine is a correlation, and the norm a standard deviation.
  static bool is_centred(const Search& search, ValueId value) {
    NodeId node = search.expressions.producer(search.expressions.source(value));
    for (int step = 0; step < kMaxSteps; ++step) {
      if (search.expressions.op(node) != Opcode::kMul && search.expressions.op(node) != Opcode::kPow)
        break;  // its square
      node = search.expressions.producer(search.expressions.source(search.expressions.operand(node, 0)));
    }
    return search.expressions.op(node) == Opcode::kSub &&
           search.expressions.op_of(search.expressions.source(search.expressions.operand(node, 1))) ==
               Opcode::kReduceMean;
  }
};

const RegisterRule<ReductionOverBatchAxis> kRegisterReductionOverBatchAxis;

}  // namespace
}  // namespace tensorlint::rules
