#include "kernels/elementwise/plan.h"

#include <algorithm>

#include "kernels/common/combine.h"
#include "kernels/common/vector.h"
#include "kernels/elementwise/element_functions.h"

namespace tensorlint::kernels {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 62;
constexpr int kCellBytes = 16;
// Shared memory of a block: three such blocks fit an SM of sm_90 (227 KiB), two one of sm_80 (163 KiB). Beyond, blocks
// have fewer warps.
constexpr std::size_t kBlockBytes = 72 * 1024;
// Warps of a grid take one tile after the other: 62 blocks for each of the 132 SMs of the largest part in view.
constexpr std::int64_t kMaxElementBlocks = 8192;

/// By the groups of the enumeration.
bool has_op(Dtype compute, ElementOp op) {
  if (op <= ElementOp::kCast) return true;
  return compute == Dtype::kInt64 ? op > ElementOp::kIsNaN : op <= ElementOp::kIsNaN;
}

bool is_float8(Dtype dtype) { return dtype == Dtype::kFloat8E4M3 || dtype == Dtype::kFloat8E5M2; }
bool is_known(Dtype dtype) {
  return static_cast<int>(dtype) >= 0 && static_cast<int>(dtype) < kDtypeCount && !is_float8(dtype);
}

/// Steps round to what the compute type holds.
bool is_step_dtype(Dtype compute, Dtype dtype) {
  if (dtype == Dtype::kBool) return true;
  if (compute == Dtype::kInt64) return dtype >= Dtype::kInt8;
  return dtype < Dtype::kInt8 && (compute == Dtype::kFloat64 || dtype != Dtype::kFloat64);
}

Status check(const Elementwise& request, std::int64_t* elements) {
  const Dtype compute = request.compute;
  if (compute != Dtype::kFloat32 && compute != Dtype::kFloat64 && compute != Dtype::kInt64)
    return Status::kUnsupportedDtype;
  if (request.rank < 0 || request.rank > kMaxElementRank) return Status::kBadShape;
  *elements = 1;
  bool is_empty = false;
  for (int axis = 0; axis < request.rank; ++axis) {
    const std::int64_t extent = request.extents[axis];
    if (extent < 0) return Status::kBadShape;
    is_empty = is_empty || extent == 0;
    if (__builtin_mul_overflow(*elements, std::max<std::int64_t>(extent, 1), elements) || *elements > kMaxElements)
      return Status::kBadShape;
  }
  if (is_empty) *elements = 0;
  if (request.operand_count < 0 || request.operand_count > kMaxElementOperands || request.step_count < 1 ||
      request.step_count > kMaxElementSteps)
    return Status::kBadParameter;
  if (!is_known(request.result_dtype)) return Status::kUnsupportedDtype;
  for (int k = 0; k < request.operand_count; ++k) {
    const ElementOperand& operand = request.operands[k];
    if (!is_known(operand.dtype)) return Status::kUnsupportedDtype;
    for (int axis = 0; axis < request.rank; ++axis)
      if (operand.strides[axis] < 0) return Status::kBadParameter;
  }
  for (int s = 0; s < request.step_count; ++s) {
    const ElementStep& step = request.steps[s];
    const int op = static_cast<int>(step.op);
    if (op < 0 || op >= kElementOpCount || !has_op(compute, step.op)) return Status::kBadParameter;
    if (!is_known(step.dtype) || !is_step_dtype(compute, step.dtype)) return Status::kUnsupportedDtype;
    for (int i = 0; i < arity_of(step.op); ++i) {
      const int source = step.operands[i];
      const bool is_operand = source >= 0 && source < request.operand_count;
      const bool is_step = source >= kMaxElementOperands && source < kMaxElementOperands + s;
      if (!is_operand && !is_step) return Status::kBadParameter;
    }
  }
  return Status::kOk;
}

/// Extents of 1 go, and axes along which every operand goes on evenly are one.
void merge_axes(const Elementwise& request, ElementwiseParameters* p) {
  std::int64_t extents[kMaxElementRank] = {};
  for (int axis = 0; axis < request.rank; ++axis) {
    const std::int64_t extent = request.extents[axis];
    if (extent == 1) continue;
    bool goes_on = p->rank > 0;
    for (int k = 0; k < request.operand_count && goes_on; ++k)
      goes_on = p->operands[k].strides[p->rank - 1] == request.operands[k].strides[axis] * extent;
    if (!goes_on) extents[p->rank++] = 1;
    extents[p->rank - 1] *= extent;
    for (int k = 0; k < request.operand_count; ++k)
      p->operands[k].strides[p->rank - 1] = request.operands[k].strides[axis];
  }
  for (int axis = 0; axis < p->rank; ++axis) p->extents[axis] = Divisor::of(extents[axis]);
}

Staging staging_of(const StagedOperand& operand, const ElementwiseParameters& p) {
  const std::int64_t vector = kCellBytes / operand.bytes;
  const int last = p.rank - 1;
  bool is_one = true;
  for (int axis = 0; axis < p.rank; ++axis) is_one = is_one && operand.strides[axis] == 0;
  if (is_one) return Staging::kOne;
  if (!is_aligned(operand.data, kCellBytes) || operand.strides[last] != 1) return Staging::kElements;
  if (p.rank == 1) return Staging::kDense;
  bool in_vectors = p.extents[last].value % vector == 0;
  bool is_dense = true;
  std::int64_t whole = p.extents[last].value;
  for (int axis = last - 1; axis >= 0; --axis) {
    in_vectors = in_vectors && operand.strides[axis] % vector == 0;
    is_dense = is_dense && operand.strides[axis] == whole;
    whole *= p.extents[axis].value;
  }
  return is_dense ? Staging::kDense : in_vectors ? Staging::kVectors : Staging::kElements;
}

/// The steps over slots: a result that only the next step reads stays where it is, others are kept until their last
/// reader.
Status compile(const Elementwise& request, ElementwiseParameters* p, int* slots) {
  int last_use[kMaxElementSteps];
  for (int& use : last_use) use = -1;
  for (int s = 0; s < request.step_count; ++s)
    for (int i = 0; i < arity_of(request.steps[s].op); ++i)
      if (request.steps[s].operands[i] >= kMaxElementOperands)
        last_use[request.steps[s].operands[i] - kMaxElementOperands] = s;
  int slot_of[kMaxElementSteps] = {};
  int kept_until[kMaxKeptResults];
  for (int& until : kept_until) until = -1;
  *slots = 0;
  for (int s = 0; s < request.step_count; ++s) {
    const ElementStep& step = request.steps[s];
    ProgramStep& to = p->steps[s];
    to = {step.op, step.dtype, kNothing, kNothing, kNothing, kNothing, step.alpha, step.beta};
    int* const sources[] = {&to.a, &to.b, &to.c};
    for (int i = 0; i < arity_of(step.op); ++i) {
      const int source = step.operands[i];
      *sources[i] = source < kMaxElementOperands            ? source
                    : source == kMaxElementOperands + s - 1 ? kAccumulator
                                                            : slot_of[source - kMaxElementOperands];
    }
    if (last_use[s] <= s + 1) continue;
    int slot = 0;
    while (slot < kMaxKeptResults && kept_until[slot] > s) ++slot;
    if (slot == kMaxKeptResults) return Status::kBadParameter;
    kept_until[slot] = last_use[s];
    slot_of[s] = kFirstSlot + slot;
    to.save = kFirstSlot + slot;
    *slots = std::max(*slots, slot + 1);
  }
  p->step_count = request.step_count;
  return Status::kOk;
}

}  // namespace

Status plan_elementwise(const Elementwise& request, ElementwiseParameters* p, Geometry* geometry) {
  *p = {};
  geometry->blocks = 0;
  if (const Status status = check(request, &p->elements); status != Status::kOk) return status;
  int slots = 0;
  if (const Status status = compile(request, p, &slots); status != Status::kOk) return status;
  if (p->elements == 0) return Status::kOk;
  if (request.result == nullptr) return Status::kNullPointer;
  p->result_dtype = request.result_dtype;
  p->result_bytes = static_cast<int>(size_of(request.result_dtype));
  if (!is_aligned(request.result, size_of(request.result_dtype))) return Status::kMisaligned;
  p->result = static_cast<unsigned char*>(request.result);
  p->result_aligned = is_aligned(request.result, kCellBytes);
  merge_axes(request, p);
  p->operand_count = request.operand_count;
  int widest = 0;
  for (int k = 0; k < request.operand_count; ++k) {
    const ElementOperand& from = request.operands[k];
    StagedOperand& to = p->operands[k];
    to.number = from.number;
    to.dtype = from.dtype;
    to.bytes = static_cast<int>(size_of(from.dtype));
    if (from.is_number) continue;
    if (from.data == nullptr) return Status::kNullPointer;
    if (!is_aligned(from.data, size_of(from.dtype))) return Status::kMisaligned;
    to.data = static_cast<const unsigned char*>(from.data);
    to.staging = staging_of(to, *p);
    if (to.staging > Staging::kOne) widest = std::max(widest, to.bytes);
  }
  if (widest == 0) widest = p->result_bytes;
  p->passes = std::max(2, 8 / widest);
  const auto cells_of = [&](int bytes) {
    return static_cast<unsigned>(p->passes * kLaneElements * bytes) * kWarpLanes / kCellBytes;
  };
  for (int k = 0; k < p->operand_count; ++k) {
    if (p->operands[k].staging <= Staging::kOne) continue;
    p->operands[k].cells = p->warp_cells;
    p->warp_cells += cells_of(p->operands[k].bytes);
  }
  p->result_cells = p->warp_cells;
  p->warp_cells += cells_of(p->result_bytes);
  p->slot_cells = p->warp_cells;
  p->warp_cells += static_cast<unsigned>(slots) * kLaneElements * static_cast<unsigned>(size_of(request.compute)) *
                   kWarpLanes / kCellBytes;
  const std::int64_t tile = std::int64_t{p->passes} * kLaneElements * kWarpLanes;
  p->tiles = (p->elements - 1) / tile + 1;
  unsigned warps = kWarps;
  while (warps > 1 && std::size_t{warps} * p->warp_cells * kCellBytes > kBlockBytes) warps /= 2;
  geometry->threads = warps * kWarpLanes;
  geometry->dynamic_shared_bytes = std::size_t{warps} * p->warp_cells * kCellBytes;
  geometry->blocks = static_cast<unsigned>(std::clamp<std::int64_t>((p->tiles - 1) / warps + 1, 1, kMaxElementBlocks));
  return Status::kOk;
}

}  // namespace tensorlint::kernels
