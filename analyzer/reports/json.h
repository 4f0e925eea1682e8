#pragma once

#include <span>

#include "analyzer/findings/input_report.h"
#include "base/output.h"

namespace tensorlint::reports {

/// The result of `check` as one JSON document (docs/schema/check.schema.json), with a newline at its end.
void check_json(std::span<const findings::InputReport> inputs, bool timings, const TextSink& out);

}  // namespace tensorlint::reports
