#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/rules/graph/moved_attributes.h"
#include "analyzer/rules/structure_faults.h"
#include "base/did_you_mean.h"
#include "base/escape.h"
#include "ir/schema/schema.h"

namespace tensorlint::rules {
namespace {

class BadAttribute : public Rule {
 public:
  BadAttribute()
      : Rule({"TL-G604", "bad-attribute", "graph", findings::Severity::kError,
              "an attribute that the operator does not have, needs, or allows"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return is_unknown(violation) || violation.kind() == ops::ConstraintKind::kAttribute ? Specificity::kGeneric
                                                                                        : Specificity::kNone;
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    if (report_moved(violation, out)) return;
    const OpSchema* schema = violation.has_node() ? violation.call().op().schema : nullptr;
    const auto name = violation.at.attribute();
    if (!is_unknown(violation) || schema == nullptr || !name) {
      report_violation(violation, out);
      return;
    }
    std::vector<std::string_view> known;
    for (const FormalAttribute& attribute : schema->attributes) known.push_back(attribute.name);
    report_violation(violation, violation.message() + did_you_mean(*name, known), out);
  }

  static bool is_unknown(const ViolationCase& violation) {
    return violation.kind() == ops::ConstraintKind::kUnknownAttribute;
  }

  /// All attributes of a node that are operands by now are one mistake.
  bool report_moved(const ViolationCase& violation, Reporter& out) const {
    if (!violation.has_node() || !is_unknown(violation)) return false;
    const NodeCall call = violation.call();
    const std::vector<MovedAttribute> moved = moved_attributes(call);
    const auto is_meant = [&](const MovedAttribute& one) { return one.attribute->name == violation.at.attribute(); };
    if (std::ranges::none_of(moved, is_meant)) return false;
    if (!out.first(fmt::format("moved {}", static_cast<std::uint32_t>(call.id())))) return true;
    std::string names;
    int since = 0;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      names += (i == 0 ? "" : i + 1 == moved.size() ? " and " : ", ") + quoted_for_people(moved[i].attribute->name);
      since = std::max(since, moved[i].since);
    }
    const bool one = moved.size() == 1;
    report_violation(violation,
                     fmt::format("{} of {} {} since opset {}, not {}", names, call.op_name(),
                                 one ? "is an operand" : "are operands", since, one ? "an attribute" : "attributes"),
                     out)
        .fix(fmt::format("pass {} as {}", names, one ? "an operand" : "operands"), findings::Applicability::kSafe,
             move_to_operands(call, moved));
    return true;
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    report_faults(view, out,
                  [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kMalformedAttribute; });
  }
};

const RegisterRule<BadAttribute> kRegisterBadAttribute;

}  // namespace
}  // namespace tensorlint::rules
