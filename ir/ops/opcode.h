#pragma once

#include <cstdint>

namespace tensorlint::ops {

/// What an operator computes, where passes and rules read a graph as formulas. Operators of several domains and
/// dialects that compute the same have the same opcode; its entry declares it.
enum class Opcode : std::uint8_t {
  kOther,  ///< nobody reads it as a part of a formula

  // Element by element.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kPow,
  kMin,
  kMax,
  kClip,
  kAbs,
  kNeg,
  kRound,  ///< to an integer, in any direction
  kSign,   ///< -1, 0 or 1
  kSqrt,
  kLog,
  kExp,
  kCosh,
  kSigmoid,
  kSoftplus,
  kCompare,  ///< <, <=, >, >=
  kEqual,
  kWhere,
  kNot,
  kAnd,
  kOr,
  kXor,
  kCast,     ///< operand 0 in another dtype
  kDropout,  ///< operand 0, in training with some elements dropped and the others scaled
  // The same; ONNX has no such operators, but PyTorch has, and its exporters write functions for them.
  kLog1p,
  kXlogy,
  kLogSigmoid,

  // Over axes.
  kReduceMean,
  kReduceSum,
  kReduceMax,
  kReduceMin,
  kReduceL1,
  kReduceL2,
  kReduceLogSum,
  kReduceLogSumExp,
  kReduceSumSquare,
  kArgExtreme,  ///< where the largest or the smallest element is
  kSoftmax,
  kLogSoftmax,
  kCumSum,
  kMatMul,  ///< also with an addend (Gemm)
  kEinsum,
  kConv,
  kRecurrence,  ///< a layer that runs along an axis: RNN, GRU, LSTM
  kNormalize,   ///< to a mean and a variance along axes or groups

  // Elements of operand 0 as they are.
  kIdentity,
  kReshape,  ///< to another shape
  kSqueeze,
  kUnsqueeze,
  kTranspose,
  kSlice,
  kExpand,
  kTile,
  kGather,  ///< slices of operand 0 along `axis`
  kGatherElements,
  kGatherND,
  kSplit,
  kTopK,  ///< and where they are, result 1
  kConcat,
  kPad,  ///< or of operand 2 around them

  kDrawNormal,   ///< random numbers of a normal distribution
  kDrawUniform,  ///< of a uniform one
  kOneHot,
  kFill,   ///< a shape filled with one number
  kRange,  ///< equal steps from a number to another
  kShape,
  kConstant,  ///< an attribute holds the value
};

/// Result 0 has the elements of operand 0 in their order, perhaps in another shape.
constexpr bool keeps_elements(Opcode opcode) {
  return opcode == Opcode::kIdentity || opcode == Opcode::kReshape || opcode == Opcode::kSqueeze ||
         opcode == Opcode::kUnsqueeze;
}

/// Result 0 has each element of operand 0 and no other, in some order, perhaps several times.
constexpr bool repeats_elements(Opcode opcode) {
  return keeps_elements(opcode) || opcode == Opcode::kTranspose || opcode == Opcode::kExpand;
}

/// Every element of result 0 is one of operand 0, and where it is does not depend on elements.
constexpr bool moves_elements(Opcode opcode) { return repeats_elements(opcode) || opcode == Opcode::kSlice; }

/// Every element of each result is one of operand 0: moved, repeated, split off, looked up. What a Dropout scales
/// counts as the same.
constexpr bool picks_elements(Opcode opcode) {
  return moves_elements(opcode) || opcode == Opcode::kTile || opcode == Opcode::kGather ||
         opcode == Opcode::kGatherElements || opcode == Opcode::kGatherND || opcode == Opcode::kSplit ||
         opcode == Opcode::kDropout;
}

}  // namespace tensorlint::ops
