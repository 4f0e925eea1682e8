#include <fmt/format.h>

#include "analyzer/rules/misspelt_operator.h"
#include "analyzer/rules/rule.h"
#include "base/escape.h"

namespace tensorlint::rules {
namespace {

class UndeclaredCustomOperator : public Rule {
 public:
  UndeclaredCustomOperator()
      : Rule({"TL-G614", "undeclared-custom-operator", "graph", findings::Severity::kInfo,
              "an operator of an unknown domain"}) {}

  bool wants(std::string_view domain, std::string_view name, const ops::OpEntry* entry) const override {
    return entry == nullptr && newest_opset(domain) == 0 && misspelt_operator(domain, name).empty();
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const std::string name = fmt::format("{}.{}", call.model().text(call.op().domain), call.op_name());
    if (call.op().schema != nullptr || call.analysis().is_declared(call.id()) || !out.first(name)) return;
    out.report(call.id(), fmt::format("operator {} is unknown: its results may be anything", quoted_for_people(name)));
  }
};

const RegisterRule<UndeclaredCustomOperator> kRegisterUndeclaredCustomOperator;

}  // namespace
}  // namespace tensorlint::rules
