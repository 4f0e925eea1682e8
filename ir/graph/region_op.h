#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/graph/model.h"

namespace tensorlint {

/// Which kind of control flow a node stands for. An operator of another domain is kNone, even if it
/// has the name of one of ONNX's.
enum class RegionKind : std::uint8_t { kNone, kCall, kIf, kLoop, kScan, kSequenceMap };

RegionKind region_kind(const Model& model, const Operator& op);

inline bool is_loop(RegionKind kind) { return kind == RegionKind::kLoop || kind == RegionKind::kScan; }

/// The attribute with a graph of such a node: for an If the branch that runs where the condition holds comes first.
std::string_view graph_attribute(RegionKind kind, std::size_t graph);

/// How a node that runs graphs connects its operands and results with the inputs and outputs of these graphs: the one
/// place that knows these layouts. Loop-carried values are called carried here; they leave an iteration and enter the
/// next.
///
///                 operands                              inputs of the graph             outputs of the graph
///   call          forwarded                             forwarded                       results
///   If            condition                             (none)                          results
///   Loop          trip count, condition, carried        iteration, condition, carried   condition, carried, scan
///   Scan          (opset 8: lengths,) carried, scanned  carried, slices                 carried, scan
///   SequenceMap   a sequence, sequences or tensors      elements or tensors             elements
///
/// Values captured from the graphs around are not operands of the node.
/// Source: ONNX If, Loop (opset 1 and later), Scan (8; 9 and later), SequenceMap (17).
struct RegionOp {
  using Index = std::optional<std::size_t>;

  RegionKind kind = RegionKind::kNone;
  GraphId graphs[2] = {GraphId::kNone, GraphId::kNone};  ///< by graph_attribute; kNone: missing
  std::size_t operand_count = 0;
  std::size_t control_operands = 0;  ///< operands that only decide what runs, and how often
  std::size_t control_inputs = 0;    ///< inputs of the graph before those that operands give
  std::size_t control_outputs = 0;   ///< outputs of the graph before those that become results
  std::size_t carried = 0;           ///< loop-carried values: operand, input, output and result each
  std::size_t scanned = 0;           ///< operands that the graph gets a slice of in each iteration
  Index trip_count_operand{};        ///< Loop
  Index condition_operand{};         ///< If, Loop
  Index lengths_operand{};           ///< Scan of opset 8
  Index iteration_input{};           ///< Loop: the number of the iteration, from 0
  Index condition_input{};           ///< Loop
  Index condition_output{};          ///< Loop: whether to go on

  GraphId body() const { return graphs[0]; }
  std::size_t graph_count() const { return kind == RegionKind::kNone ? 0 : kind == RegionKind::kIf ? 2 : 1; }
  /// False where a graph is missing, or operands that every such node has.
  bool has_graphs() const {
    const bool needs_scanned = kind == RegionKind::kScan || kind == RegionKind::kSequenceMap;
    return operand_count >= control_operands && (scanned > 0 || !needs_scanned) && graphs[0] != GraphId::kNone &&
           (graph_count() < 2 || graphs[1] != GraphId::kNone);
  }
  /// A Scan of opset 8: every value has a batch axis first.
  bool is_batched() const { return lengths_operand.has_value(); }

  std::size_t carried_operand(std::size_t i) const { return control_operands + i; }
  std::size_t carried_input(std::size_t i) const { return control_inputs + i; }
  std::size_t carried_output(std::size_t i) const { return control_outputs + i; }
  std::size_t scanned_operand(std::size_t i) const { return control_operands + carried + i; }
  std::size_t slice_input(std::size_t i) const { return control_inputs + carried + i; }
  std::size_t scan_output(std::size_t i) const { return control_outputs + carried + i; }
  bool is_carried_result(std::size_t result) const { return result < carried; }

  /// The operand that an input of the graph gets its (first) value from; nullopt for inputs that the node itself gives.
  Index operand_of_input(std::size_t input) const;
  /// The output of the graph that gives an input its value in the next iteration; nullopt where there is none.
  Index next_output_of_input(std::size_t input) const;
  /// The output of each graph that becomes a result.
  std::size_t output_of_result(std::size_t result) const { return control_outputs + result; }
  /// The inputs that the graph has to have, and the outputs for a node with so many results. Calls have no such number.
  std::size_t input_count() const { return control_inputs + carried + scanned; }
  std::size_t output_count(std::size_t results) const { return control_outputs + std::max(carried, results); }

  /// True where a loop's body has the inputs that the operands ask for, and outputs for all loop-carried values.
  bool fits(const Graph& graph) const {
    return graph.inputs.size() == input_count() && graph.outputs.size() >= output_count(0);
  }
};

/// An operand, input or output by its index; kAbsent where there is none.
inline ValueId value_at(std::span<const ValueId> values, RegionOp::Index index) {
  return index && *index < values.size() ? values[*index] : ValueId::kAbsent;
}

/// Along which axes a Scan takes slices and joins them: 0 where it says nothing; and which way: forwards.
struct ScanAxes {
  std::span<const std::int64_t> inputs, outputs;  ///< as they are written
  std::span<const std::int64_t> input_directions{}, output_directions{};

  std::int64_t input(std::size_t scanned) const { return scanned < inputs.size() ? inputs[scanned] : 0; }
  std::int64_t output(std::size_t scan_output) const { return scan_output < outputs.size() ? outputs[scan_output] : 0; }
  /// From the last slice to the first.
  bool reads_backwards(std::size_t scanned) const {
    return scanned < input_directions.size() && input_directions[scanned] == 1;
  }
  /// The first iteration gives the last entry.
  bool writes_backwards(std::size_t scan_output) const {
    return scan_output < output_directions.size() && output_directions[scan_output] == 1;
  }
};

namespace detail {
RegionOp lay_out(const Model& model, const Node& node, RegionKind kind, std::int64_t num_scan_inputs);
}

/// `find_attribute(name)` gives a `const Attribute*`: inside functions a node's attributes are those of its call.
template <typename Find>
RegionOp region_op(const Model& model, const Node& node, const Find& find_attribute) {
  const RegionKind kind = region_kind(model, model.op(node));
  if (kind == RegionKind::kNone) return {};
  const Attribute* scans = kind == RegionKind::kScan ? find_attribute("num_scan_inputs") : nullptr;
  RegionOp region = detail::lay_out(model, node, kind, scans != nullptr ? scans->i : 0);
  if (kind == RegionKind::kCall) return region;
  for (std::size_t g = 0; g < region.graph_count(); ++g) {
    const Attribute* found = find_attribute(graph_attribute(kind, g));
    if (found != nullptr && found->kind == AttributeKind::kGraph) region.graphs[g] = found->graph;
  }
  return region;
}

inline RegionOp region_op(const Model& model, const Node& node) {
  return region_op(model, node, [&](std::string_view name) { return model.attribute(node, name); });
}

template <typename Find>
ScanAxes scan_axes(const Find& find_attribute) {
  const auto list = [&](std::string_view name) {
    const Attribute* found = find_attribute(name);
    return found != nullptr && found->kind == AttributeKind::kInts ? found->ints : std::span<const std::int64_t>();
  };
  const std::span<const std::int64_t> of_opset_8 = list("directions");
  return {list("scan_input_axes"), list("scan_output_axes"),
          of_opset_8.empty() ? list("scan_input_directions") : of_opset_8, list("scan_output_directions")};
}

}  // namespace tensorlint
