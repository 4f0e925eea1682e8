#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ByteArithmeticWraps : public Rule {
 public:
  ByteArithmeticWraps()
      : Rule({"TL-V516", "byte-arithmetic-wraps", "value", findings::Severity::kWarning,
              "a picture of small integers that a sum, product or power takes out of their range"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      const Opcode opcode = opcode_of(call.entry());
      if (opcode == Opcode::kAdd || opcode == Opcode::kSub || opcode == Opcode::kMul || opcode == Opcode::kPow)
        check_step(expressions, call, opcode, out);
    });
  }

 private:
  /// Less may count classes: labels or masks of small integers, which nothing takes out of their range.
  static constexpr double kPictureStep = 8;

  static void check_step(const Expressions& expressions, const NodeCall& call, Opcode opcode, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const auto dtype = analysis.fact(call.result()).dtypes.single();
    if (!dtype || !DTypeSet::integers().contains(*dtype)) return;
    const Range type = range_of(DTypeSet(*dtype));
    constexpr double kMost = 65535;
    if (type.hi > kMost) return;
    const ValueId first = call.operand(0).value(), second = call.operand(1).value();
    const bool is_square = opcode == Opcode::kMul && first == second;
    const WithNumber step =
        is_square ? WithNumber{first, 2, false} : with_number(expressions, call.id()).value_or(WithNumber{});
    const bool is_sum = opcode == Opcode::kAdd && step.value == ValueId::kAbsent;
    const ValueId data = is_sum ? first : step.value;
    if (!is_whole_range(expressions, data, type) || (is_sum && !is_whole_range(expressions, second, type))) return;
    double most = 0, witness = 0;
    if (is_sum) {
      witness = type.hi;
      most = 2 * witness;
    } else if (is_square || opcode == Opcode::kPow) {
      if (step.is_first || step.number < 2) return;
      witness = std::floor(std::pow(type.hi, 1 / step.number)) + 1;
      most = std::pow(witness, step.number);
    } else if (opcode == Opcode::kMul) {
      if (step.number < 2 || step.number > kPictureStep) return;  // a mask of 0 and 1 times 255
      witness = type.hi;
      most = witness * step.number;
    } else {
      const double change = opcode == Opcode::kAdd ? step.number : -step.number;
      if (std::abs(change) < kPictureStep || (opcode == Opcode::kSub && step.is_first)) return;
      witness = change > 0 ? type.hi : type.lo;
      most = witness + change;
    }
    if (most >= type.lo && most <= type.hi) return;
    const NodeId use = picture_use(expressions, call.result());
    if (use == NodeId::kNone) return;
    const double wrapped = most - std::floor((most - type.lo) / (type.hi - type.lo + 1)) * (type.hi - type.lo + 1);
    const std::string both = is_sum ? fmt::format(" and {}", Operand(analysis, second).name()) : std::string();
    out.report(call.id(), fmt::format("{} of {}{} leaves the range of {}: {:.0f} becomes {:.0f}", call.op_name(),
                                      Operand(analysis, data).name(), both, to_text(*dtype), most, wrapped))
        .certainty(ops::Certainty::kMay,
                   is_sum ? fmt::format("{}{} are both {:.0f}", Operand(analysis, data).name(), both, witness)
                          : fmt::format("{} has {:.0f} among its elements", Operand(analysis, data).name(), witness))
        .note_at(use, "used as a picture here")
        .fix("cast to a floating-point dtype first");
  }

  /// Moved from an input of which nothing is known but its dtype.
  static bool is_whole_range(const Expressions& expressions, ValueId data, const Range& type) {
    const dataflow::Analysis& analysis = expressions.analysis();
    if (data == ValueId::kAbsent || !is_input(analysis, before_moves(expressions, data))) return false;
    const Range& range = analysis.fact(data).range;
    return !analysis.taint(data).has(Aspect::kValue) && range.lo == type.lo && range.hi == type.hi;
  }

  /// The convolution that takes the value, or a division as of bytes: a picture, and neither labels nor a mask.
  static NodeId picture_use(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMaxValues = 16;
    constexpr double kBytes = 100;
    std::vector<ValueId> values{value};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const Opcode opcode = expressions.op(user);
        const auto number = with_number(expressions, user);
        if (opcode == Opcode::kConv || opcode == Opcode::kNormalize) return user;
        if (opcode == Opcode::kDiv && number && !number->is_first && number->number >= kBytes) return user;
        if (opcode == Opcode::kMul && number && std::abs(number->number) <= 1 / kBytes) return user;
        const bool passes = ops::moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kAdd ||
                            (number && has_trait(expressions.entry(user), ops::OpTrait::kElementwise));
        if (passes && values.size() < kMaxValues) values.push_back(expressions.result(user));
      }
    return NodeId::kNone;
  }
};

const RegisterRule<ByteArithmeticWraps> kRegister;

}  // namespace
}  // namespace tensorlint::rules
