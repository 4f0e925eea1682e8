#include "passes/losses/expressions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace tensorlint::losses {
namespace {

/// Copies, casts and stretches that are looked through in a row.
constexpr int kMaxCopies = 8;
constexpr std::size_t kMaxRankOfNumber = 16;  // its extents are multiplied each time
/// Parts of a product: a loss has up to four factors, with a weight and a class weight.
constexpr std::size_t kMaxProductParts = 15;
/// Users of one value that are looked at, which keeps the search linear in the nodes.
constexpr std::size_t kMaxUsers = 16;

bool is_looked_through(Opcode op) { return op == Opcode::kCast || op == Opcode::kExpand || op == Opcode::kIdentity; }

/// The one number that a tensor holds.
std::optional<double> number_in(const Tensor& tensor) {
  return tensor.dims.size() > kMaxRankOfNumber ? std::nullopt : tensor.number();
}

}  // namespace

bool reduces_axes(Opcode opcode) {
  switch (opcode) {
    case Opcode::kReduceMean:
    case Opcode::kReduceSum:
    case Opcode::kReduceMax:
    case Opcode::kReduceMin:
    case Opcode::kReduceL1:
    case Opcode::kReduceL2:
    case Opcode::kReduceLogSum:
    case Opcode::kReduceLogSumExp:
    case Opcode::kReduceSumSquare:
    case Opcode::kArgExtreme:
      return true;
    default:
      return false;
  }
}

Expressions::Expressions(const Analysis& analysis, Defaults defaults)
    : analysis_(analysis),
      model_(analysis.model()),
      defaults_(defaults),
      ops_(model_.operators.size()),
      made_by_(model_.values.size()) {
  for (const OperatorId id : ops_.ids())
    if (model_.operators[id].function == GraphId::kNone) ops_[id] = opcode_of(analysis.entry(id));
  note_makers();
  // Bodies are read with the operators known; a function of functions is none of ours.
  std::vector<std::pair<OperatorId, Opcode>> functions;
  for (const OperatorId id : ops_.ids())
    if (model_.operators[id].function != GraphId::kNone)
      functions.emplace_back(id, classify_function(model_.operators[id].function));
  for (const auto& [id, op] : functions) ops_[id] = op;
  if (!functions.empty()) note_makers();
}

void Expressions::note_makers() {
  for (const NodeId id : analysis_.nodes()) {
    const Opcode made_by = op(id);
    if (made_by == Opcode::kOther) continue;
    for (const ValueId result : analysis_.results(id))
      if (result != ValueId::kAbsent) made_by_[result] = made_by;
  }
}

Opcode Expressions::classify_function(GraphId function) const {
  const Graph& graph = model_.graph(function);
  if (graph.outputs.size() != 1 || graph.inputs.empty() || graph.inputs.size() > 2) return Opcode::kOther;
  const ValueId output = graph.outputs[0], input = graph.inputs[0];
  if (graph.inputs.size() == 2) {
    // Both operands are told apart by the caller; here the second one is under the logarithm.
    NodeId node = producer(output);
    for (int i = 0; i < kMaxCopies && op(node) == Opcode::kWhere; ++i) node = producer(operand(node, 2));
    const ValueId log = operand(node, 1);
    const bool product = op(node) == Opcode::kMul && operand(node, 0) == input && op_of(log) == Opcode::kLog;
    return product && operand(producer(log), 0) == graph.inputs[1] ? Opcode::kXlogy : Opcode::kOther;
  }
  if (op_of(output) != Opcode::kLog) return Opcode::kOther;
  const NodeId inner = producer(operand(producer(output), 0));
  if (op(inner) == Opcode::kSigmoid && operand(inner, 0) == input) return Opcode::kLogSigmoid;
  const bool sum = op(inner) == Opcode::kAdd;
  if (sum && operand(inner, 0) == input && is_number(operand(inner, 1), 1)) return Opcode::kLog1p;
  if (sum && operand(inner, 1) == input && is_number(operand(inner, 0), 1)) return Opcode::kLog1p;
  return Opcode::kOther;
}

ValueId Expressions::operand(NodeId node, std::size_t index) const {
  if (node == NodeId::kNone) return ValueId::kAbsent;
  const auto operands = analysis_.operands(node);
  return index < operands.size() && !is_spent() ? operands[index] : ValueId::kAbsent;
}

ValueId Expressions::result(NodeId node) const {
  if (node == NodeId::kNone) return ValueId::kAbsent;
  const auto results = analysis_.results(node);
  return results.empty() ? ValueId::kAbsent : results[0];
}

std::span<const Dim> Expressions::dims(ValueId value) const {
  if (value == ValueId::kAbsent || analysis_.taint(value).has(Aspect::kShape)) return {};
  const Fact& fact = analysis_.fact(value);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return {};
  const std::span<const Dim> dims = analysis_.facts().dims_of(fact.shape);
  charge(1 + dims.size() / 4);  // who asks compares them
  return dims;
}

SpanWalk<NodeId> Expressions::users(ValueId value) const {
  if (value == ValueId::kAbsent) return {{}, analysis_.meter()};
  charge(4);
  return analysis_.users(value).first(kMaxUsers);
}

ValueId Expressions::source(ValueId value) const {
  for (int i = 0; i < kMaxCopies && is_looked_through(op_of(value)); ++i) {
    const ValueId before = operand(producer(value), 0);
    if (before == ValueId::kAbsent) return value;
    value = before;
  }
  return value;
}

const Tensor* Expressions::constant(ValueId value) const {
  for (int i = 0; i < kMaxCopies; ++i) {
    const Opcode op = op_of(value);
    if (!is_looked_through(op) && !keeps_elements(op)) break;
    value = operand(producer(value), 0);
  }
  if (value == ValueId::kAbsent) return nullptr;
  const NodeId node = producer(value);
  if (op(node) == Opcode::kConstant) {
    const Attribute* tensor = analysis_.attribute(node, "value");
    return tensor != nullptr ? tensor->tensor : nullptr;
  }
  if (node != NodeId::kNone) return nullptr;
  const Value& known = model_.value(value);
  const bool is_fixed = defaults_ == Defaults::kConstant || known.origin != ValueOrigin::kInput;
  return is_fixed ? known.initializer : nullptr;
}

std::optional<double> Expressions::number(ValueId value) const {
  if (value == ValueId::kAbsent) return std::nullopt;
  charge(2);
  const ValueId unstretched = source(value);
  if (op_of(unstretched) == Opcode::kFill) return filled_with(producer(unstretched));
  if (const Tensor* tensor = constant(value)) {
    return number_in(*tensor);
  }
  // Constants in other attributes, and what constants are computed from.
  const Content* content = analysis_.content(value);
  if (content == nullptr || content->size() != 1) return std::nullopt;
  if (!content->floats.empty()) return content->floats[0];
  const auto constant = analysis_.facts().dims().as_constant(content->integers[0]);
  return constant ? std::optional(static_cast<double>(*constant)) : std::nullopt;
}

bool Expressions::is_constant_of_rank_one(ValueId value) const {
  const Tensor* tensor = constant(value);
  return tensor != nullptr && tensor->dims.size() == 1 && tensor->dims[0] == 1;
}

ValueId Expressions::complement(ValueId value) const {
  const NodeId node = producer(value);
  const ValueId a = operand(node, 0), b = operand(node, 1);
  if (op(node) == Opcode::kSub) {
    if (is_number(a, 1)) return b;
    return is_number(b, 1) ? a : ValueId::kAbsent;
  }
  if (op(node) != Opcode::kAdd) return ValueId::kAbsent;
  if (op_of(a) == Opcode::kNeg && is_number(b, 1)) return operand(producer(a), 0);
  return op_of(b) == Opcode::kNeg && is_number(a, 1) ? operand(producer(b), 0) : ValueId::kAbsent;
}

std::optional<LogTerm> Expressions::log_term(ValueId value) const {
  const auto of_probability = [this](ValueId probability, bool complement) {
    const ValueId logit = op_of(probability) == Opcode::kSigmoid ? operand(producer(probability), 0) : ValueId::kAbsent;
    return LogTerm{probability, logit, complement};
  };
  // Clamped, so that log(0) is a number.
  for (int i = 0; i < 2; ++i) {
    const NodeId node = producer(value);
    if (op(node) == Opcode::kClip) value = operand(node, 0);
    if (op(node) == Opcode::kMax) {
      if (number(operand(node, 1)))
        value = operand(node, 0);
      else if (number(operand(node, 0)))
        value = operand(node, 1);
    }
  }
  const NodeId node = producer(value);
  const ValueId inside = operand(node, 0);
  switch (op(node)) {
    case Opcode::kLogSigmoid:
      return LogTerm{ValueId::kAbsent, inside, false};
    case Opcode::kLog1p:
      if (op_of(inside) != Opcode::kNeg) return std::nullopt;
      return of_probability(operand(producer(inside), 0), true);
    case Opcode::kSoftplus:  // log(sigmoid(x)) = -softplus(-x)
      if (op_of(inside) != Opcode::kNeg) return std::nullopt;
      return LogTerm{ValueId::kAbsent, operand(producer(inside), 0), false};
    case Opcode::kLog:
      break;
    default:
      return std::nullopt;
  }
  ValueId probability = inside;
  if (const ValueId other = complement(probability); other != ValueId::kAbsent) return of_probability(other, true);
  // Kept from zero by a clamp or a small summand, perhaps behind the complement.
  const NodeId guard = producer(probability);
  if (op(guard) == Opcode::kClip) probability = operand(guard, 0);
  constexpr double kSmall = 0.1;  // programs write 1e-12 to 1e-3
  const auto is_small = [this](ValueId summand) { return std::abs(number(summand).value_or(1)) <= kSmall; };
  if (op(guard) == Opcode::kAdd && is_small(operand(guard, 1))) probability = operand(guard, 0);
  if (op(guard) == Opcode::kAdd && is_small(operand(guard, 0))) probability = operand(guard, 1);
  if (const ValueId other = complement(probability); other != ValueId::kAbsent) return of_probability(other, true);
  return of_probability(probability, false);
}

ValueId Expressions::times_own_log(ValueId value) const {
  for (int i = 0; i < kMaxCopies && op_of(value) == Opcode::kWhere; ++i) value = operand(producer(value), 2);
  const NodeId node = producer(value);
  const ValueId a = operand(node, 0), b = operand(node, 1);
  if (op(node) == Opcode::kXlogy) return a == b ? a : ValueId::kAbsent;
  if (op(node) != Opcode::kMul) return ValueId::kAbsent;
  if (op_of(b) == Opcode::kLog && operand(producer(b), 0) == a) return a;
  return op_of(a) == Opcode::kLog && operand(producer(a), 0) == b ? b : ValueId::kAbsent;
}

ValueId Expressions::square_base(ValueId value) const {
  const NodeId square = producer(value);
  const ValueId base = operand(square, 0), other = operand(square, 1);
  if (op(square) == Opcode::kMul && base == other) return base;
  return op(square) == Opcode::kPow && is_number(other, 2) ? base : ValueId::kAbsent;
}

std::vector<ValueId> Expressions::factors(ValueId product) const {
  std::vector<ValueId> found{product};
  for (std::size_t i = 0; i < found.size() && found.size() < kMaxProductParts; ++i) {
    const NodeId node = producer(found[i]);
    const Opcode kind = op(node);
    if (kind == Opcode::kMul || kind == Opcode::kDiv || kind == Opcode::kNeg) found.push_back(operand(node, 0));
    if (kind == Opcode::kMul) found.push_back(operand(node, 1));
  }
  return found;
}

const Graph* Expressions::called_function(NodeId node) const {
  if (node == NodeId::kNone) return nullptr;
  const GraphId function = model_.op(model_.node(node)).function;
  return function == GraphId::kNone ? nullptr : &model_.graph(function);
}

bool Expressions::makes_integers(NodeId node) const {
  const Fact& fact = analysis_.fact(result(node));
  return fact.kind == ValueKind::kTensor && fact.dtypes.proves(DTypeSet::integers() | DType::kBool);
}

/// Without the attribute ConstantOfShape fills with zeros.
std::optional<double> Expressions::filled_with(NodeId node) const {
  const Attribute* value = analysis_.attribute(node, "value");
  if (value == nullptr) return 0;
  return value->tensor == nullptr ? std::nullopt : number_in(*value->tensor);
}

std::optional<std::vector<std::size_t>> Expressions::axes_of(NodeId node) const {
  charge(16);
  const Fact& data = analysis_.fact(operand(node, 0));
  if (data.kind != ValueKind::kTensor || data.shape == ShapeId::kUnranked) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(analysis_.facts().dims_of(data.shape).size());
  std::array<std::int64_t, ops::kMaxRank> given;
  std::size_t count = 0;
  bool all = false;
  const Node& of = model_.node(node);
  const std::int64_t opset = model_.op(of).opset;
  const Opcode kind = op(node);
  if (kind == Opcode::kSoftmax || kind == Opcode::kLogSoftmax || kind == Opcode::kArgExtreme) {
    const Attribute* axis = analysis_.attribute(node, "axis");
    const bool searches = kind == Opcode::kArgExtreme;
    given[count++] = axis != nullptr ? axis->i : searches ? 0 : opset >= 13 ? -1 : 1;
    if (given[0] < -rank || given[0] >= rank) return std::nullopt;
    if (!searches && opset < 13)  // everything from the axis on is one row
      for (std::int64_t i = (given[0] < 0 ? given[0] + rank : given[0]) + 1; i < rank; ++i) given[count++] = i;
  } else if (const Attribute* axes = analysis_.attribute(node, "axes")) {
    if (axes->ints.size() > ops::kMaxRank) return std::nullopt;  // some of them twice
    count = static_cast<std::size_t>(std::ranges::copy(axes->ints, given.begin()).out - given.begin());
  } else if (const ValueId list = operand(node, 1); list != ValueId::kAbsent) {
    const Content* content = analysis_.content(list);
    if (content == nullptr || content->integers.size() > ops::kMaxRank) return std::nullopt;
    for (const Dim element : content->integers) {
      const auto axis = analysis_.facts().dims().as_constant(element);
      if (!axis) return std::nullopt;
      given[count++] = *axis;
    }
    all = count == 0;
  } else {
    all = true;
  }
  if (all) {
    const Attribute* noop = analysis_.attribute(node, "noop_with_empty_axes");
    if (noop != nullptr && noop->i != 0) return std::vector<std::size_t>{};
    while (count < static_cast<std::size_t>(rank)) {
      given[count] = static_cast<std::int64_t>(count);
      ++count;
    }
  }
  std::vector<std::size_t> found;
  found.reserve(count);
  for (const std::int64_t axis : std::span(given).first(count)) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    found.push_back(static_cast<std::size_t>(axis < 0 ? axis + rank : axis));
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<Normalised> Expressions::normalised(ValueId value) const {
  const NodeId node = producer(value);
  switch (op(node)) {
    case Opcode::kSoftmax:
    case Opcode::kLogSoftmax:
      return Normalised{node, operand(node, 0), op(node) == Opcode::kLogSoftmax,
                        axes_of(node).value_or(std::vector<std::size_t>{})};
    case Opcode::kDiv:
    case Opcode::kSub:
      return written_out(node);
    default:
      return std::nullopt;
  }
}

/// e^x over the sum of e^x, or x less the logarithm of that sum.
std::optional<Normalised> Expressions::written_out(NodeId node) const {
  const bool divides = op(node) == Opcode::kDiv;
  const ValueId above = operand(node, 0);
  ValueId below = source(operand(node, 1));
  NodeId sum = NodeId::kNone;
  if (divides) {
    if (op_of(above) != Opcode::kExp || summed_exponentials(below, sum) != above) return std::nullopt;
  } else if (op_of(below) == Opcode::kReduceLogSumExp) {
    sum = producer(below);
    if (operand(sum, 0) != above) return std::nullopt;
  } else {
    for (int i = 0; i < kMaxCopies && keeps_elements(op_of(below)); ++i) below = operand(producer(below), 0);
    if (op_of(below) != Opcode::kLog) return std::nullopt;
    const ValueId exponentials = summed_exponentials(operand(producer(below), 0), sum);
    if (exponentials == ValueId::kAbsent || operand(producer(exponentials), 0) != above) return std::nullopt;
  }
  const auto axes = axes_of(sum);
  const ValueId scores = divides ? operand(producer(above), 0) : above;
  // Less the largest score of the row, which changes nothing but the size of the numbers.
  const NodeId shift = producer(scores);
  const bool shifted = op(shift) == Opcode::kSub && op_of(source(operand(shift, 1))) == Opcode::kReduceMax &&
                       operand(producer(source(operand(shift, 1))), 0) == operand(shift, 0);
  return Normalised{node, shifted ? operand(shift, 0) : scores, !divides, axes.value_or(std::vector<std::size_t>{})};
}

/// What is summed to `value`, where that is made by Exp; `sum` becomes the node.
ValueId Expressions::summed_exponentials(ValueId value, NodeId& sum) const {
  for (int i = 0; i < kMaxCopies && (keeps_elements(op_of(value)) || op_of(value) == Opcode::kExpand); ++i)
    value = operand(producer(value), 0);
  if (op_of(value) != Opcode::kReduceSum) return ValueId::kAbsent;
  sum = producer(value);
  const ValueId exponentials = operand(sum, 0);
  return op_of(exponentials) == Opcode::kExp ? exponentials : ValueId::kAbsent;
}

}  // namespace tensorlint::losses
