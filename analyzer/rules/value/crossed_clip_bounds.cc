#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

class CrossedClipBounds : public Rule {
 public:
  CrossedClipBounds()
      : Rule({"TL-V506", "crossed-clip-bounds", "value", findings::Severity::kWarning,
              "a Clip whose lower bound lies above its upper bound"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return opcode_of(entry) == ops::Opcode::kClip;
  }

  /// Only where every legal pair of bounds is crossed. No runtime refuses that: every element becomes the upper bound.
  void check(const NodeCall& call, Reporter& out) const override {
    if (!call.operand(0).present()) return;
    const auto low = bound(call, 1, "min"), high = bound(call, 2, "max");
    if (!low || !high || low->lo <= high->hi) return;
    auto finding = out.report(call.id(), fmt::format("the lower bound {} of {} is above the upper bound {}", text(*low),
                                                     call.operand(0).name(), text(*high)));
    for (const std::size_t operand : {1U, 2U})
      if (call.operand(operand).present()) finding.origin(call.operand(operand), Aspect::kValue);
    finding.fix("exchange the bounds if they are in the wrong order, or correct the one that is wrong");
  }

 private:
  /// An operand since opset 11, before that an attribute. nullopt where it is missing, or may be NaN or no number.
  static std::optional<Range> bound(const NodeCall& call, std::size_t operand, std::string_view name) {
    const OpSchema* schema = call.op().schema;
    if (schema != nullptr && schema->attribute(name) != nullptr) {
      const Attribute* attribute = call.attribute(name);
      if (attribute == nullptr || attribute->kind != AttributeKind::kFloat) return std::nullopt;
      return known({attribute->f, attribute->f, std::isnan(attribute->f)});
    }
    const Operand value = call.operand(operand);
    if (!value.present() || value.fact().kind != ValueKind::kTensor || value.taint().has(Aspect::kValue))
      return std::nullopt;
    return known(value.fact().range);
  }

  static std::optional<Range> known(const Range& range) {
    // lo > hi: there are no elements.
    if (range.nan || range.lo > range.hi) return std::nullopt;
    return range;
  }

  static std::string text(const Range& range) {
    return range.lo == range.hi ? bound_text(range.lo) : "in " + range.to_text();
  }
};

const RegisterRule<CrossedClipBounds> kRegisterCrossedClipBounds;

}  // namespace
}  // namespace tensorlint::rules
