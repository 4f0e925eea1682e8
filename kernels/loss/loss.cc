#include "kernels/loss/loss.h"

#include <algorithm>

#include "kernels/common/overlap.h"
#include "kernels/common/request.h"
#include "kernels/common/workspace.h"
#include "kernels/loss/dispatch.h"

namespace tensorlint::kernels {
namespace {

// Workspace after the tickets: the label summary, label partials, then one double a block; without labels only those.
constexpr std::size_t kSummaryBytes = 32;
constexpr unsigned kMaxLabelBlocks = 512;
constexpr std::size_t kLabelPartialBytes = kMaxLabelBlocks * sizeof(LabelSummary);

// kNone writes losses, the others a total; asking for the wrong one is an error rather than silence.
Status check_outputs(Averaging averaging, const void* losses, const void* total, bool gradient) {
  if (averaging == Averaging::kNone ? total != nullptr : losses != nullptr) return Status::kBadParameter;
  if (losses == nullptr && total == nullptr && !gradient) return Status::kNullPointer;
  return Status::kOk;
}

Status check_workspace(const void* workspace, std::size_t bytes, std::size_t needed) {
  if (needed == 0) return Status::kOk;
  if (workspace == nullptr) return Status::kNullPointer;
  if (!is_aligned(workspace, 16)) return Status::kMisaligned;
  return bytes < needed ? Status::kWorkspaceTooSmall : Status::kOk;
}

// What is read of a factor that repeats with `period`.
std::size_t periodic_bytes(std::int64_t period, std::int64_t elements, std::size_t size) {
  return static_cast<std::size_t>(std::min(period, elements)) * size;
}

Status check_pointwise(const PointwiseLoss& loss) {
  if (!is_real(loss.dtype)) return Status::kUnsupportedDtype;
  if (!product_fits(loss.elements, 1, 1)) return Status::kBadShape;
  if (loss.weight_period < 1 || loss.positive_period < 1 || loss.batch < 0) return Status::kBadParameter;
  if (loss.kind == PointwiseKind::kHuber && !(loss.delta > 0)) return Status::kBadParameter;
  if (loss.kind == PointwiseKind::kSmoothL1 && !(loss.delta >= 0)) return Status::kBadParameter;
  return Status::kOk;
}

Status check_class_loss(const ClassLoss& loss) {
  if (!is_real(loss.dtype)) return Status::kUnsupportedDtype;
  if (!product_fits(loss.rows, loss.classes, loss.inner)) return Status::kBadShape;
  if (loss.averaging == Averaging::kBatchMean || !(loss.smoothing >= 0 && loss.smoothing <= 1))
    return Status::kBadParameter;
  if (loss.kind == ClassLossKind::kNegativeLogLikelihood && loss.smoothing != 0) return Status::kBadParameter;
  return Status::kOk;
}

// 0: the current device is asked.
Status resolve_capability(int asked, int* capability) {
  *capability = asked;
  return asked > 0 ? Status(Status::kOk) : device_capability(capability);
}

// The plan of either layout; `blocks` of the column kernel in it too.
Status plan_classes(std::int64_t rows, std::int64_t classes, std::int64_t inner, Dtype dtype, bool second_pass,
                    int capability, ClassPlan* plan) {
  if (inner == 1) return plan_class_rows(rows, classes, vector_size(dtype), second_pass, capability, kPartBytes, plan);
  return plan_class_columns(rows, classes, inner, vector_size(dtype), plan);
}

// One thread a position or a vector of the gradient, whichever are more.
unsigned likelihood_blocks(const ClassLoss& loss) {
  const std::int64_t positions = loss.rows * loss.inner;
  return walking_blocks(std::max(positions, positions * loss.classes / vector_size(loss.dtype)), kThreads);
}

}  // namespace

Status initialize_loss_workspace(void* workspace, std::size_t bytes, Stream stream) {
  return zero_tickets(workspace, bytes, stream);
}

Status pointwise_loss_workspace(const PointwiseLoss& loss, std::size_t* bytes) {
  *bytes = 0;
  if (const Status status = check_pointwise(loss); status != Status::kOk) return status;
  const StreamPlan plan = plan_stream(loss.elements, vector_size(loss.dtype));
  if (loss.averaging != Averaging::kNone && plan.blocks > 1) *bytes = kTicketBytes + plan.blocks * sizeof(double);
  return Status::kOk;
}

Status pointwise_loss(const PointwiseLoss& loss, void* workspace, std::size_t workspace_bytes, Stream stream) {
  std::size_t needed = 0;
  if (const Status status = pointwise_loss_workspace(loss, &needed); status != Status::kOk) return status;
  if (const Status status = check_outputs(loss.averaging, loss.losses, loss.total, loss.gradient != nullptr);
      status != Status::kOk)
    return status;
  if (loss.elements == 0 && loss.total == nullptr) return Status::kOk;
  const bool some = loss.elements > 0;
  const Pointer pointers[] = {
      {loss.input, some},     {loss.target, some},  {loss.weight, false}, {loss.positive_weight, false},
      {loss.upstream, false}, {loss.losses, false}, {loss.total, false},  {loss.gradient, false}};
  if (const Status status = check_pointers(pointers, size_of(loss.dtype)); status != Status::kOk) return status;
  if (loss.total == nullptr) needed = 0;
  if (const Status status = check_workspace(workspace, workspace_bytes, needed); status != Status::kOk) return status;
  const bool each = loss.averaging == Averaging::kNone;
  const std::size_t size = size_of(loss.dtype);
  const std::size_t bytes = static_cast<std::size_t>(loss.elements) * size;
  const Region regions[] = {{loss.input, bytes, false, true},
                            {loss.target, bytes, false, true},
                            {loss.weight, periodic_bytes(loss.weight_period, loss.elements, size)},
                            {loss.positive_weight, periodic_bytes(loss.positive_period, loss.elements, size)},
                            {loss.upstream, each ? bytes : size, false, each},
                            {loss.losses, bytes, true},
                            {loss.total, size, true},
                            {loss.gradient, bytes, true, true},
                            {workspace, needed, true}};
  if (const Status status = check_overlap(regions); status != Status::kOk) return status;

  PointwiseKind kind = loss.kind;
  double curvature = 1.0;
  double limit = loss.delta;
  if (kind == PointwiseKind::kSmoothL1) {
    if (loss.delta == 0) kind = PointwiseKind::kAbsolute;
    curvature = 1.0 / loss.delta;
    limit = 1.0;
  }
  return with_real(loss.dtype, [&](auto element) {
    using T = decltype(element);
    using C = Compute<T>;
    PointwiseParameters<T> p;
    p.input = static_cast<const T*>(loss.input);
    p.target = static_cast<const T*>(loss.target);
    p.weight = static_cast<const T*>(loss.weight);
    p.positive_weight = kind == PointwiseKind::kBinaryLogits ? static_cast<const T*>(loss.positive_weight) : nullptr;
    p.upstream = static_cast<const T*>(loss.upstream);
    p.losses = static_cast<T*>(loss.losses);
    p.gradient = static_cast<T*>(loss.gradient);
    p.total = static_cast<T*>(loss.total);
    if (needed > 0) {
      p.ticket = tickets_of(workspace);
      p.partials = reinterpret_cast<double*>(scratch_of(workspace));
    }
    constexpr std::int64_t kLongest = std::int64_t{1} << 62;  // above every index
    p.weight_period = Divisor::of(std::min(loss.weight_period, kLongest));
    p.positive_period = Divisor::of(std::min(loss.positive_period, kLongest));
    p.elements = loss.elements;
    const StreamPlan plan = plan_stream(loss.elements, Vector<T>::kSize);
    p.split_length = plan.split_length;
    p.blocks = plan.blocks;
    if (loss.averaging == Averaging::kMean) p.scale = 1.0 / static_cast<double>(loss.elements);
    if (loss.averaging == Averaging::kBatchMean) p.scale = 1.0 / static_cast<double>(loss.batch);
    p.options.delta = static_cast<C>(loss.delta);
    p.options.curvature = static_cast<C>(curvature);
    p.options.limit = static_cast<C>(limit);
    p.upstream_each = loss.averaging == Averaging::kNone && loss.upstream != nullptr;
    p.aligned = is_aligned(p.input, 16) && is_aligned(p.target, 16) && is_aligned(p.losses, 16) &&
                is_aligned(p.gradient, 16) && (!p.upstream_each || is_aligned(p.upstream, 16));
    return launch_pointwise<T>(kind, p, stream);
  });
}

Status class_loss_workspace(const ClassLoss& loss, std::size_t* bytes) {
  *bytes = 0;
  if (const Status status = check_class_loss(loss); status != Status::kOk) return status;
  unsigned blocks = likelihood_blocks(loss);
  if (loss.kind != ClassLossKind::kNegativeLogLikelihood) {
    blocks = 1;
    for (const int capability : {80, 90}) {  // whatever device runs it: with clusters and without
      ClassPlan plan;
      if (const Status status = plan_classes(loss.rows, loss.classes, loss.inner, loss.dtype, true, capability, &plan);
          status != Status::kOk) {
        return status;
      }
      blocks = std::max(blocks, plan.blocks);
    }
  }
  *bytes = kTicketBytes + kSummaryBytes + kLabelPartialBytes + blocks * sizeof(double);
  return Status::kOk;
}

Status class_loss(const ClassLoss& loss, void* workspace, std::size_t workspace_bytes, Stream stream) {
  std::size_t needed = 0;
  if (const Status status = class_loss_workspace(loss, &needed); status != Status::kOk) return status;
  if (const Status status = check_outputs(loss.averaging, loss.losses, loss.total, loss.gradient != nullptr);
      status != Status::kOk)
    return status;
  const std::int64_t positions = loss.rows * loss.inner;
  if (positions == 0 && loss.total == nullptr && loss.bad_labels == nullptr) return Status::kOk;
  const bool some = positions > 0 && loss.classes > 0;
  const bool indices = loss.kind != ClassLossKind::kCrossEntropyProbabilities;
  const Pointer pointers[] = {{loss.logits, some},   {loss.probabilities, some && !indices},
                              {loss.weight, false},  {loss.upstream, false},
                              {loss.losses, false},  {loss.total, false},
                              {loss.gradient, false}};
  if (const Status status = check_pointers(pointers, size_of(loss.dtype)); status != Status::kOk) return status;
  if (const Status status = check_pointer(loss.labels, loss.wide_labels ? 8 : 4, indices && positions > 0);
      status != Status::kOk)
    return status;
  if (const Status status = check_pointer(loss.bad_labels, 8, false); status != Status::kOk) return status;
  if (const Status status = check_workspace(workspace, workspace_bytes, needed); status != Status::kOk) return status;

  const bool likelihood = loss.kind == ClassLossKind::kNegativeLogLikelihood;
  const bool reads_whole_rows = !likelihood || (loss.losses == nullptr && loss.total == nullptr);
  const std::size_t size = size_of(loss.dtype);
  const std::size_t each = static_cast<std::size_t>(positions) * size;
  const std::size_t all = each * static_cast<std::size_t>(loss.classes);
  const Region regions[] = {
      {loss.logits, all, false, reads_whole_rows},
      {indices ? loss.labels : nullptr, static_cast<std::size_t>(positions) * (loss.wide_labels ? 8 : 4)},
      {indices ? nullptr : loss.probabilities, all, false, true},
      {loss.weight, static_cast<std::size_t>(loss.classes) * size},
      {loss.upstream, loss.averaging == Averaging::kNone ? each : size},
      {loss.losses, each, true},
      {loss.total, size, true},
      {loss.gradient, all, true, true},
      {loss.bad_labels, 2 * sizeof(std::int64_t), true},
      {workspace, needed, true}};
  if (const Status status = check_overlap(regions); status != Status::kOk) return status;
  int capability = 0;
  if (const Status status = resolve_capability(loss.capability, &capability); status != Status::kOk) return status;

  unsigned char* const scratch = scratch_of(workspace);
  unsigned* const tickets = tickets_of(workspace);
  return with_real(loss.dtype, [&](auto element) {
    using T = decltype(element);
    ClassParameters<T> p;
    p.logits = static_cast<const T*>(loss.logits);
    p.second = static_cast<const T*>(loss.probabilities);
    p.weight = static_cast<const T*>(loss.weight);
    p.upstream = static_cast<const T*>(loss.upstream);
    p.losses = static_cast<T*>(loss.losses);
    p.output = static_cast<T*>(loss.gradient);
    p.total = static_cast<T*>(loss.total);
    p.partials = reinterpret_cast<double*>(scratch + kSummaryBytes + kLabelPartialBytes);
    p.ticket = tickets + 1;
    p.labels = {loss.labels, loss.wide_labels, loss.ignore_index};
    p.rows = loss.rows;
    p.classes = loss.classes;
    p.inner = loss.inner;
    p.by_inner = Divisor::of(loss.inner);
    p.by_classes = Divisor::of(loss.classes);
    p.smoothing = static_cast<Compute<T>>(loss.smoothing);
    p.even_share = static_cast<Compute<T>>(loss.smoothing / static_cast<double>(loss.classes));
    p.upstream_each = loss.averaging == Averaging::kNone;
    if (indices) {
      LabelParameters<T> scan;
      scan.labels = p.labels;
      scan.weight = p.weight;
      scan.summary = reinterpret_cast<LabelSummary*>(scratch);
      scan.partials = reinterpret_cast<LabelSummary*>(scratch + kSummaryBytes);
      scan.report = loss.bad_labels;
      scan.ticket = tickets;
      scan.positions = positions;
      scan.classes = loss.classes;
      scan.blocks = std::min(walking_blocks(positions, std::int64_t{kThreads} * 8), kMaxLabelBlocks);
      if (const Status status = launch_labels<T>(scan, stream); status != Status::kOk) return status;
      if (loss.averaging == Averaging::kMean) p.summary = scan.summary;
    } else if (loss.averaging == Averaging::kMean) {
      p.scale = 1.0 / static_cast<double>(positions);
    }
    if (likelihood) {
      p.plan.blocks = likelihood_blocks(loss);
      return launch_likelihood<T>(p, stream);
    }
    if (const Status status =
            plan_classes(loss.rows, loss.classes, loss.inner, loss.dtype, p.output != nullptr, capability, &p.plan);
        status != Status::kOk) {
      return status;
    }
    p.plan.blocks = std::max(p.plan.blocks, 1U);  // no rows: one block writes the total
    return launch_classes<T>(indices ? ClassTask::kIndices : ClassTask::kProbabilities, p, stream);
  });
}

Status softmax(const Softmax& request, Stream stream) {
  if (!is_real(request.dtype)) return Status::kUnsupportedDtype;
  if (!product_fits(request.rows, request.classes, request.inner)) return Status::kBadShape;
  if (request.rows * request.classes * request.inner == 0) return Status::kOk;
  const Pointer pointers[] = {{request.input, true}, {request.upstream, false}, {request.output, true}};
  if (const Status status = check_pointers(pointers, size_of(request.dtype)); status != Status::kOk) return status;
  const std::size_t bytes =
      static_cast<std::size_t>(request.rows * request.classes * request.inner) * size_of(request.dtype);
  const Region regions[] = {
      {request.input, bytes, false, true}, {request.upstream, bytes, false, true}, {request.output, bytes, true, true}};
  if (const Status status = check_overlap(regions); status != Status::kOk) return status;
  // The gradient kernel has no clusters and no cache: a row stays in one block.
  const bool forward = request.upstream == nullptr;
  int capability = 80;
  if (forward) {
    if (const Status status = resolve_capability(request.capability, &capability); status != Status::kOk) return status;
  }
  return with_real(request.dtype, [&](auto element) {
    using T = decltype(element);
    ClassParameters<T> p;
    p.logits = static_cast<const T*>(request.input);
    p.second = static_cast<const T*>(request.upstream);
    p.output = static_cast<T*>(request.output);
    p.rows = request.rows;
    p.classes = request.classes;
    p.inner = request.inner;
    p.by_inner = Divisor::of(request.inner);
    p.logarithmic = request.logarithmic;
    if (const Status status =
            plan_classes(request.rows, request.classes, request.inner, request.dtype, forward, capability, &p.plan);
        status != Status::kOk) {
      return status;
    }
    return forward ? launch_classes<T>(ClassTask::kSoftmax, p, stream) : launch_softmax_gradient<T>(p, stream);
  });
}

Status cosine_loss_workspace(const CosineLoss& loss, std::size_t* bytes) {
  *bytes = 0;
  if (!is_real(loss.dtype)) return Status::kUnsupportedDtype;
  if (!product_fits(loss.rows, loss.length, 1)) return Status::kBadShape;
  if (loss.averaging == Averaging::kBatchMean) return Status::kBadParameter;
  ClassPlan plan;
  if (const Status status =
          plan_class_rows(loss.rows, loss.length, vector_size(loss.dtype), false, 0, kPartBytes, &plan);
      status != Status::kOk) {
    return status;
  }
  if (loss.averaging != Averaging::kNone && plan.blocks > 1) *bytes = kTicketBytes + plan.blocks * sizeof(double);
  return Status::kOk;
}

Status cosine_loss(const CosineLoss& loss, void* workspace, std::size_t workspace_bytes, Stream stream) {
  std::size_t needed = 0;
  if (const Status status = cosine_loss_workspace(loss, &needed); status != Status::kOk) return status;
  const bool gradient = loss.first_gradient != nullptr || loss.second_gradient != nullptr;
  if (const Status status = check_outputs(loss.averaging, loss.losses, loss.total, gradient); status != Status::kOk)
    return status;
  if (loss.rows == 0 && loss.total == nullptr) return Status::kOk;
  const bool some = loss.rows > 0 && loss.length > 0;
  const Pointer pointers[] = {{loss.first, some},           {loss.second, some},          {loss.target, loss.rows > 0},
                              {loss.upstream, false},       {loss.losses, false},         {loss.total, false},
                              {loss.first_gradient, false}, {loss.second_gradient, false}};
  if (const Status status = check_pointers(pointers, size_of(loss.dtype)); status != Status::kOk) return status;
  if (loss.total == nullptr) needed = 0;
  if (const Status status = check_workspace(workspace, workspace_bytes, needed); status != Status::kOk) return status;
  const std::size_t size = size_of(loss.dtype);
  const std::size_t each = static_cast<std::size_t>(loss.rows) * size;
  const std::size_t all = each * static_cast<std::size_t>(loss.length);
  const Region regions[] = {{loss.first, all, false, true},
                            {loss.second, all, false, true},
                            {loss.target, each},
                            {loss.upstream, loss.averaging == Averaging::kNone ? each : size},
                            {loss.losses, each, true},
                            {loss.total, size, true},
                            {loss.first_gradient, all, true, true},
                            {loss.second_gradient, all, true, true},
                            {workspace, needed, true}};
  if (const Status status = check_overlap(regions); status != Status::kOk) return status;
  return with_real(loss.dtype, [&](auto element) {
    using T = decltype(element);
    ClassPlan plan;
    if (const Status status = plan_class_rows(loss.rows, loss.length, Vector<T>::kSize, false, 0, kPartBytes, &plan);
        status != Status::kOk)
      return status;
    CosineParameters<T> p;
    p.first = static_cast<const T*>(loss.first);
    p.second = static_cast<const T*>(loss.second);
    p.target = static_cast<const T*>(loss.target);
    p.upstream = static_cast<const T*>(loss.upstream);
    p.losses = static_cast<T*>(loss.losses);
    p.first_gradient = static_cast<T*>(loss.first_gradient);
    p.second_gradient = static_cast<T*>(loss.second_gradient);
    p.total = static_cast<T*>(loss.total);
    if (needed > 0) {
      p.ticket = tickets_of(workspace);
      p.partials = reinterpret_cast<double*>(scratch_of(workspace));
    }
    p.rows = loss.rows;
    p.length = loss.length;
    p.margin = loss.margin;
    if (loss.averaging == Averaging::kMean) p.scale = 1.0 / static_cast<double>(loss.rows);
    p.upstream_each = loss.averaging == Averaging::kNone;
    p.lanes = plan.lanes;
    return launch_cosine<T>(p, std::max(plan.blocks, 1U), stream);
  });
}

}  // namespace tensorlint::kernels
