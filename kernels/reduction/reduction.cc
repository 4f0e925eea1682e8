#include "kernels/reduction/reduction.h"

#include "kernels/common/overlap.h"
#include "kernels/common/request.h"
#include "kernels/common/workspace.h"
#include "kernels/reduction/dispatch.h"

namespace tensorlint::kernels {
namespace {

struct Recipe {
  AccumulatorKind accumulator = AccumulatorKind::kSum;
  Finish finish = Finish::kPlain;
  AccumulatorOptions options;
  Dtype load = Dtype::kFloat32;  // the instance; for counts the raw word of that size
};

bool is_integer(Dtype dtype) { return dtype >= Dtype::kInt8; }

// The bits that tell an element from zero: floats have two zeros.
std::uint64_t nonzero_mask(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat64:
      return 0x7fffffffffffffffULL;
    case Dtype::kFloat32:
      return 0x7fffffffULL;
    case Dtype::kFloat16:
    case Dtype::kBFloat16:
      return 0x7fffULL;
    case Dtype::kFloat8E4M3:
    case Dtype::kFloat8E5M2:
      return 0x7fULL;
    default:
      return ~std::uint64_t{0};
  }
}

Status recipe_for(const Reduction& reduction, Recipe* recipe) {
  const int dtype = static_cast<int>(reduction.dtype);
  const int result = static_cast<int>(reduction.result_dtype);
  if (dtype < 0 || dtype >= kDtypeCount || result < 0 || result >= kDtypeCount) return Status::kUnsupportedDtype;
  if (reduction.result_dtype == Dtype::kFloat8E4M3 || reduction.result_dtype == Dtype::kFloat8E5M2)
    return Status::kUnsupportedDtype;
  recipe->load = reduction.dtype;
  const auto use = [&](AccumulatorKind kind, Finish finish) -> Status {
    recipe->accumulator = kind;
    recipe->finish = finish;
    return Status::kOk;
  };
  const auto count = [&](Finish finish) {
    recipe->options.mask = nonzero_mask(reduction.dtype);
    return use(AccumulatorKind::kCountNonzero, finish);
  };
  const bool logical = reduction.dtype == Dtype::kBool;  // 0 and 1: sums are counts, extremes are any and all
  switch (reduction.kind) {
    case ReductionKind::kSum:
      return logical ? count(Finish::kPlain) : use(AccumulatorKind::kSum, Finish::kPlain);
    case ReductionKind::kMean:
      return logical ? count(Finish::kMean) : use(AccumulatorKind::kSum, Finish::kMean);
    case ReductionKind::kMax:
      return logical ? count(Finish::kAny) : use(AccumulatorKind::kMaximum, Finish::kPlain);
    case ReductionKind::kMin:
      return logical ? count(Finish::kAll) : use(AccumulatorKind::kMinimum, Finish::kPlain);
    case ReductionKind::kProduct:
      return logical ? count(Finish::kAll) : use(AccumulatorKind::kProduct, Finish::kPlain);
    case ReductionKind::kL1:
      return logical ? count(Finish::kPlain) : use(AccumulatorKind::kAbsolute, Finish::kPlain);
    case ReductionKind::kL2:
      return logical ? count(Finish::kRoot) : use(AccumulatorKind::kSquare, Finish::kRoot);
    case ReductionKind::kSumOfSquares:
      return logical ? count(Finish::kPlain) : use(AccumulatorKind::kSquare, Finish::kPlain);
    case ReductionKind::kLogSum:
      return logical ? count(Finish::kLog) : use(AccumulatorKind::kSum, Finish::kLog);
    case ReductionKind::kLogSumExp:
      return is_integer(reduction.dtype) ? Status(Status::kUnsupportedDtype)
                                         : use(AccumulatorKind::kLogSumExp, Finish::kPlain);
    case ReductionKind::kArgMax:
    case ReductionKind::kArgMin:
      if (reduction.result_dtype != Dtype::kInt64 && reduction.result_dtype != Dtype::kInt32)
        return Status::kUnsupportedDtype;
      recipe->options.negate = reduction.kind == ReductionKind::kArgMin;
      recipe->options.last = reduction.last_of_equals;
      if (logical) recipe->load = Dtype::kUInt8;
      return use(AccumulatorKind::kArg, Finish::kPlain);
    case ReductionKind::kAny:
      return count(Finish::kAny);
    case ReductionKind::kAll:
      return count(Finish::kAll);
  }
  return Status::kUnsupportedDtype;
}

// Calls `visit` with a value of the element type that the recipe's kernel loads.
template <typename Visit>
Status with_element(const Recipe& recipe, const Visit& visit) {
  if (recipe.accumulator == AccumulatorKind::kCountNonzero) {
    switch (size_of(recipe.load)) {
      case 1:
        return visit(std::uint8_t{});
      case 2:
        return visit(std::uint16_t{});
      case 4:
        return visit(std::uint32_t{});
      default:
        return visit(std::uint64_t{});
    }
  }
  switch (recipe.load) {
    case Dtype::kFloat64:
    case Dtype::kFloat32:
    case Dtype::kFloat16:
    case Dtype::kBFloat16:
      return with_real(recipe.load, visit);
    case Dtype::kFloat8E4M3:
      return visit(Float8E4M3{});
    case Dtype::kFloat8E5M2:
      return visit(Float8E5M2{});
    case Dtype::kInt8:
      return visit(std::int8_t{});
    case Dtype::kInt16:
      return visit(std::int16_t{});
    case Dtype::kInt32:
      return visit(std::int32_t{});
    case Dtype::kInt64:
      return visit(std::int64_t{});
    case Dtype::kUInt8:
      return visit(std::uint8_t{});
    case Dtype::kBool:
      break;
  }
  return Status::kUnsupportedDtype;
}

Status prepare(const Reduction& reduction, Recipe* recipe, ReductionParameters* p) {
  if (const Status status = recipe_for(reduction, recipe); status != Status::kOk) return status;
  if (const Status status =
          fold_axes(reduction.extents, reduction.rank, reduction.axes, reduction.axis_count, &p->axes);
      status != Status::kOk) {
    return status;
  }
  p->elements_each = p->axes.elements_each();
  p->inverse_count = 1.0 / static_cast<double>(p->elements_each);
  p->output_dtype = reduction.result_dtype;
  p->finish = recipe->finish;
  p->options = recipe->options;
  return with_element(*recipe, [&](auto element) -> Status {
    using T = decltype(element);
    std::size_t state_bytes = 0;
    bool finishes = false, merges = false;
    const auto measure = [&](auto accumulator) {
      state_bytes = sizeof(typename decltype(accumulator)::State);
      merges = kMergesColumns<decltype(accumulator)>;
      finishes = (decltype(accumulator)::kFinishes & finish_bit(recipe->finish)) != 0;
    };
    if (!with_accumulator<T>(recipe->accumulator, measure) || !finishes) return Status::kUnsupportedDtype;
    return plan_reduction(p->axes, Vector<T>::kSize, state_bytes, merges, &p->plan);
  });
}

}  // namespace

Status reduction_workspace(const Reduction& reduction, std::size_t* bytes) {
  Recipe recipe;
  ReductionParameters p;
  *bytes = 0;
  const Status status = prepare(reduction, &recipe, &p);
  if (status == Status::kOk) *bytes = p.plan.workspace_bytes;
  return status;
}

Status initialize_reduction_workspace(void* workspace, std::size_t bytes, Stream stream) {
  return zero_tickets(workspace, bytes, stream);
}

Status reduce(const Reduction& reduction, const void* input, void* result, void* workspace, std::size_t workspace_bytes,
              Stream stream) {
  Recipe recipe;
  ReductionParameters p;
  if (const Status status = prepare(reduction, &recipe, &p); status != Status::kOk) return status;
  if (p.plan.blocks == 0) return Status::kOk;
  if (p.elements_each == 0) {
    const bool arg = recipe.accumulator == AccumulatorKind::kArg;
    if (arg || (recipe.finish == Finish::kMean && is_integer(reduction.result_dtype))) return Status::kEmptyArgument;
  } else if (input == nullptr) {
    return Status::kNullPointer;
  }
  if (result == nullptr || (workspace == nullptr && p.plan.workspace_bytes > 0)) return Status::kNullPointer;
  if (!is_aligned(input, size_of(reduction.dtype)) || !is_aligned(result, size_of(reduction.result_dtype)))
    return Status::kMisaligned;
  if (p.plan.workspace_bytes > 0 && !is_aligned(workspace, 16)) return Status::kMisaligned;
  if (workspace_bytes < p.plan.workspace_bytes) return Status::kWorkspaceTooSmall;
  const Region regions[] = {
      {input, static_cast<std::size_t>(p.axes.results() * p.elements_each) * size_of(reduction.dtype)},
      {result, static_cast<std::size_t>(p.axes.results()) * size_of(reduction.result_dtype), true},
      {workspace, p.plan.workspace_bytes, true}};
  if (const Status status = check_overlap(regions); status != Status::kOk) return status;
  p.input = input;
  p.output = result;
  if (p.plan.workspace_bytes > 0) {
    p.tickets = tickets_of(workspace);
    p.partials = scratch_of(workspace);
  }
  return with_element(recipe,
                      [&](auto element) { return launch_kind<decltype(element)>(recipe.accumulator, p, stream); });
}

}  // namespace tensorlint::kernels
