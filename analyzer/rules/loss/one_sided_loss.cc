#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/normal_divergence.h"
#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/reported_nodes.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"
#include "passes/losses/formula.h"
#include "passes/losses/parameters.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class OneSidedLoss : public Rule {
 public:
  OneSidedLoss()
      : Rule({"TL-L312", "one-sided-loss", "loss", findings::Severity::kWarning,
              "a loss that falls as scores grow, whatever the labels are, or as the labels get less probable"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    // Beside other numbers it may be a metric.
    if (outputs.size() != 1) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    check_divergences(expressions, outputs[0], out);
    if (check_exponent(expressions, outputs[0], out)) return;
    each_node(view, out, {Opcode::kExp},
              [&](const Expressions&, const NodeCall& call) { check_weight(expressions, call, out); });
    if (check_added_terms(expressions, outputs[0], out)) return;
    double sign = 1;
    const ValueId term = only_term(expressions, outputs[0], sign);
    if (term == ValueId::kAbsent || view.analysis().taint(term).has(Aspect::kValue)) return;
    if (sign > 0 && check_sign(expressions, term, out)) return;
    if (check_focus(expressions, term, sign, out)) return;
    check_sides(expressions, term, sign, out);
  }

 private:
  static constexpr int kMaxSteps = 24;

  /// What the output is the mean or sum of, times a number; kAbsent where several terms are added.
  static ValueId only_term(const Expressions& expressions, ValueId value, double& sign) {
    bool reduced = false;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum) {
        reduced = true;
        value = expressions.operand(node, 0);
      } else if (opcode == Opcode::kNeg) {
        sign = -sign;
        value = expressions.operand(node, 0);
      } else if (ops::keeps_elements(opcode) || opcode == Opcode::kCast) {
        value = expressions.operand(node, 0);
      } else if (numbered && numbered->number != 0 &&
                 (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !numbered->is_first))) {
        sign = numbered->number < 0 ? -sign : sign;
        value = numbered->value;
      } else if (opcode == Opcode::kDiv && !numbered && is_positive_number(expressions, expressions.operand(node, 1))) {
        value = expressions.operand(node, 0);  // by how many there are
      } else {
        return reduced ? value : ValueId::kAbsent;
      }
    }
    return ValueId::kAbsent;
  }

  static bool is_positive_number(const Expressions& expressions, ValueId value) {
    return value != ValueId::kAbsent && is_one_float(expressions.analysis(), value) &&
           expressions.analysis().fact(value).range.lo > 0;
  }

  /// The mean of the logarithms of the labels' probabilities, without the minus.
  static bool check_sign(const Expressions& expressions, ValueId term, Reporter& out) {
    const NodeId pick = expressions.producer(term);
    const Opcode opcode = expressions.op(pick);
    const dataflow::Analysis& analysis = expressions.analysis();
    ValueId logarithms = ValueId::kAbsent;
    if (opcode == Opcode::kGatherElements || opcode == Opcode::kGatherND) {
      logarithms = before_stretch(expressions, expressions.operand(pick, 0));
    } else if (opcode == Opcode::kMul) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (is_one_hot(expressions, expressions.operand(pick, side)))
          logarithms = before_stretch(expressions, expressions.operand(pick, 1 - side));
    }
    if (logarithms == ValueId::kAbsent || !is_log_probability(expressions, logarithms)) return false;
    out.report(pick,
               fmt::format("the loss is the mean of logarithms of probabilities: it falls without bound as {} get "
                           "less probable",
                           "what is picked"))
        .origin(Operand(analysis, logarithms), Aspect::kValue)
        .fix("put a minus in front of it");
    return true;
  }

  /// A function of the logarithm of the label's probability, such as a focal loss, that is less for an improbable
  /// label.
  static bool check_focus(const Expressions& expressions, ValueId term, double sign, Reporter& out) {
    const Formula formula(expressions, term);
    const auto parts = formula.parts();
    if (!formula.is_complete() || parts.size() < 3) return false;
    const auto leaf = formula.only_leaf();
    const NodeId pick = leaf && parts[*leaf].value != ValueId::kAbsent
                            ? expressions.producer(before_stretch(expressions, parts[*leaf].value))
                            : NodeId::kNone;
    if (expressions.op(pick) != Opcode::kGatherElements && expressions.op(pick) != Opcode::kGatherND) return false;
    const ValueId picked = before_stretch(expressions, expressions.operand(pick, 0));
    const auto softmax = expressions.normalised(picked);
    const bool is_logarithm = is_log_probability(expressions, picked);
    if (!is_logarithm && (!softmax || softmax->logarithm)) return false;
    const auto at = [&](double logarithm) {
      const double given = is_logarithm ? logarithm : std::exp(logarithm);
      return sign * formula.evaluate(std::array{Formula::Assignment{*leaf, given}}, 0);
    };
    constexpr double kImprobable = -8, kUnsure = -1, kSure = -0.05, kLess = 1e-2;
    if (!(at(kImprobable) < std::max(at(kUnsure), at(kSure)) - kLess)) return false;
    out.report(expressions.producer(term),
               "the loss is less for a label of next to no probability than for a likely one")
        .note_at(pick, "the label's probability is taken here")
        .fix("weigh what is not probable: -(1 - p)^gamma * log(p)");
    return true;
  }

  /// Terms that are added up with a plus, and are to have a minus.
  static bool check_added_terms(const Expressions& expressions, ValueId loss, Reporter& out) {
    for (const LossTerm& term : loss_terms(expressions, loss).terms) {
      if (!(term.factor > 0) || term.value == loss) continue;
      const NodeId node = expressions.producer(term.value);
      if (check_shares(expressions, node, out) || check_logarithm_of_sigmoid(expressions, node, out)) return true;
    }
    return false;
  }

  /// It falls without bound as the score falls. The logarithm of one minus a sigmoid is what a generator lowers.
  static bool check_logarithm_of_sigmoid(const Expressions& expressions, NodeId node, Reporter& out) {
    const Opcode opcode = expressions.op(node);
    if (opcode != Opcode::kLogSigmoid && opcode != Opcode::kLog) return false;
    const NodeId sigmoid = opcode == Opcode::kLogSigmoid
                               ? node
                               : expressions.producer(before_guard(expressions, expressions.operand(node, 0)));
    if (opcode == Opcode::kLog && expressions.op(sigmoid) != Opcode::kSigmoid) return false;
    const ValueId score = expressions.operand(sigmoid, 0);
    if (score == ValueId::kAbsent || expressions.op_of(before_stretch(expressions, score)) == Opcode::kNeg ||
        !out.shared<losses::Parameters>().reach(score))
      return false;
    out.report(node, fmt::format("the logarithm of a probability is added to the loss, which falls without bound as {} "
                                 "falls",
                                 Operand(expressions.analysis(), score).name()))
        .note_at(sigmoid, "the probability is computed here")
        .fix("put a minus in front of it: -log(p)");
    return true;
  }

  /// q * log(p). Of p and its own logarithm it is what an entropy is raised with.
  static bool check_shares(const Expressions& expressions, NodeId product, Reporter& out) {
    if (expressions.op(product) != Opcode::kMul) return false;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId shares = expressions.operand(product, side), logarithms = expressions.operand(product, 1 - side);
      if (shares == ValueId::kAbsent || logarithms == ValueId::kAbsent) continue;
      const auto p = expressions.normalised(before_stretch(expressions, logarithms)),
                 q = expressions.normalised(before_stretch(expressions, shares));
      if (!p || !q || !p->logarithm || q->logarithm || p->scores == q->scores ||
          are_computed_alike(expressions, p->scores, q->scores) || !out.shared<losses::Parameters>().reach(p->scores))
        continue;
      out.report(product,
                 fmt::format("a cross-entropy without its minus: the loss falls without bound as {} gives less "
                             "to what {} holds for likely",
                             Operand(expressions.analysis(), p->scores).name(),
                             Operand(expressions.analysis(), q->scores).name()))
          .note_at(p->node, "the logarithms are computed here")
          .fix("put a minus in front of it: -(q * log_p).sum(-1)");
      return true;
    }
    return false;
  }

  static bool is_log_probability(const Expressions& expressions, ValueId logarithms) {
    const auto softmax = expressions.normalised(logarithms);
    if (softmax) return softmax->logarithm;
    const NodeId log = expressions.producer(logarithms);
    if (expressions.op(log) != Opcode::kLog) return false;
    const auto inner = expressions.normalised(before_stretch(expressions, expressions.operand(log, 0)));
    return inner && !inner->logarithm;
  }

  static bool is_one_hot(const Expressions& expressions, ValueId value) {
    const Opcode opcode = expressions.op_of(before_stretch(expressions, value));
    return opcode == Opcode::kOneHot || opcode == Opcode::kEqual;
  }

  /// Terms that are added up, each with its sign: the divergence of a normal distribution from the standard one, of
  /// its mean and the logarithm of its variance, is to fall.
  static void check_divergences(const Expressions& expressions, ValueId loss, Reporter& out) {
    for (const auto& [value, sign] : terms_of(expressions, loss)) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (check_clipped(expressions, node, sign, out)) return;
      if (opcode != Opcode::kReduceMean && opcode != Opcode::kReduceSum) continue;
      if (normal_divergence(expressions, expressions.operand(node, 0)).value_or(0) * sign > 0) {
        report_divergence(expressions, node, out);
        return;
      }
    }
  }

  struct Term {
    ValueId value;
    double sign;
  };

  /// What a loss is, and all that is added up to it, summed, scaled and divided, each with its sign.
  static std::vector<Term> terms_of(const Expressions& expressions, ValueId loss) {
    constexpr std::size_t kMaxTerms = 16;
    std::vector<Term> terms{{loss, 1}};
    for (std::size_t i = 0; i < terms.size() && terms.size() < kMaxTerms; ++i) {
      const auto [value, sign] = terms[i];
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum) {
        terms.push_back({first, sign});
      } else if (ops::keeps_elements(opcode) || opcode == Opcode::kCast) {
        terms.push_back({first, sign});
      } else if (opcode == Opcode::kNeg) {
        terms.push_back({first, -sign});
      } else if ((opcode == Opcode::kMul || opcode == Opcode::kDiv) && numbered &&
                 (opcode == Opcode::kMul || !numbered->is_first)) {
        terms.push_back({numbered->value, numbered->number < 0 ? -sign : numbered->number > 0 ? sign : 0});
      } else if (opcode == Opcode::kDiv) {
        terms.push_back({first, sign});  // by the number of samples, whatever it is
      } else if (opcode == Opcode::kMul && first != ValueId::kAbsent && second != ValueId::kAbsent) {
        // Some are left out: the others are there with the same sign.
        if (is_mask(expressions, second)) terms.push_back({first, sign});
        if (is_mask(expressions, first)) terms.push_back({second, sign});
      } else if (opcode == Opcode::kWhere) {
        const ValueId third = expressions.operand(node, 2);
        if (expressions.is_number(third, 0)) terms.push_back({second, sign});
        if (expressions.is_number(second, 0)) terms.push_back({third, sign});
      } else if (opcode == Opcode::kAdd || opcode == Opcode::kSub) {
        terms.push_back({first, sign});
        terms.push_back({second, opcode == Opcode::kSub ? -sign : sign});
      }
    }
    return terms;
  }

  /// exp(s) * error + s: both fall with s, which is a logarithm of a precision in one of them, of a variance in the
  /// other.
  static bool check_exponent(const Expressions& expressions, ValueId loss, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const std::vector<Term> terms = terms_of(expressions, loss);
    for (const Term& weighed : terms) {
      const NodeId product = expressions.producer(weighed.value);
      if (expressions.op(product) != Opcode::kMul || weighed.sign == 0) continue;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        double scale_of_weight = 1;
        const NodeId weight =
            expressions.producer(before_signed_scale(expressions, expressions.operand(product, side), scale_of_weight));
        if (expressions.op(weight) != Opcode::kExp || scale_of_weight < 0 ||
            !is_never_negative(expressions, expressions.operand(product, 1 - side)))
          continue;
        double sign = weighed.sign;
        const ValueId exponent = before_signed_scale(expressions, expressions.operand(weight, 0), sign);
        const auto is_it = [&](const Term& term) {
          return term.sign * sign > 0 && term.sign * weighed.sign > 0 &&
                 before_stretch(expressions, term.value) == exponent;
        };
        // Of two such errors one may have what holds the other one.
        const auto is_rest = [&](const Term& term) {
          return term.sign * sign < 0 && term.sign * weighed.sign != 0 &&
                 before_stretch(expressions, term.value) == exponent;
        };
        if (exponent == ValueId::kAbsent || is_computed_number(expressions, exponent) ||
            std::ranges::none_of(terms, is_it) || std::ranges::any_of(terms, is_rest) ||
            is_held(expressions, expressions.operand(weight, 0), weighed.sign))
          continue;
        const Operand scale(analysis, exponent);
        const std::string_view way = weighed.sign > 0 ? "falls" : "rises";
        out.report(product,
                   fmt::format("the loss falls without bound as {} {}, and the weight of {} {} with it", scale.name(),
                               way, Operand(analysis, expressions.operand(product, 1 - side)).name(), way))
            .note_at(weight, "the weight is computed here")
            .fix("weigh the error with the inverse of the variance: exp(-s) * error + s");
        return true;
      }
    }
    return false;
  }

  struct Bounds {
    double lo = -HUGE_VAL, hi = HUGE_VAL;
  };

  /// What the operator itself keeps its result within. The range of a value may be that of a parameter, as it is now.
  static Bounds bounds_of(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(value);
    const auto numbered = with_number(expressions, node);
    switch (expressions.op(node)) {
      case Opcode::kReduceL1:
      case Opcode::kReduceL2:
      case Opcode::kReduceSumSquare:
        return {0, HUGE_VAL};
      case Opcode::kSoftmax:
        return {0, 1};
      case Opcode::kMax:
        return numbered ? Bounds{numbered->number, HUGE_VAL} : Bounds{};
      case Opcode::kMin:
        return numbered ? Bounds{-HUGE_VAL, numbered->number} : Bounds{};
      case Opcode::kClip: {
        const auto number = [&](std::size_t i) -> std::optional<double> {
          const ValueId bound = expressions.operand(node, i);
          return bound == ValueId::kAbsent ? std::nullopt : expressions.number(bound);
        };
        return {number(1).value_or(-HUGE_VAL), number(2).value_or(HUGE_VAL)};
      }
      default:
        break;
    }
    if (expressions.square_base(value) != ValueId::kAbsent) return {0, HUGE_VAL};
    return node == NodeId::kNone ? Bounds{} : bounds_of_function(expressions, node);
  }

  /// Of a function of one number, such as a sigmoid: where it no longer falls or rises far from 0.
  static Bounds bounds_of_function(const Expressions& expressions, NodeId node) {
    const ops::ElementValue element = dataflow::element_function(expressions.analysis(), node, 1);
    if (element == nullptr) return {};
    expressions.charge(16);
    const auto at = [&](double number) { return element({std::array{number}, {}}); };
    constexpr double kRounding = 1e-6;
    Bounds near{HUGE_VAL, -HUGE_VAL};
    for (const double number : {-100.0, -10.0, -1.0, 0.0, 1.0, 10.0, 100.0}) {
      const double result = at(number);
      if (std::isnan(result)) return {};
      near.lo = std::fmin(near.lo, result);
      near.hi = std::fmax(near.hi, result);
    }
    const double left = at(-1e6), right = at(1e6);
    if (std::isnan(left) || std::isnan(right)) return {};
    return {std::fmin(left, right) < near.lo - kRounding ? -HUGE_VAL : near.lo,
            std::fmax(left, right) > near.hi + kRounding ? HUGE_VAL : near.hi};
  }

  /// The exponent of a weight ends on the side where the loss falls, before the weight is nothing: exp(relu(u)) is 1 at
  /// least. What keeps a logarithm from overflow ends far out, and holds nothing.
  static bool is_held(const Expressions& expressions, ValueId exponent, double sign) {
    constexpr double kFarOut = 2.5;  // a weight of 0.08
    double scale = 1, offset = 0;
    bool summed = false;
    ValueId value = exponent;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const Bounds bounds = bounds_of(expressions, value);
      const double end = sign * scale > 0 ? bounds.lo : bounds.hi;
      if (std::isfinite(end)) {
        // A sum of so many is 0 at the end if each is.
        if (summed && sign * end * scale < 0) return false;
        return sign * (end * scale + offset) >= -kFarOut;
      }
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kNeg) {
        scale = -scale;
        value = expressions.operand(node, 0);
      } else if (numbered && numbered->number != 0 &&
                 (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !numbered->is_first))) {
        scale *= opcode == Opcode::kMul ? numbered->number : 1 / numbered->number;
        value = numbered->value;
      } else if (numbered && !summed && (opcode == Opcode::kAdd || opcode == Opcode::kSub)) {
        const bool turned = opcode == Opcode::kSub && numbered->is_first;
        offset += (opcode == Opcode::kSub && !turned ? -scale : scale) * numbered->number;
        scale = turned ? -scale : scale;
        value = numbered->value;
      } else if (opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum || ops::picks_elements(opcode) ||
                 opcode == Opcode::kCast) {
        summed = summed || opcode == Opcode::kReduceSum;
        value = expressions.operand(node, 0);
      } else {
        return false;
      }
    }
    return false;
  }

  /// A number of the program, and no parameter.
  static bool is_computed_number(const Expressions& expressions, ValueId value) {
    return expressions.number(value) && expressions.producer(value) != NodeId::kNone;
  }

  /// Before numbers that it is multiplied with or divided by; `sign` changes with theirs.
  static ValueId before_signed_scale(const Expressions& expressions, ValueId value, double& sign) {
    for (int step = 0; step < kMaxSteps; ++step) {
      value = before_stretch(expressions, value);
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kNeg) {
        sign = -sign;
        value = expressions.operand(node, 0);
      } else if (numbered && numbered->number != 0 &&
                 (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !numbered->is_first))) {
        sign = numbered->number < 0 ? -sign : sign;
        value = numbered->value;
      } else {
        break;
      }
    }
    return value;
  }

  /// The smaller one of ratio * advantage and bounded ratio * advantage is to rise: as a loss, it has a minus in front,
  /// or it is the larger one of products that have theirs.
  static bool check_clipped(const Expressions& expressions, NodeId node, double sign, Reporter& out) {
    const Opcode opcode = expressions.op(node);
    if ((opcode != Opcode::kMin && opcode != Opcode::kMax) || (sign < 0) == (opcode == Opcode::kMin) || sign == 0)
      return false;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const NodeId free = expressions.producer(expressions.operand(node, side)),
                   bounded = expressions.producer(expressions.operand(node, 1 - side));
      if (expressions.op(free) != Opcode::kMul || expressions.op(bounded) != Opcode::kMul) continue;
      for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
        for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
          const ValueId ratio = expressions.operand(free, i), advantage = expressions.operand(free, 1 - i);
          const NodeId clip = expressions.producer(expressions.operand(bounded, k));
          if (expressions.op(clip) != Opcode::kClip || expressions.operand(clip, 0) != ratio ||
              !are_computed_alike(expressions, advantage, expressions.operand(bounded, 1 - k)))
            continue;
          const Range& range = expressions.analysis().fact(expressions.operand(bounded, k)).range;
          if (!(range.lo > 0 && range.lo < 1 && range.hi > 1 && range.hi < 10)) return false;
          const std::string_view right = opcode == Opcode::kMin ? "larger" : "smaller";
          out.report(node,
                     fmt::format("{} takes the {} one of the bounded and the free objective, and the loss {} with "
                                 "it: nothing bounds the ratio {}",
                                 NodeCall(expressions.analysis(), node).op_name(),
                                 opcode == Opcode::kMin ? "smaller" : "larger", sign < 0 ? "falls" : "rises",
                                 Operand(expressions.analysis(), ratio).name()))
              .note_at(clip, "the ratio is bounded here")
              .fix(opcode == Opcode::kMin ? "put a minus in front: -min(ratio * A, clip(ratio) * A)"
                                          : fmt::format("take the {} one: -min(ratio * A, clip(ratio) * A)", right));
          return true;
        }
    }
    return false;
  }

  /// exp(-s) * error - s, of a weight that is learnt: less the more the error is left out.
  static void check_weight(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    for (const NodeId product : expressions.users(call.result())) {
      if (expressions.op(product) != Opcode::kMul) continue;
      const ValueId weighed = expressions.result(product);
      for (const NodeId difference : expressions.users(weighed)) {
        if (expressions.op(difference) != Opcode::kSub || expressions.operand(difference, 0) != weighed ||
            analysis.fact(weighed).range.lo < 0 ||
            !is_minus(expressions, call.operand(0).value(), expressions.operand(difference, 1)))
          continue;
        out.report(difference,
                   fmt::format("the loss falls without bound as {} rises, which takes the weight of {} to 0",
                               Operand(analysis, expressions.operand(difference, 1)).name(),
                               Operand(analysis, expressions.beside(product, call.result())).name()))
            .note_at(call.id(), "the weight is computed here")
            .fix("add what a small weight costs: exp(-s) * error + s");
        return;
      }
    }
  }

  /// b = -a: computed, or as two constants of more than one element, which a parameter and its negative are exported
  /// as.
  static bool is_minus(const Expressions& expressions, ValueId a, ValueId b) {
    if (a == ValueId::kAbsent || b == ValueId::kAbsent) return false;
    const NodeId minus = expressions.producer(a);
    if (expressions.op(minus) == Opcode::kNeg) return expressions.operand(minus, 0) == b;
    const auto x = constant_numbers(expressions, a), y = constant_numbers(expressions, b);
    return x && y && x->size() > 1 && std::ranges::equal(*x, *y, [](double p, double q) { return p == -q; });
  }

  static void report_divergence(const Expressions& expressions, NodeId reduction, Reporter& out) {
    out.report(reduction,
               fmt::format("the loss falls without bound as {} falls, which is a divergence with the wrong sign",
                           Operand(expressions.analysis(), expressions.operand(reduction, 0)).name()))
        .fix(
            "a divergence from the standard normal distribution is -0.5 * (1 + logvar - mu^2 - exp(logvar)): put the "
            "minus in front of it");
  }

  /// A second score that only ever lowers an error as it moves in one direction: a variance that nothing holds.
  static void check_scale(const Expressions& expressions, const Formula& formula, std::size_t label,
                          std::span<const std::size_t> scores, double sign, NodeId term, Reporter& out) {
    constexpr std::array kLabels{-2.0, -0.6, 0.3, 1.7};
    constexpr std::array kScores{-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0};
    for (const std::size_t free : {std::size_t{0}, std::size_t{1}}) {
      const auto at = [&](double y, double a, double s) {
        const Formula::Assignment given[] = {{label, y}, {scores[1 - free], a}, {scores[free], s}};
        return sign * formula.evaluate(given, 0);
      };
      bool is_error = true, falls = true, rises = true;
      for (const double y : kLabels) {
        // With the other one it is an error, least where that is the label.
        is_error = is_error && at(y, y, 0) < at(y, y + 1.3, 0) - 1e-3 && at(y, y, 0) < at(y, y - 1.3, 0) - 1e-3;
        for (const double off : {-2.5, -0.7, 0.9, 3.0})
          for (std::size_t i = 1; i < kScores.size(); ++i) {
            const double step = at(y, y + off, kScores[i]) - at(y, y + off, kScores[i - 1]);
            if (!std::isfinite(step)) return;
            falls = falls && step < -1e-6;
            rises = rises && step > 1e-6;
          }
      }
      if (!is_error || falls == rises) continue;
      const Operand score(expressions.analysis(), formula.parts()[scores[free]].value);
      out.shared<ReportedNodes>().add("TL-L312", term);
      out.report(term, fmt::format("the loss falls as {} {}, whatever the error is: nothing holds it", score.name(),
                                   falls ? "rises" : "falls"))
          .origin(score, Aspect::kValue)
          .fix(falls ? "add what a larger variance costs: error^2 / exp(logvar) + logvar, with a plus"
                     : "weigh the error with the inverse of the variance: error^2 / variance + log(variance)");
      return;
    }
  }

  /// The label as it meets the scores: its logarithm, or less its mean, if that is the one place where they meet.
  static std::size_t compared_label(const Formula& formula, std::size_t label, std::span<const std::size_t> scores) {
    const auto parts = formula.parts();
    const auto is_data = [&](std::size_t part) {
      return formula.depends(part, label) &&
             std::ranges::none_of(scores, [&](std::size_t score) { return formula.depends(part, score); });
    };
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (is_data(i)) continue;
      for (const std::uint32_t operand : parts[i].operands) {
        if (operand == Formula::kNoPart || !is_data(operand)) continue;
        if (found && *found != operand) return label;
        found = operand;
      }
    }
    return found.value_or(label);
  }

  /// One element as a function of a label and of a score, which falls in one direction for each label.
  static void check_sides(const Expressions& expressions, ValueId term, double sign, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const Formula formula(expressions, term);
    if (!formula.is_complete()) return;
    losses::ScoreValues scores(expressions);
    std::optional<std::size_t> label, score;
    std::vector<std::size_t> free;
    NodeId layer = NodeId::kNone;
    const auto parts = formula.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf) continue;
      if (parts[i].value == ValueId::kAbsent) return;
      const ValueId from = before_stretch(expressions, parts[i].value);
      if (is_input(analysis, from)) {
        if (label) return;
        label = i;
      } else if (const NodeId found = scores.layer_of(from); found != NodeId::kNone) {
        free.push_back(i);
        score = i;
        layer = found;
      } else {
        return;
      }
    }
    if (!label || !score || free.size() > 2) return;
    if (free.size() == 2) {
      check_scale(expressions, formula, compared_label(formula, *label, free), free, sign, expressions.producer(term),
                  out);
      return;
    }
    const auto at = [&](double y, double s) {
      const Formula::Assignment given[] = {{*label, y}, {*score, s}};
      return sign * formula.evaluate(given, 0);
    };
    constexpr std::array kScores{-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0};
    enum Way { kFalls, kRises, kSame, kNeither };
    const auto way = [&](double y) {
      bool falls = true, rises = true;
      for (std::size_t i = 1; i < kScores.size(); ++i) {
        const double before = at(y, kScores[i - 1]), after = at(y, kScores[i]);
        if (!std::isfinite(before) || !std::isfinite(after)) return kNeither;
        falls = falls && after <= before + 1e-9;
        rises = rises && after >= before - 1e-9;
      }
      const bool moves = std::abs(at(y, kScores.front()) - at(y, kScores.back())) > 1;
      return falls && rises ? kSame : !moves ? kNeither : falls ? kFalls : rises ? kRises : kNeither;
    };
    // Towards its lower end a logarithm of a probability comes to 0; what goes on falling is a difference of scores.
    const auto ends = [&](double y, double s) { return std::abs(at(y, s) - at(y, s + (s < 0 ? -4 : 4))) < 1e-2; };
    const Way yes = way(1), no = way(0), minus = way(-1);
    const std::string name = Operand(analysis, parts[*score].value).name(),
                      labels = Operand(analysis, before_stretch(expressions, parts[*label].value)).name();
    const auto report = [&](std::string situation, std::string_view cure) {
      out.report(expressions.producer(term), std::move(situation))
          .note_at(layer, fmt::format("{} may have any value", name))
          .fix(std::string(cure));
    };
    if (yes == kRises && no == kFalls && ends(1, 8) && ends(0, -8) && !ends(1, -8) && !ends(0, 8)) {
      report(
          fmt::format("the loss falls without bound as {} rises where {} is 0, and falls where it is 1", name, labels),
          "put a minus in front of it");
      return;
    }
    // Least where the score is right, and where it is as wrong as can be.
    const auto is_least_at_both_ends = [&](double y) {
      const double low = at(y, -8), high = at(y, 8), middle = std::max(at(y, y > 0 ? -1 : 1), at(y, 0));
      return middle > 0.01 && std::isfinite(low) && std::isfinite(high) && low >= 0 && high >= 0 &&
             std::max(low, high) < 0.1 * middle && std::abs(at(y, 2) - at(y, -2)) > 0.1 * middle;
    };
    if (is_least_at_both_ends(1) && is_least_at_both_ends(0)) {
      report(fmt::format("the loss falls to 0 as {} gets as wrong as can be: what is most wrong costs least", name),
             "weigh the logarithm of p with (1 - p)^gamma, and that of 1 - p with p^gamma");
      return;
    }
    const bool positive_alone = yes == kFalls && no == kSame && ends(1, 8) && !ends(1, -8),
               negative_alone = no == kRises && yes == kSame && ends(0, -8) && !ends(0, 8);
    // Anything but integers may be a weight or a mask, as of what a generator is judged by.
    const bool is_class =
        analysis.fact(before_stretch(expressions, parts[*label].value)).dtypes.proves(DTypeSet::integers());
    if ((!positive_alone && !negative_alone) || !is_class) return;
    // Labels of -1 and 1.
    if (minus == kRises && ends(-1, -8)) return;
    report(fmt::format("the loss only {} as {} rises: nothing holds the scores {} where {} is {}",
                       positive_alone ? "falls" : "rises", name, positive_alone ? "down" : "up", labels,
                       positive_alone ? 0 : 1),
           !has_logarithm(expressions, formula)
               ? "add the term of the other label, with the sign of the score changed, or make the labels -1 and 1"
           : positive_alone ? "add the term of the other label: (1 - y) * log(1 - p)"
                            : "add the term of the other label: y * log(p)");
  }

  /// Of a probability; a softplus is one of a sigmoid.
  static bool has_logarithm(const Expressions& expressions, const Formula& formula) {
    return std::ranges::any_of(formula.parts(), [&](const Formula::Part& part) {
      const Opcode opcode = expressions.op(part.node);
      return opcode == Opcode::kLog || opcode == Opcode::kLogSigmoid || opcode == Opcode::kSoftplus;
    });
  }
};

const RegisterRule<OneSidedLoss> kRegisterOneSidedLoss;

}  // namespace
}  // namespace tensorlint::rules
