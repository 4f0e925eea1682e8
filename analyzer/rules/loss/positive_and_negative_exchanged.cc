#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class PositiveAndNegativeExchanged : public Rule {
 public:
  PositiveAndNegativeExchanged()
      : Rule(
            {"TL-L343", "positive-and-negative-exchanged", "loss", findings::Severity::kWarning,
             "a ranking loss that draws what an input calls negative near, and what another one calls positive away"}) {
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.size() != 1 || !has_named_inputs(view.analysis())) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    // The loss rises with these: hinges, softplus, minus the logarithm of a sigmoid.
    each_node(view, out, {Opcode::kSub}, [&](const Expressions&, const NodeCall& call) {
      const Side first = side_of(expressions, call.operand(0).value()),
                 second = side_of(expressions, call.operand(1).value());
      if (first.kind == Kind::kNone || first.kind != second.kind || first.is_positive == second.is_positive) return;
      const LossWay way = loss_way(expressions, call.result(), outputs[0]);
      // Right: distances of positives and similarities of negatives are costs.
      const bool costs_positive = (way == LossWay::kRises) == first.is_positive;
      if (way == LossWay::kUnknown || costs_positive == (first.kind == Kind::kDistance)) return;
      out.report(call.id(),
                 fmt::format("the loss falls as the {} of {} rises and that of {} falls",
                             first.kind == Kind::kDistance ? "distance" : "similarity",
                             name(call, first.is_positive == (first.kind == Kind::kDistance) ? first : second),
                             name(call, first.is_positive == (first.kind == Kind::kDistance) ? second : first)))
          .fix("exchange the two sides of the difference");
    });
  }

 private:
  enum class Kind { kNone, kDistance, kSimilarity };
  struct Side {
    Kind kind = Kind::kNone;
    bool is_positive = false;
    ValueId input = ValueId::kAbsent;
  };

  static std::string name(const NodeCall& call, const Side& side) {
    return Operand(call.analysis(), side.input).name();
  }

  enum class Naming { kNeither, kPositive, kNegative };
  static constexpr std::array<std::string_view, 11> kPositive{"pos",     "positive", "positives", "same",
                                                              "similar", "match",    "matches",   "matching",
                                                              "matched", "related",  "relevant"};
  static constexpr std::array<std::string_view, 13> kNegative{
      "neg",       "negative",   "negatives", "other",     "others",     "different", "dissimilar",
      "unsimilar", "mismatched", "unmatched", "unrelated", "irrelevant", "impostor"};
  static constexpr std::size_t kShortest = 3, kLongest = 10;  ///< of these words
  static bool is_among(std::span<const std::string_view> words, std::string_view word) {
    return word.size() >= kShortest && word.size() <= kLongest && std::ranges::find(words, word) != words.end();
  }

  /// By a part of the name between underscores.
  static Naming naming_of(std::string_view name) {
    Naming found = Naming::kNeither;
    for (std::size_t at = 0; at <= name.size();) {
      const std::size_t end = std::min(name.find('_', at), name.size());
      const std::string_view part = name.substr(at, end - at);
      const bool positive = is_among(kPositive, part), negative = is_among(kNegative, part);
      if ((positive || negative) && found != Naming::kNeither) return Naming::kNeither;
      if (positive) found = Naming::kPositive;
      if (negative) found = Naming::kNegative;
      at = end + 1;
    }
    return found;
  }

  static Naming naming_of(const dataflow::Analysis& analysis, ValueId value) {
    if (value == ValueId::kAbsent || !is_input(analysis, value)) return Naming::kNeither;
    return naming_of(telling_name(analysis, value));
  }

  static bool has_named_inputs(const dataflow::Analysis& analysis) {
    bool positive = false, negative = false;
    for (const ValueId input : analysis.inputs(GraphId::kMain)) {
      const Naming named = naming_of(analysis, input);
      positive = positive || named == Naming::kPositive;
      negative = negative || named == Naming::kNegative;
    }
    return positive && negative;
  }

  /// A distance or a similarity of something with what one named input gives.
  static Side side_of(const Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    Side side;
    bool is_mixed = false;
    const auto visit = [&](ValueId operand) {
      const Naming named = naming_of(analysis, operand);
      if (named == Naming::kNeither) return;
      is_mixed = is_mixed || (side.input != ValueId::kAbsent && side.is_positive != (named == Naming::kPositive));
      side.is_positive = named == Naming::kPositive;
      side.input = operand;
    };
    if (value == ValueId::kAbsent) return {};
    value = before_margin(expressions, value);
    walk_back(expressions, value, [&](ValueId, NodeId node) {
      // The number of samples, of whichever input it was read.
      if (expressions.op(node) == Opcode::kShape) return false;
      for (const ValueId operand : analysis.operands(node)) visit(operand);
      return !is_mixed;
    });
    if (is_mixed || side.input == ValueId::kAbsent) return {};
    side.kind = kind_of(expressions, value, 0);
    return side;
  }

  static bool is_cosine(const Expressions& expressions, ValueId value) {
    const auto cosine = cosine_of(expressions, value);
    return cosine && cosine->both_divided && !cosine->is_of_itself;
  }

  /// Sums of squared or absolute differences, and their roots; sums of products, perhaps with biases that are looked
  /// up.
  static Kind kind_of(const Expressions& expressions, ValueId value, int depth) {
    constexpr int kMaxDepth = 6;
    if (value == ValueId::kAbsent || depth > kMaxDepth) return Kind::kNone;
    value = before_guard(expressions, value);
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
    const auto is_difference = [&](ValueId of) {
      return of != ValueId::kAbsent && expressions.op_of(before_guard(expressions, of)) == Opcode::kSub;
    };
    if (opcode == Opcode::kSqrt)
      return kind_of(expressions, first, depth + 1) == Kind::kDistance ? Kind::kDistance : Kind::kNone;
    if (opcode == Opcode::kReduceL1 || opcode == Opcode::kReduceL2 || opcode == Opcode::kReduceSumSquare)
      return is_difference(first) ? Kind::kDistance : Kind::kNone;
    if (opcode == Opcode::kPow && expressions.is_number(second, 0.5)) return kind_of(expressions, first, depth + 1);
    if (opcode == Opcode::kReduceSum || opcode == Opcode::kReduceMean) {
      if (first == ValueId::kAbsent) return Kind::kNone;
      const ValueId summed = before_stretch(expressions, first);
      const NodeId inner = expressions.producer(summed);
      if (const ValueId base = expressions.square_base(summed); base != ValueId::kAbsent)
        return is_difference(base) ? Kind::kDistance : Kind::kNone;
      if (expressions.op(inner) == Opcode::kAbs)
        return is_difference(expressions.operand(inner, 0)) ? Kind::kDistance : Kind::kNone;
      return expressions.op(inner) == Opcode::kMul && !with_number(expressions, inner) ? Kind::kSimilarity
                                                                                       : Kind::kNone;
    }
    // One less a cosine.
    if (const ValueId rest = expressions.complement(value);
        rest != ValueId::kAbsent && opcode == Opcode::kSub && expressions.is_number(first, 1))
      return kind_of(expressions, rest, depth + 1) == Kind::kSimilarity ? Kind::kDistance : Kind::kNone;
    if (opcode == Opcode::kDiv || opcode == Opcode::kMatMul || opcode == Opcode::kEinsum)
      return is_cosine(expressions, value) ? Kind::kSimilarity : Kind::kNone;
    if (opcode == Opcode::kAdd && !with_number(expressions, node)) {
      const auto is_bias = [&](ValueId of) {
        return of != ValueId::kAbsent && expressions.op_of(before_stretch(expressions, of)) == Opcode::kGather;
      };
      if (is_bias(second)) return kind_of(expressions, first, depth + 1);
      if (is_bias(first)) return kind_of(expressions, second, depth + 1);
    }
    return Kind::kNone;
  }
};

const RegisterRule<PositiveAndNegativeExchanged> kRegisterPositiveAndNegativeExchanged;

}  // namespace
}  // namespace tensorlint::rules
