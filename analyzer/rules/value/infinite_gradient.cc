#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class InfiniteGradient : public Rule {
 public:
  InfiniteGradient()
      : Rule({"TL-V513", "infinite-gradient", "value", findings::Severity::kWarning,
              "a root or an arc cosine where it has no finite slope"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    losses::Parameters& parameters = out.shared<losses::Parameters>();
    each_node_of_step(view, out, [&](const Expressions& expressions, const NodeCall& call) {
      const Operand operand = call.operand(0);
      if (!operand.present() || operand.taint().has(Aspect::kValue)) return;
      const bool is_root =
          call.is(Opcode::kSqrt) || (call.is(Opcode::kPow) && expressions.is_number(call.operand(1).value(), 0.5));
      if (is_root) check_root(expressions, call, parameters, out);
      if (is_of_unit_interval(expressions, call.id()) && parameters.reach(operand.value()))
        check_arc(expressions, call, out);
    });
  }

 private:
  static void check_arc(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand operand = call.operand(0);
    // A bound of the program's own keeps the ends off.
    if (operand.fact().range.lo > -1 && operand.fact().range.hi < 1) return;
    if (const NodeId trace = trace_of_rotation(expressions, operand.value()); trace != NodeId::kNone) {
      out.report(call.id(), fmt::format("{} of {}, the cosine of a rotation: at 1 its gradient is infinite, and "
                                        "rounding gives more than 1",
                                        call.op_name(), operand.name()))
          .certainty(ops::Certainty::kMay, "two rotations that are equal")
          .note_at(trace, "the trace is computed here")
          .fix("clamp the cosine to [-1 + 1e-6, 1 - 1e-6], or use atan2");
      return;
    }
    const auto cosine = cosine_of(expressions, operand.value());
    if (!cosine) return;
    out.report(call.id(),
               fmt::format("{} of {}, a cosine: at 1 its gradient is infinite, and rounding gives more than 1",
                           call.op_name(), operand.name()))
        .certainty(ops::Certainty::kMay, "two vectors of one direction")
        .note_at(cosine->node, "the product of vectors of length 1 is computed here")
        .fix("clamp the cosine to [-1 + 1e-6, 1 - 1e-6], or use atan2");
  }

  /// The sum of (trace - 1) / 2, which is the cosine of the angle that a rotation matrix turns by.
  static NodeId trace_of_rotation(const Expressions& expressions, ValueId value) {
    constexpr int kMaxSteps = 8;
    constexpr double kRounding = 1e-5, kClose = 0.01;
    double scale = 1, shift = 0;  // of `value` in the cosine
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto numbered = with_number(expressions, node);
      if (!numbered || (numbered->is_first && (opcode == Opcode::kSub || opcode == Opcode::kDiv))) {
        const bool is_sum = opcode == Opcode::kReduceSum || opcode == Opcode::kAdd || opcode == Opcode::kEinsum;
        // Those who scale it down by as little as 1e-4 keep it off 1.
        const bool is_cosine = std::abs(scale - 0.5) < kRounding && std::abs(shift + 0.5) < kRounding;
        return is_sum && is_cosine ? node : NodeId::kNone;
      }
      if (opcode == Opcode::kAdd)
        shift += scale * numbered->number;
      else if (opcode == Opcode::kSub)
        shift -= scale * numbered->number;
      else if (opcode == Opcode::kMul)
        scale *= numbered->number;
      else if (opcode == Opcode::kDiv && std::abs(numbered->number) > kClose)
        scale /= numbered->number;
      else
        return NodeId::kNone;
      value = numbered->value;
    }
    return NodeId::kNone;
  }

  static void check_root(const Expressions& expressions, const NodeCall& call, losses::Parameters& parameters,
                         Reporter& out) {
    const ValueId root_of = call.operand(0).value();
    const ValueId difference = summed_squares(expressions, root_of);
    const NodeId sub = expressions.producer(difference);
    if (expressions.op(sub) == Opcode::kSub) {
      const ValueId first = expressions.operand(sub, 0), second = expressions.operand(sub, 1);
      const ValueId vectors = before_stretch(expressions, first);
      if (first == second || first == ValueId::kAbsent || vectors != before_stretch(expressions, second) ||
          !is_outer(expressions, first, second) || !parameters.reach(vectors) ||
          is_operand_as_written(out, expressions, call.id(), root_of, before_stretch(expressions, root_of)) !=
              AsWritten::kYes)
        return;
      say(call, sub, Operand(call.analysis(), vectors), "is 0", out);
      return;
    }
    check_expanded(expressions, call, summands(expressions, root_of, Numbers::kApart), parameters, out);
  }

  static void say(const NodeCall& call, NodeId at, const Operand& vectors, std::string_view what, Reporter& out) {
    out.report(call.id(), fmt::format("gradient of {} is infinite at 0: the distance of each row of {} to itself {}",
                                      call.op_name(), vectors.name(), what))
        .note_at(at, "every row meets itself here; infinity times 0 is NaN")
        .fix("add 1e-12 to the squares, or choose another number for the diagonal, before the root");
  }

  /// Rows with rows: the two are stretched along different axes.
  static bool is_outer(const Expressions& expressions, ValueId first, ValueId second) {
    const auto a = expressions.dims(first), b = expressions.dims(second);
    if (a.size() != b.size()) return false;
    const FactStore& facts = expressions.analysis().facts();
    bool stretches_first = false, stretches_second = false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const bool one_a = facts.dims().is_constant(a[i], 1), one_b = facts.dims().is_constant(b[i], 1);
      stretches_first = stretches_first || (one_a && !one_b);
      stretches_second = stretches_second || (one_b && !one_a);
    }
    return stretches_first && stretches_second;
  }

  /// |a|^2 + |b|^2 - 2 ab of rows of one matrix, or 2 - 2 ab where their length is 1.
  static void check_expanded(const Expressions& expressions, const NodeCall& call, const std::vector<Summand>& terms,
                             losses::Parameters& parameters, Reporter& out) {
    ValueId product = ValueId::kAbsent;
    double factor = 0, constant = 0;
    std::vector<ValueId> squared;
    for (const Summand& term : terms) {
      const NodeId node = expressions.producer(term.value);
      if (const auto number = expressions.number(term.value)) {
        constant += term.factor * *number;
      } else if (expressions.op(node) == Opcode::kMatMul && product == ValueId::kAbsent) {
        product = term.value;
        factor = term.factor;
      } else if (const ValueId rows = summed_squares(expressions, term.value);
                 rows != ValueId::kAbsent && term.factor == 1) {
        squared.push_back(before_stretch(expressions, rows));
      } else {
        return;
      }
    }
    const NodeId node = expressions.producer(product);
    if (node == NodeId::kNone || expressions.operand(node, 2) != ValueId::kAbsent) return;
    const ValueId first = unscaled(expressions, expressions.operand(node, 0), factor);
    const ValueId second = unscaled(expressions, expressions.operand(node, 1), factor);
    if (first == ValueId::kAbsent || first != second || factor != -2 || !parameters.reach(first)) return;
    const bool of_rows = squared.size() == 2 && squared[0] == first && squared[1] == first && constant == 0;
    const bool of_directions = squared.empty() && constant == 2 && is_of_unit_length(expressions, first);
    if (of_rows || of_directions)
      say(call, node, Operand(call.analysis(), first), "is 0, or negative by rounding", out);
  }

  /// The rows of a matrix, whose constant factor goes into `factor`.
  static ValueId unscaled(const Expressions& expressions, ValueId value, double& factor) {
    constexpr int kMaxSteps = 4;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      value = before_stretch(expressions, value);
      const NodeId node = expressions.producer(value);
      if (expressions.op(node) != Opcode::kMul) break;
      const auto scaled = with_number(expressions, node);
      if (!scaled) break;
      factor *= scaled->number;
      value = scaled->value;
    }
    return value;
  }
};

const RegisterRule<InfiniteGradient> kRegisterInfiniteGradient;

}  // namespace
}  // namespace tensorlint::rules
