#include "analyzer/rules/rule.h"

namespace tensorlint::rules {
namespace {

/// Reported by the filter that applies suppressions: analyzer/pipeline/filter.h.
class UnusedSuppression : public Rule {
 public:
  UnusedSuppression()
      : Rule({"TL-G615", "unused-suppression", "graph", findings::Severity::kInfo,
              "a suppression that suppresses nothing, or cannot", kFilesOnly}) {}
};

const RegisterRule<UnusedSuppression> kRegisterUnusedSuppression;

}  // namespace
}  // namespace tensorlint::rules
