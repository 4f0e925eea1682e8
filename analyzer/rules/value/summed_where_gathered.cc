#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SummedWhereGathered : public Rule {
 public:
  SummedWhereGathered()
      : Rule({"TL-V572", "summed-where-gathered", "value", findings::Severity::kWarning,
              "messages that are added up at the places that they were taken from"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kGather, Opcode::kGatherND, Opcode::kGatherElements})) return;
    each_node(view, out, {Opcode::kOther},
              [&](const Expressions& expressions, const NodeCall& call) { check_sum(expressions, call, out); });
  }

 private:
  static void check_sum(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const OpSchema* schema = call.op().schema;
    if (schema == nullptr || schema->attribute("reduction") == nullptr) return;
    const int places = schema->input_index("indices"), updates = schema->input_index("updates");
    const Attribute* reduction = call.attribute("reduction");
    if (places < 0 || updates < 0 || reduction == nullptr || reduction->s == "none" || reduction->s == "mul") return;
    const bool adds = reduction->s == "add";
    if (adds ? !is_zero(expressions, call.operand(0)) : !number_of(call.operand(0))) return;
    const ValueId indices = call.operand(static_cast<std::size_t>(places)).value(),
                  messages = call.operand(static_cast<std::size_t>(updates)).value();
    if (indices == ValueId::kAbsent || messages == ValueId::kAbsent) return;
    const ValueId at = before_stretch(expressions, indices);
    if (!is_end_of_edges(expressions, at)) return;
    const NodeId gathered = taken_at(expressions, messages, at);
    if (gathered == NodeId::kNone) return;
    const ValueId from = expressions.operand(gathered, 0);
    out.report(
           call.id(),
           fmt::format("what is taken from {0} at {1} is {2} at {1}: each row gets itself{3}, and nothing "
                       "of the other ones",
                       Operand(call.analysis(), from).name(), Operand(call.analysis(), at).name(),
                       adds ? "added up" : "reduced",
                       adds ? fmt::format(" times how often it is in {}", Operand(call.analysis(), at).name()) : ""))
        .note_at(gathered, "the rows are taken here")
        .fix("add messages up at the other end of the edges: take rows at src, and sum at dst");
  }

  /// An empty sum: what else is there may be kept, as of rows that decay.
  static bool is_zero(const Expressions& expressions, const Operand& data) {
    if (!data.present()) return false;
    const ValueId before = before_stretch(expressions, data.value());
    if (number_of(data) == 0 || expressions.is_number(before, 0)) return true;
    const auto numbers = constant_numbers(expressions, before);
    return numbers && std::ranges::all_of(*numbers, [](double number) { return number == 0; });
  }

  /// One end of edges: a row of [2, edges], an input beside another one of its shape, or constants that repeat. Rows
  /// that are picked to be worked on, each once, are put back where they were.
  static bool is_end_of_edges(const Expressions& expressions, ValueId places) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const DimPool& pool = analysis.facts().dims();
    if (const auto numbers = sorted_numbers(expressions, places))
      return std::ranges::adjacent_find(*numbers) != numbers->end();
    const NodeId pick = expressions.producer(places);
    const Opcode opcode = expressions.op(pick);
    if (opcode == Opcode::kGather || opcode == Opcode::kSlice || opcode == Opcode::kSplit) {
      const ValueId both = expressions.operand(pick, 0);
      const auto dims = expressions.dims(both);
      return both != ValueId::kAbsent && dims.size() == 2 && is_input(analysis, before_stretch(expressions, both)) &&
             (pool.is_constant(dims[0], 2) || pool.is_constant(dims[1], 2));
    }
    if (!is_input(analysis, places)) return false;
    const auto dims = expressions.dims(places);
    if (dims.size() != 1) return false;
    constexpr int kMaxInputs = 16;
    int seen = 0;
    for (const ValueId other : analysis.inputs(GraphId::kMain)) {
      if (++seen > kMaxInputs) break;
      if (other == ValueId::kAbsent || other == places) continue;
      const auto extents = expressions.dims(other);
      if (extents.size() == 1 && pool.equal(extents[0], dims[0]) &&
          analysis.fact(other).dtypes.proves(DTypeSet::integers()))
        return true;
    }
    return false;
  }

  static bool is_lookup(Opcode opcode) {
    return opcode == Opcode::kGather || opcode == Opcode::kGatherND || opcode == Opcode::kGatherElements;
  }

  /// The node that looks up the rows that the messages are made of, if all of them are rows at `places`; numbers of the
  /// edges may weigh them.
  static NodeId taken_at(const Expressions& expressions, ValueId messages, ValueId places) {
    constexpr std::size_t kMaxValues = 32;
    const dataflow::Analysis& analysis = expressions.analysis();
    NodeId found = NodeId::kNone;
    std::vector<ValueId> pending{messages};
    for (std::size_t i = 0; i < pending.size(); ++i) {
      if (pending.size() > kMaxValues || expressions.is_spent()) return NodeId::kNone;
      const ValueId value = pending[i];
      if (value == ValueId::kAbsent || expressions.number(value) || is_constant(expressions, value)) continue;
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
      if (is_lookup(opcode)) {
        const ValueId at = second == ValueId::kAbsent ? second : before_stretch(expressions, second);
        if (at == ValueId::kAbsent || !are_computed_alike(expressions, at, places)) return NodeId::kNone;
        found = node;
      } else if (opcode == Opcode::kMul || opcode == Opcode::kDiv) {
        // One number for each edge.
        if (is_column(expressions, second) && !is_column(expressions, first))
          pending.push_back(first);
        else if (opcode == Opcode::kMul && is_column(expressions, first) && !is_column(expressions, second))
          pending.push_back(second);
        else
          pending.insert(pending.end(), {first, second});
      } else if (opcode == Opcode::kMatMul || opcode == Opcode::kNormalize ||
                 has_trait(expressions.entry(node), ops::OpTrait::kElementwise) || ops::keeps_elements(opcode) ||
                 opcode == Opcode::kCast || opcode == Opcode::kDropout || opcode == Opcode::kConcat) {
        for (const ValueId operand : analysis.operands(node)) pending.push_back(operand);
      } else {
        return NodeId::kNone;
      }
    }
    return found;
  }

  static bool is_column(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    const auto dims = expressions.dims(value);
    return dims.size() >= 2 && expressions.analysis().facts().dims().is_constant(dims.back(), 1);
  }
};

const RegisterRule<SummedWhereGathered> kRegisterSummedWhereGathered;

}  // namespace
}  // namespace tensorlint::rules
