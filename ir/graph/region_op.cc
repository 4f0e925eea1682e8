#include "ir/graph/region_op.h"

namespace tensorlint {

RegionKind region_kind(const Model& model, const Operator& op) {
  if (op.function != GraphId::kNone) return RegionKind::kCall;
  if (op.domain != NameId::kEmpty) return RegionKind::kNone;
  const std::string_view name = model.text(op.name);
  if (name == "If") return RegionKind::kIf;
  if (name == "Loop") return RegionKind::kLoop;
  if (name == "Scan") return RegionKind::kScan;
  if (name == "SequenceMap") return RegionKind::kSequenceMap;
  return RegionKind::kNone;
}

std::string_view graph_attribute(RegionKind kind, std::size_t graph) {
  if (kind == RegionKind::kIf) return graph == 0 ? "then_branch" : "else_branch";
  return "body";
}

namespace detail {

RegionOp lay_out(const Model& model, const Node& node, RegionKind kind, std::int64_t num_scan_inputs) {
  RegionOp region{.kind = kind, .operand_count = node.operand_count};
  const auto rest = [&] { return region.operand_count - std::min(region.operand_count, region.control_operands); };
  switch (kind) {
    case RegionKind::kCall:
      region.graphs[0] = model.op(node).function;
      break;
    case RegionKind::kIf:
      region.control_operands = 1;
      region.condition_operand = 0;
      break;
    case RegionKind::kLoop:
      region.control_operands = region.control_inputs = 2;
      region.control_outputs = 1;
      region.trip_count_operand = region.iteration_input = 0;
      region.condition_operand = region.condition_input = 1;
      region.condition_output = 0;
      region.carried = rest();
      break;
    case RegionKind::kScan: {
      if (model.op(node).opset < 9) {
        region.control_operands = 1;
        region.lengths_operand = 0;
      }
      if (num_scan_inputs < 1 || static_cast<std::uint64_t>(num_scan_inputs) > rest()) break;
      region.scanned = static_cast<std::size_t>(num_scan_inputs);
      region.carried = rest() - region.scanned;
      break;
    }
    case RegionKind::kSequenceMap:
      region.scanned = region.operand_count;
      break;
    case RegionKind::kNone:
      break;
  }
  return region;
}

}  // namespace detail

RegionOp::Index RegionOp::operand_of_input(std::size_t input) const {
  if (kind == RegionKind::kNone || kind == RegionKind::kIf || input < control_inputs) return std::nullopt;
  const std::size_t operand = control_operands + input - control_inputs;
  return operand < operand_count ? Index(operand) : std::nullopt;
}

RegionOp::Index RegionOp::next_output_of_input(std::size_t input) const {
  if (input < control_inputs || input - control_inputs >= carried) return std::nullopt;
  return carried_output(input - control_inputs);
}

}  // namespace tensorlint
