#include <limits>
#include <utility>

#include <fmt/format.h>

#include "runtime/executor/kernel_matcher.h"
#include "runtime/interpreter/axes.h"

namespace tensorlint::runtime {

kernels::ClassLoss KernelMatcher::class_loss(kernels::Dtype dtype, std::span<const std::int64_t> extents,
                                             std::size_t axis) {
  kernels::ClassLoss request;
  request.dtype = dtype;
  request.rows = count(extents.first(axis));
  request.classes = extents[axis];
  request.inner = count(extents.subspan(axis + 1));
  return request;
}

/// Cross-entropy that is written out: log-probabilities gathered at class indices, or times probabilities.
void KernelMatcher::add_classes(const losses::LossSite& site) {
  if (site.kind != losses::LossKind::kCrossEntropy && site.kind != losses::LossKind::kNegativeLogLikelihood) return;
  if (is_taken(site.anchor)) return;
  const Opcode opcode = expressions_.op(site.anchor);
  if (opcode == Opcode::kGatherElements) add_gathered(site.anchor);
  if (opcode == Opcode::kMul) add_probabilities(site.anchor);
}

bool KernelMatcher::add_gathered(NodeId gather) {
  const ValueId logs = expressions_.operand(gather, 0), labels = expressions_.operand(gather, 1);
  const ValueId gathered = expressions_.result(gather);
  const NodeId softmax = expressions_.producer(logs);
  if (expressions_.op(softmax) != Opcode::kLogSoftmax) return false;
  const auto axes = expressions_.axes_of(softmax);
  const auto type = dtype(logs), label_type = dtype(labels);
  const auto shape = extents(logs), indices = extents(labels);
  if (!axes || axes->size() != 1 || !type || !label_type || !shape || !indices || !float_dtype(*type)) return false;
  const Attribute* const attribute = model_.attribute(model_.node(gather), "axis");
  const std::int64_t axis = attribute == nullptr ? 0 : attribute->i;
  if (from_front(axis, shape->size()) != axes->front()) return false;
  Extents one = *shape;
  one[axes->front()] = 1;
  if (*indices != one) return false;
  kernels::ClassLoss request = class_loss(*float_dtype(*type), *shape, axes->front());
  const std::int64_t positions = request.rows * request.inner;
  // The kernel gives the logarithm with its sign turned.
  std::optional<Tail> chosen;
  for (const Tail& tail : tails(gathered)) {
    const bool sums = tail.is_reduced && count(*extents(tail.result)) == 1;
    if (!tail.is_negated || (tail.is_reduced && !sums)) continue;
    if (sums && tail.divisor != 1 && tail.divisor != positions) continue;
    chosen = tail;
  }
  if (!chosen) return false;
  request.wide_labels = *label_type == DType::kInt64;
  request.ignore_index = std::numeric_limits<std::int64_t>::min();
  request.averaging = !chosen->is_reduced            ? kernels::Averaging::kNone
                      : chosen->divisor == positions ? kernels::Averaging::kMean
                                                     : kernels::Averaging::kSum;
  std::set<NodeId> nodes(chosen->nodes.begin(), chosen->nodes.end());
  nodes.insert(gather);
  // With the softmax, where nothing else reads it.
  for (const bool from_scores : {true, false}) {
    const ValueId data = from_scores ? expressions_.operand(softmax, 0) : logs;
    if (from_scores) nodes.insert(softmax);
    if (!from_scores) nodes.erase(softmax);
    request.kind = from_scores ? kernels::ClassLossKind::kCrossEntropy : kernels::ClassLossKind::kNegativeLogLikelihood;
    KernelCall call{.kernel = from_scores ? "class_loss cross_entropy" : "class_loss negative_log_likelihood",
                    .results = {{.value = chosen->result}},
                    .operands = {{.value = data}, {.value = labels, .counts_from_end = request.classes}, {}},
                    .request = request};
    const ValueId operands[] = {data, labels};
    if (!is_taken(softmax) && complete(call, operands, nodes)) return true;
  }
  return false;
}

bool KernelMatcher::add_probabilities(NodeId product) {
  ValueId logs = expressions_.operand(product, 0), target = expressions_.operand(product, 1);
  if (expressions_.op_of(logs) != Opcode::kLogSoftmax) std::swap(logs, target);
  const NodeId softmax = expressions_.producer(logs);
  const ValueId elements = expressions_.result(product);
  if (expressions_.op(softmax) != Opcode::kLogSoftmax || is_taken(softmax)) return false;
  const auto axes = expressions_.axes_of(softmax);
  const auto type = dtype(logs);
  const auto shape = extents(logs);
  if (!axes || axes->size() != 1 || !type || !shape || !float_dtype(*type)) return false;
  if (dtype(target) != type || extents(target) != shape || extents(elements) != shape) return false;
  kernels::ClassLoss request = class_loss(*float_dtype(*type), *shape, axes->front());
  const std::int64_t positions = request.rows * request.inner;
  const auto ends = tails(elements);
  // The classes are summed first, and what follows sees rows.
  std::size_t rows_from = ends.size();
  bool all_at_once = false;
  for (std::size_t i = 1; i < ends.size() && rows_from == ends.size(); ++i) {
    if (!ends[i].is_reduced) continue;
    const auto reduced = expressions_.axes_of(ends[i].nodes.back());
    if (expressions_.op(ends[i].nodes.back()) != Opcode::kReduceSum || !reduced) return false;
    all_at_once = reduced->size() == shape->size();
    if (!all_at_once && *reduced != *axes) return false;
    rows_from = i;
  }
  std::optional<Tail> chosen;
  for (std::size_t i = rows_from; i < ends.size(); ++i) {
    const bool is_number = count(*extents(ends[i].result)) == 1;
    const bool keeps_rows = !all_at_once && count(*extents(ends[i].result)) == positions && ends[i].divisor == 1;
    if (!ends[i].is_negated || !(keeps_rows || is_number)) continue;
    if (is_number && ends[i].divisor != 1 && ends[i].divisor != positions) continue;
    chosen = ends[i];
  }
  if (!chosen) return false;
  // Of one position the sum, the mean and the row are the same number.
  const bool keeps_rows = count(*extents(chosen->result)) == positions;
  request.kind = kernels::ClassLossKind::kCrossEntropyProbabilities;
  request.averaging = keeps_rows                     ? kernels::Averaging::kNone
                      : chosen->divisor == positions ? kernels::Averaging::kMean
                                                     : kernels::Averaging::kSum;
  std::set<NodeId> nodes(chosen->nodes.begin(), chosen->nodes.end());
  nodes.insert({product, softmax});
  const ValueId scores = expressions_.operand(softmax, 0);
  KernelCall call{.kernel = "class_loss cross_entropy_probabilities",
                  .results = {{.value = chosen->result}},
                  .operands = {{.value = scores}, {.value = target}, {}},
                  .request = request};
  const ValueId operands[] = {scores, target};
  return complete(std::move(call), operands, nodes);
}

}  // namespace tensorlint::runtime
