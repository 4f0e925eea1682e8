#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ShiftNotUndone : public Rule {
 public:
  ShiftNotUndone()
      : Rule({"TL-V555", "shift-not-undone", "value", findings::Severity::kWarning,
              "a map that is rolled in front of a block and rolled the same way after it, and added to what it was"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    std::vector<Roll> rolls;
    constexpr std::size_t kMaxRolls = 64;
    each_node(view, out, {Opcode::kConcat}, [&](const Expressions& expressions, const NodeCall& call) {
      if (rolls.size() >= kMaxRolls) return;
      if (const auto roll = rolled_by(expressions, call.id())) rolls.push_back(*roll);
    });
    if (rolls.size() < 2) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    for (std::size_t i = 0; i < rolls.size(); ++i) {
      const Roll& last = rolls[i];
      const Shifts back = shifts_of(expressions, rolls, last);
      for (const NodeId sum : expressions.users(expressions.result(last.node))) {
        if (expressions.op(sum) != Opcode::kAdd) continue;
        const ValueId kept = expressions.beside(sum, expressions.result(last.node));
        for (const Roll& first : std::span(rolls).first(i)) {
          const Shifts there = shifts_of(expressions, rolls, first);
          if (there.from != kept || there.along != back.along || expressions.result(first.node) == back.from ||
              !is_computed_from(expressions, back.from, expressions.result(first.node)))
            continue;
          if (std::ranges::all_of(back.along,
                                  [](const auto& shift) { return 2 * shift.second.first % shift.second.second == 0; }))
            continue;
          out.report(last.node,
                     fmt::format("{} is rolled by as much and in the same direction as in front of the block: what is "
                                 "added is {} places off",
                                 Operand(view.analysis(), back.from).name(),
                                 2 * std::min(back.along.begin()->second.first,
                                              back.along.begin()->second.second - back.along.begin()->second.first)))
              .note_at(first.node, "rolled here first")
              .note_at(sum, "added to what has not been rolled here")
              .fix("roll it back: the shifts with the opposite sign");
          return;
        }
      }
    }
  }

 private:
  struct Shifts {
    ValueId from = ValueId::kAbsent;
    std::map<std::size_t, std::pair<std::int64_t, std::int64_t>> along;  ///< axis: shift and extent
  };

  /// Rolls along several axes, one after another.
  static Shifts shifts_of(const Expressions& expressions, const std::vector<Roll>& rolls, const Roll& last) {
    Shifts shifts{last.from, {{last.axis, {last.shift, last.extent}}}};
    for (int step = 0; step < 3; ++step) {
      const auto before = std::ranges::find(rolls, expressions.producer(shifts.from), &Roll::node);
      if (before == rolls.end() || shifts.along.contains(before->axis)) break;
      shifts.along[before->axis] = {before->shift, before->extent};
      shifts.from = before->from;
    }
    return shifts;
  }

  static bool is_computed_from(const Expressions& expressions, ValueId value, ValueId from) {
    bool found = false;
    walk_back(expressions, value, [&](ValueId, NodeId node) {
      for (const ValueId operand : expressions.analysis().operands(node)) found = found || operand == from;
      return !found;
    });
    return found;
  }
};

const RegisterRule<ShiftNotUndone> kRegisterShiftNotUndone;

}  // namespace
}  // namespace tensorlint::rules
