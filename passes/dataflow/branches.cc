#include <algorithm>
#include <functional>
#include <utility>

#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

constexpr int kMaxSpeculations = 8;                 // Ifs of which each branch is followed on its own
constexpr std::size_t kMaxSpeculativeNodes = 4096;  // after such an If

const ops::Constraint kBranchesAgree{"branches_agree", ops::ConstraintKind::kBranchTypes,
                                     "both branches give results of one type"};

}  // namespace

void Solver::visit_if(NodeId id, const Application& call, const RegionOp& region,
                      std::span<const AbstractValue> operands) {
  const auto condition =
      operands.empty() ? std::nullopt : single_constant(facts_, operands[*region.condition_operand].fact);
  const bool is_decided = condition.has_value();
  const std::size_t taken = condition.value_or(1) != 0 ? 0 : 1;  // where it is decided
  std::optional<std::vector<AbstractValue>> merged;
  std::optional<RankClash> clash;
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
    const auto clashes = [this](const AbstractValue& a, const AbstractValue& b) { return ranks_clash(facts_, a, b); };
    if (merged->size() == outputs.size() && !std::ranges::equal(*merged, outputs, std::not_fn(clashes)))
      clash = RankClash{*merged, outputs};
    merge_branches(id, *merged, outputs);
  }
  if (is_decided) check_other_branch(id, region.graphs[1 - taken], taken == 0, *merged);
  set_results(id, *merged);
  rank_clash_ = std::move(clash);
}

void Solver::check_branch_arity(NodeId id, GraphId branch, std::string_view name, std::size_t results) {
  const std::size_t gives = model_.graph(branch).outputs.size(), takes = model_.graph(branch).inputs.size();
  if (takes != 0)
    record_arity(id,
                 {"{} has {} input{}, a branch takes none", ops::AttributeName(name), takes, takes == 1 ? "" : "s"});
  if (gives != results)
    record_arity(id, {"{} gives {} value{}, If has {} result{}", ops::AttributeName(name), gives, gives == 1 ? "" : "s",
                      results, results == 1 ? "" : "s"});
}

/// Joins the results of the else branch into those of the then branch.
void Solver::merge_branches(NodeId id, std::vector<AbstractValue>& merged, std::span<const AbstractValue> outputs) {
  for (std::size_t r = 0; r < std::min(merged.size(), outputs.size()); ++r) {
    Taint tainted = merged[r].taint;
    tainted |= outputs[r].taint;
    if (types_clash(facts_, merged[r].fact, outputs[r].fact)) {
      if (!tainted.has(Aspect::kDtype))
        record(id, kBranchesAgree, {},
               {"{} is {} from `then_branch` and {} from `else_branch`", ops::ResultRef(r), merged[r].fact,
                outputs[r].fact});
      merged[r].taint |= Aspect::kDtype;
    }
    merged[r] = join(facts_, merged[r], outputs[r]);
  }
  if (outputs.size() < merged.size()) merged.resize(outputs.size());
}

/// A branch that a constant condition leaves out is not looked at; what it declares still has to be of the same type.
void Solver::check_other_branch(NodeId id, GraphId left_out, bool taken_is_then, std::vector<AbstractValue>& taken) {
  const std::vector<ValueId>& outputs = model_.graph(left_out).outputs;
  for (std::size_t r = 0; r < std::min(taken.size(), outputs.size()); ++r) {
    if (outputs[r] == ValueId::kAbsent || model_.value(outputs[r]).type == nullptr ||
        taken[r].taint.has(Aspect::kDtype))
      continue;
    const FactId other = initial_facts_.declared(*model_.value(outputs[r]).type, 0);
    const Fact &a = facts_.fact(taken[r].fact), &b = facts_.fact(other);
    if (a.kind != ValueKind::kTensor || b.kind != ValueKind::kTensor || !types_clash(facts_, taken[r].fact, other))
      continue;
    record(id, kBranchesAgree, {},
           {"{} is {} from `then_branch` and {} from `else_branch`", ops::ResultRef(r),
            taken_is_then ? taken[r].fact : other, taken_is_then ? other : taken[r].fact});
    taken[r].taint |= Aspect::kDtype;
  }
}

/// Where one branch's rank makes an operator fail further down in the same graph, every run that gets to the end took
/// the other: exported chains of `if x.dim() == 2` are like that. `nodes`: the If and all that come after it. Each
/// branch is followed speculatively, with nothing recorded; where just one is feasible, the If has its results from
/// here on.
void Solver::refine_branch(const RankClash& clash, std::span<const NodeId> nodes) {
  const std::uint64_t allowance = budget_.visits() / 16;
  if (speculative_ || speculations_ >= kMaxSpeculations || nodes.size() > kMaxSpeculativeNodes ||
      allowance < nodes.size())
    return;
  ++speculations_;
  const IdVector<ValueId, AbstractValue> values = current_;
  const EqualityScope::Checkpoint equalities = equalities_.checkpoint();
  const int conditional = std::exchange(conditional_, 0);
  const auto is_feasible = [&](const std::vector<AbstractValue>& results) {
    const std::uint64_t rest = budget_.leave(allowance);
    speculative_ = true;
    set_results(nodes.front(), results);
    for (std::size_t i = 1; i < nodes.size() && !infeasible_ && !budget_.is_spent(); ++i) {
      visit_node(nodes[i]);
      rank_clash_.reset();
    }
    speculative_ = false;
    budget_.give_back(rest);
    current_ = values;
    equalities_.rollback(equalities);
    return !std::exchange(infeasible_, false);
  };
  const bool then_feasible = is_feasible(clash.then_results), else_feasible = is_feasible(clash.else_results);
  conditional_ = conditional;
  if (then_feasible != else_feasible)
    set_results(nodes.front(), then_feasible ? clash.then_results : clash.else_results);
}

}  // namespace tensorlint::dataflow
