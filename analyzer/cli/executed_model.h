#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyzer/cli/options.h"
#include "analyzer/cli/settings.h"
#include "ir/graph/model.h"

namespace tensorlint::cli {

/// A model before it is executed.
struct CheckedModel {
  const Model& model;
  bool is_expensive = false;  ///< the check was: dataflow::Allowances
};

/// Models with errors are not executed: says the first few and returns kExitNotChecked; kExitClean where there are
/// none. Then `use` sees the model.
int refuse_errors(const std::string& path, const SettingsOptions& settings,
                  const std::function<void(const CheckedModel&)>& use);

/// Becomes the program that executes, which is installed beside this one. Returns only where that fails, with the exit
/// code.
int start_runtime(std::vector<std::string> arguments);

}  // namespace tensorlint::cli
