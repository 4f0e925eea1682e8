#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class MisbuiltRatio : public Rule {
 public:
  MisbuiltRatio()
      : Rule({"TL-L390", "misbuilt-ratio", "loss", findings::Severity::kWarning,
              "a bounded objective of a policy whose ratio is not the one of new to old probabilities"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty() || !has_node(out, {Opcode::kClip})) return;
    each_node(view, out, {Opcode::kMin, Opcode::kMax}, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.operand_count() != 2) return;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const ValueId free = before_minus(expressions, call.operand(side).value()),
                      bounded = before_minus(expressions, call.operand(1 - side).value());
        if (check_product(expressions, free, bounded, out) || check_ratio(expressions, free, bounded, out)) return;
      }
    });
  }

 private:
  struct Bounds {
    double lo, hi;
  };

  static std::optional<Bounds> bounds_of(const Expressions& expressions, NodeId clip) {
    if (expressions.op(clip) != Opcode::kClip) return std::nullopt;
    const auto lo = expressions.number(expressions.operand(clip, 1)),
               hi = expressions.number(expressions.operand(clip, 2));
    return lo && hi && *lo < *hi ? std::optional(Bounds{*lo, *hi}) : std::nullopt;
  }

  static bool are_around_one(const Bounds& bounds) {
    return bounds.lo >= 0.4 && bounds.lo < 1 && bounds.hi > 1 && bounds.hi < 4;
  }

  static ValueId before_minus(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return value;
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    return expressions.op(node) == Opcode::kNeg ? before_stretch(expressions, expressions.operand(node, 0)) : value;
  }

  /// min(ratio * A, clip(ratio * A)).
  static bool check_product(const Expressions& expressions, ValueId free, ValueId bounded, Reporter& out) {
    if (free == ValueId::kAbsent || bounded == ValueId::kAbsent) return false;
    const NodeId clip = expressions.producer(bounded), product = expressions.producer(free);
    const auto bounds = bounds_of(expressions, clip);
    if (!bounds || !are_around_one(*bounds) || expressions.op(product) != Opcode::kMul ||
        with_number(expressions, product) || !are_computed_alike(expressions, expressions.operand(clip, 0), free) ||
        (!is_ratio(expressions, expressions.operand(product, 0)) &&
         !is_ratio(expressions, expressions.operand(product, 1))))
      return false;
    out.report(clip, fmt::format("the product {} is bounded by {:.3g} and {:.3g}, and not the ratio in it",
                                 Operand(expressions.analysis(), expressions.operand(clip, 0)).name(), bounds->lo,
                                 bounds->hi))
        .note_at(product, "the ratio is multiplied with the advantage here")
        .fix("bound the ratio: min(ratio * A, clip(ratio, 1 - e, 1 + e) * A)");
    return true;
  }

  static bool is_ratio(const Expressions& expressions, ValueId value) {
    return value != ValueId::kAbsent && expressions.op_of(before_stretch(expressions, value)) == Opcode::kExp;
  }

  /// min(ratio * A, clip(ratio) * A).
  static bool check_ratio(const Expressions& expressions, ValueId free, ValueId bounded, Reporter& out) {
    const NodeId first = expressions.producer(free), second = expressions.producer(bounded);
    if (expressions.op(first) != Opcode::kMul || expressions.op(second) != Opcode::kMul) return false;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
        const ValueId ratio = expressions.operand(first, i), advantage = expressions.operand(first, 1 - i),
                      kept = expressions.operand(second, k);
        if (ratio == ValueId::kAbsent || kept == ValueId::kAbsent) continue;
        const NodeId clip = expressions.producer(before_stretch(expressions, kept));
        const auto bounds = bounds_of(expressions, clip);
        if (!bounds || expressions.operand(clip, 0) != ratio ||
            !are_computed_alike(expressions, advantage, expressions.operand(second, 1 - k)))
          continue;
        return check_formula(expressions, before_stretch(expressions, ratio), clip, *bounds, out);
      }
    return false;
  }

  static bool check_formula(const Expressions& expressions, ValueId ratio, NodeId clip, const Bounds& bounds,
                            Reporter& out) {
    const NodeId node = expressions.producer(ratio);
    const Opcode opcode = expressions.op(node);
    const Operand shown(expressions.analysis(), ratio);
    const auto report = [&](std::string situation, std::string_view cure) {
      out.report(node, std::move(situation)).note_at(clip, "it is bounded as a ratio here").fix(std::string(cure));
      return true;
    };
    if (opcode == Opcode::kExp) {
      const NodeId difference = expressions.producer(before_stretch(expressions, expressions.operand(node, 0)));
      if (expressions.op(difference) != Opcode::kSub || with_number(expressions, difference)) return false;
      const ValueId now = expressions.operand(difference, 0), old = expressions.operand(difference, 1);
      if (is_given(expressions, now) && comes_from_layer(expressions, old))
        return report(fmt::format("the ratio is that of old to new probabilities: it falls as those in {} rise",
                                  Operand(expressions.analysis(), old).name()),
                      "subtract the old logarithm: exp(new - old)");
      if (bounds.lo < 1 && bounds.hi > 1) return false;
      out.report(clip, fmt::format("the ratio {} is 1 where the policy has not changed, and is bounded by {:.3g} and "
                                   "{:.3g}",
                                   shown.name(), bounds.lo, bounds.hi))
          .note_at(node, "the ratio is computed here")
          .fix("bound it on both sides of 1: clip(ratio, 1 - e, 1 + e)");
      return true;
    }
    if (!are_around_one(bounds) || with_number(expressions, node)) return false;
    const ValueId now = expressions.operand(node, 0), old = expressions.operand(node, 1);
    if (opcode == Opcode::kSub && comes_from_layer(expressions, now) && is_given(expressions, old))
      return report(fmt::format("{} is a difference of logarithms, which is 0 where the policy has not changed, and "
                                "bounded by {:.3g} and {:.3g}",
                                shown.name(), bounds.lo, bounds.hi),
                    "take the exponential of it: exp(new - old)");
    if (opcode == Opcode::kDiv && is_logarithm(expressions, now))
      return report(fmt::format("{} is a quotient of logarithms, and no ratio of probabilities", shown.name()),
                    "take the exponential of the difference: exp(new - old)");
    return false;
  }

  static bool is_given(const Expressions& expressions, ValueId value) {
    return value != ValueId::kAbsent && is_input(expressions.analysis(), before_moves(expressions, value));
  }

  /// What is picked of a log-softmax.
  static bool is_logarithm(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      if (const auto softmax = expressions.normalised(value)) return softmax->logarithm;
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (!ops::moves_elements(opcode) && opcode != Opcode::kCast && opcode != Opcode::kGatherElements) return false;
      value = expressions.operand(node, 0);
    }
    return false;
  }

  static constexpr int kMaxSteps = 8;
};

const RegisterRule<MisbuiltRatio> kRegisterMisbuiltRatio;

}  // namespace
}  // namespace tensorlint::rules
