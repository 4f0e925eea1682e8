#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tensorlint::placement {

/// A device in one spelling: "CUDA" and "cuda:0" are "cuda:0", "cpu:0" is "cpu". nullopt for what is no device: a
/// device is a name of letters, digits, `_` and `-`, then perhaps `:` and an index below 256.
std::optional<std::string> canonical_device(std::string_view text);

}  // namespace tensorlint::placement
