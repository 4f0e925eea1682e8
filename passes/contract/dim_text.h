#pragma once

#include <string>

#include "passes/dataflow/analysis.h"

namespace tensorlint::contract {

/// The dim for people. Extents without a name are called after their axis: "x.shape[1]".
std::string text_of(const dataflow::Analysis& analysis, Dim dim);

}  // namespace tensorlint::contract
