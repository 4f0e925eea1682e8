#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class StatesNeverMix : public Rule {
 public:
  StatesNeverMix()
      : Rule({"TL-S215", "states-never-mix", "shape", findings::Severity::kWarning,
              "a recursion over states that sums along the axis of the new states, so that each keeps its own"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kReduceLogSumExp}, [&](const Expressions& expressions, const NodeCall& call) {
      const NodeId before = state_along(expressions, call.id());
      // Again in the next step: a recursion, and no sum of both axes in turn.
      if (before == NodeId::kNone || state_along(expressions, before) == NodeId::kNone || !out.first("recursion"))
        return;
      out.report(call.id(), fmt::format("{} sums along the axis that the states of the step before were stretched "
                                        "along: each comes out as it was, with a number added",
                                        call.op_name()))
          .note_at(before, "the states come from here")
          .fix("sum along the axis of the states before, not of those after");
    });
  }

 private:
  /// The reduction of the step before, whose results meet the others along this one's axis alone.
  static NodeId state_along(const Expressions& expressions, NodeId node) {
    constexpr std::size_t kMaxTerms = 8;
    const auto axes = expressions.axes_of(node);
    if (!axes || axes->size() != 1) return NodeId::kNone;
    std::vector<ValueId> terms{expressions.operand(node, 0)};
    const std::size_t rank = expressions.dims(terms[0]).size();
    if (axes->front() >= rank) return NodeId::kNone;
    for (std::size_t i = 0; i < terms.size() && terms.size() < kMaxTerms; ++i) {
      const NodeId maker = expressions.producer(terms[i]);
      if (expressions.op(maker) == Opcode::kAdd)
        terms.insert(terms.end(), {expressions.operand(maker, 0), expressions.operand(maker, 1)});
      const auto dims = expressions.dims(terms[i]);
      if (expressions.op(maker) != Opcode::kUnsqueeze || dims.size() != rank ||
          !expressions.analysis().facts().dims().is_constant(dims[axes->front()], 1))
        continue;
      const NodeId state = expressions.producer(expressions.operand(maker, 0));
      if (expressions.op(state) == Opcode::kReduceLogSumExp || (i > 0 && expressions.op(state) == Opcode::kGather))
        return state;
    }
    return NodeId::kNone;
  }
};

const RegisterRule<StatesNeverMix> kRegisterStatesNeverMix;

}  // namespace
}  // namespace tensorlint::rules
