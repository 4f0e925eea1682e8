#include "passes/dataflow/reached_values.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace tensorlint::dataflow {
namespace {

constexpr int kLongestChain = 64;
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

std::optional<double> clip_maximum(const Call& call) {
  const auto bound = [&](std::size_t operand, std::string_view attribute) -> std::optional<double> {
    if (call.operand_count() > 1) return single_number(call, operand);
    const Attribute* given = call.attribute(attribute);
    return given != nullptr ? std::optional<double>(given->f) : std::nullopt;
  };
  const auto maximum = bound(2, "max");
  const bool has_minimum =
      call.operand_count() > 1 ? call.operand(1) != ValueId::kAbsent : call.attribute("min") != nullptr;
  const auto minimum = bound(1, "min");
  if (!maximum || (has_minimum && (!minimum || *minimum > *maximum))) return std::nullopt;
  return maximum;
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

}  // namespace

std::optional<std::int64_t> reached_maximum(const Analysis& analysis, ValueId value) {
  for (int step = 0; step < kLongestChain; ++step) {
    const Fact& fact = analysis.fact(value);
    if (fact.kind != ValueKind::kTensor) return std::nullopt;
    if (is_main_input(analysis, value))
      return has_declared_range(fact) && std::isfinite(fact.range.hi) ? integer_below(fact.range.hi) : std::nullopt;
    const NodeId producer = analysis.model().value(value).producer;
    if (producer == NodeId::kNone || analysis.model().node(producer).graph != GraphId::kMain) return std::nullopt;
    const Call call(analysis, producer);
    if (call.is(ops::Opcode::kClip)) {
      const auto maximum = clip_maximum(call);
      return maximum && takes_any_value(analysis, call.operand(0)) ? integer_below(*maximum) : std::nullopt;
    }
    if (call.is(ops::Opcode::kMin) && call.operand_count() == 2) {
      for (const std::size_t bound : {std::size_t{0}, std::size_t{1}})
        if (const auto maximum = single_number(call, bound);
            maximum && takes_any_value(analysis, call.operand(1 - bound)))
          return integer_below(*maximum);
      return std::nullopt;
    }
    if (call.is(ops::Opcode::kMod)) {
      const Attribute* fmod = call.attribute("fmod");
      const auto modulus = single_number(call, 1);
      const bool integers = call.fact(0).dtypes.proves(DTypeSet::integers()) && (fmod == nullptr || fmod->i == 0);
      if (!integers || !modulus || *modulus < 1 || !takes_any_value(analysis, call.operand(0))) return std::nullopt;
      return integer_below(*modulus - 1);
    }
    // Slice takes some elements of the user's range: which ones, is not known, so any may be the largest.
    if (!moves_elements(call.opcode()) && !is_number_cast(call)) return std::nullopt;
    value = call.operand(0);
  }
  return std::nullopt;
}

std::optional<ReachedIndex> index_outside(const Analysis& analysis, ValueId value, std::int64_t lowest,
                                          std::int64_t extent, std::optional<std::int64_t> ignored) {
  if (const auto maximum = reached_maximum(analysis, value))
    return *maximum >= extent && maximum != ignored ? std::optional(ReachedIndex{*maximum, ops::Certainty::kMay})
                                                    : std::nullopt;
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
