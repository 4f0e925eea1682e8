#pragma once

#include <string>
#include <vector>

#include "analyzer/cli/settings.h"

namespace tensorlint::cli {

struct ShowOptions {
  std::vector<std::string> models;  ///< JSON of several models: one document a line
  std::string format = "text";
  SettingsOptions settings;
  std::string node, module;  ///< globs: only nodes that match; empty for all
  bool all_symbols = false;  ///< JSON: names for extents that nothing names, so that equal ones can be told
};

int run_show(const ShowOptions& options);

}  // namespace tensorlint::cli
