#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

/// Reported where suppressions are applied: by the engine for comments, by the command line for the configuration.
class UnusedSuppression : public Rule {
 public:
  UnusedSuppression()
      : Rule({"TL-G615", "unused-suppression", "graph", findings::Severity::kInfo,
              "a suppression that suppresses nothing, or cannot"}) {}
};

const RegisterRule<UnusedSuppression> kRegister;

}  // namespace
}  // namespace tensorlint::rules
