#include "analyzer/rules/value/reached_index.h"

#include <fmt/format.h>

#include <string>

namespace tensorlint::rules {

void explain_index(FindingBuilder& finding, const Operand& operand, const dataflow::ReachedIndex& reached) {
  finding.certainty(reached.certainty, reached.certainty == ops::Certainty::kMay
                                           ? fmt::format("{} has {} among its elements", operand.name(), reached.index)
                                           : std::string());
  // All numbers of the dtype say nothing.
  if (!(operand.fact().range == range_of(operand.fact().dtypes))) finding.origin(operand, Aspect::kValue);
}

}  // namespace tensorlint::rules
