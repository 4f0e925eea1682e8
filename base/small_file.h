#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace tensorlint {

/// The text of a regular file. Errors: not there, not permitted, no regular file, above `limit` bytes.
Result<std::string> read_small_file(const std::string& path, std::size_t limit);

/// The folder that a file is in, "." for a plain name.
std::string folder_of(const std::string& path);

}  // namespace tensorlint
