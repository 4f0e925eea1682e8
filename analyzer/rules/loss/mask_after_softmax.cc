#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class MaskAfterSoftmax : public Rule {
 public:
  MaskAfterSoftmax()
      : Rule({"TL-L341", "mask-after-softmax", "loss", findings::Severity::kWarning,
              "weights of a softmax, of which a given mask removes some, so that the others do not add up to 1"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kSoftmax}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto axes = expressions.axes_of(call.id());
      if (!axes || axes->size() != 1 || is_masked_before(expressions, call.operand(0).value())) return;
      for (const NodeId user : expressions.users(call.result()))
        if (expressions.op(user) == Opcode::kMul) check_product(expressions, call, user, axes->front(), out);
    });
  }

 private:
  static void check_product(const Expressions& expressions, const NodeCall& softmax, NodeId product, std::size_t axis,
                            Reporter& out) {
    const dataflow::Analysis& analysis = softmax.analysis();
    const ValueId mask = expressions.beside(product, softmax.result()), weights = expressions.result(product);
    if (mask == ValueId::kAbsent || weights == ValueId::kAbsent || !is_given_mask(expressions, mask)) return;
    // It says which of the weights of a row count, and not which rows do.
    const auto dims = expressions.dims(softmax.result()), own = expressions.dims(mask);
    const std::size_t behind = dims.size() - axis;
    if (own.size() < behind || analysis.facts().dims().is_constant(own[own.size() - behind], 1)) return;
    const auto users = expressions.users(weights);
    const bool only_weigh = !users.empty() && std::ranges::all_of(users, [&](NodeId user) {
      const Opcode opcode = expressions.op(user);
      return (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) && expressions.operand(user, 0) == weights;
    });
    if (!only_weigh || analysis.model().value(weights).is_output) return;
    out.report(product, fmt::format("{} removes weights after the softmax: the others add up to less than 1",
                                    Operand(analysis, mask).name()))
        .note_at(softmax.id(), "the weights add up to 1 here, with those that are removed")
        .fix("put -inf where the mask hides before the softmax: masked_fill(~mask, -inf)");
  }

  /// An input of bool, or one that is called a mask, and steps before a length.
  static bool is_given_mask(const Expressions& expressions, ValueId mask) {
    const ValueId source = before_stretch(expressions, mask);
    const dataflow::Analysis& analysis = expressions.analysis();
    NodeId node = expressions.producer(source);
    if (step_mask(expressions, node) || is_triangle_of_ones(expressions, source)) return true;
    ValueId given = source;
    if (expressions.op(node) == Opcode::kNot) given = before_stretch(expressions, expressions.operand(node, 0));
    return is_input(analysis, given) && is_mask(expressions, given);
  }

  static bool has_mask(const Expressions& expressions, NodeId product) {
    const ValueId a = expressions.operand(product, 0), b = expressions.operand(product, 1);
    return (a != ValueId::kAbsent && is_mask(expressions, a)) || (b != ValueId::kAbsent && is_mask(expressions, b));
  }

  static bool is_masked_before(const Expressions& expressions, ValueId scores) {
    bool found = false;
    if (scores == ValueId::kAbsent) return true;
    walk_back(expressions, scores, [&](ValueId, NodeId node) {
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) return false;
      found |=
          opcode == Opcode::kWhere || opcode == Opcode::kAdd || (opcode == Opcode::kMul && has_mask(expressions, node));
      return !found;
    });
    return found;
  }
};

const RegisterRule<MaskAfterSoftmax> kRegisterMaskAfterSoftmax;

}  // namespace
}  // namespace tensorlint::rules
