#pragma once

#include <set>
#include <string>

#include "passes/dataflow/analysis.h"

namespace tensorlint::ops {

/// Labels of the constraints that did not hold somewhere in the tests of this process.
std::set<std::string, std::less<>>& broken_constraints();

/// Notes what did not hold in an analysis.
void note_broken(const dataflow::Analysis& analysis);

}  // namespace tensorlint::ops
