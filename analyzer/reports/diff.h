#pragma once

#include <cstddef>
#include <string_view>

#include "base/output.h"

namespace tensorlint::reports {

/// Text of a diff that is shown.
inline constexpr std::size_t kMostOfDiff = std::size_t{4} << 20;

/// The unified difference of two texts, line by line, with three lines around each change; empty where they are equal.
/// Shortest by Myers' greedy algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986) up to 1,000 changed
/// lines, past that everything between the first and the last change is one change. Lines are escaped and shortened as
/// people see them; past kMostOfDiff the last line says that there is more.
///
/// The texts may be large: each is made twice and never kept. Lines are compared by their hashes.
void unified_diff(const TextSource& before, const TextSource& after, std::string_view before_name,
                  std::string_view after_name, const TextSink& out);

}  // namespace tensorlint::reports
