#include "analyzer/rules/value/masks.h"

#include <algorithm>
#include <string_view>

#include "analyzer/rules/value/sources.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

bool is_named_mask(std::string_view name) {
  return has_ending(name, "_mask") || (name.size() == 4 && has_ending(name, "mask"));
}

/// Ones on a diagonal `k`, as EyeLike makes them.
bool is_identity_matrix(const Expressions& expressions, NodeId node) {
  if (node == NodeId::kNone || expressions.op(node) != Opcode::kOther) return false;
  const Model& model = expressions.analysis().model();
  const OpSchema* schema = model.op(model.node(node)).schema;
  const ValueId result = expressions.result(node);
  if (schema == nullptr || schema->attribute("k") == nullptr || result == ValueId::kAbsent) return false;
  const Range& range = expressions.analysis().fact(result).range;
  return range.lo == 0 && range.hi == 1;
}

bool is_mask(const Expressions& expressions, ValueId value, int depth) {
  constexpr int kMaxDepth = 6;
  if (value == ValueId::kAbsent || depth > kMaxDepth) return false;
  value = before_stretch(expressions, value);
  const dataflow::Analysis& analysis = expressions.analysis();
  if (analysis.fact(value).dtypes.proves(DTypeSet(DType::kBool))) return true;
  if (is_input(analysis, value) && is_named_mask(analysis.model().name_of(value))) return true;
  const NodeId node = expressions.producer(value);
  if (is_identity_matrix(expressions, node)) return true;
  if (expressions.op(node) == Opcode::kSub && expressions.is_number(expressions.operand(node, 0), 1))
    return is_mask(expressions, expressions.operand(node, 1), depth + 1);
  return expressions.op(node) == Opcode::kMul && is_mask(expressions, expressions.operand(node, 0), depth + 1) &&
         is_mask(expressions, expressions.operand(node, 1), depth + 1);
}

}  // namespace

bool has_ending(std::string_view name, std::string_view ending) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return name.size() >= ending.size() &&
         std::ranges::equal(name.substr(name.size() - ending.size()), ending, {}, lower);
}

bool is_mask(const Expressions& expressions, ValueId value) { return is_mask(expressions, value, 0); }

}  // namespace tensorlint::rules
