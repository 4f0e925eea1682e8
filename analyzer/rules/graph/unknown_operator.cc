#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "analyzer/config/suggestion.h"
#include "analyzer/findings/escape.h"
#include "analyzer/rules/rule.h"
#include "ir/ops/schema.h"

namespace tensorlint {
namespace {

class UnknownOperator : public Rule {
 public:
  UnknownOperator()
      : Rule({"TL-G601", "unknown-operator", "graph", Severity::kError, "an operator that its domain does not have"}) {}

  int claim(const FailureCase& failure) const override {
    return failure.kind() == ConstraintKind::kUnknownOperator ? kGeneric : 0;
  }

  void report(const FailureCase& failure, Reporter& out) const override {
    // Every node that calls the operator has the same mistake: said once.
    const std::string_view name = failure.call().op_name();
    if (!out.first(name)) return;
    const std::string_view domain = failure.model().text(failure.call().op().domain);
    std::vector<std::string_view> known;
    if (name.size() <= kLongest && may_suggest(out))
      for (const OpSchema& schema : all_schemas())
        if (schema.domain == domain && (known.empty() || known.back() != schema.name)) known.push_back(schema.name);
    word(failure, failure.message() + suggestion(escape_for_people(name), known), out);
  }

 private:
  static constexpr std::size_t kLongest = 40;
  static constexpr int kMaxSuggestions = 16;  // each compares the name with a few hundred

  static bool may_suggest(Reporter& out) {
    for (int i = 0; i < kMaxSuggestions; ++i)
      if (out.first(fmt::format(" suggestion {}", i))) return true;
    return false;
  }
};

const RegisterRule<UnknownOperator> kRegister;

}  // namespace
}  // namespace tensorlint
