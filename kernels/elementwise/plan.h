#pragma once

// From a request to a program for the kernel, and to a launch. Plain functions.

#include <cstddef>
#include <cstdint>

#include "kernels/common/divisor.h"
#include "kernels/common/launch.h"
#include "kernels/elementwise/elementwise.h"

namespace tensorlint::kernels {

/// How a warp brings an operand's elements of its tile into shared memory.
enum class Staging : std::uint8_t {
  kNumber,    // nothing: a parameter
  kOne,       // nothing: one element, read where it is needed
  kDense,     // vectors of 16 bytes, one after the other
  kVectors,   // vectors of 16 bytes, wherever their first element lies
  kElements,  // one element after the other: short runs, and operands that are not aligned
};

/// What a step reads: an operand, a kept result, or the last one.
constexpr int kFirstSlot = kMaxElementOperands;
constexpr int kAccumulator = kFirstSlot + kMaxKeptResults;
constexpr int kNothing = -1;

struct StagedOperand {
  const unsigned char* data = nullptr;
  double number = 0;
  std::int64_t strides[kMaxElementRank] = {};  // in elements, of the merged axes
  unsigned cells = 0;                          // where its part of the warp's memory begins
  int bytes = 1;                               // of an element
  Dtype dtype = Dtype::kFloat32;
  Staging staging = Staging::kNumber;
};

struct ProgramStep {
  ElementOp op = ElementOp::kCast;
  Dtype dtype = Dtype::kFloat32;
  int a = kNothing, b = kNothing, c = kNothing;
  int save = kNothing;  // the slot that gets a copy
  double alpha = 0, beta = 0;
};

struct ElementwiseParameters {
  StagedOperand operands[kMaxElementOperands];
  ProgramStep steps[kMaxElementSteps];
  unsigned char* result = nullptr;
  std::int64_t elements = 0;
  std::int64_t tiles = 0;
  Divisor extents[kMaxElementRank];  // of the merged axes
  int rank = 0;
  int operand_count = 0;
  int step_count = 0;
  int passes = 2;             // rounds of kLaneElements a lane: what a warp stages at once; even
  unsigned slot_cells = 0;    // where the slots begin in the warp's memory
  unsigned result_cells = 0;  // and the result
  unsigned warp_cells = 0;    // 16 bytes each
  int result_bytes = 4;       // of an element
  Dtype result_dtype = Dtype::kFloat32;
  bool result_aligned = true;
};

/// Neighbouring axes along which all operands go on evenly become one. Operands of tiles of 4 vectors a lane, but for
/// 8-byte elements, of which there are 8. Errors: those of `elementwise` but for kLaunchFailed and kOverlap. Of no
/// elements the geometry has no blocks.
Status plan_elementwise(const Elementwise& request, ElementwiseParameters* parameters, Geometry* geometry);

}  // namespace tensorlint::kernels
