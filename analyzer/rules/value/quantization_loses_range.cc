#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

class QuantizationLosesRange : public Rule {
 public:
  QuantizationLosesRange()
      : Rule({"TL-V522", "quantization-loses-range", "value", findings::Severity::kWarning,
              "a scale or zero point that makes one number of many values"}) {}

  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry*) const override {
    const OpSchema* schema = find_any_version(domain, name);
    return schema != nullptr && schema->input_index("y_scale") == 1;
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const OpSchema* schema = call.op().schema;
    if (schema == nullptr || schema->input_index("y_scale") != 1 || call.analysis().has_failed(call.id())) return;
    const Operand data = call.operand(0), scales = call.operand(1), zero = call.operand(2);
    if (call.result() == ValueId::kAbsent || !data.present() || data.taint().has(Aspect::kValue)) return;
    if (scales.taint().has(Aspect::kValue) || (zero.present() && zero.taint().has(Aspect::kValue))) return;
    const auto scale = number_of(scales), zero_point = zero.present() ? number_of(zero) : std::optional(0.0);
    const auto dtype = call.analysis().fact(call.result()).dtypes.single();
    const Range& range = data.fact().range;
    if (!scale || !zero_point || !dtype || !(*scale > 0) || !DTypeSet(*dtype).proves(DTypeSet::integers()) ||
        !std::isfinite(range.lo) || !std::isfinite(range.hi) || !(range.lo < range.hi))
      return;
    const Range integers = range_of(DTypeSet(*dtype));
    const auto quantized = [&](double x) {
      return std::clamp(std::nearbyint(x / *scale) + *zero_point, integers.lo, integers.hi);
    };
    const double lowest = (integers.lo - *zero_point) * *scale, highest = (integers.hi - *zero_point) * *scale;
    if (quantized(range.lo) == quantized(range.hi)) {
      out.report(call.id(), fmt::format("all of {} becomes {}: it is in {}, and a step is {:.4g}", data.name(),
                                        bound_text(quantized(range.lo)), range.to_text(), *scale))
          .origin(data, Aspect::kValue)
          .fix(fmt::format("make the scale about {:.4g}: what one step stands for, not the number of steps",
                           (range.hi - range.lo) / (integers.hi - integers.lo)));
      return;
    }
    // Numbers of one sign may be rare; those of a function that is even-handed about 0 are not.
    const bool is_balanced = range.lo < 0 && range.hi > 0 && std::abs(range.lo + range.hi) <= range.hi / 4;
    const bool loses_negative = lowest >= 0, loses_positive = highest <= 0;
    if (is_balanced && (loses_negative || loses_positive)) {
      out.report(call.id(),
                 fmt::format("all numbers of {} {} 0 become 0: it is in {}, and the zero point is {}", data.name(),
                             loses_negative ? "below" : "above", range.to_text(), bound_text(*zero_point)))
          .origin(data, Aspect::kValue)
          .fix(fmt::format("make the zero point {}", bound_text((integers.lo + integers.hi + 1) / 2)));
      return;
    }
    // A scale for the whole range, with the zero point of another one: calibration would have made both fit.
    const double width = range.hi - range.lo, cut = std::max(range.hi - highest, lowest - range.lo);
    if (std::abs(highest - lowest - width) <= width / 64 && cut > width / 8) {
      const double right = std::nearbyint(integers.lo - range.lo / *scale);
      out.report(call.id(),
                 fmt::format("{} is in {}, and {} keeps only what is in [{:.4g}, {:.4g}]: the scale fits, the "
                             "zero point {} does not",
                             data.name(), range.to_text(), call.op_name(), lowest, highest, bound_text(*zero_point)))
          .origin(data, Aspect::kValue)
          .fix(fmt::format("make the zero point {}", bound_text(right)));
      return;
    }
  }
};

const RegisterRule<QuantizationLosesRange> kRegisterQuantizationLosesRange;

}  // namespace
}  // namespace tensorlint::rules
