#include <fmt/format.h>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class ReductionOnIntegers : public Rule {
 public:
  ReductionOnIntegers()
      : Rule({"TL-D106", "reduction-on-integers", "dtype", findings::Severity::kInfo,
              "a mean of integers, which truncates the fraction"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return opcode_of(entry) == ops::Opcode::kReduceMean;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const Operand data = call.operand(0);
    if (!data.present() || data.fact().kind != ValueKind::kTensor || data.taint().has(Aspect::kDtype) ||
        !data.fact().dtypes.proves(DTypeSet::integers()))
      return;
    out.report(call.id(), fmt::format("the mean of {} is {}: its fraction is truncated", data.name(),
                                      data.fact().dtypes.to_text()))
        .origin(data, Aspect::kDtype)
        .fix(fmt::format("cast {} to a floating dtype first", data.name()));
  }
};

const RegisterRule<ReductionOnIntegers> kRegisterReductionOnIntegers;

}  // namespace
}  // namespace tensorlint::rules
