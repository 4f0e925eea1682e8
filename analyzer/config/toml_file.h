#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

// toml++ parses what its own assertions do not hold for ("[[[" asks for a key where there is none) and then says what
// is wrong with it. So they are off in every build, also as the promises to the optimizer that NDEBUG would make of
// them.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace tensorlint::config {

/// An error that begins with `path:line:column: `.
Error toml_error(const std::string& path, const toml::source_region& source, std::string_view message);

inline constexpr std::size_t kMaxTomlBytes = std::size_t{1} << 20;
/// Of a file that nobody named.
inline constexpr std::size_t kMaxFoundTomlBytes = kMaxTomlBytes / 2;

/// What a TOML file of at most `most_bytes` says. Errors: what read_small_file gives, keys of more than
/// 16 parts, brackets in more than 32 others, more than 131,072 keys, values and brackets, and the first place that is
/// no TOML. `is_named_by_found`: by a file that nobody named; of what else it may be, errors show nothing.
Result<toml::table> read_toml_file(const std::string& path, std::size_t most_bytes = kMaxTomlBytes,
                                   bool is_named_by_found = false);

}  // namespace tensorlint::config
