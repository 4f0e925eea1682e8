#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SamplesInOtherOrder : public Rule {
 public:
  SamplesInOtherOrder()
      : Rule({"TL-L332", "samples-in-other-order", "loss", findings::Severity::kWarning,
              "running sums over sorted numbers that meet the same numbers in their first order"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const bool has_loss = !one_float_outputs(view.analysis()).empty();
    each_node(view, out, {Opcode::kTopK}, [&](const Expressions& expressions, const NodeCall& call) {
      if (has_loss) check_sort(call, out);
      check_ranks(expressions, call, out);
    });
  }

 private:
  /// A value whose axis `axis` is in the order of the sort.
  struct Sorted {
    ValueId value;
    std::size_t axis;
  };

  static constexpr std::size_t kMaxValues = 96;

  static void check_sort(const NodeCall& call, Reporter& out) {
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    const DimPool& pool = call.facts().dims();
    const ValueId key = call.operand(0).value(), order = call.result(1);
    if (key == ValueId::kAbsent || order == ValueId::kAbsent) return;
    const auto dims = expressions.dims(key), kept = expressions.dims(order);
    // Along one axis alone: the places are those of whole samples.
    if (dims.size() != 1 || kept.size() != 1 || !pool.equal(dims[0], kept[0]) || pool.is_constant(dims[0], 1)) return;
    const std::vector<Sorted> sorted = sorted_values(expressions, call, order);
    // The elements of running sums depend on the order.
    std::vector<Sorted> sums;
    for (const Sorted& known : sorted)
      for (const NodeId user : expressions.users(known.value))
        if (const ValueId result = expressions.result(user);
            expressions.op(user) == Opcode::kCumSum && result != ValueId::kAbsent)
          sums.push_back({result, known.axis});
    for (const Sorted& running : forward(expressions, std::move(sums))) {
      const std::size_t rank = expressions.dims(running.value).size();
      if (running.axis >= rank) continue;  // of a node that fails nothing is known
      for (const NodeId user : expressions.users(running.value)) {
        const Opcode opcode = expressions.op(user);
        if (opcode != Opcode::kMul && opcode != Opcode::kAdd && opcode != Opcode::kSub && opcode != Opcode::kDiv)
          continue;
        const ValueId other = expressions.beside(user, running.value);
        if (other == ValueId::kAbsent || contains(sorted, other)) continue;
        const auto extents = expressions.dims(other);
        const std::size_t behind = rank - running.axis;
        if (extents.size() < behind) continue;
        const std::size_t axis = extents.size() - behind;
        if (!pool.equal(extents[axis], dims[0]) || !origins.are_same(other, axis, key, 0)) continue;
        out.report(user, fmt::format("{} is sorted by {}, and {} is not: numbers of different samples meet",
                                     Operand(call.analysis(), running.value).name(), call.operand(0).name(),
                                     Operand(call.analysis(), other).name()))
            .note_at(call.id(), "the samples are sorted here")
            .fix(fmt::format("take the elements of {} at {} first", Operand(call.analysis(), other).name(),
                             Operand(call.analysis(), order).name()));
        return;
      }
    }
  }

  /// A running sum of the sorted numbers, or a choice made from it, says something of the ranks. It meets numbers that
  /// are still in the order before the sort, place by place.
  static void check_ranks(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const DimPool& pool = call.facts().dims();
    const ValueId key = call.operand(0).value(), values = call.result();
    if (key == ValueId::kAbsent || values == ValueId::kAbsent) return;
    const auto dims = expressions.dims(key), kept = expressions.dims(values);
    const Attribute* given = call.attribute("axis");
    const std::int64_t last = static_cast<std::int64_t>(dims.size()) - 1, asked = given == nullptr ? -1 : given->i;
    const std::int64_t at = asked < 0 ? asked + last + 1 : asked;
    if (at < 0 || at > last || kept.size() != dims.size()) return;
    const auto axis = static_cast<std::size_t>(at);
    if (!pool.equal(dims[axis], kept[axis]) || pool.is_constant(dims[axis], 1)) return;
    const std::vector<Sorted> sorted = forward(expressions, {{values, axis}}, true);
    std::vector<Sorted> sums;
    for (const Sorted& known : sorted)
      for (const NodeId user : expressions.users(known.value))
        if (const ValueId result = expressions.result(user); expressions.op(user) == Opcode::kCumSum &&
                                                             result != ValueId::kAbsent &&
                                                             runs_along(expressions, user, known.axis))
          sums.push_back({result, known.axis});
    if (sums.empty()) return;
    // The numbers themselves, and what they were computed from element by element.
    std::vector<Sorted> unsorted = before(expressions, key, axis);
    unsorted = forward(expressions, std::move(unsorted));
    std::erase_if(unsorted, [&](const Sorted& value) { return contains(sorted, value.value); });
    for (const Sorted& ranked : forward(expressions, std::move(sums), true))
      for (const NodeId user : expressions.users(ranked.value)) {
        if (!has_trait(expressions.entry(user), ops::OpTrait::kElementwise)) continue;
        for (const ValueId other : call.analysis().operands(user)) {
          const auto met = std::ranges::find(unsorted, other, &Sorted::value);
          const std::size_t rank = expressions.dims(ranked.value).size();
          if (met == unsorted.end() || expressions.dims(other).size() != rank || met->axis != ranked.axis ||
              met->axis >= rank || !pool.equal(expressions.dims(other)[met->axis], dims[axis]) ||
              !pool.equal(expressions.dims(ranked.value)[met->axis], dims[axis]))
            continue;
          out.report(user,
                     fmt::format("{} is in the order of the sort, and {} is not: what belongs to one element "
                                 "meets another one",
                                 Operand(call.analysis(), ranked.value).name(), Operand(call.analysis(), other).name()))
              .note_at(call.id(), fmt::format("{} is sorted here", call.operand(0).name()))
              .fix("put it back in the first order: scatter(-1, order, mask), or gather(-1, order.argsort(-1))");
          return;
        }
      }
  }

  static bool runs_along(const Expressions& expressions, NodeId sum, std::size_t axis) {
    const auto given = expressions.number(expressions.operand(sum, 1));
    const auto rank = static_cast<double>(expressions.dims(expressions.operand(sum, 0)).size());
    return given && (*given < 0 ? *given + rank : *given) == static_cast<double>(axis);
  }

  /// Back over what keeps each element in its place.
  static std::vector<Sorted> before(const Expressions& expressions, ValueId value, std::size_t axis) {
    constexpr int kMaxSteps = 6;
    std::vector<Sorted> found{{value, axis}};
    const std::size_t rank = expressions.dims(value).size();
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto scaled = with_number(expressions, node);
      if (opcode == Opcode::kMul || opcode == Opcode::kDiv || opcode == Opcode::kAdd || opcode == Opcode::kSub)
        value = scaled ? scaled->value : ValueId::kAbsent;
      else if (opcode == Opcode::kSoftmax || opcode == Opcode::kLogSoftmax || opcode == Opcode::kCast ||
               opcode == Opcode::kNeg || opcode == Opcode::kIdentity)
        value = expressions.operand(node, 0);
      else
        break;
      if (value == ValueId::kAbsent || expressions.dims(value).size() != rank) break;
      found.push_back({value, axis});
    }
    return found;
  }

  /// What is taken at the places of the sort, and what is computed of it. Nothing where the places
  /// are used for anything else: samples may be put back then.
  static std::vector<Sorted> sorted_values(const Expressions& expressions, const NodeCall& call, ValueId order) {
    std::vector<Sorted> found;
    std::vector<ValueId> places{order};
    for (std::size_t i = 0; i < places.size() && places.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(places[i])) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent) return {};
        if (ops::keeps_elements(opcode) || opcode == Opcode::kCast) {
          places.push_back(result);
        } else if ((opcode == Opcode::kGather && expressions.operand(user, 1) == places[i]) ||
                   opcode == Opcode::kGatherND || opcode == Opcode::kGatherElements) {
          const Attribute* axis = expressions.analysis().attribute(user, "axis");
          if ((axis != nullptr && axis->i != 0) || expressions.dims(result).empty()) return {};
          found.push_back({result, 0});
        } else if (opcode != Opcode::kShape) {
          return {};
        }
      }
    if (const ValueId values = call.result(); !found.empty() && values != ValueId::kAbsent)
      found.push_back({values, 0});
    return forward(expressions, std::move(found));
  }

  /// What the values are computed to, as long as the axis is kept, or a part of it where `has_parts`.
  static std::vector<Sorted> forward(const Expressions& expressions, std::vector<Sorted> found,
                                     bool has_parts = false) {
    constexpr std::size_t kMaxOperands = 4;
    const losses::AxisWay way(expressions);
    for (std::size_t i = 0; i < found.size() && found.size() < kMaxValues; ++i) {
      const Sorted from = found[i];
      for (const NodeId user : expressions.users(from.value)) {
        const ValueId result = expressions.result(user);
        if (expressions.op(user) == Opcode::kTopK) continue;  // in another order
        std::size_t operand = 0;
        while (operand < kMaxOperands && expressions.operand(user, operand) != from.value) ++operand;
        losses::AxisStep step = way.follow(user, operand, from.axis);
        if (has_parts && operand == 0 && changes_parts(expressions, user) &&
            expressions.dims(result).size() == expressions.dims(from.value).size())
          step = {losses::AxisFate::kKept, from.axis};
        if (result != ValueId::kAbsent && step.fate == losses::AxisFate::kKept && !contains(found, result))
          found.push_back({result, step.axis});
      }
    }
    return found;
  }

  /// A slice, or an assignment to elements that the program names itself.
  static bool changes_parts(const Expressions& expressions, NodeId node) {
    if (expressions.op(node) != Opcode::kOther) return expressions.op(node) == Opcode::kSlice;
    const dataflow::Analysis& analysis = expressions.analysis();
    const OpSchema* schema = analysis.model().op(analysis.model().node(node)).schema;
    const int places = schema == nullptr || schema->input_index("updates") < 0 ? -1 : schema->input_index("indices");
    const ValueId indices = places < 0 ? ValueId::kAbsent : expressions.operand(node, static_cast<std::size_t>(places));
    return indices != ValueId::kAbsent &&
           (analysis.model().value(indices).initializer != nullptr || analysis.content(indices) != nullptr);
  }

  static bool contains(const std::vector<Sorted>& values, ValueId value) {
    return std::ranges::find(values, value, &Sorted::value) != values.end();
  }
};

const RegisterRule<SamplesInOtherOrder> kRegisterSamplesInOtherOrder;

}  // namespace
}  // namespace tensorlint::rules
