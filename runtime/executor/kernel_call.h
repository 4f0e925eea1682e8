#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/types/dtype.h"
#include "ir/types/ids.h"
#include "kernels/attention/attention.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/loss/loss.h"
#include "kernels/movement/movement.h"
#include "kernels/normalization/normalization.h"
#include "kernels/product/product.h"
#include "kernels/reduction/reduction.h"
#include "kernels/window/window.h"
#include "runtime/values/host_tensor.h"

namespace tensorlint::runtime {

/// What a kernel reads. It gets the value as it is, from wherever it lies, or, where more is said, what the host makes
/// of it before it is copied.
struct CallOperand {
  ValueId value = ValueId::kAbsent;  ///< kAbsent: nothing, or with `is_number` one element, which is `offset`
  bool is_number = false;
  double scale = 1, offset = 0;      ///< each element times `scale` plus `offset`; of floating dtypes
  bool drops_negative = false;       ///< what is not above zero is zero
  std::int64_t counts_from_end = 0;  ///< indices of so many classes: those below zero count from the end

  bool is_given() const { return value != ValueId::kAbsent || is_number; }
  bool is_prepared() const { return is_number || scale != 1 || offset != 0 || drops_negative || counts_from_end != 0; }
};

struct ReductionCall {
  kernels::ReductionKind kind = kernels::ReductionKind::kSum;
  kernels::Dtype dtype = kernels::Dtype::kFloat32, result_dtype = kernels::Dtype::kFloat32;
  Extents extents;
  std::vector<int> axes;
  bool last_of_equals = false;
};

/// kernels::Elementwise without the operands, steps and axes that it has room for and a call does not have: a model may
/// have a call for each ten bytes.
struct ElementwiseCall {
  kernels::Dtype compute = kernels::Dtype::kFloat32, result_dtype = kernels::Dtype::kFloat32;
  Extents extents;
  std::vector<kernels::ElementOperand> operands;
  std::vector<kernels::ElementStep> steps;

  ElementwiseCall() = default;
  explicit ElementwiseCall(const kernels::Elementwise& request);
  kernels::Elementwise request() const;
};

/// kernels::Movement without the words of it that are 0, which are most of them: a Concat may have a part for each two
/// bytes of the model.
class PackedMovement {
 public:
  PackedMovement(const kernels::Movement& request);  // NOLINT: parts of calls are written with the request itself
  kernels::Movement request() const;

 private:
  static constexpr std::size_t kWords = sizeof(kernels::Movement) / sizeof(std::uint64_t);
  static_assert(sizeof(kernels::Movement) % sizeof(std::uint64_t) == 0);

  std::bitset<kWords> is_kept_;
  std::vector<std::uint64_t> words_;
};

/// Launches one after the other, each for a part of a result.
struct MovementCall {
  struct Part {
    PackedMovement movement;
    int source = 0;                  ///< which operand; -1: none
    int indices = -1;                ///< which operand; -1: none
    int result = 0;                  ///< which result
    bool skips_bad_indices = false;  ///< those outside of their axis name nothing, and are no error
  };
  std::vector<Part> parts;
};

/// The elements of its operand in their order, as a tensor of other extents: nothing is launched, and both lie in the
/// same memory.
struct ViewCall {};

/// What a call makes.
struct CallResult {
  ValueId value = ValueId::kAbsent;
  DType dtype = DType::kUndefined;
  Extents extents{};
};

/// Nodes that one kernel computes at once. Requests hold all but pointers; the largest ones lie outside of the call,
/// whose size all kinds share.
struct KernelCall {
  std::string kernel;                 ///< "pointwise_loss squared mean"
  NodeId node = NodeId::kNone;        ///< makes the results
  std::vector<CallResult> results{};  ///< one or more; those of the node that nothing reads may be left out
  /// Of a loss, where it is asked for: that of the sum of its result, by the value, which is its first operand.
  std::optional<CallResult> gradient{};
  std::size_t device = 0;        ///< of those that run the model
  bool uses_cublaslt = false;    ///< of MatrixProduct: not our kernel
  std::vector<NodeId> nodes{};   ///< sorted; those it stands for, `node` too
  std::vector<NodeId> unused{};  ///< sorted; nothing but extents of what it stands for was made of them
  /// ReductionCall, Softmax: the data. PointwiseLoss: input, target, weight, weight of positives. ClassLoss: scores,
  /// labels or probabilities, weight. MatrixProduct: both factors, addend. Convolution: data, filters, bias. Pooling:
  /// the data. Attention: queries, keys, values, mask. Normalization: data, scale, bias, mean, variance. Elementwise:
  /// its operands, none where one is a number. MovementCall: sources and indices, as the parts say. ViewCall: the data.
  std::vector<CallOperand> operands{};
  std::variant<ReductionCall, kernels::PointwiseLoss, kernels::ClassLoss, kernels::Softmax,
               std::shared_ptr<const kernels::MatrixProduct>, std::shared_ptr<const kernels::Attention>,
               kernels::Convolution, kernels::Pooling, kernels::Normalization, ElementwiseCall, MovementCall, ViewCall>
      request{};
};

/// The element type of kernels; false where they have none.
bool kernel_dtype(DType dtype, kernels::Dtype& to);

}  // namespace tensorlint::runtime
