#include <fmt/format.h>

#include <optional>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

class OtherZeroPoint : public Rule {
 public:
  OtherZeroPoint()
      : Rule({"TL-V547", "other-zero-point", "value", findings::Severity::kWarning,
              "numbers that are quantized with one zero point and dequantized with another one"}) {}

  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry*) const override {
    const OpSchema* schema = find_any_version(domain, name);
    return schema != nullptr && schema->input_index("x_scale") == 1;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const OpSchema* schema = call.op().schema;
    if (schema == nullptr || schema->input_index("x_zero_point") != 2 || call.analysis().has_failed(call.id())) return;
    const NodeId quantizes = quantized_at(call.analysis(), call.operand(0).value());
    if (quantizes == NodeId::kNone || call.analysis().has_failed(quantizes)) return;
    const NodeCall before(call.analysis(), quantizes);
    const auto given = zero_point(before), taken = zero_point(call);
    if (!given || !taken || *given == *taken) return;
    out.report(call.id(),
               fmt::format("{} is quantized with the zero point {} and dequantized with {}: every number comes "
                           "back shifted",
                           call.operand(0).name(), *given, *taken))
        .note_at(quantizes, "it is quantized here")
        .fix("give both the same zero point");
  }

 private:
  /// Numbers without a zero point have 0.
  static std::optional<double> zero_point(const NodeCall& call) {
    const Operand zero = call.operand(2);
    if (!zero.present()) return 0.0;
    return zero.taint().has(Aspect::kValue) ? std::nullopt : number_of(zero);
  }

  /// The node that quantized a value before it was moved.
  static NodeId quantized_at(const dataflow::Analysis& analysis, ValueId value) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = analysis.model().value(value).producer;
      if (node == NodeId::kNone) break;
      const NodeCall call(analysis, node);
      const OpSchema* schema = call.op().schema;
      if (schema != nullptr && schema->input_index("y_scale") == 1 && schema->input_index("y_zero_point") == 2)
        return node;
      if (!ops::moves_elements(opcode_of(call.entry()))) break;
      value = call.operand(0).value();
    }
    return NodeId::kNone;
  }
};

const RegisterRule<OtherZeroPoint> kRegisterOtherZeroPoint;

}  // namespace
}  // namespace tensorlint::rules
