#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "analyzer/cli/settings.h"

namespace tensorlint::cli {

struct WhyOptions {
  std::string model, value;
  std::optional<std::size_t> depth;  ///< a tree of so many nodes; without it a list
  SettingsOptions settings;
};

/// Prints how the facts of a value came about. A name of the main graph wins; else the first body or function that has
/// it.
int run_why(const WhyOptions& options);

}  // namespace tensorlint::cli
