#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class DensityCorrectionAdded : public Rule {
 public:
  DensityCorrectionAdded()
      : Rule({"TL-L345", "density-correction-added", "loss", findings::Severity::kWarning,
              "the logarithm of a density after a tanh, with the correction added and not subtracted"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kLog}, [&](const Expressions& expressions, const NodeCall& call) {
      const ValueId before = squashed_in(expressions, call.operand(0).value());
      if (before == ValueId::kAbsent) return;
      ValueId correction = call.result();
      for (int step = 0; step < 3; ++step) {
        ValueId summed = ValueId::kAbsent;
        for (const NodeId user : expressions.users(correction)) {
          const Opcode opcode = expressions.op(user);
          if (opcode == Opcode::kReduceSum || ops::keeps_elements(opcode)) summed = expressions.result(user);
          if (opcode != Opcode::kAdd) continue;
          const ValueId density = expressions.beside(user, correction);
          if (!has_negative_square(expressions, density)) continue;
          out.report(
                 user,
                 fmt::format(
                     "{} is the logarithm of a density, and the correction for the tanh is added to it, not subtracted",
                     Operand(call.analysis(), density).name()))
              .note_at(call.id(), "the correction: log(1 - tanh(u)^2)")
              .fix("subtract it: log p(u) - log(1 - tanh(u)^2)");
          return;
        }
        if (summed == ValueId::kAbsent) return;
        correction = summed;
      }
    });
  }

 private:
  /// u of 1 - tanh(u)^2, before a guard.
  static ValueId squashed_in(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return value;
    const ValueId square = expressions.complement(before_guard(expressions, value));
    const ValueId squashed =
        square == ValueId::kAbsent ? square : square_base(expressions, before_stretch(expressions, square));
    if (squashed == ValueId::kAbsent) return squashed;
    const NodeId node = expressions.producer(before_stretch(expressions, squashed));
    const ops::ElementValue element = dataflow::element_function(expressions.analysis(), node, 1);
    if (element == nullptr || std::abs(element({std::array{0.7}, {}}) - std::tanh(0.7)) > 1e-6) return ValueId::kAbsent;
    return expressions.operand(node, 0);
  }

  /// Terms that are added up, with -z^2 / 2 among them, as of a normal distribution.
  static bool has_negative_square(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMaxTerms = 16;
    struct Term {
      ValueId value;
      double sign;
    };
    std::vector<Term> terms{{value, 1}};
    for (std::size_t i = 0; i < terms.size() && terms.size() < kMaxTerms; ++i) {
      const auto [at, sign] = terms[i];
      if (at == ValueId::kAbsent) continue;
      if (square_base(expressions, at) != ValueId::kAbsent) {
        if (sign < 0) return true;
        continue;
      }
      const NodeId node = expressions.producer(at);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kNeg) {
        terms.push_back({first, -sign});
      } else if (opcode == Opcode::kAdd || opcode == Opcode::kSub) {
        terms.push_back({first, sign});
        terms.push_back({second, opcode == Opcode::kSub ? -sign : sign});
      } else if (opcode == Opcode::kMul && numbered) {
        terms.push_back({numbered->value, numbered->number < 0 ? -sign : sign});
      } else if (opcode == Opcode::kDiv && (!numbered || (!numbered->is_first && numbered->number > 0))) {
        terms.push_back({first, sign});  // by a variance
      } else if (opcode == Opcode::kReduceSum || ops::keeps_elements(opcode)) {
        terms.push_back({first, sign});
      }
    }
    return false;
  }
};

const RegisterRule<DensityCorrectionAdded> kRegister;

}  // namespace
}  // namespace tensorlint::rules
