// Normalizations: of the last axes, of instances, groups and channels.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/executor/kernel_matcher.h"

namespace tensorlint::runtime {
namespace {

using kernels::NormalizationKind;

/// The last axes of `data` as one parameter an element, or one for all of them; 0 where `parameter` is neither.
std::int64_t parameters_of_row(const Extents& parameter, std::span<const std::int64_t> row) {
  std::size_t first = 0;
  while (first < parameter.size() && parameter[first] == 1) ++first;
  const auto given = std::span(parameter).subspan(first);
  if (given.empty()) return 1;
  while (!row.empty() && row.front() == 1) row = row.subspan(1);
  if (!std::ranges::equal(given, row)) return 0;
  std::int64_t elements = 1;
  for (const std::int64_t extent : row) elements *= extent;
  return elements;
}

}  // namespace

bool KernelMatcher::add_normalization(NodeId node, std::string_view name) {
  if (name == "LayerNormalization") return add_last_axes_normalization(node, NormalizationKind::kCentred), true;
  if (name == "RMSNormalization") return add_last_axes_normalization(node, NormalizationKind::kRootMeanSquare), true;
  if (name == "BatchNormalization") return add_channel_normalization(node, NormalizationKind::kGiven, false), true;
  if (name == "InstanceNormalization") return add_channel_normalization(node, NormalizationKind::kCentred, false), true;
  if (name == "GroupNormalization") return add_channel_normalization(node, NormalizationKind::kCentred, true), true;
  return false;
}

void KernelMatcher::add_last_axes_normalization(NodeId node, NormalizationKind kind) {
  const ValueId data = expressions_.operand(node, 0);
  std::vector<ValueId> operands{data, expressions_.operand(node, 1)};
  if (kind == NormalizationKind::kCentred) operands.push_back(expressions_.operand(node, 2));
  const auto shape = extents(data);
  if (!shape) return leave(node, "its extents are not known before the run");
  const Attribute* const given = model_.attribute(model_.node(node), "axis");
  const auto rank = static_cast<std::int64_t>(shape->size());
  std::int64_t axis = given == nullptr ? -1 : given->i;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return leave(node, "its operands do not fit");
  const auto row = std::span(*shape).subspan(static_cast<std::size_t>(axis));
  kernels::Normalization request;
  request.kind = kind;
  request.rows = count(std::span(*shape).first(static_cast<std::size_t>(axis)));
  request.length = count(row);
  std::optional<std::int64_t> each;
  for (std::size_t i = 1; i < operands.size(); ++i) {
    if (operands[i] == ValueId::kAbsent) continue;
    const auto parameter = extents(operands[i]);
    if (!parameter) return leave(node, "its extents are not known before the run");
    const std::int64_t elements = parameters_of_row(*parameter, row);
    if (elements == 0 || (each && *each != elements))
      return leave(node, "there is no kernel for a scale or bias that is stretched");
    each = elements;
  }
  request.each = each.value_or(1);
  add_normalization_call(node, operands, request);
}

void KernelMatcher::add_channel_normalization(NodeId node, NormalizationKind kind, bool has_groups) {
  const ValueId data = expressions_.operand(node, 0);
  std::vector<ValueId> operands{data, expressions_.operand(node, 1), expressions_.operand(node, 2)};
  const auto shape = extents(data);
  if (!shape) return leave(node, "its extents are not known before the run");
  const std::int64_t opset = model_.op(model_.node(node)).opset;
  const auto number = [&](std::string_view key, std::int64_t fallback) {
    const Attribute* const attribute = model_.attribute(model_.node(node), key);
    return attribute == nullptr ? fallback : attribute->i;
  };
  if (kind == NormalizationKind::kGiven) {
    // With which statistics: see the interpreter's uses_batch_statistics.
    const bool trains = opset >= 14  ? number("training_mode", 0) != 0
                        : opset >= 7 ? model_.results(model_.node(node)).size() > 1
                                     : number("is_test", 0) == 0;
    if (trains) return leave(node, "there is no kernel for statistics of the batch");
    if (opset < 9 && number("spatial", 1) == 0)
      return leave(node, "there is no kernel for statistics of each position");
    operands.push_back(expressions_.operand(node, 3));
    operands.push_back(expressions_.operand(node, 4));
  }
  const std::int64_t channels = shape->size() < 2 ? 1 : (*shape)[1];
  const std::int64_t groups = has_groups ? number("num_groups", 1) : channels;
  if (shape->empty() || groups < 1 || channels % groups != 0) return leave(node, "its operands do not fit");
  kernels::Normalization request;
  request.kind = kind;
  request.groups = groups;
  request.each = has_groups && opset >= 21 ? channels / groups : 1;  // before, groups are scaled, not channels
  request.rows = (*shape)[0] * groups;
  request.length = channels / groups * count(std::span(*shape).subspan(std::min<std::size_t>(shape->size(), 2)));
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const auto parameter = extents(operands[i]);
    if (!parameter) return leave(node, "its extents are not known before the run");
    if (*parameter != Extents{request.groups * request.each}) return leave(node, "its operands do not fit");
  }
  add_normalization_call(node, operands, request);
}

void KernelMatcher::add_normalization_call(NodeId node, std::vector<ValueId> operands, kernels::Normalization request) {
  if (needs_more_results(node)) return leave(node, "there is no kernel for its second result");
  const auto type = dtype(operands[0]);
  if (!type || !float_dtype(*type))
    return leave(node, type ? fmt::format("there is no kernel for {}", DTypeSet(*type).to_text())
                            : "its dtype is not known before the run");
  if (dtype(expressions_.result(node)) != type) return leave(node, "its result has another dtype");
  std::erase(operands, ValueId::kAbsent);
  for (const ValueId operand : operands)
    if (dtype(operand) != type) return leave(node, "its operands have different dtypes");
  if (request.rows == 0 || request.length == 0) return leave(node, "it normalizes nothing");
  const Attribute* const epsilon = model_.attribute(model_.node(node), "epsilon");
  request.dtype = *float_dtype(*type);
  if (epsilon != nullptr) request.epsilon = static_cast<double>(epsilon->f);
  const bool given = request.kind == NormalizationKind::kGiven;
  KernelCall call{.kernel = given                                                ? "normalization by given statistics"
                            : request.kind == NormalizationKind::kRootMeanSquare ? "normalization by root mean square"
                                                                                 : "normalization",
                  .results = {{.value = expressions_.result(node)}},
                  .request = request};
  const bool centred = request.kind != NormalizationKind::kRootMeanSquare;
  call.operands = {{.value = operands[0]},
                   {.value = expressions_.operand(node, 1)},
                   {.value = centred ? expressions_.operand(node, 2) : ValueId::kAbsent},
                   {.value = given ? expressions_.operand(node, 3) : ValueId::kAbsent},
                   {.value = given ? expressions_.operand(node, 4) : ValueId::kAbsent}};
  complete(std::move(call), operands, {node});
}

}  // namespace tensorlint::runtime
