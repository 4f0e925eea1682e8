#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "base/letters.h"
#include "passes/dataflow/element_function.h"
#include "passes/losses/axis_way.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class RiskSetOfThePast : public Rule {
 public:
  RiskSetOfThePast()
      : Rule({"TL-L361", "risk-set-of-the-past", "loss", findings::Severity::kWarning,
              "a partial likelihood whose risk sets hold those who left earlier"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kExp}) || one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kLog}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto sums = summed(expressions, call.operand(0).value());
      if (!sums || !sums->holds_earlier) return;
      const ValueId event = event_of(expressions, call.result());
      const std::string_view key = telling_name(call.analysis(), sums->time);
      if (event == ValueId::kAbsent || event == sums->time) return;
      // Lists that are ranked by grades may have been observed in part.
      if (!is_name_of_time(key) && (is_name_of_grade(key) || !is_name_of_event(telling_name(call.analysis(), event))))
        return;
      const Operand time(call.analysis(), sums->time);
      out.report(sums->node,
                 fmt::format("the sum of each sample holds those whose {0} is less: those at risk at a time "
                             "are the ones whose {0} is not",
                             time.name()))
          .note_at(call.id(), "the logarithm of the sums is taken here")
          .fix(sums->is_sorted ? "sort from the latest to the earliest: time.argsort(descending=True)"
                               : "take those that are still there: time[None, :] >= time[:, None]");
    });
  }

 private:
  struct Sums {
    NodeId node = NodeId::kNone;  ///< that decides who is in them
    ValueId time = ValueId::kAbsent;
    bool is_sorted = false;
    bool holds_earlier = false;
  };

  static std::optional<Sums> summed(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return std::nullopt;
    value = before_reversal(expressions, before_guard(expressions, value)).value;
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) == Opcode::kCumSum) return of_running_sum(expressions, node);
    return of_mask(expressions, node);
  }

  struct Reversed {
    ValueId value;
    bool odd = false;
  };

  /// Before slices that go backwards, and views.
  static Reversed before_reversal(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 6;
    Reversed found{value};
    for (int step = 0; step < kMaxSteps && found.value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(found.value);
      if (expressions.op(node) == Opcode::kSlice) {
        if (!expressions.is_number(expressions.operand(node, 4), -1)) break;
        found.odd = !found.odd;
      } else if (!ops::keeps_elements(expressions.op(node)) && expressions.op(node) != Opcode::kCast) {
        break;
      }
      found.value = expressions.operand(node, 0);
    }
    return found;
  }

  /// cumsum(exp(scores[order])), where the order sorts a time.
  static std::optional<Sums> of_running_sum(const Expressions& expressions, NodeId sum) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const Attribute* reverse = analysis.attribute(sum, "reverse");
    bool holds_later = reverse != nullptr && reverse->i != 0;
    auto before = before_reversal(expressions, expressions.operand(sum, 0));
    holds_later ^= before.odd;
    const NodeId exp = expressions.producer(before.value);
    if (expressions.op(exp) != Opcode::kExp) return std::nullopt;
    before = before_reversal(expressions, expressions.operand(exp, 0));
    if (expressions.op_of(before.value) == Opcode::kSub) {  // less the largest
      const bool odd = before.odd;
      before = before_reversal(expressions, expressions.operand(expressions.producer(before.value), 0));
      before.odd ^= odd;
    }
    holds_later ^= before.odd;
    const NodeId picked = expressions.producer(before.value);
    const Opcode opcode = expressions.op(picked);
    if (opcode != Opcode::kGather && opcode != Opcode::kGatherND && opcode != Opcode::kGatherElements)
      return std::nullopt;
    before = before_reversal(expressions, expressions.operand(picked, 1));
    holds_later ^= before.odd;
    const NodeId sort = expressions.producer(before.value);
    if (expressions.op(sort) != Opcode::kTopK || NodeCall(analysis, sort).result(1) != before.value)
      return std::nullopt;
    const Attribute* largest = analysis.attribute(sort, "largest");
    bool descends = largest == nullptr || largest->i != 0;
    ValueId time = expressions.operand(sort, 0);
    if (time != ValueId::kAbsent) time = before_stretch(expressions, time);
    if (expressions.op_of(time) == Opcode::kNeg) {
      descends = !descends;
      time = expressions.operand(expressions.producer(time), 0);
    }
    if (!is_one_of_each(expressions, time)) return std::nullopt;
    return Sums{sort, time, true, descends == holds_later};
  }

  /// mask @ exp(scores) or (mask * exp(scores)).sum(1), of a time that is compared with itself.
  static std::optional<Sums> of_mask(const Expressions& expressions, NodeId node) {
    const losses::AxisWay way(expressions);
    ValueId mask = ValueId::kAbsent, weights = ValueId::kAbsent;
    std::size_t summed = 0;
    const NodeId product =
        expressions.op(node) == Opcode::kReduceSum ? expressions.producer(expressions.operand(node, 0)) : node;
    const Opcode opcode = expressions.op(product);
    if (opcode != (product == node ? Opcode::kMatMul : Opcode::kMul)) return std::nullopt;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId candidate = expressions.operand(product, side);
      if (candidate == ValueId::kAbsent) return std::nullopt;
      const NodeId compare = expressions.producer(before_casts(expressions, candidate));
      if (expressions.op(compare) != Opcode::kCompare) continue;
      const auto axes =
          product == node ? way.summed(product, side) : expressions.axes_of(node).value_or(std::vector<std::size_t>{});
      if (axes.size() != 1 || expressions.dims(candidate).size() != 2) return std::nullopt;
      mask = candidate;
      weights = expressions.operand(product, 1 - side);
      summed = axes.front();
    }
    if (mask == ValueId::kAbsent || weights == ValueId::kAbsent ||
        expressions.op_of(before_stretch(expressions, weights)) != Opcode::kExp)
      return std::nullopt;
    const NodeId compare = expressions.producer(before_casts(expressions, mask));
    const ops::ElementValue element = dataflow::element_function(expressions.analysis(), compare, 2);
    const ValueId first = expressions.operand(compare, 0), second = expressions.operand(compare, 1);
    if (element == nullptr || first == ValueId::kAbsent || second == ValueId::kAbsent) return std::nullopt;
    const ValueId time = before_stretch(expressions, first);
    const auto along = axis_of(expressions, first), across = axis_of(expressions, second);
    if (time != before_stretch(expressions, second) || !along || !across || along == across ||
        !is_one_of_each(expressions, time))
      return std::nullopt;
    // Of the one that is summed over, and of the one that the sum is for.
    const auto holds = [&](double other, double own) {
      const bool is_first = *along == summed;
      const std::array both{is_first ? other : own, is_first ? own : other};
      return element({both, {}}) == 1;
    };
    return Sums{compare, time, false, holds(1, 2) && !holds(2, 1)};
  }

  /// The one long axis of a column or row, of two.
  static std::optional<std::size_t> axis_of(const Expressions& expressions, ValueId value) {
    const auto dims = expressions.dims(value);
    const DimPool& pool = expressions.analysis().facts().dims();
    if (dims.size() == 1) return 1;
    if (dims.size() != 2 || pool.is_constant(dims[0], 1) == pool.is_constant(dims[1], 1)) return std::nullopt;
    return pool.is_constant(dims[0], 1) ? 1 : 0;
  }

  /// An input with a number for each sample.
  static bool is_one_of_each(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent || !is_input(expressions.analysis(), value)) return false;
    const auto dims = expressions.dims(value);
    const DimPool& pool = expressions.analysis().facts().dims();
    return !dims.empty() && !pool.is_constant(dims[0], 1) &&
           std::ranges::all_of(dims.subspan(1), [&](Dim dim) { return pool.is_constant(dim, 1); });
  }

  /// What says of each sample whether its term counts; kAbsent where all do.
  static ValueId event_of(const Expressions& expressions, ValueId logarithm) {
    constexpr std::size_t kMaxValues = 8;
    std::vector<ValueId> pending{logarithm};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        const ValueId other =
            opcode == Opcode::kWhere ? expressions.operand(user, 0) : expressions.beside(user, pending[i]);
        if ((opcode == Opcode::kMul || opcode == Opcode::kWhere) && other != ValueId::kAbsent) {
          const ValueId event = before_moves(expressions, other);
          if (is_one_of_each(expressions, event)) return event;
        }
        const ValueId result = expressions.result(user);
        if (result != ValueId::kAbsent &&
            (opcode == Opcode::kSub || opcode == Opcode::kAdd || opcode == Opcode::kNeg || ops::moves_elements(opcode)))
          pending.push_back(result);
      }
    return ValueId::kAbsent;
  }

  static bool has_any(std::string_view name, std::span<const std::string_view> parts) {
    const std::string lower = lower_case(name.substr(0, 64));
    return std::ranges::any_of(parts, [&](std::string_view part) { return lower.find(part) != std::string::npos; });
  }

  static bool is_name_of_time(std::string_view name) {
    static constexpr std::array<std::string_view, 6> kParts{"time", "dur", "surv", "tte", "follow", "days"};
    return has_any(name, kParts);
  }

  static bool is_name_of_grade(std::string_view name) {
    static constexpr std::array<std::string_view, 9> kParts{"rel",    "grade", "rank",   "score",  "gain",
                                                            "rating", "label", "target", "utility"};
    return has_any(name, kParts);
  }

  static bool is_name_of_event(std::string_view name) {
    static constexpr std::array<std::string_view, 6> kParts{"event", "status", "death", "dead", "cens", "observed"};
    return has_any(name, kParts);
  }
};

const RegisterRule<RiskSetOfThePast> kRegisterRiskSetOfThePast;

}  // namespace
}  // namespace tensorlint::rules
