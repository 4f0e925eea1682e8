#include <fmt/format.h>

#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class MixedLabelsCrossed : public Rule {
 public:
  MixedLabelsCrossed()
      : Rule({"TL-L342", "mixed-labels-crossed", "loss", findings::Severity::kWarning,
              "samples that are mixed in two shares, and losses of their labels with the shares exchanged"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty() || !has_node(out, {Opcode::kGather, Opcode::kGatherND})) return;
    std::vector<Mixture> inputs, sums;
    each_node(view, out, {Opcode::kAdd}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto mixture = mixture_of(expressions, call);
      if (mixture) (is_one_float(view.analysis(), call.result()) ? sums : inputs).push_back(*mixture);
    });
    if (inputs.empty() || sums.empty()) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    for (const Mixture& sum : sums)
      for (const Mixture& input : inputs) check(expressions, input, sum, out);
  }

 private:
  /// share * first + (1 - share) * second
  struct Mixture {
    NodeId node;
    ValueId share, first, second;
  };

  static std::optional<Mixture> mixture_of(const Expressions& expressions, const NodeCall& call) {
    const NodeId a = expressions.producer(call.operand(0).value()), b = expressions.producer(call.operand(1).value());
    if (expressions.op(a) != Opcode::kMul || expressions.op(b) != Opcode::kMul) return std::nullopt;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
        const ValueId x = before_stretch(expressions, expressions.operand(a, i)),
                      y = before_stretch(expressions, expressions.operand(b, k));
        const ValueId first = expressions.operand(a, 1 - i), second = expressions.operand(b, 1 - k);
        if (rest_of(expressions, y) == x && !expressions.number(x)) return Mixture{call.id(), x, first, second};
        if (rest_of(expressions, x) == y && !expressions.number(y)) return Mixture{call.id(), y, second, first};
      }
    return std::nullopt;
  }

  struct Picked {
    ValueId from = ValueId::kAbsent, index = ValueId::kAbsent;
    NodeId node = NodeId::kNone;
  };

  static Picked picked(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) != Opcode::kGather && expressions.op(node) != Opcode::kGatherND) return {};
    if (expressions.operand(node, 0) == ValueId::kAbsent || expressions.operand(node, 1) == ValueId::kAbsent) return {};
    return {before_stretch(expressions, expressions.operand(node, 0)),
            before_stretch(expressions, expressions.operand(node, 1)), node};
  }

  static void check(const Expressions& expressions, const Mixture& input, const Mixture& sum, Reporter& out) {
    if (input.share != sum.share) return;
    const Picked second = picked(expressions, before_stretch(expressions, input.second));
    if (second.node == NodeId::kNone || second.from != before_stretch(expressions, input.first)) return;
    const NodeId first_labels = labels_in_order(expressions, sum.first, second),
                 second_labels = labels_in_order(expressions, sum.second, second);
    if (first_labels == NodeId::kNone || second_labels != NodeId::kNone) return;
    out.report(sum.node,
               fmt::format(
                   "{0} is the share of each sample itself in the mixture, and weighs the loss of its partner's label",
                   Operand(expressions.analysis(), sum.share).name()))
        .note_at(input.node, "the samples are mixed here")
        .note_at(first_labels, "the partners' labels are picked here")
        .fix("exchange the labels: share * loss(y) + (1 - share) * loss(y[order])");
  }

  /// Where a loss picks something else than the samples, in the order of their partners.
  static NodeId labels_in_order(const Expressions& expressions, ValueId loss, const Picked& partner) {
    NodeId found = NodeId::kNone;
    walk_back(expressions, loss, [&](ValueId value, NodeId) {
      const Picked pick = picked(expressions, value);
      if (pick.node != NodeId::kNone && pick.index == partner.index && pick.from != partner.from &&
          is_input(expressions.analysis(), pick.from))
        found = pick.node;
      return value != expressions.result(partner.node);
    });
    return found;
  }
};

const RegisterRule<MixedLabelsCrossed> kRegisterMixedLabelsCrossed;

}  // namespace
}  // namespace tensorlint::rules
