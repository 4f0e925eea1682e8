#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "analyzer/rules/misspelt_operator.h"
#include "analyzer/rules/rule.h"
#include "base/did_you_mean.h"
#include "base/escape.h"
#include "ir/schema/schema.h"

namespace tensorlint::rules {
namespace {

class UnknownOperator : public Rule {
 public:
  UnknownOperator()
      : Rule({"TL-G601", "unknown-operator", "graph", findings::Severity::kError,
              "an operator that its domain does not have"}) {}

  Specificity match(const ViolationCase& violation) const override {
    return violation.kind() == ops::ConstraintKind::kUnknownOperator ? Specificity::kGeneric : Specificity::kNone;
  }

  /// Operators of onnxruntime's own domains: releases differ in what they have, so only a slip is one.
  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry* entry) const override {
    return entry == nullptr && newest_opset(domain) == 0 && !misspelt_operator(domain, name).empty();
  }

  void check(const NodeCall& call, Reporter& out) const override {
    if (call.op().schema != nullptr || call.analysis().is_declared(call.id())) return;
    const std::string_view domain = call.model().text(call.op().domain);
    out.report(findings::Severity::kWarning, call.id(),
               fmt::format("no operator {} of {} is known; did you mean `{}`?", quoted_for_people(call.op_name()),
                           quoted_for_people(domain), misspelt_operator(domain, call.op_name())))
        .cause(fmt::format("{}.{}", domain, call.op_name()));
  }

  void report(const ViolationCase& violation, Reporter& out) const override {
    // Every node that calls the operator has the same mistake: said once.
    const std::string_view name = violation.call().op_name();
    if (!out.first(name)) return;
    const std::string_view domain = violation.model().text(violation.call().op().domain);
    report_violation(violation,
                     violation.message() + (out.is_among_first(kMaxSuggestions) ? meant(domain, name) : std::string()),
                     out);
  }

 private:
  static constexpr std::size_t kLongest = 40;
  static constexpr std::size_t kMaxSuggestions = 16;  // each compares the name with a few hundred

  static std::string meant(std::string_view domain, std::string_view name) {
    if (name.size() > kLongest) return {};
    std::vector<std::string_view> known;
    for (const OpSchema& schema : all_schemas())
      if (schema.domain == domain && (known.empty() || known.back() != schema.name)) known.push_back(schema.name);
    return did_you_mean(escape_for_display(name), known);
  }
};

const RegisterRule<UnknownOperator> kRegisterUnknownOperator;

}  // namespace
}  // namespace tensorlint::rules
