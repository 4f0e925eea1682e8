#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/inference.h"

namespace tensorlint::ops {

/// Shared parts of shape inference. Everything is checked: hostile attributes give a violation or unknown dims.

using Dims = std::vector<Dim>;

inline Dims unknown_dims(std::size_t rank, Unknown reason = Unknown::kNotTracked) { return Dims(rank, Dim(reason)); }
inline Dims copy_dims(std::span<const Dim> dims) { return {dims.begin(), dims.end()}; }

extern const Constraint kBroadcastable;  ///< extents equal or 1, aligned at the last axis
extern const Constraint kIsList;         ///< an operand that lists axes, sizes or pads has 1 axis

/// The axis in [0, rank), or a violation of `constraint` naming `operand` and nullopt.
std::optional<int> normalise_axis(Inference& in, std::int64_t axis, int rank, int operand,
                                  const Constraint& constraint);

/// "axis 2 outside {0} of rank 2".
Message axis_outside(std::int64_t axis, int rank, int operand);
/// "axis 1 of {0} is given twice", "axis -1 of {0} is axis 1 again": `before` is how it was written first.
Message repeated_axis(std::int64_t axis, std::int64_t before, int operand);
/// The axes in [0, rank), each once. Out of range fails `range`, twice the same fails `duplicate`; then nullopt.
std::optional<std::vector<int>> normalise_axes(Inference& in, std::span<const std::int64_t> axes, int rank, int operand,
                                               const Constraint& range, const Constraint& duplicate);
/// The same where onnxruntime takes an axis once that is given twice, and numpy refuses it: that may fail `duplicate`,
/// unless it is null.
std::optional<std::vector<int>> distinct_axes(Inference& in, std::span<const std::int64_t> axes, int rank, int operand,
                                              const Constraint& range, const Constraint* duplicate);

/// Numpy's multidirectional broadcast of two shapes; fails `constraint` naming both operands where extents differ, and
/// goes on with the larger extent.
Dims broadcast(Inference& in, std::span<const Dim> a, std::span<const Dim> b, int operand_a, int operand_b,
               const Constraint& constraint = kBroadcastable);

/// Broadcast of all present operands in [first, last]; nullopt where one is unranked.
std::optional<Dims> broadcast_operands(Inference& in, int first, int last,
                                       const Constraint& constraint = kBroadcastable);

/// Broadcast of `shape` into `target` (unidirectional): fails where shape cannot be stretched to target.
void check_unidirectional(Inference& in, std::span<const Dim> shape, std::span<const Dim> target, int operand,
                          int operand_target, const Constraint& constraint = kBroadcastable);

/// Fails `constraint` when the two dims provably differ; returns the better known one.
Dim same_extent(Inference& in, Dim a, Dim b, int operand_a, int operand_b, const Constraint& constraint,
                const Message& what);

/// Reports two extents that DimPool::differ tells apart: must when no legal value makes them equal, else may with the
/// witness of large enough symbols. `stretches`: an extent of 1 fits anything, as in broadcasting.
void fail_unequal(Inference& in, const Constraint& constraint, std::vector<int> operands, Message message, Dim a, Dim b,
                  bool stretches = false);

/// Product of dims; unknown where one is (0 when one is the constant 0).
Dim element_count(DimPool& pool, std::span<const Dim> dims);

/// Row-major strides walk: calls visit(linear index into `shape` broadcast to `target`) for each element of target;
/// both fully constant. nullopt when not constant or more than kMaxContent elements.
std::optional<std::vector<std::size_t>> broadcast_indices(const DimPool& pool, std::span<const Dim> shape,
                                                          std::span<const Dim> target);

/// Constant extents of a shape; nullopt when one is not constant.
std::optional<std::vector<std::int64_t>> constant_extents(const DimPool& pool, std::span<const Dim> dims);

/// "[2, 3]".
std::string shape_text(const DimPool& pool, std::span<const Dim> dims);

/// Range of the integer elements' bounds.
Range range_of(const DimPool& pool, std::span<const Dim> elements);

}  // namespace tensorlint::ops
