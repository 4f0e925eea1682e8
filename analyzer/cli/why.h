#pragma once

#include <string>

#include "analyzer/cli/settings.h"

namespace tensorlint::cli {

struct WhyOptions {
  std::string model, value;
  SettingsOptions settings;
};

/// Prints how the facts of a value came about. A name of the main graph wins; else the first body or function that has
/// it.
int run_why(const WhyOptions& options);

}  // namespace tensorlint::cli
