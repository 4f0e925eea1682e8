#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/score_values.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class OverflowInExp : public Rule {
 public:
  OverflowInExp()
      : Rule({"TL-V510", "overflow-in-exp", "value", findings::Severity::kWarning,
              "an exponential of numbers that the program lets grow beyond its dtype"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    // In a Poisson loss another rule says that the rate is taken for its logarithm.
    std::set<ValueId> rates;
    for (const losses::LossSite& loss : view.losses())
      if (loss.kind == losses::LossKind::kPoisson) rates.insert(loss.prediction);
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.is(Opcode::kExp) && !rates.contains(call.operand(0).value())) check_exponential(expressions, call, out);
    });
  }

 private:
  static void check_exponential(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand operand = call.operand(0);
    const auto dtype = call.analysis().fact(call.result()).dtypes.single();
    const auto limit = dtype ? largest_exponent(*dtype) : std::nullopt;
    if (!limit || !operand.present() || operand.taint().has(Aspect::kValue) ||
        is_clamped(call.analysis(), call.result()))
      return;
    if (const NodeId inner = inner_exponential(expressions, operand.value()); inner != NodeId::kNone) {
      out.report(call.id(), fmt::format("{} of {}, which is an exponential already: a score of 5 makes it infinite",
                                        call.op_name(), operand.name()))
          .note_at(inner, "the first exponential is taken here")
          .fix("give what takes a logarithm the score itself");
      return;
    }
    if (check_softplus(expressions, call, *limit, *dtype, out)) return;
    const auto reached = reach_of(expressions, operand);
    if (!reached || !(reached->largest > *limit)) return;
    out.report(call.id(), fmt::format("{} of {}, which is up to {:.4g}: above {:.4g} the result is infinite in {}",
                                      call.op_name(), operand.name(), reached->largest, *limit, to_text(*dtype)))
        .certainty(ops::Certainty::kMay, reached->witness)
        .note_at(reached->node, reached->note)
        .fix(*dtype == DType::kFloat16 ? "cast to float32 first, or subtract the largest number of each row"
                                       : "subtract the largest number of each row first, as LogSumExp does");
  }

  /// log(1 + exp(x)) written out for the score x of a layer. What an exporter makes of one call is its own.
  static bool check_softplus(const Expressions& expressions, const NodeCall& call, double limit, DType dtype,
                             Reporter& out) {
    const ValueId argument = call.operand(0).value();
    ValueId score = before_scale(expressions, argument);
    if (expressions.op_of(score) == Opcode::kNeg)
      score = before_scale(expressions, expressions.operand(expressions.producer(score), 0));
    const NodeId layer = score == ValueId::kAbsent ? NodeId::kNone : losses::ScoreValues(expressions).layer_of(score);
    if (layer == NodeId::kNone || !(call.analysis().fact(argument).range.hi > limit)) return false;
    const NodeId logarithm = logarithm_of_one_more(expressions, call.result());
    if (logarithm == NodeId::kNone || is_kept_finite(expressions, expressions.result(logarithm))) return false;
    const std::string_view written = out.locations().metadata(call.id(), "pkg.torch.onnx.fx_node");
    if (!written.empty() && written == out.locations().metadata(logarithm, "pkg.torch.onnx.fx_node")) return false;
    out.report(call.id(), fmt::format("log(1 + exp({})), written out: above {:.4g} it is infinite in {}",
                                      call.operand(0).name(), limit, to_text(dtype)))
        .certainty(ops::Certainty::kMay,
                   fmt::format("{} has a larger number among its elements", call.operand(0).name()))
        .note_at(layer, "the output of the layer may have any value")
        .note_at(logarithm, "the logarithm is taken here")
        .fix("use softplus, or logaddexp with 0");
    return true;
  }

  /// log(1 + e) for e.
  static NodeId logarithm_of_one_more(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 3;
    bool one_more = false;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      ValueId next = ValueId::kAbsent;
      for (const NodeId user : expressions.users(value)) {
        const Opcode opcode = expressions.op(user);
        if (opcode == (one_more ? Opcode::kLog : Opcode::kLog1p)) return user;
        const auto numbered = with_number(expressions, user);
        if (opcode == Opcode::kAdd && !one_more && numbered && numbered->number == 1) {
          next = expressions.result(user);
          one_more = true;
          break;
        }
        if (ops::keeps_elements(opcode)) next = expressions.result(user);
      }
      value = next;
    }
    return NodeId::kNone;
  }

  /// Whose value, moved or scaled by a positive number, this is. With a minus it is a probability of survival.
  static NodeId inner_exponential(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      if (opcode == Opcode::kExp) return node;
      if (ops::moves_elements(opcode) || opcode == Opcode::kCast)
        value = expressions.operand(node, 0);
      else if (numbered && numbered->number > 0 && (opcode == Opcode::kMul || opcode == Opcode::kAdd))
        value = numbered->value;
      else
        return NodeId::kNone;
    }
    return NodeId::kNone;
  }

  /// The logarithm of the largest number.
  static std::optional<double> largest_exponent(DType dtype) {
    constexpr double kHalf = 65504;
    if (dtype == DType::kFloat16) return std::log(kHalf);
    constexpr double kSingle = 3.4028235e38;  // the same exponents as bfloat16
    if (dtype == DType::kFloat32 || dtype == DType::kBFloat16) return std::log(kSingle);
    return std::nullopt;
  }

  struct Reached {
    double largest;
    NodeId node;
    std::string note, witness;
  };

  /// What the sum over all labels is where all classes are equally probable, for two samples where their number is
  /// open.
  static std::optional<double> summed_cross_entropy(const Expressions& expressions, NodeId node) {
    const ops::OpEntry* entry = expressions.entry(node);
    if (entry == nullptr || !entry->loss() || !ops::takes_class_indices(*entry->loss())) return std::nullopt;
    const Attribute* reduction = expressions.analysis().attribute(node, "reduction");
    const auto scores = expressions.dims(expressions.operand(node, 0)),
               labels = expressions.dims(expressions.operand(node, 1));
    if (reduction == nullptr || reduction->s != "sum" || scores.size() < 2) return std::nullopt;
    DimPool& pool = expressions.analysis().facts().dims();
    const auto classes = pool.as_constant(scores[1]);
    if (!classes || *classes < 2) return std::nullopt;
    double count = 1;
    for (const Dim dim : labels) count *= static_cast<double>(pool.bounds_from_two(dim).lo);
    return count * std::log(static_cast<double>(*classes));
  }

  /// Back over constant factors to cosines, which reach 1 and -1, or to a Clip with a bound of the program's.
  static std::optional<Reached> reach_of(const Expressions& expressions, const Operand& operand) {
    const dataflow::Analysis& analysis = expressions.analysis();
    constexpr int kMaxSteps = 12;
    ValueId value = operand.value();
    double scale = 1;
    bool shifted = false;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      if (node == NodeId::kNone) return std::nullopt;
      const Opcode opcode = expressions.op(node);
      if (const auto sum = summed_cross_entropy(expressions, node); sum && scale > 0 && !shifted)
        return Reached{scale * *sum, node, "cross-entropies are summed, and not averaged, here",
                       "every class is as probable as the others"};
      const auto numbered = with_number(expressions, node);
      if (!shifted)
        if (const auto cosine = cosine_of(expressions, value); cosine && cosine->both_divided) {
          // A negative factor makes the largest number of opposite vectors, which are rare.
          if (scale < 0) return std::nullopt;
          return Reached{scale, cosine->node, "products of vectors of length 1, of at most 1",
                         cosine->is_of_itself ? "a vector and itself" : "two vectors of one direction"};
        }
      const Range& given = analysis.fact(value).range;
      if (opcode == Opcode::kClip || opcode == Opcode::kMin) {
        const ValueId before = opcode == Opcode::kMin && numbered ? numbered->value : expressions.operand(node, 0);
        if (opcode == Opcode::kMin && !numbered) return std::nullopt;
        const double largest = operand.fact().range.hi;
        const double bound = scale < 0 ? given.lo : given.hi;
        const Range& free = analysis.fact(before).range;
        const bool is_reached = scale < 0 ? free.lo < bound : free.hi > bound;
        if (!std::isfinite(largest) || !std::isfinite(bound) || !is_reached) return std::nullopt;
        return Reached{largest, node, "the bound is set here",
                       fmt::format("{} is cut off there", Operand(analysis, before).name())};
      }
      if (ops::moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kSplit) {
        value = expressions.operand(node, 0);
      } else if (opcode == Opcode::kNeg) {
        scale = -scale;
        value = expressions.operand(node, 0);
      } else if (opcode == Opcode::kMul && numbered) {
        scale *= numbered->number;
        value = numbered->value;
      } else if (opcode == Opcode::kDiv && numbered && !numbered->is_first && numbered->number != 0) {
        scale /= numbered->number;
        value = numbered->value;
      } else if (opcode == Opcode::kAdd && numbered) {
        shifted = true;
        value = numbered->value;
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }
};

const RegisterRule<OverflowInExp> kRegisterOverflowInExp;

}  // namespace
}  // namespace tensorlint::rules
