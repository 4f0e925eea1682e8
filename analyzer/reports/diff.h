#pragma once

#include <string>
#include <string_view>

namespace tensorlint::reports {

/// The unified difference of two texts, line by line, with three lines around each change; empty where they are equal.
/// Shortest by Myers' greedy algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986) up to 1,000 changed
/// lines, past that everything between the first and the last change is one change.
std::string unified_diff(std::string_view before, std::string_view after, std::string_view before_name,
                         std::string_view after_name);

}  // namespace tensorlint::reports
