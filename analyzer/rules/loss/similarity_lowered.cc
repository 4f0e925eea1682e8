#include <fmt/format.h>

#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SimilarityLowered : public Rule {
 public:
  SimilarityLowered()
      : Rule({"TL-L415", "similarity-lowered", "loss", findings::Severity::kWarning,
              "a loss of cosines alone, which falls as vectors turn away from each other"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1 || !has_node(out, {Opcode::kDiv})) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    NodeId lowered = NodeId::kNone;
    const auto [terms, is_complete] = loss_terms(expressions, outputs[0]);
    if (!is_complete) return;
    for (const LossTerm& term : terms) {
      if (const auto cosine = cosine_of(expressions, term.value);
          cosine && cosine->both_divided && !cosine->is_of_itself) {
        if (!(term.factor > 0) || !out.shared<losses::Parameters>().reach(term.value)) return;
        lowered = cosine->node;
      } else if (!term.is_followed && !expressions.number(term.value) &&
                 !is_summed_in_cosine(expressions, term.value)) {
        return;
      }
    }
    if (lowered == NodeId::kNone) return;
    out.report(lowered, "the loss is this cosine alone, and is least where the two vectors are opposite")
        .origin(Operand(view.analysis(), expressions.result(lowered)), Aspect::kValue)
        .fix("put a minus in front of it, such as 2 - 2 * cos, or 1 - cos");
  }

 private:
  /// The products of two vectors, element by element.
  static bool is_summed_in_cosine(const Expressions& expressions, ValueId value) {
    for (const NodeId user : expressions.users(value))
      if (const ValueId sum = expressions.result(user);
          expressions.op(user) == Opcode::kReduceSum && sum != ValueId::kAbsent && cosine_of(expressions, sum))
        return true;
    return false;
  }
};

const RegisterRule<SimilarityLowered> kRegisterSimilarityLowered;

}  // namespace
}  // namespace tensorlint::rules
