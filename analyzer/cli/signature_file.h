#pragma once

#include <string>

#include "base/result.h"
#include "ir/ops/signatures.h"

namespace tensorlint::cli {

/// Reads a file of signatures (docs/signatures.md). Errors, with the place: no such file, no TOML, unknown keys, a row
/// without a name, types that cannot be understood, an operator declared twice.
Result<ops::Signatures> read_signature_file(const std::string& path);

}  // namespace tensorlint::cli
