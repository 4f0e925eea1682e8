#include "passes/losses/axis_way.h"

#include <algorithm>
#include <string>

#include "ir/ops/einsum.h"

namespace tensorlint::losses {
namespace {

AxisStep kept(std::size_t axis) { return {AxisFate::kKept, axis}; }

/// Nullopt where there is an ellipsis, or no result: those are rare, and nothing is lost.
/// Longer texts name more axes than tensors have.
constexpr std::size_t kMaxEquation = 1024;

std::optional<ops::EinsumEquation> equation_of(const Expressions& expressions, NodeId node) {
  const Attribute* given = expressions.analysis().attribute(node, "equation");
  if (given == nullptr || given->s.size() > kMaxEquation) return std::nullopt;
  expressions.charge(given->s.size());
  ops::Message error;
  auto equation = ops::parse_einsum(given->s, error);
  if (!equation || !equation->result || equation->result->has_ellipsis ||
      std::ranges::any_of(equation->terms, &ops::EinsumTerm::has_ellipsis))
    return std::nullopt;
  return equation;
}

}  // namespace

AxisStep AxisWay::follow(NodeId node, std::size_t operand, std::size_t axis) const {
  const ValueId from = expressions_.operand(node, operand), to = expressions_.result(node);
  const auto before = dims(from), after = dims(to);
  if (axis >= before.size()) return {};
  const Opcode opcode = expressions_.op(node);
  const auto same = [&] { return after.size() == before.size() ? kept(axis) : AxisStep{}; };
  if (reduces_axes(opcode) || has_trait(expressions_.entry(node), ops::OpTrait::kReduction))
    return operand == 0 ? through_reduction(node, axis) : AxisStep{};
  switch (opcode) {
    case Opcode::kReshape:
    case Opcode::kSqueeze:
    case Opcode::kUnsqueeze:
      return operand == 0 ? through_view(from, to, axis) : AxisStep{};
    case Opcode::kTranspose: {
      const Attribute* order = analysis_.attribute(node, "perm");
      if (order == nullptr) return after.size() == before.size() ? kept(before.size() - 1 - axis) : AxisStep{};
      if (order->ints.size() != before.size()) return {};
      const auto at = std::ranges::find(order->ints, static_cast<std::int64_t>(axis));
      return at == order->ints.end() ? AxisStep{} : kept(static_cast<std::size_t>(at - order->ints.begin()));
    }
    case Opcode::kMatMul:
      return through_product(node, operand, axis);
    case Opcode::kGather: {
      const Attribute* given = analysis_.attribute(node, "axis");
      std::int64_t at = given == nullptr ? 0 : given->i;
      if (at < 0) at += static_cast<std::int64_t>(before.size());
      if (operand != 0 || after.size() + 1 < before.size()) return {};
      if (at == static_cast<std::int64_t>(axis)) return {AxisFate::kSelected, 0};
      return kept(static_cast<std::int64_t>(axis) < at ? axis : axis + after.size() - before.size());
    }
    case Opcode::kGatherElements: {
      const Attribute* given = analysis_.attribute(node, "axis");
      std::int64_t at = given == nullptr ? 0 : given->i;
      if (at < 0) at += static_cast<std::int64_t>(before.size());
      if (operand != 0) return {};
      return at == static_cast<std::int64_t>(axis) ? AxisStep{AxisFate::kSelected, 0} : same();
    }
    case Opcode::kDropout:
    case Opcode::kCast:
    case Opcode::kIdentity:
    case Opcode::kSoftmax:
    case Opcode::kLogSoftmax:
    case Opcode::kCumSum:
    case Opcode::kNormalize:
      return operand == 0 ? same() : AxisStep{};
    case Opcode::kEinsum:
      return through_einsum(node, operand, axis);
    case Opcode::kConcat:
      return same();
    case Opcode::kSlice:
      return operand == 0 && after.size() == before.size() && pool_.equal(before[axis], after[axis]) ? kept(axis)
                                                                                                     : AxisStep{};
    case Opcode::kExpand:
      return operand == 0 && after.size() >= before.size() ? kept(axis + after.size() - before.size()) : AxisStep{};
    default:
      if (has_trait(expressions_.entry(node), ops::OpTrait::kElementwise) && after.size() >= before.size())
        return kept(axis + after.size() - before.size());
      return {};
  }
}

/// The axis of the result that has as many elements before it, and the same extent.
AxisStep AxisWay::through_view(ValueId from, ValueId to, std::size_t axis) const {
  const auto before = dims(from), after = dims(to);
  Dim ahead = pool_.constant(1);
  for (std::size_t i = 0; i < axis; ++i) ahead = pool_.mul(ahead, before[i]);
  Dim passed = pool_.constant(1);
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (pool_.equal(passed, ahead) && pool_.equal(after[i], before[axis])) return kept(i);
    passed = pool_.mul(passed, after[i]);
  }
  return {};
}

AxisStep AxisWay::through_reduction(NodeId node, std::size_t axis) const {
  const auto axes = expressions_.axes_of(node);
  if (!axes) return {};
  if (std::ranges::binary_search(*axes, axis)) return {AxisFate::kSummed, 0};
  const std::size_t rank = dims(expressions_.operand(node, 0)).size();
  if (dims(expressions_.result(node)).size() == rank) return kept(axis);
  return kept(axis - static_cast<std::size_t>(std::ranges::count_if(*axes, [&](std::size_t at) { return at < axis; })));
}

AxisStep AxisWay::through_product(NodeId node, std::size_t operand, std::size_t axis) const {
  const auto a = dims(expressions_.operand(node, 0)), b = dims(expressions_.operand(node, 1)),
             after = dims(expressions_.result(node));
  if (operand > 1 || a.empty() || b.empty()) return {};
  const auto sums = summed(node, operand);
  if (std::ranges::find(sums, axis) != sums.end()) return {AxisFate::kSummed, 0};
  const std::span<const Dim> own = operand == 0 ? a : b, other = operand == 0 ? b : a;
  if (own.size() == 1 || after.empty()) return {};
  if (axis + 2 >= own.size()) {  // its row or its column
    if (operand == 1) return kept(after.size() - 1);
    return kept(after.size() - (other.size() == 1 ? 1 : 2));
  }
  const std::size_t kept_after = other.size() == 1 ? 1 : 2, batches = own.size() - 2;
  if (after.size() < kept_after + batches) return {};
  return kept(axis + after.size() - kept_after - batches);
}

AxisStep AxisWay::through_einsum(NodeId node, std::size_t operand, std::size_t axis) const {
  const auto equation = equation_of(expressions_, node);
  if (!equation || operand >= equation->terms.size() || axis >= equation->terms[operand].letters.size()) return {};
  const std::size_t at = equation->result->letters.find(equation->terms[operand].letters[axis]);
  return at == std::string::npos ? AxisStep{AxisFate::kSummed, 0} : kept(at);
}

std::vector<std::size_t> AxisWay::summed(NodeId node, std::size_t operand) const {
  switch (expressions_.op(node)) {
    case Opcode::kReduceMean:
    case Opcode::kReduceSum:
      return operand == 0 ? expressions_.axes_of(node).value_or(std::vector<std::size_t>{})
                          : std::vector<std::size_t>{};
    case Opcode::kMatMul: {
      const std::size_t rank = dims(expressions_.operand(node, operand)).size();
      if (rank == 0 || operand > 1) return {};
      if (rank == 1) return {0};
      const Attribute* turned = analysis_.attribute(node, operand == 0 ? "transA" : "transB");
      const bool last = (operand == 0) != (turned != nullptr && turned->i != 0);
      return {last ? rank - 1 : rank - 2};
    }
    case Opcode::kEinsum: {
      std::vector<std::size_t> found;
      const auto equation = equation_of(expressions_, node);
      if (!equation || operand >= equation->terms.size()) return found;
      const std::string& letters = equation->terms[operand].letters;
      for (std::size_t i = 0; i < letters.size(); ++i)
        if (equation->result->letters.find(letters[i]) == std::string::npos) found.push_back(i);
      return found;
    }
    default:
      return {};
  }
}

}  // namespace tensorlint::losses
