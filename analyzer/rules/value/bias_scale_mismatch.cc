#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

using ops::Opcode;

class BiasScaleMismatch : public Rule {
 public:
  BiasScaleMismatch()
      : Rule({"TL-V523", "bias-scale-mismatch", "value", findings::Severity::kWarning,
              "a quantized addend whose scale is not the product of the scales of what it is added to"}) {}

  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry*) const override {
    const OpSchema* schema = find_any_version(domain, name);
    return schema != nullptr && schema->input_index("x_scale") == 1;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const Operand quantized = call.operand(0), result(call.analysis(), call.result());
    if (!quantized.present() || !result.present() || !quantized.fact().dtypes.proves(DTypeSet(DType::kInt32))) return;
    for (const NodeId user : call.analysis().users(call.result())) {
      const NodeCall adds(call.analysis(), user);
      if (adds.operand(2).value() == result.value() && (adds.is(Opcode::kMatMul) || adds.is(Opcode::kConv)))
        return check_addend(adds, result, adds, out);
      if (!adds.is(Opcode::kAdd)) continue;
      const NodeId made = producer(call, adds.operand(adds.operand(0).value() == result.value() ? 1 : 0));
      if (made == NodeId::kNone) continue;
      const NodeCall product(call.analysis(), made);
      if (product.is(Opcode::kMatMul) && !product.operand(2).present()) return check_addend(product, result, adds, out);
    }
  }

 private:
  static NodeId producer(const NodeCall& call, const Operand& operand) {
    return operand.present() ? call.model().value(operand.value()).producer : NodeId::kNone;
  }

  /// The constant scales of what a node makes floats of; empty where it is no such node, or they are not known.
  static std::vector<double> scales_of(const NodeCall& call, const Operand& operand, DTypeSet from) {
    const NodeId node = producer(call, operand);
    if (node == NodeId::kNone) return {};
    const NodeCall dequantizes(call.analysis(), node);
    const OpSchema* schema = dequantizes.op().schema;
    if (schema == nullptr || schema->input_index("x_scale") != 1 || !dequantizes.operand(1).present() ||
        !dequantizes.operand(0).present() || !dequantizes.operand(0).fact().dtypes.proves(from) ||
        dequantizes.operand(1).taint().has(Aspect::kValue))
      return {};
    const Fact& scale = dequantizes.operand(1).fact();
    if (const Content* content = call.analysis().content(dequantizes.operand(1).value()); content != nullptr)
      return content->floats;
    if (scale.range.lo == scale.range.hi && !scale.range.nan) return {scale.range.lo};
    return {};
  }

  /// Runtimes that compute in integers take the sum's scale for the addend, whatever its own is, or refuse the model.
  static void check_addend(const NodeCall& product, const Operand& addend, const NodeCall& adds, Reporter& out) {
    if (!addend.present()) return;
    const std::vector<double> own = scales_of(product, addend, DTypeSet(DType::kInt32));
    if (own.empty()) return;
    const DTypeSet narrow = DTypeSet(DType::kInt8) | DTypeSet(DType::kUint8);
    const std::vector<double> data = scales_of(product, product.operand(0), narrow);
    const std::vector<double> weights = scales_of(product, product.operand(1), narrow);
    if (data.size() != 1 || weights.empty() || (own.size() != weights.size() && own.size() != 1 && weights.size() != 1))
      return;
    const std::size_t count = std::max(own.size(), weights.size());
    constexpr double kTolerance = 0.01;
    for (std::size_t i = 0; i < count; ++i) {
      const double given = own[own.size() == 1 ? 0 : i], expected = data[0] * weights[weights.size() == 1 ? 0 : i];
      if (std::abs(given - expected) <= kTolerance * std::abs(expected)) continue;
      out.report(adds.id(),
                 fmt::format("{} is added with the scale {:.4g}, and the sum has {:.4g}: {:.4g} of {} times {:.4g} of "
                             "{}",
                             addend.name(), given, expected, data[0], product.operand(0).name(),
                             weights[weights.size() == 1 ? 0 : i], product.operand(1).name()))
          .note_at(producer(product, addend), "the addend becomes floating-point numbers here")
          .fix(fmt::format("quantize the addend with the scale {:.4g} and the zero point 0", expected));
      return;
    }
  }
};

const RegisterRule<BiasScaleMismatch> kRegisterBiasScaleMismatch;

}  // namespace
}  // namespace tensorlint::rules
