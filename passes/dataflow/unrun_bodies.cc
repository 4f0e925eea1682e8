// Branches that a constant condition leaves out, and bodies of loops without an iteration. onnxruntime and onnx.checker
// infer all bodies when they load a model: what fails in one is refused, though no run gets to it. What is refused was
// measured with onnxruntime 1.31 (tests/soundness/unrun_bodies_test.py).
#include <algorithm>
#include <array>
#include <utility>

#include "ir/ops/device_rule.h"
#include "ir/ops/entry.h"
#include "ir/ops/shape_functions.h"
#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

constexpr std::uint64_t kShareOfUnrun = 16;  // of the budget

using enum ops::Opcode;

/// Operators, beside those that broadcast, of which ONNX's inference compares shapes.
constexpr std::array kComparedShapes{kMatMul, kConcat, kSqueeze, kUnsqueeze, kGather, kSplit, kSlice, kExpand};
/// And beside those and the ones that reduce, axes.
constexpr std::array kComparedAxes{kSoftmax, kLogSoftmax, kTranspose};

}  // namespace

/// The outputs; none where a function or a loop comes to the node again.
std::vector<AbstractValue> Solver::look_at_unrun(NodeId id, GraphId body) {
  const bool was_unrun = is_unrun_;
  if ((speculative_ && !was_unrun) || is_provisional() || !has_unrun_.insert(id).second) return {};
  const int conditional = std::exchange(conditional_, 0);
  const std::uint64_t rest = budget_.leave(budget_.visits() / kShareOfUnrun);
  speculative_ = is_unrun_ = true;
  std::vector<AbstractValue> outputs = visit_body(body, {});
  speculative_ = is_unrun_ = was_unrun;
  budget_.give_back(rest);
  conditional_ = conditional;
  shape_clash_.reset();
  return outputs;
}

/// Kept until all is visited: what fails in a run says more.
void Solver::refuse_unrun(NodeViolation violation) {
  const auto [kept, is_new] = refused_unrun_.try_emplace({violation.node, violation.constraint});
  if (!is_new) return;
  violation.certainty = ops::Certainty::kMay;
  violation.engines_differ = true;
  violation.witness = {"the engine infers bodies that never run, as onnxruntime does when it loads a model"};
  facts_.meter().keep(memory_of(violation));
  kept->second = std::move(violation);
}

bool Solver::is_refused_unrun(NodeId id, const ops::Violation& violation) const {
  using enum ops::ConstraintKind;
  const ops::OpEntry* entry = out_.entries_[model_.node(id).op];
  const auto is_among = [&](const auto& opcodes) {
    return std::ranges::find(opcodes, ops::opcode_of(entry)) != opcodes.end();
  };
  switch (violation.kind()) {
    case kUnknownOperator:
    case kNotInOpset:
    case kOperandCount:
    case kUnknownAttribute:
    case kTypeConstraint:
    case kMixedDtypes:
      return true;
    case kAxisRange:
    case kDuplicateAxis:
      return (ops::has_trait(entry, ops::OpTrait::kReduction) || is_among(kComparedShapes) ||
              is_among(kComparedAxes)) &&
             has_shapes_before_run(id);
    case kRank:
    case kShapes:
    case kConcatRanks:
    case kConcatShapes:
      return (violation.constraint == &ops::kBroadcastable || is_among(kComparedShapes)) && has_shapes_before_run(id);
    default:
      return false;
  }
}

/// The operands' shapes follow from those of the model's inputs, its weights and its constants, as engines infer them
/// before a run: not through what other nodes compute. False also where that is far to see.
bool Solver::has_shapes_before_run(NodeId id) const {
  constexpr std::size_t kMostNodes = 64;
  std::vector<NodeId> nodes{id};
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    const Node& node = model_.node(nodes[at]);
    const Operator& op = model_.op(node);
    const ops::OpEntry* entry = out_.entries_[node.op];
    if (op.schema == nullptr || entry == nullptr || region_kind(model_, op) != RegionKind::kNone) return false;
    const ops::DeviceSignature roles = ops::device_signature(op.schema, entry);
    for (std::size_t i = 0; i < node.operand_count; ++i) {
      facts_.meter().charge(1 + nodes.size() / 4);
      const ValueId operand = model_.operands(node)[i];
      if (operand == ValueId::kAbsent) continue;
      const Value& value = model_.value(operand);
      const bool is_given = value.origin == ValueOrigin::kInput && value.graph == GraphId::kMain && !roles.is_host(i);
      if (is_given || value.origin == ValueOrigin::kInitializer) continue;
      if (value.producer == NodeId::kNone) return false;
      if (ops::opcode_of(out_.entries_[model_.node(value.producer).op]) == kConstant) continue;
      if (roles.is_host(i)) return false;
      if (std::ranges::find(nodes, value.producer) == nodes.end()) nodes.push_back(value.producer);
      if (nodes.size() > kMostNodes) return false;
    }
  }
  return true;
}

}  // namespace tensorlint::dataflow
