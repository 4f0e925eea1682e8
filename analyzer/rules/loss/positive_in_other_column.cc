#include <fmt/format.h>

#include <optional>
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

class PositiveInOtherColumn : public Rule {
 public:
  PositiveInOtherColumn()
      : Rule({"TL-L399", "positive-in-other-column", "loss", findings::Severity::kWarning,
              "one class for all samples, which is not the column of their own pair"},
             {passes::Pass::kLosses}) {}

  void check_loss(const dataflow::Analysis& analysis, const losses::LossSite& loss, Reporter& out) const override {
    if (!ops::takes_class_indices(loss.kind) || loss.prediction == ValueId::kAbsent ||
        loss.target == ValueId::kAbsent || loss.anchor == NodeId::kNone || analysis.has_failed(loss.anchor))
      return;
    const auto label = number_of(Operand(analysis, loss.target));
    if (!label || *label < 0) return;
    const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
    ValueId scores = loss.prediction;
    if (const auto softmax = expressions.normalised(scores)) scores = softmax->scores;
    check_scores(expressions, scores, static_cast<std::int64_t>(*label), loss.anchor, out);
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    if (one_float_outputs(view.analysis()).empty()) return;
    each_node(view, out, {Opcode::kLogSoftmax}, [&](const Expressions& expressions, const NodeCall& call) {
      const std::size_t rank = expressions.dims(call.result()).size();
      for (const NodeId user : expressions.users(call.result())) {
        const auto column = picked_column(expressions, user, rank);
        if (column && check_scores(expressions, call.operand(0).value(), *column, user, out)) return;
      }
    });
  }

 private:
  /// log_p[:, i]
  static std::optional<std::int64_t> picked_column(const Expressions& expressions, NodeId node, std::size_t rank) {
    const bool is_slice = expressions.op(node) == Opcode::kSlice;
    if ((expressions.op(node) != Opcode::kGather && !is_slice) || rank != 2) return std::nullopt;
    const auto at = expressions.number(expressions.operand(node, 1));
    std::optional<double> axis;
    if (is_slice) {
      axis = expressions.number(expressions.operand(node, 3));
      const auto part = expressions.dims(expressions.result(node));
      if (part.size() != rank || !expressions.analysis().facts().dims().is_constant(part.back(), 1))
        return std::nullopt;
    } else if (const Attribute* written = expressions.analysis().attribute(node, "axis")) {
      axis = static_cast<double>(written->i);
    }
    if (!at || !axis || (*axis != 1 && *axis != -1) || *at < 0) return std::nullopt;
    return static_cast<std::int64_t>(*at);
  }

  static bool check_scores(const Expressions& expressions, ValueId scores, std::int64_t label, NodeId loss,
                           Reporter& out) {
    constexpr std::size_t kMaxParts = 8;
    const dataflow::Analysis& analysis = expressions.analysis();
    const ValueId joined = scores == ValueId::kAbsent ? scores : before_scale(expressions, scores);
    const NodeId node = joined == ValueId::kAbsent ? NodeId::kNone : expressions.producer(joined);
    const Attribute* axis = node == NodeId::kNone ? nullptr : analysis.attribute(node, "axis");
    if (expressions.op(node) != Opcode::kConcat || axis == nullptr || (axis->i != 1 && axis->i != -1) ||
        expressions.dims(joined).size() != 2)
      return false;
    const auto parts = analysis.operands(node);
    if (parts.size() < 2 || parts.size() > kMaxParts) return false;
    ValueId own = ValueId::kAbsent, others = ValueId::kAbsent;
    std::int64_t begin = 0, column_of_own = -1;
    bool is_begin_known = true;
    for (const ValueId part : parts) {
      const auto dims = expressions.dims(part);
      if (dims.size() != 2) return false;
      const auto extent = analysis.facts().dims().as_constant(dims[1]);
      if (extent == 1) {
        if (own != ValueId::kAbsent) return false;
        own = part;
        if (is_begin_known) column_of_own = begin;
      } else if (is_begin_known && label >= begin && (!extent || label < begin + *extent)) {
        // Of an extent that is not known it has the first column: it is more than one for some batches.
        if (!extent && label != begin) return false;
        others = part;
      }
      if (!extent) is_begin_known = false;
      begin += extent.value_or(0);
    }
    if (own == ValueId::kAbsent || others == ValueId::kAbsent || !is_own_pair(expressions, own) ||
        !is_of_many_pairs(expressions, others))
      return false;
    const Operand pair(analysis, own), wrong(analysis, others);
    out.report(loss, fmt::format("the class of every sample is {}, a column of {}: that of its own pair, {}, comes {}",
                                 label, wrong.name(), pair.name(),
                                 column_of_own >= 0 && column_of_own < label ? "before it" : "after it"))
        .note_at(node, "the scores are joined here")
        .fix("join them in the order of the labels: cat([l_pos, l_neg], dim=1) with labels of 0");
    return true;
  }

  /// A sum of products along the features, for each row one.
  static bool is_own_pair(const Expressions& expressions, ValueId value) {
    value = before_scale(expressions, value);
    if (value == ValueId::kAbsent) return false;
    NodeId node = expressions.producer(value);
    if (expressions.op(node) == Opcode::kDiv) {  // by the lengths
      const ValueId above = expressions.operand(node, 0);
      node = above == ValueId::kAbsent ? NodeId::kNone : expressions.producer(before_stretch(expressions, above));
    }
    if (expressions.op(node) == Opcode::kReduceSum) {
      const ValueId summed = expressions.operand(node, 0);
      return summed != ValueId::kAbsent && expressions.op_of(before_stretch(expressions, summed)) == Opcode::kMul;
    }
    if (expressions.op(node) == Opcode::kEinsum) {
      const Attribute* equation = expressions.analysis().attribute(node, "equation");
      return equation != nullptr && is_of_rows(equation->s);
    }
    if (expressions.op(node) != Opcode::kMatMul) return false;
    // Row by column of each sample.
    const auto dims = expressions.dims(expressions.result(node));
    const DimPool& pool = expressions.analysis().facts().dims();
    return dims.size() == 3 && pool.is_constant(dims[1], 1) && pool.is_constant(dims[2], 1);
  }

  /// "nc,nc->n"
  static bool is_of_rows(std::string_view equation) {
    constexpr std::size_t kMaxLetters = 16;
    std::string letters;
    if (equation.size() > kMaxLetters) return false;
    for (const char letter : equation)
      if (letter != ' ') letters += letter;
    return letters.size() == 8 && letters[2] == ',' && letters.substr(5, 2) == "->" && letters[0] == letters[3] &&
           letters[1] == letters[4] && letters[7] == letters[0];
  }

  /// A product of each row with several others; not of candidates that were joined, of which one may be the right one.
  static bool is_of_many_pairs(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_scale(expressions, value);
      if (value == ValueId::kAbsent) return false;
      NodeId node = expressions.producer(before_moves(expressions, value));
      const Opcode opcode = expressions.op(node);
      // Some of them left out.
      if (opcode == Opcode::kWhere) {
        value = expressions.operand(node, expressions.number(expressions.operand(node, 1)) ? 2 : 1);
        continue;
      }
      if (opcode == Opcode::kReduceSum) {
        const ValueId summed = expressions.operand(node, 0);
        node = summed == ValueId::kAbsent ? NodeId::kNone : expressions.producer(before_stretch(expressions, summed));
        if (expressions.op(node) != Opcode::kMul) return false;
      } else if (opcode != Opcode::kMatMul && opcode != Opcode::kEinsum) {
        return false;
      }
      return !is_joined(expressions, expressions.operand(node, 0)) &&
             !is_joined(expressions, expressions.operand(node, 1));
    }
    return false;
  }

  static bool is_joined(const Expressions& expressions, ValueId vectors) {
    return vectors == ValueId::kAbsent || (expressions.dims(vectors).size() != 2 &&
                                           expressions.op_of(before_moves(expressions, vectors)) == Opcode::kConcat);
  }
};

const RegisterRule<PositiveInOtherColumn> kRegisterPositiveInOtherColumn;

}  // namespace
}  // namespace tensorlint::rules
