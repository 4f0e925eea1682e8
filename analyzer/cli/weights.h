#pragma once

#include <string>

#include "ir/graph/model.h"

namespace tensorlint::cli {

/// External data is named relative to the model's folder: written to another one, the model would lose it.
bool would_lose_weights(const Model& model, const std::string& from, const std::string& to);

inline constexpr const char* kWeightsStayBehind =
    "the model keeps weights in files beside it; write the result into the same folder (copying the weights is not built yet)";

}  // namespace tensorlint::cli
