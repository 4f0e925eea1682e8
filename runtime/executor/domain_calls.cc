// Losses of our own domain, which are known by name: what the builder writes as their functions says the same to
// runtimes that do not know them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/executor/kernel_matcher.h"

namespace tensorlint::runtime {
namespace {

using kernels::PointwiseKind;

struct DomainLoss {
  std::string_view name;
  PointwiseKind kind;
  std::string_view kernel;
  std::string_view parameter = {};  ///< the attribute that is the kernel's delta
};

constexpr DomainLoss kPointwise[] = {
    {"MseLoss", PointwiseKind::kSquared, "squared"},
    {"L1Loss", PointwiseKind::kAbsolute, "absolute"},
    {"SmoothL1Loss", PointwiseKind::kSmoothL1, "smooth_l1", "beta"},
    {"HuberLoss", PointwiseKind::kHuber, "huber", "delta"},
    {"BceLoss", PointwiseKind::kBinary, "binary"},
    {"BceWithLogitsLoss", PointwiseKind::kBinaryLogits, "binary_logits"},
    {"KlDivLoss", PointwiseKind::kKlDivergence, "kl_divergence"},
};

}  // namespace

void KernelMatcher::add_domain_loss(NodeId node) {
  const Node& call = model_.node(node);
  const std::string_view name = model_.text(model_.op(call).name);
  const ValueId input = expressions_.operand(node, 0), target = expressions_.operand(node, 1),
                third = expressions_.operand(node, 2);
  const auto type = dtype(input), target_type = dtype(target);
  const auto shape = extents(input), target_shape = extents(target);
  const auto number = [&](std::string_view key, double fallback) {
    const Attribute* const attribute = model_.attribute(call, key);
    return attribute == nullptr ? fallback : static_cast<double>(attribute->f);
  };
  if (!type || !target_type || !shape || !target_shape || !extents(expressions_.result(node)))
    return leave(node, "its extents are not known before the run");
  if (!float_dtype(*type)) return leave(node, fmt::format("there is no kernel for {}", DTypeSet(*type).to_text()));
  const Attribute* const reduction = model_.attribute(call, "reduction");
  const std::string_view averaging = reduction == nullptr ? "mean" : reduction->s;
  const auto kind = averaging == "mean"        ? kernels::Averaging::kMean
                    : averaging == "sum"       ? kernels::Averaging::kSum
                    : averaging == "batchmean" ? kernels::Averaging::kBatchMean
                                               : kernels::Averaging::kNone;
  if (kind == kernels::Averaging::kNone && averaging != "none") return leave(node, "its reduction is unknown");
  KernelCall made{.kernel = {},
                  .results = {{.value = expressions_.result(node)}},
                  .operands = {{.value = input}, {.value = target}},
                  .request = kernels::PointwiseLoss{}};
  const auto known = std::ranges::find(kPointwise, name, &DomainLoss::name);
  if (known != std::end(kPointwise)) {
    if (*shape != *target_shape || target_type != type) return leave(node, "its operands are stretched");
    kernels::PointwiseLoss request;
    const Attribute* const logarithmic = model_.attribute(call, "log_target");
    const bool log_target = logarithmic != nullptr && logarithmic->i != 0;
    request.kind = log_target ? PointwiseKind::kKlDivergenceLog : known->kind;
    request.dtype = *float_dtype(*type);
    request.elements = count(*shape);
    request.averaging = kind;
    if (kind == kernels::Averaging::kBatchMean) {
      if (shape->empty() || shape->front() == 0) return leave(node, "it has no batch");
      request.batch = shape->front();
    }
    if (!known->parameter.empty()) request.delta = number(known->parameter, 1);
    if (third != ValueId::kAbsent) {
      const auto weights = extents(third);
      if (dtype(third) != type || !weights || !period(*weights, *shape)) return leave(node, "its weights do not fit");
      request.positive_period = *period(*weights, *shape);
    }
    made.operands.push_back({});
    made.operands.push_back({.value = third});
    made.kernel = fmt::format("pointwise_loss {}{}, {}", known->kernel, log_target ? "_log" : "", averaging);
    made.request = request;
  } else if (name == "CrossEntropyLoss" || name == "NllLoss") {
    const bool indices = *target_type == DType::kInt64;
    if (shape->size() < 2 || kind == kernels::Averaging::kBatchMean) return leave(node, "its scores have no batch");
    kernels::ClassLoss request = class_loss(*float_dtype(*type), *shape, 1);
    Extents positions = *shape;
    positions.erase(positions.begin() + 1);
    if (*target_shape != (indices ? positions : *shape) || (!indices && target_type != type) ||
        (third != ValueId::kAbsent && (extents(third) != Extents{request.classes} || dtype(third) != type)))
      return leave(node, "its operands do not fit");
    request.kind = name == "NllLoss" ? kernels::ClassLossKind::kNegativeLogLikelihood
                   : indices         ? kernels::ClassLossKind::kCrossEntropy
                                     : kernels::ClassLossKind::kCrossEntropyProbabilities;
    request.averaging = kind;
    request.smoothing = number("label_smoothing", 0);
    const Attribute* const ignored = model_.attribute(call, "ignore_index");
    if (ignored != nullptr) request.ignore_index = ignored->i;
    made.operands.push_back({.value = third});
    made.kernel = fmt::format("class_loss {}, {}",
                              name == "NllLoss" ? "negative_log_likelihood"
                              : indices         ? "cross_entropy"
                                                : "cross_entropy_probabilities",
                              averaging);
    made.request = request;
  } else {
    return;
  }
  std::vector<ValueId> operands;
  for (const CallOperand& operand : made.operands)
    if (operand.value != ValueId::kAbsent) operands.push_back(operand.value);
  complete(std::move(made), operands, {node});
}

}  // namespace tensorlint::runtime
