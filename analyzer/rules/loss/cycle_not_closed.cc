#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class CycleNotClosed : public Rule {
 public:
  CycleNotClosed()
      : Rule({"TL-L397", "cycle-not-closed", "loss", findings::Severity::kWarning,
              "what two networks in a row make of a sample, compared with something else than that sample"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    if (view.losses().size() < 2 || one_float_outputs(view.analysis()).empty()) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const std::vector<Compared> terms = terms_of(expressions, view);
    for (const Compared& term : terms) {
      if (term.made.layers.size() < 2 || is_closed(term) || is_closed_elsewhere(terms, term)) continue;
      const auto other = std::ranges::find_if(
          terms, [&](const Compared& other) { return are_two_ways(term, other) && goes_astray(term, other); });
      if (other == terms.end()) continue;
      const dataflow::Analysis& analysis = view.analysis();
      out.report(term.node,
                 fmt::format("{} is made of {} by two networks in a row, and is compared with {}",
                             Operand(analysis, term.made.value).name(), Operand(analysis, term.made.input).name(),
                             Operand(analysis, term.with.value).name()))
          .note_at(other->node, fmt::format("here the same two begin with {}, in the other order",
                                            Operand(analysis, other->made.input).name()))
          .fix(
              fmt::format("compare it with {}, which the cycle began with", Operand(analysis, term.made.input).name()));
      return;
    }
  }

 private:
  /// What a value is computed from.
  struct Made {
    ValueId value = ValueId::kAbsent, input = ValueId::kAbsent;  ///< kAbsent: of none, or of several
    ValueId last = ValueId::kAbsent;                             ///< weights of the layer that comes last
    std::set<ValueId> layers{};
    bool is_complete = true;
  };
  struct Compared {
    NodeId node = NodeId::kNone;
    Made made, with;
  };

  static std::vector<Compared> terms_of(const Expressions& expressions, const ModelView& view) {
    constexpr std::size_t kMaxTerms = 16;
    std::vector<Compared> terms;
    for (const losses::LossSite& loss : view.losses()) {
      if (terms.size() >= kMaxTerms) break;
      if (!ops::is_regression(loss.kind) || loss.prediction == ValueId::kAbsent || loss.target == ValueId::kAbsent ||
          loss.anchor == NodeId::kNone || expressions.number(loss.target))
        continue;
      Compared term{loss.anchor, made_of(expressions, loss.prediction), made_of(expressions, loss.target)};
      // Of two that layers make, the one that more of them make.
      if (term.made.layers.size() < term.with.layers.size()) std::swap(term.made, term.with);
      if (term.made.is_complete && term.with.is_complete) terms.push_back(std::move(term));
    }
    return terms;
  }

  static Made made_of(const Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    Made made;
    made.value = before_stretch(expressions, value);
    bool is_of_several = false;
    const auto meet = [&](ValueId operand) {
      if (operand == ValueId::kAbsent || !is_input(analysis, operand)) return;
      is_of_several |= made.input != ValueId::kAbsent && made.input != operand;
      made.input = operand;
    };
    meet(made.value);
    made.is_complete = walk_back(expressions, made.value, [&](ValueId, NodeId node) {
      const Opcode opcode = expressions.op(node);
      const ValueId weights = expressions.operand(node, 1);
      if ((opcode == Opcode::kConv || opcode == Opcode::kMatMul) && weights != ValueId::kAbsent) {
        const ValueId table = before_stretch(expressions, weights);
        if (is_constant(expressions, table)) {
          if (made.last == ValueId::kAbsent) made.last = table;
          made.layers.insert(table);
        }
      }
      for (const ValueId operand : analysis.operands(node)) meet(operand);
      return true;
    });
    if (is_of_several) made.input = ValueId::kAbsent;
    return made;
  }

  static bool is_closed(const Compared& term) {
    return term.made.input == ValueId::kAbsent || term.with.value == term.made.input;
  }

  /// Another term compares the same with what it began with.
  static bool is_closed_elsewhere(const std::vector<Compared>& terms, const Compared& term) {
    return std::ranges::any_of(terms, [&](const Compared& other) {
      return other.made.value == term.made.value && other.with.value == term.made.input;
    });
  }

  /// The same layers made both of two inputs, and another one of them came last.
  static bool are_two_ways(const Compared& one, const Compared& other) {
    return one.made.input != ValueId::kAbsent && other.made.input != ValueId::kAbsent &&
           one.made.input != other.made.input && one.made.last != other.made.last &&
           one.made.layers == other.made.layers;
  }

  /// It is compared with the other sample, or with what one of the networks makes of either.
  static bool goes_astray(const Compared& term, const Compared& other) {
    const Made& with = term.with;
    if (with.value == other.made.input) return true;
    return !with.layers.empty() && with.layers.size() < term.made.layers.size() &&
           (with.input == term.made.input || with.input == other.made.input) &&
           (with.last == term.made.last || with.last == other.made.last) &&
           std::ranges::includes(term.made.layers, with.layers);
  }
};

const RegisterRule<CycleNotClosed> kRegisterCycleNotClosed;

}  // namespace
}  // namespace tensorlint::rules
