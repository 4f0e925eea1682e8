#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/attributes.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class DifferenceOfRoundedNumbers : public Rule {
 public:
  DifferenceOfRoundedNumbers()
      : Rule({"TL-V565", "difference-of-rounded-numbers", "value", findings::Severity::kWarning,
              "a difference of nearly equal numbers, of which rounding leaves little"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    bool any = false;
    each_node(view, out, {Opcode::kCast}, [&](const Expressions& expressions, const NodeCall& call) {
      any = any || rounds(expressions, call.id());
    });
    if (any)
      each_node(view, out, {Opcode::kAdd, Opcode::kSub},
                [&](const Expressions& expressions, const NodeCall& call) { check_offset(expressions, call, out); });
    if (!has_node(out, {Opcode::kSub})) return;
    bool enlarges = false;
    each_node(view, out, {Opcode::kDiv, Opcode::kMul}, [&](const Expressions& expressions, const NodeCall& call) {
      enlarges = enlarges || may_enlarge(expressions, call);
    });
    if (enlarges)
      each_node(view, out, {Opcode::kDiv, Opcode::kMul},
                [&](const Expressions& expressions, const NodeCall& call) { check_quotient(expressions, call, out); });
  }

 private:
  static constexpr int kMaxSteps = 12;
  static constexpr double kNoticed = 1e-2;  // of what a difference is in the end

  /// Bits after the first of a number in the dtype; 0 for others.
  static int precision_of(DTypeSet dtypes) {
    const auto dtype = dtypes.single();
    if (dtype == DType::kFloat32) return 23;
    if (dtype == DType::kFloat64) return 52;
    if (dtype == DType::kFloat16) return 10;
    return dtype == DType::kBFloat16 ? 7 : 0;
  }

  // ---- large integers, cast before another large number is subtracted

  /// A cast to floats that hold fewer digits.
  static bool rounds(const Expressions& expressions, NodeId cast) {
    const ValueId before = expressions.operand(cast, 0);
    if (before == ValueId::kAbsent) return false;
    const dataflow::Analysis& analysis = expressions.analysis();
    const DTypeSet from = analysis.fact(before).dtypes, to = analysis.fact(expressions.result(cast)).dtypes;
    return precision_of(to) > 0 && (from.proves(DTypeSet::integers()) || precision_of(from) > precision_of(to));
  }

  struct Rounded {
    NodeId cast = NodeId::kNone;
    ValueId integers = ValueId::kAbsent;
    double scale = 1;  ///< of what comes of them
  };

  /// Integers of an input that a cast has rounded, scaled since.
  static std::optional<Rounded> rounded(const Expressions& expressions, ValueId value) {
    const dataflow::Analysis& analysis = expressions.analysis();
    Rounded found;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto numbered =
          opcode == Opcode::kMul || opcode == Opcode::kDiv ? with_number(expressions, node) : std::nullopt;
      if (opcode == Opcode::kCast) {
        const ValueId before = expressions.operand(node, 0);
        if (before == ValueId::kAbsent) return std::nullopt;
        if (rounds(expressions, node) && is_input(analysis, before_moves(expressions, before))) {
          found.cast = node;
          found.integers = before;
          return found;
        }
        value = before;
      } else if (numbered && numbered->number != 0 &&
                 (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !numbered->is_first))) {
        found.scale *= opcode == Opcode::kMul ? numbered->number : 1 / numbered->number;
        value = numbered->value;
      } else if (ops::moves_elements(opcode)) {
        value = expressions.operand(node, 0);
      } else {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  /// The most that a value is multiplied with after it was computed, of all that it goes into.
  static double scale_after(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMaxWays = 32;
    struct Way {
      ValueId value;
      double scale;
    };
    const Model& model = expressions.analysis().model();
    double largest = 0;
    std::vector<Way> ways{{value, 1}};
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const auto [at, scale] = ways[i];
      bool ends = model.value(at).is_output, is_used = false;
      for (const NodeId user : expressions.users(at)) {
        expressions.charge(1);
        const Opcode opcode = expressions.op(user);
        if (opcode == Opcode::kShape) continue;
        is_used = true;
        const auto numbered = with_number(expressions, user);
        const bool scales = numbered && numbered->number != 0 && numbered->value == at &&
                            (opcode == Opcode::kMul || (opcode == Opcode::kDiv && !numbered->is_first));
        const ValueId next = expressions.result(user);
        if (next == ValueId::kAbsent || ways.size() >= kMaxWays ||
            (!scales && !ops::moves_elements(opcode) && opcode != Opcode::kCast)) {
          ends = true;
          continue;
        }
        const double factor = !scales ? 1 : opcode == Opcode::kMul ? numbered->number : 1 / numbered->number;
        ways.push_back({next, scale * factor});
      }
      if (ends || !is_used) largest = std::fmax(largest, std::abs(scale));
    }
    return largest;
  }

  static void check_offset(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const int precision = precision_of(analysis.fact(call.result()).dtypes);
    const bool has_constant =
        is_constant(expressions, call.operand(0).value()) || is_constant(expressions, call.operand(1).value());
    const auto offset = has_constant ? with_number(expressions, call.id()) : std::nullopt;
    if (!offset && call.is(Opcode::kSub)) check_neighbours(expressions, call, out);
    if (!offset || precision == 0 || !std::isfinite(offset->number) || expressions.number(offset->value)) return;
    // Cheap, and true of nearly all.
    if (std::abs(offset->number) < 2) return;
    const auto found = rounded(expressions, offset->value);
    if (!found) return;
    const int narrow = precision_of(analysis.fact(expressions.result(found->cast)).dtypes);
    const double sign = call.is(Opcode::kSub) ? 1 : -1;
    const double at = sign * offset->number / found->scale;
    if (narrow == 0 || std::abs(at) < std::ldexp(1.0, narrow + 1)) return;
    const Range& range = analysis.fact(found->integers).range;
    if (at < range.lo || at > range.hi) return;
    const double spacing = std::ldexp(1.0, std::ilogb(at) - narrow);
    if (spacing * std::abs(found->scale) * scale_after(expressions, call.result()) < kNoticed) return;
    const Operand integers(analysis, found->integers);
    const DTypeSet dtype = analysis.fact(expressions.result(found->cast)).dtypes;
    out.report(call.id(), fmt::format("{} has been rounded to {} before {:.6g} is subtracted: numbers of that size are "
                                      "{:.6g} apart",
                                      integers.name(), dtype.to_text(), std::abs(offset->number), spacing))
        .note_at(found->cast, fmt::format("{} is cast here", integers.name()))
        .fix("subtract first, and cast the difference");
  }

  /// The number from which on the program itself has the integers: a bound of what they are, or what it adds to them.
  static double least_size(const Expressions& expressions, ValueId integers) {
    const dataflow::Analysis& analysis = expressions.analysis();
    const ValueId source = before_stretch(expressions, integers);
    const Range& range = analysis.fact(source).range;
    const double bound = range.lo > 0 ? range.lo : range.hi < 0 ? -range.hi : 0;
    const auto added = with_number(expressions, expressions.producer(source));
    const Opcode opcode = expressions.op_of(source);
    const bool adds = added && (opcode == Opcode::kAdd || opcode == Opcode::kSub);
    return std::fmax(bound, adds ? std::abs(added->number) : 0);
  }

  /// Elements of one tensor of large integers, subtracted from each other after they were cast.
  static void check_neighbours(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const ValueId first = before_moves_of_floats(expressions, call.operand(0).value()),
                  second = before_moves_of_floats(expressions, call.operand(1).value());
    const NodeId cast = expressions.producer(first);
    if (first == ValueId::kAbsent || first != second || call.operand(0).value() == call.operand(1).value() ||
        expressions.op(cast) != Opcode::kCast)
      return;
    const ValueId integers = expressions.operand(cast, 0);
    const int narrow = precision_of(analysis.fact(first).dtypes);
    if (integers == ValueId::kAbsent || narrow == 0 || !analysis.fact(integers).dtypes.proves(DTypeSet::integers()) ||
        analysis.taint(integers).has(Aspect::kValue))
      return;
    const double at = least_size(expressions, integers);
    if (at < std::ldexp(1.0, narrow + 1) || !std::isfinite(at)) return;
    const double spacing = std::ldexp(1.0, std::ilogb(at) - narrow);
    if (spacing * scale_after(expressions, call.result()) < kNoticed) return;
    out.report(call.id(),
               fmt::format("elements of {} are subtracted from each other after they were rounded to {}: "
                           "numbers of that size are {:.6g} apart",
                           Operand(analysis, integers).name(), analysis.fact(first).dtypes.to_text(), spacing))
        .note_at(cast, fmt::format("{} is cast here", Operand(analysis, integers).name()))
        .fix("subtract first, and cast the difference");
  }

  static ValueId before_moves_of_floats(const Expressions& expressions, ValueId value) {
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      if (!ops::moves_elements(expressions.op(node))) break;
      value = expressions.operand(node, 0);
    }
    return value;
  }

  // ---- difference quotients over a step that is too short

  enum class Alike { kNo, kSame, kMoved };

  /// Whether two values are computed alike of x and of x + h; each pair of values is compared once on each way.
  static Alike compare(const Expressions& expressions, ValueId a, ValueId b, int depth, int& left) {
    constexpr std::size_t kMaxOperands = 4;
    if (a == b) return a == ValueId::kAbsent ? Alike::kNo : Alike::kSame;
    if (a == ValueId::kAbsent || b == ValueId::kAbsent || depth == 0 || left-- <= 0 || expressions.is_spent())
      return Alike::kNo;
    expressions.charge(16);
    const dataflow::Analysis& analysis = expressions.analysis();
    const ValueId from = before_step(expressions, a), other_from = before_step(expressions, b);
    if (from == other_from || from == b || other_from == a) return Alike::kMoved;
    const NodeId first = expressions.producer(a), second = expressions.producer(b);
    if (first == NodeId::kNone || second == NodeId::kNone ||
        analysis.model().node(first).op != analysis.model().node(second).op)
      return Alike::kNo;
    const auto one = analysis.attributes(first).read(), other = analysis.attributes(second).read();
    expressions.charge(dataflow::steps_of(one));
    const auto one_side = analysis.operands(first), other_side = analysis.operands(second);
    if (!dataflow::same_attributes(one, other) || one_side.size() != other_side.size() ||
        one_side.size() > kMaxOperands || one_side.empty())
      return Alike::kNo;
    Alike found = Alike::kSame;
    for (std::size_t i = 0; i < one_side.size(); ++i) {
      const auto x = expressions.operand(first, i), y = expressions.operand(second, i);
      if (x == ValueId::kAbsent && y == ValueId::kAbsent) continue;
      if (expressions.number(x) && expressions.number(x) == expressions.number(y)) continue;
      const Alike each = compare(expressions, x, y, depth - 1, left);
      if (each == Alike::kNo) return each;
      if (each == Alike::kMoved) found = each;
    }
    return found;
  }

  /// x for x + h and x - h; the value itself for anything else.
  static ValueId before_step(const Expressions& expressions, ValueId value) {
    constexpr double kStep = 0.1;
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) != Opcode::kAdd && expressions.op(node) != Opcode::kSub) return value;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ValueId step = expressions.operand(node, side), from = expressions.operand(node, 1 - side);
      if (step == ValueId::kAbsent || from == ValueId::kAbsent) continue;
      // The same along each axis, or along one of them.
      const Range& range = expressions.analysis().fact(step).range;
      if (is_constant(expressions, step) && !range.nan && range.lo >= -kStep && range.hi <= kStep) return from;
    }
    return value;
  }

  /// All of them are computed alike at points that are a step apart: one by one, or of points that were joined.
  static bool are_moved(const Expressions& expressions, const std::vector<Summand>& terms) {
    constexpr int kMaxDepth = 48;
    int left = 400;
    bool found = true;
    for (std::size_t i = 1; i < terms.size() && found; ++i)
      found = compare(expressions, terms[0].value, terms[i].value, kMaxDepth, left) == Alike::kMoved;
    if (found) return true;
    const ValueId joined = before_moves(expressions, terms[0].value);
    for (const Summand& term : terms)
      if (before_moves(expressions, term.value) != joined) return false;
    walk_back(expressions, joined, [&](ValueId, NodeId node) {
      if (expressions.op(node) == Opcode::kConcat) {
        const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
        if (first != second && first != ValueId::kAbsent && second != ValueId::kAbsent) {
          const ValueId from = before_step(expressions, first), to = before_step(expressions, second);
          found = found || from == to || from == second || to == first;
        }
      }
      return !found;
    });
    return found;
  }

  /// A product with a large constant, or a quotient of a small one: a row of others does not make up for it.
  static bool may_enlarge(const Expressions& expressions, const NodeCall& call) {
    constexpr double kLarge = 32;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Operand factor = call.operand(side);
      if (!factor.present() || !is_constant(expressions, factor.value())) continue;
      const Range& range = factor.fact().range;
      const bool is_small = range.lo > -1 / kLarge && range.hi < 1 / kLarge;
      if (call.is(Opcode::kDiv) ? is_small || std::isinf(range.hi) : !(range.lo > -kLarge && range.hi < kLarge))
        return true;
    }
    return false;
  }

  static void check_quotient(const Expressions& expressions, const NodeCall& call, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const int precision = precision_of(analysis.fact(call.result()).dtypes);
    if (precision == 0 ||
        (!is_constant(expressions, call.operand(0).value()) && !is_constant(expressions, call.operand(1).value())))
      return;
    ValueId value = call.result();
    double scale = 1;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      const auto scaled = with_number(expressions, node);
      if (!scaled || scaled->number == 0 || (opcode != Opcode::kMul && (opcode != Opcode::kDiv || scaled->is_first)))
        break;
      scale *= opcode == Opcode::kMul ? scaled->number : 1 / scaled->number;
      value = scaled->value;
    }
    // Each number is off by half of its last bit at least.
    if (value == call.result() || !(std::abs(scale) >= std::ldexp(1.0, precision)) || !std::isfinite(scale)) return;
    // One finding for all quotients of a row: the last one.
    for (const NodeId user : expressions.users(call.result())) {
      const Opcode opcode = expressions.op(user);
      const auto scaled = with_number(expressions, user);
      if (scaled && scaled->value == call.result() && !scaled->is_first &&
          (opcode == Opcode::kDiv || opcode == Opcode::kMul))
        return;
    }
    const std::vector<Summand> terms = summands(expressions, value, Numbers::kWithin);
    if (terms.empty()) return;
    double sum = 0;
    for (const Summand& term : terms) sum += term.factor;
    if (std::abs(sum) > 1e-6) return;
    if (!are_moved(expressions, terms)) return;
    const NodeId difference = expressions.producer(value);
    out.report(call.id(),
               fmt::format("a difference of what is computed at points close together is multiplied by {:.3g}: {} has "
                           "rounded each of the numbers, and nothing else is left",
                           std::abs(scale), analysis.fact(call.result()).dtypes.to_text()))
        .note_at(difference, "the difference is computed here")
        .fix(terms.size() > 2 ? "take a longer step, such as 1e-2, or differentiate the function itself"
                              : "take a longer step, such as 1e-3, or differentiate the function itself");
  }
};

const RegisterRule<DifferenceOfRoundedNumbers> kRegisterDifferenceOfRoundedNumbers;

}  // namespace
}  // namespace tensorlint::rules
