#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tensorlint::findings {

/// Bytes of a name, a module or a label that findings keep: more than any report prints.
inline constexpr std::size_t kKeptOfName = 1024;
/// And of a message, a note or a fix, which reports shorten to two thousand.
inline constexpr std::size_t kKeptOfText = 8192;

/// What a finding keeps of a text that comes from the input, which may be as long as the file and kept a thousand
/// times: its beginning, cut between characters of UTF-8.
std::string kept(std::string_view text, std::size_t most = kKeptOfName);

}  // namespace tensorlint::findings
