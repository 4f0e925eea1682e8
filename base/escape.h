#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tensorlint {

/// Longest name or message that is shown, in bytes; longer ones keep their beginning and end.
inline constexpr std::size_t kShownLength = 200;

/// `text` as it may reach a terminal, a report or a page: C0 and C1 controls, DEL, direction marks, other invisible
/// format characters and invalid UTF-8 become visible (`\n`, `\u202e`, `\xff`); more than `limit` bytes are shortened
/// in the middle. Escaping twice changes nothing.
std::string escape_for_display(std::string_view text, std::size_t limit = kShownLength);

/// Longest path or name in a document that programs read, which may look it up again.
inline constexpr std::size_t kIdentifierLength = 1000;

/// The same of such a path or name: kept longer than what only people read.
std::string escape_identifier(std::string_view text);

/// The escaped text between backticks, the way names stand in messages.
std::string quoted_for_people(std::string_view name);

}  // namespace tensorlint
