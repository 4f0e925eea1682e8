#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "analyzer/rules/casts.h"
#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/expressions.h"
#include "passes/losses/formula.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {
namespace {

class ProbabilitiesIntoLogitLoss : public Rule {
 public:
  ProbabilitiesIntoLogitLoss()
      : Rule({"TL-L305", "probabilities-into-logit-loss", "loss", findings::Severity::kWarning,
              "a loss of scores, or of logarithms, gets probabilities"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis&, const losses::LossSite& loss, Reporter& out) const override {
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    check_twice(expressions, loss, loss.target, out);
    switch (loss.kind) {
      case ops::LossKind::kNegativeLogLikelihood:
        if (loss.evidence == losses::LossEvidence::kOperator) check_logarithms(expressions, loss, out);
        break;
      case ops::LossKind::kKlDivergence:
        check_logarithms(expressions, loss, out);
        check_twice(expressions, loss, loss.prediction, out);
        break;
      case ops::LossKind::kCrossEntropy:
      case ops::LossKind::kFocal:
        check_scores(expressions, loss, loss.prediction, "softmax", out);
        break;
      case ops::LossKind::kBinaryCrossEntropyWithLogits:
        check_scores(expressions, loss, loss.prediction, "a sigmoid", out);
        break;
      case ops::LossKind::kBinaryCrossEntropy:
      case ops::LossKind::kBinaryFocal:
        // A loss of probabilities with a separate Sigmoid node before it.
        if (const NodeId squash = expressions.producer(before_stretch(expressions, loss.prediction));
            expressions.op(squash) == ops::Opcode::kSigmoid)
          check_scores(expressions, loss, expressions.operand(squash, 0), "a sigmoid", out);
        break;
      default:
        break;
    }
  }

  /// Where the loss itself is not known: logarithms of a sigmoid of probabilities.
  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.empty()) return;
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    std::set<NodeId> known;
    for (const losses::LossSite& loss : view.losses()) {
      known.insert(loss.nodes.begin(), loss.nodes.end());
      // check_loss looks at that.
      if (loss.prediction == ValueId::kAbsent) continue;
      if (const NodeId squash = expressions.producer(before_stretch(expressions, loss.prediction));
          expressions.op(squash) == ops::Opcode::kSigmoid)
        known.insert(squash);
    }
    for (const ValueId output : outputs)
      for (const NodeId logarithm : summed_logarithms(expressions, output))
        if (!known.contains(logarithm)) check_logarithm_of_sigmoid(expressions, logarithm, known, out);
    for (const ValueId output : outputs) check_picked(expressions, output, known, out);
    for (const ValueId output : outputs)
      walk_back(expressions, output, [&](ValueId, NodeId node) {
        if (!known.insert(node).second) return true;
        check_sum_of_exponentials(expressions, node, out);
        check_softmax_of_shares(expressions, node, out);
        check_sigmoid_of_shares(expressions, node, out);
        return true;
      });
  }

 private:
  static void check_logarithm_of_sigmoid(const losses::Expressions& expressions, NodeId logarithm,
                                         std::set<NodeId>& known, Reporter& out) {
    const auto term = expressions.log_term(expressions.result(logarithm));
    if (!term || term->logit == ValueId::kAbsent || term->argument == ValueId::kAbsent) return;
    const NodeId first = normalising_node(expressions, term->logit), second = expressions.producer(term->argument);
    if (first == NodeId::kNone || !known.insert(second).second) return;
    const NodeCall call(expressions.analysis(), second), before(expressions.analysis(), first);
    out.report(second,
               fmt::format("{} is applied to {}, which {} has already turned into probabilities", call.op_name(),
                           Operand(expressions.analysis(), term->logit).name(), before.op_name()))
        .note_at(first,
                 fmt::format("{} becomes probabilities here", Operand(expressions.analysis(), before.result()).name()))
        .fix("normalise once");
  }

  /// Minus the mean of the probabilities of the labels, which are picked or are one-hot: a negative log-likelihood
  /// without the logarithm. With a number added, as in 1 - p, it is a distance.
  static void check_picked(const losses::Expressions& expressions, ValueId loss, const std::set<NodeId>& known,
                           Reporter& out) {
    constexpr std::size_t kMaxTerms = 16;
    struct Term {
      ValueId value;
      double sign;
      bool is_reduced;
    };
    std::vector<Term> terms{{loss, 1, false}};
    for (std::size_t i = 0; i < terms.size() && terms.size() < kMaxTerms; ++i) {
      const Term term = terms[i];
      const NodeId node = expressions.producer(term.value);
      const ops::Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
      if (first == ValueId::kAbsent) continue;
      if (term.is_reduced && term.sign < 0 && !known.contains(node) && report_picked(expressions, node, out)) return;
      if (opcode == ops::Opcode::kReduceMean || opcode == ops::Opcode::kReduceSum) {
        terms.push_back({first, term.sign, true});
      } else if (ops::keeps_elements(opcode) || opcode == ops::Opcode::kCast) {
        terms.push_back({first, term.sign, term.is_reduced});
      } else if (opcode == ops::Opcode::kNeg) {
        terms.push_back({first, -term.sign, term.is_reduced});
      } else if ((opcode == ops::Opcode::kMul || opcode == ops::Opcode::kDiv) && numbered &&
                 (opcode == ops::Opcode::kMul || !numbered->is_first)) {
        terms.push_back({numbered->value, term.sign * numbered->number, term.is_reduced});
      } else if ((opcode == ops::Opcode::kAdd || opcode == ops::Opcode::kSub) && !numbered && !term.is_reduced) {
        terms.push_back({first, term.sign, false});
        terms.push_back({second, opcode == ops::Opcode::kSub ? -term.sign : term.sign, false});
      }
    }
  }

  static bool report_picked(const losses::Expressions& expressions, NodeId pick, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const auto is_label = [&](ValueId value) {
      const ValueId source = value == ValueId::kAbsent ? value : before_stretch(expressions, value);
      return source != ValueId::kAbsent && is_input(analysis, source) &&
             analysis.fact(source).dtypes.proves(DTypeSet::integers());
    };
    ValueId picked = ValueId::kAbsent;
    if (expressions.op(pick) == ops::Opcode::kGatherElements && is_label(expressions.operand(pick, 1))) {
      picked = expressions.operand(pick, 0);
    } else if (expressions.op(pick) == ops::Opcode::kMul) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const ValueId factor = expressions.operand(pick, side);
        const NodeId hot =
            factor == ValueId::kAbsent ? NodeId::kNone : expressions.producer(before_stretch(expressions, factor));
        const ValueId first = expressions.operand(hot, 0), second = expressions.operand(hot, 1);
        // One exporter compares with the numbers of the classes.
        const bool is_compared = expressions.op(hot) == ops::Opcode::kEqual &&
                                 ((is_label(first) && second != ValueId::kAbsent && is_constant(expressions, second)) ||
                                  (is_label(second) && first != ValueId::kAbsent && is_constant(expressions, first)));
        if (is_compared || (expressions.op(hot) == ops::Opcode::kOneHot && is_label(first)))
          picked = expressions.operand(pick, 1 - side);
      }
    }
    const auto softmax = picked == ValueId::kAbsent ? std::nullopt : expressions.normalised(expressions.source(picked));
    if (!softmax || softmax->logarithm || analysis.taint(picked).has(Aspect::kValue)) return false;
    const Operand shares(analysis, picked);
    out.report(pick, fmt::format("the loss is minus the mean of probabilities in {}, and not of their logarithms: it "
                                 "is flat where the model is most wrong",
                                 shares.name()))
        .note_at(softmax->node, fmt::format("{} becomes probabilities here", shares.name()))
        .fix("take the logarithm first: log_softmax");
    return true;
  }

  /// logsumexp over the classes of probabilities: between 1 and 1 + log(classes), whatever the scores are.
  static void check_sum_of_exponentials(const losses::Expressions& expressions, NodeId node, Reporter& out) {
    NodeId sum = node;
    ValueId summed = expressions.operand(node, 0);
    if (expressions.op(node) == ops::Opcode::kLog) {
      sum = expressions.producer(expressions.source(summed));
      const NodeId exponential = expressions.producer(expressions.operand(sum, 0));
      if (expressions.op(sum) != ops::Opcode::kReduceSum || expressions.op(exponential) != ops::Opcode::kExp) return;
      summed = expressions.operand(exponential, 0);
    } else if (expressions.op(node) != ops::Opcode::kReduceLogSumExp) {
      return;
    }
    if (summed == ValueId::kAbsent || expressions.analysis().taint(summed).has(Aspect::kValue)) return;
    const ValueId source = expressions.source(summed);
    const auto softmax = expressions.normalised(source);
    const auto axes = expressions.axes_of(sum);
    if (!softmax || softmax->logarithm || !axes || axes->empty() || *axes != softmax->axes) return;
    const Operand shares(expressions.analysis(), summed);
    out.report(node,
               fmt::format("{} of {}, which are probabilities: exponentials are summed of scores",
                           expressions.op(node) == ops::Opcode::kLog ? "logarithm of the summed exponentials"
                                                                     : NodeCall(expressions.analysis(), node).op_name(),
                           shares.name()))
        .note_at(softmax->node, fmt::format("{} becomes probabilities here", shares.name()))
        .fix(fmt::format("use {}", Operand(expressions.analysis(), softmax->scores).name()));
  }

  /// A softmax over the axis over which another one has normalised: shares of n add up to 1, and are all near 1 / n
  /// afterwards.
  static void check_softmax_of_shares(const losses::Expressions& expressions, NodeId node, Reporter& out) {
    const ops::Opcode opcode = expressions.op(node);
    if (opcode != ops::Opcode::kSoftmax && opcode != ops::Opcode::kLogSoftmax) return;
    ValueId value = expressions.operand(node, 0);
    for (int step = 0; step < kMaxSteps; ++step) {
      const ops::Opcode before = expressions.op_of(value);
      if (before != ops::Opcode::kIdentity && before != ops::Opcode::kDropout && before != ops::Opcode::kCast) break;
      value = expressions.operand(expressions.producer(value), 0);
    }
    const auto softmax = expressions.normalised(value);
    const auto axes = expressions.axes_of(node);
    if (!softmax || softmax->logarithm || !axes || axes->size() != 1 || *axes != softmax->axes ||
        expressions.analysis().taint(value).has(Aspect::kValue))
      return;
    const Operand shares(expressions.analysis(), value);
    out.report(node, fmt::format("{} of {}, which {} has already turned into probabilities",
                                 NodeCall(expressions.analysis(), node).op_name(), shares.name(),
                                 NodeCall(expressions.analysis(), softmax->node).op_name()))
        .note_at(softmax->node, fmt::format("{} becomes probabilities here", shares.name()))
        .fix("leave one of the two out");
  }

  /// A sigmoid of what is between 0 and 1 already: between 0.5 and 0.73 afterwards.
  static void check_sigmoid_of_shares(const losses::Expressions& expressions, NodeId node, Reporter& out) {
    if (expressions.op(node) != ops::Opcode::kSigmoid || expressions.operand(node, 0) == ValueId::kAbsent) return;
    const ValueId value = before_stretch(expressions, expressions.operand(node, 0));
    const NodeId first = expressions.producer(value);
    const auto softmax = expressions.normalised(value);
    if (expressions.op(first) != ops::Opcode::kSigmoid && (!softmax || softmax->logarithm)) return;
    if (expressions.analysis().taint(value).has(Aspect::kValue)) return;
    const Operand shares(expressions.analysis(), value);
    out.report(node, fmt::format("{} of {}, which {} has already put between 0 and 1",
                                 NodeCall(expressions.analysis(), node).op_name(), shares.name(),
                                 NodeCall(expressions.analysis(), first).op_name()))
        .note_at(first, fmt::format("{} becomes probabilities here", shares.name()))
        .fix("leave one of the two out");
  }

  static void check_scores(const losses::Expressions& expressions, const losses::LossSite& loss, ValueId scores,
                           std::string_view normaliser, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const NodeId source = normalising_node(expressions, scores);
    if (source == NodeId::kNone) {
      if (!check_share(expressions, loss, scores, normaliser, out))
        check_sign(expressions, loss, scores, normaliser, out);
      return;
    }
    const NodeCall call(analysis, source);
    // LogSoftmax is left as it is by a second one; Softmax and Sigmoid are not.
    const auto softmax = expressions.normalised(call.result());
    if (softmax ? softmax->logarithm
                : !call.is(ops::Opcode::kSigmoid) && !is_written_sigmoid(expressions, call.result()))
      return;
    const bool is_written = !softmax && !call.is(ops::Opcode::kSigmoid);
    const ValueId before = softmax ? softmax->scores : call.operand(0).value();
    const Operand prediction(analysis, scores);
    FindingBuilder finding =
        out.report(loss.anchor, fmt::format("{} applies {} to {}, which {} has already turned into probabilities",
                                            ops::to_text(loss.kind), normaliser, prediction.name(), call.op_name()));
    finding.note_at(source, fmt::format("{} becomes probabilities here", Operand(analysis, call.result()).name()));
    if (is_written) {
      finding.fix("pass the scores to the loss, without the sigmoid that is written out");
      return;
    }
    finding.fix(fmt::format("pass {} to the loss", Operand(analysis, before).name()), findings::Applicability::kUnsafe,
                scores == loss.prediction && call.operand(0).value() == before ? hand_over(analysis, loss, call)
                                                                               : std::vector<GraphEdit>{});
  }

  /// Probabilities by division: what is never negative, over its own sum.
  static bool check_share(const losses::Expressions& expressions, const losses::LossSite& loss, ValueId scores,
                          std::string_view normaliser, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    ValueId value = scores;
    constexpr int kMaxViews = 8;
    const auto moved = [&](ValueId from) {
      for (int step = 0; step < kMaxViews; ++step) {
        const ops::Opcode opcode = expressions.op_of(from);
        if (!ops::moves_elements(opcode) && opcode != ops::Opcode::kCast && opcode != ops::Opcode::kDropout) break;
        from = expressions.operand(expressions.producer(from), 0);
      }
      return from;
    };
    value = moved(value);
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) != ops::Opcode::kDiv) return false;
    const ValueId above = expressions.operand(node, 0), below = moved(expressions.operand(node, 1));
    const ops::Opcode sums = expressions.op_of(below);
    if ((sums != ops::Opcode::kReduceSum && sums != ops::Opcode::kReduceL1) ||
        moved(expressions.operand(expressions.producer(below), 0)) != moved(above))
      return false;
    if (!losses::ScoreValues(expressions).of(above).never_negative) return false;
    out.report(loss.anchor, fmt::format("{} applies {} to {}, which are probabilities already", ops::to_text(loss.kind),
                                        normaliser, Operand(analysis, scores).name()))
        .note_at(node, "divided by their sum here")
        .fix("take the logarithm of the probabilities, or pass the scores that they are made of");
    return true;
  }

  /// Scores that a hinge has just cut off at zero: no class gets a probability below the one of a score of 0, and what
  /// was cut off has no gradient.
  static void check_sign(const losses::Expressions& expressions, const losses::LossSite& loss, ValueId scores,
                         std::string_view normaliser, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    ValueId value = scores;
    constexpr int kMaxViews = 8;
    for (int step = 0; step < kMaxViews; ++step) {
      const ops::Opcode opcode = expressions.op_of(value);
      if (!ops::moves_elements(opcode) && opcode != ops::Opcode::kCast && opcode != ops::Opcode::kDropout) break;
      value = expressions.operand(expressions.producer(value), 0);
    }
    const NodeId node = expressions.producer(value);
    const ValueId before = expressions.operand(node, 0);
    const ops::Opcode opcode = expressions.op(node);
    const bool hinge =
        opcode == ops::Opcode::kClip || opcode == ops::Opcode::kMax ||
        (opcode == ops::Opcode::kOther && has_trait(expressions.entry(node), ops::OpTrait::kElementwise));
    if (!hinge || before == ValueId::kAbsent || analysis.taint(value).has(Aspect::kValue)) return;
    const Range &after = analysis.fact(value).range, &given = analysis.fact(before).range;
    if (opcode == ops::Opcode::kOther && after.lo < -0.9 && after.lo >= -1.01 && after.hi > 0.9 && after.hi <= 1.01 &&
        given.lo < -2 && given.hi > 2) {
      const NodeCall call(analysis, node);
      out.report(loss.anchor,
                 fmt::format("{} applies {} to {}, which {} keeps between -1 and 1: no class gets a high "
                             "probability",
                             ops::to_text(loss.kind), normaliser, Operand(analysis, scores).name(), call.op_name()))
          .note_at(node, "the scores are bounded here")
          .fix(fmt::format("pass {} to the loss", Operand(analysis, before).name()));
      return;
    }
    if (after.lo != 0 || !std::isinf(after.hi) || given.lo >= 0) return;
    const NodeCall call(analysis, node);
    out.report(loss.anchor,
               fmt::format("{} applies {} to {}, which {} keeps from being negative", ops::to_text(loss.kind),
                           normaliser, Operand(analysis, scores).name(), call.op_name()))
        .note_at(node, "negative scores become 0 here, and get no gradient")
        .fix(fmt::format("pass {} to the loss", Operand(analysis, before).name()));
  }

  /// One side of the loss is normalised, and what it is normalised from were probabilities already.
  static void check_twice(const losses::Expressions& expressions, const losses::LossSite& loss, ValueId side,
                          Reporter& out) {
    const auto second = expressions.normalised(expressions.source(side));
    if (!second) return;
    const NodeId first = normalising_node(expressions, second->scores);
    if (first == NodeId::kNone || !NodeCall(expressions.analysis(), first).is(ops::Opcode::kSoftmax)) return;
    const NodeCall call(expressions.analysis(), second->node), before(expressions.analysis(), first);
    out.report(second->node,
               fmt::format("{} is applied to {}, which {} has already turned into probabilities", call.op_name(),
                           Operand(expressions.analysis(), second->scores).name(), before.op_name()))
        .note_at(first,
                 fmt::format("{} becomes probabilities here", Operand(expressions.analysis(), before.result()).name()))
        .note_at(loss.anchor, fmt::format("{} gets the result here", ops::to_text(loss.kind)))
        .fix("normalise once");
  }

  /// Without the logarithm the loss is minus the probability of the right class: bounded, and flat where the model is
  /// wrong.
  static void check_logarithms(const losses::Expressions& expressions, const losses::LossSite& loss, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const NodeId source = normalising_node(expressions, loss.prediction);
    if (source == NodeId::kNone) {
      // A logarithm of a probability is never above 0.
      const NodeId producer = expressions.producer(loss.prediction);
      const losses::ScoreValues::Reach reach = losses::ScoreValues(expressions).of(loss.prediction);
      if (producer == NodeId::kNone || !reach.never_negative || reach.layer == NodeId::kNone ||
          analysis.taint(loss.prediction).has(Aspect::kValue))
        return;
      out.report(loss.anchor, fmt::format("{} takes logarithms of probabilities, and {} is never negative",
                                          ops::to_text(loss.kind), Operand(analysis, loss.prediction).name()))
          .note_at(producer, fmt::format("{} is computed here", Operand(analysis, loss.prediction).name()))
          .fix("take the logarithm first");
      return;
    }
    if (!NodeCall(analysis, source).is(ops::Opcode::kSoftmax)) return;
    const NodeCall call(analysis, source);
    out.report(loss.anchor, fmt::format("{} takes logarithms of probabilities, {} holds the probabilities",
                                        ops::to_text(loss.kind), Operand(analysis, loss.prediction).name()))
        .note_at(source, fmt::format("{} becomes probabilities here", Operand(analysis, call.result()).name()))
        .fix("use LogSoftmax instead of Softmax");
  }

  /// Without the normalising node in between; only where nothing else stands between it and the loss. A loss that is
  /// written out may read its prediction more than once: then all of it gets the scores, or nothing is offered.
  static std::vector<GraphEdit> hand_over(const dataflow::Analysis& analysis, const losses::LossSite& loss,
                                          const NodeCall& normaliser) {
    const Model& model = analysis.model();
    if (normaliser.result() != loss.prediction || model.node(loss.anchor).graph != normaliser.node().graph) return {};
    std::vector<NodeId> readers{loss.anchor};
    if (loss.evidence != losses::LossEvidence::kOperator) {
      readers.clear();
      for (const NodeId user : analysis.users(loss.prediction).first(kMaxReaders + 1))
        if (std::ranges::find(readers, user) == readers.end()) readers.push_back(user);
      const auto is_of_loss = [&](NodeId reader) { return std::ranges::binary_search(loss.nodes, reader); };
      if (readers.size() > kMaxReaders || !std::ranges::all_of(readers, is_of_loss)) return {};
    }
    std::vector<GraphEdit> edits;
    const std::string scores(model.name_of(normaliser.operand(0).value()));
    for (const NodeId reader : readers) redirect_operands(analysis, reader, loss.prediction, scores, edits);
    if (!edits.empty()) remove_with_last_readers(analysis, normaliser.id(), readers, edits);
    return edits;
  }

  /// The node that normalises what the value is a mean of: others may move its elements, drop some, clip or scale them
  /// or average them with other probabilities.
  static NodeId normalising_node(const losses::Expressions& expressions, ValueId value) {
    int left = kMaxSteps;
    return normalising_node(expressions, value, left);
  }

  static NodeId normalising_node(const losses::Expressions& expressions, ValueId value, int& left) {
    while (left-- > 0 && value != ValueId::kAbsent) {
      const NodeId node = expressions.producer(value);
      if (node == NodeId::kNone) return NodeId::kNone;
      const ops::Opcode opcode = expressions.op(node);
      const auto is_scale = [&](std::size_t side) {
        const double scale = expressions.number(expressions.operand(node, side)).value_or(0);
        return scale >= 1 / kMaxScale && scale <= kMaxScale;
      };
      if (opcode == ops::Opcode::kAdd) {
        const NodeId first = normalising_node(expressions, expressions.operand(node, 0), left);
        return first == NodeId::kNone ||
                       normalising_node(expressions, expressions.operand(node, 1), left) == NodeId::kNone
                   ? NodeId::kNone
                   : first;
      }
      if (opcode == ops::Opcode::kMul && is_scale(0)) {
        value = expressions.operand(node, 1);
        continue;
      }
      const bool scales = (opcode == ops::Opcode::kMul || opcode == ops::Opcode::kDiv) && is_scale(1);
      const bool passes = scales || moves_elements(opcode) || opcode == ops::Opcode::kCast ||
                          opcode == ops::Opcode::kDropout || opcode == ops::Opcode::kClip;
      if (!passes)
        return opcode == ops::Opcode::kSigmoid || expressions.normalised(value) ||
                       is_written_sigmoid(expressions, value)
                   ? node
                   : NodeId::kNone;
      value = expressions.operand(node, 0);
    }
    return NodeId::kNone;
  }

  /// 1 / (1 + exp(-x)) in any spelling: some value that it is computed from gives what a sigmoid of it gives.
  static bool is_written_sigmoid(const losses::Expressions& expressions, ValueId value) {
    const ops::Opcode opcode = expressions.op_of(value);
    const ops::OpEntry* entry = expressions.entry(expressions.producer(value));
    const bool may_be =
        opcode == ops::Opcode::kDiv || (opcode == ops::Opcode::kOther && has_trait(entry, ops::OpTrait::kElementwise));
    if (!may_be) return false;
    const losses::Formula formula(expressions, value);
    constexpr std::array kPoints{-2.0, 0.5, 3.0};
    constexpr double kSame = 1e-9;
    for (std::size_t i = 0; i + 1 < formula.parts().size(); ++i) {
      if (formula.parts()[i].kind == losses::Formula::PartKind::kConstant) continue;
      bool same = true;
      for (std::size_t point = 0; point < kPoints.size() && same; ++point)
        for (int variant = 0; variant < 2 && same; ++variant) {
          const losses::Formula::Assignment given[] = {{i, kPoints[point]}};
          same = std::abs(formula.evaluate(given, variant) - 1 / (1 + std::exp(-kPoints[point]))) < kSame;
        }
      if (same) return true;
    }
    return false;
  }

  static constexpr int kMaxSteps = 64;
  static constexpr std::size_t kMaxReaders = 8;  // of a prediction, within its loss
  /// Probabilities that are scaled by more are scores of their own, as with the temperature of a contrast.
  static constexpr double kMaxScale = 8;
};

const RegisterRule<ProbabilitiesIntoLogitLoss> kRegisterProbabilitiesIntoLogitLoss;

}  // namespace
}  // namespace tensorlint::rules
