#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/masks.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class PolicyWithoutMinus : public Rule {
 public:
  PolicyWithoutMinus()
      : Rule({"TL-L384", "policy-without-minus", "loss", findings::Severity::kWarning,
              "a policy gradient that makes actions less probable the more they are rewarded"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.empty() || !has_node(out, {Opcode::kMul}) || !has_named_input(view.analysis())) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    Term wrong;
    for (const ValueId output : outputs)
      for (const AddedReduction& reduction : added_reductions(expressions, output)) {
        Term term;
        term.sign = reduction.factor;
        read_factors(expressions, expressions.operand(reduction.node, 0), term, 0);
        if (!term.is_known || term.logarithm == ValueId::kAbsent || term.weight == ValueId::kAbsent) continue;
        // Beside a loss that is right the same term may be a metric, as what is to rise.
        if (term.sign < 0) return;
        if (output == outputs.front() && wrong.product == NodeId::kNone) wrong = term;
      }
    if (wrong.product == NodeId::kNone) return;
    out.report(wrong.product, fmt::format("the loss rises with the probabilities of actions times {}: it falls as "
                                          "rewarded actions get less probable",
                                          Operand(view.analysis(), wrong.input).name()))
        .origin(Operand(view.analysis(), wrong.logarithm), Aspect::kValue)
        .fix("put a minus in front of it: -(log_prob * advantage).mean()");
  }

 private:
  static constexpr int kMaxDepth = 20, kMaxValues = 48;

  struct Term {
    double sign = 1;  ///< of what is added to the loss, as the logarithm and the reward rise
    ValueId logarithm = ValueId::kAbsent, weight = ValueId::kAbsent, input = ValueId::kAbsent;
    NodeId product = NodeId::kNone;
    bool is_known = true;   ///< each factor
    int left = kMaxValues;  ///< factors that may still be read
  };

  static bool is_named_reward(std::string_view name) {
    constexpr std::array<std::string_view, 12> kRewards{"reward",    "rewards",    "rew", "rews",
                                                        "return",    "returns",    "ret", "rets",
                                                        "advantage", "advantages", "adv", "advs"};
    constexpr std::array<std::string_view, 7> kOpposite{"neg",   "negative", "minus", "cost",
                                                        "costs", "penalty",  "regret"};
    constexpr std::size_t kShortest = 3, kLongest = 10;  // of these words
    bool found = false;
    for (std::size_t at = 0; at <= name.size();) {
      const std::size_t end = std::min(name.find('_', at), name.size());
      const std::string_view part = name.substr(at, end - at);
      const auto is_part = [&](std::string_view word) { return part.size() == word.size() && has_ending(part, word); };
      at = end + 1;
      if (part.size() < kShortest || part.size() > kLongest) continue;
      if (std::ranges::any_of(kOpposite, is_part)) return false;
      found = found || std::ranges::any_of(kRewards, is_part);
    }
    return found;
  }

  static bool is_reward(const dataflow::Analysis& analysis, ValueId value) {
    if (value == ValueId::kAbsent || !is_input(analysis, value)) return false;
    return is_named_reward(telling_name(analysis, value));
  }

  static bool has_named_input(const dataflow::Analysis& analysis) {
    for (const ValueId input : analysis.inputs(GraphId::kMain))
      if (is_reward(analysis, input)) return true;
    return false;
  }

  /// What a product is made of, and whether it rises with each.
  static void read_factors(const Expressions& expressions, ValueId value, Term& term, int depth) {
    if (value == ValueId::kAbsent || depth > kMaxDepth || !term.is_known || term.left-- <= 0) {
      term.is_known = false;
      return;
    }
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
    if (const double rises = rises_with_logarithm(expressions, value, 0); rises != 0) {
      term.is_known = term.logarithm == ValueId::kAbsent;
      term.sign *= rises;
      term.logarithm = value;
      return;
    }
    const auto numbered = with_number(expressions, node);
    if (opcode == Opcode::kNeg || opcode == Opcode::kReduceSum || opcode == Opcode::kReduceMean) {
      term.sign = opcode == Opcode::kNeg ? -term.sign : term.sign;
      read_factors(expressions, first, term, depth + 1);
      return;
    }
    if (opcode == Opcode::kMul && numbered) {
      term.sign *= numbered->number;
      read_factors(expressions, numbered->value, term, depth + 1);
      return;
    }
    if (opcode == Opcode::kMul) {
      const bool was_read = term.logarithm != ValueId::kAbsent || term.weight != ValueId::kAbsent;
      read_factors(expressions, first, term, depth + 1);
      read_factors(expressions, second, term, depth + 1);
      if (!was_read && term.logarithm != ValueId::kAbsent && term.weight != ValueId::kAbsent &&
          term.product == NodeId::kNone)
        term.product = node;
      return;
    }
    if (opcode == Opcode::kDiv && second != ValueId::kAbsent && is_never_negative(expressions, second)) {
      read_factors(expressions, first, term, depth + 1);
      return;
    }
    int left = kMaxValues;
    ValueId input = ValueId::kAbsent;
    if (const double rises = rises_with_reward(expressions, value, left, input); rises != 0) {
      term.is_known = term.weight == ValueId::kAbsent;
      term.sign *= rises;
      term.weight = value;
      term.input = input;
      return;
    }
    term.is_known = is_never_negative(expressions, value) || is_mask(expressions, value);
  }

  /// 1 for the logarithm of the probability of an action, or a power of e of it, less one that is read; -1 for what
  /// falls with it; 0 for anything else.
  static double rises_with_logarithm(const Expressions& expressions, ValueId value, int depth) {
    constexpr int kMaxLogarithmDepth = 6;
    if (value == ValueId::kAbsent || depth > kMaxLogarithmDepth) return 0;
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    const ValueId first = expressions.operand(node, 0);
    if (const ops::OpEntry* entry = expressions.entry(node);
        entry != nullptr && entry->loss() && ops::takes_class_indices(*entry->loss())) {
      const Attribute* reduction = expressions.analysis().attribute(node, "reduction");
      return reduction != nullptr && reduction->s == "none" ? -1 : 0;
    }
    switch (expressions.op(node)) {
      case Opcode::kNeg:
        return -rises_with_logarithm(expressions, first, depth + 1);
      case Opcode::kExp:
        return rises_with_logarithm(expressions, first, depth + 1);
      case Opcode::kSub: {
        const ValueId old = expressions.operand(node, 1);
        return old != ValueId::kAbsent && is_input(expressions.analysis(), before_stretch(expressions, old))
                   ? rises_with_logarithm(expressions, first, depth + 1)
                   : 0;
      }
      case Opcode::kGatherElements:
      case Opcode::kGatherND:
        return is_log_probability(expressions, first) ? 1 : 0;
      case Opcode::kReduceSum: {
        const NodeId product = expressions.producer(expressions.operand(node, 0));
        if (expressions.op(product) != Opcode::kMul) return 0;
        for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
          const ValueId hot = expressions.operand(product, side);
          if (hot == ValueId::kAbsent) continue;
          const Opcode marks = expressions.op_of(before_stretch(expressions, hot));
          if ((marks == Opcode::kOneHot || marks == Opcode::kEqual) &&
              is_log_probability(expressions, expressions.operand(product, 1 - side)))
            return 1;
        }
        return 0;
      }
      default:
        return 0;
    }
  }

  static bool is_log_probability(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    value = before_stretch(expressions, value);
    if (const auto softmax = expressions.normalised(value)) return softmax->logarithm;
    const NodeId log = expressions.producer(value);
    if (expressions.op(log) != Opcode::kLog) return false;
    const auto inner = expressions.normalised(before_guard(expressions, expressions.operand(log, 0)));
    return inner && !inner->logarithm;
  }

  /// 1 where the value rises with an input that is called a reward, -1 where it falls with it, 0 where it is not
  /// computed from one, or in a way that is not followed.
  static double rises_with_reward(const Expressions& expressions, ValueId value, int& left, ValueId& input) {
    if (value == ValueId::kAbsent || left-- <= 0 || expressions.is_spent()) return 0;
    expressions.charge(4);
    value = before_moves(expressions, value);
    if (is_reward(expressions.analysis(), value)) {
      input = value;
      return 1;
    }
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    const auto side = [&](std::size_t i) {
      return rises_with_reward(expressions, expressions.operand(node, i), left, input);
    };
    const auto is_never_negative_at = [&](std::size_t i) {
      const ValueId operand = expressions.operand(node, i);
      return operand != ValueId::kAbsent && (is_never_negative(expressions, operand) || is_mask(expressions, operand));
    };
    switch (opcode) {
      case Opcode::kNeg:
        return -side(0);
      case Opcode::kReduceSum:
      case Opcode::kReduceMean:
      case Opcode::kCumSum:
      case Opcode::kClip:
        return side(0);
      case Opcode::kAdd: {
        const double a = side(0), b = side(1);
        return a == 0 || b == 0 || a == b ? (a == 0 ? b : a) : 0;
      }
      case Opcode::kSub: {
        const double a = side(0), b = side(1);
        if (a == 0 || b == 0) return a == 0 ? -b : a;
        // Less their mean, or less a baseline of others.
        const ValueId mean = before_stretch(expressions, expressions.operand(node, 1));
        return expressions.op_of(mean) == Opcode::kReduceMean ? a : 0;
      }
      case Opcode::kMul:
        if (const auto numbered = with_number(expressions, node)) {
          const double rises = rises_with_reward(expressions, numbered->value, left, input);
          return numbered->number < 0 ? -rises : numbered->number > 0 ? rises : 0;
        }
        if (is_never_negative_at(1)) return side(0);
        return is_never_negative_at(0) ? side(1) : 0;
      case Opcode::kDiv:
        if (const auto numbered = with_number(expressions, node))
          return numbered->is_first ? 0 : numbered->number < 0 ? -side(0) : side(0);
        return is_never_negative_at(1) ? side(0) : 0;
      case Opcode::kMatMul:
        if (is_never_negative_at(1)) return side(0);
        return is_never_negative_at(0) ? side(1) : 0;
      case Opcode::kWhere:
        if (expressions.is_number(expressions.operand(node, 2), 0)) return side(1);
        return expressions.is_number(expressions.operand(node, 1), 0) ? side(2) : 0;
      default:
        return 0;
    }
  }
};

const RegisterRule<PolicyWithoutMinus> kRegisterPolicyWithoutMinus;

}  // namespace
}  // namespace tensorlint::rules
