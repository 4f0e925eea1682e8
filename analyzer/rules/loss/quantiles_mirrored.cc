#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/formula.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using losses::Formula;
using ops::Opcode;

class QuantilesMirrored : public Rule {
 public:
  QuantilesMirrored()
      : Rule({"TL-L396", "quantiles-mirrored", "loss", findings::Severity::kWarning,
              "a pinball loss that weighs predictions which are too large with q, where it has to be 1 - q"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    constexpr std::size_t kMaxTerms = 8;
    const std::vector<ValueId> outputs = one_float_outputs(view.analysis());
    if (outputs.empty()) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    std::size_t left = kMaxTerms;
    Visited<ValueId> seen(view.analysis().meter());
    for (const ValueId output : outputs)
      walk_back(expressions, output, [&](ValueId value, NodeId node) {
        if (left == 0 || !is_reduction_or_elementwise(expressions, node)) return false;
        const Opcode opcode = expressions.op(node);
        if (opcode != Opcode::kReduceMean && opcode != Opcode::kReduceSum) return true;
        const ValueId summed = expressions.operand(node, 0);
        const Opcode inner = expressions.op_of(summed);
        if (inner == Opcode::kReduceMean || inner == Opcode::kReduceSum || !seen.insert(value)) return true;
        --left;
        check_term(expressions, summed, out);
        return false;
      });
  }

 private:
  /// A constant that the formula has as it is: one number for each of some predictions.
  struct Table {
    std::size_t part = 0;
    std::vector<double> numbers;
  };
  struct Error {
    std::size_t prediction = 0, target = 0;
    NodeId node = NodeId::kNone;
  };

  static void check_term(const Expressions& expressions, ValueId term, Reporter& out) {
    const Formula formula(expressions, term);
    if (!formula.is_complete()) return;
    const std::vector<Table> tables = tables_of(expressions, formula);
    const auto levels = std::ranges::find_if(tables, [](const Table& table) { return are_levels(table.numbers); });
    if (levels == tables.end()) return;
    const auto error = error_of(expressions, formula);
    if (!error || !are_weighed_with_levels(formula, tables, levels->numbers, *error)) return;
    const Operand prediction(expressions.analysis(), formula.parts()[error->prediction].value);
    out.report(error->node,
               fmt::format("errors are weighed with the quantile where {} is too large, and with what it lacks "
                           "to 1 where that is too small: the output for {:.4g} learns {:.4g}",
                           prediction.name(), levels->numbers[0], 1 - levels->numbers[0]))
        .origin(Operand(expressions.analysis(), formula.parts()[levels->part].value), Aspect::kValue)
        .fix("subtract the prediction from the target: error = target - prediction");
  }

  static std::vector<Table> tables_of(const Expressions& expressions, const Formula& formula) {
    constexpr std::size_t kMaxLevels = 64;
    std::vector<Table> tables;
    const auto parts = formula.parts();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != Formula::PartKind::kLeaf || parts[i].value == ValueId::kAbsent) continue;
      auto numbers = constant_numbers(expressions.analysis(), before_stretch(expressions, parts[i].value), kMaxLevels);
      if (numbers && numbers->size() > 1) tables.push_back({i, std::move(*numbers)});
    }
    return tables;
  }

  static bool are_levels(const std::vector<double>& numbers) {
    return numbers.front() > 0 && numbers.back() < 1 &&
           std::ranges::adjacent_find(numbers, [](double a, double b) { return !(a < b); }) == numbers.end();
  }

  /// The one difference of what a layer predicts and what is given.
  static std::optional<Error> error_of(const Expressions& expressions, const Formula& formula) {
    const auto parts = formula.parts();
    const auto before_copies = [&](std::size_t part) {
      while (parts[part].kind == Formula::PartKind::kSame && !parts[part].operands.empty() &&
             parts[part].operands[0] != Formula::kNoPart)
        part = parts[part].operands[0];
      return part;
    };
    std::optional<Error> found;
    for (const Formula::Part& part : parts) {
      if (expressions.op(part.node) != Opcode::kSub || part.operands.size() != 2 ||
          part.operands[0] == Formula::kNoPart || part.operands[1] == Formula::kNoPart)
        continue;
      const std::array sides{before_copies(part.operands[0]), before_copies(part.operands[1])};
      bool predicted[2] = {};
      bool is_known = true;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const Formula::Part& operand = parts[sides[side]];
        is_known = is_known && operand.kind != Formula::PartKind::kConstant && operand.value != ValueId::kAbsent &&
                   !is_constant(expressions, before_stretch(expressions, operand.value));
        predicted[side] = is_known && comes_from_layer(expressions, operand.value);
      }
      if (!is_known || predicted[0] == predicted[1]) continue;
      const std::size_t at = predicted[0] ? 0 : 1;
      if (found && (found->prediction != sides[at] || found->target != sides[1 - at])) return std::nullopt;
      if (!found) found = Error{sides[at], sides[1 - at], part.node};
    }
    return found;
  }

  /// Of each prediction the loss rises above the target as the level says, and below it as the rest of it does.
  static bool are_weighed_with_levels(const Formula& formula, const std::vector<Table>& tables,
                                      const std::vector<double>& levels, const Error& error) {
    constexpr double kRounding = 1e-4;
    bool is_lopsided = false;
    for (std::size_t i = 0; i < levels.size(); ++i)
      for (const double target : {0.4, -0.7})
        for (const double size : {0.25, 0.5}) {
          std::vector<Formula::Assignment> given{{error.target, target}, {error.prediction, target}};
          for (const Table& table : tables) {
            if (table.numbers.size() != levels.size()) return false;
            given.push_back({table.part, table.numbers[i]});
          }
          const auto at = [&](double prediction) {
            given[1].value = prediction;
            return formula.evaluate(given, 0);
          };
          const double least = at(target), above = at(target + size) - least, below = at(target - size) - least;
          if (!(above > 0) || !(below > 0) || std::abs(above / (above + below) - levels[i]) > kRounding) return false;
          is_lopsided |= std::abs(levels[i] - 0.5) > 1e-2;
        }
    return is_lopsided;
  }
};

const RegisterRule<QuantilesMirrored> kRegisterQuantilesMirrored;

}  // namespace
}  // namespace tensorlint::rules
