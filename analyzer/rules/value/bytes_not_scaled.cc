#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class BytesNotScaled : public Rule {
 public:
  BytesNotScaled()
      : Rule({"TL-V576", "bytes-not-scaled", "value", findings::Severity::kWarning,
              "a prediction in [0, 1] that is compared with a picture of bytes as it is"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::is_regression(loss.kind) || analysis.has_failed(loss.anchor) || loss.target == ValueId::kAbsent ||
        loss.prediction == ValueId::kAbsent)
      return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const ValueId picture = before_moves(expressions, loss.target);
    const ValueId made = before_stretch(expressions, loss.prediction);
    if (!is_input(analysis, picture) || analysis.taint(made).has(Aspect::kValue)) return;
    const Range& range = analysis.fact(made).range;
    // A label of 0 and 1 may be stored in bytes: what is divided elsewhere is a picture.
    if (!(range.lo >= -1) || !(range.hi <= 1) || !(range.lo < range.hi)) return;
    const NodeId scaled = scaled_at(expressions, picture);
    if (scaled == NodeId::kNone) return;
    out.report(loss.anchor, fmt::format("{} is in {}, and {} goes up to 255 here", Operand(analysis, made).name(),
                                        range.to_text(), Operand(analysis, picture).name()))
        .note_at(scaled, "it is divided here, where the model reads it")
        .origin(Operand(analysis, made), Aspect::kValue)
        .fix("compare with the picture that has been divided");
  }

 private:
  /// Where bytes are divided by 255 or the like; kNone where they are not.
  static NodeId scaled_at(const Expressions& expressions, ValueId picture) {
    constexpr std::size_t kMaxValues = 12;
    constexpr double kLeast = 200, kMost = 256;
    std::vector<ValueId> values{picture};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const Opcode opcode = expressions.op(user);
        const auto step = with_number(expressions, user);
        if (step && !step->is_first && step->value == values[i] &&
            ((opcode == Opcode::kDiv && step->number >= kLeast && step->number <= kMost) ||
             (opcode == Opcode::kMul && step->number >= 1 / kMost && step->number <= 1 / kLeast)))
          return user;
        const ValueId result = expressions.result(user);
        if ((ops::moves_elements(opcode) || opcode == Opcode::kCast) && expressions.operand(user, 0) == values[i] &&
            result != ValueId::kAbsent && values.size() < kMaxValues)
          values.push_back(result);
      }
    return NodeId::kNone;
  }
};

const RegisterRule<BytesNotScaled> kRegisterBytesNotScaled;

}  // namespace
}  // namespace tensorlint::rules
