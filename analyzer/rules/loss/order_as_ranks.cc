#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class OrderAsRanks : public Rule {
 public:
  OrderAsRanks()
      : Rule({"TL-L373", "order-as-ranks", "loss", findings::Severity::kWarning,
              "the order that a sort gives, calculated with as if it was the rank of each element"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kTopK},
              [&](const Expressions& expressions, const NodeCall& call) { check_sort(expressions, call, out); });
  }

 private:
  static constexpr std::size_t kMaxValues = 48;

  /// Places are indices: what looks elements up with them is right. Here they are numbers that meet elements which have
  /// not been sorted.
  static void check_sort(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const ValueId key = call.operand(0).value(), order = call.result(1);
    if (key == ValueId::kAbsent || order == ValueId::kAbsent || !sorts_all(expressions, key, order) ||
        is_place(expressions, key) || !comes_from_weights(expressions, key))
      return;
    struct Step {
      ValueId value;
      NodeId first;  ///< the first node that calculates with the places
    };
    std::vector<Step> pending{{order, NodeId::kNone}};
    Visited<ValueId> seen(call.analysis().meter());
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i) {
      const auto [value, first] = pending[i];
      for (const NodeId user : expressions.users(value)) {
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent || !seen.insert(result)) continue;
        const Opcode opcode = expressions.op(user);
        if (ops::repeats_elements(opcode) || opcode == Opcode::kCast) {
          pending.push_back({result, first});
        } else if ((opcode == Opcode::kGather || opcode == Opcode::kGatherND) &&
                   is_table_of_ranks(expressions, user, value)) {
          pending.push_back({result, user});
        } else if (opcode == Opcode::kWhere && first != NodeId::kNone && expressions.operand(user, 0) == value) {
          for (const std::size_t side : {std::size_t{1}, std::size_t{2}})
            if (const ValueId other = expressions.operand(user, side);
                other != ValueId::kAbsent && is_unsorted(expressions, key, other)) {
              report(call, first, user, other, out);
              return;
            }
        } else if (calculates(expressions, user)) {
          const NodeId begins = first == NodeId::kNone ? user : first;
          const ValueId other = partner(expressions, user, value);
          if (other == ValueId::kAbsent) {
            pending.push_back({result, begins});
          } else if (is_unsorted(expressions, key, other)) {
            report(call, begins, user, other, out);
            return;
          }
        }
      }
    }
  }

  static void report(const NodeCall& sort, NodeId begins, NodeId meets, ValueId other, Reporter& out) {
    const dataflow::Analysis& analysis = sort.analysis();
    const Operand order(analysis, sort.result(1)), key = sort.operand(0);
    out.report(begins, fmt::format("{} holds which element of {} comes first, second and so on, and is taken for the "
                                   "rank of each element",
                                   order.name(), key.name()))
        .note_at(sort.id(), "the order is computed here")
        .note_at(meets, fmt::format("{}, which is not sorted, meets it here", Operand(analysis, other).name()))
        .fix("sort the order as well: argsort(argsort(scores)) holds the rank of each element");
  }

  static bool sorts_all(const Expressions& expressions, ValueId key, ValueId order) {
    const DimPool& pool = expressions.analysis().facts().dims();
    const auto given = expressions.dims(key), kept = expressions.dims(order);
    return !given.empty() && std::ranges::equal(given, kept, [&](Dim a, Dim b) { return pool.equal(a, b); });
  }

  /// The places of a sort, whose own order holds ranks.
  static bool is_place(const Expressions& expressions, ValueId key) {
    key = before_stretch(expressions, key);
    return expressions.analysis().fact(key).dtypes.proves(DTypeSet::integers());
  }

  /// What is random has ranks that are as random as its order.
  static bool comes_from_weights(const Expressions& expressions, ValueId key) {
    const losses::ScoreValues scores(expressions);
    bool found = false;
    walk_back(expressions, key, [&](ValueId value, NodeId) {
      found = found || scores.layer_of(value) != NodeId::kNone;
      return !found;
    });
    return found;
  }

  /// A row of numbers that only fall or only rise, one for each rank.
  static bool is_table_of_ranks(const Expressions& expressions, NodeId lookup, ValueId places) {
    const ValueId table = expressions.operand(lookup, 0);
    if (expressions.operand(lookup, 1) != places || expressions.dims(table).size() != 1) return false;
    const auto numbers = constant_numbers(expressions, table);
    if (!numbers || numbers->size() < 3) return false;
    const auto is_sorted = [&](auto less) { return std::ranges::is_sorted(*numbers, less); };
    return numbers->front() != numbers->back() && (is_sorted(std::ranges::less()) || is_sorted(std::ranges::greater()));
  }

  /// Element by element, and no division of integers, which makes rows and columns of places.
  static bool calculates(const Expressions& expressions, NodeId node) {
    const Opcode opcode = expressions.op(node);
    if (opcode == Opcode::kMod || opcode == Opcode::kEqual || opcode == Opcode::kWhere ||
        (opcode == Opcode::kDiv && expressions.makes_integers(node)))
      return false;
    return has_trait(expressions.entry(node), ops::OpTrait::kElementwise) &&
           expressions.analysis().operands(node).size() <= 2;
  }

  /// The other operand where it is more than numbers; kAbsent where there is none.
  static ValueId partner(const Expressions& expressions, NodeId node, ValueId value) {
    if (expressions.analysis().operands(node).size() != 2) return ValueId::kAbsent;
    const ValueId other = expressions.beside(node, value);
    if (other == ValueId::kAbsent || other == value || expressions.number(other)) return ValueId::kAbsent;
    const Fact& fact = expressions.analysis().fact(other);
    return fact.range.lo == fact.range.hi || is_one_float(expressions.analysis(), other) ? ValueId::kAbsent : other;
  }

  /// Data of the extent of what was sorted, in their own order; or another order, of which no rank can be taken either.
  static bool is_unsorted(const Expressions& expressions, ValueId key, ValueId other) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const DimPool& pool = analysis.facts().dims();
    const auto given = expressions.dims(key), met = expressions.dims(other);
    if (met.empty() || !pool.equal(given.back(), met.back())) return false;
    const ValueId before = before_scale(expressions, other);
    const NodeId sort = expressions.producer(before);
    if (expressions.op(sort) == Opcode::kTopK && expressions.result(sort) != before)
      return !is_place(expressions, expressions.operand(sort, 0));
    bool sorted = false, data = is_input(analysis, other);
    walk_back(expressions, other, [&](ValueId, NodeId node) {
      if (expressions.op(node) == Opcode::kShape) return false;
      sorted = sorted || expressions.op(node) == Opcode::kTopK;
      for (const ValueId operand : analysis.operands(node))
        data = data || (operand != ValueId::kAbsent && is_input(analysis, operand));
      return !sorted;
    });
    return data && !sorted;
  }
};

const RegisterRule<OrderAsRanks> kRegisterOrderAsRanks;

}  // namespace
}  // namespace tensorlint::rules
