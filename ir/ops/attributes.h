#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "ir/ops/inference.h"

namespace tensorlint::ops {

/// The dtype that an int attribute asks for; nullopt where it is left out. Fails `constraint` where it is no dtype or
/// none that the first result may have, and then still gives the dtype, if it is one.
std::optional<DType> dtype_attribute(Inference& in, std::string_view name, const Constraint& constraint);

/// The string attribute, or `fallback`; fails `constraint` where it is none of `choices`, in all engines unless
/// `refusing` says in which.
std::string_view choice_attribute(Inference& in, std::string_view name, std::string_view fallback,
                                  std::initializer_list<std::string_view> choices, const Constraint& constraint,
                                  Message refusing = {});

}  // namespace tensorlint::ops
