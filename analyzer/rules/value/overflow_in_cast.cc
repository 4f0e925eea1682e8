#include <fmt/format.h>

#include <cmath>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class OverflowInCast : public Rule {
 public:
  OverflowInCast()
      : Rule({"TL-V505", "overflow-in-cast", "value", findings::Severity::kWarning,
              "a cast whose operand lies outside the dtype that it is cast to"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return opcode_of(entry) == ops::Opcode::kCast;
  }

  /// Only where every element is outside. From floats the result is undefined; from wider integers the upper bits are
  /// dropped, which may be meant.
  void check(const NodeCall& call, Reporter& out) const override {
    const Operand operand = call.operand(0);
    if (!operand.present() || call.result() == ValueId::kAbsent || operand.taint().has(Aspect::kValue) ||
        operand.taint().has(Aspect::kDtype))
      return;
    const Fact& fact = operand.fact();
    const DTypeSet target = call.analysis().fact(call.result()).dtypes;
    const auto dtype = target.single();
    if (fact.kind != ValueKind::kTensor || !dtype || !target.proves(DTypeSet::integers())) return;
    const Range& range = fact.range;
    // Infinities stand in masks on purpose; lo > hi: there are no elements.
    if (!std::isfinite(range.lo) || !std::isfinite(range.hi) || range.lo > range.hi) return;
    const Range fits = range_of(target);
    // A fraction is cut off first: 255.5 becomes 255.
    if (std::trunc(range.lo) <= fits.hi && std::trunc(range.hi) >= fits.lo) return;
    const bool floats = fact.dtypes.proves(DTypeSet::floats());
    if (!floats && (!fact.dtypes.proves(DTypeSet::integers()) || is_customary(range, fact.dtypes))) return;
    out.report(floats ? info().severity : findings::Severity::kInfo, call.id(),
               fmt::format("{} in {} does not fit {}, which holds {}", operand.name(), range.to_text(), to_text(*dtype),
                           fits.to_text()))
        .origin(operand, Aspect::kValue);
  }

 private:
  /// -1 stands for all bits, a dtype's limit for no limit: programs narrow both and mean the same of the narrower
  /// dtype.
  static bool is_customary(const Range& range, DTypeSet dtypes) {
    const Range limits = range_of(dtypes);
    return (range.lo == -1 && range.hi == -1) || range.hi >= limits.hi || range.lo <= limits.lo;
  }
};

const RegisterRule<OverflowInCast> kRegister;

}  // namespace
}  // namespace tensorlint::rules
