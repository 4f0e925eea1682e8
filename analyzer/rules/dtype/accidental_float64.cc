#include <fmt/format.h>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

class AccidentalFloat64 : public Rule {
 public:
  AccidentalFloat64()
      : Rule({"TL-D110", "accidental-float64", "dtype", findings::Severity::kInfo,
              "a float32 model that switches to float64"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return opcode_of(entry) == ops::Opcode::kCast;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const Operand operand = call.operand(0);
    if (!operand.present() || call.result() == ValueId::kAbsent || operand.taint().has(Aspect::kDtype)) return;
    if (operand.fact().dtypes != DTypeSet(DType::kFloat32) ||
        call.analysis().fact(call.result()).dtypes != DTypeSet(DType::kFloat64))
      return;
    // A single number costs nothing.
    if (operand.fact().shape == ShapeId::kUnranked || call.facts().dims_of(operand.fact().shape).empty()) return;
    if (!out.first("cast") || is_in_violation(call.analysis(), call.result())) return;
    out.report(call.id(), fmt::format("{} becomes float64: twice the memory, and on most GPUs a fraction of the speed",
                                      operand.name()))
        .fix(fmt::format("leave {} in float32", operand.name()));
  }
};

const RegisterRule<AccidentalFloat64> kRegisterAccidentalFloat64;

}  // namespace
}  // namespace tensorlint::rules
