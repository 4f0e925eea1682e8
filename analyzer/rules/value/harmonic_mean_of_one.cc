#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class HarmonicMeanOfOne : public Rule {
 public:
  HarmonicMeanOfOne()
      : Rule({"TL-V578", "harmonic-mean-of-one", "value", findings::Severity::kWarning,
              "a harmonic mean of two quotients, such as precision and recall, that are one and the same"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kDiv}, [&](const Expressions& expressions, const NodeCall& call) {
      const NodeId quotient = meant_twice(expressions, call);
      if (quotient == NodeId::kNone) return;
      out.report(call.id(),
                 fmt::format("both of what is averaged here are {}: as an F-score of precision and recall, it "
                             "is either of them",
                             Operand(call.analysis(), expressions.result(quotient)).name()))
          .note_at(quotient, "both are this quotient")
          .fix("divide by tp + fp for the precision, and by tp + fn for the recall");
    });
  }

 private:
  /// q for c * q * q / (a * q + b * q), where q is a quotient itself; kNone for anything else. That of two different
  /// ones is their harmonic mean, and of one it is that one.
  static NodeId meant_twice(const Expressions& expressions, const NodeCall& call) {
    const ValueId above = call.operand(0).value(), below = call.operand(1).value();
    if (above == ValueId::kAbsent || below == ValueId::kAbsent ||
        expressions.op_of(before_stretch(expressions, above)) != Opcode::kMul)
      return NodeId::kNone;
    const auto added = summands(expressions, before_guard(expressions, below), Numbers::kApart);
    if (added.size() != 2 || !(added[0].factor > 0) || !(added[1].factor > 0)) return NodeId::kNone;
    const ValueId one = before_stretch(expressions, added[0].value),
                  other = before_stretch(expressions, added[1].value);
    const NodeId quotient = expressions.producer(one);
    if (expressions.op(quotient) != Opcode::kDiv || with_number(expressions, quotient) ||
        (one != other && !are_computed_alike(expressions, one, other)))
      return NodeId::kNone;
    const std::vector<ValueId> factors = factors_of(expressions, above);
    const auto is_it = [&](ValueId factor) { return factor == one || factor == other; };
    return factors.size() == 2 && std::ranges::all_of(factors, is_it) ? quotient : NodeId::kNone;
  }

  /// Of a product of products, without numbers.
  static std::vector<ValueId> factors_of(const Expressions& expressions, ValueId product) {
    constexpr std::size_t kMaxFactors = 6;
    std::vector<ValueId> pending{product}, found;
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxFactors; ++i) {
      const ValueId value = before_scale(expressions, pending[i]);
      const NodeId node = expressions.producer(value);
      if (expressions.op(node) != Opcode::kMul) {
        found.push_back(value);
        continue;
      }
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (const ValueId factor = expressions.operand(node, side); factor != ValueId::kAbsent)
          pending.push_back(factor);
    }
    return found;
  }
};

const RegisterRule<HarmonicMeanOfOne> kRegisterHarmonicMeanOfOne;

}  // namespace
}  // namespace tensorlint::rules
