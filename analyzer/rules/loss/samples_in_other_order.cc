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
              "running sums over sorted samples that meet numbers of the same samples in their first order"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kTopK}, [&](const Expressions&, const NodeCall& call) { check_sort(call, out); });
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

  /// What the values are computed to, as long as the axis is kept.
  static std::vector<Sorted> forward(const Expressions& expressions, std::vector<Sorted> found) {
    constexpr std::size_t kMaxOperands = 4;
    const losses::AxisWay way(expressions);
    for (std::size_t i = 0; i < found.size() && found.size() < kMaxValues; ++i) {
      const Sorted from = found[i];
      for (const NodeId user : expressions.users(from.value)) {
        const ValueId result = expressions.result(user);
        std::size_t operand = 0;
        while (operand < kMaxOperands && expressions.operand(user, operand) != from.value) ++operand;
        const losses::AxisStep step = way.follow(user, operand, from.axis);
        if (result != ValueId::kAbsent && step.fate == losses::AxisFate::kKept && !contains(found, result))
          found.push_back({result, step.axis});
      }
    }
    return found;
  }

  static bool contains(const std::vector<Sorted>& values, ValueId value) {
    return std::ranges::find(values, value, &Sorted::value) != values.end();
  }
};

const RegisterRule<SamplesInOtherOrder> kRegister;

}  // namespace
}  // namespace tensorlint::rules
