#include <fmt/format.h>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class IgnoredOperand : public Rule {
 public:
  IgnoredOperand()
      : Rule({"TL-V524", "ignored-operand", "value", findings::Severity::kWarning,
              "an operand that an attribute of 0 multiplies away"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return opcode_of(entry) == ops::Opcode::kMatMul;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const OpSchema* schema = call.op().schema;
    if (schema == nullptr || schema->attribute("alpha") == nullptr) return;
    const Attribute* beta = schema->attribute("beta") == nullptr ? nullptr : call.attribute("beta");
    const Operand addend = call.operand(2);
    // Old exporters give one number that stands for nothing, where an addend was required.
    const bool is_placeholder = addend.present() && addend.fact().range.lo == addend.fact().range.hi;
    if (is_zero(beta) && addend.present() && !is_placeholder)
      out.report(call.id(), fmt::format("`beta` is 0, so {} adds nothing of {}", call.op_name(), addend.name()))
          .fix("make beta 1, or leave the operand out");
    if (is_zero(call.attribute("alpha")))
      out.report(call.id(), fmt::format("`alpha` is 0, so nothing is left of {} and {}", call.operand(0).name(),
                                        call.operand(1).name()))
          .fix("make alpha 1");
  }

 private:
  static bool is_zero(const Attribute* attribute) {
    return attribute != nullptr && attribute->kind == AttributeKind::kFloat && attribute->f == 0;
  }
};

const RegisterRule<IgnoredOperand> kRegisterIgnoredOperand;

}  // namespace
}  // namespace tensorlint::rules
