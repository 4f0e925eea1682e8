#include <fmt/format.h>

#include <cmath>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ScoresScaledByOtherExtent : public Rule {
 public:
  ScoresScaledByOtherExtent()
      : Rule({"TL-V550", "scores-scaled-by-other-extent", "value", findings::Severity::kWarning,
              "scores of attention that are divided by the root of the number of tokens, not of the width of the "
              "heads"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kSoftmax},
              [&](const Expressions& expressions, const NodeCall& call) { check_scores(expressions, call, out); });
  }

 private:
  static void check_scores(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    constexpr int kMaxSteps = 8;
    ValueId value = call.operand(0).value();
    NodeId scaling = NodeId::kNone;
    double divisor = 0;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kMul || opcode == Opcode::kDiv) {
        const auto scaled = with_number(expressions, node);
        if (!scaled || scaling != NodeId::kNone || scaled->number <= 0 || (opcode == Opcode::kDiv && scaled->is_first))
          return;
        scaling = node;
        divisor = opcode == Opcode::kDiv ? scaled->number : 1 / scaled->number;
        value = scaled->value;
      } else if (opcode == Opcode::kAdd || ops::keeps_elements(opcode)) {
        value = expressions.operand(node, 0);
      } else if (opcode == Opcode::kWhere) {
        value = expressions.operand(node, expressions.number(expressions.operand(node, 1)) ? 2 : 1);
      } else {
        if (scaling != NodeId::kNone && opcode == Opcode::kMatMul)
          check_divisor(expressions, scaling, divisor, node, out);
        return;
      }
    }
  }

  static void check_divisor(const Expressions& expressions, NodeId scaling, double divisor, NodeId product,
                            Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const DimPool& pool = analysis.facts().dims();
    const auto scores = expressions.dims(expressions.result(product)),
               queries = expressions.dims(expressions.operand(product, 0)),
               keys = expressions.dims(expressions.operand(product, 1));
    if (scores.size() < 3 || queries.size() != scores.size() || keys.size() != scores.size() ||
        NodeCall(analysis, product).attribute("alpha") != nullptr)
      return;
    const auto width = pool.as_constant(queries.back()), tokens = pool.as_constant(scores.back());
    // A multiple of the width may be that of all heads.
    if (!width || !tokens || *width < 2 || *tokens < 2 || *tokens % *width == 0) return;
    if (std::abs(divisor * divisor - static_cast<double>(*tokens)) > 1e-4 * static_cast<double>(*tokens)) return;
    if (const auto heads = scores.size() == 4 ? pool.as_constant(scores[1]) : std::nullopt;
        heads && *heads * *width == *tokens)
      return;
    out.report(scaling, fmt::format("scores of vectors of {0} elements are divided by the root of {1}, the number of "
                                    "tokens: their spread is that of the root of {0}",
                                    *width, *tokens))
        .note_at(product, fmt::format("sums over {} elements", *width))
        .fix("divide by the root of the last extent of the queries: q.size(-1) ** 0.5");
  }
};

const RegisterRule<ScoresScaledByOtherExtent> kRegister;

}  // namespace
}  // namespace tensorlint::rules
