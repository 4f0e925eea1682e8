#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "passes/placement/sources.h"

namespace tensorlint::cli {

/// Reads a placement file (docs/placement-file.md). Errors, with the place: no such file, above 1 MiB, no TOML, unknown
/// keys, a row without a device or without a glob, a name that is no device. One that a configuration names which
/// nobody named has at most 512 KiB, and errors show its keys and devices alone.
Result<std::vector<placement::PlacementRule>> read_placement_file(const std::string& path, bool is_named_by_found);

}  // namespace tensorlint::cli
