#include <fmt/format.h>

#include <array>
#include <cmath>
#include <optional>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class BrokenRotation : public Rule {
 public:
  BrokenRotation()
      : Rule({"TL-V549", "broken-rotation", "value", findings::Severity::kWarning,
              "a rotary embedding without its minus, or with the angles of another order of pairs"}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {Opcode::kConcat}, [&](const Expressions& expressions, const NodeCall& call) {
      if (call.operand_count() == 2) check_halves(expressions, call, out);
    });
  }

 private:
  struct Half {
    ValueId of = ValueId::kAbsent;
    bool is_second = false, is_negative = false;
  };

  static void check_halves(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const auto first = half_of(expressions, call.operand(0).value()),
               second = half_of(expressions, call.operand(1).value());
    if (!first || !second || first->of != second->of || !first->is_second || second->is_second || second->is_negative)
      return;
    for (const NodeId product : expressions.users(call.result())) {
      if (expressions.op(product) != Opcode::kMul) continue;
      const ValueId sine = expressions.beside(product, call.result());
      for (const NodeId sum : expressions.users(expressions.result(product))) {
        if (expressions.op(sum) != Opcode::kAdd && expressions.op(sum) != Opcode::kSub) continue;
        const NodeId kept = expressions.producer(expressions.beside(sum, expressions.result(product)));
        if (expressions.op(kept) != Opcode::kMul) continue;
        for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
          if (expressions.operand(kept, side) == first->of)
            check_rotation(expressions, call, product, expressions.operand(kept, 1 - side), sine, first->is_negative,
                           out);
      }
    }
  }

  static void check_rotation(const Expressions& expressions, const NodeCall& call, NodeId product, ValueId cosine,
                             ValueId sine, bool has_minus, Reporter& out) {
    const Operand turned(call.analysis(), before_stretch(expressions, expressions.operand(product, 0) == call.result()
                                                                          ? sine
                                                                          : expressions.operand(product, 0)));
    const auto pairs = pairs_of(expressions, cosine, sine);
    if (!pairs) return;
    if (!has_minus && *pairs == Pairs::kHalves) {
      out.report(call.id(),
                 "the halves are exchanged and neither is negated: with a cosine and a sine of one angle this is not a "
                 "rotation, and lengths change")
          .note_at(product, "multiplied with the sine here")
          .fix("negate the second half: cat(-x2, x1)");
    } else if (has_minus && *pairs == Pairs::kNeighbours) {
      out.report(product, fmt::format("{} has the same angle for neighbours, and what it meets pairs each element with "
                                      "the one half of the width on: both turn by different angles",
                                      turned.name()))
          .note_at(call.id(), "the halves are exchanged here")
          .fix("repeat the angles as the pairs are: cat(angles, angles) for halves");
    }
  }

  enum class Pairs { kHalves, kNeighbours };

  /// Which elements of the tables of cosines and sines share an angle.
  static std::optional<Pairs> pairs_of(const Expressions& expressions, ValueId cosine, ValueId sine) {
    constexpr double kRounding = 1e-4;
    cosine = before_views(expressions, cosine);
    sine = before_views(expressions, sine);
    const auto c = constant_numbers(expressions, cosine), s = constant_numbers(expressions, sine);
    if (!c || !s) return are_of_one_angle(expressions, cosine, sine) ? std::optional(Pairs::kHalves) : std::nullopt;
    const auto dims = expressions.dims(cosine);
    if (c->size() != s->size() || c->empty() || dims.empty()) return std::nullopt;
    const auto columns = expressions.analysis().facts().dims().as_constant(dims.back());
    if (!columns || *columns < 4 || *columns % 2 != 0) return std::nullopt;
    const auto width = static_cast<std::size_t>(*columns);
    expressions.charge(c->size());
    const auto are_equal = [&](std::size_t a, std::size_t b) {
      return std::abs((*c)[a] - (*c)[b]) < kRounding && std::abs((*s)[a] - (*s)[b]) < kRounding;
    };
    bool halves = true, neighbours = true, turns = false;
    for (std::size_t i = 0; i < c->size(); ++i) {
      const std::size_t column = i % width;
      if (std::abs((*c)[i] * (*c)[i] + (*s)[i] * (*s)[i] - 1) > 10 * kRounding) return std::nullopt;
      turns = turns || std::abs((*s)[i]) > 0.1;
      if (column < width / 2) halves = halves && are_equal(i, i + width / 2);
      if (column % 2 == 0) neighbours = neighbours && are_equal(i, i + 1);
    }
    if (!turns || halves == neighbours) return std::nullopt;
    return halves ? Pairs::kHalves : Pairs::kNeighbours;
  }

  /// cos(a) and sin(a), a the same numbers twice.
  static bool are_of_one_angle(const Expressions& expressions, ValueId cosine, ValueId sine) {
    const NodeId cos = expressions.producer(cosine), sin = expressions.producer(sine);
    if (cos == NodeId::kNone || sin == NodeId::kNone || expressions.op(cos) != Opcode::kOther ||
        expressions.op(sin) != Opcode::kOther)
      return false;
    const ValueId angle = expressions.operand(cos, 0);
    if (angle == ValueId::kAbsent || angle != expressions.operand(sin, 0)) return false;
    const ops::ElementValue f = dataflow::element_function(expressions.analysis(), cos, 1),
                            g = dataflow::element_function(expressions.analysis(), sin, 1);
    if (f == nullptr || g == nullptr) return false;
    for (const double a : {0.0, 0.4, 2.0})
      if (std::abs(f({std::array{a}, {}}) - std::cos(a)) > 1e-9 ||
          std::abs(g({std::array{a}, {}}) - std::sin(a)) > 1e-9)
        return false;
    const NodeId both = expressions.producer(angle);
    return expressions.op(both) == Opcode::kConcat && expressions.operand(both, 0) == expressions.operand(both, 1) &&
           expressions.operand(both, 2) == ValueId::kAbsent;
  }

  /// One half of a value along its last axis, by Split or Slice.
  static std::optional<Half> half_of(const Expressions& expressions, ValueId value) {
    Half half;
    NodeId node = expressions.producer(value);
    if (expressions.op(node) == Opcode::kNeg) {
      half.is_negative = true;
      value = expressions.operand(node, 0);
      node = expressions.producer(value);
    }
    const Opcode opcode = expressions.op(node);
    if (opcode != Opcode::kSplit && opcode != Opcode::kSlice) return std::nullopt;
    half.of = expressions.operand(node, 0);
    const DimPool& pool = expressions.analysis().facts().dims();
    const auto part = expressions.dims(value), whole = expressions.dims(half.of);
    if (part.empty() || part.size() != whole.size()) return std::nullopt;
    const auto width = pool.as_constant(part.back()), all = pool.as_constant(whole.back());
    if (!width || !all || *all != 2 * *width || *width < 2) return std::nullopt;
    if (opcode == Opcode::kSplit) {
      const auto results = expressions.analysis().results(node);
      if (results.size() != 2) return std::nullopt;
      half.is_second = results[1] == value;
      return half;
    }
    const auto start = expressions.number(expressions.operand(node, 1)),
               step = expressions.operand(node, 4) == ValueId::kAbsent
                          ? std::optional<double>(1)
                          : expressions.number(expressions.operand(node, 4));
    if (!start || step != 1 ||
        (*start != 0 && *start != static_cast<double>(*width) && *start != -static_cast<double>(*width)))
      return std::nullopt;
    half.is_second = *start != 0;
    return half;
  }
};

const RegisterRule<BrokenRotation> kRegisterBrokenRotation;

}  // namespace
}  // namespace tensorlint::rules
