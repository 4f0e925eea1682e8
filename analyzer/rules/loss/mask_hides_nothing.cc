#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class MaskHidesNothing : public Rule {
 public:
  MaskHidesNothing()
      : Rule({"TL-L331", "mask-hides-nothing", "loss", findings::Severity::kWarning,
              "a mask that is added to scores, or fills them, with a number that is next to nothing"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    Visited<NodeId> seen(view.analysis().meter());
    each_softmax(view, out,
                 [&](const Expressions& expressions, const NodeCall& call, const losses::Normalised& softmax) {
                   check_scores(expressions, softmax.scores, call.id(), seen, out);
                 });
    each_node(view, out, {Opcode::kReduceLogSumExp}, [&](const Expressions& expressions, const NodeCall& call) {
      check_scores(expressions, call.operand(0).value(), call.id(), seen, out);
    });
    if (one_float_outputs(view.analysis()).empty()) return;
    for (const losses::LossSite& loss : view.losses())
      if (loss.kind == ops::LossKind::kCrossEntropy)
        check_scores(out.shared<losses::LossAxes>().expressions, loss.prediction, loss.anchor, seen, out);
  }

 private:
  /// Less than this moves no score that a softmax compares; what hides one is a thousand or more.
  static constexpr double kNothing = 1e-3;

  static void check_scores(const Expressions& expressions, ValueId scores, NodeId softmax, Visited<NodeId>& seen,
                           Reporter& out) {
    constexpr int kMaxSteps = 8;
    const dataflow::Analysis& analysis = expressions.analysis();
    for (int step = 0; step < kMaxSteps && scores != ValueId::kAbsent; ++step) {
      scores = before_stretch(expressions, scores);
      const NodeId node = expressions.producer(scores);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kAdd || opcode == Opcode::kSub) {
        for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
          const ValueId mask = expressions.operand(node, side);
          const auto size = size_of(expressions, mask);
          if (!size || !(std::abs(*size) < kNothing) || *size == 0 || !seen.insert(node)) continue;
          out.report(node, fmt::format("a mask changes {} by {:.4g}, which hides nothing",
                                       Operand(analysis, expressions.operand(node, 1 - side)).name(),
                                       opcode == Opcode::kSub ? -*size : *size))
              .note_at(softmax, "the scores are compared here")
              .fix("subtract a large number, such as 1e9, or put -inf where the mask hides: masked_fill(mask, -inf)");
          return;
        }
        scores = expressions.operand(node, 0);
      } else if (opcode == Opcode::kWhere) {
        check_choice(expressions, node, softmax, seen, out);
        return;
      } else if (const auto scaled = with_number(expressions, node);
                 scaled && (opcode == Opcode::kMul || opcode == Opcode::kDiv)) {
        scores = scaled->value;
      } else {
        return;
      }
    }
  }

  /// masked_fill(mask, 0) of scores, which is a score like any other. Of products of queries and keys alone: others may
  /// be 0 where there is nothing.
  static void check_choice(const Expressions& expressions, NodeId choice, NodeId softmax, Visited<NodeId>& seen,
                           Reporter& out) {
    for (const std::size_t side : {std::size_t{1}, std::size_t{2}}) {
      const auto filled = expressions.number(expressions.operand(choice, side));
      const ValueId scores = expressions.operand(choice, 3 - side);
      if (!filled || !(std::abs(*filled) < kNothing) || scores == ValueId::kAbsent) continue;
      const NodeId product = expressions.producer(before_scale(expressions, scores));
      const Opcode opcode = expressions.op(product);
      if ((opcode != Opcode::kMatMul && opcode != Opcode::kEinsum) || expressions.dims(scores).size() < 2 ||
          is_constant(expressions, before_stretch(expressions, expressions.operand(product, 1))) ||
          !seen.insert(choice))
        return;
      out.report(choice,
                 fmt::format("a mask puts {:.4g} in place of some of {}, which hides nothing: the others are of "
                             "both signs",
                             *filled, Operand(expressions.analysis(), scores).name()))
          .note_at(softmax, "the scores are compared here")
          .fix("put -inf where the mask hides: masked_fill(mask, -inf)");
      return;
    }
  }

  /// c for c * mask: one number beside 0.
  static std::optional<double> size_of(const Expressions& expressions, ValueId value) {
    const ValueId product = before_stretch(expressions, value);
    const NodeId node = expressions.producer(product);
    if (node != NodeId::kNone) {
      const auto scaled = with_number(expressions, node);
      if (!scaled || !is_mask(expressions, scaled->value)) return std::nullopt;
      if (expressions.op(node) == Opcode::kMul) return scaled->number;
      if (expressions.op(node) == Opcode::kDiv && !scaled->is_first) return 1 / scaled->number;
    }
    if (product == ValueId::kAbsent) return std::nullopt;
    const dataflow::Analysis& analysis = expressions.analysis();
    const Content* content = analysis.content(product);
    if (content == nullptr || content->floats.size() < 2) return std::nullopt;
    const auto other = std::ranges::find_if(content->floats, [](double number) { return number != 0; });
    if (other == content->floats.end()) return std::nullopt;
    const bool has_zero = std::ranges::find(content->floats, 0.0) != content->floats.end();
    const bool is_one_number =
        std::ranges::all_of(content->floats, [&](double number) { return number == 0 || number == *other; });
    return has_zero && is_one_number ? std::optional(*other) : std::nullopt;
  }
};

const RegisterRule<MaskHidesNothing> kRegisterMaskHidesNothing;

}  // namespace
}  // namespace tensorlint::rules
