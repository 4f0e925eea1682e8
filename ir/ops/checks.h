#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {

/// Shared checks of operand shapes. All of them hold their tongue where a shape is not known; they return false where
/// they have failed `constraint`.

/// `expected` is the shape that the operator asks for; unknown dims in it match anything. `reference` names the operand
/// that it follows from, -1 for none.
bool check_shape(Inference& in, int operand, std::span<const Dim> expected, const Constraint& constraint,
                 std::string_view what, int reference = -1);

/// The operand has one of these ranks.
bool check_rank(Inference& in, int operand, std::initializer_list<std::size_t> ranks, const Constraint& constraint);

/// The operand is a list: it has 1 axis. Fails kIsList.
bool check_list(Inference& in, int operand);

/// The operand has one element: it is a scalar, or all of its extents are 1.
bool check_one_element(Inference& in, int operand, const Constraint& constraint, std::string_view what);

/// `text` is one of `allowed`, else fails `constraint`.
bool check_choice(Inference& in, std::string_view attribute, std::string_view text,
                  std::initializer_list<std::string_view> allowed, const Constraint& constraint);

/// Dim `index` of the operand; unknown where its rank is not known or too small.
Dim dim_of(const Inference& in, int operand, std::size_t index);

/// The better known of two dims that are equal in every legal execution.
Dim better(const DimPool& pool, Dim a, Dim b);

}  // namespace tensorlint::ops
