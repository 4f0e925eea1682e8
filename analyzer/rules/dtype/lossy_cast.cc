#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "analyzer/rules/casts.h"

namespace tensorlint::rules {
namespace {

/// Only constants: there it is known that a value changes. Rounding between floating dtypes is what such casts are for.
class LossyCast : public Rule {
 public:
  LossyCast() : Rule({"TL-D111", "lossy-cast", "dtype", findings::Severity::kInfo, "a constant that a cast changes"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return opcode_of(entry) == ops::Opcode::kCast;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const Operand operand = call.operand(0);
    if (!operand.present() || call.result() == ValueId::kAbsent || operand.taint().has(Aspect::kValue)) return;
    const auto to = call.analysis().fact(call.result()).dtypes.single();
    const Content* content = call.analysis().content(operand.value());
    if (!to || content == nullptr || operand.fact().kind != ValueKind::kTensor) return;
    const auto changed =
        DTypeSet::integers().contains(*to) ? fraction_in(content->floats) : rounded_in(call.facts(), *content, *to);
    if (!changed || is_in_violation(call.analysis(), call.result())) return;
    out.report(call.id(), fmt::format("the cast to {} changes {}, which has {} among its elements", to_text(*to),
                                      operand.name(), *changed))
        .origin(operand, Aspect::kValue);
  }

 private:
  static std::optional<std::string> fraction_in(std::span<const double> floats) {
    const auto found = std::ranges::find_if(floats, [](double x) { return std::isfinite(x) && x != std::trunc(x); });
    return found == floats.end() ? std::nullopt : std::optional(fmt::format("{}", *found));
  }

  static std::optional<std::string> rounded_in(const FactStore& facts, const Content& content, DType to) {
    if (!DTypeSet::floats().contains(to)) return std::nullopt;
    for (const Dim element : content.integers) {
      const auto number = facts.dims().as_constant(element);
      // A dtype's limit stands for no limit; every power of two is exact.
      if (!number || *number == std::numeric_limits<std::int64_t>::max() ||
          *number == std::numeric_limits<std::int32_t>::max())
        continue;
      if (is_exact_significand(*number, to)) continue;
      return fmt::format("{}", *number);
    }
    return std::nullopt;
  }

  /// One of the integers that are all exact, or a larger one that is exact all the same: an even number, a multiple of
  /// four, ...
  static bool is_exact_significand(std::int64_t number, DType to) {
    constexpr double kLargestHalf = 65504;
    if (number == std::numeric_limits<std::int64_t>::min()) return true;
    if (to == DType::kFloat16 && std::abs(static_cast<double>(number)) > kLargestHalf) return false;
    while (number != 0 && number % 2 == 0) number /= 2;
    constexpr std::int64_t kAllExactInDouble = std::int64_t{1} << 53;
    if (number > kAllExactInDouble || number < -kAllExactInDouble) return false;
    const auto odd = static_cast<double>(number);
    return is_exact_in({odd, odd, false}, to);
  }
};

const RegisterRule<LossyCast> kRegisterLossyCast;

}  // namespace
}  // namespace tensorlint::rules
