#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class UniformForNormalNoise : public Rule {
 public:
  UniformForNormalNoise()
      : Rule({"TL-L381", "uniform-for-normal-noise", "loss", findings::Severity::kWarning,
              "noise between 0 and 1 where that of a normal distribution is needed"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kMul}, [&](const Expressions& expressions, const NodeCall& call) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (const ValueId noise = call.operand(side).value(); is_uniform(expressions, noise)) {
          check_product(expressions, call, noise, out);
          return;
        }
    });
  }

 private:
  static constexpr std::size_t kMaxUsers = 8;

  /// Drawn from all numbers between 0 and 1, and taken as they are.
  static bool is_uniform(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    const NodeId node = expressions.producer(before_stretch(expressions, value));
    if (expressions.op(node) != Opcode::kDrawUniform) return false;
    const NodeCall call(expressions.analysis(), node);
    const Attribute *low = call.attribute("low"), *high = call.attribute("high");
    return (low == nullptr || low->f == 0) && (high == nullptr || high->f == 1);
  }

  static void check_product(const Expressions& expressions, const NodeCall& product, ValueId noise, Reporter& out) {
    const ValueId scale = before_stretch(expressions, expressions.beside(product.id(), noise));
    std::vector<NodeId> sums;
    for (const NodeId user : expressions.users(product.result()))
      if (expressions.op(user) == Opcode::kAdd && sums.size() < kMaxUsers) sums.push_back(user);
    for (const NodeId sum : sums) {
      const ValueId other = expressions.beside(sum, product.result());
      if (other == ValueId::kAbsent || expressions.number(other)) continue;
      const bool is_deviation = is_deviation_of_log_variance(expressions, scale);
      if (!is_deviation && !are_roots_of_shares(expressions, scale, other)) continue;
      out.report(product.id(),
                 fmt::format("{} is between 0 and 1 and never negative, and is added as noise of a normal distribution",
                             Operand(product.analysis(), noise).name()))
          .note_at(expressions.producer(before_stretch(expressions, noise)), "drawn here")
          .note_at(sum, is_deviation ? "added to the mean here" : "mixed with the data here")
          .fix("draw from the normal distribution: torch.randn_like");
      return;
    }
  }

  /// exp(v / 2), or the root of exp(v): v is the logarithm of a variance.
  static bool is_deviation_of_log_variance(const Expressions& expressions, ValueId scale) {
    if (scale == ValueId::kAbsent) return false;
    const NodeId node = expressions.producer(scale);
    if (expressions.op(node) == Opcode::kSqrt)
      return expressions.op_of(before_stretch(expressions, expressions.operand(node, 0))) == Opcode::kExp;
    if (expressions.op(node) != Opcode::kExp) return false;
    const NodeId halved = expressions.producer(before_stretch(expressions, expressions.operand(node, 0)));
    const auto scaled = with_number(expressions, halved);
    return scaled && ((expressions.op(halved) == Opcode::kMul && scaled->number == 0.5) ||
                      (expressions.op(halved) == Opcode::kDiv && !scaled->is_first && scaled->number == 2));
  }

  /// sqrt(1 - a) beside sqrt(a) * x.
  static bool are_roots_of_shares(const Expressions& expressions, ValueId scale, ValueId other) {
    const NodeId product = expressions.producer(before_stretch(expressions, other));
    const ValueId own = under_root(expressions, scale);
    if (own == ValueId::kAbsent || expressions.op(product) != Opcode::kMul) return false;
    const ValueId rest = rest_of(expressions, own);
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId share = under_root(expressions, expressions.operand(product, side));
      if (share == ValueId::kAbsent) continue;
      if (share == rest || rest_of(expressions, share) == own) return true;
    }
    return false;
  }

  static ValueId under_root(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return value;
    const NodeId node = expressions.producer(before_stretch(expressions, value));
    const ValueId under = expressions.op(node) == Opcode::kSqrt ? expressions.operand(node, 0) : ValueId::kAbsent;
    return under == ValueId::kAbsent ? under : before_stretch(expressions, under);
  }
};

const RegisterRule<UniformForNormalNoise> kRegisterUniformForNormalNoise;

}  // namespace
}  // namespace tensorlint::rules
