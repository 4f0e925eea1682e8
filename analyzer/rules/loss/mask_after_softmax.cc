#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
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
      : Rule(
            {"TL-L341", "mask-after-softmax", "loss", findings::Severity::kWarning,
             "weights of a softmax, or their logarithms, of which a given mask removes some, so that the others do not "
             "add up to 1"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_softmax(view, out,
                 [&](const Expressions& expressions, const NodeCall& call, const losses::Normalised& softmax) {
                   if (softmax.axes.size() != 1 || is_masked_before(expressions, softmax.scores)) return;
                   for (const NodeId user : expressions.users(call.result())) {
                     if (expressions.op(user) != Opcode::kMul && expressions.op(user) != Opcode::kWhere) continue;
                     if (softmax.logarithm)
                       check_logarithms(expressions, call, user, softmax.axes.front(), out);
                     else
                       check_product(expressions, call, user, softmax.axes.front(), out);
                   }
                 });
  }

 private:
  /// Logarithms of probabilities of a list whose end is padding, which the softmax counts and the loss leaves out.
  static void check_logarithms(const Expressions& expressions, const NodeCall& softmax, NodeId product,
                               std::size_t axis, Reporter& out) {
    const ValueId chosen = expressions.op(product) == Opcode::kWhere
                               ? chosen_weights(expressions, product, softmax.result())
                               : expressions.beside(product, softmax.result());
    const std::size_t rank = expressions.dims(softmax.result()).size(), behind = rank - axis;
    if (chosen == ValueId::kAbsent || rank <= axis ||
        !is_summed_along(expressions, expressions.result(product), axis, 2))
      return;
    for (const ValueId factor : expressions.factors(chosen)) {
      const auto own = expressions.dims(factor);
      const ValueId mask = before_stretch(expressions, factor);
      if (own.size() < behind || softmax.facts().dims().is_constant(own[own.size() - behind], 1) ||
          !step_mask(expressions, expressions.producer(mask)))
        continue;
      out.report(softmax.id(), fmt::format("the softmax counts the scores that {} leaves out afterwards: the others "
                                           "share less than 1",
                                           Operand(softmax.analysis(), mask).name()))
          .note_at(product, "they are left out here")
          .fix("put -inf where the mask hides before the softmax: masked_fill(~mask, -inf)");
      return;
    }
  }

  static void check_product(const Expressions& expressions, const NodeCall& softmax, NodeId product, std::size_t axis,
                            Reporter& out) {
    const dataflow::Analysis& analysis = softmax.analysis();
    const ValueId weights = expressions.result(product);
    const ValueId mask = expressions.op(product) == Opcode::kWhere
                             ? chosen_weights(expressions, product, softmax.result())
                             : expressions.beside(product, softmax.result());
    if (mask == ValueId::kAbsent || weights == ValueId::kAbsent || !is_given_mask(expressions, mask)) return;
    // It says which of the weights of a row count, and not which rows do.
    const auto dims = expressions.dims(softmax.result()), own = expressions.dims(mask);
    if (dims.size() <= axis) return;
    const std::size_t behind = dims.size() - axis;
    if (own.size() < behind || analysis.facts().dims().is_constant(own[own.size() - behind], 1)) return;
    if (!only_weigh(expressions, weights, axis) || analysis.model().value(weights).is_output) return;
    out.report(product, fmt::format("{} removes weights after the softmax: the others add up to less than 1",
                                    Operand(analysis, mask).name()))
        .note_at(softmax.id(), "the weights add up to 1 here, with those that are removed")
        .fix("put -inf where the mask hides before the softmax: masked_fill(~mask, -inf)");
  }

  /// The condition of a Where that puts 0 in place of some of the weights.
  static ValueId chosen_weights(const Expressions& expressions, NodeId choice, ValueId weights) {
    const ValueId yes = expressions.operand(choice, 1), no = expressions.operand(choice, 2);
    const bool puts_zero =
        (yes == weights && expressions.is_number(no, 0)) || (no == weights && expressions.is_number(yes, 0));
    return puts_zero ? expressions.operand(choice, 0) : ValueId::kAbsent;
  }

  /// What reads the weights sums values along the axis of the softmax, each times its weight.
  static bool only_weigh(const Expressions& expressions, ValueId weights, std::size_t axis) {
    constexpr int kMaxViews = 4;
    auto users = expressions.users(weights);
    for (int step = 0; step < kMaxViews && users.size() == 1; ++step) {
      // A column of weights beside features: the axis stays in its place.
      const NodeId view = users[0];
      const ValueId result = expressions.result(view);
      const auto before = expressions.dims(weights), after = expressions.dims(result);
      const DimPool& pool = expressions.analysis().facts().dims();
      if (!ops::keeps_elements(expressions.op(view)) || axis >= before.size() || after.size() < before.size() ||
          !pool.equal(before[axis], after[axis]))
        break;
      weights = result;
      users = expressions.users(weights);
    }
    return !users.empty() && std::ranges::all_of(users, [&](NodeId user) {
      const Opcode opcode = expressions.op(user);
      if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) return expressions.operand(user, 0) == weights;
      return opcode == Opcode::kMul && is_summed_along(expressions, expressions.result(user), axis);
    });
  }

  static bool is_summed_along(const Expressions& expressions, ValueId products, std::size_t axis,
                              std::size_t least_rank = 3) {
    if (products == ValueId::kAbsent) return false;
    const auto users = expressions.users(products);
    const auto sums = [&](NodeId user) {
      const auto axes = expressions.axes_of(user);
      return expressions.op(user) == Opcode::kReduceSum && axes && axes->size() == 1 && axes->front() == axis;
    };
    return expressions.dims(products).size() >= least_rank && !users.empty() && std::ranges::all_of(users, sums);
  }

  /// An input of bool, or one that is called a mask, steps before a length, and words that are or are not padding.
  static bool is_given_mask(const Expressions& expressions, ValueId mask) {
    ValueId source = before_stretch(expressions, mask);
    if (expressions.op_of(source) == Opcode::kNot)
      source = before_stretch(expressions, expressions.operand(expressions.producer(source), 0));
    if (is_one_word(expressions, source)) return true;
    if (step_mask(expressions, expressions.producer(source)) || is_triangle_of_ones(expressions, source)) return true;
    return is_input(expressions.analysis(), source) && is_mask(expressions, source);
  }

  static bool has_mask(const Expressions& expressions, NodeId product) {
    const ValueId a = expressions.operand(product, 0), b = expressions.operand(product, 1);
    return (a != ValueId::kAbsent && is_mask(expressions, a)) || (b != ValueId::kAbsent && is_mask(expressions, b));
  }

  /// A constant that hides nothing, such as the bias of a layer.
  static bool adds_bias(const Expressions& expressions, NodeId sum) {
    constexpr double kHides = -1e3;
    constexpr std::size_t kMost = 4096;
    return std::ranges::any_of(
        std::array{expressions.operand(sum, 0), expressions.operand(sum, 1)}, [&](ValueId value) {
          const auto bounds =
              value == ValueId::kAbsent ? std::nullopt : constant_bounds(expressions.analysis(), value, kMost);
          return bounds && bounds->first > kHides;
        });
  }

  static bool is_masked_before(const Expressions& expressions, ValueId scores) {
    bool found = false;
    if (scores == ValueId::kAbsent) return true;
    walk_back(expressions, scores, [&](ValueId, NodeId node) {
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) return false;
      found |= opcode == Opcode::kWhere || (opcode == Opcode::kAdd && !adds_bias(expressions, node)) ||
               (opcode == Opcode::kMul && has_mask(expressions, node));
      return !found;
    });
    return found;
  }
};

const RegisterRule<MaskAfterSoftmax> kRegisterMaskAfterSoftmax;

}  // namespace
}  // namespace tensorlint::rules
