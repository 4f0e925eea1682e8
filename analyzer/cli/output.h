#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/result.h"

namespace tensorlint::cli {

/// Writes to a temporary file beside `path` and renames it, so that no half-written file is ever seen there. A device
/// or FIFO that already exists is written to as it is.
std::optional<Error> write_file(const std::string& path, std::string_view text);

/// The same of a file's bytes in parts; what stood there before keeps its permissions.
std::optional<Error> write_file(const std::string& path, std::span<const std::string_view> parts);

std::optional<Error> write_stdout(std::string_view text);

/// Standard output is a terminal that takes colours, and the user did not turn them off (NO_COLOR).
bool wants_colour();

}  // namespace tensorlint::cli
