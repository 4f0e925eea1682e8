#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "passes/placement/sources.h"

namespace tensorlint::cli {

/// Reads a placement file (docs/placement-file.md). Errors, with the place: no such file, above `most_bytes`, no TOML,
/// unknown keys, a row without a device or without a glob, a name that is no device.
Result<std::vector<placement::PlacementRule>> read_placement_file(const std::string& path, std::size_t most_bytes);

}  // namespace tensorlint::cli
