#include <fmt/format.h>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class DividedBeforeSubtracted : public Rule {
 public:
  DividedBeforeSubtracted()
      : Rule({"TL-V542", "divided-before-subtracted", "value", findings::Severity::kWarning,
              "x - mean / deviation, where (x - mean) / deviation standardises"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kSub}, [&](const Expressions& expressions, const NodeCall& call) {
      const NodeId division = expressions.producer(before_stretch(expressions, call.operand(1).value()));
      if (expressions.op(division) != Opcode::kDiv) return;
      const ValueId whole = before_stretch(expressions, call.operand(0).value());
      const NodeId mean = expressions.producer(before_stretch(expressions, expressions.operand(division, 0)));
      if (whole == ValueId::kAbsent || expressions.op(mean) != Opcode::kReduceMean ||
          before_stretch(expressions, expressions.operand(mean, 0)) != whole ||
          !is_deviation(expressions, expressions.operand(division, 1), whole))
        return;
      const Operand data(call.analysis(), whole);
      out.report(call.id(), fmt::format("{} less its mean divided by its deviation: the division comes first, and {} "
                                        "keeps its scale",
                                        data.name(), data.name()))
          .note_at(division, "the mean is divided here")
          .fix("put the difference in parentheses: (x - mean) / deviation");
    });
  }

 private:
  static constexpr int kMaxSteps = 16;

  /// The root of squares of `whole`, or of `whole` less something, with what keeps it off 0 and corrects it.
  static bool is_deviation(const Expressions& expressions, ValueId value, ValueId whole) {
    bool rooted = false;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0);
      if (const ValueId base = expressions.square_base(value); base != ValueId::kAbsent)
        return rooted && is_deviation_from_mean(expressions, base, whole);
      if (opcode == Opcode::kReduceL2) return is_deviation_from_mean(expressions, first, whole);
      if (opcode == Opcode::kReduceSumSquare) return rooted && is_deviation_from_mean(expressions, first, whole);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kSqrt || (opcode == Opcode::kPow && numbered && numbered->number == 0.5)) {
        rooted = true;
        value = first;
      } else if (opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum || opcode == Opcode::kClip) {
        value = first;
      } else if (numbered && (opcode == Opcode::kAdd || opcode == Opcode::kMul || opcode == Opcode::kMax ||
                              (opcode == Opcode::kDiv && !numbered->is_first))) {
        value = numbered->value;
      } else if (opcode == Opcode::kDiv || opcode == Opcode::kMul) {
        value = first;  // by the number of elements, which is not known before
      } else {
        return false;
      }
    }
    return false;
  }

  static bool is_deviation_from_mean(const Expressions& expressions, ValueId base, ValueId whole) {
    base = before_stretch(expressions, base);
    const NodeId difference = expressions.producer(base);
    return expressions.op(difference) == Opcode::kSub &&
           before_stretch(expressions, expressions.operand(difference, 0)) == whole;
  }
};

const RegisterRule<DividedBeforeSubtracted> kRegisterDividedBeforeSubtracted;

}  // namespace
}  // namespace tensorlint::rules
