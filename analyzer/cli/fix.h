#pragma once

#include <string>

#include "analyzer/cli/settings.h"

namespace tensorlint::cli {

struct FixOptions {
  std::string input, output;
  bool in_place = false, unsafe = false, diff = false, copy_data = false;
  SettingsOptions settings;
};

/// Applies the fixes of an ONNX model's findings, checks the result again and writes it.
/// Exit codes as of check, for what is left after fixing; nothing is written where nothing was fixed.
int run_fix(const FixOptions& options);

}  // namespace tensorlint::cli
