#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

class ProbabilityOutOfRange : public Rule {
 public:
  ProbabilityOutOfRange()
      : Rule({"TL-V503", "probability-out-of-range", "value", findings::Severity::kError,
              "a loss of probabilities that gets values below 0 or above 1"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (loss.kind == ops::LossKind::kBinaryCrossEntropy) check_prediction(analysis, loss, out);
    const bool binary = loss.kind == ops::LossKind::kBinaryCrossEntropy ||
                        loss.kind == ops::LossKind::kBinaryCrossEntropyWithLogits ||
                        loss.kind == ops::LossKind::kBinaryFocal;
    if (binary || ops::takes_class_indices(loss.kind) || loss.kind == ops::LossKind::kKlDivergence)
      check_target(analysis, loss, binary, out);
  }

 private:
  /// Labels that are smoothed, shifted or scaled to what no probability is.
  static void check_target(const dataflow::Analysis& analysis, const losses::LossSite& loss, bool binary,
                           Reporter& out) {
    const Operand target(analysis, loss.target);
    if (!target.present() || target.taint().has(Aspect::kValue) || !target.fact().dtypes.proves(DTypeSet::floats()))
      return;
    const losses::Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    if (binary && (check_chosen(expressions, loss, out) || check_bounds(expressions, loss, out))) return;
    const losses::Formula formula(expressions, loss.target);
    const auto parts = formula.parts();
    std::optional<std::size_t> label;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != losses::Formula::PartKind::kLeaf) continue;
      if (label || parts[i].value == ValueId::kAbsent) return;
      label = i;
    }
    if (!label) return;
    const bool as_they_are = *label + 1 == parts.size();
    const auto at = [&](double number) {
      const losses::Formula::Assignment given[] = {{*label, number}};
      return formula.evaluate(given, 0);
    };
    const auto row = one_hot_row(expressions, parts[*label].value);
    if (as_they_are && (binary || !row)) return;
    const auto say = [&](std::string situation) {
      out.report(
             findings::Severity::kWarning, loss.anchor,
             fmt::format("{} takes probabilities as targets, {} {}", ops::to_text(loss.kind), target.name(), situation))
          .origin(target, Aspect::kValue)
          .fix("make the labels probabilities: between 0 and 1, and 1 in sum over the classes");
    };
    constexpr double kOff = 1e-4;
    if (row && !binary) {
      // A factor alone is a weight; more than 1 is no smoothing that rounds.
      const double rest = at(row->elsewhere), chosen = at(row->at_class),
                   sum = chosen + static_cast<double>(row->classes - 1) * rest;
      if (as_they_are && chosen < rest)
        say(fmt::format("has {:.4g} for the class and {:.4g} for the others, which are the ones that are trained",
                        chosen, rest));
      else if (rest > kOff && sum > 1.01)
        say(fmt::format("has {:.4g} for a class and {:.4g} for the others: {:.4g} in sum", chosen, rest, sum));
      return;
    }
    if (!binary) return;
    const Value& known = analysis.model().value(parts[*label].value);
    const bool is_input = known.origin == ValueOrigin::kInput && known.graph == GraphId::kMain;
    const bool is_truth = row || analysis.fact(parts[*label].value).dtypes.proves(DTypeSet(DType::kBool)) ||
                          analysis.fact(parts[*label].value).range == Range{0, 1, false};
    if (!is_input && !is_truth) return;
    // What labels are counted as; one that fits is taken to be meant.
    struct Labels {
      double no, yes;
    };
    constexpr Labels kCustoms[] = {{0, 1}, {-1, 1}, {1, 2}, {0, 255}, {0, 100}, {0.1, 0.9}};
    const auto fits = [&](const Labels& labels) {
      const double no = at(labels.no), yes = at(labels.yes);
      return std::min(no, yes) >= -kOff && std::max(no, yes) <= 1 + kOff;
    };
    const double no = at(0), yes = at(1);
    // Without an offset it is a weight.
    if (!std::isfinite(no) || !std::isfinite(yes) || std::abs(no) < kOff || no == yes) return;
    if (is_truth ? fits(kCustoms[0]) : std::ranges::any_of(kCustoms, fits)) return;
    say(fmt::format("has {:.4g} for 0 and {:.4g} for 1", no, yes));
  }

  /// One of two numbers, such as 0 and 255, which a picture of bytes has.
  static bool check_chosen(const losses::Expressions& expressions, const losses::LossSite& loss, Reporter& out) {
    const NodeId choice = expressions.producer(expressions.source(loss.target));
    if (expressions.op(choice) != ops::Opcode::kWhere) return false;
    const auto yes = expressions.number(expressions.operand(choice, 1)),
               no = expressions.number(expressions.operand(choice, 2));
    constexpr double kNoProbability = 1.5;
    if (!yes || !no || std::min(*yes, *no) != 0 || std::max(*yes, *no) < kNoProbability) return false;
    const Operand target(expressions.analysis(), loss.target);
    out.report(findings::Severity::kWarning, loss.anchor,
               fmt::format("{} takes probabilities as targets, {} is {:.4g} or {:.4g}", ops::to_text(loss.kind),
                           target.name(), *no, *yes))
        .origin(target, Aspect::kValue)
        .fix("make the labels probabilities: between 0 and 1, and 1 in sum over the classes");
    return true;
  }

  /// Numbers from 1 to 5, to which the program itself has brought what it was given.
  static bool check_bounds(const losses::Expressions& expressions, const losses::LossSite& loss, Reporter& out) {
    const Operand target(expressions.analysis(), loss.target);
    const Range& range = target.fact().range;
    constexpr double kOff = 1e-2, kLarge = 1e9;
    if (!std::isfinite(range.lo) || !std::isfinite(range.hi) || range.lo > range.hi ||
        (range.lo >= -kOff && range.hi <= 1 + kOff))
      return false;
    const losses::Formula formula(expressions, loss.target);
    const auto parts = formula.parts();
    std::optional<std::size_t> given;
    bool is_bounded = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const ops::Opcode opcode = expressions.op(parts[i].node);
      is_bounded = is_bounded || opcode == ops::Opcode::kClip || opcode == ops::Opcode::kMin;
      if (parts[i].kind != losses::Formula::PartKind::kLeaf) continue;
      if (given || parts[i].value == ValueId::kAbsent) return false;
      given = i;
    }
    if (!given || !is_bounded) return false;
    const auto at = [&](double number) {
      const losses::Formula::Assignment assigned[] = {{*given, number}};
      return formula.evaluate(assigned, 0);
    };
    // Both bounds are reached, and one of them is no probability.
    const double low = std::min(at(-kLarge), at(kLarge)), high = std::max(at(-kLarge), at(kLarge));
    if (!(low < high) || std::abs(low - range.lo) > kOff || std::abs(high - range.hi) > kOff) return false;
    out.report(findings::Severity::kWarning, loss.anchor,
               fmt::format("{} takes probabilities as targets, {} is in {}", ops::to_text(loss.kind), target.name(),
                           range.to_text()))
        .origin(target, Aspect::kValue)
        .fix(low == 0
                 ? fmt::format("divide the targets by {:.4g}", high)
                 : fmt::format("scale the targets to [0, 1]: subtract {:.4g} and divide by {:.4g}", low, high - low));
    return true;
  }

  /// What a row of class labels has at the class and elsewhere: OneHot, labels compared with 0, 1, 2, ..., and numbers
  /// that are put into a table of one other number.
  struct OneHotRow {
    double at_class, elsewhere;
    std::int64_t classes;
  };

  static std::optional<OneHotRow> one_hot_row(const losses::Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const DimPool& pool = analysis.facts().dims();
    value = expressions.source(value);
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) == ops::Opcode::kOneHot) {
      const Content* depth = analysis.content(expressions.operand(node, 1));
      if (depth == nullptr || depth->integers.size() != 1) return std::nullopt;
      const auto classes = pool.as_constant(depth->integers[0]);
      const auto values = constant_numbers(expressions, expressions.operand(node, 2));
      if (!classes) return std::nullopt;
      return values && values->size() == 2 ? OneHotRow{(*values)[1], (*values)[0], *classes}
                                           : OneHotRow{1, 0, *classes};
    }
    if (is_scatter(expressions, node)) {
      const auto fill = only_number(expressions, expressions.operand(node, 0)),
                 put = only_number(expressions, expressions.operand(node, 2));
      const auto indices = expressions.dims(expressions.operand(node, 1)), table = expressions.dims(value);
      // One class in each row.
      if (!fill || !put || indices.size() < 2 || table.size() != indices.size() || !pool.is_constant(indices.back(), 1))
        return std::nullopt;
      const auto classes = pool.as_constant(table.back());
      return classes ? std::optional(OneHotRow{*put, *fill, *classes}) : std::nullopt;
    }
    if (expressions.op(node) != ops::Opcode::kEqual) return std::nullopt;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId numbers = expressions.operand(node, side);
      if (numbers == ValueId::kAbsent) continue;
      const Content* content = analysis.content(numbers);
      if (content == nullptr || content->integers.size() < 2) continue;
      const auto& integers = content->integers;
      bool counts = true;
      for (std::size_t i = 0; i < integers.size(); ++i)
        counts = counts && pool.is_constant(integers[i], static_cast<std::int64_t>(i));
      if (counts) return OneHotRow{1, 0, static_cast<std::int64_t>(integers.size())};
    }
    return std::nullopt;
  }

  static std::optional<double> only_number(const losses::Expressions& expressions, ValueId value) {
    if (const auto number = number_of(Operand(expressions.analysis(), value))) return number;
    const auto numbers = constant_numbers(expressions, value);
    if (!numbers || numbers->empty() || std::ranges::count(*numbers, numbers->front()) != std::ssize(*numbers))
      return std::nullopt;
    return numbers->front();
  }

  static bool is_scatter(const losses::Expressions& expressions, NodeId node) {
    if (node == NodeId::kNone || expressions.op(node) != ops::Opcode::kOther) return false;
    const OpSchema* schema = expressions.analysis().model().op(expressions.analysis().model().node(node)).schema;
    return schema != nullptr && schema->input_index("updates") == 2 && schema->attribute("axis") != nullptr;
  }

  static void check_prediction(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) {
    const Operand prediction(analysis, loss.prediction);
    if (!prediction.present() || prediction.taint().has(Aspect::kValue)) return;
    const Range& range = prediction.fact().range;
    if (range.lo > range.hi || (range.lo >= 0 && range.hi <= 1) || is_clamped(analysis, loss.prediction)) return;
    if (range.hi < 0 || range.lo > 1) {
      out.report(loss.anchor, fmt::format("{} takes probabilities, {} lies in {}", ops::to_text(loss.kind),
                                          prediction.name(), range.to_text()))
          .origin(prediction, Aspect::kValue);
      return;
    }
    const NodeId producer = producer_behind_identities(analysis, loss.prediction);
    if (producer == NodeId::kNone) return;
    const NodeCall call(analysis, producer);
    // Tanh of what is never negative gives probabilities.
    const bool keeps_sign = call.has(ops::OpTrait::kKeepsSign) && call.operand(0).fact().range.lo < 0;
    const bool below = range.lo < 0 && (call.is(ops::Opcode::kLogSoftmax) || keeps_sign);
    const bool above = range.hi > 1 && call.has(ops::OpTrait::kUnboundedAbove);
    if (!below && !above) return;
    out.report(findings::Severity::kWarning, loss.anchor,
               fmt::format("{} takes probabilities, {} comes from {}, which also gives values {}",
                           ops::to_text(loss.kind), prediction.name(), call.op_name(), below ? "below 0" : "above 1"))
        .certainty(ops::Certainty::kMay,
                   fmt::format("{} has {} among its elements", prediction.name(), below ? "-0.5" : "1.5"))
        .note_at(producer, fmt::format("{} is computed here", prediction.name()))
        .fix("use a Sigmoid");
  }
};

const RegisterRule<ProbabilityOutOfRange> kRegisterProbabilityOutOfRange;

}  // namespace
}  // namespace tensorlint::rules
