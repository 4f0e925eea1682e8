#pragma once

#include "ir/ops/inference.h"

namespace tensorlint::ops {

/// Fails `constraint` where an element of the operand `indices` is certainly outside [-extent, extent), the extent
/// being that of `axis` of the operand `data`: a followed element for all legal values of the symbols, or all elements
/// by their range, where there is one. Without `from_back` negative indices are outside too.
void check_indices(Inference& in, const Constraint& constraint, int indices, Dim extent, int data, int axis,
                   bool from_back = true);

/// Fails `constraint` where an element of the operand `lengths` is certainly outside [0, steps], the extent of an axis
/// of the operand `data` that has sequences: by elements and ranges, as check_indices.
void check_lengths(Inference& in, const Constraint& constraint, int lengths, Dim steps, int data);

/// The end of a message about an index of that axis: "outside [-extent, extent) of ...".
Message outside_of_axis(Inference& in, Dim extent, int data, std::size_t axis, bool from_back = true);

}  // namespace tensorlint::ops
