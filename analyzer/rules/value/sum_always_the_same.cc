#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class SumAlwaysTheSame : public Rule {
 public:
  SumAlwaysTheSame()
      : Rule({"TL-V575", "sum-always-the-same", "value", findings::Severity::kWarning,
              "a sum of probabilities along the axis of their softmax, or a mean of deviations from that mean"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    const bool has_probabilities = has_node(out, {Opcode::kSoftmax, Opcode::kExp});
    if (!has_probabilities && !has_node(out, {Opcode::kSub})) return;
    each_node(view, out, {Opcode::kReduceSum, Opcode::kReduceMean},
              [&](const Expressions& expressions, const NodeCall& call) {
                const ValueId summed = before_casts(expressions, call.operand(0).value());
                const NodeId product = expressions.producer(summed);
                const bool is_product = has_probabilities && expressions.op(product) == Opcode::kMul &&
                                        expressions.operand(product, 0) != expressions.operand(product, 1);
                if (is_product) check_weighed(expressions, call, product, out);
                if (!may_be_either(expressions, product)) return;
                const auto axes = expressions.axes_of(call.id());
                if (!axes || axes->empty()) return;
                if (has_probabilities) check_probabilities(expressions, call, summed, *axes, out);
                check_deviations(expressions, call, summed, *axes, out);
              });
    if (has_probabilities)
      each_node(view, out, {Opcode::kEinsum},
                [&](const Expressions& expressions, const NodeCall& call) { check_einsum(expressions, call, out); });
  }

 private:
  using Axes = std::vector<std::size_t>;
  static constexpr int kMaxSteps = 8;

  /// Probabilities, or deviations and what they were scaled with.
  static bool may_be_either(const Expressions& expressions, NodeId node) {
    const Opcode opcode = expressions.op(node);
    return opcode == Opcode::kSoftmax || opcode == Opcode::kDiv || opcode == Opcode::kSub || opcode == Opcode::kNeg ||
           (opcode == Opcode::kMul && with_number(expressions, node));
  }

  static bool includes(const Axes& axes, const Axes& some) { return std::ranges::includes(axes, some); }

  /// Probabilities may be summed over everything, as a scale. A softmax along the batch is another rule's.
  static void check_probabilities(const Expressions& expressions, const NodeCall& call, ValueId summed,
                                  const Axes& axes, Reporter& out) {
    const auto softmax = expressions.normalised(summed);
    if (!softmax || softmax->logarithm || softmax->axes.size() != 1 || !includes(axes, softmax->axes)) return;
    const auto dims = expressions.dims(summed);
    const std::size_t axis = softmax->axes.front(), rank = dims.size();
    if (axis == 0 || axis >= rank || call.facts().dims().is_constant(dims[axis], 1)) return;
    const bool leaves_some = axes.size() + (axes.front() == 0 ? 0 : 1) < rank;
    if ((axes.size() > 1 && !leaves_some) || divides(expressions, call.result())) return;
    const std::string number = axes.size() > 1               ? "the same number"
                               : call.is(Opcode::kReduceSum) ? "1"
                                                             : "1 / their number";
    out.report(call.id(), fmt::format("{} of probabilities along axis {} is always {}: {} makes their sum 1",
                                      call.op_name(), axis, number, NodeCall(call.analysis(), softmax->node).op_name()))
        .note_at(softmax->node, "they are normalised along that axis here")
        .fix("normalise along the axis of the classes, or sum along another axis");
  }

  /// Probabilities times a table that is the same for all that their softmax compares, as the heights of rows are along
  /// a row: what is added up is the table.
  static void check_weighed(const Expressions& expressions, const NodeCall& call, NodeId product, Reporter& out) {
    const auto axes = expressions.axes_of(call.id());
    const std::size_t rank = expressions.dims(expressions.result(product)).size();
    if (!axes || axes->size() < 2 || axes->size() >= rank) return;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId table = expressions.operand(product, side), probabilities = expressions.operand(product, 1 - side);
      if (table == ValueId::kAbsent || probabilities == ValueId::kAbsent || expressions.number(table)) continue;
      const auto axis = normalised_axis(expressions, before_casts(expressions, probabilities));
      if (!axis || !includes(*axes, {axis->at}) || expressions.dims(probabilities).size() != rank ||
          extent_from_end(expressions, table, rank - axis->at) != 1 || !is_made_of_numbers(expressions, table, 0))
        continue;
      const bool varies = std::ranges::any_of(*axes, [&](std::size_t other) {
        return other != axis->at && extent_from_end(expressions, table, rank - other) != 1;
      });
      if (varies) report_weighed(expressions, call, *axis, table, out);
    }
  }

  struct NormalisedAxis {
    NodeId node = NodeId::kNone;
    std::size_t at = 0;
  };
  static std::optional<NormalisedAxis> normalised_axis(const Expressions& expressions, ValueId probabilities) {
    const auto softmax = expressions.normalised(probabilities);
    const auto dims = expressions.dims(probabilities);
    if (!softmax || softmax->logarithm || softmax->axes.size() != 1 || softmax->axes.front() == 0 ||
        softmax->axes.front() >= dims.size() ||
        expressions.analysis().facts().dims().is_constant(dims[softmax->axes.front()], 1))
      return std::nullopt;
    return NormalisedAxis{softmax->node, softmax->axes.front()};
  }

  /// 1 where a value has fewer axes: it is stretched there.
  static std::int64_t extent_from_end(const Expressions& expressions, ValueId value, std::size_t from_end) {
    const auto dims = expressions.dims(value);
    const DimPool& pool = expressions.analysis().facts().dims();
    return from_end > dims.size() ? 1 : pool.as_constant(dims[dims.size() - from_end]).value_or(0);
  }

  /// A table, or what is counted and computed of nothing but numbers.
  static bool is_made_of_numbers(const Expressions& expressions, ValueId value, int depth) {
    if (value == ValueId::kAbsent || depth > kMaxSteps) return false;
    value = before_stretch(expressions, value);
    if (is_constant(expressions, value)) return true;
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) == Opcode::kRange) return true;
    return with_number(expressions, node) && has_trait(expressions.entry(node), ops::OpTrait::kElementwise) &&
           is_made_of_numbers(expressions, with_number(expressions, node)->value, depth + 1);
  }

  static void report_weighed(const Expressions& expressions, const NodeCall& call, const NormalisedAxis& axis,
                             ValueId table, Reporter& out) {
    out.report(axis.node, fmt::format("along axis {} the probabilities add up to 1, and {} is the same there: their "
                                      "product is summed to the same number whatever they are",
                                      axis.at, Operand(expressions.analysis(), table).name()))
        .note_at(call.id(), "it is summed here")
        .fix("normalise over all that is summed: flatten the axes before the softmax");
  }

  /// "bkhw,h->bk": where w is normalised, every h meets 1.
  static void check_einsum(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    constexpr std::size_t kMaxEquation = 64;
    const Attribute* equation = call.attribute("equation");
    if (equation == nullptr || equation->s.size() > kMaxEquation || call.operand_count() != 2) return;
    std::string text;
    for (const char c : equation->s)
      if (c != ' ') text += c;
    const std::size_t comma = text.find(','), arrow = text.find("->");
    if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) return;
    const std::string terms[] = {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1)};
    const std::string result = text.substr(arrow + 2);
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId probabilities = before_casts(expressions, call.operand(side).value());
      const ValueId table = call.operand(1 - side).value();
      const auto axis = normalised_axis(expressions, probabilities);
      if (!axis || terms[side].size() != expressions.dims(probabilities).size()) continue;
      const char letter = terms[side][axis->at];
      if (terms[1 - side].find(letter) == std::string::npos && result.find(letter) == std::string::npos &&
          is_made_of_numbers(expressions, table, 0))
        report_weighed(expressions, call, *axis, table, out);
    }
  }

  /// Whether something is divided by the sum: weights are normalised once more, which changes nothing but a factor.
  static bool divides(const Expressions& expressions, ValueId sum) {
    for (int step = 0; step < kMaxSteps; ++step) {
      const auto users = expressions.users(sum);
      if (users.size() != 1) return false;
      const NodeId user = users.front();
      if (expressions.op(user) == Opcode::kDiv && expressions.operand(user, 1) == sum) return true;
      const ValueId result = expressions.result(user);
      if (before_stretch(expressions, result) != before_stretch(expressions, sum) &&
          before_guard(expressions, result) != sum)
        return false;
      sum = result;
    }
    return false;
  }

  static void check_deviations(const Expressions& expressions, const NodeCall& call, ValueId summed, const Axes& axes,
                               Reporter& out) {
    const NodeId difference = expressions.producer(before_divisor(expressions, summed, axes));
    if (expressions.op(difference) != Opcode::kSub) return;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId whole = expressions.operand(difference, 1 - side);
      const NodeId mean = expressions.producer(before_stretch(expressions, expressions.operand(difference, side)));
      if (expressions.op(mean) != Opcode::kReduceMean || expressions.operand(mean, 0) != whole) continue;
      const auto own = expressions.axes_of(mean);
      if (!own || own->empty() || !includes(axes, *own) ||
          !is_one_number_along(expressions, expressions.operand(difference, side), whole, *own))
        continue;
      if (!is_all_that_counts(expressions, call.result())) continue;
      out.report(call.id(),
                 fmt::format("{} of deviations from their mean is always 0, but for rounding", call.op_name()))
          .note_at(difference, "the mean is subtracted here")
          .fix("take the squares or the absolute values of the deviations");
      return;
    }
  }

  /// Before quotients and products with a number, or with one along the axes: a standard deviation.
  static ValueId before_divisor(const Expressions& expressions, ValueId value, const Axes& axes) {
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (opcode == Opcode::kCast || opcode == Opcode::kIdentity || opcode == Opcode::kNeg)
        value = expressions.operand(node, 0);
      else if (const auto scaled = with_number(expressions, node);
               scaled && (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !scaled->is_first)))
        value = scaled->value;
      else if (opcode == Opcode::kDiv &&
               is_one_number_along(expressions, expressions.operand(node, 1), expressions.operand(node, 0), axes))
        value = expressions.operand(node, 0);
      else
        break;
    }
    return value;
  }

  /// Whether all elements of `whole` along the axes meet the same element of `value`.
  static bool is_one_number_along(const Expressions& expressions, ValueId value, ValueId whole, const Axes& axes) {
    const std::size_t rank = expressions.dims(whole).size();
    const auto dims = expressions.dims(value);
    if (axes.size() == rank && dims.empty())
      return expressions.analysis().facts().is_ranked(shape_of(expressions, value));
    const DimPool& pool = expressions.analysis().facts().dims();
    return dims.size() == rank &&
           std::ranges::all_of(axes, [&](std::size_t axis) { return axis < rank && pool.is_constant(dims[axis], 1); });
  }
  static ShapeId shape_of(const Expressions& expressions, ValueId value) {
    return Operand(expressions.analysis(), value).fact().shape;
  }

  /// Whether a result of the model is this number alone, scaled, squared or added to others.
  static bool is_all_that_counts(const Expressions& expressions, ValueId value) {
    for (int step = 0; step < kMaxSteps; ++step) {
      const auto users = expressions.users(value);
      if (users.empty()) return true;
      if (users.size() != 1) return false;
      const NodeId user = users.front();
      switch (expressions.op(user)) {
        case Opcode::kMul:
        case Opcode::kDiv:
          if (!with_number(expressions, user)) return false;
          break;
        case Opcode::kAdd:
        case Opcode::kSub:
        case Opcode::kNeg:
        case Opcode::kAbs:
        case Opcode::kPow:
        case Opcode::kCast:
        case Opcode::kIdentity:
        case Opcode::kReduceMean:
        case Opcode::kReduceSum:
          break;
        default:
          return false;
      }
      value = expressions.result(user);
    }
    return false;
  }
};

const RegisterRule<SumAlwaysTheSame> kRegisterSumAlwaysTheSame;

}  // namespace
}  // namespace tensorlint::rules
