#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/rules/graph/moved_attributes.h"
#include "analyzer/rules/structure_faults.h"
#include "base/escape.h"
#include "base/suggestion.h"
#include "ir/schema/schema.h"

namespace tensorlint::rules {
namespace {

class BadAttribute : public Rule {
 public:
  BadAttribute()
      : Rule({"TL-G604", "bad-attribute", "graph", findings::Severity::kError,
              "an attribute that the operator does not have, needs, or allows"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ops::ConstraintKind::kAttribute ? kGeneric : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
    if (report_moved(failure, out)) return;
    std::string message = failure.message();
    const OpSchema* schema = failure.has_node() ? failure.call().op().schema : nullptr;
    if (schema != nullptr && std::string_view(failure.failure().constraint->label) == "known_attribute") {
      std::vector<std::string_view> known;
      for (const FormalAttribute& attribute : schema->attributes) known.push_back(attribute.name);
      // The message tells of the first that the schema does not have.
      for (const Attribute& attribute : failure.model().attributes(failure.call().node())) {
        if (schema->attribute(attribute.name) != nullptr ||
            message.find(quoted_for_people(attribute.name)) == std::string::npos)
          continue;
        message += suggestion(attribute.name, known);
        break;
      }
    }
    word(failure, std::move(message), out);
  }

  /// All attributes of a node that are operands by now are one mistake.
  bool report_moved(const FailureCase& failure, Reporter& out) const {
    const bool is_unknown = std::string_view(failure.failure().constraint->label) == "known_attribute";
    if (!failure.has_node() || !is_unknown) return false;
    const NodeCall call = failure.call();
    const std::vector<MovedAttribute> moved = moved_attributes(call);
    const auto is_in_message = [message = failure.message()](const MovedAttribute& one) {
      return message.find(quoted_for_people(one.attribute->name)) != std::string::npos;
    };
    if (std::ranges::none_of(moved, is_in_message)) return false;
    if (!out.first(fmt::format("moved {}", static_cast<std::uint32_t>(call.id())))) return true;
    std::string names;
    int since = 0;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      names += (i == 0 ? "" : i + 1 == moved.size() ? " and " : ", ") + quoted_for_people(moved[i].attribute->name);
      since = std::max(since, moved[i].since);
    }
    const bool one = moved.size() == 1;
    word(failure,
         fmt::format("{} of {} {} since opset {}, not {}", names, call.op_name(),
                     one ? "is an operand" : "are operands", since, one ? "an attribute" : "attributes"),
         out)
        .fix(fmt::format("pass {} as {}", names, one ? "an operand" : "operands"), findings::Applicability::kSafe,
             move_to_operands(call, moved));
    return true;
  }

  void check_model(ModelView& view, Reporter& out) const override {
    report_faults(view, out,
                  [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kMalformedAttribute; });
  }
};

const RegisterRule<BadAttribute> kRegister;

}  // namespace
}  // namespace tensorlint::rules
