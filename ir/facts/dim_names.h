#pragma once

#include <string_view>

#include "ir/facts/dim.h"

namespace tensorlint {

/// The extent that the name of a dim stands for. onnxruntime and torch write formulas as names: "a + 1", "2*batch",
/// "(h//2)", "Max(1, s0)"; such a name is that formula over the symbols `a`, `batch`, ... Any other name is a symbol of
/// its own: where it is not a formula to its end, passes a cap ("a*b*c*d*e"), or cannot be an extent ("a - a", "-a").
///
/// Formulas: + - * // ** (a constant power), parentheses, Max, Min, Mod, FloorDiv, floor(x/y), ceiling(x/y), in the
/// spellings of sympy and torch. A binary minus has spaces around it: "batch-size" is a name.
Dim dim_of_name(DimPool& pool, std::string_view name);

/// True for a name that needs no quotes within a formula: letters, digits, '_', '.', ':', '?' and whatever is not
/// ASCII.
bool is_plain_name(std::string_view name);

/// True for a text of DimPool::to_text that was too long and lacks its end.
bool is_cut_off(std::string_view text);

}  // namespace tensorlint
