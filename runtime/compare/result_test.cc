#include "runtime/compare/result_test.h"

#include <charconv>
#include <optional>

#include "runtime/compare/selection.h"

namespace tensorlint::compare {

using runtime::HostTensor;

namespace {

/// The axis of operand 0 along which a node selects positions: its attribute `axis`, or what that is by default.
std::optional<std::size_t> selected_axis(const Model& model, NodeId node, std::size_t rank) {
  std::int64_t axis = 0;
  const Operator& op = model.op(model.node(node));
  if (const Attribute* const given = model.attribute(model.node(node), "axis")) {
    axis = given->i;
  } else if (const FormalAttribute* const formal = op.schema == nullptr ? nullptr : op.schema->attribute("axis")) {
    const std::string_view text = formal->default_value;
    std::from_chars(text.data(), text.data() + text.size(), axis);
  }
  const auto extent = static_cast<std::int64_t>(rank);
  if (axis < -extent || axis >= extent) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + extent : axis);
}

}  // namespace

TensorTest test_result(const NodeReference& reference, const Model& model, NodeId node, std::size_t result,
                       const NodeReference::Inputs& inputs, const Expected& expected, const HostTensor& other,
                       runtime::Memory& memory, const TestOptions& options) {
  const HostTensor& positions = expected.value.tensor();
  const OpSchema* const schema = model.op(model.node(node)).schema;
  const bool is_positions = schema != nullptr && result + 1 == schema->outputs.size();  // TopK gives values before them
  if (is_positions && reference.rounding_of(node).kind == runtime::Rounding::Kind::kSelects &&
      other.dtype() == DType::kInt64 && positions.dtype() == DType::kInt64) {
    const auto operand = inputs.find(model.operands(model.node(node)).front());
    if (operand != inputs.end() && operand->second.value.is_tensor())
      if (const auto axis = selected_axis(model, node, operand->second.value.tensor().rank()))
        return test_selection(operand->second, *axis, positions, other, memory);
  }
  return test_tensor(expected, other, memory, options);
}

}  // namespace tensorlint::compare
