#include <algorithm>
#include <functional>
#include <utility>

#include "base/text.h"
#include "ir/ops/entry.h"
#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

constexpr int kMaxSpeculations = 8;                 // Ifs of which each branch is followed on its own
constexpr std::size_t kMaxSpeculativeNodes = 4096;  // after such an If

const ops::Constraint kBranchesAgree{"branches_agree", ops::ConstraintKind::kBranchTypes,
                                     "both branches give results of one type"};

ops::Message other_types(std::size_t result, FactId from_then, FactId from_else) {
  return {"{} is {} from `then_branch` and {} from `else_branch`", ops::ResultRef(result), from_then, from_else};
}

}  // namespace

void Solver::visit_if(NodeId id, const Application& call, const RegionOp& region,
                      std::span<const AbstractValue> operands) {
  const auto condition =
      operands.empty() ? std::nullopt : single_constant(facts_, operands[*region.condition_operand].fact);
  const bool is_decided = condition.has_value();
  const std::size_t taken = condition.value_or(1) != 0 ? 0 : 1;  // where it is decided
  std::optional<std::vector<AbstractValue>> merged;
  std::optional<ShapeClash> clash;
  for (std::size_t branch = 0; branch < region.graph_count(); ++branch) {
    const GraphId body = region.graphs[branch];
    if (body == GraphId::kNone) return;
    check_branch_arity(id, body, graph_attribute(region.kind, branch), call.result_count);
    if (is_decided && taken != branch) continue;
    conditional_ += is_decided ? 0 : 1;
    std::vector<AbstractValue> outputs = visit_body(body, {});
    conditional_ -= is_decided ? 0 : 1;
    commit(body);
    if (!merged) {
      merged = std::move(outputs);
      continue;
    }
    const auto any = [&](bool (*clashes)(const FactStore&, const AbstractValue&, const AbstractValue&)) {
      for (std::size_t r = 0; r < outputs.size(); ++r) {
        if ((*merged)[r].fact == outputs[r].fact) continue;
        facts_.meter().charge(4 + facts_.dims_of(facts_.fact(outputs[r].fact).shape).size());
        if (clashes(facts_, (*merged)[r], outputs[r])) return true;
      }
      return false;
    };
    if (merged->size() == outputs.size() && any(shapes_clash)) clash = ShapeClash{*merged, outputs, any(ranks_clash)};
    merge_branches(id, *merged, outputs);
  }
  if (is_decided) check_other_branch(id, region.graphs[1 - taken], taken == 0, *merged);
  set_results(id, *merged);
  shape_clash_ = std::move(clash);
}

void Solver::check_branch_arity(NodeId id, GraphId branch, std::string_view name, std::size_t results) {
  const std::size_t gives = model_.graph(branch).outputs.size(), takes = model_.graph(branch).inputs.size();
  if (takes != 0)
    record_arity(id, {"{} has {} input{}, a branch takes none", ops::AttributeName(name), takes, plural(takes)});
  if (gives != results)
    record_arity(id, {"{} gives {} value{}, If has {} result{}", ops::AttributeName(name), gives, plural(gives),
                      results, plural(results)});
}

/// Joins the results of the else branch into those of the then branch.
void Solver::merge_branches(NodeId id, std::vector<AbstractValue>& merged, std::span<const AbstractValue> outputs) {
  for (std::size_t r = 0; r < std::min(merged.size(), outputs.size()); ++r) {
    Taint tainted = merged[r].taint;
    tainted |= outputs[r].taint;
    if (types_clash(facts_, merged[r].fact, outputs[r].fact)) {
      if (!tainted.has(Aspect::kDtype)) record(id, kBranchesAgree, {}, other_types(r, merged[r].fact, outputs[r].fact));
      merged[r].taint |= Aspect::kDtype;
    }
    merged[r] = join(facts_, merged[r], outputs[r]);
  }
  if (outputs.size() < merged.size()) merged.resize(outputs.size());
}

/// A branch that a constant condition leaves out still gives values of the same types: those that it declares, and
/// those that engines infer.
void Solver::check_other_branch(NodeId id, GraphId left_out, bool taken_is_then, std::vector<AbstractValue>& taken) {
  const std::vector<AbstractValue> inferred = infer_unrun(id, left_out);
  const std::vector<ValueId>& outputs = model_.graph(left_out).outputs;
  for (std::size_t r = 0; r < std::min(taken.size(), outputs.size()); ++r) {
    if (outputs[r] == ValueId::kAbsent || taken[r].taint.has(Aspect::kDtype)) continue;
    const auto message = [&](FactId other) {
      return taken_is_then ? other_types(r, taken[r].fact, other) : other_types(r, other, taken[r].fact);
    };
    const TypeDecl* type = model_.value(outputs[r]).type;
    const FactId declared = type == nullptr ? FactId::kTop : initial_facts_.declared(*type, 0);
    if (types_clash(facts_, taken[r].fact, declared) && facts_.fact(taken[r].fact).kind == ValueKind::kTensor &&
        facts_.fact(declared).kind == ValueKind::kTensor) {
      record(id, kBranchesAgree, {}, message(declared));
      taken[r].taint |= Aspect::kDtype;
    } else if (r < inferred.size() && !inferred[r].taint.has(Aspect::kDtype) &&
               types_clash(facts_, taken[r].fact, inferred[r].fact)) {
      keep_unrun({{&kBranchesAgree, ops::Certainty::kMay, {}, message(inferred[r].fact), {}}, id, calls_, iteration_});
    }
  }
}

/// What comes after an If for the results of one branch: speculatively, with nothing recorded.
Solver::Speculation Solver::follow_branch(std::span<const AbstractValue> results, std::span<const NodeId> nodes) {
  facts_.meter().charge(current_.size() / 2);
  const IdVector<ValueId, AbstractValue> values = current_;
  const EqualityScope::Checkpoint equalities = equalities_.checkpoint();
  speculate([&] {
    set_results(nodes.front(), results);
    for (std::size_t i = 1; i < nodes.size() && !infeasible_ && !budget_.is_spent(); ++i) {
      visit_node(nodes[i]);
      shape_clash_.reset();
    }
  });
  current_ = values;
  equalities_.rollback(equalities);
  return {std::exchange(failure_, std::nullopt), std::exchange(infeasible_, false)};
}

/// Some input decides with its elements, and no shape has a part in it: users can choose either.
bool Solver::depends_on_elements(ValueId condition) const {
  constexpr std::size_t kMostValues = 64;
  std::vector<ValueId> values{condition};
  bool has_input = false;
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (values[at] == ValueId::kAbsent) continue;
    const Value& value = model_.value(values[at]);
    has_input = has_input || (value.origin == ValueOrigin::kInput && value.graph == GraphId::kMain);
    if (value.producer == NodeId::kNone) continue;
    const Node& node = model_.node(value.producer);
    if (ops::has_trait(out_.entries_[node.op], ops::OpTrait::kShapeOf)) return false;
    for (const ValueId operand : Walk(model_.operands(node), facts_.meter())) {
      facts_.meter().charge(values.size() / 4);
      if (std::ranges::find(values, operand) == values.end()) values.push_back(operand);
      if (values.size() > kMostValues) return false;
    }
  }
  return has_input;
}

/// Each branch is followed on its own. Where one of them makes an operator further down in the same graph fail, runs
/// that get to the end took the other one. Of ranks that is what the If has from here on: exported chains of
/// `if x.dim() == 2` are like that. Where an input decides, it fails for some inputs, which is said.
/// `nodes`: the If and all that come after it.
void Solver::refine_branch(const ShapeClash& clash, std::span<const NodeId> nodes) {
  const Node& node = model_.node(nodes.front());
  const ValueId condition = model_.operands(node).empty() ? ValueId::kAbsent : model_.operands(node).front();
  if (speculative_ || speculations_ >= kMaxSpeculations || nodes.size() > kMaxSpeculativeNodes ||
      budget_.visits() / kShareOfSpeculation < nodes.size())
    return;
  const bool is_chosen = condition != ValueId::kAbsent && depends_on_elements(condition);
  if (!clash.of_ranks && !is_chosen) return;
  ++speculations_;
  Speculation after_then = follow_branch(clash.then_results, nodes);
  Speculation after_else = follow_branch(clash.else_results, nodes);
  if (clash.of_ranks && after_then.is_infeasible != after_else.is_infeasible)
    set_results(nodes.front(), after_then.is_infeasible ? clash.else_results : clash.then_results);
  if (!is_chosen || after_then.failure.has_value() == after_else.failure.has_value()) return;
  NodeViolation failure = *std::move(after_then.failure ? after_then.failure : after_else.failure);
  failure.certainty = ops::Certainty::kMay;
  failure.witness = {"`{}` is {}", model_.name_of(condition), after_then.failure ? "true" : "false"};
  record(failure.node, std::move(failure));
}

}  // namespace tensorlint::dataflow
