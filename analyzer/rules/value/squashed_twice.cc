#include <fmt/format.h>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SquashedTwice : public Rule {
 public:
  SquashedTwice()
      : Rule({"TL-V527", "squashed-twice", "value", findings::Severity::kWarning,
              "probabilities that are taken for scores, and squashed again"},
             {passes::Pass::kLosses}) {}

  /// In front of a loss, probabilities-into-logit-loss says it.
  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_no_loss_output(view.analysis())) return;
    each_node(view, out, {Opcode::kSigmoid, Opcode::kSoftmax, Opcode::kLogSoftmax},
              [&](const Expressions& expressions, const NodeCall& call) { check_call(expressions, call, out); });
  }

 private:
  static void check_call(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const ValueId squashed = before_stretch(expressions, call.operand(0).value());
    const NodeId before = producer_behind_identities(call.analysis(), squashed);
    if (before == NodeId::kNone) return;
    if (check_classifier(expressions, call, squashed, out)) return;
    const Opcode first = expressions.op(before);
    if (first != Opcode::kSoftmax && first != Opcode::kSigmoid) return;
    // Weights of independent sigmoids may be normalised; probabilities of classes are already.
    if (!call.is(Opcode::kSigmoid)) {
      if (first != Opcode::kSoftmax || before != expressions.producer(call.operand(0).value())) return;
      const auto axes = expressions.axes_of(call.id()), inner = expressions.axes_of(before);
      if (!axes || axes != inner) return;
    }
    const NodeCall inner(call.analysis(), before);
    out.report(call.id(),
               fmt::format("{} of {}, which {} has put between 0 and 1: what it gives is {}", call.op_name(),
                           call.operand(0).name(), inner.op_name(),
                           call.is(Opcode::kSigmoid) ? "between 0.5 and 0.73" : "almost the same for all classes"))
        .note_at(before, "squashed here first")
        .fix(fmt::format("remove one of them: {} takes scores of any size", call.op_name()));
  }
  /// Classifiers of classical models squash their scores themselves.
  static bool check_classifier(const Expressions& expressions, const NodeCall& call, ValueId squashed, Reporter& out) {
    const NodeId node = expressions.producer(squashed);
    if (node == NodeId::kNone) return false;
    const NodeCall classifier(call.analysis(), node);
    const Attribute* transform = classifier.attribute("post_transform");
    if (transform == nullptr || classifier.result(1) != squashed) return false;
    const bool again = call.is(Opcode::kSigmoid)
                           ? transform->s == "LOGISTIC" || transform->s == "SOFTMAX" || transform->s == "SOFTMAX_ZERO"
                           : transform->s == "SOFTMAX";
    if (!again) return false;
    out.report(call.id(), fmt::format("{} of {}, which {} has turned into probabilities already", call.op_name(),
                                      call.operand(0).name(), classifier.op_name()))
        .note_at(node, fmt::format("post_transform is {}", transform->s))
        .fix(fmt::format("remove {}, or make post_transform NONE", call.op_name()));
    return true;
  }
};

const RegisterRule<SquashedTwice> kRegisterSquashedTwice;

}  // namespace
}  // namespace tensorlint::rules
