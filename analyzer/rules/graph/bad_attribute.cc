#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/config/suggestion.h"
#include "analyzer/findings/escape.h"
#include "analyzer/rules/structure_faults.h"
#include "ir/ops/schema.h"

namespace tensorlint {
namespace {

class BadAttribute : public Rule {
 public:
  BadAttribute()
      : Rule({"TL-G604", "bad-attribute", "graph", Severity::kError,
              "an attribute that the operator does not have, needs, or allows"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ConstraintKind::kAttribute ? kGeneric : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
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

  void check_model(ModelView& view, Reporter& out) const override {
    report_faults(view, out,
                  [](const StructureFault& fault) { return fault.kind == StructureFault::Kind::kMalformedAttribute; });
  }
};

const RegisterRule<BadAttribute> kRegister;

}  // namespace
}  // namespace tensorlint
