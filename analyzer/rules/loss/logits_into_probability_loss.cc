#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"
#include "passes/losses/expressions.h"
#include "passes/losses/formula.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {
namespace {

class LogitsIntoProbabilityLoss : public Rule {
 public:
  LogitsIntoProbabilityLoss()
      : Rule({"TL-L304", "logits-into-probability-loss", "loss", findings::Severity::kWarning,
              "a loss of probabilities or their logarithms gets the scores of a layer"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (has_temperature(analysis, loss)) return;
    if (loss.kind == ops::LossKind::kKlDivergence) check_target(analysis, loss, out);
    if (loss.kind == ops::LossKind::kNegativeLogLikelihood) check_sigmoids(analysis, loss, out);
    const NodeId layer = layer_of(analysis, loss);
    if (layer == NodeId::kNone) {
      if (loss.kind == ops::LossKind::kKlDivergence) check_sign(analysis, loss, out);
      return;
    }
    const bool logarithms = takes_logarithms(loss.kind);
    const bool indices = loss.kind == ops::LossKind::kNegativeLogLikelihood;
    const bool scaled = is_scaled(analysis, loss.prediction, layer);
    const Operand prediction(analysis, loss.prediction), scores(analysis, NodeCall(analysis, layer).result());
    out.report(loss.anchor, fmt::format("{} takes {}, but {} is the output of {}{}", ops::to_text(loss.kind),
                                        logarithms ? "logarithms of probabilities" : "probabilities", prediction.name(),
                                        NodeCall(analysis, layer).op_name(), scaled ? ", scaled" : ""))
        .note_at(layer,
                 fmt::format("{} is computed here and may have any value", scaled ? scores.name() : prediction.name()))
        .fix(indices      ? "put a LogSoftmax over axis 1 in between, or use cross-entropy"
             : logarithms ? "put a LogSoftmax in between"
                          : "put a Sigmoid in between, or use binary cross-entropy with logits");
  }

  /// A logarithm of scores is wrong in any loss, known or not: half of them are negative.
  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    const std::vector<ValueId> outputs = one_float_outputs(analysis);
    if (outputs.empty()) return;
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    std::set<NodeId> known, of_losses;
    for (const losses::LossSite& loss : view.losses()) {
      of_losses.insert(loss.nodes.begin(), loss.nodes.end());
      if (layer_of(analysis, loss) != NodeId::kNone) known.insert(loss.nodes.begin(), loss.nodes.end());
    }
    std::set<NodeId> layers;  // of which something has been said
    for (const losses::LossSite& loss : view.losses())
      for (const NodeId layer : {layer_of(analysis, loss), layer_of_target(analysis, loss)})
        if (layer != NodeId::kNone) layers.insert(layer);
    for (const ValueId output : outputs)
      for (const NodeId logarithm : summed_logarithms(expressions, output))
        if (known.insert(logarithm).second) {
          const NodeId layer = check_logarithm(expressions, logarithm, !of_losses.contains(logarithm), out);
          if (layer != NodeId::kNone) layers.insert(layer);
        }
    losses::ScoreValues scores(expressions);
    std::set<NodeId> seen;
    for (const ValueId output : outputs)
      for (const NodeId node : computed_from_scores(scores, expressions, output))
        if (seen.insert(node).second) {
          check_domain(scores, expressions, node, of_losses, layers, out);
          check_noisy_or(scores, expressions, node, layers, out);
        }
  }

 private:
  /// Views and scales between a layer and its loss.
  static constexpr int kMaxViews = 8;
  static constexpr std::string_view kPositiveArgument =
      "keep the argument of the logarithm positive: Softmax or Sigmoid for probabilities, or a loss that takes scores; "
      "Softplus or Exp for a scale or an amount";
  /// Products with what is no weight, one after another.
  static constexpr int kMaxMixtures = 2;

  static bool takes_logarithms(ops::LossKind kind) {
    return kind == ops::LossKind::kNegativeLogLikelihood || kind == ops::LossKind::kKlDivergence;
  }

  /// The layer whose output a loss of probabilities or their logarithms takes as it is; kNone where there is none.
  static NodeId layer_of(const dataflow::Analysis& analysis, const losses::LossSite& loss) {
    if (loss.evidence == losses::LossEvidence::kMetadata ||
        (!takes_logarithms(loss.kind) && loss.kind != ops::LossKind::kBinaryCrossEntropy) ||
        has_temperature(analysis, loss))
      return NodeId::kNone;
    return layer_behind(analysis, loss.prediction, takes_logarithms(loss.kind));
  }

  /// p * (a * log(p) - q) is the loss of a policy that q gives values to, with entropy at a temperature that may be 1
  /// before training: a divergence has the logarithm as it is.
  static bool has_temperature(const dataflow::Analysis& analysis, const losses::LossSite& loss) {
    const NodeCall difference(analysis, loss.anchor);
    if (loss.kind != ops::LossKind::kKlDivergence || !difference.is(ops::Opcode::kSub)) return false;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Operand logarithms = difference.operand(side);
      if (!logarithms.present() || difference.operand(1 - side).value() != loss.prediction) continue;
      const NodeId node = producer_behind_identities(analysis, logarithms.value());
      if (node == NodeId::kNone) return false;
      const NodeCall product(analysis, node);
      if (!product.is(ops::Opcode::kMul)) return false;
      for (const std::size_t factor : {std::size_t{0}, std::size_t{1}}) {
        const Operand scale = product.operand(factor), scaled = product.operand(1 - factor);
        if (!scale.present() || !scaled.present() || !is_one_float(analysis, scale.value())) continue;
        const NodeId taken = producer_behind_identities(analysis, scaled.value());
        if (taken == NodeId::kNone) continue;
        const NodeCall logarithm(analysis, taken);
        if (logarithm.is(ops::Opcode::kLog) || logarithm.is(ops::Opcode::kLogSoftmax)) return true;
      }
    }
    return false;
  }

  /// The same of a loss whose targets are probabilities as well.
  static NodeId layer_of_target(const dataflow::Analysis& analysis, const losses::LossSite& loss) {
    return loss.kind == ops::LossKind::kKlDivergence ? layer_behind(analysis, loss.target, false) : NodeId::kNone;
  }

  /// The layer whose output the value is: as it is, moved, or times a number, such as a temperature. With a number
  /// added, a cosine is a probability.
  static NodeId layer_behind(const dataflow::Analysis& analysis, ValueId value, bool may_be_shifted) {
    if (is_clamped(analysis, value)) return NodeId::kNone;
    NodeId producer = producer_behind_identities(analysis, value);
    for (int step = 0; step < kMaxViews && producer != NodeId::kNone; ++step) {
      if (is_layer(analysis, producer)) return is_clamped(analysis, value) ? NodeId::kNone : producer;
      const NodeCall call(analysis, producer);
      const ValueId before = moves_elements(opcode_of(call.entry())) || call.is(ops::Opcode::kNeg)
                                 ? call.operand(0).value()
                                 : with_one_number(call, may_be_shifted);
      if (before == ValueId::kAbsent || is_clamped(analysis, value)) return NodeId::kNone;
      value = before;
      producer = producer_behind_identities(analysis, value);
    }
    return NodeId::kNone;
  }

  /// Between the value and the layer are products or sums, not moves alone.
  static bool is_scaled(const dataflow::Analysis& analysis, ValueId value, NodeId layer) {
    NodeId producer = producer_behind_identities(analysis, value);
    for (int step = 0; step < kMaxViews && producer != layer && producer != NodeId::kNone; ++step) {
      const NodeCall call(analysis, producer);
      if (!moves_elements(opcode_of(call.entry()))) return true;
      producer = producer_behind_identities(analysis, call.operand(0).value());
    }
    return producer != layer;
  }

  /// What is multiplied with, divided by or added to one number, a constant or a parameter of one element; kAbsent for
  /// anything else.
  static ValueId with_one_number(const NodeCall& call, bool may_be_shifted) {
    const bool divides = call.is(ops::Opcode::kDiv);
    const bool shifts = call.is(ops::Opcode::kAdd) || call.is(ops::Opcode::kSub);
    if (!divides && !call.is(ops::Opcode::kMul) && !(shifts && may_be_shifted)) return ValueId::kAbsent;
    const auto is_number = [&](const Operand& operand) {
      if (!operand.present() || !is_one_float(call.analysis(), operand.value())) return false;
      const Value& known = call.model().value(operand.value());
      return known.initializer != nullptr || number_of(operand).value_or(0) != 0;
    };
    if (is_number(call.operand(1))) return call.operand(0).value();
    return !divides && is_number(call.operand(0)) ? call.operand(1).value() : ValueId::kAbsent;
  }

  /// Nodes between an output and the layers whose scores it is computed from, in the order of the file.
  static std::vector<NodeId> computed_from_scores(const losses::ScoreValues& scores,
                                                  const losses::Expressions& expressions, ValueId output) {
    std::vector<NodeId> found;
    walk_back(expressions, output, [&](ValueId value, NodeId node) {
      if (scores.layer_of(value) != NodeId::kNone) return false;
      found.push_back(node);
      const ops::Opcode opcode = expressions.op(node);
      const ops::OpEntry* entry = expressions.entry(node);
      return is_reduction_or_elementwise(expressions, node) || opcode == ops::Opcode::kGather ||
             opcode == ops::Opcode::kConcat || (entry != nullptr && entry->loss()) || picks_elements(opcode);
    });
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  /// The product of 1 - p is the probability of none; scores are no probabilities.
  static void check_noisy_or(const losses::ScoreValues& scores, const losses::Expressions& expressions, NodeId node,
                             std::set<NodeId>& layers, Reporter& out) {
    if (!is_product(expressions, node)) return;
    const ValueId rest = before_stretch(expressions, expressions.operand(node, 0));
    const ValueId value = expressions.complement(rest);
    if (value == ValueId::kAbsent || expressions.analysis().taint(value).has(Aspect::kValue)) return;
    const NodeId layer = scores.layer_of(value);
    if (layer == NodeId::kNone || !layers.insert(layer).second) return;
    const dataflow::Analysis& analysis = expressions.analysis();
    const Operand operand(analysis, value);
    out.report(node, fmt::format("product of 1 - {} takes probabilities, but {} is the output of {}", operand.name(),
                                 operand.name(), NodeCall(analysis, layer).op_name()))
        .note_at(layer, fmt::format("{} is computed here and may have any value", operand.name()))
        .fix("put a Sigmoid in between");
  }

  /// Of what scores come to, an operator takes only a part: a logarithm, a root, a power, a quotient. And a Clip makes
  /// no probabilities of them.
  static void check_domain(losses::ScoreValues& scores, const losses::Expressions& expressions, NodeId node,
                           const std::set<NodeId>& of_losses, std::set<NodeId>& layers, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const ops::Opcode opcode = expressions.op(node);
    const bool divides = opcode == ops::Opcode::kDiv;
    const ValueId value = expressions.operand(node, divides ? 1 : 0);
    if (value == ValueId::kAbsent || analysis.taint(value).has(Aspect::kValue)) return;
    const auto exponent = opcode == ops::Opcode::kPow ? expressions.number(expressions.operand(node, 1)) : std::nullopt;
    const bool roots = opcode == ops::Opcode::kSqrt || (exponent && *exponent != std::floor(*exponent));
    const bool is_logarithm = opcode == ops::Opcode::kLog;
    const bool is_arc = is_of_unit_interval(expressions, node);
    if (!divides && !roots && !is_logarithm && !is_arc) return;
    const losses::ScoreValues::Reach reach = scores.of(value);
    // In a known loss another rule compares the range with what the loss takes.
    if (reach.negative && is_logarithm && of_losses.contains(node) &&
        is_bounded_below_zero(expressions, without_guard(expressions, value)))
      return;
    const bool outside = divides ? reach.sums_cross_zero : is_arc ? reach.beyond_one : reach.negative;
    if (!outside) {
      if (is_logarithm) check_clip(scores, expressions, node, layers, out);
      return;
    }
    if (reach.layer == NodeId::kNone || !layers.insert(reach.layer).second) return;
    const Operand operand(analysis, value);
    out.report(node, divides ? fmt::format("{} divides by {}, a sum of scores that may be 0 or negative",
                                           NodeCall(analysis, node).op_name(), operand.name())
                             : fmt::format("{} of {}, which is computed from scores and may be {}",
                                           is_logarithm ? "logarithm"
                                           : is_arc     ? NodeCall(analysis, node).op_name()
                                                        : "root",
                                           operand.name(), is_arc ? "outside [-1, 1]" : "negative"))
        .note_at(reach.layer,
                 fmt::format("the output of {} may have any value", NodeCall(analysis, reach.layer).op_name()))
        .fix(is_arc ? "divide both vectors by their lengths before the product, and keep the cosine within [-1, 1] by "
                      "a Clip"
             : is_logarithm ? std::string(kPositiveArgument)
             : roots
                 ? is_sum_of_differences(expressions, value)
                       ? "square the differences before they are summed"
                       : "take the root of what is never negative: of squares, or of scores after Softplus or Exp"
                 : "make the scores positive first (Softmax, Sigmoid, Exp, Softplus), or use a loss that takes scores");
  }

  /// Of both signs: squares have been forgotten.
  static bool is_sum_of_differences(const losses::Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    bool summed = false;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(before_scale(expressions, before_stretch(expressions, value)));
      const ops::Opcode opcode = expressions.op(node);
      if (opcode != ops::Opcode::kReduceSum && opcode != ops::Opcode::kReduceMean)
        return summed && opcode == ops::Opcode::kSub && !with_number(expressions, node);
      summed = true;
      value = expressions.operand(node, 0);
    }
    return false;
  }

  /// Scores that are cut off at 0 and 1 and taken for probabilities: most get no gradient.
  static void check_clip(losses::ScoreValues& scores, const losses::Expressions& expressions, NodeId logarithm,
                         std::set<NodeId>& layers, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const losses::Formula formula(expressions, expressions.operand(logarithm, 0));
    for (const losses::Formula::Part& part : formula.parts()) {
      if (expressions.op(part.node) != ops::Opcode::kClip || part.value == ValueId::kAbsent) continue;
      const Range& range = analysis.fact(part.value).range;
      const losses::ScoreValues::Reach reach = scores.of(expressions.operand(part.node, 0));
      // As much as a guard keeps off the ends; 0.05 in float32 is a little more.
      constexpr double kGuard = 0.0501;
      const bool unit = range.lo >= -1e-6 && range.lo <= kGuard && range.hi >= 1 - kGuard && range.hi <= 1 + 1e-6;
      if (!unit || !reach.negative || !reach.positive || !reach.beyond_one || reach.layer == NodeId::kNone ||
          !layers.insert(reach.layer).second)
        continue;
      out.report(logarithm,
                 fmt::format("logarithm of {}, which a Clip has cut out of scores instead of making probabilities",
                             Operand(analysis, expressions.operand(logarithm, 0)).name()))
          .note_at(part.node, "scores below 0 and above 1 get no gradient here")
          .note_at(reach.layer,
                   fmt::format("the output of {} may have any value", NodeCall(analysis, reach.layer).op_name()))
          .fix("use a Sigmoid or Softmax, or a loss that takes scores");
      return;
    }
  }

  /// What a logarithm is taken of, before a summand that only keeps it off zero, and before elements were moved.
  static ValueId without_guard(const losses::Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 8;
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const ops::Opcode opcode = expressions.op(node);
      // A summand that only keeps the logarithm off zero.
      constexpr double kGuard = 1e-2;
      const auto is_guard = [&](std::size_t side) {
        return std::abs(expressions.number(expressions.operand(node, side)).value_or(1)) <= kGuard;
      };
      if (opcode == ops::Opcode::kAdd && (is_guard(0) || is_guard(1)))
        value = expressions.operand(node, is_guard(1) ? 0 : 1);
      else if (ops::moves_elements(opcode) || opcode == ops::Opcode::kGatherElements)
        value = expressions.operand(node, 0);
      else
        break;
    }
    return value;
  }

  /// The layer that it reports about, or kNone.
  static NodeId check_logarithm(const losses::Expressions& expressions, NodeId logarithm, bool takes_bounds,
                                Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const ValueId value = without_guard(expressions, expressions.operand(logarithm, 0));
    const NodeId producer = producer_behind_identities(analysis, value);
    if (producer == NodeId::kNone || is_clamped(analysis, value)) return NodeId::kNone;
    const Operand scores(analysis, value);
    const bool layer = is_layer(analysis, producer);
    // In a known loss another rule compares the range with what the loss takes.
    if (!layer && !(takes_bounds && is_bounded_below_zero(expressions, value))) return NodeId::kNone;
    out.report(logarithm, fmt::format("logarithm of {}, which is the output of {} and may be negative", scores.name(),
                                      NodeCall(analysis, producer).op_name()))
        .note_at(producer, layer ? fmt::format("{} is computed here and may have any value", scores.name())
                                 : fmt::format("{} is in {}", scores.name(), scores.fact().range.to_text()))
        .fix(std::string(kPositiveArgument));
    const NodeId source = losses::ScoreValues(expressions).layer_of(value);
    return source == NodeId::kNone ? producer : source;
  }

  /// A function of one value that reaches well below zero wherever it is bounded, as a hyperbolic tangent does.
  static bool is_bounded_below_zero(const losses::Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(value);
    const Range& range = expressions.analysis().fact(value).range;
    return node != NodeId::kNone && expressions.op(node) == ops::Opcode::kOther &&
           expressions.analysis().operands(node).size() == 1 &&
           has_trait(expressions.entry(node), ops::OpTrait::kElementwise) && std::isfinite(range.hi) && range.hi > 0 &&
           range.lo <= -0.5 && std::isfinite(range.lo);
  }

  /// Logarithms of sigmoids of each class: they do not add up to 1, so that all of them may grow at once.
  static void check_sigmoids(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) {
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const NodeId logarithm = producer_behind_identities(analysis, loss.prediction);
    NodeId sigmoid = logarithm;
    if (expressions.op(logarithm) == ops::Opcode::kLog)
      sigmoid = producer_behind_identities(analysis, expressions.operand(logarithm, 0));
    const ops::Opcode opcode = expressions.op(sigmoid);
    const bool is_sigmoid = sigmoid == logarithm ? opcode == ops::Opcode::kLogSigmoid : opcode == ops::Opcode::kSigmoid;
    if (!is_sigmoid) return;
    const Operand prediction(analysis, loss.prediction);
    out.report(loss.anchor,
               fmt::format("{} takes logarithms of probabilities that add up to 1, but {} is the logarithm "
                           "of a sigmoid of each class",
                           ops::to_text(loss.kind), prediction.name()))
        .note_at(sigmoid, "every score by itself may grow without bound")
        .fix("use LogSoftmax over axis 1, or cross-entropy");
  }

  /// Sums of what several layers give are above 0 for some of their scores; logarithms of probabilities are not.
  static void check_sign(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) {
    if (loss.evidence == losses::LossEvidence::kMetadata || loss.prediction == ValueId::kAbsent ||
        analysis.taint(loss.prediction).has(Aspect::kValue) || is_clamped(analysis, loss.prediction))
      return;
    losses::ScoreValues scores(out.shared<losses::LossAxes>().expressions);
    const losses::ScoreValues::Reach reach = scores.of(loss.prediction);
    if (!reach.negative || !reach.positive || !reach.beyond_one || reach.layer == NodeId::kNone) return;
    out.report(loss.anchor, fmt::format("{} takes logarithms of probabilities, but {} is computed from scores and may "
                                        "be positive",
                                        ops::to_text(loss.kind), Operand(analysis, loss.prediction).name()))
        .note_at(reach.layer,
                 fmt::format("the output of {} may have any value", NodeCall(analysis, reach.layer).op_name()))
        .fix("put a LogSoftmax in between");
  }

  /// Targets of a divergence are probabilities, unless it takes the exponential of them.
  static void check_target(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) {
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const ValueId source = expressions.source(loss.target);
    const auto is_exponential = [&](NodeId node) {
      return expressions.op(node) == ops::Opcode::kExp && expressions.source(expressions.operand(node, 0)) == source;
    };
    if (std::ranges::any_of(loss.nodes, is_exponential) ||
        std::ranges::any_of(expressions.users(source), is_exponential))
      return;
    const NodeId producer = producer_behind_identities(analysis, loss.target);
    if (producer == NodeId::kNone) return;
    const auto normalised = expressions.normalised(source);
    const bool logarithm = normalised && normalised->logarithm;
    const NodeId layer = logarithm ? producer : layer_of_target(analysis, loss);
    if (layer == NodeId::kNone) return;
    const Operand target(analysis, loss.target);
    const bool scaled = !logarithm && is_scaled(analysis, loss.target, layer);
    const Operand scores(analysis, NodeCall(analysis, layer).result());
    out.report(loss.anchor,
               fmt::format("{} takes probabilities as targets, but {} is the output of {}{}", ops::to_text(loss.kind),
                           target.name(), NodeCall(analysis, layer).op_name(), scaled ? ", scaled" : ""))
        .note_at(layer, fmt::format("{} is computed here", scaled ? scores.name() : target.name()))
        .fix(logarithm ? "use Softmax for the target, or log_target=True" : "put a Softmax in between");
  }

  /// Gemm, MatMul or Conv, perhaps with its bias behind it: any real number may come out.
  static bool is_layer(const dataflow::Analysis& analysis, NodeId node, int depth = kMaxMixtures) {
    const NodeCall call(analysis, node);
    if (is_product_with_weights(call, depth)) return true;
    if (!call.is(ops::Opcode::kAdd)) return false;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Operand product = call.operand(side), bias = call.operand(1 - side);
      if (!product.present() || !bias.present() || !is_parameter(analysis, bias.value())) continue;
      const NodeId producer = producer_behind_identities(analysis, product.value());
      if (producer != NodeId::kNone && is_product_with_weights(NodeCall(analysis, producer), depth)) return true;
    }
    return false;
  }

  /// A product of two computed tensors, or with weights that are never negative, may well be a mixture of
  /// probabilities.
  static bool is_product_with_weights(const NodeCall& call, int depth = kMaxMixtures) {
    if (!call.is(ops::Opcode::kMatMul) && !call.is(ops::Opcode::kConv)) return false;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      if (!call.operand(side).present()) continue;
      ValueId value = call.operand(side).value();
      const NodeId producer = producer_behind_identities(call.analysis(), value);
      if (producer != NodeId::kNone && NodeCall(call.analysis(), producer).is(ops::Opcode::kTranspose))
        value = NodeCall(call.analysis(), producer).operand(0).value();
      if (value != ValueId::kAbsent &&
          (is_parameter(call.analysis(), value) || (side == 1 && is_weight_input(call, value))) &&
          call.analysis().fact(value).range.lo < 0)
        return true;
    }
    if (call.is(ops::Opcode::kMatMul) && mixes_scores(call, depth)) return true;
    // With a bias that is negative somewhere, it is no mixture.
    const Operand weights = call.operand(1), bias = call.operand(2);
    return weights.present() && bias.present() && is_parameter(call.analysis(), weights.value()) &&
           is_parameter(call.analysis(), bias.value()) && bias.fact().range.lo < 0;
  }

  /// The outputs of a layer, mixed by another matrix, as neighbours in a graph are or values under attention: scores
  /// still.
  static bool mixes_scores(const NodeCall& call, int depth) {
    if (depth == 0) return false;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      if (!call.operand(side).present()) continue;
      const NodeId producer = producer_behind_identities(call.analysis(), call.operand(side).value());
      if (producer != NodeId::kNone && is_layer(call.analysis(), producer, depth - 1)) return true;
    }
    return false;
  }

  /// A training step may get its weights as inputs: a matrix of known extents, next to data that are a graph's input
  /// too, or whose number of rows is open.
  static bool is_weight_input(const NodeCall& call, ValueId value) {
    const Value& known = call.model().value(value);
    if (known.origin != ValueOrigin::kInput || known.graph != GraphId::kMain) return false;
    const Fact& fact = call.analysis().fact(value);
    const auto dims = call.facts().dims_of(fact.shape), rows = call.facts().dims_of(call.operand(0).fact().shape);
    const auto is_number = [&](Dim dim) { return call.facts().dims().as_constant(dim).has_value(); };
    return dims.size() >= 2 && std::ranges::all_of(dims, is_number) && !rows.empty() && !is_number(rows.front());
  }

  static bool is_parameter(const dataflow::Analysis& analysis, ValueId value) {
    return analysis.model().value(value).initializer != nullptr;
  }
};

const RegisterRule<LogitsIntoProbabilityLoss> kRegisterLogitsIntoProbabilityLoss;

}  // namespace
}  // namespace tensorlint::rules
