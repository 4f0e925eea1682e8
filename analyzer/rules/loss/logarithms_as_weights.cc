#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class LogarithmsAsWeights : public Rule {
 public:
  LogarithmsAsWeights()
      : Rule({"TL-L309", "logarithms-as-weights", "loss", findings::Severity::kWarning,
              "an expected value with logarithms of probabilities as weights"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kReduceSum)) check_sum(expressions, call, out);
      if (call.is(Opcode::kMatMul) && !call.operand(2).present())
        check_product(expressions, call, call.operand(0).value(), call.operand(1).value(), out);
    });
  }

 private:
  static void check_sum(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const NodeId product = expressions.producer(call.operand(0).value());
    if (expressions.op(product) != Opcode::kMul) return;
    const auto axes = expressions.axes_of(call.id());
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId shares = expressions.operand(product, side);
      const auto softmax = expressions.normalised(expressions.source(shares));
      if (softmax && axes && softmax->axes == *axes)
        check_product(expressions, call, shares, expressions.operand(product, 1 - side), out);
    }
  }

  /// A sum over the classes, whose numbers count up, compared with data afterwards.
  static void check_product(const Expressions& expressions, const NodeCall& call, ValueId shares, ValueId numbers,
                            Reporter& out) {
    if (shares == ValueId::kAbsent || numbers == ValueId::kAbsent || !counts_up(expressions, numbers)) return;
    const auto softmax = expressions.normalised(expressions.source(shares));
    if (!softmax || !softmax->logarithm || expressions.analysis().taint(shares).has(Aspect::kValue) ||
        !is_compared_with_data(expressions, call.result()))
      return;
    const dataflow::Analysis& analysis = expressions.analysis();
    out.report(call.id(), fmt::format("expected value of {} weighs with {}, the logarithms of probabilities",
                                      Operand(analysis, numbers).name(), Operand(analysis, shares).name()))
        .note_at(softmax->node, "the logarithms are computed here: none is above 0, and their sum is not 1")
        .fix("use Softmax, or take the exponential first");
  }

  /// Levels, bins or ages: equal steps between at least three numbers.
  static bool counts_up(const Expressions& expressions, ValueId numbers) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const ValueId source = before_stretch(expressions, numbers);
    const Content* content = analysis.content(source);
    if (content == nullptr || content->floats.size() < 3) return false;
    const double step = content->floats[1] - content->floats[0];
    constexpr double kSame = 1e-3;
    for (std::size_t i = 2; i < content->floats.size(); ++i)
      if (!(std::abs(content->floats[i] - content->floats[i - 1] - step) <= kSame * std::abs(step))) return false;
    return step > 0;
  }

  static bool is_compared_with_data(const Expressions& expressions, ValueId value) {
    constexpr int kMaxMoves = 8;
    for (int step = 0; step < kMaxMoves && value != ValueId::kAbsent; ++step) {
      ValueId next = ValueId::kAbsent;
      for (const NodeId user : expressions.users(value)) {
        const NodeCall use(expressions.analysis(), user);
        const bool is_loss = use.entry() != nullptr && use.entry()->loss().has_value();
        const ValueId other = expressions.beside(user, value);
        if ((expressions.op(user) == Opcode::kSub || is_loss) && other != ValueId::kAbsent &&
            is_input(expressions.analysis(), before_moves(expressions, other)))
          return true;
        if (ops::repeats_elements(expressions.op(user))) next = use.result();
      }
      value = next;
    }
    return false;
  }
};

const RegisterRule<LogarithmsAsWeights> kRegisterLogarithmsAsWeights;

}  // namespace
}  // namespace tensorlint::rules
