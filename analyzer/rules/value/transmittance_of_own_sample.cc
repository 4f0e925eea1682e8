#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class TransmittanceOfOwnSample : public Rule {
 public:
  TransmittanceOfOwnSample()
      : Rule({"TL-V553", "transmittance-of-own-sample", "value", findings::Severity::kWarning,
              "weights along a ray that count the opacity of a sample against itself"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kCumSum}, [&](const Expressions& expressions, const NodeCall& call) {
      if (const Attribute* exclusive = call.attribute("exclusive"); exclusive != nullptr && exclusive->i != 0) return;
      const NodeId exponential = exponential_of(expressions, call.result());
      if (exponential == NodeId::kNone) return;
      const ValueId passed = expressions.result(exponential);
      for (const NodeId user : expressions.users(passed)) {
        if (expressions.op(user) != Opcode::kMul) continue;
        const ValueId opacity = expressions.beside(user, passed);
        if (!is_opacity_of(expressions, opacity, call.operand(0).value())) continue;
        out.report(call.id(), fmt::format("the sum up to each sample has the sample itself: {} is weighed by what it "
                                          "lets through, where it is what comes before it",
                                          Operand(call.analysis(), opacity).name()))
            .note_at(user, "the weights are computed here")
            .fix("leave the sample itself out: an exclusive sum, or one that is shifted by a leading 0");
        return;
      }
    });
  }

 private:
  /// exp of the value, or of minus it.
  static NodeId exponential_of(const Expressions& expressions, ValueId value) {
    for (const NodeId user : expressions.users(value)) {
      if (expressions.op(user) == Opcode::kExp) return user;
      if (expressions.op(user) != Opcode::kNeg) continue;
      for (const NodeId next : expressions.users(expressions.result(user)))
        if (expressions.op(next) == Opcode::kExp) return next;
    }
    return NodeId::kNone;
  }

  /// The summed numbers are log(1 - opacity), or x of opacity = 1 - exp(-x).
  static bool is_opacity_of(const Expressions& expressions, ValueId opacity, ValueId summed) {
    if (opacity == ValueId::kAbsent || summed == ValueId::kAbsent) return false;
    opacity = before_stretch(expressions, opacity);
    const NodeId log = expressions.producer(before_stretch(expressions, summed));
    if (expressions.op(log) == Opcode::kLog)
      return rest_of(expressions, before_guard(expressions, expressions.operand(log, 0))) == opacity;
    const NodeId exponential = expressions.producer(rest_of(expressions, opacity));
    if (expressions.op(exponential) != Opcode::kExp) return false;
    const ValueId exponent = expressions.operand(exponential, 0);
    // exp(-x) of the sum of x, or exp(y) of the sum of y = -x.
    const NodeId minus = expressions.producer(exponent);
    return exponent == summed || (expressions.op(minus) == Opcode::kNeg && expressions.operand(minus, 0) == summed);
  }
};

const RegisterRule<TransmittanceOfOwnSample> kRegisterTransmittanceOfOwnSample;

}  // namespace
}  // namespace tensorlint::rules
