#pragma once

#include <optional>
#include <string_view>

#include "analyzer/findings/finding.h"

namespace tensorlint::findings {

/// The least severity that makes the exit code 1; none: findings never do.
struct FailOn {
  std::optional<Severity> least = Severity::kWarning;

  bool fails(Severity severity) const { return least && severity >= *least; }
  bool fails(const SeverityCounts& counts) const {
    const std::optional<Severity> worst = counts.worst();
    return worst && fails(*worst);
  }
  friend bool operator==(const FailOn&, const FailOn&) = default;

  /// `never`, or the name of a severity.
  static std::optional<FailOn> named(std::string_view name) {
    const std::optional<Severity> least = severity_named(name);
    if (!least && name != "never") return std::nullopt;
    return FailOn{least};
  }
};

}  // namespace tensorlint::findings
