#pragma once

#include <string_view>

namespace tensorlint::rules {

/// The operator of onnxruntime's contrib domains that a slip of the pen made `name` of: another case, or a letter or
/// two wrong. Empty where none is that near: releases add operators, and an unknown one need not be wrong.
std::string_view misspelt_operator(std::string_view domain, std::string_view name);

}  // namespace tensorlint::rules
