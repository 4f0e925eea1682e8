#pragma once

#include <span>
#include <string>

#include "analyzer/findings/input_report.h"

namespace tensorlint::reports {

/// The result of `check` as one JSON document (docs/schema/check.schema.json), with a newline at its end.
std::string check_json(std::span<const findings::InputReport> inputs, bool timings);

}  // namespace tensorlint::reports
