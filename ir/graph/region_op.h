#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ir/graph/model.h"

namespace tensorlint {

/// Which kind of control flow a node stands for. An operator of another domain that is named like one of ONNX's is
/// none.
enum class RegionKind : std::uint8_t { kNone, kCall, kIf, kLoop, kScan, kSequenceMap };

RegionKind region_kind(const Model& model, const Operator& op);

inline bool is_loop(RegionKind kind) { return kind == RegionKind::kLoop || kind == RegionKind::kScan; }

/// How a node that runs graphs connects its operands and results with the inputs and outputs of these graphs: the one
/// place that knows these layouts.
///
///                 operands                              inputs of the graph             outputs of the graph
///   call          forwarded                             forwarded                       results
///   If            condition                             (none)                          results
///   Loop          trip count, condition, carried        iteration, condition, carried   condition, carried, stacked
///   Scan          (opset 8: lengths,) carried, scanned  carried, slices                 carried, stacked
///   SequenceMap   a sequence, sequences or tensors      elements or tensors             elements
///
/// Values captured from the graphs around are no operands of the node.
/// Source: ONNX If, Loop (opset 1 and later), Scan (8; 9 and later), SequenceMap (17).
struct RegionOp {
  RegionKind kind = RegionKind::kNone;
  GraphId graphs[2] = {GraphId::kNone, GraphId::kNone};  ///< If: then_branch, else_branch; else the one graph first
  std::size_t operand_count = 0;
  std::size_t control_operands = 0;  ///< operands that only decide what runs, and how often
  std::size_t control_inputs = 0;    ///< inputs of the graph before those that operands give
  std::size_t control_outputs = 0;   ///< outputs of the graph before those that become results
  std::size_t carried = 0;           ///< loop-carried values: operand, input, output and result each
  std::size_t scanned = 0;           ///< operands that the graph gets a slice of in each iteration

  GraphId body() const { return graphs[0]; }
  std::size_t graph_count() const { return kind == RegionKind::kNone ? 0 : kind == RegionKind::kIf ? 2 : 1; }
  bool has_graphs() const { return graphs[0] != GraphId::kNone && (graph_count() < 2 || graphs[1] != GraphId::kNone); }
  std::size_t carried_operand(std::size_t i) const { return control_operands + i; }
  std::size_t carried_input(std::size_t i) const { return control_inputs + i; }
  std::size_t carried_output(std::size_t i) const { return control_outputs + i; }
  std::size_t scanned_operand(std::size_t i) const { return control_operands + carried + i; }
  std::size_t slice_input(std::size_t i) const { return control_inputs + carried + i; }
  std::size_t stacked_output(std::size_t i) const { return control_outputs + carried + i; }
  bool is_carried_result(std::size_t result) const { return result < carried; }

  /// The operand that an input of the graph gets its (first) value from; nullopt for inputs that the node itself gives.
  std::optional<std::size_t> operand_of_input(std::size_t input) const;
  /// The output of the graph that gives an input its value in the next iteration; nullopt where there is none.
  std::optional<std::size_t> next_output_of_input(std::size_t input) const;
  /// The output of each graph that becomes a result.
  std::size_t output_of_result(std::size_t result) const { return control_outputs + result; }

  /// True where a loop's body has the inputs that the operands ask for, and outputs for all carried values.
  bool fits(const Graph& graph) const {
    return graph.inputs.size() == control_inputs + carried + scanned &&
           graph.outputs.size() >= control_outputs + carried;
  }
};

namespace detail {
RegionOp lay_out(const Model& model, const Node& node, RegionKind kind, std::int64_t num_scan_inputs);
}

/// `find_attribute(name)` gives a `const Attribute*`: inside functions a node's attributes are those of its call. A
/// node with too few operands, for a Scan also by its `num_scan_inputs`, has its kind and no graphs.
template <typename Find>
RegionOp region_op(const Model& model, const Node& node, const Find& find_attribute) {
  const RegionKind kind = region_kind(model, model.op(node));
  if (kind == RegionKind::kNone) return {};
  const Attribute* scans = kind == RegionKind::kScan ? find_attribute("num_scan_inputs") : nullptr;
  RegionOp region = detail::lay_out(model, node, kind, scans != nullptr ? scans->i : 0);
  if (kind == RegionKind::kCall || region.operand_count < region.control_operands ||
      (kind == RegionKind::kScan && region.scanned == 0))
    return region;
  const auto body = [&](std::string_view name) {
    const Attribute* found = find_attribute(name);
    return found != nullptr && found->kind == AttributeKind::kGraph ? found->graph : GraphId::kNone;
  };
  region.graphs[0] = body(kind == RegionKind::kIf ? "then_branch" : "body");
  if (kind == RegionKind::kIf) region.graphs[1] = body("else_branch");
  return region;
}

inline RegionOp region_op(const Model& model, const Node& node) {
  return region_op(model, node, [&](std::string_view name) { return model.attribute(node, name); });
}

}  // namespace tensorlint
