#pragma once

#include <string>
#include <vector>

#include "analyzer/rules/rule.h"
#include "passes/dataflow/origins.h"

namespace tensorlint::rules {

/// Keys that violations of one mistake share: the loss that they are part of, the wrong constant or list that they
/// read, the value that all of them reject for the same reason.
std::vector<std::string> causes_of(const ViolationCase& violation, dataflow::Origins& origins);

/// The key itself, or of a long one its beginning and a hash: keys are only compared, and each finding keeps its own.
std::string short_key(std::string key);

}  // namespace tensorlint::rules
