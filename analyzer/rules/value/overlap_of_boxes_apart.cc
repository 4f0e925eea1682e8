#include <fmt/format.h>

#include <algorithm>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class OverlapOfBoxesApart : public Rule {
 public:
  OverlapOfBoxesApart()
      : Rule({"TL-V545", "overlap-of-boxes-apart", "value", findings::Severity::kWarning,
              "an overlap of boxes, as the product of two extents that are negative for boxes apart"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (!has_node(out, {Opcode::kMin})) return;
    each_node(view, out, {Opcode::kMul}, [&](const Expressions& expressions, const NodeCall& call) {
      const NodeId width = overlap_of_intervals(expressions, call.operand(0).value()),
                   height = overlap_of_intervals(expressions, call.operand(1).value());
      if (width == NodeId::kNone || height == NodeId::kNone || call.operand(0).value() == call.operand(1).value() ||
          is_chosen(expressions, call.result()))
        return;
      out.report(call.id(),
                 fmt::format("boxes that are apart along both axes overlap: {} and {} are both negative, and "
                             "their product is not",
                             call.operand(0).name(), call.operand(1).name()))
          .note_at(width, "less than 0 where the boxes are apart")
          .fix("bound both extents from below: clamp(min=0) before they are multiplied");
    });
  }

 private:
  /// What does not overlap is left out later.
  static bool is_chosen(const Expressions& expressions, ValueId product) {
    return std::ranges::any_of(expressions.users(product), [&](NodeId user) {
      return expressions.op(user) == Opcode::kWhere ||
             (expressions.op(user) == Opcode::kMul && is_mask(expressions, expressions.beside(user, product)));
    });
  }
};

const RegisterRule<OverlapOfBoxesApart> kRegisterOverlapOfBoxesApart;

}  // namespace
}  // namespace tensorlint::rules
