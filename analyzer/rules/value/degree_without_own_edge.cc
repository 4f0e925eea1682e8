#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class DegreeWithoutOwnEdge : public Rule {
 public:
  DegreeWithoutOwnEdge()
      : Rule(
            {"TL-V558", "degree-without-own-edge", "value", findings::Severity::kWarning,
             "a graph whose nodes get an edge to themselves, and are scaled by the root of how many they had before"}) {
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kReduceSum})) return;
    std::map<ValueId, bool> diagonals;
    each_node(view, out, {Opcode::kPow, Opcode::kSqrt}, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kPow) && number_of(call.operand(1)).value_or(0) >= 0) return;
      const ValueId counts = call.operand(0).value();
      const NodeId sum =
          counts == ValueId::kAbsent ? NodeId::kNone : expressions.producer(before_stretch(expressions, counts));
      if (expressions.op(sum) != Opcode::kReduceSum || is_kept_finite(expressions, call.result())) return;
      const ValueId edges = expressions.operand(sum, 0);
      const auto dims = expressions.dims(edges);
      if (edges == ValueId::kAbsent || dims.size() < 2 ||
          !is_input(call.analysis(), before_stretch(expressions, edges)))
        return;
      for (const NodeId user : expressions.users(edges)) {
        if (expressions.op(user) != Opcode::kAdd ||
            !is_diagonal(expressions, expressions.beside(user, edges), diagonals) ||
            !scales(expressions, call.result(), expressions.result(user)))
          continue;
        out.report(call.id(), fmt::format("{} counts the edges before each node gets one to itself: a node without "
                                          "neighbours has 0, whose root divides",
                                          Operand(call.analysis(), counts).name()))
            .note_at(user, "the edges to themselves are added here")
            .note_at(sum, "the edges are counted here")
            .fix("count after they are added: the sum of A + I");
        return;
      }
    });
  }

 private:
  static bool is_diagonal(const Expressions& expressions, ValueId value, std::map<ValueId, bool>& known) {
    const auto [found, is_new] = known.try_emplace(value);
    if (is_new) found->second = is_diagonal(expressions, value);
    return found->second;
  }
  static bool is_diagonal(const Expressions& expressions, ValueId value) {
    if (is_identity_matrix(expressions, value)) return true;
    const auto numbers = constant_numbers(expressions, value);
    const auto dims = expressions.dims(value);
    if (!numbers || dims.size() < 2) return false;
    const auto columns = expressions.analysis().facts().dims().as_constant(dims.back());
    if (!columns || *columns < 2 || static_cast<std::int64_t>(numbers->size()) != *columns * *columns) return false;
    for (std::size_t i = 0; i < numbers->size(); ++i)
      if ((*numbers)[i] != (i % (static_cast<std::size_t>(*columns) + 1) == 0 ? 1 : 0)) return false;
    return true;
  }

  /// The edges are multiplied with, or divided by, the roots.
  static bool scales(const Expressions& expressions, ValueId roots, ValueId edges) {
    std::vector<ValueId> pending{roots};
    for (std::size_t i = 0; i < pending.size() && pending.size() < 12; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        if ((opcode == Opcode::kMul || opcode == Opcode::kDiv || opcode == Opcode::kMatMul) &&
            expressions.beside(user, pending[i]) == edges)
          return true;
        if (ops::repeats_elements(opcode) ||
            (opcode == Opcode::kDiv && expressions.is_number(expressions.operand(user, 0), 1)) ||
            (opcode == Opcode::kOther && has_trait(expressions.entry(user), ops::OpTrait::kElementwise)))
          pending.push_back(expressions.result(user));
      }
    return false;
  }
};

const RegisterRule<DegreeWithoutOwnEdge> kRegisterDegreeWithoutOwnEdge;

}  // namespace
}  // namespace tensorlint::rules
