#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/dataflow/analysis.h"
#include "passes/placement/placement.h"

namespace tensorlint::cli {

/// What `--input`, `--range` and `--device` say about values, as written.
struct Declarations {
  std::vector<std::string> inputs;   ///< NAME=dtype[dims]
  std::vector<std::string> ranges;   ///< NAME=lo:hi
  std::vector<std::string> devices;  ///< NAME, or VALUE=NAME
};

/// Errors: text that is none of these forms; names the option and the text. `default_device`: where nothing is said of
/// it.
Result<dataflow::AnalysisOptions> parse_declarations(const Declarations& declarations,
                                                     const std::string& default_device = "cpu");

/// What is declared `later` wins where both say something of one value, or of the default device, which `later` says
/// nothing of if it is empty.
void add_declarations(const dataflow::AnalysisOptions& later, dataflow::AnalysisOptions& to);

/// The devices among the declarations.
placement::PlacementOptions placement_options(const dataflow::AnalysisOptions& options);

/// Errors: a name that the main graph of the model does not have. `path`: that the message begins with.
std::optional<Error> check_names(const Declarations& declarations, const Model& model, std::string_view path);

}  // namespace tensorlint::cli
