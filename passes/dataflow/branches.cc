#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

constexpr int kMaxSpeculations = 8;                 // Ifs of which both branches are followed on their own
constexpr std::size_t kMaxSpeculativeNodes = 4096;  // after such an If

const ops::Constraint kBranchesAgree{"branches_agree", ops::ConstraintKind::kBranchTypes,
                                     "both branches give results of one type"};

}  // namespace

void Solver::visit_if(NodeId id, const Application& call, std::span<const AbstractValue> operands) {
  const auto condition = operands.empty() ? std::nullopt : single_constant(facts_, operands[0].fact);
  const bool is_decided = condition.has_value(), takes_then = condition.value_or(0) != 0;
  std::vector<AbstractValue> merged;
  std::optional<RankClash> clash;
  bool first = true;
  for (const std::string_view name : {"then_branch", "else_branch"}) {
    const GraphId body = body_of(call, name);
    if (body == GraphId::kNone) return;
    const std::size_t gives = model_.graph(body).outputs.size(), takes = model_.graph(body).inputs.size();
    if (takes != 0)
      record_arity(id,
                   fmt::format("`{}` takes {} value{}, a branch is handed none", name, takes, takes == 1 ? "" : "s"));
    if (gives != call.result_count)
      record_arity(id, fmt::format("`{}` gives {} value{}, If has {} result{}", name, gives, gives == 1 ? "" : "s",
                                   call.result_count, call.result_count == 1 ? "" : "s"));
    if (is_decided && takes_then != (name == "then_branch")) continue;
    conditional_ += is_decided ? 0 : 1;
    const std::vector<AbstractValue> outputs = visit_body(body, {});
    conditional_ -= is_decided ? 0 : 1;
    commit(body);
    if (first) {
      merged = outputs;
      first = false;
      continue;
    }
    const auto clashes = [this](const AbstractValue& a, const AbstractValue& b) { return ranks_clash(facts_, a, b); };
    if (merged.size() == outputs.size() && !std::ranges::equal(merged, outputs, std::not_fn(clashes)))
      clash = RankClash{merged, outputs};
    for (std::size_t r = 0; r < std::min(merged.size(), outputs.size()); ++r) {
      const Taint tainted = [&] {
        Taint both = merged[r].taint;
        both |= outputs[r].taint;
        return both;
      }();
      if (types_clash(facts_, merged[r].fact, outputs[r].fact)) {
        if (!tainted.has(Aspect::kDtype))
          record(id, {&kBranchesAgree,
                      ops::Certainty::kMust,
                      {},
                      fmt::format("{{r{}}} is {} from `then_branch` and {} from `else_branch`", r,
                                  facts_.to_text(merged[r].fact), facts_.to_text(outputs[r].fact)),
                      {}});
        merged[r].taint |= Aspect::kDtype;
      }
      merged[r] = join(facts_, merged[r], outputs[r]);
    }
    if (outputs.size() < merged.size()) merged.resize(outputs.size());
  }
  if (is_decided) check_other_branch(id, body_of(call, takes_then ? "else_branch" : "then_branch"), takes_then, merged);
  set_results(id, merged);
  rank_clash_ = std::move(clash);
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
    const std::string given = facts_.to_text(taken[r].fact), declared = facts_.to_text(other);
    record(id, {&kBranchesAgree,
                ops::Certainty::kMust,
                {},
                fmt::format("{{r{}}} is {} from `then_branch` and {} from `else_branch`", r,
                            taken_is_then ? given : declared, taken_is_then ? declared : given),
                {}});
    taken[r].taint |= Aspect::kDtype;
  }
}

/// Where one branch's rank makes an operator fail further down in the same graph, every run that gets to the end took
/// the other: exported chains of `if x.dim() == 2` are like that. `nodes`: the If and all that come after it. Both are
/// tried, with nothing recorded; where just one gets through, the If has its results from here on.
void Solver::refine_branch(const RankClash& clash, std::span<const NodeId> nodes) {
  const std::uint64_t allowance = budget_.visits() / 16;
  if (speculative_ || speculations_ >= kMaxSpeculations || nodes.size() > kMaxSpeculativeNodes ||
      allowance < nodes.size())
    return;
  ++speculations_;
  const std::vector<AbstractValue> values = current_;
  const EqualityScope::Checkpoint equalities = equalities_.checkpoint();
  const int conditional = std::exchange(conditional_, 0);
  const auto gets_through = [&](const std::vector<AbstractValue>& results) {
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
  const bool then_works = gets_through(clash.then_results), else_works = gets_through(clash.else_results);
  conditional_ = conditional;
  if (then_works != else_works) set_results(nodes.front(), then_works ? clash.then_results : clash.else_results);
}

}  // namespace tensorlint::dataflow
