#include <fmt/format.h>

#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class VelocityMisbuilt : public Rule {
 public:
  VelocityMisbuilt()
      : Rule({"TL-L400", "velocity-misbuilt", "loss", findings::Severity::kWarning,
              "a target that has the shares of data and noise exchanged, or a sign"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    Visited<ValueId> seen(view.analysis().meter());
    for (const losses::LossSite& loss : view.losses()) {
      if (!ops::is_regression(loss.kind) || loss.target == ValueId::kAbsent || loss.prediction == ValueId::kAbsent)
        continue;
      for (const ValueId side : {loss.target, loss.prediction}) {
        const auto target = mixture_of(expressions, side);
        if (target && seen.insert(expressions.result(target->node))) check_target(expressions, *target, out);
      }
    }
  }

 private:
  /// share * of, where neither is a number.
  struct Part {
    ValueId share = ValueId::kAbsent, of = ValueId::kAbsent;
  };
  /// Of two such, added or subtracted.
  struct Mixture {
    NodeId node = NodeId::kNone;
    ValueId first = ValueId::kAbsent, second = ValueId::kAbsent;
    bool is_difference = false;
  };

  static void check_target(const Expressions& expressions, const Mixture& target, Reporter& out) {
    const dataflow::Analysis& analysis = expressions.analysis();
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId data = factor(expressions, target.first, side);
      if (data == ValueId::kAbsent) continue;
      for (const std::size_t other_side : {std::size_t{0}, std::size_t{1}}) {
        const Part first{factor(expressions, target.first, 1 - side), data},
            second{factor(expressions, target.second, 1 - other_side), factor(expressions, target.second, other_side)};
        if (first.share == ValueId::kAbsent || second.share == ValueId::kAbsent || second.of == ValueId::kAbsent ||
            first.of == second.of)
          continue;
        const auto noisy = mixed_of(expressions, first, second);
        // As the noisy sample itself, or as its derivative.
        if (!noisy || noisy->is_exchanged == target.is_difference) continue;
        const ValueId mixed = expressions.result(noisy->node);
        out.report(target.node, fmt::format("{} is to be predicted from {}, whose velocity {}",
                                            Operand(analysis, expressions.result(target.node)).name(),
                                            Operand(analysis, mixed).name(),
                                            target.is_difference ? "has the two shares exchanged"
                                                                 : "is a difference of these two, not their sum"))
            .note_at(noisy->node, "data and noise are mixed here")
            .fix("of alpha * x + sigma * noise the velocity is alpha * noise - sigma * x");
        return;
      }
    }
  }

  struct Noisy {
    NodeId node = NodeId::kNone;
    bool is_exchanged = false;  ///< each has the share that the other one has in the target
  };

  /// The sum of both with the same two shares that a layer reads.
  static std::optional<Noisy> mixed_of(const Expressions& expressions, const Part& first, const Part& second) {
    constexpr std::size_t kMaxValues = 8;
    if (are_equal(expressions, first.share, second.share)) return std::nullopt;
    std::vector<ValueId> same{first.of};
    for (std::size_t i = 0; i < same.size() && same.size() < kMaxValues; ++i)
      for (const NodeId product : expressions.users(same[i])) {
        const ValueId result = expressions.result(product);
        if (result == ValueId::kAbsent) continue;
        if (ops::repeats_elements(expressions.op(product)) || expressions.op(product) == Opcode::kCast)
          same.push_back(result);
        if (expressions.op(product) != Opcode::kMul) continue;
        const ValueId share = before_stretch(expressions, expressions.beside(product, same[i]));
        const bool has_own = are_equal(expressions, share, first.share);
        if (!has_own && !are_equal(expressions, share, second.share)) continue;
        for (const NodeId sum : expressions.users(result)) {
          const ValueId other = expressions.beside(sum, result);
          if (expressions.op(sum) != Opcode::kAdd || other == ValueId::kAbsent ||
              !is_product_of(expressions, other, has_own ? second.share : first.share, second.of) ||
              !is_fed_to_layer(expressions, expressions.result(sum)))
            continue;
          return Noisy{sum, !has_own};
        }
      }
    return std::nullopt;
  }

  /// Perhaps joined with the step, or scaled.
  static bool is_fed_to_layer(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMaxReaders = 16;
    std::vector<ValueId> pending{value};
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxReaders; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (opcode == Opcode::kConv || opcode == Opcode::kMatMul || opcode == Opcode::kRecurrence) return true;
        if (result != ValueId::kAbsent &&
            (ops::moves_elements(opcode) || opcode == Opcode::kConcat || opcode == Opcode::kNormalize ||
             opcode == Opcode::kCast || opcode == Opcode::kMul || opcode == Opcode::kAdd || opcode == Opcode::kDiv))
          pending.push_back(result);
      }
    return false;
  }

  static bool is_product_of(const Expressions& expressions, ValueId product, ValueId share, ValueId of) {
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
      if (factor(expressions, product, side) == of &&
          are_equal(expressions, factor(expressions, product, 1 - side), share))
        return true;
    return false;
  }

  static bool are_equal(const Expressions& expressions, ValueId a, ValueId b) {
    return a != ValueId::kAbsent && b != ValueId::kAbsent && are_computed_alike(expressions, a, b);
  }

  /// Of a product of two that are no numbers.
  static ValueId factor(const Expressions& expressions, ValueId product, std::size_t side) {
    const NodeId node =
        product == ValueId::kAbsent ? NodeId::kNone : expressions.producer(before_stretch(expressions, product));
    const ValueId found = expressions.operand(node, side);
    return expressions.op(node) != Opcode::kMul || found == ValueId::kAbsent || with_number(expressions, node)
               ? ValueId::kAbsent
               : before_stretch(expressions, found);
  }

  static std::optional<Mixture> mixture_of(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(before_stretch(expressions, value));
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kNeg) {
        value = expressions.operand(node, 0);
        continue;
      }
      if (opcode != Opcode::kAdd && opcode != Opcode::kSub) return std::nullopt;
      Mixture mixture{node, expressions.operand(node, 0), expressions.operand(node, 1), opcode == Opcode::kSub};
      for (ValueId* part : {&mixture.first, &mixture.second}) {
        if (*part == ValueId::kAbsent) return std::nullopt;
        const NodeId minus = expressions.producer(before_stretch(expressions, *part));
        if (expressions.op(minus) != Opcode::kNeg) continue;
        *part = expressions.operand(minus, 0);
        mixture.is_difference = !mixture.is_difference;
      }
      return mixture;
    }
    return std::nullopt;
  }
};

const RegisterRule<VelocityMisbuilt> kRegisterVelocityMisbuilt;

}  // namespace
}  // namespace tensorlint::rules
