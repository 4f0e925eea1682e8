#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SmoothingNotAveraged : public Rule {
 public:
  SmoothingNotAveraged()
      : Rule({"TL-L377", "smoothing-not-averaged", "loss", findings::Severity::kWarning,
              "label smoothing with the sum over the classes for its share, and not the mean"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kAdd) || call.is(Opcode::kSub)) check_terms(expressions, call, out);
    });
  }

 private:
  /// Logarithms of probabilities that are picked at the labels, or summed over the classes.
  struct Term {
    ValueId logarithms = ValueId::kAbsent;
    NodeId node = NodeId::kNone;
    double factor = 0;
    bool is_sum = false;
  };

  static void check_terms(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    constexpr double kRounding = 1e-5;
    const std::vector<Summand> added = summands(expressions, call.result(), Numbers::kApart);
    if (added.size() != 2) return;
    const auto first = term_of(expressions, added[0]), second = term_of(expressions, added[1]);
    if (!first || !second || first->is_sum == second->is_sum || first->logarithms != second->logarithms) return;
    const Term &sum = first->is_sum ? *first : *second, &picked = first->is_sum ? *second : *first;
    // Shares of one whole: what is spread over all classes is divided by their number.
    if (sum.factor * picked.factor <= 0 || std::abs(std::abs(sum.factor + picked.factor) - 1) > kRounding) return;
    const auto softmax = expressions.normalised(sum.logarithms);
    const auto axes = expressions.axes_of(sum.node);
    if (!softmax || !softmax->logarithm || !axes || axes->size() != 1) return;
    const auto dims = expressions.dims(sum.logarithms);
    const auto classes =
        axes->front() < dims.size() ? call.facts().dims().as_constant(dims[axes->front()]) : std::nullopt;
    if (classes && *classes < 3) return;
    out.report(sum.node, fmt::format("the labels count {:.4g}, and each of {} classes {:.4g}: their weights add up to "
                                     "more than 1",
                                     std::abs(picked.factor), classes ? fmt::format("{}", *classes) : "all",
                                     std::abs(sum.factor)))
        .note_at(picked.node, "the labels are picked here")
        .note_at(call.id(), "both are added here")
        .fix("take the mean over the classes for what is spread over them");
  }

  static std::optional<Term> term_of(const Expressions& expressions, const Summand& summand) {
    constexpr int kMaxSteps = 4;
    ValueId value = summand.value;
    double factor = summand.factor;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kNeg) {
        factor = -factor;
        value = expressions.operand(node, 0);
        continue;
      }
      const bool is_sum = opcode == Opcode::kReduceSum;
      if (!is_sum && opcode != Opcode::kGatherElements && opcode != Opcode::kGatherND) break;
      const ValueId logarithms = expressions.operand(node, 0);
      if (logarithms == ValueId::kAbsent) break;
      return Term{expressions.source(logarithms), node, factor, is_sum};
    }
    return std::nullopt;
  }
};

const RegisterRule<SmoothingNotAveraged> kRegisterSmoothingNotAveraged;

}  // namespace
}  // namespace tensorlint::rules
