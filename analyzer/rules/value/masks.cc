#include "analyzer/rules/value/masks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/rules/value/sources.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

bool is_named_mask(std::string_view name) {
  return has_ending(name, "_mask") || (name.size() == 4 && has_ending(name, "mask"));
}

bool is_mask(const Expressions& expressions, ValueId value, int depth) {
  constexpr int kMaxDepth = 6;
  if (value == ValueId::kAbsent || depth > kMaxDepth) return false;
  value = before_stretch(expressions, value);
  const dataflow::Analysis& analysis = expressions.analysis();
  if (analysis.fact(value).dtypes.proves(DTypeSet(DType::kBool))) return true;
  if (is_input(analysis, value) && is_named_mask(analysis.model().name_of(value))) return true;
  const NodeId node = expressions.producer(value);
  if (is_identity_matrix(expressions, value)) return true;
  if (expressions.op(node) == Opcode::kSub && expressions.is_number(expressions.operand(node, 0), 1))
    return is_mask(expressions, expressions.operand(node, 1), depth + 1);
  return expressions.op(node) == Opcode::kMul && is_mask(expressions, expressions.operand(node, 0), depth + 1) &&
         is_mask(expressions, expressions.operand(node, 1), depth + 1);
}

/// 0, 1, 2, ...
bool are_steps(const Expressions& expressions, ValueId value) {
  value = before_stretch(expressions, value);
  const NodeId node = expressions.producer(value);
  if (expressions.op(node) == Opcode::kRange)
    return expressions.is_number(expressions.operand(node, 0), 0) &&
           expressions.is_number(expressions.operand(node, 2), 1);
  const Content* content = expressions.analysis().content(value);
  if (content == nullptr || content->integers.size() < 2) return false;
  const DimPool& pool = expressions.analysis().facts().dims();
  expressions.charge(content->integers.size());
  for (std::size_t i = 0; i < content->integers.size(); ++i)
    if (pool.as_constant(content->integers[i]) != static_cast<std::int64_t>(i)) return false;
  return true;
}

}  // namespace

bool is_identity_matrix(const Expressions& expressions, ValueId value) {
  const NodeId node = expressions.producer(value);
  if (node == NodeId::kNone || expressions.op(node) != Opcode::kOther) return false;
  const Model& model = expressions.analysis().model();
  const OpSchema* schema = model.op(model.node(node)).schema;
  if (schema == nullptr || schema->attribute("k") == nullptr || expressions.result(node) != value) return false;
  const Range& range = expressions.analysis().fact(value).range;
  return range.lo == 0 && range.hi == 1;
}

std::optional<StepMask> step_mask(const Expressions& expressions, NodeId node) {
  const dataflow::Analysis& analysis = expressions.analysis();
  if (expressions.op(node) != Opcode::kCompare) return std::nullopt;
  const ops::ElementValue element = dataflow::element_function(analysis, node, 2);
  if (element == nullptr) return std::nullopt;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const ValueId steps = expressions.operand(node, side), other = expressions.operand(node, 1 - side);
    if (steps == ValueId::kAbsent || other == ValueId::kAbsent || !are_steps(expressions, steps)) continue;
    const ValueId lengths = before_stretch(expressions, other);
    const auto is_step = [&](double step, double length) {
      const std::array both{side == 0 ? step : length, side == 0 ? length : step};
      return element({both, {}}) == 1;
    };
    if (is_input(analysis, lengths) && analysis.fact(lengths).dtypes.proves(DTypeSet::integers()) && is_step(1, 2) &&
        !is_step(3, 2))
      return StepMask{lengths, !is_step(2, 2)};
  }
  return std::nullopt;
}

bool has_ending(std::string_view name, std::string_view ending) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return name.size() >= ending.size() &&
         std::ranges::equal(name.substr(name.size() - ending.size()), ending, {}, lower);
}

bool counts_steps(const Expressions& expressions, ValueId lengths) {
  constexpr std::size_t kMaxValues = 12;
  std::vector<ValueId> pending{lengths};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxValues; ++i)
    for (const NodeId user : expressions.users(pending[i])) {
      const Opcode opcode = expressions.op(user);
      const ValueId result = expressions.result(user);
      if (const auto steps = step_mask(expressions, user); steps && steps->is_strict) return true;
      if (result != ValueId::kAbsent && (ops::repeats_elements(opcode) || opcode == Opcode::kCast))
        pending.push_back(result);
    }
  return false;
}

bool is_mask(const Expressions& expressions, ValueId value) { return is_mask(expressions, value, 0); }

}  // namespace tensorlint::rules
