#pragma once

#include <string_view>

namespace tensorlint {

/// `*` stands for any text, `?` for one byte: for names of nodes and graphs. An empty glob matches everything.
bool matches_name(std::string_view glob, std::string_view name);

/// For paths, with `/` between folders: `*` and `?` stay inside one folder, `**` goes through any number of them
/// (`a/**`,
/// `**/b`, `a/**/b`). A glob without `/` is about the file's name, whatever folder it is in. Empty matches everything.
bool matches_path(std::string_view glob, std::string_view path);

}  // namespace tensorlint
