#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/findings/fail_on.h"
#include "analyzer/findings/finding.h"

namespace tensorlint::findings {

/// What reports say of an input that was not examined to its end.
inline constexpr std::string_view kPartialText =
    "only a part was examined: the model needs more work than its size allows";

/// What became of one input of `check`.
struct InputReport {
  std::string path;
  bool checked = false;
  std::string error;  ///< why it could not be checked
  std::size_t nodes = 0;
  std::vector<Finding> findings;  ///< sorted; at most as many as asked for
  SeverityCounts counts;          ///< of all that was found
  std::size_t places = 0;         ///< of all that was found: a finding may be about several
  std::optional<std::pair<TransferCost, TransferCost>>
      cost;                      ///< with `--placement runtime`: of the cheapest and dearest run
  bool is_cost_unknown = false;  ///< the same, and nothing can be said of it

  FailOn fail_on;
  std::size_t suppressed = 0;   ///< places that suppressions took away; not in `counts`
  std::string config;           ///< path of the configuration; empty: none
  std::size_t hidden = 0;       ///< places that the configuration took away, by whatever means
  std::size_t left_out = 0;     ///< of these, findings of rules that it does not select
  std::size_t in_baseline = 0;  ///< places that are known; not in `counts`
  std::size_t gone = 0;         ///< of the baseline, no longer found
  bool is_partial = false;      ///< the input needs more work than its size allows: there may be more to find

  struct Seconds {
    double load = 0, infer = 0, rules = 0, total = 0;
  } seconds;
  std::uint64_t peak_rss_bytes = 0;  ///< of the process so far
  struct Work {
    std::uint64_t steps = 0, steps_allowed = 0, heap_steps = 0, heap_steps_allowed = 0;
    std::uint64_t memory = 0, heap = 0, memory_allowed = 0;
  } work;  ///< of the input's meter

  /// In words, for people; empty where all was examined.
  std::string_view partial_text() const { return is_partial ? kPartialText : ""; }

  std::size_t omitted() const { return counts.total() - findings.size(); }
};

}  // namespace tensorlint::findings
