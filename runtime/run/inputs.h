#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph/model.h"
#include "passes/dataflow/analysis.h"
#include "runtime/values/host_value.h"

namespace tensorlint::runtime {

/// A file `PREFIX_INDEX` with one of the endings that are read; empty where there is none.
std::string numbered_file(const std::string& folder, std::string_view prefix, std::size_t index);

struct InputArguments {
  std::vector<std::string> inputs;    ///< folders and NAME=FILE
  std::optional<std::uint64_t> seed;  ///< draws the others
  bool may_lack = false;              ///< an input that is not given is absent, not an error
};

/// By input of the graph; absent where the model has a default.
Result<std::vector<HostValue>> read_inputs(const Model& model, const InputArguments& arguments,
                                           dataflow::Allowances& allowances, Memory& memory);

}  // namespace tensorlint::runtime
