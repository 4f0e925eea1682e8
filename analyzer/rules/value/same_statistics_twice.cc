#include <fmt/format.h>

#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SameStatisticsTwice : public Rule {
 public:
  SameStatisticsTwice()
      : Rule({"TL-V551", "same-statistics-twice", "value", findings::Severity::kWarning,
              "a result that is normalised with the mean and deviation that its input was normalised with, where they "
              "are to be put back"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kReduceMean})) return;
    each_node(view, out, {Opcode::kDiv}, [&](const Expressions& expressions, const NodeCall& call) {
      const auto outer = normalised_of(expressions, call.id());
      if (!outer) return;
      const ValueId measured = before_stretch(expressions, expressions.operand(outer->mean, 0));
      if (measured == outer->data) return;
      NodeId inner = NodeId::kNone;
      walk_back(expressions, outer->data, [&](ValueId, NodeId node) {
        if (inner != NodeId::kNone) return false;
        const auto before = expressions.op(node) == Opcode::kDiv ? normalised_of(expressions, node) : std::nullopt;
        if (before && before->data == measured && before->deviation == outer->deviation &&
            are_computed_alike(expressions, expressions.result(before->mean), expressions.result(outer->mean)))
          inner = node;
        return true;
      });
      if (inner == NodeId::kNone) return;
      out.report(call.id(),
                 fmt::format(
                     "{} is computed from normalised numbers, and normalised with the same mean and deviation again",
                     Operand(call.analysis(), outer->data).name()))
          .note_at(inner, "normalised here first")
          .fix("put them back: y * deviation + mean");
    });
  }

 private:
  struct Normalisation {
    ValueId data = ValueId::kAbsent, deviation = ValueId::kAbsent;
    NodeId mean = NodeId::kNone;
  };

  /// (data - mean) / deviation
  static std::optional<Normalisation> normalised_of(const Expressions& expressions, NodeId quotient) {
    const ValueId above = expressions.operand(quotient, 0), below = expressions.operand(quotient, 1);
    if (above == ValueId::kAbsent || below == ValueId::kAbsent) return std::nullopt;
    const NodeId difference = expressions.producer(above);
    if (expressions.op(difference) != Opcode::kSub) return std::nullopt;
    const NodeId mean = expressions.producer(before_stretch(expressions, expressions.operand(difference, 1)));
    if (expressions.op(mean) != Opcode::kReduceMean) return std::nullopt;
    return Normalisation{before_stretch(expressions, expressions.operand(difference, 0)),
                         before_guard(expressions, below), mean};
  }
};

const RegisterRule<SameStatisticsTwice> kRegisterSameStatisticsTwice;

}  // namespace
}  // namespace tensorlint::rules
