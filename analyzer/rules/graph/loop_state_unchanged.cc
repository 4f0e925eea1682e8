#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "ir/graph/region_op.h"

namespace tensorlint::rules {
namespace {

class LoopStateUnchanged : public Rule {
 public:
  LoopStateUnchanged()
      : Rule({"TL-G623", "loop-state-unchanged", "graph", findings::Severity::kWarning,
              "a state that the body of a loop returns as it got it, though its body computes a new one"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return has_trait(entry, ops::OpTrait::kControlFlow);
  }

  void check(const NodeCall& call, Reporter& out) const override {
    const RegionOp region = region_op(call.model(), call.node());
    if (!is_loop(region.kind) || !region.has_graphs()) return;
    const Graph& body = call.model().graph(region.body());
    if (!region.fits(body) || region.carried > kMost) return;
    // What the body hands to its next iteration.
    std::set<ValueId> updated;
    for (std::size_t i = 0; i < region.carried; ++i)
      if (const ValueId next = body.outputs[region.carried_output(i)]; next != ValueId::kAbsent)
        updated.insert(before_copies(call.analysis(), next));
    for (std::size_t i = 0; i < region.carried && !call.facts().meter().is_spent(); ++i)
      check_state(call, region, body, i, updated, out);
  }

 private:
  /// States and outputs of one loop that are looked at: models have a few of each.
  static constexpr std::size_t kMost = 32;

  static void check_state(const NodeCall& call, const RegionOp& region, const Graph& body, std::size_t i,
                          const std::set<ValueId>& updated, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const ValueId state = body.inputs[region.carried_input(i)], next = body.outputs[region.carried_output(i)];
    if (state == ValueId::kAbsent || next == ValueId::kAbsent || before_copies(analysis, next) != state) return;
    // A value that is only there to be read in the body; exporters carry such, and nothing takes it afterwards.
    const ValueId last = call.result(i);
    if (last == ValueId::kAbsent || (!call.model().value(last).is_output && analysis.users(last).empty())) return;
    const Operand given(analysis, call.operand(region.carried_operand(i)).value());
    if (!given.present()) return;
    // Zeros that stay zeros are nothing that a body would want to read.
    const Range& range = given.fact().range;
    const bool is_zero = range.lo == 0 && range.hi == 0 && !range.nan;
    const ValueId update = update_of(call, region, body, state, updated, is_zero);
    if (update == ValueId::kAbsent) return;
    const NodeId made = call.model().value(update).producer;
    out.report(call.id(),
               fmt::format("each iteration of {} returns {} as it got it: {} is {} in the end", call.op_name(),
                           Operand(analysis, state).name(), Operand(analysis, last).name(), given.name()))
        .note_at(made, fmt::format("{}, which is computed from it here, goes into no next iteration",
                                   Operand(analysis, update).name()))
        .fix(fmt::format("return {} in its place", Operand(analysis, update).name()));
  }

  static ValueId before_copies(const dataflow::Analysis& analysis, ValueId value) {
    constexpr int kMaxSteps = 8;
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = analysis.model().value(value).producer;
      if (node == NodeId::kNone || !NodeCall(analysis, node).is(ops::Opcode::kIdentity)) break;
      value = NodeCall(analysis, node).operand(0).value();
      if (value == ValueId::kAbsent) break;
    }
    return value;
  }

  /// What an output of each iteration is, of the state's own type, that a product with weights made of the state: a
  /// recurrent step; or anything that is made of the state.
  static ValueId update_of(const NodeCall& call, const RegionOp& region, const Graph& body, ValueId state,
                           const std::set<ValueId>& updated, bool anything) {
    const dataflow::Analysis& analysis = call.analysis();
    const Fact& own = analysis.fact(state);
    if (own.kind != ValueKind::kTensor || !own.dtypes.proves(DTypeSet::floats()) || own.shape == ShapeId::kUnranked)
      return ValueId::kAbsent;
    const std::size_t first = region.control_outputs + region.carried;
    for (std::size_t k = first; k < body.outputs.size() && k < first + kMost; ++k) {
      if (body.outputs[k] == ValueId::kAbsent) continue;
      const ValueId output = before_copies(analysis, body.outputs[k]);
      const Fact& fact = analysis.fact(output);
      const NodeId made = call.model().value(output).producer;
      if (made == NodeId::kNone || output == state || fact.kind != ValueKind::kTensor || fact.shape != own.shape ||
          fact.dtypes != own.dtypes)
        continue;
      if (!updated.contains(output) && is_step_of(call, state, output, anything)) return output;
    }
    return unread_step(analysis, state);
  }

  /// A value of the state's own type that is computed from the state in some steps, and that nothing reads.
  static ValueId unread_step(const dataflow::Analysis& analysis, ValueId state) {
    constexpr std::size_t kMaxValues = 64;
    const Fact& own = analysis.fact(state);
    std::vector<ValueId> pending{state};
    Visited<ValueId> seen(analysis.meter());
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : analysis.users(pending[i])) {
        const NodeCall next(analysis, user);
        const ValueId result = next.result();
        if (result == ValueId::kAbsent || next.node().result_count != 1 || !seen.insert(result)) continue;
        pending.push_back(result);
        const Fact& fact = analysis.fact(result);
        if (pending[i] != state && analysis.users(result).empty() && !analysis.model().value(result).is_output &&
            fact.kind == ValueKind::kTensor && fact.shape == own.shape && fact.dtypes == own.dtypes)
          return result;
      }
    return ValueId::kAbsent;
  }

  /// The state goes into the value, through a product with weights unless `anything` will do.
  static bool is_step_of(const NodeCall& call, ValueId state, ValueId value, bool anything) {
    constexpr std::size_t kMaxValues = 64;
    const dataflow::Analysis& analysis = call.analysis();
    std::vector<ValueId> pending{state};
    std::set<ValueId> seen{state};
    bool multiplied = anything, reached = false;
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i) {
      const auto users = analysis.users(pending[i]);
      analysis.facts().meter().charge(16 + 4 * users.size());
      if (analysis.facts().meter().is_spent()) return false;
      for (const NodeId user : users) {
        const NodeCall next(analysis, user);
        multiplied = multiplied || next.is(ops::Opcode::kMatMul) || next.is(ops::Opcode::kConv) ||
                     next.is(ops::Opcode::kRecurrence);
        const ValueId result = next.result();
        if (result == ValueId::kAbsent || !seen.insert(result).second) continue;
        reached = reached || result == value;
        pending.push_back(result);
      }
    }
    return multiplied && reached;
  }
};

const RegisterRule<LoopStateUnchanged> kRegisterLoopStateUnchanged;

}  // namespace
}  // namespace tensorlint::rules
