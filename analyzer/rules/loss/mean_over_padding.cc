#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"
#include "base/walk.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class MeanOverPadding : public Rule {
 public:
  MeanOverPadding()
      : Rule({"TL-L336", "mean-over-padding", "loss", findings::Severity::kWarning,
              "a mean over steps that a mask chooses, whose divisor counts other steps as well"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kReduceMean}, [&](const Expressions& expressions, const NodeCall& call) {
      check_mean(expressions, view, call, call.id(), out);
    });
    if (!has_node(out, {Opcode::kReduceSum})) return;
    each_node(view, out, {Opcode::kDiv}, [&](const Expressions& expressions, const NodeCall& call) {
      check_divisor(expressions, call, out);
      check_sum_of_all(expressions, call, out);
      if (const NodeId sum = divided_by_extent(expressions, call.id()); sum != NodeId::kNone)
        check_mean(expressions, view, call, sum, out);
    });
  }

 private:
  /// What is 1 for the steps of a sequence and 0 for what fills it up.
  struct Padding {
    ValueId lengths = ValueId::kAbsent;  ///< or the tokens, or labels, of which one number stands for none
    ValueId mask = ValueId::kAbsent;     ///< of bool
  };

  /// A sum along one axis, which is divided by the extent of that axis: a mean that is written out.
  static NodeId divided_by_extent(const Expressions& expressions, NodeId quotient) {
    const auto divided = with_number(expressions, quotient);
    if (!divided || divided->is_first) return NodeId::kNone;
    const NodeId sum = expressions.producer(before_stretch(expressions, divided->value));
    const auto axes = expressions.op(sum) == Opcode::kReduceSum ? expressions.axes_of(sum) : std::nullopt;
    const auto dims = expressions.dims(expressions.operand(sum, 0));
    if (!axes || axes->size() != 1 || axes->front() >= dims.size()) return NodeId::kNone;
    const auto extent = expressions.analysis().facts().dims().as_constant(dims[axes->front()]);
    return extent && static_cast<double>(*extent) == divided->number ? sum : NodeId::kNone;
  }

  /// `mean` gives it, of what `reduction` sums up.
  static void check_mean(const Expressions& expressions, const ModelView& view, const NodeCall& mean, NodeId reduction,
                         Reporter& out) {
    const NodeId product = expressions.producer(before_stretch(expressions, expressions.operand(reduction, 0)));
    const Opcode opcode = expressions.op(product);
    if (opcode == Opcode::kMul && expressions.operand(product, 0) == expressions.operand(product, 1))
      return;  // a square
    std::optional<Padding> padding;
    ValueId factor = ValueId::kAbsent;
    if (opcode == Opcode::kMul) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (const auto found = padding_of(expressions, view, expressions.operand(product, side)); found && !padding) {
          padding = found;
          factor = expressions.operand(product, side);
        }
    } else if (opcode == Opcode::kWhere && expressions.is_number(expressions.operand(product, 2), 0)) {
      padding = padding_of(expressions, view, expressions.operand(product, 0));
      factor = expressions.operand(product, 0);
    }
    if (!padding) {
      factor = mask_of_losses(expressions, product);
      if (factor != ValueId::kAbsent) {
        const ValueId mask = before_stretch(expressions, factor);
        padding = Padding{mask, mask};
      }
    }
    if (!padding) {
      factor = given_mask(expressions, product);
      if (factor == ValueId::kAbsent || !pools_steps(expressions, mean, reduction)) return;
      const ValueId mask = before_stretch(expressions, factor);
      padding = Padding{mask, mask};
    }
    if (!padding || !reduces_steps(expressions, reduction, factor) ||
        is_scaled_back(expressions, mean.result(), *padding))
      return;
    const dataflow::Analysis& analysis = mean.analysis();
    out.report(mean.id(), fmt::format("the mean counts the steps that {} has made 0: the longer the padding, the "
                                      "smaller it is",
                                      Operand(analysis, factor).name()))
        .note_at(expressions.producer(padding->mask == padding->lengths ? factor : padding->mask),
                 fmt::format("{} says which steps count", Operand(analysis, padding->lengths).name()))
        .fix("divide the sum by the number of steps that count");
  }

  /// A mask [N, T] that is an input, times the losses of classes [N, T] of all steps.
  static ValueId mask_of_losses(const Expressions& expressions, NodeId product) {
    constexpr int kMaxSteps = 4;
    if (expressions.op(product) != Opcode::kMul || expressions.dims(expressions.result(product)).size() != 2)
      return ValueId::kAbsent;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId factor = expressions.operand(product, side);
      ValueId each = expressions.operand(product, 1 - side);
      if (factor == ValueId::kAbsent || !is_mask(expressions, factor) || expressions.dims(factor).size() != 2 ||
          !is_input(expressions.analysis(), before_stretch(expressions, factor)))
        continue;
      for (int step = 0; step < kMaxSteps && each != ValueId::kAbsent; ++step) {
        const NodeId node = expressions.producer(each);
        const ops::OpEntry* entry = expressions.entry(node);
        if (entry != nullptr && entry->loss() && expressions.dims(expressions.operand(node, 0)).size() >= 2)
          return factor;
        if (!ops::keeps_elements(expressions.op(node)) && expressions.op(node) != Opcode::kNeg) break;
        each = expressions.operand(node, 0);
      }
    }
    return ValueId::kAbsent;
  }

  /// A mask [N, T] that is an input, beside vectors [N, T, D] that it multiplies or chooses.
  static ValueId given_mask(const Expressions& expressions, NodeId product) {
    const auto is_given = [&](ValueId value, ValueId other) {
      if (value == ValueId::kAbsent || other == ValueId::kAbsent || !is_mask(expressions, value)) return false;
      const ValueId mask = before_stretch(expressions, value);
      const auto steps = expressions.dims(mask), vectors = expressions.dims(other);
      const DimPool& pool = expressions.analysis().facts().dims();
      return value != mask && is_input(expressions.analysis(), mask) && steps.size() == 2 && vectors.size() == 3 &&
             pool.equal(steps[0], vectors[0]) && pool.equal(steps[1], vectors[1]) && !pool.is_constant(vectors[2], 1);
    };
    const ValueId a = expressions.operand(product, 0), b = expressions.operand(product, 1);
    switch (expressions.op(product)) {
      case Opcode::kMul:
        return is_given(b, a) ? b : is_given(a, b) ? a : ValueId::kAbsent;
      case Opcode::kWhere: {
        const ValueId c = expressions.operand(product, 2);
        if (expressions.is_number(c, 0)) return is_given(a, b) ? a : ValueId::kAbsent;
        const NodeId other = expressions.producer(before_stretch(expressions, a));
        const ValueId kept = expressions.op(other) == Opcode::kNot ? expressions.operand(other, 0) : ValueId::kAbsent;
        return expressions.is_number(b, 0) && is_given(kept, c) ? kept : ValueId::kAbsent;
      }
      default:
        return ValueId::kAbsent;
    }
  }

  /// A mean over the steps alone, of which a layer reads one vector for each sample.
  static bool pools_steps(const Expressions& expressions, const NodeCall& mean, NodeId reduction) {
    const auto axes = expressions.axes_of(reduction);
    return axes && axes->size() == 1 && axes->front() == 1 && is_read_by_layer(expressions, mean.result());
  }

  /// sum(x * mask) of each sample, divided by the sum of the whole mask, which holds the steps of all samples. As a
  /// part of a sum over the samples that is right; what a layer reads is the mean of one.
  static void check_divisor(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const ValueId above = call.operand(0).value(), below = call.operand(1).value();
    if (above == ValueId::kAbsent || below == ValueId::kAbsent) return;
    const NodeId total = expressions.producer(before_bound(expressions, below));
    if (expressions.op(total) != Opcode::kReduceSum || !is_one_float_number(expressions, expressions.result(total)))
      return;
    const ValueId counted = expressions.operand(total, 0);
    if (counted == ValueId::kAbsent || expressions.dims(counted).size() < 2) return;
    const ValueId mask = before_stretch(expressions, counted);
    const NodeId sum = expressions.producer(before_stretch(expressions, above));
    if (!is_sum_weighed_by(expressions, sum, mask)) return;
    auto& origins = out.shared<losses::LossAxes>().origins;
    const DimPool& pool = call.facts().dims();
    const auto dims = expressions.dims(call.result());
    if (dims.size() < 2 || pool.is_constant(dims.front(), 1) || !origins.is_batch(call.result(), 0) ||
        pool.is_constant(expressions.dims(counted).front(), 1) || !origins.is_batch(counted, 0) ||
        !is_read_by_layer(expressions, call.result()))
      return;
    out.report(call.id(), fmt::format("the sum of each sample is divided by the sum of {} over the whole batch: the "
                                      "more samples there are, the smaller it is",
                                      Operand(call.analysis(), mask).name()))
        .note_at(total, "the steps of all samples are counted here")
        .note_at(sum, "the steps of each sample are summed here")
        .fix("count the steps of each sample alone: mask.sum(1, keepdim=True)");
  }

  /// sum(x) / sum(mask): all elements are summed up, and those that the mask leaves are counted.
  static void check_sum_of_all(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    if (!is_one_float(call.analysis(), call.result())) return;
    const auto all_of = [&](ValueId value) {
      const NodeId sum =
          value == ValueId::kAbsent ? NodeId::kNone : expressions.producer(before_stretch(expressions, value));
      return expressions.op(sum) == Opcode::kReduceSum && is_one_float_number(expressions, expressions.result(sum))
                 ? expressions.operand(sum, 0)
                 : ValueId::kAbsent;
    };
    const ValueId summed = all_of(call.operand(0).value());
    const ValueId counted = all_of(before_bound(expressions, call.operand(1).value()));
    if (summed == ValueId::kAbsent || counted == ValueId::kAbsent || !says_what_is_there(expressions, counted)) return;
    const auto dims = expressions.dims(summed), own = expressions.dims(counted);
    const DimPool& pool = call.facts().dims();
    const ValueId mask = before_stretch(expressions, counted);
    if (dims.empty() || !std::ranges::equal(dims, own, [&](Dim a, Dim b) { return pool.equal(a, b); })) return;
    bool may_be_masked = false;
    walk_back(expressions, summed, [&](ValueId value, NodeId node) {
      const ops::OpEntry* entry = expressions.entry(node);
      may_be_masked |= value == mask || expressions.op(node) == Opcode::kWhere ||
                       // Some labels may be ignored.
                       (entry != nullptr && entry->loss().has_value());
      for (const ValueId operand : expressions.analysis().operands(node)) may_be_masked |= operand == mask;
      return !may_be_masked && is_reduction_or_elementwise(expressions, node);
    });
    if (may_be_masked) return;
    out.report(call.id(), fmt::format("all elements of {} are summed up, and divided by how many {} chooses",
                                      Operand(call.analysis(), summed).name(), Operand(call.analysis(), mask).name()))
        .note_at(expressions.producer(before_bound(expressions, call.operand(1).value())), "these are counted here")
        .fix("sum up what counts: (x * mask).sum() / mask.sum()");
  }

  /// Steps before a length, and labels that are neither below 0 nor NaN: those of 1, which some losses divide all
  /// elements by, are something else.
  static bool says_what_is_there(const Expressions& expressions, ValueId counted) {
    const ValueId mask = before_stretch(expressions, counted);
    if (step_mask(expressions, expressions.producer(mask))) return true;
    const Formula formula(expressions, mask);
    if (!formula.is_complete() || formula.parts().size() < 2) return false;
    const auto leaf = formula.only_leaf();
    if (!leaf || !is_input(expressions.analysis(), formula.parts()[*leaf].value)) return false;
    const auto at = [&](double label) { return formula.evaluate(std::array{Formula::Assignment{*leaf, label}}, 0); };
    return at(0) == 1 && at(1) == 1 && (at(-1) == 0 || at(-100) == 0 || at(std::nan("")) == 0);
  }

  /// Before what keeps a divisor off 0.
  static ValueId before_bound(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return value;
    value = before_guard(expressions, value);
    const NodeId node = expressions.producer(value);
    const auto bounded = with_number(expressions, node);
    return expressions.op(node) == Opcode::kMax && bounded ? before_stretch(expressions, bounded->value) : value;
  }

  static bool is_one_float_number(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    const DimPool& pool = expressions.analysis().facts().dims();
    const Fact& fact = expressions.analysis().fact(value);
    return fact.kind == ValueKind::kTensor && expressions.analysis().facts().is_ranked(fact.shape) &&
           std::ranges::all_of(expressions.dims(value), [&](Dim dim) { return pool.is_constant(dim, 1); });
  }

  static bool is_sum_weighed_by(const Expressions& expressions, NodeId sum, ValueId mask) {
    const auto weighs = [&](NodeId product) {
      if (product == NodeId::kNone || expressions.analysis().operands(product).size() != 2) return false;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (const ValueId factor = expressions.operand(product, side);
            factor != ValueId::kAbsent && before_stretch(expressions, factor) == mask)
          return true;
      return false;
    };
    const Opcode opcode = expressions.op(sum);
    if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) return weighs(sum);
    if (opcode != Opcode::kReduceSum) return false;
    const NodeId product = expressions.producer(expressions.operand(sum, 0));
    if (expressions.op(product) == Opcode::kWhere) {
      ValueId chosen = expressions.operand(product, 0);
      if (chosen != ValueId::kAbsent) chosen = before_stretch(expressions, chosen);
      if (expressions.op_of(chosen) == Opcode::kNot && expressions.is_number(expressions.operand(product, 1), 0))
        chosen = expressions.operand(expressions.producer(chosen), 0);
      return chosen != ValueId::kAbsent && before_stretch(expressions, chosen) == mask;
    }
    return expressions.op(product) == Opcode::kMul && weighs(product);
  }

  static std::optional<Padding> padding_of(const Expressions& expressions, const ModelView& view, ValueId value) {
    if (value == ValueId::kAbsent) return std::nullopt;
    const ValueId mask = before_stretch(expressions, value);
    const NodeId node = expressions.producer(mask);
    if (const auto steps = step_mask(expressions, node)) return Padding{steps->lengths, mask};
    const NodeId equal =
        expressions.op(node) == Opcode::kNot ? expressions.producer(expressions.operand(node, 0)) : NodeId::kNone;
    const auto compared = with_number(expressions, equal);
    if (expressions.op(equal) != Opcode::kEqual || !compared) return std::nullopt;
    const ValueId tokens = before_stretch(expressions, compared->value);
    const bool is_padded = is_input(expressions.analysis(), tokens) &&
                           expressions.analysis().fact(tokens).dtypes.proves(DTypeSet::integers()) &&
                           (compared->number < 0 || is_looked_up(expressions, tokens) ||
                            (compared->number == 0 && are_labels_of_steps(expressions, view, tokens)));
    return is_padded ? std::optional(Padding{tokens, mask}) : std::nullopt;
  }

  /// The classes [N, T] of a loss, as of words: 0 stands for none.
  static bool are_labels_of_steps(const Expressions& expressions, const ModelView& view, ValueId labels) {
    if (expressions.dims(labels).size() != 2) return false;
    for (const losses::LossSite& loss : Walk(std::span(view.losses()), view.analysis().meter()))
      if (ops::takes_class_indices(loss.kind) && loss.target != ValueId::kAbsent &&
          before_stretch(expressions, loss.target) == labels)
        return true;
    return false;
  }

  /// They are rows of a table of floats: words, of which one stands for none.
  static bool is_looked_up(const Expressions& expressions, ValueId tokens) {
    for (const NodeId user : expressions.users(tokens))
      if (expressions.op(user) == Opcode::kGather && expressions.operand(user, 1) == tokens &&
          expressions.analysis().fact(expressions.operand(user, 0)).dtypes.proves(DTypeSet::floats()))
        return true;
    return false;
  }

  /// Along an axis along which the mask is not stretched, and not the batch alone.
  static bool reduces_steps(const Expressions& expressions, NodeId mean, ValueId mask) {
    const auto axes = expressions.axes_of(mean);
    const auto all = expressions.dims(expressions.operand(mean, 0)), own = expressions.dims(mask);
    const DimPool& pool = expressions.analysis().facts().dims();
    if (!axes || own.empty() || own.size() > all.size()) return false;
    return std::ranges::any_of(*axes, [&](std::size_t axis) {
      const std::size_t ahead = all.size() - own.size();
      return axis >= ahead && axis >= 1 && !pool.is_constant(own[axis - ahead], 1);
    });
  }

  /// Something of the mask or of the lengths meets the mean later: it is made one of the steps that count.
  static bool is_scaled_back(const Expressions& expressions, ValueId mean, const Padding& padding) {
    constexpr std::size_t kMaxValues = 16;
    std::vector<ValueId> pending{mean};
    bool found = false;
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues && !found; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        const bool scales = opcode == Opcode::kMul || opcode == Opcode::kDiv;
        if (scales) {
          const ValueId other = expressions.beside(user, pending[i]);
          if (other == ValueId::kAbsent) return true;
          if (other == padding.lengths) return true;
          walk_back(expressions, other, [&](ValueId value, NodeId node) {
            found |= value == padding.mask;
            for (const ValueId operand : expressions.analysis().operands(node)) found |= operand == padding.lengths;
            return !found;
          });
        }
        const ValueId result = expressions.result(user);
        if (result != ValueId::kAbsent && (scales || is_reduction_or_elementwise(expressions, user)))
          pending.push_back(result);
      }
    return found;
  }
};

const RegisterRule<MeanOverPadding> kRegisterMeanOverPadding;

}  // namespace
}  // namespace tensorlint::rules
