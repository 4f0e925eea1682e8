#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "analyzer/rules/loss/prediction.h"
#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"
#include "passes/losses/formula.h"
#include "passes/losses/parameters.h"

namespace tensorlint::rules {
namespace {

class OverflowInCast : public Rule {
 public:
  OverflowInCast()
      : Rule({"TL-V505", "overflow-in-cast", "value", findings::Severity::kWarning,
              "a cast whose operand lies outside the dtype that it is cast to"}) {}

  bool wants(std::string_view, std::string_view, const ops::OpEntry* entry) const override {
    return opcode_of(entry) == ops::Opcode::kCast || opcode_of(entry) == ops::Opcode::kMul;
  }

  void check_model(const ModelView& view, Reporter& out) const override {
    each_node(view, out, {ops::Opcode::kReduceSum, ops::Opcode::kReduceSumSquare},
              [&](const losses::Expressions& expressions, const NodeCall& call) {
                check_sum_of_bytes(expressions, call, out);
              });
    const bool is_step = !one_float_outputs(view.analysis()).empty();
    each_node(view, out, {ops::Opcode::kAdd, ops::Opcode::kMax, ops::Opcode::kClip},
              [&](const losses::Expressions& expressions, const NodeCall& call) {
                check_lost_guard(expressions, call, is_step, out);
              });
  }

  /// Only where every element is outside. From floats the result is undefined; from wider integers the upper bits are
  /// dropped, which may be meant.
  void check(const NodeCall& call, Reporter& out) const override {
    if (call.is(ops::Opcode::kMul)) {
      check_infinite_factor(call, out);
      return;
    }
    const Operand operand = call.operand(0);
    if (!operand.present() || call.result() == ValueId::kAbsent || operand.taint().has(Aspect::kValue) ||
        operand.taint().has(Aspect::kDtype))
      return;
    const Fact& fact = operand.fact();
    const DTypeSet target = call.analysis().fact(call.result()).dtypes;
    const auto dtype = target.single();
    if (dtype == DType::kFloat16 && fact.dtypes.proves(DTypeSet::floats()) && !check_guard(call, out))
      check_mask(call, out);
    if (fact.kind != ValueKind::kTensor || !dtype || !target.proves(DTypeSet::integers())) return;
    if (check_classes(call, *dtype, out)) return;
    const Range& range = fact.range;
    // Infinities stand in masks on purpose; lo > hi: there are no elements.
    if (!std::isfinite(range.lo) || !std::isfinite(range.hi) || range.lo > range.hi) return;
    const Range fits = range_of(target);
    // A fraction is cut off first: 255.5 becomes 255.
    if (std::trunc(range.lo) <= fits.hi && std::trunc(range.hi) >= fits.lo) return;
    const bool floats = fact.dtypes.proves(DTypeSet::floats());
    if (!floats && (!fact.dtypes.proves(DTypeSet::integers()) || is_customary(range, fact.dtypes))) return;
    out.report(floats ? info().severity : findings::Severity::kInfo, call.id(),
               fmt::format("{} in {} does not fit {}, which holds {}", operand.name(), range.to_text(), to_text(*dtype),
                           fits.to_text()))
        .origin(operand, Aspect::kValue);
  }

 private:
  /// A number that an exporter has already rounded to infinity: what it multiplies is infinite or NaN from then on.
  static void check_infinite_factor(const NodeCall& call, Reporter& out) {
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Operand factor = call.operand(side), other = call.operand(1 - side);
      if (!factor.present() || !other.present() || factor.taint().has(Aspect::kValue) ||
          factor.fact().kind != ValueKind::kTensor || factor.fact().dtypes != DTypeSet(DType::kFloat16))
        continue;
      const NodeId producer = call.model().value(factor.value()).producer;
      if (producer != NodeId::kNone && !NodeCall(call.analysis(), producer).is(ops::Opcode::kConstant)) continue;
      const Range& range = factor.fact().range;
      if (range.nan || range.lo != range.hi || !std::isinf(range.lo)) continue;
      out.report(call.id(), fmt::format("{} is {}infinity: no number in float16 was as large, and products with it are "
                                        "infinite or NaN",
                                        factor.name(), range.lo < 0 ? "-" : ""))
          .origin(factor, Aspect::kValue)
          .fix("use a number that float16 has: at most 65504");
      return;
    }
  }

  /// What is added to a divisor or an operand of a root, or bounds it from below, and is 0 in float16.
  bool check_guard(const NodeCall& call, Reporter& out) const {
    // Half of the smallest number above 0; what is not larger rounds to 0.
    constexpr double kRoundsToZero = 2.98e-8;
    const Range& range = call.operand(0).fact().range;
    if (range.lo != range.hi || range.nan || range.lo <= 0 || range.lo > kRoundsToZero) return false;
    for (const NodeId user : call.analysis().users(call.result())) {
      const NodeCall use(call.analysis(), user);
      if (!use.is(ops::Opcode::kAdd) && !use.is(ops::Opcode::kMax) && !use.is(ops::Opcode::kClip)) continue;
      out.report(call.id(), fmt::format("{} is {:.3g}, which is 0 in float16", call.operand(0).name(), range.lo))
          .note_at(user, "it is to keep this above 0")
          .fix("use 1e-5 or more, or compute this part in float32: float16 has no number between 0 and 6e-8");
      return true;
    }
    return false;
  }

  /// The same where an exporter has already rounded the number: a 0 that is added to what may be 0, or bounds it from
  /// below, before a logarithm or a division. What may be negative is left out, as a rectifier bounds that by 0.
  static void check_lost_guard(const losses::Expressions& expressions, const NodeCall& call, bool is_step,
                               Reporter& out) {
    // First of all: most models have no such operand.
    const DTypeSet dtypes = call.operand(0).present() ? call.operand(0).fact().dtypes : DTypeSet::none();
    if (dtypes != DTypeSet(DType::kFloat16) && dtypes != DTypeSet(DType::kBFloat16)) return;
    std::size_t side = 1;
    if (!expressions.is_number(call.operand(1).value(), 0)) {
      if (call.is(ops::Opcode::kClip) || !expressions.is_number(call.operand(0).value(), 0)) return;
      side = 0;
    }
    const Operand guard = call.operand(side), kept = call.operand(1 - side);
    const bool is_half = guard.fact().dtypes == DTypeSet(DType::kFloat16);
    if (!kept.present() || (call.is(ops::Opcode::kMax) && call.operand(2).present()) ||
        (!is_half && guard.fact().dtypes != DTypeSet(DType::kBFloat16)) || !is_constant(expressions, guard.value()) ||
        kept.fact().kind != ValueKind::kTensor || kept.taint().has(Aspect::kValue) ||
        is_constant(expressions, kept.value()))
      return;
    const Range& range = kept.fact().range;
    if (range.lo == 0 ? !(range.hi > 0) : range.lo > 0 || !is_never_negative(expressions, kept.value())) return;
    // invalid-domain reports logarithms in training steps, probabilities in float16, and there roots that divide.
    const ops::Opcode source = expressions.op_of(before_moves(expressions, kept.value()));
    const bool is_probability =
        source == ops::Opcode::kSigmoid || source == ops::Opcode::kSoftmax || source == ops::Opcode::kSub;
    const NodeId use = use_off_zero(expressions, call.result(),
                                    {.logarithms = !is_step && !(is_half && is_probability),
                                     .roots = is_step && out.shared<losses::Parameters>().reach(kept.value()),
                                     .divisions_by_roots = !is_step || !is_half});
    if (use == NodeId::kNone) return;
    out.report(call.id(), fmt::format("{} is 0 in {}, and does not keep {} above 0", guard.name(),
                                      to_text(is_half ? DType::kFloat16 : DType::kBFloat16), kept.name()))
        .certainty(ops::Certainty::kMay, fmt::format("{} has 0 among its elements", kept.name()))
        .note_at(use, expressions.op(use) == ops::Opcode::kLog    ? "the logarithm of 0 is -infinity"
                      : expressions.op(use) == ops::Opcode::kSqrt ? "the gradient of the root is infinite at 0"
                                                                  : "divided here")
        .fix(is_half ? "use 1e-5 or more, or compute this part in float32: float16 has no number between 0 and 6e-8"
                     : "use 1e-5 or more");
  }

  struct Uses {
    bool logarithms = false, roots = false, divisions_by_roots = false;
  };

  /// Where a value has to be above 0: as a divisor, or in one of `wanted`; kNone where what comes of it is bounded or
  /// chosen from.
  static NodeId use_off_zero(const losses::Expressions& expressions, ValueId value, Uses wanted) {
    constexpr int kMaxSteps = 4;
    NodeId root = NodeId::kNone;
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      ValueId next = ValueId::kAbsent;
      for (const NodeId user : expressions.users(value)) {
        const ops::Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent || is_kept_finite(expressions, result)) continue;
        const bool is_base = expressions.operand(user, 0) == value;
        if (opcode == ops::Opcode::kLog && wanted.logarithms) return user;
        if ((opcode == ops::Opcode::kDiv && !is_base) || is_reciprocal(expressions, user) ||
            (opcode == ops::Opcode::kPow && is_base && has_negative_power(expressions, user)))
          return root == NodeId::kNone || wanted.divisions_by_roots ? user : NodeId::kNone;
        if (opcode == ops::Opcode::kSqrt) root = user;
        if (opcode == ops::Opcode::kSqrt || opcode == ops::Opcode::kCast || ops::repeats_elements(opcode))
          next = result;
      }
      value = next;
    }
    return wanted.roots ? root : NodeId::kNone;
  }

  static bool has_negative_power(const losses::Expressions& expressions, NodeId power) {
    const auto exponent = expressions.number(expressions.operand(power, 1));
    return exponent && *exponent < 0;
  }

  /// Added up in float16, or in float32 and cast back, as PyTorch's exporter writes a sum in float16.
  static bool is_sum_in_half(const losses::Expressions& expressions, const NodeCall& call) {
    const dataflow::Analysis& analysis = call.analysis();
    const DTypeSet half(DType::kFloat16);
    if (call.operand(0).fact().dtypes == half) return true;
    const NodeId widens = expressions.producer(call.operand(0).value());
    if (expressions.op(widens) != ops::Opcode::kCast || expressions.operand(widens, 0) == ValueId::kAbsent ||
        analysis.fact(expressions.operand(widens, 0)).dtypes != half)
      return false;
    const auto users = expressions.users(call.result());
    return users.size() == 1 && expressions.op(users[0]) == ops::Opcode::kCast &&
           expressions.result(users[0]) != ValueId::kAbsent &&
           analysis.fact(expressions.result(users[0])).dtypes == half;
  }

  /// Multiplied by a number as large as 255, which makes bytes of numbers up to 1.
  static bool is_scaled_up(const losses::Expressions& expressions, const losses::Formula& formula, std::size_t leaf) {
    constexpr double kLargeScale = 100;
    const auto parts = formula.parts();
    for (std::size_t at = 0; at < parts.size(); ++at) {
      if (expressions.op(parts[at].node) != ops::Opcode::kMul || parts[at].operands.size() != 2) continue;
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
        const std::uint32_t number = parts[at].operands[side], scaled = parts[at].operands[1 - side];
        if (number != losses::Formula::kNoPart && scaled != losses::Formula::kNoPart &&
            parts[number].kind == losses::Formula::PartKind::kConstant && parts[number].constant >= kLargeScale &&
            formula.depends(scaled, leaf))
          return true;
      }
    }
    return false;
  }

  static constexpr double kLargest = 65504;

  /// How far elements typically are from each other, as far as the program itself says: an eighth of the range that it
  /// brings them to, and what sums, numbers and weights make of it. 0 where nothing is known.
  static double typical_size(const losses::Expressions& expressions, ValueId value, int depth) {
    constexpr double kShare = 8, kShareOfWeights = 4;
    if (value == ValueId::kAbsent || depth == 0 || expressions.is_spent()) return 0;
    expressions.charge(8);
    const dataflow::Analysis& analysis = expressions.analysis();
    const Range& range = analysis.fact(value).range;
    if (analysis.fact(value).kind != ValueKind::kTensor || analysis.taint(value).has(Aspect::kValue)) return 0;
    if (std::isfinite(range.lo) && std::isfinite(range.hi) && range.hi - range.lo < kLargest)
      return (range.hi - range.lo) / kShare;
    const NodeId node = expressions.producer(value);
    const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
    const auto scaled = with_number(expressions, node);
    switch (expressions.op(node)) {
      case ops::Opcode::kAdd:
      case ops::Opcode::kSub:
        return std::fmax(typical_size(expressions, first, depth - 1), typical_size(expressions, second, depth - 1));
      case ops::Opcode::kMul:
        return scaled ? std::abs(scaled->number) * typical_size(expressions, scaled->value, depth - 1) : 0;
      case ops::Opcode::kMatMul:
      case ops::Opcode::kEinsum:
      case ops::Opcode::kConv:
        for (const ValueId weights : {first, second})
          if (weights != ValueId::kAbsent && analysis.model().value(weights).initializer != nullptr) {
            const Range& spread = analysis.fact(weights).range;
            return std::isfinite(spread.lo) && std::isfinite(spread.hi)
                       ? (spread.hi - spread.lo) / kShareOfWeights *
                             typical_size(expressions, weights == first ? second : first, depth - 1)
                       : 0;
          }
        return 0;
      default:
        return expressions.op(node) == ops::Opcode::kCast || ops::moves_elements(expressions.op(node))
                   ? typical_size(expressions, first, depth - 1)
                   : 0;
    }
  }

  /// Squares of differences of bytes, or of features of them.
  static bool check_squares(const losses::Expressions& expressions, const NodeCall& call, double count, Reporter& out) {
    constexpr int kMaxDepth = 12;
    const ValueId added = before_stretch(expressions, call.operand(0).value());
    const ValueId base =
        call.is(ops::Opcode::kReduceSumSquare) ? call.operand(0).value() : expressions.square_base(added);
    const ValueId difference = base == ValueId::kAbsent ? base : before_stretch(expressions, base);
    if (expressions.op_of(difference) != ops::Opcode::kSub) return false;
    const double typical = typical_size(expressions, difference, kMaxDepth);
    if (!(count * typical * typical > kLargest)) return false;
    out.report(call.id(), fmt::format("{} adds up {:.0f} squares of {} in float16, whose largest number is {}",
                                      call.op_name(), count, Operand(call.analysis(), difference).name(), kLargest))
        .certainty(ops::Certainty::kMay, fmt::format("the elements of {} are {:.0f} on the average",
                                                     Operand(call.analysis(), difference).name(), typical))
        .note_at(expressions.producer(difference), "subtracted here")
        .fix("scale what is compared to [0, 1] first, or add up in float32");
    return true;
  }

  /// Bytes, or powers and products of them, that float16 cannot add up: the largest number it has is 65504. And squares
  /// of data that is scaled to such numbers.
  static void check_sum_of_bytes(const losses::Expressions& expressions, const NodeCall& call, Reporter& out) {
    const Operand data = call.operand(0);
    if (!data.present() || data.taint().has(Aspect::kValue) || data.taint().has(Aspect::kShape) ||
        !is_sum_in_half(expressions, call))
      return;
    const auto axes = expressions.axes_of(call.id());
    if (!axes) return;
    const auto dims = expressions.dims(data.value());
    double count = 1;
    for (const std::size_t axis : *axes) {
      const auto extent = axis < dims.size() ? call.facts().dims().as_constant(dims[axis]) : std::nullopt;
      if (!extent) return;
      count *= static_cast<double>(*extent);
    }
    if (check_squares(expressions, call, count, out)) return;
    // What half of the largest byte comes to: pictures are not white everywhere.
    constexpr double kByte = 128, kShare = 0.5;
    const losses::Formula formula(expressions, data.value());
    std::optional<std::size_t> leaf;
    for (std::size_t at = 0; at < formula.parts().size(); ++at) {
      if (formula.parts()[at].kind != losses::Formula::PartKind::kLeaf) continue;
      if (leaf || formula.parts()[at].value == ValueId::kAbsent) return;
      leaf = at;
    }
    if (!leaf) return;
    const ValueId source = formula.parts()[*leaf].value;
    const bool is_bytes = call.analysis().fact(source).dtypes == DTypeSet(DType::kUint8);
    const auto element_at = [&](double number) {
      const losses::Formula::Assignment assigned[] = {{*leaf, number}};
      const double made = formula.evaluate(assigned, 0);
      return call.is(ops::Opcode::kReduceSumSquare) ? made * made : made;
    };
    // Of what may be negative as well, squares alone are sure to add up.
    if (!is_bytes && (!is_input(call.analysis(), before_moves(expressions, source)) ||
                      !call.analysis().fact(source).dtypes.proves(DTypeSet::floats()) ||
                      !is_scaled_up(expressions, formula, *leaf) || !(element_at(-kShare) > 0)))
      return;
    const double typical = is_bytes ? kByte : kShare;
    if (!(count * element_at(typical) > kLargest)) return;
    out.report(call.id(), fmt::format("{} adds up {:.0f} elements of {} in float16, whose largest number is {}",
                                      call.op_name(), count, data.name(), kLargest))
        .certainty(ops::Certainty::kMay, fmt::format("the elements of {} are {} on the average",
                                                     Operand(call.analysis(), source).name(), typical))
        .fix(is_bytes ? "scale the bytes first, such as by 1 / 255, or add up in float32"
                      : "take the squares before the scale, or add up in float32");
  }

  /// Labels in a byte where there are more classes than the byte has numbers for: those classes never come up.
  static bool check_classes(const NodeCall& call, DType narrow, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const Fact& given = call.operand(0).fact();
    const Range fits = range_of(DTypeSet(narrow));
    constexpr double kLargestByte = 255;
    if (fits.hi > kLargestByte || !given.dtypes.proves(DTypeSet::integers()) || given.range.hi <= fits.hi) return false;
    ValueId labels = call.result();
    constexpr int kMaxMoves = 6;
    for (int step = 0; step < kMaxMoves && labels != ValueId::kAbsent; ++step) {
      ValueId moved = ValueId::kAbsent;
      for (const NodeId user : analysis.users(labels)) {
        const NodeCall use(analysis, user);
        const auto last = last_class(use, labels);
        if (last && static_cast<double>(*last) > fits.hi) {
          out.report(call.id(), fmt::format("class {} of {} does not fit {}, which holds {}", *last,
                                            call.operand(0).name(), to_text(narrow), fits.to_text()))
              .note_at(user, fmt::format("used as one of {} classes here", *last + 1))
              .fix("keep the labels in int64");
          return true;
        }
        if (moves_elements(opcode_of(use.entry())) || use.is(ops::Opcode::kCast)) moved = use.result();
      }
      labels = moved;
    }
    return false;
  }

  /// The number of the last class, where a node takes `labels` for classes: it compares them with 0, 1, 2, ..., makes
  /// them one-hot, or is a loss.
  static std::optional<std::int64_t> last_class(const NodeCall& use, ValueId labels) {
    const dataflow::Analysis& analysis = use.analysis();
    const auto extent = [&](const Operand& operand, std::size_t axis) -> std::optional<std::int64_t> {
      if (!operand.present() || operand.fact().kind != ValueKind::kTensor || operand.fact().shape == ShapeId::kUnranked)
        return std::nullopt;
      const auto dims = analysis.facts().dims_of(operand.fact().shape);
      return axis < dims.size() ? analysis.facts().dims().as_constant(dims[axis]) : std::nullopt;
    };
    if (use.entry() != nullptr && use.entry()->loss() && takes_class_indices(*use.entry()->loss()) &&
        use.operand(1).value() == labels) {
      const auto classes = extent(use.operand(0), 1);
      return classes ? std::optional(*classes - 1) : std::nullopt;
    }
    if (use.is(ops::Opcode::kOneHot) && use.operand(0).value() == labels && use.operand(1).present()) {
      const Range& depth = use.operand(1).fact().range;
      constexpr double kMostClasses = 1e9;
      if (depth.lo == depth.hi && depth.lo > 0 && depth.lo < kMostClasses)
        return static_cast<std::int64_t>(depth.lo) - 1;
      return std::nullopt;
    }
    if (!use.is(ops::Opcode::kEqual)) return std::nullopt;
    const Operand other = use.operand(use.operand(0).value() == labels ? 1 : 0);
    if (!other.present() || other.taint().has(Aspect::kValue)) return std::nullopt;
    const Range& range = other.fact().range;
    // As many elements as numbers.
    const auto dims = other.fact().kind == ValueKind::kTensor && other.fact().shape != ShapeId::kUnranked
                          ? analysis.facts().dims_of(other.fact().shape).size()
                          : 0;
    for (std::size_t axis = 0; axis < dims; ++axis) {
      const auto classes = extent(other, axis);
      if (classes && *classes > 1 && range.lo == 0 && range.hi == static_cast<double>(*classes - 1))
        return *classes - 1;
    }
    return std::nullopt;
  }

  /// One number that is finite and infinite in float16: what becomes of it in a mask.
  void check_mask(const NodeCall& call, Reporter& out) const {
    // Halfway between the largest number and the next one; from there on float16 rounds to infinity.
    constexpr double kRoundsToInfinity = 65520;
    const Range& range = call.operand(0).fact().range;
    if (range.lo != range.hi || range.nan || !std::isfinite(range.lo) || std::abs(range.lo) < kRoundsToInfinity) return;
    const dataflow::Analysis& analysis = call.analysis();
    for (const NodeId user : analysis.users(call.result())) {
      const NodeCall use(analysis, user);
      const bool multiplies = use.is(ops::Opcode::kMul);
      if (!multiplies && !reaches_softmax(analysis, user)) continue;
      out.report(call.id(), fmt::format("{} is {}, which float16 has as {}infinity", call.operand(0).name(), range.lo,
                                        range.lo < 0 ? "-" : ""))
          .certainty(ops::Certainty::kMay, multiplies ? "an element of the mask is 0: 0 times infinity is NaN"
                                                      : "a row that is masked everywhere: its softmax is NaN")
          .note_at(user, "used here")
          .fix("use a number that float16 has, such as -65504");
      return;
    }
  }

  /// As part of the scores: chosen, added or scaled on the way.
  static bool reaches_softmax(const dataflow::Analysis& analysis, NodeId node) {
    constexpr int kMaxSteps = 6;
    for (int step = 0; step < kMaxSteps; ++step) {
      const NodeCall call(analysis, node);
      if (call.is(ops::Opcode::kSoftmax) || call.is(ops::Opcode::kLogSoftmax)) return true;
      const bool passes = call.is(ops::Opcode::kWhere) || call.is(ops::Opcode::kAdd) || call.is(ops::Opcode::kExpand) ||
                          keeps_elements(opcode_of(call.entry()));
      if (!passes || call.result() == ValueId::kAbsent || analysis.users(call.result()).empty()) return false;
      node = analysis.users(call.result()).front();
    }
    return false;
  }

  /// -1 stands for all bits, a dtype's limit for no limit: programs narrow both and mean the same of the narrower
  /// dtype.
  static bool is_customary(const Range& range, DTypeSet dtypes) {
    const Range limits = range_of(dtypes);
    return (range.lo == -1 && range.hi == -1) || range.hi >= limits.hi || range.lo <= limits.lo;
  }
};

const RegisterRule<OverflowInCast> kRegisterOverflowInCast;

}  // namespace
}  // namespace tensorlint::rules
