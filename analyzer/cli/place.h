#pragma once

#include <string>

#include "analyzer/cli/settings.h"

namespace tensorlint::cli {

struct PlaceOptions {
  std::string input, output;  ///< no output: only said what it would be
  bool copy_data = false;
  SettingsOptions settings;
};

/// Splits a model between the cpu and a provider's device and writes it with every copy as a Transfer node.
int run_place(const PlaceOptions& options);

}  // namespace tensorlint::cli
