// Branches that a constant condition leaves out, and bodies of loops of no iterations. onnxruntime and onnx.checker
// infer all bodies when they load a model: what fails in one is refused, though no run gets to it. What is refused was
// measured with onnxruntime 1.31 (tests/soundness/unrun_bodies_test.py).
#include <algorithm>
#include <utility>

#include "ir/ops/device_rule.h"
#include "ir/ops/entry.h"
#include "ir/ops/shape_functions.h"
#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {

/// The outputs; none where a function or a loop comes to the node again.
std::vector<AbstractValue> Solver::infer_unrun(NodeId id, GraphId body) {
  if ((speculative_ && !is_unrun_) || is_provisional() || !has_unrun_.insert(id).second) return {};
  std::vector<AbstractValue> inputs;
  for (const ValueId input : model_.graph(body).inputs) {
    const TypeDecl* type = input == ValueId::kAbsent ? nullptr : model_.value(input).type;
    inputs.push_back({type == nullptr ? FactId::kTop : initial_facts_.declared(*type, 0), {}});
  }
  std::vector<AbstractValue> outputs;
  const auto infer = [&] { outputs = visit_body(body, inputs); };
  if (is_unrun_) {
    infer();  // of the share of the body around it
  } else {
    is_unrun_ = true;
    if (!speculate(infer)) unrun_ran_out_ = true;
    is_unrun_ = false;
  }
  shape_clash_.reset();
  return outputs;
}

/// Once for a node and constraint.
void Solver::keep_unrun(NodeViolation violation) {
  if (!has_unrun_violation_.insert({violation.node, violation.constraint}).second) return;
  violation.certainty = ops::Certainty::kMay;
  violation.engines_differ = true;
  violation.witness = {"the engine infers bodies that never run, as onnxruntime does when it loads a model"};
  facts_.meter().keep(memory_of(violation));
  unrun_violations_.push_back(std::move(violation));
}

/// After all visits: what fails in a run says more than that it would fail where nothing runs.
void Solver::keep_unrun_violations() {
  const bool is_spent = facts_.meter().is_spent();
  for (NodeViolation& violation : std::exchange(unrun_violations_, {})) {
    facts_.meter().release(memory_of(violation));
    if (!is_spent) keep(std::move(violation));
  }
}

bool Solver::fails_at_load(NodeId id, const ops::Violation& violation) const {
  return violation.constraint->is_inferred && (ops::is_about_signature(violation.kind()) || has_shapes_before_run(id));
}

/// The operands' shapes follow from those of the model's inputs, its weights and its constants, as engines infer them
/// before a run: not through what other nodes compute. False also where that is far to see, and for operators of before
/// opset 11, of which many have no inference.
bool Solver::has_shapes_before_run(NodeId id) const {
  constexpr std::size_t kMostNodes = 64;
  constexpr std::int64_t kFirstOpset = 11;
  if (const Operator& op = model_.op(model_.node(id)); op.domain == NameId::kEmpty && op.opset < kFirstOpset)
    return false;
  std::vector<NodeId> nodes{id};
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const Node& node = model_.node(nodes[at]);
    const Operator& op = model_.op(node);
    const ops::OpEntry* entry = out_.entries_[node.op];
    if (op.schema == nullptr || entry == nullptr || region_kind(model_, op) != RegionKind::kNone) return false;
    if (at != 0 && entry->has(ops::OpTrait::kCountsElements)) return false;
    const ops::DeviceSignature roles = ops::device_signature(op.schema, entry);
    std::size_t index = 0;
    for (const ValueId operand : Walk(model_.operands(node), facts_.meter())) {
      const bool is_host = roles.is_host(index++);
      if (operand == ValueId::kAbsent) continue;
      // Of sequences engines do not know what the elements are like.
      if (facts_.fact(read_operand(operand).fact).kind != ValueKind::kTensor) return false;
      const Value& value = model_.value(operand);
      const bool is_given = value.origin == ValueOrigin::kInput && value.graph == GraphId::kMain && !is_host;
      if (is_given || value.origin == ValueOrigin::kInitializer) continue;
      if (value.producer == NodeId::kNone) return false;
      if (ops::opcode_of(out_.entries_[model_.node(value.producer).op]) == ops::Opcode::kConstant) continue;
      if (is_host) return false;
      facts_.meter().charge(nodes.size() / 4);
      if (std::ranges::find(nodes, value.producer) == nodes.end()) nodes.push_back(value.producer);
      if (nodes.size() > kMostNodes) return false;
    }
  }
  return !facts_.meter().is_spent();
}

}  // namespace tensorlint::dataflow
