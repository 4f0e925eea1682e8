#pragma once

#include <random>
#include <string>
#include <string_view>

namespace tensorlint::fuzz {

/// A model in which some extents, or numbers that make extents, are others: dims of tensors and of declared types,
/// integers of attributes and of small tables. Most become values at which products and sums of extents turn over;
/// some are left out or stand twice, which changes a rank. All around them is well-formed still, so that the change
/// gets past the reader, where a changed byte seldom does. Of a model in text any number is such an extent. What is no
/// model is returned as it is.
std::string with_other_extents(std::string_view model, std::mt19937_64& random);

}  // namespace tensorlint::fuzz
