#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyzer/cli/time_limit.h"
#include "base/result.h"

namespace tensorlint::cli {

/// What other engines are asked to compute.
struct RecordOptions {
  std::string python, model, seed;  ///< seed: of inputs that are not given; empty: 0
  std::vector<std::string> inputs;  ///< NAME=FILE.npy, folders
};

/// Has onnxruntime's Python package record all values of a model in a folder of its own, calls use(folder) and removes
/// the folder. Gives what `use` gives, or why there is no record; the recorder's own messages go to standard error.
/// kExitNotChecked where the recorder takes all the time that is left.
Result<int> with_recorded_values(const RecordOptions& options, const TimeLimit& limit,
                                 const std::function<int(const std::string&)>& use);

/// Runs a model by `arguments` of the program that executes, with its outputs in a folder of their own, calls
/// use(folder) and removes the folder. Gives what `use` gives, or the exit code of the run that failed, which says why.
Result<int> with_outputs(std::vector<std::string> arguments, const std::function<int(const std::string&)>& use);

/// Calls `work` in a child process and gives its exit code; kExitInternal where it does not end by itself, with the
/// signal that ended it.
int in_child(const std::function<int()>& work, int* signal = nullptr);

}  // namespace tensorlint::cli
