#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/axis_origins.h"
#include "passes/losses/axis_way.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ConstantAlongSoftmax : public Rule {
 public:
  ConstantAlongSoftmax()
      : Rule({"TL-V573", "constant-along-softmax", "value", findings::Severity::kWarning,
              "numbers or a mask that are the same for all scores that a softmax compares"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_softmax(view, out,
                 [&](const Expressions& expressions, const NodeCall& call, const losses::Normalised& softmax) {
                   if (softmax.axes.size() == 1)
                     check(expressions, softmax.scores, softmax.axes.front(), call.id(), out);
                 });
    for (const losses::LossSite& loss : view.losses()) {
      if (loss.kind != ops::LossKind::kCrossEntropy || loss.evidence != losses::LossEvidence::kOperator ||
          view.analysis().has_failed(loss.anchor))
        continue;
      check(out.shared<losses::LossAxes>().expressions, loss.prediction, 1, loss.anchor, out);
    }
  }

 private:
  /// Less than any score: what is added to hide one, or put in its place.
  static constexpr double kHidden = -1e3;

  struct Step {
    NodeId node = NodeId::kNone;
    ValueId constant = ValueId::kAbsent, rest = ValueId::kAbsent;
    std::size_t axis = 0;
    bool hides = false;
  };

  static void check(const Expressions& expressions, ValueId scores, std::size_t axis, NodeId softmax, Reporter& out) {
    std::vector<Step> found;
    if (scores == ValueId::kAbsent || !collect(expressions, scores, axis, found)) return;
    const dataflow::Analysis& analysis = expressions.analysis();
    for (const Step& step : found) {
      if (!out.first(fmt::format("constant:{}", static_cast<std::uint32_t>(step.node)))) continue;
      const Operand constant(analysis, step.constant), rest(analysis, step.rest);
      if (step.hides) {
        if (!hides_rows(expressions, step, out) || is_masked_later(expressions, softmax, axis)) continue;
        out.report(step.node, fmt::format("the mask {} has one element for each row of {}, and hides all of a row or "
                                          "nothing: no score is hidden from the others",
                                          described(analysis, step.constant), rest.name()))
            .note_at(softmax, fmt::format("the scores are compared along axis {} here", step.axis))
            .fix("give the mask the axis of the keys: mask.unsqueeze(1), mask[:, None, :]");
        continue;
      }
      if (!is_of_its_own(expressions, step)) continue;
      out.report(step.node, fmt::format("{} is the same for all scores of a row of {}, which a softmax compares: it "
                                        "changes nothing",
                                        described(analysis, step.constant), rest.name()))
          .note_at(softmax, fmt::format("the scores are compared along axis {} here", step.axis))
          .fix("give it the axis of the scores that are compared: log_q[None, :]");
    }
  }

  /// The numbers and masks that are constant along the axis, on the way back from the scores; false where another mask
  /// is not.
  static bool collect(const Expressions& expressions, ValueId value, std::size_t axis, std::vector<Step>& found) {
    constexpr int kMaxSteps = 12;
    const losses::AxisWay way(expressions);
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (node == NodeId::kNone || axis >= expressions.dims(value).size() || is_read_elsewhere(expressions, value))
        return true;
      if (opcode == Opcode::kAdd || opcode == Opcode::kSub) {
        const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
        if (is_table_left_unread(expressions, first) || is_table_left_unread(expressions, second)) return false;
        const bool flat[] = {is_flat(expressions, first, value, axis), is_flat(expressions, second, value, axis)};
        if (flat[0] == flat[1]) {
          return found.empty() ||
                 (!is_hiding(expressions, first) && !is_hiding(expressions, second) &&
                  !has_mask_before(expressions, first, axis) && !has_mask_before(expressions, second, axis));
        }
        const std::size_t side = flat[0] ? 0 : 1;
        const ValueId constant = side == 0 ? first : second, rest = side == 0 ? second : first;
        if (is_hiding(expressions, rest)) return false;
        if (varies(expressions, constant))
          found.push_back({node, constant, rest, axis, is_hiding(expressions, constant)});
        value = rest;
        if (expressions.dims(rest).size() != expressions.dims(expressions.result(node)).size()) return true;
      } else if (opcode == Opcode::kWhere) {
        const ValueId chosen = expressions.operand(node, 0), yes = expressions.operand(node, 1),
                      no = expressions.operand(node, 2);
        const bool hides_true = expressions.number(yes).value_or(0) <= kHidden,
                   hides_false = expressions.number(no).value_or(0) <= kHidden;
        if (hides_true == hides_false || !is_flat(expressions, chosen, value, axis))
          return !(hides_true || hides_false);
        const ValueId rest = hides_true ? no : yes;
        if (varies(expressions, chosen)) found.push_back({node, chosen, rest, axis, true});
        value = rest;
        if (expressions.dims(rest).size() != expressions.dims(expressions.result(node)).size()) return true;
      } else if (const auto scaled = with_number(expressions, node);
                 scaled && (opcode == Opcode::kMul || opcode == Opcode::kDiv)) {
        value = scaled->value;
      } else if (ops::keeps_elements(opcode) || opcode == Opcode::kTranspose || opcode == Opcode::kCast) {
        const ValueId before = expressions.operand(node, 0);
        const std::size_t rank = expressions.dims(before).size();
        std::optional<std::size_t> at;
        for (std::size_t i = 0; i < rank && !at; ++i)
          if (const auto kept = way.follow(node, 0, i); kept.fate == losses::AxisFate::kKept && kept.axis == axis)
            at = i;
        if (!at) return true;
        value = before;
        axis = *at;
      } else {
        return true;
      }
    }
    return true;
  }

  /// Where a bias was added after the mask.
  static bool has_mask_before(const Expressions& expressions, ValueId value, std::size_t axis) {
    constexpr int kMaxSummands = 3;
    for (int step = 0; step < kMaxSummands && expressions.op_of(value) == Opcode::kAdd; ++step) {
      const NodeId sum = expressions.producer(value);
      const ValueId first = expressions.operand(sum, 0), second = expressions.operand(sum, 1);
      if ((is_hiding(expressions, first) && !is_flat(expressions, first, value, axis)) ||
          (is_hiding(expressions, second) && !is_flat(expressions, second, value, axis)))
        return true;
      value = first;
    }
    return false;
  }

  /// More than one reads it: what is added may count there.
  static bool is_read_elsewhere(const Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    int readers = 0;
    for (const NodeId user : expressions.users(value)) {
      // A softmax that is written out subtracts the largest score from all.
      const Opcode opcode = expressions.op(user);
      readers += opcode != Opcode::kShape && opcode != Opcode::kReduceMax ? 1 : 0;
    }
    if (readers > 1) return true;
    constexpr int kMaxOutputs = 16;
    int seen = 0;
    for (const ValueId output : analysis.outputs(GraphId::kMain)) {
      if (output == value || ++seen > kMaxOutputs) return true;
    }
    return false;
  }

  static ValueId before_expand(const Expressions& expressions, ValueId value) {
    for (int step = 0; step < 4; ++step) {
      const Opcode opcode = expressions.op_of(value);
      if (opcode != Opcode::kExpand && opcode != Opcode::kCast && opcode != Opcode::kIdentity && opcode != Opcode::kNot)
        break;
      value = expressions.operand(expressions.producer(value), 0);
    }
    return value;
  }

  /// One element meets all those along the axis of the result.
  static bool is_flat(const Expressions& expressions, ValueId value, ValueId result, std::size_t axis) {
    if (value == ValueId::kAbsent) return false;
    const ValueId before = before_expand(expressions, value);
    const auto dims = expressions.dims(before == ValueId::kAbsent ? value : before), all = expressions.dims(result);
    const DimPool& pool = expressions.analysis().facts().dims();
    if (axis >= all.size() || pool.is_constant(all[axis], 1) || dims.size() > all.size() || dims.empty()) return false;
    const std::size_t ahead = all.size() - dims.size();
    return axis >= ahead && pool.is_constant(dims[axis - ahead], 1);
  }

  /// Large negative numbers are among its elements, or it is a mask times one.
  static bool is_hiding(const Expressions& expressions, ValueId value) {
    if (value == ValueId::kAbsent) return false;
    const Range& range = expressions.analysis().fact(value).range;
    // Of what is computed, -infinity is no bound at all: logarithms have it.
    if (range.lo <= kHidden && range.hi <= 0 && (range.lo > -1e38 || !reads_input(expressions, value))) return true;
    if (is_table_that_hides(expressions, before_moves(expressions, value))) return true;
    const NodeId node = expressions.producer(before_stretch(expressions, value));
    if (expressions.op(node) == Opcode::kWhere)
      return expressions.number(expressions.operand(node, 1)).value_or(0) <= kHidden ||
             expressions.number(expressions.operand(node, 2)).value_or(0) <= kHidden;
    const auto scaled = with_number(expressions, node);
    return scaled && expressions.op(node) == Opcode::kMul && std::abs(scaled->number) >= -kHidden;
  }

  static constexpr std::size_t kMostElements = 1U << 20;  // of 1024 words

  /// A table of large negative numbers, and of others that are at most 0: one whose range nobody has looked at.
  static bool is_table_that_hides(const Expressions& expressions, ValueId value) {
    const auto bounds = constant_bounds(expressions.analysis(), value, kMostElements);
    return bounds && bounds->first <= kHidden && bounds->second <= 0;
  }

  /// It may hide scores.
  static bool is_table_left_unread(const Expressions& expressions, ValueId value) {
    return value != ValueId::kAbsent &&
           is_left_unread(expressions.analysis(), before_moves(expressions, value), kMostElements);
  }

  /// Computed from data, with another number for each row.
  static bool varies(const Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const DimPool& pool = analysis.facts().dims();
    bool is_long = false;
    for (const Dim dim : expressions.dims(value)) is_long |= !pool.is_constant(dim, 1);
    return is_long && reads_input(expressions, value);
  }

  /// It is computed from an input of the model, and not from its shape alone.
  static bool reads_input(const Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    bool has_input = is_input(analysis, value);
    walk_back(expressions, value, [&](ValueId, NodeId node) {
      if (expressions.op(node) == Opcode::kShape) return false;
      for (const ValueId operand : analysis.operands(node))
        has_input |= operand != ValueId::kAbsent && is_input(analysis, operand);
      return !has_input;
    });
    return has_input;
  }

  /// The weights meet another mask after the softmax, with an element for each key, before they average anything.
  static bool is_masked_later(const Expressions& expressions, NodeId softmax, std::size_t axis) {
    const ValueId weights = expressions.result(softmax);
    const auto normalised = expressions.normalised(weights);
    if (!normalised || normalised->logarithm) return false;
    constexpr std::size_t kMaxValues = 8;
    std::vector<ValueId> pending{weights};
    bool is_masked = false;
    for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
      for (const NodeId user : expressions.users(pending[i])) {
        const Opcode opcode = expressions.op(user);
        if (opcode == Opcode::kMatMul || opcode == Opcode::kEinsum) return false;
        if (opcode == Opcode::kCast || opcode == Opcode::kIdentity || opcode == Opcode::kDropout)
          pending.push_back(expressions.result(user));
        const ValueId mask = opcode == Opcode::kWhere ? expressions.operand(user, 0)
                             : opcode == Opcode::kMul ? expressions.beside(user, pending[i])
                                                      : ValueId::kAbsent;
        is_masked |= mask != ValueId::kAbsent && is_mask_of_keys(expressions, mask, pending[i], axis);
      }
    return is_masked;
  }

  /// Given, and not computed from the weights themselves, as a logarithm of an entropy is.
  static bool is_mask_of_keys(const Expressions& expressions, ValueId mask, ValueId weights, std::size_t axis) {
    const auto dims = expressions.dims(mask), all = expressions.dims(weights);
    const DimPool& pool = expressions.analysis().facts().dims();
    if (mask == weights || axis >= all.size() || dims.size() > all.size()) return false;
    const std::size_t ahead = all.size() - dims.size();
    if (axis < ahead || is_flat(expressions, mask, weights, axis) || !pool.equal(dims[axis - ahead], all[axis]))
      return false;
    bool is_own = false, is_given = is_input(expressions.analysis(), mask) || is_weight(expressions, mask);
    walk_back(expressions, mask, [&](ValueId value, NodeId node) {
      is_own |= value == weights;
      if (expressions.op(node) == Opcode::kShape) return false;
      for (const ValueId operand : expressions.analysis().operands(node))
        is_given |= operand != ValueId::kAbsent && is_input(expressions.analysis(), operand);
      return !is_own;
    });
    return is_given && !is_own;
  }

  /// Floating numbers that it is computed from go into nothing else of the scores: distances that are written out have
  /// a part for each row, and norms are taken from the scores themselves.
  static bool is_of_its_own(const Expressions& expressions, const Step& step) {
    std::set<ValueId> own;
    const auto add = [&](ValueId value) {
      expressions.charge(16);
      if (value != ValueId::kAbsent && !is_weight(expressions, value) &&
          expressions.analysis().fact(value).dtypes.proves(DTypeSet::floats()))
        own.insert(value);
    };
    add(step.constant);
    const bool is_whole = walk_back(expressions, step.constant, [&](ValueId value, NodeId node) {
      if (expressions.op(node) == Opcode::kShape) return false;
      add(value);
      for (const ValueId operand : expressions.analysis().operands(node)) add(operand);
      return true;
    });
    bool is_shared = own.contains(step.rest);
    const bool is_walked = walk_back(expressions, step.rest, [&](ValueId value, NodeId node) {
      if (expressions.op(node) == Opcode::kShape) return false;
      is_shared |= own.contains(value);
      for (const ValueId operand : expressions.analysis().operands(node)) {
        expressions.charge(8);
        is_shared |= own.contains(operand);
      }
      return !is_shared;
    });
    return !is_shared && is_whole && is_walked;
  }

  static bool is_weight(const Expressions& expressions, ValueId value) {
    return expressions.analysis().model().value(value).initializer != nullptr ||
           expressions.op_of(value) == Opcode::kConstant || expressions.number(value).has_value();
  }

  /// Rows and columns are the same tokens: what is no query is no key either.
  static bool hides_rows(const Expressions& expressions, const Step& step, Reporter& out) {
    const ValueId before = before_expand(expressions, step.constant);
    const auto dims = expressions.dims(before == ValueId::kAbsent ? step.constant : before);
    const ValueId scores = expressions.result(step.node);
    const std::size_t rank = expressions.dims(scores).size(), ahead = rank - dims.size();
    const DimPool& pool = expressions.analysis().facts().dims();
    losses::AxisOrigins& origins = out.shared<losses::LossAxes>().origins;
    // Of all pairs of samples a row may be left out on purpose.
    if (rank < 3 || origins.is_batch(scores, step.axis)) return false;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (i + ahead != step.axis && !pool.is_constant(dims[i], 1) &&
          origins.are_same(scores, i + ahead, scores, step.axis))
        return true;
    return false;
  }
};

const RegisterRule<ConstantAlongSoftmax> kRegisterConstantAlongSoftmax;

}  // namespace
}  // namespace tensorlint::rules
