#include "passes/dataflow/reached_values.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace tensorlint::dataflow {
namespace {

constexpr int kLongestChain = 64;
/// Values that one search looks at: branches may share what they are made of.
constexpr int kMaxSteps = 256;
/// Elements of a constant that are looked at: 32 MiB of int64.
constexpr std::size_t kMaxElements = std::size_t{4} << 20;

/// A node with its operands; absent ones are ValueId::kAbsent.
class Call {
 public:
  Call(const Analysis& analysis, NodeId node) : analysis_(analysis), node_(analysis.model().node(node)) {}
  bool is(ops::Opcode opcode) const { return this->opcode() == opcode; }
  ops::Opcode opcode() const { return opcode_of(analysis_.entry(node_)); }
  std::size_t operand_count() const { return node_.operand_count; }
  ValueId operand(std::size_t index) const {
    return index < node_.operand_count ? analysis_.model().operands(node_)[index] : ValueId::kAbsent;
  }
  const Fact& fact(std::size_t index) const { return analysis_.fact(operand(index)); }
  const Fact& result_fact() const {
    return analysis_.fact(node_.result_count > 0 ? analysis_.model().results(node_)[0] : ValueId::kAbsent);
  }
  const Attribute* attribute(std::string_view name) const { return analysis_.model().attribute(node_, name); }

 private:
  const Analysis& analysis_;
  const Node& node_;
};

bool is_number(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

bool is_number_cast(const Call& call) {
  if (!call.is(ops::Opcode::kCast)) return false;
  const DTypeSet from = call.fact(0).dtypes, to = call.result_fact().dtypes;
  return from.size() == 1 && to.size() == 1 && is_number(*from.single()) && is_number(*to.single());
}

std::optional<double> single_number(const Call& call, std::size_t operand) {
  if (call.operand(operand) == ValueId::kAbsent) return std::nullopt;
  const Range& range = call.fact(operand).range;
  const bool one = range.lo == range.hi && std::isfinite(range.lo) && !range.nan;
  return one ? std::optional(range.lo) : std::nullopt;
}

bool is_bounded(const Call& call, std::size_t operand) {
  return call.operand(operand) != ValueId::kAbsent && call.fact(operand).range.lo > -1e9 &&
         call.fact(operand).range.hi < 1e9;
}

bool is_main_input(const Analysis& analysis, ValueId value) {
  const Value& known = analysis.model().value(value);
  return known.origin == ValueOrigin::kInput && known.graph == GraphId::kMain && known.initializer == nullptr;
}

bool has_declared_range(const Fact& fact) {
  return !fact.range.is_everything() && !(fact.range == range_of(fact.dtypes));
}

/// Some execution hands over an element that is as large as one likes, and one that is as small.
bool takes_any_value(const Analysis& analysis, ValueId value) {
  for (int step = 0; step < kLongestChain; ++step) {
    const Fact& fact = analysis.fact(value);
    if (fact.kind != ValueKind::kTensor || fact.dtypes.size() != 1 || !is_number(*fact.dtypes.single())) return false;
    if (is_main_input(analysis, value)) return !has_declared_range(fact);
    const NodeId producer = analysis.model().value(value).producer;
    if (producer == NodeId::kNone || analysis.model().node(producer).graph != GraphId::kMain) return false;
    const Call call(analysis, producer);
    const ops::Opcode opcode = call.opcode();
    if (moves_elements(opcode) || is_number_cast(call) || opcode == ops::Opcode::kRound ||
        opcode == ops::Opcode::kNeg) {
      value = call.operand(0);
    } else if (opcode == ops::Opcode::kAdd || opcode == ops::Opcode::kSub) {
      const bool second = is_bounded(call, 1);
      if (!second && !is_bounded(call, 0)) return false;
      value = call.operand(second ? 0 : 1);
    } else if ((opcode == ops::Opcode::kMul || opcode == ops::Opcode::kDiv) &&
               single_number(call, 1).value_or(0) != 0) {
      value = call.operand(0);
    } else {
      return false;
    }
  }
  return false;
}

/// The largest, or smallest, number that Clip gives for large, or small, ones.
std::optional<double> clip_bound(const Call& call, bool highest) {
  const auto bound = [&](std::size_t operand, std::string_view attribute) -> std::optional<double> {
    if (call.operand_count() > 1) return single_number(call, operand);
    const Attribute* given = call.attribute(attribute);
    return given != nullptr ? std::optional<double>(given->f) : std::nullopt;
  };
  const auto has = [&](std::size_t operand, std::string_view attribute) {
    return call.operand_count() > 1 ? call.operand(operand) != ValueId::kAbsent : call.attribute(attribute) != nullptr;
  };
  const auto minimum = bound(1, "min"), maximum = bound(2, "max");
  // A bound that is not known may be on the other side of the known one.
  if ((has(1, "min") && !minimum) || (has(2, "max") && !maximum) || (minimum && maximum && *minimum > *maximum))
    return std::nullopt;
  return highest ? maximum : minimum;
}

std::optional<std::int64_t> integer_below(double number) {
  if (!(std::abs(number) < 9007199254740992.0)) return std::nullopt;
  return static_cast<std::int64_t>(std::trunc(number));  // as Cast does
}

/// Elements of an integer constant of the main graph, however many there are.
std::optional<std::vector<std::int64_t>> constant_elements(const Analysis& analysis, ValueId value) {
  const Model& model = analysis.model();
  for (int step = 0; step < kLongestChain; ++step) {
    const Value& known = model.value(value);
    if (known.initializer != nullptr && known.origin == ValueOrigin::kInitializer)
      return known.initializer->integers(kMaxElements);
    if (known.producer == NodeId::kNone) return std::nullopt;
    const Call call(analysis, known.producer);
    if (call.is(ops::Opcode::kConstant)) {
      const Attribute* attribute = call.attribute("value");
      return attribute != nullptr && attribute->tensor != nullptr ? attribute->tensor->integers(kMaxElements)
                                                                  : std::nullopt;
    }
    if (!keeps_elements(call.opcode()) && !call.is(ops::Opcode::kTranspose)) return std::nullopt;
    value = call.operand(0);
  }
  return std::nullopt;
}

/// The index of a largest element: each one is, for some values.
std::optional<std::int64_t> reached_position(const Analysis& analysis, const Call& call, bool highest) {
  if (call.operand(0) == ValueId::kAbsent || call.fact(0).shape == ShapeId::kUnranked ||
      !takes_any_value(analysis, call.operand(0)))
    return std::nullopt;
  if (!highest) return 0;
  const auto dims = analysis.facts().dims_of(call.fact(0).shape);
  const Attribute* axis = call.attribute("axis");
  const auto rank = static_cast<std::int64_t>(dims.size());
  std::int64_t at = axis == nullptr ? 0 : axis->i;
  if (at < 0) at += rank;
  if (at < 0 || at >= rank) return std::nullopt;
  const auto extent = analysis.facts().dims().as_constant(dims[static_cast<std::size_t>(at)]);
  return extent && *extent > 0 ? std::optional(*extent - 1) : std::nullopt;
}

std::optional<std::int64_t> reached(const Analysis& analysis, ValueId value, bool highest, int& steps);

/// What a sum, difference or product with one number makes of the number that is reached.
std::optional<std::int64_t> reached_by_arithmetic(const Analysis& analysis, const Call& call, bool highest,
                                                  int& steps) {
  if (!call.result_fact().dtypes.proves(DTypeSet::integers()) || call.operand_count() != 2) return std::nullopt;
  for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
    const auto number = single_number(call, side);
    if (!number || !(std::abs(*number) < 1e9) || call.operand(1 - side) == ValueId::kAbsent) continue;
    const auto constant = static_cast<std::int64_t>(*number);
    const bool subtracts = call.is(ops::Opcode::kSub),
               turns = (subtracts && side == 0) || (call.is(ops::Opcode::kMul) && constant < 0);
    const auto other = reached(analysis, call.operand(1 - side), highest != turns, steps);
    std::int64_t result = 0;
    if (!other) return std::nullopt;
    const bool overflows = call.is(ops::Opcode::kMul) ? __builtin_mul_overflow(*other, constant, &result)
                           : !subtracts               ? __builtin_add_overflow(*other, constant, &result)
                           : side == 1                ? __builtin_sub_overflow(*other, constant, &result)
                                                      : __builtin_sub_overflow(constant, *other, &result);
    return overflows ? std::nullopt : std::optional(result);
  }
  return std::nullopt;
}

/// Of values that all come up, the one that goes furthest, as far as it is known.
std::optional<std::int64_t> furthest(const Analysis& analysis, const Call& call, std::size_t first, bool highest,
                                     int& steps) {
  std::optional<std::int64_t> found;
  for (std::size_t i = first; i < call.operand_count(); ++i) {
    if (call.operand(i) == ValueId::kAbsent) continue;
    const auto one = reached(analysis, call.operand(i), highest, steps);
    if (one && (!found || (highest ? *one > *found : *one < *found))) found = one;
  }
  return found;
}

/// The largest, or smallest, element that some execution has.
std::optional<std::int64_t> reached(const Analysis& analysis, ValueId value, bool highest, int& steps) {
  while (++steps < kMaxSteps) {
    const Fact& fact = analysis.fact(value);
    if (fact.kind != ValueKind::kTensor) return std::nullopt;
    if (is_main_input(analysis, value)) {
      const double end = highest ? fact.range.hi : fact.range.lo;
      return has_declared_range(fact) && std::isfinite(end) ? integer_below(end) : std::nullopt;
    }
    const NodeId producer = analysis.model().value(value).producer;
    if (producer == NodeId::kNone || analysis.model().node(producer).graph != GraphId::kMain) return std::nullopt;
    const Call call(analysis, producer);
    const ops::Opcode opcode = call.opcode();
    switch (opcode) {
      case ops::Opcode::kClip: {
        const auto bound = clip_bound(call, highest);
        return bound && takes_any_value(analysis, call.operand(0)) ? integer_below(*bound) : std::nullopt;
      }
      case ops::Opcode::kMin:
      case ops::Opcode::kMax:
        if (call.operand_count() != 2 || highest != (opcode == ops::Opcode::kMin)) return std::nullopt;
        for (const std::size_t bound : {std::size_t{0}, std::size_t{1}})
          if (const auto end = single_number(call, bound); end && takes_any_value(analysis, call.operand(1 - bound)))
            return integer_below(*end);
        return std::nullopt;
      case ops::Opcode::kMod: {
        const Attribute* fmod = call.attribute("fmod");
        const auto modulus = single_number(call, 1);
        const bool integers = call.fact(0).dtypes.proves(DTypeSet::integers()) && (fmod == nullptr || fmod->i == 0);
        if (!integers || !modulus || *modulus < 1 || !takes_any_value(analysis, call.operand(0))) return std::nullopt;
        return highest ? integer_below(*modulus - 1) : 0;
      }
      case ops::Opcode::kArgExtreme:
        return reached_position(analysis, call, highest);
      case ops::Opcode::kAdd:
      case ops::Opcode::kSub:
      case ops::Opcode::kMul:
        return reached_by_arithmetic(analysis, call, highest, steps);
      case ops::Opcode::kConcat:
        return furthest(analysis, call, 0, highest, steps);
      case ops::Opcode::kWhere:
        // Either may be chosen where the choice is an input of its own.
        return is_main_input(analysis, call.operand(0)) ? furthest(analysis, call, 1, highest, steps) : std::nullopt;
      default:
        break;
    }
    // Slice takes some elements of the user's range: which ones, is not known, so any may be the largest.
    if (!moves_elements(opcode) && !is_number_cast(call)) return std::nullopt;
    value = call.operand(0);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> reached_maximum(const Analysis& analysis, ValueId value) {
  int steps = 0;
  return reached(analysis, value, true, steps);
}

std::optional<ReachedIndex> index_outside(const Analysis& analysis, ValueId value, std::int64_t lowest,
                                          std::int64_t extent, std::optional<std::int64_t> ignored) {
  int up = 0, down = 0;
  const auto maximum = reached(analysis, value, true, up), minimum = reached(analysis, value, false, down);
  if (maximum && *maximum >= extent && maximum != ignored) return ReachedIndex{*maximum, ops::Certainty::kMay};
  // A bound as low as that of the ignored labels is not what a label is.
  const bool below = minimum && *minimum < lowest && !(ignored && *minimum <= *ignored);
  if (below) return ReachedIndex{*minimum, ops::Certainty::kMay};
  if (maximum && minimum) return std::nullopt;
  const Range& range = analysis.fact(value).range;
  // The range of a constant is that of its elements.
  if (range.lo >= static_cast<double>(lowest) && range.hi < static_cast<double>(extent)) return std::nullopt;
  const auto elements = constant_elements(analysis, value);
  if (!elements) return std::nullopt;
  const auto outside = std::ranges::find_if(
      *elements, [&](std::int64_t index) { return index != ignored && (index < lowest || index >= extent); });
  return outside == elements->end() ? std::nullopt : std::optional(ReachedIndex{*outside, ops::Certainty::kMust});
}

}  // namespace tensorlint::dataflow
