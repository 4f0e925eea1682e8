#pragma once

// Elements moved from one tensor to another, their bits as they are: between strides, into borders, by indices.
//
// Determinism: where an element comes from is a function of the request and of the indices; of several updates for one
// element the last one stays. Asynchronous: nothing is allocated, nothing waits; captures into CUDA graphs.

#include <cstddef>
#include <cstdint>

#include "kernels/common/launch.h"
#include "kernels/common/status.h"

namespace tensorlint::kernels {

constexpr int kMaxMovementRank = 8;

enum class MovementKind : int {
  kCopy,     // transposing, slicing, stretching, joining, splitting: whatever strides say
  kPad,      // the same, with a border where the source has no element
  kGather,   // the source's elements that indices name
  kScatter,  // to the destination's elements that indices name; the others stay as they are
};

/// What lies around the source. Sources: ONNX Pad, opset 19.
enum class Border : int {
  kConstant,
  kEdge,
  kReflect,  // without the edge; at most one element less than the axis has
  kWrap,     // at most as many elements as the axis has
};

/// Where a tensor's elements are, all in elements: the first one, and how far the next one of each axis is.
struct MovementSide {
  std::int64_t elements = 0;  // of the memory
  std::int64_t offset = 0;
  std::int64_t strides[kMaxMovementRank] = {};
};

/// For each index of `extents` one element.
struct Movement {
  MovementKind kind = MovementKind::kCopy;
  int element_bytes = 4;  // 1, 2, 4 or 8
  int rank = 0;
  std::int64_t extents[kMaxMovementRank] = {};
  const void* source = nullptr;
  void* destination = nullptr;
  /// Strides of the source may be 0 or negative; those of the destination reach each element once, kScatter aside.
  MovementSide from, to;

  // kPad: element c of an axis is element c - before of the source, which has so many. Where an axis has none, or
  // without axes a source without elements, every element is `fill`.
  Border border = Border::kConstant;
  std::int64_t inside[kMaxMovementRank] = {};
  std::int64_t before[kMaxMovementRank] = {};  // negative: what is cut off
  std::uint64_t fill = 0;                      // the bits of an element

  // kGather, kScatter: `parts` indices for each of `tuples` positions, tuple after tuple. Index p, which counts from
  // the end where it is negative, moves the source (kScatter: the destination) by part_strides[p] elements.
  const void* indices = nullptr;
  bool wide_indices = true;  // int64, else int32
  std::int64_t tuples = 0;
  std::int64_t index_strides[kMaxMovementRank] = {};  // of tuples, for each axis; 0: they do not depend on it
  int parts = 1;
  std::int64_t part_extents[kMaxMovementRank] = {};
  std::int64_t part_strides[kMaxMovementRank] = {};
  /// If not null: the number of indices outside of their extents, and the position of the first one (-1: none). What
  /// these name is 0 for kGather, and nothing for kScatter.
  std::int64_t* bad_indices = nullptr;
};

/// kScatter looks for later tuples with the same target, so it takes so many.
constexpr std::int64_t kMaxScatterTuples = 16384;

/// Bytes of workspace, 16-byte aligned: for indices. Errors: kBadShape, kBadParameter.
Status movement_workspace(const Movement& movement, std::size_t* bytes);

/// kScatter: the axes of the tuples come first, and the targets of two tuples are equal or apart. The workspace as
/// for the other calls: zeroed once (initialize_reduction_workspace), shared at will. Errors: those of the query
/// (kBadShape: something reaches out of its memory; kBadParameter: a destination that is reached twice, a border too
/// wide for its kind, too many tuples), kUnsupportedDtype (the element's width), kNullPointer, kMisaligned, kOverlap
/// (of the destination with anything), kWorkspaceTooSmall, kLaunchFailed.
Status move(const Movement& movement, void* workspace, std::size_t workspace_bytes, Stream stream);

}  // namespace tensorlint::kernels
