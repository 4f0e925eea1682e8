#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tensorlint {

/// "; did you mean `x`?" with the candidate that is nearest to a mistyped word, or nothing where none is near.
std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace tensorlint
