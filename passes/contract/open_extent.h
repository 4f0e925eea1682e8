#pragma once

#include <cstdint>

#include "ir/facts/dim.h"
#include "ir/types/ids.h"

namespace tensorlint::contract {

/// An extent of the inputs that the model leaves open.
struct OpenExtent {
  Dim symbol;                        ///< of the analysis
  ValueId input = ValueId::kAbsent;  ///< where the inputs have it first: by itself, else in a formula
  std::uint32_t axis = 0;
  bool is_bare = false;  ///< by itself
};

}  // namespace tensorlint::contract
