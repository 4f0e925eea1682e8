#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tensorlint {

/// Letters to insert, remove or change (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// "; did you mean `x`?" with the candidate that is nearest to a mistyped word, or nothing where none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace tensorlint
