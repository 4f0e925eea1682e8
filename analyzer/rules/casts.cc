#include "analyzer/rules/casts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ir/graph/new_nodes.h"
#include "ir/graph/region_op.h"

namespace tensorlint::rules {
namespace {

bool is_discrete(const Operand& operand) {
  return operand.present() && operand.fact().kind == ValueKind::kTensor &&
         operand.fact().dtypes.proves(DTypeSet::integers() | DType::kBool);
}

/// The operator takes tensors of this dtype wherever the node reads the value.
bool takes(const NodeCall& call, ValueId value, DType dtype) {
  const OpSchema* schema = call.op().schema;
  if (schema == nullptr || schema->inputs.empty()) return true;
  constexpr std::uint64_t kOperandsOfStep = 8;
  call.analysis().facts().meter().charge(call.operand_count() / kOperandsOfStep);
  for (std::size_t i = 0; i < call.operand_count(); ++i) {
    if (call.operand(i).value() != value) continue;
    const FormalParameter& formal = schema->inputs[std::min(i, schema->inputs.size() - 1)];
    if (!schema->types[formal.type].allowed.tensor.contains(dtype)) return false;
  }
  return true;
}

/// A new name for what becomes of a value before a node; it differs from node to node, so that fixes can be combined.
std::string name_before(const Model& model, NodeId before, ValueId value, std::string_view what) {
  return unused_name(model, fmt::format("{}_{}_{}", model.name_of(value), what, static_cast<std::uint32_t>(before)));
}

}  // namespace

void redirect_operands(const dataflow::Analysis& analysis, NodeId node, ValueId from, const std::string& to,
                       std::vector<GraphEdit>& edits) {
  const std::size_t most = edits.size() + most_edits_with(to);
  const std::span<const ValueId> operands = analysis.operands(node).read();
  for (std::uint32_t i = 0; i < operands.size() && edits.size() <= most; ++i)
    if (operands[i] == from) edits.push_back(SetOperand{node, i, to});
}

std::optional<DType> float_of(const Operand& operand) {
  if (!operand.present() || operand.fact().kind != ValueKind::kTensor) return std::nullopt;
  const auto dtype = operand.fact().dtypes.single();
  return dtype && DTypeSet::floats().contains(*dtype) ? dtype : std::nullopt;
}

std::optional<CastFix> cast_to_float(const ViolationCase& violation) {
  if (!violation.has_node()) return std::nullopt;
  std::optional<Operand> discrete;
  for (const Operand& operand : violation.operands())
    if (is_discrete(operand)) discrete = operand;
  if (!discrete) return std::nullopt;
  const NodeCall call = violation.call();
  for (std::size_t i = 0; i < call.operand_count() && !call.analysis().facts().meter().is_spent(); ++i)
    if (const auto dtype = float_of(call.operand(i)); dtype && takes(call, discrete->value(), *dtype))
      return CastFix{*discrete, *dtype};
  return std::nullopt;
}

std::vector<GraphEdit> insert_cast(const dataflow::Analysis& analysis, NodeId before, ValueId value, DType to) {
  const Model& model = analysis.model();
  const std::string made = name_before(model, before, value, to_text(to));
  std::vector<GraphEdit> edits{InsertNode{before, new_cast(made, std::string(model.name_of(value)), made, to)}};
  redirect_operands(analysis, before, value, made, edits);
  return edits;
}

std::vector<GraphEdit> insert_squeeze_of_last_axis(const dataflow::Analysis& analysis, NodeId before, ValueId value) {
  const Model& model = analysis.model();
  const std::string made = name_before(model, before, value, "squeezed");
  const std::string from(model.name_of(value));
  std::vector<GraphEdit> edits;
  // Until opset 12 the axes are an attribute, from 13 on an operand.
  if (model.opset(model.node(before).graph, "") < 13) {
    edits.push_back(InsertNode{before, new_squeeze(made, from, made, std::vector<std::int64_t>{-1})});
  } else {
    const std::string axes = unused_name(model, made + "_axes");
    NewAttribute last{.name = "value_ints", .kind = AttributeKind::kInts, .ints = {-1}};
    edits.push_back(InsertNode{before, new_constant(axes, axes, std::move(last))});
    edits.push_back(InsertNode{before, new_squeeze(made, from, made, axes)});
  }
  redirect_operands(analysis, before, value, made, edits);
  return edits;
}

void remove_with_last_readers(const dataflow::Analysis& analysis, NodeId node, std::span<const NodeId> readers,
                              std::vector<GraphEdit>& edits) {
  const Model& model = analysis.model();
  for (const ValueId result : analysis.results(node)) {
    if (result == ValueId::kAbsent) continue;
    const bool is_output = std::ranges::any_of(model.graphs, [&](const Graph& graph) {
      return std::ranges::any_of(Walk(std::span<const ValueId>(graph.outputs), analysis.meter()),
                                 [&](ValueId output) { return output == result; });
    });
    const auto stays = [&](NodeId user) { return std::ranges::find(readers, user) == readers.end(); };
    if (is_output || std::ranges::any_of(analysis.users(result), stays)) return;
  }
  edits.push_back(RemoveNode{node});
}

void propose_cast(FindingBuilder& finding, const ViolationCase& violation, const CastFix& fix) {
  // A Cast that made integers of floats has truncated their fractions: casting back may not be what is meant.
  const NodeId began = dataflow::origin_of(violation.analysis, fix.operand.value(), Aspect::kDtype).node;
  bool exact = is_exact_in(fix.operand.fact().range, fix.to);
  if (began != NodeId::kNone && NodeCall(violation.analysis, began).is(ops::Opcode::kCast)) {
    const NodeCall cast(violation.analysis, began);
    const Operand before = cast.operand(0);
    if (before.present() && before.fact().dtypes.proves(DTypeSet::floats())) {
      exact = false;
      if (cast.result() == fix.operand.value() && before.fact().dtypes == DTypeSet(fix.to)) {
        std::vector<GraphEdit> edits;
        redirect_operands(violation.analysis, violation.at.node, fix.operand.value(),
                          std::string(violation.model().name_of(before.value())), edits);
        remove_with_last_readers(violation.analysis, began, std::array{violation.at.node}, edits);
        finding.fix(fmt::format("use {}, which {} is cast from", before.name(), fix.operand.name()),
                    findings::Applicability::kUnsafe, std::move(edits));
      }
    }
  }
  finding.fix(fmt::format("cast {} to {}", fix.operand.name(), to_text(fix.to)),
              exact ? findings::Applicability::kSafe : findings::Applicability::kUnsafe,
              insert_cast(violation.analysis, violation.at.node, fix.operand.value(), fix.to));
}

bool updates_state(const dataflow::Analysis& analysis, NodeId node, ValueId value) {
  constexpr std::size_t kMaxValues = 64;
  const Model& model = analysis.model();
  const Value& state = model.value(value);
  const NodeId owner = model.graph(state.graph).owner;
  if (state.origin != ValueOrigin::kInput || owner == NodeId::kNone) return false;
  const Graph& body = model.graph(state.graph);
  const RegionOp region = region_op(model, model.node(owner));
  if (!is_loop(region.kind) || !region.fits(body)) return false;
  const ValueId next = value_at(body.outputs, region.next_output_of_input(state.result_index));
  if (next == ValueId::kAbsent) return false;
  if (model.node(node).graph != state.graph) return true;  // in a branch of the body
  std::vector<ValueId> made;
  Visited<ValueId> seen(analysis.meter());
  const auto add_results = [&](NodeId from) {
    for (const ValueId result : analysis.results(from))
      if (result != ValueId::kAbsent && seen.insert(result)) made.push_back(result);
  };
  add_results(node);
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i] == next || i >= kMaxValues) return true;
    for (const NodeId user : analysis.users(made[i])) {
      if (model.node(user).graph != state.graph) return true;
      const NodeCall call(analysis, user);
      const auto keeps_dtype = [&](ValueId result) {
        return result != ValueId::kAbsent && analysis.fact(result).dtypes.intersects(analysis.fact(value).dtypes);
      };
      if (!call.is(ops::Opcode::kCast) && std::ranges::any_of(call.results(), keeps_dtype)) add_results(user);
    }
  }
  return false;
}

bool is_in_violation(const dataflow::Analysis& analysis, ValueId value) {
  const std::vector<dataflow::NodeViolation>& violations = analysis.violations();  // by node
  if (violations.empty()) return false;
  return std::ranges::any_of(analysis.users(value), [&](NodeId user) {
    const auto operands = analysis.operands(user);
    return std::ranges::any_of(std::ranges::equal_range(violations, user, {}, &dataflow::NodeViolation::node),
                               [&](const dataflow::NodeViolation& violation) {
                                 analysis.meter().charge(1 + violation.operands.size() / 4);
                                 return std::ranges::any_of(violation.operands, [&](int i) {
                                   const auto at = static_cast<std::size_t>(i);
                                   return i >= 0 && at < operands.size() && operands[at] == value;
                                 });
                               });
  });
}

bool is_exact_in(const Range& range, DType dtype) {
  // Bits of the significand, the hidden one included: integers up to 2^bits are exact.
  int bits = 0;
  switch (dtype) {
    case DType::kFloat64:
      bits = 53;
      break;
    case DType::kFloat32:
      bits = 24;
      break;
    case DType::kFloat16:
      bits = 11;
      break;
    case DType::kBFloat16:
      bits = 8;
      break;
    default:
      return false;
  }
  const double limit = std::ldexp(1.0, bits);
  return -limit <= range.lo && range.hi <= limit;
}

}  // namespace tensorlint::rules
