#include "passes/losses/terms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace tensorlint::losses {
namespace {

constexpr std::array kOperators{
    std::pair{std::string_view("Sub"), LossOp::kSub},
    std::pair{std::string_view("Add"), LossOp::kAdd},
    std::pair{std::string_view("Mul"), LossOp::kMul},
    std::pair{std::string_view("Div"), LossOp::kDiv},
    std::pair{std::string_view("Pow"), LossOp::kPow},
    std::pair{std::string_view("Abs"), LossOp::kAbs},
    std::pair{std::string_view("Neg"), LossOp::kNeg},
    std::pair{std::string_view("Sqrt"), LossOp::kSqrt},
    std::pair{std::string_view("Log"), LossOp::kLog},
    std::pair{std::string_view("Exp"), LossOp::kExp},
    std::pair{std::string_view("Cosh"), LossOp::kCosh},
    std::pair{std::string_view("Sigmoid"), LossOp::kSigmoid},
    std::pair{std::string_view("Softplus"), LossOp::kSoftplus},
    std::pair{std::string_view("Softmax"), LossOp::kSoftmax},
    std::pair{std::string_view("LogSoftmax"), LossOp::kLogSoftmax},
    std::pair{std::string_view("Max"), LossOp::kMax},
    std::pair{std::string_view("Clip"), LossOp::kClip},
    std::pair{std::string_view("Where"), LossOp::kWhere},
    std::pair{std::string_view("Less"), LossOp::kCompare},
    std::pair{std::string_view("LessOrEqual"), LossOp::kCompare},
    std::pair{std::string_view("Greater"), LossOp::kCompare},
    std::pair{std::string_view("GreaterOrEqual"), LossOp::kCompare},
    std::pair{std::string_view("ReduceMean"), LossOp::kReduceMean},
    std::pair{std::string_view("ReduceSum"), LossOp::kReduceSum},
    std::pair{std::string_view("Cast"), LossOp::kCast},
    std::pair{std::string_view("CastLike"), LossOp::kCastLike},
    std::pair{std::string_view("Expand"), LossOp::kExpand},
    std::pair{std::string_view("Identity"), LossOp::kIdentity},
    std::pair{std::string_view("Squeeze"), LossOp::kSqueeze},
    std::pair{std::string_view("Unsqueeze"), LossOp::kUnsqueeze},
    std::pair{std::string_view("Reshape"), LossOp::kReshape},
    std::pair{std::string_view("Shape"), LossOp::kShape},
    std::pair{std::string_view("Constant"), LossOp::kConstant},
    std::pair{std::string_view("GatherElements"), LossOp::kGatherElements},
};

/// Copies, casts and stretches that are looked through in a row.
constexpr int kMaxSteps = 8;
/// Parts of a product: a loss has up to four factors, with a weight and a class weight.
constexpr std::size_t kMaxFactors = 15;
/// Users of one value that are looked at, which keeps the search linear in the nodes.
constexpr std::size_t kMaxUsers = 16;

bool moves_elements(LossOp op) {
  return op == LossOp::kCast || op == LossOp::kCastLike || op == LossOp::kExpand || op == LossOp::kIdentity;
}

}  // namespace

Terms::Terms(const dataflow::Analysis& analysis)
    : analysis_(analysis), model_(analysis.model()), ops_(model_.operators.size()) {
  for (std::size_t i = 0; i < ops_.size(); ++i) ops_[i] = classify(model_.operators[i]);
  // Bodies are read with the operators known; a function of functions is none of ours.
  std::vector<std::pair<std::size_t, LossOp>> functions;
  for (std::size_t i = 0; i < ops_.size(); ++i)
    if (model_.operators[i].function != GraphId::kNone)
      functions.emplace_back(i, classify_function(model_.operators[i].function));
  for (const auto& [index, op] : functions) ops_[index] = op;
}

LossOp Terms::classify(const Operator& op) const {
  if (op.domain != NameId::kEmpty || op.function != GraphId::kNone) return LossOp::kOther;
  const std::string_view name = model_.text(op.name);
  const auto found =
      std::find_if(kOperators.begin(), kOperators.end(), [&](const auto& entry) { return entry.first == name; });
  return found == kOperators.end() ? LossOp::kOther : found->second;
}

LossOp Terms::classify_function(GraphId function) const {
  const Graph& graph = model_.graph(function);
  if (graph.outputs.size() != 1 || graph.inputs.empty() || graph.inputs.size() > 2) return LossOp::kOther;
  const ValueId output = graph.outputs[0], input = graph.inputs[0];
  if (graph.inputs.size() == 2) {
    // Both operands are told apart by the caller; here the second one is under the logarithm.
    NodeId node = maker(output);
    for (int i = 0; i < kMaxSteps && op(node) == LossOp::kWhere; ++i) node = maker(operand(node, 2));
    const ValueId log = operand(node, 1);
    const bool product = op(node) == LossOp::kMul && operand(node, 0) == input && op_of(log) == LossOp::kLog;
    return product && operand(maker(log), 0) == graph.inputs[1] ? LossOp::kXlogyFunction : LossOp::kOther;
  }
  if (op_of(output) != LossOp::kLog) return LossOp::kOther;
  const NodeId inner = maker(operand(maker(output), 0));
  if (op(inner) == LossOp::kSigmoid && operand(inner, 0) == input) return LossOp::kLogSigmoidFunction;
  const bool sum = op(inner) == LossOp::kAdd;
  if (sum && operand(inner, 0) == input && is_number(operand(inner, 1), 1)) return LossOp::kLog1pFunction;
  if (sum && operand(inner, 1) == input && is_number(operand(inner, 0), 1)) return LossOp::kLog1pFunction;
  return LossOp::kOther;
}

ValueId Terms::operand(NodeId node, std::size_t index) const {
  if (node == NodeId::kNone) return ValueId::kAbsent;
  const auto operands = model_.operands(model_.node(node));
  return index < operands.size() ? operands[index] : ValueId::kAbsent;
}

ValueId Terms::result(NodeId node) const {
  const auto results = model_.results(model_.node(node));
  return results.empty() ? ValueId::kAbsent : results[0];
}

std::span<const NodeId> Terms::users(ValueId value) const {
  if (value == ValueId::kAbsent) return {};
  const std::span<const NodeId> all = analysis_.users(value);
  return all.first(std::min(all.size(), kMaxUsers));
}

ValueId Terms::source(ValueId value) const {
  for (int i = 0; i < kMaxSteps && moves_elements(op_of(value)); ++i) {
    const ValueId before = operand(maker(value), 0);
    if (before == ValueId::kAbsent) return value;
    value = before;
  }
  return value;
}

const Tensor* Terms::constant(ValueId value) const {
  for (int i = 0; i < kMaxSteps; ++i) {
    const LossOp made_by = op_of(value);
    if (!moves_elements(made_by) && made_by != LossOp::kSqueeze && made_by != LossOp::kUnsqueeze &&
        made_by != LossOp::kReshape)
      break;
    value = operand(maker(value), 0);
  }
  if (value == ValueId::kAbsent) return nullptr;
  const NodeId node = maker(value);
  if (op(node) == LossOp::kConstant) {
    const Attribute* tensor = model_.attribute(model_.node(node), "value");
    return tensor != nullptr ? tensor->tensor : nullptr;
  }
  return node == NodeId::kNone ? model_.value(value).initializer : nullptr;
}

std::optional<double> Terms::number(ValueId value) const {
  if (value == ValueId::kAbsent) return std::nullopt;
  if (const Tensor* tensor = constant(value)) {
    if (const auto floats = tensor->floats(1); floats && floats->size() == 1) return floats->front();
    if (const auto integers = tensor->integers(1); integers && integers->size() == 1)
      return static_cast<double>(integers->front());
    return std::nullopt;
  }
  // Constants in other attributes, and what constants are computed from.
  const Content* content = analysis_.facts().content(analysis_.fact(value).content);
  if (content == nullptr || content->size() != 1) return std::nullopt;
  if (!content->floats.empty()) return content->floats[0];
  const auto constant = analysis_.facts().dims().as_constant(content->integers[0]);
  return constant ? std::optional(static_cast<double>(*constant)) : std::nullopt;
}

bool Terms::is_constant_of_rank_one(ValueId value) const {
  const Tensor* tensor = constant(value);
  return tensor != nullptr && tensor->dims.size() == 1 && tensor->dims[0] == 1;
}

ValueId Terms::complement(ValueId value) const {
  const NodeId node = maker(value);
  const ValueId a = operand(node, 0), b = operand(node, 1);
  if (op(node) == LossOp::kSub) {
    if (is_number(a, 1)) return b;
    return is_number(b, 1) ? a : ValueId::kAbsent;
  }
  if (op(node) != LossOp::kAdd) return ValueId::kAbsent;
  if (op_of(a) == LossOp::kNeg && is_number(b, 1)) return operand(maker(a), 0);
  return op_of(b) == LossOp::kNeg && is_number(a, 1) ? operand(maker(b), 0) : ValueId::kAbsent;
}

std::optional<LogTerm> Terms::log_term(ValueId value) const {
  const auto of_probability = [this](ValueId probability, bool complement) {
    const ValueId logit = op_of(probability) == LossOp::kSigmoid ? operand(maker(probability), 0) : ValueId::kAbsent;
    return LogTerm{probability, logit, complement};
  };
  // Clamped, so that log(0) is a number.
  for (int i = 0; i < 2; ++i) {
    const NodeId node = maker(value);
    if (op(node) == LossOp::kClip) value = operand(node, 0);
    if (op(node) == LossOp::kMax) {
      if (number(operand(node, 1)))
        value = operand(node, 0);
      else if (number(operand(node, 0)))
        value = operand(node, 1);
    }
  }
  const NodeId node = maker(value);
  const ValueId inside = operand(node, 0);
  switch (op(node)) {
    case LossOp::kLogSigmoidFunction:
      return LogTerm{ValueId::kAbsent, inside, false};
    case LossOp::kLog1pFunction:
      if (op_of(inside) != LossOp::kNeg) return std::nullopt;
      return of_probability(operand(maker(inside), 0), true);
    case LossOp::kSoftplus:  // log(sigmoid(x)) = -softplus(-x)
      if (op_of(inside) != LossOp::kNeg) return std::nullopt;
      return LogTerm{ValueId::kAbsent, operand(maker(inside), 0), false};
    case LossOp::kLog:
      break;
    default:
      return std::nullopt;
  }
  ValueId probability = inside;
  if (const ValueId other = complement(probability); other != ValueId::kAbsent) return of_probability(other, true);
  // Kept from zero by a clamp or a small summand, perhaps behind the complement.
  const NodeId guard = maker(probability);
  if (op(guard) == LossOp::kClip) probability = operand(guard, 0);
  constexpr double kSmall = 0.1;  // programs write 1e-12 to 1e-3
  const auto is_small = [this](ValueId summand) { return std::abs(number(summand).value_or(1)) <= kSmall; };
  if (op(guard) == LossOp::kAdd && is_small(operand(guard, 1))) probability = operand(guard, 0);
  if (op(guard) == LossOp::kAdd && is_small(operand(guard, 0))) probability = operand(guard, 1);
  if (const ValueId other = complement(probability); other != ValueId::kAbsent) return of_probability(other, true);
  return of_probability(probability, false);
}

ValueId Terms::times_own_log(ValueId value) const {
  for (int i = 0; i < kMaxSteps && op_of(value) == LossOp::kWhere; ++i) value = operand(maker(value), 2);
  const NodeId node = maker(value);
  const ValueId a = operand(node, 0), b = operand(node, 1);
  if (op(node) == LossOp::kXlogyFunction) return a == b ? a : ValueId::kAbsent;
  if (op(node) != LossOp::kMul) return ValueId::kAbsent;
  if (op_of(b) == LossOp::kLog && operand(maker(b), 0) == a) return a;
  return op_of(a) == LossOp::kLog && operand(maker(a), 0) == b ? b : ValueId::kAbsent;
}

std::vector<ValueId> Terms::factors(ValueId product) const {
  std::vector<ValueId> found{product};
  for (std::size_t i = 0; i < found.size() && found.size() < kMaxFactors; ++i) {
    const NodeId node = maker(found[i]);
    const LossOp kind = op(node);
    if (kind == LossOp::kMul || kind == LossOp::kDiv || kind == LossOp::kNeg) found.push_back(operand(node, 0));
    if (kind == LossOp::kMul) found.push_back(operand(node, 1));
  }
  return found;
}

}  // namespace tensorlint::losses
