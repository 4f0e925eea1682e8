#pragma once

#include <string>
#include <vector>

#include "analyzer/cli/settings.h"

namespace tensorlint::cli {

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

}  // namespace tensorlint::cli
