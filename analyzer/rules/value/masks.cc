#include "analyzer/rules/value/masks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/rules/value/sources.h"
#include "base/letters.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

/// Less than any score: what is added to hide one, or put in its place.
constexpr double kHiddenScore = -1e3;

/// mask, padding_mask, mask_a, mask2; but not mask_id or mask_ratio.
bool is_named_mask(std::string_view name) {
  const std::size_t which = name.rfind('_');
  if (which != std::string_view::npos && which + 2 == name.size()) name = name.substr(0, which);
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return has_ending(name, "_mask") || (name.size() == 4 && has_ending(name, "mask"));
}

bool is_mask(const Expressions& expressions, ValueId value, int depth) {
  constexpr int kMaxDepth = 6;
  if (value == ValueId::kAbsent || depth > kMaxDepth) return false;
  value = before_stretch(expressions, value);
  const dataflow::Analysis& analysis = expressions.analysis();
  if (analysis.fact(value).dtypes.proves(DTypeSet(DType::kBool))) return true;
  if (is_input(analysis, value) && is_named_mask(telling_name(analysis, value))) return true;
  const NodeId node = expressions.producer(value);
  if (is_identity_matrix(expressions, value)) return true;
  if (expressions.op(node) == Opcode::kSub && expressions.is_number(expressions.operand(node, 0), 1))
    return is_mask(expressions, expressions.operand(node, 1), depth + 1);
  return expressions.op(node) == Opcode::kMul && is_mask(expressions, expressions.operand(node, 0), depth + 1) &&
         is_mask(expressions, expressions.operand(node, 1), depth + 1);
}

}  // namespace

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
      return StepMask{lengths, !is_step(2, 2), steps};
  }
  return std::nullopt;
}

bool has_ending(std::string_view name, std::string_view ending) {
  return name.size() >= ending.size() && lower_case(name.substr(name.size() - ending.size())) == ending;
}

namespace {

/// A condition before Not, Cast to bool and stretching.
HiddenScores before_negation(const Expressions& expressions, HiddenScores found) {
  constexpr int kMaxNegations = 4;
  for (int step = 0; step < kMaxNegations && found.condition != ValueId::kAbsent; ++step) {
    found.condition = before_stretch(expressions, found.condition);
    if (expressions.op_of(found.condition) != Opcode::kNot) break;
    found.condition = expressions.operand(expressions.producer(found.condition), 0);
    found.hides_true = !found.hides_true;
  }
  return found;
}

/// 0 or -1e9, as a condition has it: chosen, or a product with what the condition has been cast to.
std::optional<HiddenScores> added_to_scores(const Expressions& expressions, ValueId added) {
  if (added == ValueId::kAbsent) return std::nullopt;
  NodeId node = expressions.producer(before_stretch(expressions, added));
  if (const auto same = with_number(expressions, node);
      same && expressions.op(node) == Opcode::kMul && same->number == 1)
    node = expressions.producer(before_stretch(expressions, same->value));
  const ValueId first = expressions.operand(node, 0);
  if (expressions.op(node) == Opcode::kWhere) {
    // A table that is filled with one number, too.
    const auto number_at = [&](std::size_t operand) {
      const ValueId value = expressions.operand(node, operand);
      if (value == ValueId::kAbsent) return 1.0;
      const Range& range = expressions.analysis().fact(value).range;
      return expressions.number(value).value_or(range.lo == range.hi && !range.nan ? range.lo : 1);
    };
    const double at_true = number_at(1), at_false = number_at(2);
    if ((at_true != 0 || at_false > kHiddenScore) && (at_false != 0 || at_true > kHiddenScore)) return std::nullopt;
    return before_negation(expressions, {node, first, at_true != 0});
  }
  const auto scaled = with_number(expressions, node);
  if (expressions.op(node) != Opcode::kMul || !scaled || scaled->number > kHiddenScore) return std::nullopt;
  const ValueId rest = rest_of(expressions, before_stretch(expressions, scaled->value));
  const ValueId mask = rest == ValueId::kAbsent ? before_stretch(expressions, scaled->value) : rest;
  if (!expressions.analysis().fact(mask).dtypes.proves(DTypeSet(DType::kBool))) return std::nullopt;
  return before_negation(expressions, {node, mask, rest == ValueId::kAbsent});
}

}  // namespace

std::optional<HiddenScores> hidden_scores(const Expressions& expressions, ValueId scores) {
  constexpr int kMaxStepsBack = 8;
  for (int step = 0; step < kMaxStepsBack && scores != ValueId::kAbsent; ++step) {
    const NodeId node = expressions.producer(scores);
    const Opcode opcode = expressions.op(node);
    if (opcode == Opcode::kWhere) {
      const bool hides_true = expressions.number(expressions.operand(node, 1)).value_or(0) <= kHiddenScore,
                 hides_false = expressions.number(expressions.operand(node, 2)).value_or(0) <= kHiddenScore;
      if (hides_true == hides_false) return std::nullopt;
      return before_negation(expressions, {node, expressions.operand(node, 0), hides_true});
    }
    if (opcode == Opcode::kAdd) {
      for (const std::size_t side : {std::size_t{0}, std::size_t{1}})
        if (auto found = added_to_scores(expressions, expressions.operand(node, side))) {
          found->node = node;
          return found;
        }
      return std::nullopt;
    }
    const auto scaled = with_number(expressions, node);
    if ((opcode == Opcode::kMul || opcode == Opcode::kDiv) && scaled)
      scores = scaled->value;
    else if (ops::keeps_elements(opcode) || opcode == Opcode::kCast)
      scores = expressions.operand(node, 0);
    else
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<OneWord> is_one_word(const Expressions& expressions, ValueId condition) {
  const NodeId node = expressions.producer(condition);
  const auto compared = with_number(expressions, node);
  if (expressions.op(node) != Opcode::kEqual || !compared) return std::nullopt;
  const ValueId words = before_stretch(expressions, compared->value);
  const dataflow::Analysis& analysis = expressions.analysis();
  if (!is_input(analysis, words) || !analysis.fact(words).dtypes.proves(DTypeSet::integers())) return std::nullopt;
  for (const NodeId user : expressions.users(words))
    if (expressions.op(user) == Opcode::kGather && expressions.operand(user, 1) == words &&
        analysis.fact(expressions.operand(user, 0)).dtypes.proves(DTypeSet::floats()))
      return OneWord{words, compared->number};
  return std::nullopt;
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

std::optional<double> MatrixElements::at(ValueId value, std::int64_t row, std::int64_t column, int depth) {
  constexpr int kMaxDepth = 12;
  if (value == ValueId::kAbsent || depth > kMaxDepth || expressions_.is_spent()) return std::nullopt;
  expressions_.charge(8);
  if (const auto number = expressions_.number(value)) return number;
  const dataflow::Analysis& analysis = expressions_.analysis();
  const NodeId node = expressions_.producer(value);
  const Opcode opcode = expressions_.op(node);
  if (node == NodeId::kNone || opcode == Opcode::kConstant) return of_constant(value, row, column);
  const ValueId data = expressions_.operand(node, 0);
  if (opcode == Opcode::kIdentity || opcode == Opcode::kCast || opcode == Opcode::kExpand)
    return at(data, row, column, depth + 1);
  if (opcode == Opcode::kUnsqueeze || opcode == Opcode::kReshape) return of_view(data, value, row, column, depth + 1);
  if (opcode == Opcode::kRange) {
    const auto start = expressions_.number(expressions_.operand(node, 0));
    const auto step = expressions_.number(expressions_.operand(node, 2));
    return start && step ? std::optional(*start + *step * static_cast<double>(column)) : std::nullopt;
  }
  if (const auto element = of_triangle(node, row, column, depth)) return element;
  const ops::ElementValue element = dataflow::element_function(analysis, node);
  if (element == nullptr || !has_trait(expressions_.entry(node), ops::OpTrait::kElementwise)) return std::nullopt;
  std::vector<double> operands;
  for (const ValueId operand : analysis.operands(node)) {
    const auto number = at(operand, row, column, depth + 1);
    if (!number) return std::nullopt;
    operands.push_back(*number);
  }
  // A walk that the spent meter ends gives fewer of them.
  if (operands.size() != analysis.model().node(node).operand_count) return std::nullopt;
  return element({operands, analysis.attributes(node).read()});
}

/// A row may become a column.
std::optional<double> MatrixElements::of_view(ValueId from, ValueId to, std::int64_t row, std::int64_t column,
                                              int depth) {
  const auto before = expressions_.dims(from), after = expressions_.dims(to);
  const DimPool& pool = expressions_.analysis().facts().dims();
  if (before.empty() || after.empty()) return std::nullopt;
  const bool is_turned = pool.is_constant(after.back(), 1) && !pool.is_constant(before.back(), 1);
  if (!is_turned && before.size() >= 2) return at(from, row, column, depth);
  return at(from, 0, is_turned ? row : column, depth);
}

std::optional<double> MatrixElements::of_constant(ValueId value, std::int64_t row, std::int64_t column) {
  const std::vector<double>* numbers = numbers_of(value);
  const auto dims = expressions_.dims(value);
  if (numbers == nullptr || dims.empty()) return std::nullopt;
  const DimPool& pool = expressions_.analysis().facts().dims();
  const auto extent = [&](std::size_t from_end) {
    return from_end > dims.size() ? std::optional<std::int64_t>(1) : pool.as_constant(dims[dims.size() - from_end]);
  };
  const auto columns = extent(1), rows = extent(2);
  if (!columns || !rows || static_cast<std::int64_t>(numbers->size()) != *columns * *rows) return std::nullopt;
  const std::int64_t at = (*rows == 1 ? 0 : row) * *columns + (*columns == 1 ? 0 : column);
  return at < static_cast<std::int64_t>(numbers->size()) ? std::optional((*numbers)[static_cast<std::size_t>(at)])
                                                         : std::nullopt;
}

const std::vector<double>* MatrixElements::numbers_of(ValueId value) {
  if (const auto known = constants_.find(value); known != constants_.end())
    return known->second ? &*known->second : nullptr;
  const auto& known = constants_.emplace(value, constant_numbers(expressions_, value)).first->second;
  constexpr std::uint64_t kBytesOfEntry = 96;
  memory_.add(kBytesOfEntry + (known ? known->size() * sizeof known->front() : 0));
  return known ? &*known : nullptr;
}

/// The part of a matrix on one side of a diagonal, with zeros elsewhere.
std::optional<double> MatrixElements::of_triangle(NodeId node, std::int64_t row, std::int64_t column, int depth) {
  const Model& model = expressions_.analysis().model();
  const OpSchema* schema = model.op(model.node(node)).schema;
  if (schema == nullptr || schema->attribute("upper") == nullptr || schema->input_index("k") < 0) return std::nullopt;
  const Attribute* upper = expressions_.analysis().attribute(node, "upper");
  const ValueId given = expressions_.operand(node, static_cast<std::size_t>(schema->input_index("k")));
  const auto diagonal = given == ValueId::kAbsent ? std::optional<double>(0) : expressions_.number(given);
  const auto element = at(expressions_.operand(node, 0), row, column, depth + 1);
  if (!diagonal || !element) return std::nullopt;
  const auto off = static_cast<double>(column - row);
  const bool is_upper = upper == nullptr || upper->i != 0;
  return (is_upper ? off >= *diagonal : off <= *diagonal) ? *element : 0;
}

std::optional<bool> side_of_diagonal(const IsTrueAt& is_true, std::int64_t extent) {
  constexpr std::int64_t kMost = 12;
  bool before = true, after = true;
  for (std::int64_t i = 0; i < std::min(extent, kMost); ++i)
    for (std::int64_t k = 0; k < std::min(extent, kMost); ++k) {
      if (i == k) continue;
      const auto found = is_true(i, k);
      if (!found) return std::nullopt;
      before = before && *found == (k < i);
      after = after && *found == (k > i);
    }
  return before == after ? std::nullopt : std::optional(before);
}

bool is_triangle_of_ones(const Expressions& expressions, ValueId mask) {
  const auto dims = expressions.dims(mask);
  const DimPool& pool = expressions.analysis().facts().dims();
  if (dims.size() < 2 || !pool.equal(dims.back(), dims[dims.size() - 2])) return false;
  const std::int64_t extent = pool.as_constant(dims.back()).value_or(5);
  MatrixElements elements(expressions);
  const auto is_one = [&](std::int64_t i, std::int64_t k) -> std::optional<bool> {
    const auto element = elements.at(mask, i, k);
    return element && (*element == 0 || *element == 1) ? std::optional(*element == 1) : std::nullopt;
  };
  return extent >= 3 && side_of_diagonal(is_one, extent).has_value();
}

namespace {

/// One side of the diagonal and the diagonal itself: nothing is left of the row at one end.
bool hides_whole_row(const IsTrueAt& is_hidden, std::int64_t extent) {
  constexpr std::int64_t kMostOfRow = 512;
  const auto is_whole = [&](std::int64_t row) {
    for (std::int64_t k = 0; k < extent; ++k)
      if (!is_hidden(row, k).value_or(false)) return false;
    return true;
  };
  return extent <= kMostOfRow && (is_whole(0) || is_whole(extent - 1)) &&
         !is_hidden(1, 0).value_or(true) != !is_hidden(0, 1).value_or(true);
}

}  // namespace

std::optional<Triangle> Triangles::before(const losses::Normalised& softmax) {
  constexpr int kMaxSteps = 8;
  ValueId scores = softmax.scores;
  const auto dims = expressions_.dims(scores);
  const DimPool& pool = expressions_.analysis().facts().dims();
  if (dims.size() < 2 || softmax.axes.size() != 1 || softmax.axes.front() + 1 != dims.size() ||
      !pool.equal(dims.back(), dims[dims.size() - 2]))
    return std::nullopt;
  const std::int64_t extent = pool.as_constant(dims.back()).value_or(5);
  if (extent < 3) return std::nullopt;
  MatrixElements elements(expressions_);
  for (int step = 0; step < kMaxSteps && scores != ValueId::kAbsent; ++step) {
    const NodeId node = expressions_.producer(scores);
    const Opcode opcode = expressions_.op(node);
    const ValueId first = expressions_.operand(node, 0), second = expressions_.operand(node, 1),
                  third = expressions_.operand(node, 2);
    if (opcode == Opcode::kWhere) {
      const bool hides_true = expressions_.number(second).value_or(0) <= kHiddenScore,
                 hides_false = expressions_.number(third).value_or(0) <= kHiddenScore;
      if (hides_true == hides_false) return std::nullopt;
      const double low = expressions_.number(hides_true ? second : third).value_or(0);
      const auto is_hidden = [&](std::int64_t i, std::int64_t k) -> std::optional<bool> {
        const auto chosen = elements.at(first, i, k);
        return chosen ? std::optional((*chosen != 0) == hides_true) : std::nullopt;
      };
      if (std::isinf(low) && is_hidden(0, 0).value_or(false)) {
        // Of a constant the rule about domains says so.
        const bool is_table = constant_numbers(expressions_, before_stretch(expressions_, first)).has_value();
        if (!is_table && hides_whole_row(is_hidden, extent)) return Triangle{node, softmax.node, false, true, true};
        return std::nullopt;
      }
      auto found = known_.find({first, hides_true});
      if (found == known_.end())
        found = known_.emplace(std::pair(first, hides_true), side_of_diagonal(is_hidden, extent)).first;
      if (found->second) return Triangle{node, softmax.node, *found->second, hides_whole_row(is_hidden, extent)};
      scores = hides_true ? third : second;
    } else if (opcode == Opcode::kAdd) {
      const auto hidden_by = [&](ValueId mask) {
        if (const auto found = known_.find({mask, true}); found != known_.end()) return found->second;
        const auto side = side_of_diagonal(
            [&](std::int64_t i, std::int64_t k) -> std::optional<bool> {
              const auto added = elements.at(mask, i, k);
              return added ? std::optional(*added <= kHiddenScore) : std::nullopt;
            },
            extent);
        known_.emplace(std::pair(mask, true), side);
        return side;
      };
      for (const ValueId mask : {first, second})
        if (const auto past = hidden_by(mask)) {
          const auto is_hidden = [&](std::int64_t i, std::int64_t k) -> std::optional<bool> {
            const auto added = elements.at(mask, i, k);
            return added && !std::isinf(*added) ? std::optional(*added <= kHiddenScore) : std::nullopt;
          };
          return Triangle{node, softmax.node, *past, hides_whole_row(is_hidden, extent)};
        }
      scores = first;
    } else if (opcode == Opcode::kMul || opcode == Opcode::kDiv) {
      const auto scaled = with_number(expressions_, node);
      if (!scaled) return std::nullopt;
      scores = scaled->value;
    } else if (opcode == Opcode::kCast || opcode == Opcode::kIdentity) {
      scores = first;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace tensorlint::rules
