#pragma once

#include <vector>

#include "passes/contract/contract.h"

namespace tensorlint::contract {

/// The same requirements in fewer and plainer lines: numbers put in place of extents that have to be these, common
/// factors divided out, "24*batch*sequence == 432" beside "sequence == 6" as "batch == 3", and none twice.
void simplify(DimPool& pool, std::vector<Requirement>& requirements);

}  // namespace tensorlint::contract
