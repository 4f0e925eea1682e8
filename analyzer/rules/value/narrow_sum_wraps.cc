#include <fmt/format.h>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class NarrowSumWraps : public Rule {
 public:
  NarrowSumWraps()
      : Rule({"TL-V525", "narrow-sum-wraps", "value", findings::Severity::kWarning,
              "a sum or product of quantized numbers in their own 8 bits, which wraps around"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    static constexpr std::initializer_list<Opcode> kArithmetic{Opcode::kAdd, Opcode::kSub, Opcode::kMul};
    each_node(view, out, kArithmetic, [&](const Expressions& expressions, const NodeCall& call) {
      const Operand a = call.operand(0), b = call.operand(1);
      const DTypeSet narrow = DTypeSet(DType::kInt8) | DTypeSet(DType::kUint8);
      if (!a.present() || !b.present() || !a.fact().dtypes.proves(narrow) || !b.fact().dtypes.proves(narrow) ||
          !is_quantized(expressions, a.value()) || !is_quantized(expressions, b.value()))
        return;
      const auto dtype = a.fact().dtypes.single();  // not where a zero point's is not known
      out.report(call.id(), fmt::format("{} of {} and {} in {}: what is beyond its range wraps around", call.op_name(),
                                        a.name(), b.name(), dtype ? to_text(*dtype) : "int8 or uint8"))
          .fix("compute with floating-point numbers: DequantizeLinear first, QuantizeLinear afterwards");
    });
  }

 private:
  /// Made by a QuantizeLinear, which may give each number of the dtype.
  static bool is_quantized(const Expressions& expressions, ValueId value) {
    const NodeId node = expressions.producer(before_stretch(expressions, value));
    if (node == NodeId::kNone) return false;
    const OpSchema* schema = NodeCall(expressions.analysis(), node).op().schema;
    return schema != nullptr && schema->input_index("y_scale") == 1;
  }
};

const RegisterRule<NarrowSumWraps> kRegisterNarrowSumWraps;

}  // namespace
}  // namespace tensorlint::rules
