#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ColumnPredictedTwice : public Rule {
 public:
  ColumnPredictedTwice()
      : Rule({"TL-L398", "column-predicted-twice", "loss", findings::Severity::kWarning,
              "one column of the labels for two heads, and another one that nothing uses"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    constexpr std::size_t kMaxLosses = 64;
    if (view.losses().size() < 2 || view.losses().size() > kMaxLosses) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    std::map<ValueId, Labels> tables;
    for (const losses::LossSite& loss : view.losses()) {
      if (loss.prediction == ValueId::kAbsent || loss.target == ValueId::kAbsent || loss.anchor == NodeId::kNone)
        continue;
      const auto column = column_of(expressions, loss.target);
      if (!column) continue;
      Labels& labels = tables[column->table];
      const auto head = head_of(expressions, loss.prediction);
      if (!head || column->extent > kMaxColumns || (!labels.heads.empty() && column->axis != labels.axis))
        labels.is_other = true;
      if (labels.is_other) continue;
      labels.axis = column->axis;
      labels.extent = column->extent;
      std::vector<Use>& uses = labels.heads[column->index];
      if (std::ranges::none_of(uses, [&](const Use& use) { return use.head == *head; }))
        uses.push_back({*head, loss.anchor});
    }
    for (const auto& [table, labels] : tables) check_table(expressions, table, labels, out);
  }

 private:
  static constexpr std::int64_t kMaxColumns = 16;

  struct Column {
    ValueId table = ValueId::kAbsent;
    std::size_t axis = 0;
    std::int64_t index = 0, extent = 0;
  };
  /// Weights of a layer, and which of its results, where one is picked.
  struct Head {
    ValueId weights = ValueId::kAbsent, features = ValueId::kAbsent;
    std::int64_t column = 0;
    friend bool operator==(const Head& a, const Head& b) { return a.weights == b.weights && a.column == b.column; }
  };
  struct Use {
    Head head;
    NodeId loss = NodeId::kNone;
  };
  struct Labels {
    std::size_t axis = 0;
    std::int64_t extent = 0;
    std::map<std::int64_t, std::vector<Use>> heads;
    bool is_other = false;
  };

  static void check_table(const Expressions& expressions, ValueId table, const Labels& labels, Reporter& out) {
    if (labels.is_other || static_cast<std::int64_t>(labels.heads.size()) != labels.extent - 1) return;
    const std::vector<Use>* twice = nullptr;
    std::int64_t shared = 0, left = 0;
    for (const auto& [index, uses] : labels.heads) {
      if (index == left) ++left;  // the first that is not among them, in rising order
      if (uses.size() > 2 || (uses.size() == 2 && twice != nullptr)) return;
      if (uses.size() != 2) continue;
      twice = &uses;
      shared = index;
    }
    if (twice == nullptr || is_used_otherwise(expressions, table, labels, left)) return;
    const Use &first = twice->front(), &second = twice->back();
    // An additional head for the same label, beside a column that is no label.
    if (labels.extent == 2 && first.head.features != second.head.features) return;
    const Operand named(expressions.analysis(), table);
    out.report(second.loss, fmt::format("two heads are trained on column {} of {}, and none on column {}", shared,
                                        named.name(), left))
        .note_at(first.loss, "the other one is compared here")
        .fix(fmt::format("compare one of them with column {}", left));
  }

  /// All of the table is read by something, or the column that no head predicts.
  static bool is_used_otherwise(const Expressions& expressions, ValueId table, const Labels& labels,
                                std::int64_t left) {
    constexpr std::size_t kMaxUsers = 48;
    std::vector<ValueId> same{table};
    std::size_t users = 0;
    for (std::size_t i = 0; i < same.size(); ++i)
      for (const NodeId user : expressions.analysis().users(same[i])) {
        if (++users > kMaxUsers) return true;
        if (expressions.op(user) == Opcode::kSplit) {
          const auto results = expressions.analysis().results(user);
          if (left >= static_cast<std::int64_t>(results.size()) || !is_split_in_columns(expressions, user, labels) ||
              !is_unused(expressions, results[static_cast<std::size_t>(left)]))
            return true;
          continue;
        }
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent) return true;
        if (expressions.op(user) == Opcode::kShape) continue;
        if (expressions.op(user) == Opcode::kCast) {
          same.push_back(result);
          continue;
        }
        const auto column = picked_by(expressions, user);
        if (!column || column->index == left || column->axis != labels.axis) return true;
      }
    return false;
  }

  static bool is_unused(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return true;
    for (const NodeId user : expressions.users(value)) {
      const ValueId result = expressions.result(user);
      if (expressions.op(user) != Opcode::kSqueeze || result == ValueId::kAbsent || !expressions.users(result).empty())
        return false;
    }
    return true;
  }

  static bool is_split_in_columns(const Expressions& expressions, NodeId split, const Labels& labels) {
    const auto whole = expressions.dims(expressions.operand(split, 0));
    const auto axis = axis_of(expressions, split, whole.size(), 0);
    return axis == labels.axis &&
           static_cast<std::int64_t>(expressions.analysis().results(split).size()) == labels.extent;
  }

  /// The column of an input that a value is, perhaps scaled.
  static std::optional<Column> column_of(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 8;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_scale(expressions, value);
      if (value == ValueId::kAbsent) return std::nullopt;
      const NodeId node = expressions.producer(value);
      auto column = picked_by(expressions, node);
      if (!column && expressions.op(node) == Opcode::kSplit) column = split_off(expressions, node, value);
      if (column) {
        column->table = before_casts(expressions, column->table);
        return is_input(expressions.analysis(), column->table) ? column : std::nullopt;
      }
      const Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      if (!numbered || (opcode != Opcode::kAdd && opcode != Opcode::kSub)) return std::nullopt;
      value = numbered->value;
    }
    return std::nullopt;
  }

  static std::optional<std::size_t> axis_of(const Expressions& expressions, NodeId node, std::size_t rank,
                                            std::int64_t usual) {
    const Attribute* axis = expressions.analysis().attribute(node, "axis");
    std::int64_t at = axis != nullptr ? axis->i : usual;
    if (at < 0) at += static_cast<std::int64_t>(rank);
    return at >= 0 && at < static_cast<std::int64_t>(rank) ? std::optional(static_cast<std::size_t>(at)) : std::nullopt;
  }

  /// table[:, i] and table[:, i:i + 1].
  static std::optional<Column> picked_by(const Expressions& expressions, NodeId node) {
    const Opcode opcode = expressions.op(node);
    if (opcode != Opcode::kGather && opcode != Opcode::kSlice) return std::nullopt;
    const ValueId table = expressions.operand(node, 0);
    const auto whole = expressions.dims(table);
    const auto axis =
        opcode == Opcode::kGather ? axis_of(expressions, node, whole.size(), 0) : axis_of_slice(expressions, node);
    const auto index = expressions.number(expressions.operand(node, 1));
    if (!axis || *axis >= whole.size() || whole.size() > 2 || !index) return std::nullopt;
    return column_at(expressions, table, *axis, static_cast<std::int64_t>(*index));
  }

  static std::optional<Column> column_at(const Expressions& expressions, ValueId table, std::size_t axis,
                                         std::int64_t index) {
    const auto extent = expressions.analysis().facts().dims().as_constant(expressions.dims(table)[axis]);
    if (!extent || *extent < 2) return std::nullopt;
    if (index < 0) index += *extent;
    return index >= 0 && index < *extent ? std::optional(Column{table, axis, index, *extent}) : std::nullopt;
  }

  /// The one axis along which a slice has one element of several.
  static std::optional<std::size_t> axis_of_slice(const Expressions& expressions, NodeId node) {
    const auto whole = expressions.dims(expressions.operand(node, 0)),
               part = expressions.dims(expressions.result(node));
    const auto axis = expressions.number(expressions.operand(node, 3));
    if (!axis || whole.empty() || whole.size() != part.size()) return std::nullopt;
    const double at = *axis < 0 ? *axis + static_cast<double>(whole.size()) : *axis;
    if (at < 0 || at >= static_cast<double>(whole.size())) return std::nullopt;
    const auto found = static_cast<std::size_t>(at);
    return expressions.analysis().facts().dims().is_constant(part[found], 1) ? std::optional(found) : std::nullopt;
  }

  static std::optional<Column> split_off(const Expressions& expressions, NodeId split, ValueId value) {
    const ValueId table = expressions.operand(split, 0);
    const auto whole = expressions.dims(table);
    const auto results = expressions.analysis().results(split);
    const auto axis = axis_of(expressions, split, whole.size(), 0);
    if (!axis || whole.size() > 2 || static_cast<std::int64_t>(results.size()) > kMaxColumns) return std::nullopt;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i] != value) continue;
      const auto column = column_at(expressions, table, *axis, static_cast<std::int64_t>(i));
      return column && column->extent == static_cast<std::int64_t>(results.size()) ? column : std::nullopt;
    }
    return std::nullopt;
  }

  static bool is_one_column(const Expressions& expressions, ValueId value) {
    const auto dims = expressions.dims(value);
    return dims.size() == 2 && expressions.analysis().facts().dims().is_constant(dims[1], 1);
  }

  static std::optional<Head> head_of(const Expressions& expressions, ValueId prediction) {
    constexpr int kMaxSteps = 6;
    std::int64_t column = 0;
    ValueId value = prediction;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_scale(expressions, value);
      if (value == ValueId::kAbsent) return std::nullopt;
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const ValueId weights = expressions.operand(node, 1);
      if ((opcode == Opcode::kMatMul || opcode == Opcode::kConv) && weights != ValueId::kAbsent)
        return Head{before_stretch(expressions, weights), before_stretch(expressions, expressions.operand(node, 0)),
                    column};
      if ((opcode == Opcode::kGather || opcode == Opcode::kSlice) &&
          is_one_column(expressions, expressions.operand(node, 0))) {
        value = expressions.operand(node, 0);
      } else if (const auto picked = picked_by(expressions, node)) {
        column = picked->index;
        value = picked->table;
      } else if (opcode == Opcode::kAdd && weights != ValueId::kAbsent) {
        const ValueId first = expressions.operand(node, 0);
        value = is_constant(expressions, before_stretch(expressions, first)) ? weights : first;
      } else if (opcode == Opcode::kSlice || opcode == Opcode::kGather || opcode == Opcode::kSplit) {
        return std::nullopt;
      } else if (opcode == Opcode::kSigmoid || has_trait(expressions.entry(node), ops::OpTrait::kElementwise)) {
        value = expressions.operand(node, 0);
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }
};

const RegisterRule<ColumnPredictedTwice> kRegisterColumnPredictedTwice;

}  // namespace
}  // namespace tensorlint::rules
