#include <algorithm>
#include <utility>

#include "base/text.h"
#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

const ops::Constraint kBodyArity{
    "body_arity", ops::ConstraintKind::kOperandCount,
    "a body has an input for each value that enters it and an output for each that leaves it"};
const ops::Constraint kBodyInput{"body_input_type", ops::ConstraintKind::kDeclaredType,
                                 "the declared types of a body's inputs agree with the values that enter it"};

}  // namespace

void Solver::record_arity(NodeId id, ops::Message message) { record(id, kBodyArity, {}, std::move(message)); }

void Solver::visit_region(NodeId id, const Application& call) {
  if (depth_ + 1 >= kMaxNesting) {
    give_up(id, Gap::kNesting);
    return;
  }
  ++depth_;
  std::vector<AbstractValue> operands;
  for (std::size_t i = 0; i < call.operands.size(); ++i) operands.push_back({call.operands[i], call.operand_taints[i]});
  const RegionOp region =
      region_op(model_, model_.node(id), [&](std::string_view name) { return call.attribute(name); });
  switch (region.kind) {
    case RegionKind::kNone:
    case RegionKind::kCall:
      break;
    case RegionKind::kIf:
      visit_if(id, call, region, operands);
      break;
    case RegionKind::kLoop:
      visit_loop(id, call, region, operands);
      break;
    case RegionKind::kScan:
      visit_scan(id, call, region, operands);
      break;
    case RegionKind::kSequenceMap:
      visit_sequence_map(id, call, region, operands);
      break;
  }
  --depth_;
}

/// False, and recorded, where a body has other numbers of inputs and outputs than its node needs.
bool Solver::body_fits(NodeId id, const RegionOp& region, std::size_t result_count) {
  const Graph& graph = model_.graph(region.body());
  const std::size_t inputs = region.input_count(), outputs = region.output_count(result_count);
  if (graph.inputs.size() != inputs) {
    record_arity(id, {"the body takes {} value{}, {} given", graph.inputs.size(), plural(graph.inputs.size()), inputs});
    return false;
  }
  if (graph.outputs.size() != outputs) {
    record_arity(id, {"the body gives {} value{}, its node needs {}", graph.outputs.size(),
                      plural(graph.outputs.size()), outputs});
    return false;
  }
  return true;
}

/// Compares what a body declares of input `at` with what it is handed from `operand` on: the dtype, and of what stays
/// the same in each iteration the shape.
void Solver::check_body_input(NodeId id, GraphId body, std::size_t at, const AbstractValue& given, int operand,
                              bool with_shape) {
  const ValueId input = model_.graph(body).inputs[at];
  const TypeDecl* type = input == ValueId::kAbsent ? nullptr : model_.value(input).type;
  if (type == nullptr || type->kind != TypeKind::kTensor) return;
  const Fact declared = facts_.fact(initial_facts_.declared(*type, 0)), fact = facts_.fact(given.fact);
  if (fact.kind != ValueKind::kTensor) return;
  if (!given.taint.has(Aspect::kDtype) && !fact.dtypes.intersects(declared.dtypes)) {
    // The operator itself rejects the operand: once is enough.
    for (auto known = recorded_.lower_bound({id, nullptr}); known != recorded_.end() && known->first.first == id;
         ++known)
      if (ops::aspect_of(known->first.second->kind) == Aspect::kDtype &&
          std::ranges::any_of(known->second, [&](const std::vector<int>& operands) {
            return std::ranges::find(operands, operand) != operands.end();
          }))
        return;
    record(
        id, kBodyInput, {operand},
        {"{} enters the body as {}, which declares it as {}", ops::OperandRef(operand), fact.dtypes, declared.dtypes});
    return;
  }
  if (!with_shape || given.taint.has(Aspect::kShape) || fact.shape == ShapeId::kUnranked ||
      declared.shape == ShapeId::kUnranked)
    return;
  const auto have = facts_.dims_of(fact.shape), wanted = facts_.dims_of(declared.shape);
  const auto agrees = [this](Dim a, Dim b) {
    const auto x = facts_.dims().as_constant(a), y = facts_.dims().as_constant(b);
    return !x || !y || *x == *y;
  };
  if (std::ranges::equal(have, wanted, agrees)) return;
  record(id, kBodyInput, {operand},
         {"{} enters the body with shape {}, which declares {}", ops::OperandRef(operand), fact.shape, declared.shape});
}

/// A body that declares an optional may be handed what the optional holds (backend test loop16_seq_none).
AbstractValue Solver::as_input(ValueId input, AbstractValue given) {
  const TypeDecl* type = model_.value(input).type;
  const ValueKind kind = facts_.fact(given.fact).kind;
  if (type == nullptr || type->kind != TypeKind::kOptional ||
      (kind != ValueKind::kTensor && kind != ValueKind::kSequence))
    return given;
  Fact fact;
  fact.kind = ValueKind::kOptional;
  fact.element = given.fact;
  return {facts_.intern(fact), given.taint};
}

/// One visit of a body with these inputs; the outputs' values. Inputs past the given ones are top.
std::vector<AbstractValue> Solver::visit_body(GraphId body, std::span<const AbstractValue> inputs) {
  const Graph& graph = model_.graph(body);
  budget_.charge((graph.inputs.size() + graph.outputs.size()) / 16);
  const std::uint64_t outer_serial = std::exchange(visit_serial_, ++serials_);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    current_[graph.inputs[i]] = i < inputs.size() ? as_input(graph.inputs[i], inputs[i]) : AbstractValue{};
  visit_graph(body);
  visit_serial_ = outer_serial;
  std::vector<AbstractValue> outputs;
  for (const ValueId output : graph.outputs)
    outputs.push_back(output == ValueId::kAbsent ? AbstractValue{} : read_operand(output));
  return outputs;
}

/// visit_body and commit, unless the same was done before: loops within loops would be followed 2^depth times.
/// Visits that made symbols are not kept, since these stand for other extents each time; the rest repeats word for
/// word.
std::vector<AbstractValue> Solver::follow_body(GraphId body, std::span<const AbstractValue> inputs) {
  const auto follow = [&](std::span<const AbstractValue> values) {
    std::vector<AbstractValue> outputs = visit_body(body, values);
    commit(body);
    return outputs;
  };
  if (speculative_) return follow(inputs);
  BodyCache::Body* kept = body_cache_.visit(body, call_serial_);
  if (kept == nullptr) return follow(inputs);
  std::vector<AbstractValue> given(inputs.begin(), inputs.end());
  for (const ValueId capture : kept->captures) given.push_back(read_operand(capture));
  budget_.charge(given.size() / 16);
  // In terms of the symbols that are left, what a body does no longer depends on the equalities known around it.
  for (AbstractValue& value : given) value.fact = equalities_.canonical(value.fact);
  const bool is_exact = kept->is_exact();
  if (!is_exact)
    for (AbstractValue& value : given) value.fact = any_floating_value(facts_, value.fact);
  std::uint64_t compared = 0;
  const std::vector<AbstractValue>* known = kept->find(given, compared);
  constexpr std::uint64_t kStepsOfLookup = 32;
  facts_.meter().charge(kStepsOfLookup + compared / 4);
  if (known != nullptr) return *known;
  const std::uint32_t checkpoint = facts_.dims().checkpoint();
  std::vector<FactId> before;
  const auto exchange_captures = [&](auto replacement) {
    for (std::size_t i = 0; !is_exact && i < kept->captures.size(); ++i)
      replacement(current_[kept->captures[i]].fact, i);
  };
  exchange_captures(
      [&](FactId& fact, std::size_t i) { before.push_back(std::exchange(fact, given[inputs.size() + i].fact)); });
  std::vector<AbstractValue> outputs = follow(std::span(given).first(inputs.size()));
  exchange_captures([&](FactId& fact, std::size_t i) { fact = before[i]; });
  if (facts_.dims().checkpoint() == checkpoint && !budget_.is_spent())
    body_cache_.keep(*kept, std::move(given), outputs);
  return outputs;
}

}  // namespace tensorlint::dataflow
