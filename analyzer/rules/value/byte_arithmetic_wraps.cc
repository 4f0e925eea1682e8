#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/rules/rule.h"
#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

class ByteArithmeticWraps : public Rule {
 public:
  ByteArithmeticWraps()
      : Rule({"TL-V516", "byte-arithmetic-wraps", "value", findings::Severity::kWarning,
              "a picture of small integers that a sum, product or power takes out of their range"},
             {passes::Pass::kLosses}) {}

  void check_model(const ModelView& view, Reporter& out) const override {
    static constexpr std::initializer_list<Opcode> kWanted{Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kPow};
    each_node(view, out, kWanted, [&](const Expressions& expressions, const NodeCall& call) {
      const auto dtype = call.analysis().fact(call.result()).dtypes.single();
      if (dtype && DTypeSet::integers().contains(*dtype) && range_of(DTypeSet(*dtype)).hi <= kLargestOfTwoBytes) {
        check_step(expressions, call, *dtype, out);
        check_quantised(expressions, call, *dtype, out);
      }
    });
  }

 private:
  static constexpr double kLargestOfTwoBytes = 65535, kLargestByte = 255;
  /// Less may count classes: labels or masks of small integers, which nothing takes out of their range.
  static constexpr double kPictureStep = 8;

  /// What one operator makes of the numbers that an input holds.
  struct Step {
    ValueId data = ValueId::kAbsent, other = ValueId::kAbsent;  ///< other: where it is another value than a number
    double witness = 0, most = 0;                               ///< `most` is made of `witness`
    bool is_square = false;
  };

  static std::optional<Step> step_of(const Expressions& expressions, const NodeCall& call, const Range& type) {
    const Opcode opcode = opcode_of(call.entry());
    const ValueId first = call.operand(0).value(), second = call.operand(1).value();
    const auto numbered = with_number(expressions, call.id());
    if (!numbered && opcode != Opcode::kPow && is_whole_range(expressions, first, type) &&
        is_whole_range(expressions, second, type))
      return step_of_two(expressions, opcode, first, second, type);
    const WithNumber step = numbered ? *numbered : with_numbers(expressions, first, second);
    if (!is_whole_range(expressions, step.value, type)) return std::nullopt;
    Step made{.data = step.value};
    if (opcode == Opcode::kPow) {
      if (step.is_first || step.number < 2) return std::nullopt;
      made.is_square = true;
      made.witness = std::floor(std::pow(type.hi, 1 / step.number)) + 1;
      made.most = std::pow(made.witness, step.number);
    } else if (opcode == Opcode::kMul) {
      if (step.number < 2 || step.number > kPictureStep) return std::nullopt;  // a mask of 0 and 1 times 255
      made.witness = type.hi;
      made.most = made.witness * step.number;
    } else {
      // Numbers of both signs come close to the ends of their range only where they are extreme.
      const double least = type.lo < 0 ? type.hi / kPictureStep : kPictureStep;
      const double change = opcode == Opcode::kAdd ? step.number : -step.number;
      if (std::abs(change) < least || (opcode == Opcode::kSub && step.is_first)) return std::nullopt;
      made.witness = change > 0 ? type.hi : type.lo;
      made.most = made.witness + change;
    }
    return made;
  }

  /// Of two values that both are data.
  static std::optional<Step> step_of_two(const Expressions& expressions, Opcode opcode, ValueId first, ValueId second,
                                         const Range& type) {
    Step made{.data = first, .other = first == second ? ValueId::kAbsent : second, .witness = type.hi};
    if (opcode == Opcode::kAdd) {
      made.other = second;
      made.most = 2 * made.witness;
    } else if (opcode == Opcode::kMul) {
      // Of two inputs one may be a mask.
      if (before_moves(expressions, first) != before_moves(expressions, second)) return std::nullopt;
      made.is_square = first == second;  // else a mask of pairs
      made.witness = std::floor(std::sqrt(type.hi)) + 1;
      made.most = made.witness * made.witness;
    } else {
      return std::nullopt;  // unsigned-difference-wraps
    }
    return made;
  }

  static void check_step(const Expressions& expressions, const NodeCall& call, DType dtype, Reporter& out) {
    const dataflow::Analysis& analysis = call.analysis();
    const Range type = range_of(DTypeSet(dtype));
    const auto step = step_of(expressions, call, type);
    if (!step || (step->most >= type.lo && step->most <= type.hi)) return;
    // No label and no mask is squared, nor has it two bytes.
    const bool is_number = step->is_square || type.hi > kLargestByte;
    NodeId use = picture_use(expressions, call.result());
    const bool is_picture = use != NodeId::kNone;
    if (!is_picture && is_number) use = number_use(expressions, call.result());
    if (use == NodeId::kNone) return;
    const double span = type.hi - type.lo + 1, most = step->most;
    const double wrapped = most - std::floor((most - type.lo) / span) * span;
    const std::string name = Operand(analysis, step->data).name();
    const std::string both =
        step->other == ValueId::kAbsent ? name : fmt::format("{} and {}", name, Operand(analysis, step->other).name());
    out.report(call.id(), fmt::format("{} of {} leaves the range of {}: {:.0f} becomes {:.0f}", call.op_name(), both,
                                      to_text(dtype), most, wrapped))
        .certainty(ops::Certainty::kMay, step->other == ValueId::kAbsent
                                             ? fmt::format("{} has {:.0f} among its elements", name, step->witness)
                                             : fmt::format("{} are both {:.0f}", both, step->witness))
        .note_at(use, is_picture ? "used as a picture here" : "used as a number here")
        .fix("cast to a floating-point dtype first");
  }

  /// Two values that fill their dtype, as the program itself makes them: wider only after the product or sum is taken.
  static void check_quantised(const Expressions& expressions, const NodeCall& call, DType dtype, Reporter& out) {
    const Opcode opcode = opcode_of(call.entry());
    if (opcode != Opcode::kMul && opcode != Opcode::kAdd) return;
    const Range type = range_of(DTypeSet(dtype));
    const auto first = largest_of_quantised(expressions, call.operand(0), type),
               second = largest_of_quantised(expressions, call.operand(1), type);
    if (!first || !second) return;
    const double most = opcode == Opcode::kMul ? *first * *second : *first + *second;
    if (most <= type.hi) return;
    const NodeId use = widening_use(expressions, call.result(), type);
    if (use == NodeId::kNone) return;
    const double span = type.hi - type.lo + 1;
    const std::string one = call.operand(0).name(), other = call.operand(1).name();
    out.report(call.id(),
               fmt::format("{} of {} and {} leaves the range of {}: {:.0f} becomes {:.0f}", call.op_name(), one, other,
                           to_text(dtype), most, most - std::floor((most - type.lo) / span) * span))
        .certainty(ops::Certainty::kMay, fmt::format("{} is {:.0f} where {} is {:.0f}", one, *first, other, *second))
        .note_at(use, "cast to a wider dtype only here")
        .fix("cast both to a wider dtype first, such as int32");
  }

  /// The largest number of a table, or of what was rounded or cut off to fill the dtype; nullopt for what is small, as
  /// masks and classes are, and where nothing is known.
  static std::optional<double> largest_of_quantised(const Expressions& expressions, const Operand& operand,
                                                    const Range& type) {
    constexpr int kMaxSteps = 8;
    const dataflow::Analysis& analysis = expressions.analysis();
    ValueId value = operand.value();
    for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
      if (analysis.taint(value).has(Aspect::kValue)) return std::nullopt;
      const NodeId node = expressions.producer(value);
      const Opcode opcode = expressions.op(node);
      if (ops::moves_elements(opcode)) {
        value = expressions.operand(node, 0);
        continue;
      }
      const bool is_table =
          node == NodeId::kNone ? analysis.model().value(value).initializer != nullptr : opcode == Opcode::kConstant;
      if (opcode == Opcode::kCast) value = expressions.operand(node, 0);
      if ((!is_table && opcode != Opcode::kCast) || value == ValueId::kAbsent) return std::nullopt;
      const Fact& fact = analysis.fact(value);
      if (!is_table && !fact.dtypes.proves(DTypeSet::floats())) return std::nullopt;
      const Range& range = fact.range;
      // A scalar is a number like any other, and a mask may have 0 and the largest number alone.
      const bool fills = range.hi >= type.hi / 2 && range.hi < type.hi + 1 && range.lo >= type.lo - 1 &&
                         (type.lo == 0 || range.lo <= type.lo / 2) && range.lo < range.hi;
      return fills ? std::optional(std::floor(range.hi)) : std::nullopt;
    }
    return std::nullopt;
  }

  /// The Cast to a dtype that would have held the result.
  static NodeId widening_use(const Expressions& expressions, ValueId value, const Range& type) {
    constexpr std::size_t kMaxValues = 8;
    std::vector<ValueId> values{value};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent) continue;
        const DTypeSet& dtypes = expressions.analysis().fact(result).dtypes;
        const auto dtype = dtypes.single();
        if (expressions.op(user) == Opcode::kCast && dtype &&
            (dtypes.proves(DTypeSet::floats()) ||
             (DTypeSet::integers().contains(*dtype) && range_of(dtypes).hi > type.hi)))
          return user;
        if (ops::moves_elements(expressions.op(user)) && values.size() < kMaxValues) values.push_back(result);
      }
    return NodeId::kNone;
  }

  /// One number for each channel, such as the mean of pictures: the largest of them.
  static WithNumber with_numbers(const Expressions& expressions, ValueId first, ValueId second) {
    constexpr std::size_t kMostChannels = 64;
    for (const bool is_first : {false, true}) {
      const ValueId numbers = is_first ? first : second;
      const auto found = constant_numbers(expressions.analysis(), numbers, kMostChannels);
      if (!found || found->empty()) continue;
      const auto largest = std::ranges::max_element(*found, {}, [](double number) { return std::abs(number); });
      return {is_first ? second : first, *largest, is_first};
    }
    return {};
  }

  /// Moved from an input of which nothing is known but its dtype.
  static bool is_whole_range(const Expressions& expressions, ValueId data, const Range& type) {
    const dataflow::Analysis& analysis = expressions.analysis();
    if (data == ValueId::kAbsent || !is_input(analysis, before_moves(expressions, data))) return false;
    const Range& range = analysis.fact(data).range;
    return !analysis.taint(data).has(Aspect::kValue) && range.lo == type.lo && range.hi == type.hi;
  }

  /// Where the value becomes a floating-point number.
  static NodeId number_use(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMaxValues = 16;
    std::vector<ValueId> values{value};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const Opcode opcode = expressions.op(user);
        const ValueId result = expressions.result(user);
        if (result == ValueId::kAbsent) continue;
        if (opcode == Opcode::kCast && expressions.analysis().fact(result).dtypes.proves(DTypeSet::floats()))
          return user;
        // What is still of the same dtype has wrapped already, as a sum of two or of many has.
        const bool passes = ops::moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kAdd ||
                            opcode == Opcode::kSub || opcode == Opcode::kDiv || opcode == Opcode::kReduceSum ||
                            opcode == Opcode::kReduceMean || opcode == Opcode::kConcat;
        if (passes && values.size() < kMaxValues) values.push_back(result);
      }
    return NodeId::kNone;
  }

  /// The convolution that takes the value, or a division as of bytes: a picture, and neither labels nor a mask.
  static NodeId picture_use(const Expressions& expressions, ValueId value) {
    constexpr std::size_t kMaxValues = 16;
    constexpr double kBytes = 100;
    std::vector<ValueId> values{value};
    for (std::size_t i = 0; i < values.size(); ++i)
      for (const NodeId user : expressions.users(values[i])) {
        const Opcode opcode = expressions.op(user);
        const auto number = with_number(expressions, user);
        if (opcode == Opcode::kConv || opcode == Opcode::kNormalize) return user;
        if (opcode == Opcode::kDiv && number && !number->is_first && number->number >= kBytes) return user;
        if (opcode == Opcode::kMul && number && std::abs(number->number) <= 1 / kBytes) return user;
        const bool passes = ops::moves_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kAdd ||
                            (number && has_trait(expressions.entry(user), ops::OpTrait::kElementwise));
        if (passes && values.size() < kMaxValues) values.push_back(expressions.result(user));
      }
    return NodeId::kNone;
  }
};

const RegisterRule<ByteArithmeticWraps> kRegisterByteArithmeticWraps;

}  // namespace
}  // namespace tensorlint::rules
