// Normalisations along an axis to probabilities. Source: ONNX Softmax, LogSoftmax, Hardmax, opsets 1, 11, 13. Until
// opset 12 the axes from `axis` on are normalised together; the shape is the operand's in every version.
#include <cmath>

#include "ir/ops/elementwise.h"
#include "ir/ops/shape_functions.h"

namespace tensorlint::ops {
namespace {

const Constraint kSoftmaxAxis{"softmax_axis_in_range", ConstraintKind::kAxisRange, "-rank <= axis < rank", true};

const Constraint kSoftmaxRank{"softmax_rank", ConstraintKind::kRank, "there is an axis to normalise along"};

const Constraint kHardmaxRank{"hardmax_rank", ConstraintKind::kRank, "there is an axis to choose along", true};

void normalise(Inference& in, double lo, double hi) {
  unary_shape(in);
  const Range& range = in.operand(0).range;
  // An infinite element, or all of them minus infinity, gives NaN.
  in.set_range(0, {lo, hi, range.nan || std::isinf(range.lo) || std::isinf(range.hi)});
  const auto rank = in.rank(0);
  const std::int64_t axis = in.int_attribute("axis", in.opset() < 13 ? 1 : -1);
  if (!rank || *rank == 0) return;
  if (in.opset() < 11 && axis == *rank) {
    in.fails_somewhere(kSoftmaxAxis, {0}, axis_outside(axis, *rank, 0),
                       {"the engine refuses an axis past the last one, as onnxruntime does (the specification makes a "
                        "matrix of one column)"});
    return;
  }
  normalise_axis(in, axis, *rank, 0, kSoftmaxAxis);
}

/// ONNX's inference refuses a scalar; kernels run it as one element, the reference implementation too.
void check_scalar(Inference& in) {
  if (in.rank(0) == 0 && in.opset() >= 11)
    in.fails_somewhere(kSoftmaxRank, {0}, {"{} is a scalar, {} needs at least 1 axis", OperandRef(0), in.call().name},
                       {"the engine refuses scalars, as onnxruntime does (numpy takes them as one element)"});
}

void softmax(Inference& in) {
  check_scalar(in);
  normalise(in, 0, 1);
}

void log_softmax(Inference& in) {
  check_scalar(in);
  normalise(in, -HUGE_VAL, 0);
}

void hardmax(Inference& in) {
  if (in.rank(0) == 0 && in.opset() >= 11) {
    in.fail(kHardmaxRank, {0}, {"{} is a scalar, Hardmax needs at least 1 axis", OperandRef(0)});
    return unary_shape(in);
  }
  normalise(in, 0, 1);
  in.result().range.nan = false;
}

OpEntry normalisation(std::string_view name, InferFunction function) {
  return OpEntry(name).infer(function).constraint(kSoftmaxAxis);
}

const RegisterOps kRegisterSoftmax{
    normalisation("Softmax", softmax).computes(Opcode::kSoftmax).constraint(kSoftmaxRank),
    normalisation("LogSoftmax", log_softmax).computes(Opcode::kLogSoftmax).constraint(kSoftmaxRank),
    normalisation("Hardmax", hardmax).constraint(kHardmaxRank),
};

}  // namespace
}  // namespace tensorlint::ops
