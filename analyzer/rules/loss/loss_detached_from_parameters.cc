#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/reported_nodes.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/letters.h"
#include "passes/dataflow/element_function.h"
#include "passes/losses/gradient_reach.h"
#include "passes/losses/gradient_way.h"

namespace tensorlint::rules {
namespace {

class LossDetachedFromParameters : public Rule {
 public:
  LossDetachedFromParameters()
      : Rule({"TL-L306", "loss-detached-from-parameters", "loss", findings::Severity::kWarning,
              "a loss whose gradient reaches no parameter"},
             {passes::Pass::kLosses, passes::Pass::kGradientReach, passes::Pass::kLiveness}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const dataflow::Analysis& analysis = view.analysis();
    if (view.liveness().has_broken_links || check_constant(view, out)) return;
    if (view.losses().empty() || view.gradient_reach().parameters.empty()) {
      if (check_named(view, out)) return;
      if (view.losses().empty()) {
        check_overlap(view, out);
        return;
      }
    }
    const losses::GradientReach& gradients = view.gradient_reach();
    check_terms(view, out);
    if (!check_codes(view, out)) check_steps(view, out);
    // Losses inside bodies and functions get their operands from somewhere else.
    if (gradients.parameters.empty()) {
      check_by_use(view, out);
      return;
    }
    for (const losses::LossSite& loss : view.losses()) {
      if (view.model().node(loss.anchor).graph != GraphId::kMain || gradients.reaches(loss.prediction) ||
          gradients.reaches(loss.target) || weighs_pairs(loss, out.shared<losses::GradientWays>()))
        continue;
      const Operand prediction(analysis, loss.prediction);
      FindingBuilder finding = out.report(loss.anchor, fmt::format("no gradient of {} reaches a parameter through {}",
                                                                   ops::to_text(loss.kind), prediction.name()));
      if (const NodeId cut = losses::where_gradients_stop(analysis, loss.prediction); cut != NodeId::kNone)
        finding.note_at(cut, stop_text(analysis, cut));
    }
  }

 private:
  /// Nobody says what is trained: then every loss of the graph is cut off from every weight, by a node that lets no
  /// gradient through. One that is not is the loss, and the others are metrics.
  static void check_by_use(const ModelView& view, Reporter& out) {
    const dataflow::Analysis& analysis = view.analysis();
    losses::GradientWays& ways = out.shared<losses::GradientWays>();
    std::vector<std::pair<const losses::LossSite*, std::vector<NodeId>>> detached;
    for (const losses::LossSite& loss : view.losses()) {
      if (view.model().node(loss.anchor).graph != GraphId::kMain) return;
      const losses::GradientWay prediction = ways.of(loss.prediction), target = ways.of(loss.target);
      if (!is_cut(prediction) || target.reaches_weight || analysis.taint(loss.prediction).has(Aspect::kDtype) ||
          weighs_pairs(loss, ways))
        return;
      detached.emplace_back(&loss, prediction.stops);
    }
    if (detached.empty()) return;
    // What cuts several losses off is named once, where it is.
    const std::vector<NodeId>& cut = detached.front().second;
    if (detached.size() > 1 && cut.size() == 1 &&
        std::ranges::all_of(detached, [&](const auto& each) { return each.second == cut; })) {
      FindingBuilder finding =
          out.report(cut.front(), fmt::format("no gradient of {} losses reaches a weight", detached.size()));
      finding.note_at(cut.front(), stop_text(analysis, cut.front()));
      finding.note_at(detached.front().first->anchor, "the first of them is computed here");
      return;
    }
    for (const auto& [loss, stops] : detached)
      note_stops(
          analysis, stops,
          out.report(loss->anchor, fmt::format("no gradient of {} reaches a weight through {}",
                                               ops::to_text(loss->kind), Operand(analysis, loss->prediction).name())));
  }

  /// Differences of a value in pairs, as of discounts by rank, that only weigh what has gradients.
  static bool weighs_pairs(const losses::LossSite& loss, losses::GradientWays& ways) {
    const losses::Expressions& expressions = ways.expressions();
    if (loss.target == ValueId::kAbsent ||
        before_stretch(expressions, loss.prediction) != before_stretch(expressions, loss.target))
      return false;
    constexpr std::size_t kMaxValues = 12;
    std::vector<ValueId> values{expressions.result(loss.anchor)};
    for (std::size_t i = 0; i < values.size() && values[i] != ValueId::kAbsent; ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const ops::Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (opcode == ops::Opcode::kMul && ways.of_loss(expressions.beside(user, values[i])).reaches_weight)
          return true;
        const bool goes_on = opcode == ops::Opcode::kMul || opcode == ops::Opcode::kAbs ||
                             opcode == ops::Opcode::kCast || ops::keeps_elements(opcode);
        if (goes_on && result != ValueId::kAbsent && values.size() < kMaxValues) values.push_back(result);
      }
    return false;
  }

  /// Weights are before it, and no gradient comes to one.
  static bool is_cut(const losses::GradientWay& way) {
    return !way.stops.empty() && !way.reaches_weight && !way.reaches_input;
  }

  /// Operands of one node that are looked at, and what a look costs of the meter.
  static constexpr std::size_t kMaxOperands = 4;
  static constexpr std::uint64_t kStepsOfValue = 16;
  static constexpr int kConstantDepth = 12;

  /// The number that every element is, whatever the inputs are: of a difference of a value and itself, and what is
  /// compared and computed with that. `difference`: the last of these.
  static std::optional<double> constant_of(const losses::Expressions& expressions, ValueId value, int depth = 8,
                                           NodeId* difference = nullptr) {
    if (value == ValueId::kAbsent || depth == 0 || expressions.is_spent()) return std::nullopt;
    expressions.charge(kStepsOfValue);
    if (const auto number = expressions.number(value)) return number;
    const NodeId node = expressions.producer(value);
    const ops::Opcode opcode = expressions.op(node);
    if (opcode == ops::Opcode::kSub &&
        are_computed_alike(expressions, expressions.operand(node, 0), expressions.operand(node, 1))) {
      if (difference != nullptr) *difference = node;
      return 0;
    }
    if (opcode == ops::Opcode::kCast || opcode == ops::Opcode::kReduceMean || ops::moves_elements(opcode))
      return constant_of(expressions, expressions.operand(node, 0), depth - 1, difference);
    if (node == NodeId::kNone) return std::nullopt;
    const Model& model = expressions.analysis().model();
    const ops::ElementValue element = dataflow::element_function(expressions.analysis(), node);
    if (element == nullptr || model.node(node).operand_count > kMaxOperands) return std::nullopt;
    std::vector<double> operands;
    for (const ValueId operand : expressions.analysis().operands(node)) {
      const auto number = constant_of(expressions, operand, depth - 1, difference);
      if (number == 0 && opcode == ops::Opcode::kMul) return 0;
      if (!number) return std::nullopt;
      operands.push_back(*number);
    }
    // A walk that the spent meter ends gives fewer of them.
    if (operands.size() != model.node(node).operand_count) return std::nullopt;
    const double result = element({operands, expressions.analysis().attributes(node).read()});
    return std::isfinite(result) ? std::optional(result) : std::nullopt;
  }

  static NodeId product_with_zero(const losses::Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 16;
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const ops::Opcode opcode = expressions.op(node);
      if (opcode == ops::Opcode::kMul)
        for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
          if (constant_of(expressions, expressions.operand(node, side)) == 0) return node;
      if (opcode != ops::Opcode::kMul && opcode != ops::Opcode::kDiv && opcode != ops::Opcode::kCast &&
          opcode != ops::Opcode::kNeg && opcode != ops::Opcode::kReduceSum && opcode != ops::Opcode::kReduceMean &&
          !ops::moves_elements(opcode))
        return NodeId::kNone;
      const bool number_first = expressions.number(expressions.operand(node, 0)).has_value();
      value = expressions.operand(node, number_first ? 1 : 0);
    }
    return NodeId::kNone;
  }

  /// A summand of the loss that weights go into and no gradient comes out of: a count of what is above a bound.
  static void check_terms(const ModelView& view, Reporter& out) {
    constexpr std::size_t kMaxTerms = 16;
    const dataflow::Analysis& analysis = view.analysis();
    for (const ValueId output : one_float_outputs(analysis)) {
      losses::GradientWays& ways = out.shared<losses::GradientWays>();
      const losses::Expressions& expressions = ways.expressions();
      std::vector<ValueId> terms{output};
      std::vector<std::pair<ValueId, std::vector<NodeId>>> detached;
      bool trained = false;
      for (std::size_t i = 0; i < terms.size() && terms.size() < kMaxTerms; ++i) {
        const NodeId node = expressions.producer(terms[i]);
        const ops::Opcode opcode = expressions.op(node);
        const ValueId a = expressions.operand(node, 0), b = expressions.operand(node, 1);
        const bool is_one = is_one_float(analysis, terms[i]);
        if (is_one && (opcode == ops::Opcode::kAdd || opcode == ops::Opcode::kSub)) {
          terms.insert(terms.end(), {a, b});
        } else if (is_one && (ops::moves_elements(opcode) || opcode == ops::Opcode::kNeg) &&
                   is_one_float(analysis, a)) {
          terms.push_back(a);
        } else if (is_one && (opcode == ops::Opcode::kMul || opcode == ops::Opcode::kDiv) && expressions.number(b)) {
          terms.push_back(a);
        } else if (is_one && opcode == ops::Opcode::kMul && expressions.number(a)) {
          terms.push_back(b);
        } else if (i > 0) {
          const losses::GradientWay way = ways.of_loss(terms[i]);
          trained |= way.reaches_weight;
          if (is_cut(way) && is_one && !analysis.taint(terms[i]).has(Aspect::kDtype))
            detached.emplace_back(terms[i], way.stops);
        }
      }
      if (!trained) continue;
      for (const auto& [term, stops] : detached)
        note_stops(analysis, stops,
                   out.report(stops[0], fmt::format("{} is added to the loss, and no gradient of it reaches a weight",
                                                    Operand(analysis, term).name())));
    }
  }

  /// What is to be restored comes in by way of codes alone, through which no gradient goes: the layers before the codes
  /// are never trained. A straight-through estimate is another way.
  static bool check_codes(const ModelView& view, Reporter& out) {
    const dataflow::Analysis& analysis = view.analysis();
    if (one_float_outputs(analysis).empty()) return false;
    losses::GradientWays& ways = out.shared<losses::GradientWays>();
    for (const losses::LossSite& loss : view.losses()) {
      const Value& target =
          view.model().value(loss.target_source == ValueId::kAbsent ? loss.target : loss.target_source);
      if (view.model().node(loss.anchor).graph != GraphId::kMain || loss.output == ValueId::kAbsent ||
          target.origin != ValueOrigin::kInput || target.graph != GraphId::kMain || target.initializer != nullptr)
        continue;
      const ValueId input = loss.target_source == ValueId::kAbsent ? loss.target : loss.target_source;
      if (!ways.of(loss.prediction).reaches_weight) continue;
      const NodeId stop = ways.bypassed(loss.prediction, input);
      if (stop == NodeId::kNone) continue;
      out.report(stop, fmt::format("{} is restored from codes, and no gradient reaches the weights before them",
                                   Operand(analysis, input).name()))
          .note_at(stop, stop_text(analysis, stop))
          .fix("let the gradient pass as if the codes were what they are made of: z + (codes - z).detach()");
      return true;
    }
    return false;
  }

  /// Layers before a rounding, a sign or a threshold that get no gradient by another way, where a layer after it is
  /// trained.
  static void check_steps(const ModelView& view, Reporter& out) {
    const dataflow::Analysis& analysis = view.analysis();
    losses::GradientWays& ways = out.shared<losses::GradientWays>();
    std::optional<std::set<ValueId>> reached;
    bool is_followed = true;
    each_node_of_step(view, out, [&](const losses::Expressions& expressions, const NodeCall& call) {
      const Operand operand = call.operand(0);
      const bool cuts = call.is(ops::Opcode::kCast) && !losses::carries_gradients(analysis, call.result());
      if (!is_followed ||
          (!cuts && !call.is(ops::Opcode::kRound) && !call.is(ops::Opcode::kSign) && !call.is(ops::Opcode::kCompare)) ||
          !operand.present() || !operand.fact().dtypes.proves(DTypeSet::floats()))
        return;
      if (call.is(ops::Opcode::kCompare) && is_decision(expressions, call)) return;
      if (!reached) reached = ways.reached(one_float_outputs(analysis));
      is_followed = reached.has_value();
      if (!is_followed || reached->contains(operand.value())) return;
      const NodeId after = trained_layer(expressions, call, *reached);
      if (after == NodeId::kNone || !ways.of_loss(operand.value()).reaches_weight) return;
      const NodeId before = untrained_layer(expressions, operand.value(), *reached);
      if (before == NodeId::kNone) return;
      out.report(call.id(), fmt::format("no gradient passes {}, and the weights before it get none by another way",
                                        call.op_name()))
          .note_at(before, "this layer is never trained")
          .note_at(after, "what is computed of it goes into a layer that is trained")
          .fix("pass the gradient straight through: x + (rounded - x).detach(), or use noise in place of the rounding");
    });
  }

  /// A probability above a number that does not change: a mask, as of what a network that is trained already has found,
  /// and neither a spike nor a quantised activation.
  static bool is_decision(const losses::Expressions& expressions, const NodeCall& call) {
    if (!expressions.number(call.operand(1).value())) return false;
    ValueId value = before_moves(expressions, call.operand(0).value());
    const ops::Opcode opcode = expressions.op_of(value);
    if (opcode == ops::Opcode::kReduceMax || opcode == ops::Opcode::kTopK)
      value = before_moves(expressions, expressions.operand(expressions.producer(value), 0));
    const auto normalised = expressions.normalised(value);
    return expressions.op_of(value) == ops::Opcode::kSigmoid || (normalised && !normalised->logarithm);
  }

  /// The layer nearest before a value, where no gradient comes to any weights before it; kNone where one does, or
  /// the layer may be meant to stay as it is.
  static NodeId untrained_layer(const losses::Expressions& expressions, ValueId value,
                                const std::set<ValueId>& reached) {
    const dataflow::Analysis& analysis = expressions.analysis();
    NodeId found = NodeId::kNone;
    bool is_trained = false;
    walk_back(expressions, value, [&](ValueId, NodeId node) {
      if (!is_layer(expressions, node)) return !is_trained;
      if (found == NodeId::kNone) found = node;
      for (const ValueId operand : analysis.operands(node))
        is_trained =
            is_trained || (operand != ValueId::kAbsent && analysis.model().value(operand).initializer != nullptr &&
                           reached.contains(operand));
      return !is_trained;
    });
    return is_trained || !has_bias(expressions, found) ? NodeId::kNone : found;
  }

  /// Random projections have neither a bias nor a normalisation after them, and need no training.
  static bool has_bias(const losses::Expressions& expressions, NodeId layer) {
    if (layer == NodeId::kNone) return false;
    const Model& model = expressions.analysis().model();
    const auto is_weight = [&](ValueId value) {
      return value != ValueId::kAbsent && model.value(value).initializer != nullptr;
    };
    if (is_weight(expressions.operand(layer, 2))) return true;
    const ValueId result = expressions.result(layer);
    return std::ranges::any_of(expressions.users(result), [&](NodeId user) {
      return expressions.op(user) == ops::Opcode::kNormalize ||
             (expressions.op(user) == ops::Opcode::kAdd && is_weight(expressions.beside(user, result)));
    });
  }

  static bool is_layer(const losses::Expressions& expressions, NodeId node) {
    const ops::Opcode opcode = expressions.op(node);
    if (opcode != ops::Opcode::kMatMul && opcode != ops::Opcode::kConv) return false;
    ValueId weights = expressions.operand(node, 1);
    if (expressions.op_of(weights) == ops::Opcode::kTranspose)
      weights = expressions.operand(expressions.producer(weights), 0);
    return weights != ValueId::kAbsent && expressions.analysis().model().value(weights).initializer != nullptr;
  }

  /// A layer that takes the steps, moved, scaled and bounded, and whose results gradients come to.
  static NodeId trained_layer(const losses::Expressions& expressions, const NodeCall& call,
                              const std::set<ValueId>& reached) {
    constexpr std::size_t kMaxValues = 12;
    std::vector<ValueId> values{call.result()};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const ops::Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent) continue;
        if (is_layer(expressions, user) && expressions.operand(user, 0) == values[i] && reached.contains(result))
          return user;
        const bool passes = opcode == ops::Opcode::kCast || opcode == ops::Opcode::kClip ||
                            ops::moves_elements(opcode) || with_number(expressions, user);
        if (passes && values.size() < kMaxValues) values.push_back(result);
      }
    return NodeId::kNone;
  }

  /// 1 - an overlap divided by a size, both of classes that have been chosen: a metric would not be taken from 1.
  static void check_overlap(const ModelView& view, Reporter& out) {
    const dataflow::Analysis& analysis = view.analysis();
    const std::vector<ValueId> outputs = one_float_outputs(analysis);
    if (outputs.size() != 1) return;
    losses::GradientWays& ways = out.shared<losses::GradientWays>();
    const losses::Expressions& expressions = ways.expressions();
    ValueId value = outputs[0];
    bool is_complement = false;
    constexpr int kMaxSteps = 12;
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const ops::Opcode opcode = expressions.op(node);
      const bool from_one = opcode == ops::Opcode::kSub && expressions.number(expressions.operand(node, 0)).has_value();
      if (from_one || opcode == ops::Opcode::kNeg) {
        is_complement = true;
        value = expressions.operand(node, from_one ? 1 : 0);
      } else if (ops::keeps_elements(opcode) || opcode == ops::Opcode::kReduceMean ||
                 opcode == ops::Opcode::kReduceSum || opcode == ops::Opcode::kCast) {
        value = expressions.operand(node, 0);
      } else if (const auto scaled = with_number(expressions, node);
                 scaled && (opcode == ops::Opcode::kMul || (opcode == ops::Opcode::kDiv && !scaled->is_first))) {
        value = scaled->value;
      } else {
        break;
      }
    }
    const NodeId division = expressions.producer(value);
    if (!is_complement || expressions.op(division) != ops::Opcode::kDiv) return;
    const losses::GradientWay over = ways.of_loss(expressions.operand(division, 0)),
                              under = ways.of_loss(expressions.operand(division, 1));
    if (!is_cut(over) || !is_cut(under)) return;
    FindingBuilder finding = out.report(
        over.stops[0], fmt::format("no gradient of {} reaches a weight", Operand(analysis, outputs[0]).name()));
    note_stops(analysis, over.stops, finding);
    if (expressions.op(over.stops[0]) == ops::Opcode::kArgExtreme)
      finding.fix("take the probabilities in place of the chosen classes");
  }

  static bool names_loss(std::string_view name) { return lower_case(name).find("loss") != std::string::npos; }

  /// What is compared has been computed from the same values twice, and nothing of it is left.
  static bool check_constant(const ModelView& view, Reporter& out) {
    const dataflow::Analysis& analysis = view.analysis();
    for (const ValueId output : one_float_outputs(analysis)) {
      const losses::Expressions& expressions = out.shared<losses::GradientWays>().expressions();
      NodeId difference = NodeId::kNone;
      const auto number = constant_of(expressions, output, kConstantDepth, &difference);
      if (!number || difference == NodeId::kNone) continue;
      out.shared<ReportedNodes>().add("TL-L306", difference);
      const Operand a(analysis, expressions.operand(difference, 0)), b(analysis, expressions.operand(difference, 1));
      if (a.value() == b.value()) {
        out.report(difference, fmt::format("{} is always {:.4g}: {} is subtracted from itself",
                                           Operand(analysis, output).name(), *number, a.name()))
            .fix("compare it with what it is meant to be close to");
        return true;
      }
      out.report(difference, fmt::format("{} is always {:.4g}: {} and {} are computed alike from the same values",
                                         Operand(analysis, output).name(), *number, a.name(), b.name()))
          .fix("compute one of the two from the other sample");
      return true;
    }
    return false;
  }

  /// No known loss, but an output that is called one: an accuracy, a count of errors.
  static bool check_named(const ModelView& view, Reporter& out) {
    const dataflow::Analysis& analysis = view.analysis();
    for (const ValueId output : one_float_outputs(analysis)) {
      if (!names_loss(telling_name(analysis, output))) continue;
      losses::GradientWays& ways = out.shared<losses::GradientWays>();
      if (const NodeId product = product_with_zero(ways.expressions(), output); product != NodeId::kNone) {
        out.report(product, fmt::format("no gradient of {} reaches a weight: it is multiplied by what is always 0",
                                        Operand(analysis, output).name()));
        return true;
      }
      const losses::GradientWay way = ways.of_loss(output);
      if (!view.losses().empty() || !is_cut(way)) return false;
      note_stops(analysis, way.stops,
                 out.report(way.stops[0],
                            fmt::format("no gradient of {} reaches a weight", Operand(analysis, output).name())));
      return true;
    }
    return false;
  }

  static void note_stops(const dataflow::Analysis& analysis, const std::vector<NodeId>& stops, FindingBuilder finding) {
    constexpr std::size_t kMaxNotes = 3;
    for (std::size_t i = 0; i < stops.size() && i < kMaxNotes; ++i)
      finding.note_at(stops[i], stop_text(analysis, stops[i]));
  }

  /// "the gradient stops here: `labels` is int64"
  static std::string stop_text(const dataflow::Analysis& analysis, NodeId cut) {
    for (const ValueId result : analysis.results(cut))
      if (result != ValueId::kAbsent && losses::carries_gradients(analysis, result))
        return fmt::format("the gradient stops here: {} is piecewise constant", NodeCall(analysis, cut).op_name());
      else if (result != ValueId::kAbsent)
        return fmt::format("the gradient stops here: {} is {}", Operand(analysis, result).name(),
                           analysis.fact(result).dtypes.to_text());
    return "the gradient stops here";
  }
};

const RegisterRule<LossDetachedFromParameters> kRegisterLossDetachedFromParameters;

}  // namespace
}  // namespace tensorlint::rules
