#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/rules/loss/token_shift.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "base/escape.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

/// Less than any score: what is added to hide one, or put in its place.
constexpr double kHidden = -1e3;

class InvertedMask : public Rule {
 public:
  InvertedMask()
      : Rule({"TL-V529", "inverted-mask", "value", findings::Severity::kWarning,
              "a mask of attention that hides what is to be seen, and lets the rest through"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    std::vector<Triangle> future;
    std::optional<Triangles> triangles;
    bool hides_future = false;
    std::vector<Kept> kept;
    bool looked = false, has_masks = false;
    each_softmax(
        view, out, [&](const Expressions& expressions, const NodeCall& call, const losses::Normalised& softmax) {
          if (softmax.logarithm) return;
          if (!looked) {
            kept = kept_by_means(view, expressions);
            has_masks = !kept.empty() || has_named_mask(view.analysis());
          }
          looked = true;
          if (!triangles) triangles.emplace(expressions);
          const auto triangle = triangles->before(softmax);
          if (triangle && triangle->hides_row &&
              (triangle->is_infinite || (!triangle->hides_past && only_weighs(expressions, call.result())))) {
            out.report(triangle->node,
                       fmt::format("the mask hides each position from itself, and one of them sees {}",
                                   triangle->is_infinite ? "nothing: the softmax of its scores is NaN"
                                                         : "all others alike: where all scores are hidden, none is"))
                .note_at(triangle->softmax, "the scores are normalised here")
                .cause("row")
                .fix("leave the diagonal out of what is hidden: triu(ones, 1), Trilu with k = 1");
            return;
          }
          if (triangle && triangle->hides_past) future.push_back(*triangle);
          hides_future = hides_future || (triangle && !triangle->hides_past);
          if (has_masks) check_key_mask(expressions, call, softmax.scores, kept, out);
          check_steps(expressions, call, softmax.scores, out);
        });
    each_node(view, out, {Opcode::kReduceMax}, [&](const Expressions& expressions, const NodeCall& call) {
      check_steps(expressions, call, call.operand(0).value(), out);
    });
    check_means(view, out);
    // A model that reads in both directions has one of each, and one that reads from the end predicts earlier steps.
    if (hides_future || future.empty() || predicts_earlier(view, out)) return;
    for (const Triangle& triangle : future)
      out.report(triangle.node, "each position attends to the later ones alone: the mask hides the earlier ones")
          .note_at(triangle.softmax, "the scores are normalised here")
          .cause("future")
          .fix("hide the upper triangle without the diagonal, such as with torch.triu(ones, 1)");
  }

 private:
  /// The weights of a softmax, of which products with values are the only users: no row is left out later.
  static bool only_weighs(const Expressions& expressions, ValueId weights) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps && weights != ValueId::kAbsent; ++step) {
      const auto users = expressions.users(weights);
      const auto is_product = [&](NodeId user) {
        const Opcode opcode = expressions.op(user);
        return opcode == Opcode::kMatMul || opcode == Opcode::kEinsum;
      };
      if (!users.empty() && std::ranges::all_of(users, is_product)) return true;
      if (users.size() != 1) return false;
      const Opcode opcode = expressions.op(users[0]);
      if (!ops::keeps_elements(opcode) && opcode != Opcode::kDropout && opcode != Opcode::kCast) return false;
      weights = expressions.result(users[0]);
    }
    return false;
  }

  /// A softmax or a maximum, before which the steps of each sequence are hidden and what fills it up is not, or all
  /// words but one.
  static void check_steps(const Expressions& expressions, const NodeCall& call, ValueId scores, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const auto hidden = hidden_scores(expressions, scores);
    if (!hidden || !hidden->hides_true) {
      if (hidden)
        if (const auto word = is_one_word(expressions, hidden->condition);
            word && (word->number == 0 || word->number == 1))
          report_steps(
              call, *hidden,
              fmt::format("all words of {} but those that are {}", Operand(analysis, word->words).name(), word->number),
              fmt::format("hide where they are {0}: tokens == {0}", word->number), out);
      return;
    }
    const auto steps = step_mask(expressions, expressions.producer(hidden->condition));
    // A number of steps that come first may be of padding or of a prompt.
    if (steps && is_named_length(telling_name(analysis, steps->lengths)))
      report_steps(call, *hidden,
                   fmt::format("the steps before the end that {} gives", Operand(analysis, steps->lengths).name()),
                   "hide from the end on: steps >= lengths", out);
  }

  static void report_steps(const NodeCall& call, const HiddenScores& hidden, std::string_view what,
                           std::string_view cure, Reporter& out) {
    out.report(hidden.node, fmt::format("{} are hidden, and padding alone is seen", what))
        .note_at(call.id(),
                 call.is(Opcode::kReduceMax) ? "the largest is taken here" : "the scores are normalised here")
        .cause("steps")
        .fix(std::string(cure));
  }

  static bool is_named_length(std::string_view name) {
    return has_ending(name, "len") || has_ending(name, "lens") || has_ending(name, "length") ||
           has_ending(name, "lengths");
  }

  static bool predicts_earlier(const ModelView& view, Reporter& out) {
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    return std::ranges::any_of(view.losses(), [&](const losses::LossSite& loss) {
      const auto shift = step_shift(expressions, loss);
      return shift && shift->wanted < shift->seen;
    });
  }

  /// An input whose elements weigh features in a mean.
  struct Kept {
    ValueId mask;
    bool keeps_ones;
    NodeId node;
  };

  /// sum(features * mask) / sum(mask), or 1 - mask for both.
  static std::vector<Kept> kept_by_means(const ModelView& view, const Expressions& expressions,
                                         std::size_t least_rank = 2) {
    std::vector<Kept> found;
    const dataflow::Analysis& analysis = view.analysis();
    for (const NodeId node : analysis.nodes()) {
      if (expressions.op(node) != Opcode::kDiv) continue;
      ValueId below = before_stretch(expressions, expressions.operand(node, 1));
      NodeId sum = expressions.producer(below);
      if (expressions.op(sum) == Opcode::kClip || expressions.op(sum) == Opcode::kMax ||
          expressions.op(sum) == Opcode::kAdd)
        sum = expressions.producer(before_stretch(expressions, expressions.operand(sum, 0)));
      if (expressions.op(sum) != Opcode::kReduceSum || expressions.dims(expressions.result(node)).size() < least_rank)
        continue;
      const NodeId total = expressions.producer(before_stretch(expressions, expressions.operand(node, 0)));
      if (expressions.op(total) != Opcode::kReduceSum ||
          expressions.op_of(expressions.operand(total, 0)) != Opcode::kMul)
        continue;
      const auto weights = sense_of(expressions, expressions.operand(sum, 0));
      if (weights) found.push_back({weights->mask, weights->at_one > weights->at_zero, node});
    }
    return found;
  }

  /// A mean of those that a mask is to leave out.
  static void check_means(const ModelView& view, Reporter& out) {
    if (!has_named_mask(view.analysis())) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    for (const Kept& mean : kept_by_means(view, expressions, 0)) {
      const auto keeps_ones = keeps_ones_by_name(telling_name(view.analysis(), mean.mask));
      if (!keeps_ones || *keeps_ones == mean.keeps_ones) continue;
      out.report(mean.node, fmt::format("the mean takes those where {} is {}, which by that name are to be left out",
                                        Operand(view.analysis(), mean.mask).name(), mean.keeps_ones ? 1 : 0))
          .fix("weigh with the mask as it is, not with what it leaves out");
    }
  }

  struct Sense {
    ValueId mask;
    double at_zero, at_one;
  };

  /// A value as a function of the one input of zeros and ones that it has, where everything else is 0.
  static std::optional<Sense> sense_of(const Expressions& expressions, ValueId value, int depth = 0) {
    constexpr int kMaxDepth = 2;
    const dataflow::Analysis& analysis = expressions.analysis();
    const Formula formula(expressions, value);
    if (!formula.is_complete()) return std::nullopt;
    std::optional<Sense> found;
    std::vector<Formula::Assignment> zero, one;
    const auto parts = formula.parts();
    // Beside a mask of integers or one that is named so, a float input is data.
    const auto is_marked = [&](ValueId source) {
      return keeps_ones_by_name(telling_name(analysis, source)) ||
             analysis.fact(source).dtypes.proves(DTypeSet::integers());
    };
    const bool has_marked = std::ranges::any_of(parts, [&](const Formula::Part& part) {
      const ValueId source =
          part.kind == Formula::PartKind::kLeaf ? before_stretch(expressions, part.value) : ValueId::kAbsent;
      return source != ValueId::kAbsent && is_input(analysis, source) && is_marked(source);
    });
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf) continue;
      if (parts[i].value == ValueId::kAbsent) return std::nullopt;
      const ValueId source = before_stretch(expressions, parts[i].value);
      std::optional<Sense> own;
      if (is_input(analysis, source) && expressions.dims(source).size() >= 2 && (!has_marked || is_marked(source)))
        own = Sense{source, 0, 1};
      else if (expressions.op_of(parts[i].value) == Opcode::kCast && depth < kMaxDepth)  // to bool
        own = sense_of(expressions, expressions.operand(parts[i].node, 0), depth + 1);
      if (own && found) return std::nullopt;
      zero.push_back({i, own ? own->at_zero : 0});
      one.push_back({i, own ? own->at_one : 0});
      if (own) found = own;
    }
    if (!found) return std::nullopt;
    expressions.charge(4 * parts.size());
    found->at_zero = formula.evaluate(zero, 0);
    found->at_one = formula.evaluate(one, 0);
    if (std::isnan(found->at_zero) || std::isnan(found->at_one)) return std::nullopt;
    return found;
  }

  /// What a mask of that name is 1 for: what attention may see (transformers, BERT), or what it is to ignore (PyTorch).
  static std::optional<bool> keeps_ones_by_name(std::string_view name) {
    if (has_ending(name, "key_padding_mask")) return false;
    if (has_ending(name, "attention_mask") || has_ending(name, "input_mask")) return true;
    return std::nullopt;
  }

  static bool has_named_mask(const dataflow::Analysis& analysis) {
    return std::ranges::any_of(analysis.inputs(GraphId::kMain), [&](ValueId input) {
      return input != ValueId::kAbsent && keeps_ones_by_name(telling_name(analysis, input)).has_value();
    });
  }

  static void check_key_mask(const Expressions& expressions, const NodeCall& call, ValueId of,
                             const std::vector<Kept>& kept, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const auto scores = sense_of(expressions, of);
    if (!scores || std::abs(scores->at_one - scores->at_zero) < -kHidden) return;
    const bool hides_ones = scores->at_one < scores->at_zero;
    const Operand mask(analysis, scores->mask);
    const std::string hidden = fmt::format("the scores where {} is {}", mask.name(), hides_ones ? 1 : 0);
    for (const Kept& mean : Walk(std::span(kept), analysis.meter()))
      if (mean.mask == scores->mask && mean.keeps_ones == hides_ones) {
        out.report(call.id(), fmt::format("{} hides {}, and a mean takes those alone", call.op_name(), hidden))
            .cause(mask.name())
            .note_at(mean.node, "the mean is computed here")
            .fix("invert the mask in one of the two places");
        return;
      }
    const auto keeps_ones = keeps_ones_by_name(telling_name(analysis, scores->mask));
    if (!keeps_ones || *keeps_ones != hides_ones) return;
    const std::string shown = escape_for_display(analysis.model().name_of(scores->mask));
    out.report(call.id(), fmt::format("{} hides {}, which by that name are {}", call.op_name(), hidden,
                                      *keeps_ones ? "the ones to see" : "to be seen"))
        .cause(mask.name())
        .fix(*keeps_ones ? fmt::format("hide where it is 0: (1 - {}) * -10000", shown)
                         : fmt::format("hide where it is 1: {} * -10000", shown));
  }
};

const RegisterRule<InvertedMask> kRegisterInvertedMask;

}  // namespace
}  // namespace tensorlint::rules
