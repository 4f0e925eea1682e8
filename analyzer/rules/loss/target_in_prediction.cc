#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/loss/token_shift.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class TargetInPrediction : public Rule {
 public:
  TargetInPrediction()
      : Rule({"TL-L313", "target-in-prediction", "loss", findings::Severity::kWarning,
              "a prediction that is computed from the very tokens, or the column of a table, that it is to predict"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::takes_class_indices(loss.kind) || analysis.has_failed(loss.anchor)) return;
    auto& [expressions, origins] = out.shared<losses::LossAxes>();
    const StepsOf target = steps_of(expressions, before_views(expressions, loss.target));
    const ValueId tokens = target.of;
    if (tokens == ValueId::kAbsent || !is_input(analysis, tokens) ||
        !analysis.fact(tokens).dtypes.proves(DTypeSet::integers()) || expressions.dims(tokens).size() < 2)
      return;
    const NodeId lookup = looked_up(expressions, loss.prediction, tokens);
    if (lookup == NodeId::kNone) return;
    const ValueId read = before_views(expressions, expressions.operand(lookup, 1));
    const StepsOf scores = steps_of(expressions, before_layout(expressions, loss.prediction));
    // Position t of the scores has read element t + `seen`, and is to predict element t + `target.start`.
    const std::int64_t seen = scores.start + steps_of(expressions, read).start;
    if (target.start > seen) return;
    // A model that reads from the end predicts earlier tokens.
    if (target.start < seen && reads_from_the_end(expressions, loss.prediction)) return;
    // The steps of the scores are those of the tokens: none have been left out, pooled or copied.
    const auto axes = origins.of(scores.of);
    const auto is_step = [&](const losses::AxisSource& source) { return source.value == read && source.axis == 1; };
    const bool keeps_steps = std::ranges::any_of(
        axes, [&](const losses::AxisOrigins::Sources& sources) { return std::ranges::any_of(sources, is_step); });
    if (!keeps_steps) return;
    out.report(loss.anchor, fmt::format("each element of {} is predicted from {}", Operand(analysis, tokens).name(),
                                        target.start == seen ? "itself" : "a later one, which has been read after it"))
        .note_at(lookup, "the same elements are looked up here")
        .fix("predict the next elements: scores[:, :-1] against tokens[:, 1:]");
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    const losses::LossSite* found = nullptr;
    std::optional<Column> column;
    for (const losses::LossSite& loss : view.losses()) {
      if (loss.target == ValueId::kAbsent || loss.prediction == ValueId::kAbsent ||
          view.analysis().has_failed(loss.anchor))
        continue;
      const auto of_table = column_of(expressions, loss.target);
      // What restores several columns, or all of them, is to read them.
      if (column && (!of_table || of_table->at != column->at || of_table->table != column->table)) return;
      if (!of_table) {
        if (is_part_of_table(expressions, loss.target)) return;
        continue;
      }
      if (!column) found = &loss;
      column = of_table;
    }
    if (found == nullptr) return;
    const NodeId layer = reads_table(expressions, found->prediction, *column);
    if (layer == NodeId::kNone) return;
    out.report(column->pick,
               fmt::format("the target is column {} of {}, and the prediction is computed from all of its "
                           "columns: it need only copy that one",
                           column->at, Operand(view.analysis(), column->table).name()))
        .note_at(layer, "all columns are read here")
        .fix("leave the column of the target out of what is read: x[:, :-1] for the last one");
  }

 private:
  /// One column of an input [N, columns].
  struct Column {
    ValueId table = ValueId::kAbsent;
    std::int64_t at = 0;
    NodeId pick = NodeId::kNone;
  };

  static std::optional<Column> column_of(const Expressions& expressions, ValueId target) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const NodeId pick = expressions.producer(before_views(expressions, target));
    const Opcode opcode = expressions.op(pick);
    if (opcode != Opcode::kGather && opcode != Opcode::kSlice) return std::nullopt;
    const ValueId table = expressions.operand(pick, 0);
    const auto dims = expressions.dims(table);
    const DimPool& pool = analysis.facts().dims();
    const auto columns = dims.size() == 2 ? pool.as_constant(dims[1]) : std::nullopt;
    if (!columns || *columns < 3 || !is_input(analysis, table)) return std::nullopt;
    const auto first = expressions.number(expressions.operand(pick, 1));
    double along = 0;
    if (opcode == Opcode::kGather) {
      const Attribute* axis = analysis.attribute(pick, "axis");
      along = axis == nullptr ? 0 : static_cast<double>(axis->i);
    } else {
      const auto after = expressions.dims(expressions.result(pick));
      const auto axis = expressions.number(expressions.operand(pick, 3));
      if (!axis || after.size() != 2 || !pool.is_constant(after[1], 1)) return std::nullopt;
      along = *axis;
    }
    const double count = static_cast<double>(*columns);
    // A slice may begin before the first column, and what is out of range is reported elsewhere.
    if (!first || (along != 1 && along != -1) || !(*first >= -count && *first < count)) return std::nullopt;
    const auto at = static_cast<std::int64_t>(*first);
    return Column{table, at < 0 ? at + *columns : at, pick};
  }

  static bool is_part_of_table(const Expressions& expressions, ValueId target) {
    const ValueId from = before_moves(expressions, target);
    return is_input(expressions.analysis(), from) && expressions.dims(from).size() == 2;
  }

  /// A layer that takes all columns as they are, perhaps shifted and scaled, and weighs the one too.
  static NodeId reads_table(const Expressions& expressions, ValueId prediction, const Column& column) {
    NodeId found = NodeId::kNone;
    bool is_altered = false;
    walk_back(expressions, prediction, [&](ValueId, NodeId node) {
      is_altered = is_altered || expressions.op(node) == Opcode::kWhere;
      if (expressions.op(node) != Opcode::kMatMul) return !is_altered;
      const ValueId read = expressions.operand(node, 0), weights = expressions.operand(node, 1);
      if (read == ValueId::kAbsent || weights == ValueId::kAbsent || before_affine(expressions, read) != column.table ||
          !is_constant(expressions, weights))
        return !is_altered;
      if (weighs_column(expressions, node, weights, column.at)) found = node;
      return !is_altered;
    });
    return is_altered ? NodeId::kNone : found;
  }

  static ValueId before_affine(const Expressions& expressions, ValueId value) {
    constexpr int kMaxAffineSteps = 8;
    for (int step = 0; step < kMaxAffineSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
      const bool shifts = (opcode == Opcode::kAdd || opcode == Opcode::kSub) && is_constant(expressions, second);
      const bool scales = (opcode == Opcode::kMul || opcode == Opcode::kDiv) && has_no_zero(expressions, second);
      if (first == ValueId::kAbsent || (!shifts && !scales && opcode != Opcode::kCast && opcode != Opcode::kIdentity))
        break;
      value = first;
    }
    return value;
  }

  /// Numbers that leave no column out.
  static bool has_no_zero(const Expressions& expressions, ValueId value) {
    const auto numbers = constant_numbers(expressions, value);
    return numbers && std::ranges::find(*numbers, 0.0) == numbers->end();
  }

  /// Its weights are not all 0, as those are of what is masked.
  static bool weighs_column(const Expressions& expressions, NodeId layer, ValueId weights, std::int64_t column) {
    const auto dims = expressions.dims(weights);
    const auto numbers = constant_numbers(expressions, weights);
    if (!numbers || dims.size() != 2) return true;
    const Attribute* turned = expressions.analysis().attribute(layer, "transB");
    const bool is_turned = turned != nullptr && turned->i != 0;
    const DimPool& pool = expressions.analysis().facts().dims();
    const auto rows = pool.as_constant(dims[0]), columns = pool.as_constant(dims[1]);
    if (!rows || !columns || static_cast<std::int64_t>(numbers->size()) != *rows * *columns) return true;
    for (std::int64_t i = 0; i < (is_turned ? *rows : *columns); ++i) {
      const std::int64_t at = is_turned ? i * *columns + column : column * *columns + i;
      if (at < static_cast<std::int64_t>(numbers->size()) && (*numbers)[static_cast<std::size_t>(at)] != 0) return true;
    }
    return false;
  }

  /// A table that the scores are computed from, looked up at the tokens as they are; kNone where another value than
  /// that chooses among the rows, as of a part that is masked.
  static NodeId looked_up(const Expressions& expressions, ValueId scores, ValueId tokens) {
    NodeId found = NodeId::kNone;
    bool is_altered = false;
    walk_back(expressions, scores, [&](ValueId, NodeId node) {
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kGather &&
          steps_of(expressions, before_views(expressions, expressions.operand(node, 1))).of == tokens &&
          expressions.analysis().fact(expressions.operand(node, 0)).dtypes.proves(DTypeSet::floats()))
        found = node;
      // Words that are dropped or replaced: not all of them are known. Scores that are hidden are no words.
      const auto hides = [&](std::size_t side) {
        return expressions.number(expressions.operand(node, side)).value_or(0) < -1e3;
      };
      is_altered |= opcode == Opcode::kDropout || (opcode == Opcode::kWhere && !hides(1) && !hides(2));
      return !is_altered;
    });
    return is_altered ? NodeId::kNone : found;
  }
};

const RegisterRule<TargetInPrediction> kRegisterTargetInPrediction;

}  // namespace
}  // namespace tensorlint::rules
