#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

/// A sum in float16, which ends at 65504. Reported where it is known how many elements are summed and how large they
/// are.
class LowPrecisionAccumulation : public Rule {
 public:
  LowPrecisionAccumulation()
      : Rule({"TL-D108", "low-precision-accumulation", "dtype", findings::Severity::kWarning,
              "a sum in float16 that overflows"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return opcode_of(entry) == ops::Opcode::kReduceSum;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const Operand data = call.operand(0);
    if (!data.present() || data.fact().kind != ValueKind::kTensor || data.fact().dtypes != DTypeSet(DType::kFloat16))
      return;
    if (data.taint().has(Aspect::kValue) || data.taint().has(Aspect::kShape)) return;
    const auto count = summed(call);
    const Range& range = data.fact().range;
    if (!count || range.lo > range.hi || !std::isfinite(range.lo) || !std::isfinite(range.hi)) return;
    constexpr double kLargest = 65504;
    const auto terms = static_cast<double>(*count);
    const bool always = terms * range.lo > kLargest || terms * range.hi < -kLargest;
    if (!always) return;
    out.report(call.id(), fmt::format("the sum of {} elements of {} in {} is beyond float16, which ends at 65504",
                                      *count, data.name(), range.to_text()))
        .origin(data, Aspect::kDtype)
        .fix("sum in float32: cast before the reduction and back after it");
  }

 private:
  /// Elements that go into one result, where all extents that are reduced are numbers.
  static std::optional<std::int64_t> summed(const NodeCall& call) {
    FactStore& facts = call.facts();
    const Fact &data = call.operand(0).fact(), &result = call.analysis().fact(call.result());
    if (data.shape == ShapeId::kUnranked || result.shape == ShapeId::kUnranked) return std::nullopt;
    const auto product = [&](ShapeId shape) -> std::optional<std::int64_t> {
      std::int64_t elements = 1;
      for (const Dim dim : facts.dims_of(shape)) {
        const auto extent = facts.dims().as_constant(dim);
        if (!extent || *extent <= 0 || __builtin_mul_overflow(elements, *extent, &elements)) return std::nullopt;
      }
      return elements;
    };
    const auto before = product(data.shape), after = product(result.shape);
    if (!before || !after) return std::nullopt;
    return *before / *after;
  }
};

const RegisterRule<LowPrecisionAccumulation> kRegister;

}  // namespace
}  // namespace tensorlint::rules
