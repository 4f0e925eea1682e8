#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tensorlint {

/// Letters to insert, remove or change (Levenshtein); any number above `most` where there are more.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t most = SIZE_MAX);

/// "; did you mean `x`?" with the candidate that is nearest to a mistyped word, or nothing where none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace tensorlint
