#pragma once

#include <string>
#include <vector>

#include "analyzer/cli/declarations.h"
#include "analyzer/cli/settings.h"
#include "analyzer/findings/finding.h"

namespace tensorlint::cli {

/// Exit codes of the command line: a contract.
inline constexpr int kExitClean = 0, kExitFindings = 1, kExitNotChecked = 2, kExitInternal = 3, kExitInterrupted = 130;

struct CheckOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> formats;  ///< text, json, ... each perhaps with =FILE
  std::string output;                ///< -o: file of the one format without =FILE
  SettingsOptions settings;
  std::string write_baseline;  ///< file; empty: none is written
  unsigned jobs = 0;           ///< 0: as many as there are processors
  bool timings = false;
  bool quiet = false;              ///< no summary and no progress
  bool runtime_placement = false;  ///< the runtime copies between devices: count what that costs
};

int run_check(const CheckOptions& options);

/// Prints "tensorlint: MESSAGE" to standard error; returns kExitNotChecked.
int refuse(std::string_view message);

}  // namespace tensorlint::cli
