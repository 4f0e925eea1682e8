#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "runtime/executor/kernel_matcher.h"

namespace tensorlint::runtime {
namespace {

using kernels::ReductionKind;

struct ReductionOperator {
  std::string_view name;
  ReductionKind kind;
  std::string_view kernel;
};

constexpr ReductionOperator kReductions[] = {
    {"ReduceSum", ReductionKind::kSum, "reduce sum"},
    {"ReduceMean", ReductionKind::kMean, "reduce mean"},
    {"ReduceMax", ReductionKind::kMax, "reduce max"},
    {"ReduceMin", ReductionKind::kMin, "reduce min"},
    {"ReduceProd", ReductionKind::kProduct, "reduce product"},
    {"ReduceL1", ReductionKind::kL1, "reduce l1"},
    {"ReduceL2", ReductionKind::kL2, "reduce l2"},
    {"ReduceSumSquare", ReductionKind::kSumOfSquares, "reduce sum of squares"},
    {"ReduceLogSum", ReductionKind::kLogSum, "reduce log sum"},
    {"ReduceLogSumExp", ReductionKind::kLogSumExp, "reduce log sum exp"},
    {"ArgMax", ReductionKind::kArgMax, "reduce argmax"},
    {"ArgMin", ReductionKind::kArgMin, "reduce argmin"},
};

bool is_arg(ReductionKind kind) { return kind == ReductionKind::kArgMax || kind == ReductionKind::kArgMin; }

}  // namespace

void KernelMatcher::add_operator(NodeId node) {
  const Operator& op = model_.op(model_.node(node));
  const std::string_view name = model_.text(op.name);
  if (model_.text(op.domain) == "tensorlint") return add_domain_loss(node);
  if (!model_.text(op.domain).empty() || op.schema == nullptr) return;
  for (const ReductionOperator& reduction : kReductions)
    if (reduction.name == name) return add_reduction(node, reduction.kind);
  if (name == "Softmax" || name == "LogSoftmax") return add_softmax(node, name == "LogSoftmax");
  if (name == "SoftmaxCrossEntropyLoss") return add_class_operator(node, true);
  if (name == "NegativeLogLikelihoodLoss") return add_class_operator(node, false);
  if (name == "Attention") return add_attention(node);
  (void)(add_product(node, name) || add_window(node, name) || add_normalization(node, name));
}

void KernelMatcher::add_reduction(NodeId node, ReductionKind kind) {
  const ValueId data = expressions_.operand(node, 0), result = expressions_.result(node);
  const auto type = dtype(data), result_type = dtype(result);
  const auto shape = extents(data), result_shape = extents(result);
  const auto axes = expressions_.axes_of(node);
  if (shape && !axes && !is_arg(kind)) return leave(node, "its axes are not known before the run");
  if (!type || !result_type || !shape || !result_shape) return leave(node, "its extents are not known before the run");
  // Shape computations: the interpreter is done before a copy would begin.
  if (analysis_.fact(data).content != ContentId::kNone && !DTypeSet(*type).intersects(DTypeSet::floats()))
    return leave(node, "its elements are known before the run");
  ReductionCall request{.kind = kind, .extents = *shape, .axes = {}};
  if (is_arg(kind)) {
    const Attribute* const attribute = model_.attribute(model_.node(node), "axis");
    request.axes.push_back(attribute == nullptr ? 0 : static_cast<int>(attribute->i));
    const Attribute* const last = model_.attribute(model_.node(node), "select_last_index");
    request.last_of_equals = last != nullptr && last->i != 0;
  } else {
    for (const std::size_t axis : *axes) request.axes.push_back(static_cast<int>(axis));
    if (axes->empty() && !shape->empty()) return leave(node, "it reduces no axis");
  }
  if (!kernel_dtype(*type, request.dtype) || !kernel_dtype(*result_type, request.result_dtype))
    return leave(node, fmt::format("there is no kernel for {}", DTypeSet(*type).to_text()));
  for (const std::int64_t extent : *shape)
    if (extent == 0) return leave(node, "its operand has no elements");
  const auto known = std::ranges::find(kReductions, kind, &ReductionOperator::kind);
  KernelCall call{.kernel = std::string(known->kernel),
                  .results = {{.value = result}},
                  .operands = {{.value = data}},
                  .request = std::move(request)};
  const ValueId operands[] = {data};
  complete(std::move(call), operands, {node});
}

void KernelMatcher::add_softmax(NodeId node, bool logarithmic) {
  const ValueId data = expressions_.operand(node, 0);
  const auto type = dtype(data);
  const auto shape = extents(data);
  const auto axes = expressions_.axes_of(node);
  if (!type || !shape || !axes) return leave(node, "its extents are not known before the run");
  if (!float_dtype(*type)) return leave(node, fmt::format("there is no kernel for {}", DTypeSet(*type).to_text()));
  if (axes->empty()) return leave(node, "it has no axis");
  // Until opset 13 all from the axis on is one row.
  kernels::Softmax request;
  request.dtype = *float_dtype(*type);
  request.logarithmic = logarithmic;
  request.rows = count(std::span(*shape).first(axes->front()));
  request.classes = count(std::span(*shape).subspan(axes->front(), axes->size()));
  // The kernel's is off by its last digits, which decides whether 1 - p has a logarithm.
  if (request.classes == 1) return leave(node, "over one score every probability is 1");
  request.inner = count(std::span(*shape).subspan(axes->back() + 1));
  KernelCall call{.kernel = logarithmic ? "softmax logarithmic" : "softmax",
                  .results = {{.value = expressions_.result(node)}},
                  .operands = {{.value = data}},
                  .request = request};
  const ValueId operands[] = {data};
  complete(std::move(call), operands, {node});
}

/// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: scores [N, C, d...], labels [N, d...].
void KernelMatcher::add_class_operator(NodeId node, bool from_scores) {
  ValueId scores = expressions_.operand(node, 0);
  const ValueId labels = expressions_.operand(node, 1), weight = expressions_.operand(node, 2);
  if (needs_more_results(node)) return leave(node, "there is no kernel for its second result");
  const auto type = dtype(scores), label_type = dtype(labels);
  const auto shape = extents(scores), label_shape = extents(labels);
  if (!type || !label_type || !shape || !label_shape) return leave(node, "its extents are not known before the run");
  if (!float_dtype(*type)) return leave(node, fmt::format("there is no kernel for {}", DTypeSet(*type).to_text()));
  if (*label_type != DType::kInt64 && *label_type != DType::kInt32)
    return leave(node, fmt::format("there is no kernel for {} labels", DTypeSet(*label_type).to_text()));
  if (shape->size() < 2) return leave(node, "its scores have no class axis");
  Extents positions = *shape;
  positions.erase(positions.begin() + 1);
  kernels::ClassLoss request = class_loss(*float_dtype(*type), *shape, 1);
  if (*label_shape != positions || (weight != ValueId::kAbsent && extents(weight) != Extents{request.classes}) ||
      (weight != ValueId::kAbsent && dtype(weight) != type))
    return leave(node, "its operands do not fit");
  request.wide_labels = *label_type == DType::kInt64;
  const Attribute* const ignored = model_.attribute(model_.node(node), "ignore_index");
  request.ignore_index = ignored == nullptr ? std::numeric_limits<std::int64_t>::min() : ignored->i;
  const Attribute* const reduction = model_.attribute(model_.node(node), "reduction");
  const std::string_view averaging = reduction == nullptr ? "mean" : reduction->s;
  if (averaging != "mean" && averaging != "sum" && averaging != "none") return leave(node, "its reduction is unknown");
  request.averaging = averaging == "mean"  ? kernels::Averaging::kMean
                      : averaging == "sum" ? kernels::Averaging::kSum
                                           : kernels::Averaging::kNone;
  std::set<NodeId> nodes{node};
  const NodeId softmax = expressions_.producer(scores);
  // A log-softmax that nothing else reads is part of the kernel.
  if (!from_scores && expressions_.op(softmax) == Opcode::kLogSoftmax && !is_taken(softmax) &&
      expressions_.axes_of(softmax) == std::vector<std::size_t>{1} && readers_.of(scores).size() == 1 &&
      !readers_.is_output(scores)) {
    from_scores = true;
    nodes.insert(softmax);
    scores = expressions_.operand(softmax, 0);
  }
  request.kind = from_scores ? kernels::ClassLossKind::kCrossEntropy : kernels::ClassLossKind::kNegativeLogLikelihood;
  KernelCall call{
      .kernel = fmt::format("class_loss {}, {}", from_scores ? "cross_entropy" : "negative_log_likelihood", averaging),
      .results = {{.value = expressions_.result(node)}},
      .operands = {{.value = scores}, {.value = labels}, {.value = weight}},
      .request = request};
  std::vector<ValueId> operands{scores, labels};
  if (weight != ValueId::kAbsent) operands.push_back(weight);
  complete(std::move(call), operands, nodes);
}

}  // namespace tensorlint::runtime
