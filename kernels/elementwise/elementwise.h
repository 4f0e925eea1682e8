#pragma once

// Programs of element functions over broadcast operands: one pass over memory for a chain of element by element
// operators.
//
// Determinism: each element is computed by itself, from its operands alone, so results are a function of the input bits
// and of the compute type only. Asynchronous: nothing is allocated, nothing waits; captures into CUDA graphs.

#include <cstddef>
#include <cstdint>

#include "kernels/common/scalar.h"
#include "kernels/common/status.h"

namespace tensorlint::kernels {

/// Sources: the ONNX operators of these names. Float: compute types float32 and float64; integer: int64.
enum class ElementOp : int {
  // Both. Integers wrap around.
  kAdd,
  kSub,
  kMul,
  kDiv,           // integers truncate; the smallest by -1 is itself, and anything by 0 is 0
  kTruncatedMod,  // the remainder with the sign of the dividend; integers: 0 for a divisor of 0
  kPow,           // integers: below an exponent of 0 truncated, 0 for a base of 0
  kMin,           // NaN wins
  kMax,
  kNeg,
  kAbs,
  kSign,
  kRelu,
  kClip,  // of x between the second and the third operand, which wins
  kEqual,
  kGreater,
  kLess,
  kGreaterOrEqual,
  kLessOrEqual,
  kAnd,  // of truth values: anything but 0 is true
  kOr,
  kXor,
  kNot,
  kWhere,  // the second operand where the first is not 0, else the third
  kCast,   // the operand; the step's dtype does the rest
  // Float.
  kExp,
  kLog,
  kSqrt,
  kReciprocal,
  kErf,
  kTanh,
  kSigmoid,
  kLeakyRelu,  // alpha
  kElu,        // alpha
  kGelu,
  kTanhGelu,
  kHardSigmoid,  // alpha, beta
  kHardSwish,
  kSoftplus,
  kSwish,  // alpha: x sigmoid(alpha x)
  kFloor,
  kCeil,
  kRound,  // halves to the even neighbour
  kSin,
  kCos,
  kIsNaN,
  // Integer.
  kFlooredMod,  // the remainder with the sign of the divisor, 0 for a divisor of 0
};
constexpr int kElementOpCount = static_cast<int>(ElementOp::kFlooredMod) + 1;

constexpr int kMaxElementOperands = 8;
constexpr int kMaxElementSteps = 24;
constexpr int kMaxElementRank = 8;

/// Operands of an operation: 1 to 3.
constexpr int arity_of(ElementOp op) {
  switch (op) {
    case ElementOp::kAdd:
    case ElementOp::kSub:
    case ElementOp::kMul:
    case ElementOp::kDiv:
    case ElementOp::kTruncatedMod:
    case ElementOp::kFlooredMod:
    case ElementOp::kPow:
    case ElementOp::kMin:
    case ElementOp::kMax:
    case ElementOp::kEqual:
    case ElementOp::kGreater:
    case ElementOp::kLess:
    case ElementOp::kGreaterOrEqual:
    case ElementOp::kLessOrEqual:
    case ElementOp::kAnd:
    case ElementOp::kOr:
    case ElementOp::kXor:
      return 2;
    case ElementOp::kClip:
    case ElementOp::kWhere:
      return 3;
    default:
      return 1;
  }
}

/// Results of steps that are kept for later ones at one time.
constexpr int kMaxKeptResults = 8;

/// A tensor, or one number.
struct ElementOperand {
  const void* data = nullptr;
  bool is_number = false;
  double number = 0;
  Dtype dtype = Dtype::kFloat32;  // any but float8; kBool bytes are 0 or 1
  /// In elements, of each axis of the result; 0 where the operand is stretched. Not negative.
  std::int64_t strides[kMaxElementRank] = {};
};

/// An operation on what operands (0 to kMaxElementOperands - 1) or earlier steps (kMaxElementOperands + their number)
/// give. Its result is rounded to `dtype`: the same values come out whether or not steps are calls of their own.
struct ElementStep {
  ElementOp op = ElementOp::kAdd;
  Dtype dtype = Dtype::kFloat32;
  int operands[3] = {};
  double alpha = 0, beta = 0;
};

/// The last step's result, converted to `result_dtype`, is written as a contiguous tensor of `extents`.
struct Elementwise {
  /// kFloat32, kFloat64 or kInt64: what operands are converted to and steps computed in. Floats become integers, and
  /// integers floats, where an operand or the result has another kind of dtype than this: floats truncate, out of range
  /// to the smallest int64, and integers keep their low bits.
  Dtype compute = Dtype::kFloat32;
  int rank = 0;
  std::int64_t extents[kMaxElementRank] = {};
  int operand_count = 0;
  ElementOperand operands[kMaxElementOperands];
  int step_count = 0;
  ElementStep steps[kMaxElementSteps];
  Dtype result_dtype = Dtype::kFloat32;
  void* result = nullptr;
};

/// The most results that are alive at one time beside the last one. Steps read what is there.
inline int kept_results(const Elementwise& request) {
  int last_use[kMaxElementSteps] = {};
  for (int s = 0; s < request.step_count; ++s)
    for (int i = 0; i < arity_of(request.steps[s].op); ++i)
      if (request.steps[s].operands[i] >= kMaxElementOperands)
        last_use[request.steps[s].operands[i] - kMaxElementOperands] = s;
  int most = 0;
  for (int s = 0; s < request.step_count; ++s) {
    int kept = 0;
    for (int earlier = 0; earlier <= s; ++earlier)
      kept += last_use[earlier] > s && last_use[earlier] > earlier + 1 ? 1 : 0;
    most = kept > most ? kept : most;
  }
  return most;
}

/// Accuracy. Exactly rounded, once a step, with float16 and bfloat16 computed in float32 (but for results that are
/// subnormal in bfloat16, where products round twice): kAdd to kMax but kPow, kSqrt, kReciprocal, and whatever needs no
/// rounding. Others, with what CUDA's manual says of its functions, in units of the compute type's last place:
/// kHardSigmoid 1, kExp, kLog, kErf, kTanh, kSin, kCos 2, kHardSwish 3, kSigmoid, kSoftplus, kElu 4, kPow 8; kSwish and
/// kTanhGelu 6 and twice the size of the exponent of e that they take, kGelu 8 + x^2. The result may lie exactly over
/// an operand of its element size that is not stretched. Errors: kBadShape, kUnsupportedDtype, kBadParameter (a step
/// that reads what is not there, an operation that the compute type has not, more results kept than kMaxKeptResults),
/// kNullPointer, kMisaligned, kOverlap, kLaunchFailed.
Status elementwise(const Elementwise& request, Stream stream);

}  // namespace tensorlint::kernels
