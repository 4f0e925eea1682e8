#pragma once

#include <cstdint>
#include <optional>

#include "tensorlint/builder.h"

namespace tensorlint::builder {

/// A scalar constant of `dtype` (a float or integer type of at least 8 bits). Floats are rounded to the nearest, ties
/// to even. Nothing where the number is not one of an integer dtype, or for other dtypes.
std::optional<Data> scalar_of(DType dtype, Number number);

}  // namespace tensorlint::builder
