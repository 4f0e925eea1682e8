#pragma once

#include <string>
#include <vector>

#include "analyzer/findings/finding.h"

namespace tensorlint::findings {

/// One mistake, one finding: findings of one rule that share a line of the user's program, or one of `causes`, become
/// the first of them, with the others in `also`. Severities and certainties are kept apart. `findings` are of one input
/// and sorted; near-linear in their number.
void group_by_cause(std::vector<Finding>& findings);

/// What findings of one mistake share: one of these keys is enough.
std::vector<std::string> mistake_keys(const Finding& finding);

/// Takes the first place out of a finding; false when no other place is left.
bool drop_first_place(Finding& finding);

}  // namespace tensorlint::findings
