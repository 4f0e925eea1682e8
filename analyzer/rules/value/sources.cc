#include "analyzer/rules/value/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/rules/loss/prediction.h"
#include "passes/dataflow/attributes.h"
#include "passes/dataflow/constant_tensors.h"
#include "passes/dataflow/element_function.h"

namespace tensorlint::rules {
namespace {

using losses::Expressions;
using ops::Opcode;

constexpr int kMaxSteps = 12;
/// Of what an exporter writes about a node. Calls have a few hundred bytes.
constexpr std::size_t kMaxWritten = 8192;

template <typename Passes>
ValueId back(const Expressions& expressions, ValueId value, const Passes& passes) {
  for (int step = 0; step < kMaxSteps; ++step) {
    if (!passes(expressions.op_of(value))) break;
    const ValueId before = expressions.operand(expressions.producer(value), 0);
    if (before == ValueId::kAbsent) break;
    value = before;
  }
  expressions.charge(kMaxSteps);
  return value;
}

/// A call that rules look at: an execution reaches it, and it has a result and no fault of its own.
bool is_looked_at(const dataflow::Analysis& analysis, NodeId node) {
  return analysis.is_visited(node) && !analysis.has_failed(node) && !analysis.refers_to_call(node) &&
         NodeCall(analysis, node).result() != ValueId::kAbsent;
}

/// One walk over the model for all rules that look at calls of some operations.
class NodesByOpcode {
 public:
  explicit NodesByOpcode(const dataflow::Analysis& analysis) : analysis_(analysis) {}

  /// In file order; of several opcodes, in `found`.
  std::span<const NodeId> of(const Expressions& expressions, std::initializer_list<Opcode> wanted,
                             std::vector<NodeId>& found) {
    fill(expressions);
    if (wanted.size() == 1) return nodes_[static_cast<std::size_t>(*wanted.begin())];
    std::vector<NodeId> both;
    for (const Opcode opcode : wanted) {
      const std::vector<NodeId>& of = nodes_[static_cast<std::size_t>(opcode)];
      if (of.empty()) continue;
      both.resize(found.size() + of.size());
      std::ranges::merge(found, of, both.begin());
      found.swap(both);
    }
    return found;
  }
  bool any(const Expressions& expressions, std::initializer_list<Opcode> wanted) {
    fill(expressions);
    return std::ranges::any_of(wanted,
                               [&](Opcode opcode) { return !nodes_[static_cast<std::size_t>(opcode)].empty(); });
  }

 private:
  static constexpr std::size_t kOpcodes = 256;

  void fill(const Expressions& expressions) {
    if (!nodes_.empty()) return;
    nodes_.resize(kOpcodes);
    for (const NodeId node : analysis_.nodes())
      if (is_looked_at(analysis_, node)) nodes_[static_cast<std::size_t>(expressions.op(node))].push_back(node);
  }

  const dataflow::Analysis& analysis_;
  std::vector<std::vector<NodeId>> nodes_;
};

/// The same for calls of any operation in the main graph.
struct NodesOfMain {
  explicit NodesOfMain(const dataflow::Analysis& analysis) {
    for (const NodeId node : analysis.nodes())
      if (analysis.model().node(node).graph == GraphId::kMain && is_looked_at(analysis, node)) nodes.push_back(node);
  }
  std::vector<NodeId> nodes;
};

/// The norm of which value it is, before a guard; kAbsent for anything else.
ValueId norm_of(const Expressions& expressions, ValueId value) {
  for (int step = 0; step < kMaxSteps; ++step) {
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    if (opcode == Opcode::kReduceL2) return expressions.operand(node, 0);
    if (opcode == Opcode::kSqrt)
      value = expressions.operand(node, 0);
    else if (opcode == Opcode::kClip)
      value = expressions.operand(node, 0);
    else if (const auto guarded = with_number(expressions, node);
             guarded && (opcode == Opcode::kMax || opcode == Opcode::kAdd) && guarded->number <= 1e-2)
      value = guarded->value;
    else
      return summed_squares(expressions, value);
  }
  return ValueId::kAbsent;
}

/// A sum of products of two, over the square root of both summed squares.
bool is_divided_by_norms(const Expressions& expressions, NodeId quotient) {
  const NodeId sum = expressions.producer(before_stretch(expressions, expressions.operand(quotient, 0)));
  const NodeId product = expressions.producer(expressions.operand(sum, 0));
  if (expressions.op(sum) != Opcode::kReduceSum || expressions.op(product) != Opcode::kMul) return false;
  ValueId norms = before_stretch(expressions, expressions.operand(quotient, 1));
  NodeId node = expressions.producer(norms);
  if (const auto guarded = with_number(expressions, node);
      guarded && (expressions.op(node) == Opcode::kMax || expressions.op(node) == Opcode::kAdd))
    node = expressions.producer(before_stretch(expressions, guarded->value));
  else if (expressions.op(node) == Opcode::kClip)
    node = expressions.producer(before_stretch(expressions, expressions.operand(node, 0)));
  const bool is_root = expressions.op(node) == Opcode::kSqrt;
  if (is_root) node = expressions.producer(before_stretch(expressions, expressions.operand(node, 0)));
  if (expressions.op(node) != Opcode::kMul) return false;
  ValueId vectors[2];
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const ValueId factor = expressions.operand(node, side);
    const ValueId squared = is_root ? summed_squares(expressions, factor) : norm_of(expressions, factor);
    if (squared == ValueId::kAbsent) return false;
    vectors[side] = before_stretch(expressions, squared);
  }
  const ValueId first = before_stretch(expressions, expressions.operand(product, 0));
  const ValueId second = before_stretch(expressions, expressions.operand(product, 1));
  return (first == vectors[0] && second == vectors[1]) || (first == vectors[1] && second == vectors[0]);
}

/// `left`: values that are still compared; what two values share is met many times.
bool are_alike(const Expressions& expressions, ValueId a, ValueId b, int depth, int& left) {
  constexpr std::size_t kMaxOperands = 4;
  constexpr std::uint64_t kStepsOfValue = 16;
  if (a == b) return a != ValueId::kAbsent;
  if (a == ValueId::kAbsent || b == ValueId::kAbsent || depth == 0 || left-- <= 0 || expressions.is_spent())
    return false;
  expressions.charge(kStepsOfValue);
  const dataflow::Analysis& analysis = expressions.analysis();
  const Model& model = analysis.model();
  const Fact &x = analysis.fact(a), &y = analysis.fact(b);
  // Tables that hold the same may be the weights of a copied network, which training moves apart.
  if (x.content != ContentId::kNone && x.content == y.content)
    return x.dtypes == y.dtypes && x.shape == y.shape && expressions.number(a).has_value();
  const NodeId first = expressions.producer(a), second = expressions.producer(b);
  if (first == NodeId::kNone || second == NodeId::kNone || model.node(first).op != model.node(second).op ||
      expressions.op(first) == Opcode::kDropout ||
      (expressions.op(first) == Opcode::kOther && !has_trait(expressions.entry(first), ops::OpTrait::kElementwise)))
    return false;
  const auto one = analysis.attributes(first).read(), other = analysis.attributes(second).read();
  expressions.charge(dataflow::steps_of(one));
  if (!dataflow::same_attributes(one, other)) return false;
  const auto one_side = analysis.operands(first), other_side = analysis.operands(second);
  if (one_side.size() != other_side.size() || one_side.size() > kMaxOperands || expressions.result(first) != a ||
      expressions.result(second) != b)
    return false;
  for (std::size_t i = 0; i < one_side.size(); ++i)
    if (!are_alike(expressions, one_side[i], other_side[i], depth - 1, left)) return false;
  return !one_side.empty();
}

bool collect(const Expressions& expressions, ValueId value, double factor, Numbers numbers, std::vector<Summand>& found,
             int depth) {
  constexpr int kMaxDepth = 8;
  constexpr std::size_t kMaxSummands = 6;
  if (value == ValueId::kAbsent || depth > kMaxDepth || found.size() >= kMaxSummands) return false;
  value = before_stretch(expressions, value);
  const NodeId node = expressions.producer(value);
  const Opcode opcode = expressions.op(node);
  const auto side = [&](std::size_t i, double sign) {
    return collect(expressions, expressions.operand(node, i), factor * sign, numbers, found, depth + 1);
  };
  if (opcode == Opcode::kNeg) return side(0, -1);
  const bool adds = opcode == Opcode::kAdd || opcode == Opcode::kSub;
  const auto numbered =
      opcode == Opcode::kMul || (adds && numbers == Numbers::kWithin) ? with_number(expressions, node) : std::nullopt;
  if (adds && !numbered) return side(0, 1) && side(1, opcode == Opcode::kAdd ? 1 : -1);
  if (opcode == Opcode::kMul && numbered && !expressions.number(numbered->value))
    return collect(expressions, numbered->value, factor * numbered->number, numbers, found, depth + 1);
  found.push_back({value, factor});
  return true;
}

/// "%sqrt : ... (args = (%sum_1,), kwargs = {})" names sqrt and sum_1. Linear, whatever the text.
bool names(std::string_view written, std::string_view name) {
  constexpr std::string_view kEndsOfName = ",)]} ";
  std::size_t end = 0;
  for (std::size_t at = written.find('%'); at != std::string_view::npos; at = written.find('%', at + 1)) {
    if (end <= at) end = std::min(written.find_first_of(kEndsOfName, at), written.size());
    if (end - at == name.size() + 1 && written.substr(at + 1, name.size()) == name) return true;
  }
  return false;
}

/// An operand is what PyTorch casts to another dtype, implicitly or where a program asks for it.
bool names_cast(std::string_view written) {
  const std::size_t operands = written.find("args");
  if (operands == std::string_view::npos) return false;
  return written.find("%convert_element_type", operands) != std::string_view::npos ||
         written.find("%_to_copy", operands) != std::string_view::npos;
}

/// Of how many bytes each number is, where all take the same.
std::uint64_t width_of_words(const Tensor& tensor, std::uint64_t count) {
  const bool has_words =
      tensor.has_raw || tensor.typed_field == TypedField::kFloat || tensor.typed_field == TypedField::kDouble;
  const std::uint64_t bytes = has_words ? tensor.inline_bytes() : 0;
  return count != 0 && bytes % count == 0 ? bytes / count : 0;
}

/// Larger tables are read part by part.
constexpr std::size_t kReadAtOnce = std::size_t{1} << 16;

bool has_readable_bounds(const dataflow::Analysis& analysis, const Tensor& tensor, std::size_t most) {
  const std::uint64_t count = tensor.element_count().value_or(most + 1);
  return count <= most && (count <= kReadAtOnce || width_of_words(tensor, count) != 0) &&
         dataflow::may_read(analysis, tensor);
}

std::optional<std::vector<double>> numbers_of(const dataflow::Analysis& analysis, const Tensor& tensor,
                                              std::size_t most) {
  const std::uint64_t count = tensor.element_count().value_or(most + 1);
  if (count > most) return std::nullopt;
  const std::size_t written = tensor.has_raw ? 0 : tensor.typed.size();  // as varints of up to 10 bytes
  analysis.meter().charge(64 + tensor.dims.size() + count + written / 4);
  auto numbers = tensor.floats(most);
  if (!numbers)
    if (const auto integers = tensor.integers(most)) numbers.emplace(integers->begin(), integers->end());
  return numbers;
}

}  // namespace

void each_node(const ModelView& view, Reporter& out, std::initializer_list<Opcode> wanted,
               const std::function<void(const Expressions&, const NodeCall&)>& visit) {
  const dataflow::Analysis& analysis = view.analysis();
  const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
  std::vector<NodeId> several;
  const std::span nodes = out.shared<NodesByOpcode>().of(expressions, wanted, several);
  for (const NodeId node : Walk(nodes, analysis.meter())) visit(expressions, NodeCall(analysis, node));
}

void each_softmax(const ModelView& view, Reporter& out,
                  const std::function<void(const Expressions&, const NodeCall&, const losses::Normalised&)>& visit) {
  const auto visit_normalised = [&](const Expressions& expressions, const NodeCall& call) {
    if (const auto softmax = expressions.normalised(call.result())) visit(expressions, call, *softmax);
  };
  each_node(view, out, {Opcode::kSoftmax, Opcode::kLogSoftmax}, visit_normalised);
  if (has_node(out, {Opcode::kExp})) each_node(view, out, {Opcode::kDiv}, visit_normalised);
  if (has_node(out, {Opcode::kExp, Opcode::kReduceLogSumExp})) each_node(view, out, {Opcode::kSub}, visit_normalised);
}

bool has_node(Reporter& out, std::initializer_list<Opcode> wanted) {
  const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
  return out.shared<NodesByOpcode>().any(expressions, wanted);
}

void each_node_of_step(const ModelView& view, Reporter& out,
                       const std::function<void(const Expressions&, const NodeCall&)>& visit) {
  const dataflow::Analysis& analysis = view.analysis();
  if (one_float_outputs(analysis).empty()) return;
  const Expressions& expressions = out.shared<losses::LossAxes>().expressions;
  for (const NodeId node : Walk(std::span(out.shared<NodesOfMain>().nodes), analysis.meter()))
    visit(expressions, NodeCall(analysis, node));
}

ValueId before_moves(const Expressions& expressions, ValueId value) {
  return back(expressions, value, [](Opcode opcode) {
    return ops::picks_elements(opcode) || opcode == Opcode::kCast || opcode == Opcode::kTopK;
  });
}

ValueId before_stretch(const Expressions& expressions, ValueId value) {
  return back(expressions, value,
              [](Opcode opcode) { return ops::repeats_elements(opcode) || opcode == Opcode::kCast; });
}

ValueId before_views(const Expressions& expressions, ValueId value) {
  return back(expressions, value, [](Opcode opcode) { return ops::keeps_elements(opcode) || opcode == Opcode::kCast; });
}

ValueId before_casts(const Expressions& expressions, ValueId value) {
  return back(expressions, value, [](Opcode opcode) { return opcode == Opcode::kCast || opcode == Opcode::kIdentity; });
}

bool is_input(const dataflow::Analysis& analysis, ValueId value) { return analysis.model().value(value).is_given(); }

bool is_drawn(const Expressions& expressions, ValueId value) {
  const Opcode opcode = expressions.op_of(value);
  return opcode == Opcode::kDrawNormal || opcode == Opcode::kDrawUniform;
}

bool may_be_noise(const Expressions& expressions, ValueId value) {
  if (value != ValueId::kAbsent) value = before_stretch(expressions, value);
  if (value == ValueId::kAbsent || expressions.number(value)) return false;
  return is_input(expressions.analysis(), value) || is_drawn(expressions, value);
}

std::string_view telling_name(const dataflow::Analysis& analysis, ValueId value) {
  // Its parts are compared with lists of words.
  constexpr std::size_t kLongest = 256;
  const std::string_view name = analysis.model().name_of(value);
  if (name.size() > kLongest) return {};
  analysis.meter().charge(1 + name.size());
  return name;
}

std::optional<double> number_of(const Operand& operand) {
  if (!operand.present() || operand.fact().kind != ValueKind::kTensor) return std::nullopt;
  const Range& range = operand.fact().range;
  return range.lo == range.hi && !range.nan ? std::optional(range.lo) : std::nullopt;
}

std::optional<std::vector<double>> constant_numbers(const dataflow::Analysis& analysis, ValueId value,
                                                    std::size_t most) {
  const Tensor* tensor = dataflow::constant_tensor(analysis, value);
  if (tensor == nullptr || tensor->element_count().value_or(most + 1) > most || !dataflow::may_read(analysis, *tensor))
    return std::nullopt;
  return numbers_of(analysis, *tensor, most);
}

std::optional<std::vector<double>> sorted_numbers(const Expressions& expressions, ValueId value, std::size_t most) {
  auto numbers = constant_numbers(expressions.analysis(), value, most);
  if (!numbers || std::ranges::any_of(*numbers, [](double number) { return std::isnan(number); })) return std::nullopt;
  expressions.charge(numbers->size() * static_cast<std::size_t>(std::bit_width(numbers->size())));
  std::ranges::sort(*numbers);
  return numbers;
}

std::vector<double> channel_numbers(const Expressions& expressions, ValueId value) {
  constexpr std::size_t kMaxChannels = 16;
  if (value == ValueId::kAbsent) return {};
  return constant_numbers(expressions.analysis(), before_stretch(expressions, value), kMaxChannels)
      .value_or(std::vector<double>());
}

std::optional<std::pair<double, double>> constant_bounds(const dataflow::Analysis& analysis, ValueId value,
                                                         std::size_t most) {
  const Tensor* tensor = dataflow::constant_tensor(analysis, value);
  if (tensor == nullptr || !has_readable_bounds(analysis, *tensor, most)) return std::nullopt;
  const std::uint64_t count = *tensor->element_count(), width = width_of_words(*tensor, count);
  std::optional<std::pair<double, double>> bounds;
  for (std::uint64_t begin = 0; begin < count; begin += kReadAtOnce) {
    const auto extent = static_cast<std::int64_t>(std::min<std::uint64_t>(kReadAtOnce, count - begin));
    Tensor part = *tensor;
    if (count > kReadAtOnce) {
      std::string_view& words = part.has_raw ? part.raw : part.typed;
      words = words.substr(begin * width, static_cast<std::size_t>(extent) * width);
      part.dims = std::span(&extent, 1);
    }
    const auto numbers = numbers_of(analysis, part, kReadAtOnce);
    if (!numbers || numbers->empty()) return std::nullopt;
    const auto [least, largest] = std::ranges::minmax(*numbers);
    bounds = bounds ? std::pair(std::min(bounds->first, least), std::max(bounds->second, largest))
                    : std::pair(least, largest);
  }
  return bounds;
}

std::optional<double> same_number(const dataflow::Analysis& analysis, ValueId value) {
  constexpr std::size_t kMost = 1 << 16;
  if (value == ValueId::kAbsent) return std::nullopt;
  if (const auto number = number_of(Operand(analysis, value))) return number;
  const auto bounds = constant_bounds(analysis, value, kMost);
  return bounds && bounds->first == bounds->second ? std::optional(bounds->first) : std::nullopt;
}

bool is_left_unread(const dataflow::Analysis& analysis, ValueId value, std::size_t most) {
  const Tensor* tensor = dataflow::constant_tensor(analysis, value);
  return tensor != nullptr && !has_readable_bounds(analysis, *tensor, most);
}

std::optional<std::vector<double>> constant_numbers(const Expressions& expressions, ValueId value) {
  return constant_numbers(expressions.analysis(), value);
}

bool is_reciprocal(const Expressions& expressions, NodeId node) {
  if (node == NodeId::kNone || expressions.entry(node) == nullptr) return false;
  const ops::ElementValue element = dataflow::element_function(expressions.analysis(), node, 1);
  return element != nullptr && element({std::array{2.0}, {}}) == 0.5 && element({std::array{-8.0}, {}}) == -0.125;
}

std::optional<WithNumber> with_number(const Expressions& expressions, NodeId node) {
  const ValueId first = expressions.operand(node, 0), second = expressions.operand(node, 1);
  if (first == ValueId::kAbsent || second == ValueId::kAbsent) return std::nullopt;
  if (const auto number = expressions.number(second)) return WithNumber{first, *number, false};
  if (const auto number = expressions.number(first)) return WithNumber{second, *number, true};
  return std::nullopt;
}

bool is_constant(const Expressions& expressions, ValueId value) {
  return value != ValueId::kAbsent && (expressions.analysis().model().value(value).initializer != nullptr ||
                                       expressions.op_of(value) == Opcode::kConstant);
}

bool is_read_by_layer(const Expressions& expressions, ValueId value) {
  constexpr std::size_t kMaxReaders = 16;
  std::vector<ValueId> pending{value};
  for (std::size_t i = 0; i < pending.size() && pending.size() < kMaxReaders; ++i)
    for (const NodeId user : expressions.users(pending[i])) {
      const Opcode opcode = expressions.op(user);
      if (opcode == Opcode::kMatMul && expressions.operand(user, 0) == pending[i]) {
        const ValueId weights = expressions.operand(user, 1);
        if (weights != ValueId::kAbsent && is_constant(expressions, before_stretch(expressions, weights))) return true;
      }
      const ValueId result = expressions.result(user);
      if (result != ValueId::kAbsent &&
          (ops::moves_elements(opcode) || opcode == Opcode::kDropout || opcode == Opcode::kConcat ||
           opcode == Opcode::kNormalize || opcode == Opcode::kCast || opcode == Opcode::kAdd ||
           opcode == Opcode::kSub || opcode == Opcode::kMul || opcode == Opcode::kAbs ||
           (opcode == Opcode::kOther && has_trait(expressions.entry(user), ops::OpTrait::kElementwise))))
        pending.push_back(result);
    }
  return false;
}

std::vector<Summand> summands(const Expressions& expressions, ValueId value, Numbers numbers) {
  std::vector<Summand> found;
  if (!collect(expressions, value, 1, numbers, found, 0) || found.size() < 2) found.clear();
  return found;
}

ValueId summed_squares(const Expressions& expressions, ValueId value) {
  const NodeId sum = expressions.producer(before_stretch(expressions, value));
  const Opcode opcode = expressions.op(sum);
  if (opcode == Opcode::kReduceSumSquare) return expressions.operand(sum, 0);
  if (opcode != Opcode::kReduceSum) return ValueId::kAbsent;
  return expressions.square_base(expressions.source(expressions.operand(sum, 0)));
}

ValueId before_guard(const Expressions& expressions, ValueId value) {
  constexpr double kSmall = 1e-2;
  for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    if (opcode == Opcode::kClip) {
      value = expressions.operand(node, 0);
      continue;
    }
    if (opcode != Opcode::kAdd && opcode != Opcode::kMax) break;
    const auto guarded = with_number(expressions, node);
    if (!guarded || std::abs(guarded->number) > kSmall) break;
    value = guarded->value;
  }
  return value;
}

std::optional<RunningAverage> running_average(const Expressions& expressions, ValueId value) {
  constexpr double kRounding = 1e-6;  // of 0.999 and 0.001 in float32, and of their sum
  if (value == ValueId::kAbsent) return std::nullopt;
  const NodeId sum = expressions.producer(value);
  if (expressions.op(sum) != Opcode::kAdd) return std::nullopt;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const NodeId kept = expressions.producer(expressions.operand(sum, side));
    const auto old = with_number(expressions, kept);
    if (expressions.op(kept) != Opcode::kMul || !old || old->number <= 0.5 || old->number >= 1) continue;
    // (1 - decay) * g, also as a factor of (1 - decay) * g * g.
    const ValueId term = expressions.operand(sum, 1 - side);
    for (const ValueId factor : expressions.factors(term)) {
      const NodeId node = expressions.producer(factor);
      const auto share = with_number(expressions, node);
      if (expressions.op(node) == Opcode::kMul && share && std::abs(share->number + old->number - 1) < kRounding)
        return RunningAverage{old->number, old->value, factor == term ? share->value : term};
    }
  }
  return std::nullopt;
}

namespace {

bool is_never_negative(const Expressions& expressions, ValueId value, int depth) {
  constexpr int kMaxDepth = 6;
  if (value == ValueId::kAbsent || depth > kMaxDepth) return false;
  value = before_stretch(expressions, value);
  const Range& range = expressions.analysis().fact(value).range;
  if (range.lo >= 0 && range.lo <= range.hi) return true;
  const NodeId node = expressions.producer(value);
  const ValueId a = expressions.operand(node, 0), b = expressions.operand(node, 1);
  const auto numbered = with_number(expressions, node);
  const auto is_so = [&](ValueId operand) { return is_never_negative(expressions, operand, depth + 1); };
  switch (expressions.op(node)) {
    case Opcode::kAbs:
    case Opcode::kExp:
    case Opcode::kSqrt:
    case Opcode::kSigmoid:
    case Opcode::kReduceL1:
    case Opcode::kReduceL2:
    case Opcode::kReduceSumSquare:
      return true;
    case Opcode::kPow:
      return expressions.is_number(b, 2) || is_so(a);
    case Opcode::kMul:
      if (numbered) return numbered->number >= 0 && is_so(numbered->value);
      // One exporter writes the squared difference as a product of two equal ones.
      return are_computed_alike(expressions, a, b) || (is_so(a) && is_so(b));
    case Opcode::kDiv:
      return numbered && !numbered->is_first ? numbered->number > 0 && is_so(a) : is_so(a) && is_so(b);
    case Opcode::kAdd:
      return is_so(a) && is_so(b);
    case Opcode::kReduceSum:
    case Opcode::kReduceMean:
      return is_so(a);
    default:
      return false;
  }
}

}  // namespace

bool is_never_negative(const Expressions& expressions, ValueId value) {
  return is_never_negative(expressions, value, 0);
}

ValueId before_scale(const Expressions& expressions, ValueId value) {
  for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    const Opcode opcode = expressions.op(node);
    if (opcode != Opcode::kMul && opcode != Opcode::kDiv) break;
    const auto scaled = with_number(expressions, node);
    if (!scaled || (opcode == Opcode::kDiv && scaled->is_first)) break;
    value = scaled->value;
  }
  return value;
}

ValueId before_signed_scale(const Expressions& expressions, ValueId value, double& sign) {
  for (int step = 0; step < kMaxSteps && value != ValueId::kAbsent; ++step) {
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    const auto numbered = with_number(expressions, node);
    if (expressions.op(node) == Opcode::kNeg) {
      sign = -sign;
      value = expressions.operand(node, 0);
    } else if (expressions.op(node) == Opcode::kMul && numbered && numbered->number != 0) {
      if (numbered->number < 0) sign = -sign;
      value = numbered->value;
    } else {
      break;
    }
  }
  return value;
}

std::optional<Roll> rolled_by(const Expressions& expressions, NodeId node) {
  const dataflow::Analysis& analysis = expressions.analysis();
  if (expressions.op(node) != Opcode::kConcat || analysis.operands(node).size() != 2) return std::nullopt;
  const ValueId tail = expressions.operand(node, 0), head = expressions.operand(node, 1);
  const NodeId first = expressions.producer(tail), second = expressions.producer(head);
  if (expressions.op(first) != Opcode::kSlice || expressions.op(second) != Opcode::kSlice) return std::nullopt;
  const ValueId from = expressions.operand(first, 0);
  const auto part = expressions.dims(head), whole = expressions.dims(from),
             joined = expressions.dims(expressions.result(node));
  if (from != expressions.operand(second, 0) || whole.empty() || joined.size() != whole.size() ||
      part.size() != whole.size())
    return std::nullopt;
  const DimPool& pool = analysis.facts().dims();
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (!pool.equal(whole[i], joined[i])) return std::nullopt;
    if (pool.equal(part[i], whole[i])) continue;
    if (axis) return std::nullopt;
    axis = i;
  }
  if (!axis) return std::nullopt;
  const auto shift = pool.as_constant(part[*axis]), extent = pool.as_constant(whole[*axis]);
  const auto starts_at = [&](NodeId slice) {
    const auto start = expressions.number(expressions.operand(slice, 1));
    return start && *start < 0 && extent ? std::optional(*start + static_cast<double>(*extent)) : start;
  };
  if (!shift || !extent || *shift <= 0 || *shift >= *extent || starts_at(second) != 0 ||
      starts_at(first) != static_cast<double>(*shift))
    return std::nullopt;
  return Roll{node, from, *axis, *shift, *extent};
}

ValueId rest_of(const Expressions& expressions, ValueId value) {
  const ValueId rest = value == ValueId::kAbsent ? value : expressions.complement(value);
  return rest == ValueId::kAbsent ? rest : before_stretch(expressions, rest);
}

bool is_of_unit_length(const Expressions& expressions, ValueId value) {
  const NodeId node = expressions.producer(before_moves(expressions, value));
  if (expressions.op(node) == Opcode::kConcat) {
    // Rows below rows, as of two views of the same samples: each is as long as it was.
    constexpr std::size_t kMaxParts = 4;
    const auto parts = expressions.analysis().operands(node);
    const Attribute* axis = expressions.analysis().attribute(node, "axis");
    return axis != nullptr && axis->i == 0 && expressions.dims(expressions.result(node)).size() > 1 &&
           parts.size() <= kMaxParts && std::ranges::all_of(parts, [&](ValueId part) {
             if (part == ValueId::kAbsent) return false;
             const NodeId division = expressions.producer(before_moves(expressions, part));
             const ValueId norms = expressions.operand(division, 1);
             if (expressions.op(division) != Opcode::kDiv || norms == ValueId::kAbsent) return false;
             // Not over the rows themselves, which are more now.
             const auto dims = expressions.dims(before_stretch(expressions, norms));
             return !dims.empty() && !expressions.analysis().facts().dims().is_constant(dims.front(), 1) &&
                    is_of_unit_length(expressions, part);
           });
  }
  if (expressions.op(node) != Opcode::kDiv) return false;
  const ValueId norm = norm_of(expressions, expressions.operand(node, 1));
  return norm != ValueId::kAbsent &&
         before_stretch(expressions, norm) == before_stretch(expressions, expressions.operand(node, 0));
}

std::optional<Cosine> cosine_of(const Expressions& expressions, ValueId value) {
  const dataflow::Analysis& analysis = expressions.analysis();
  for (int step = 0; step < kMaxSteps; ++step) {
    value = before_moves(expressions, value);
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) != Opcode::kAbs && expressions.op(node) != Opcode::kNeg) break;
    value = expressions.operand(node, 0);
  }
  const NodeId node = expressions.producer(value);
  NodeId product = node;
  if (expressions.op(node) == Opcode::kDiv && is_divided_by_norms(expressions, node)) return Cosine{node, true, false};
  if (expressions.op(node) == Opcode::kReduceSum) {
    product = expressions.producer(expressions.operand(node, 0));
    if (expressions.op(product) != Opcode::kMul) return std::nullopt;
  } else if ((expressions.op(node) != Opcode::kMatMul && expressions.op(node) != Opcode::kEinsum) ||
             expressions.operand(node, 2) != ValueId::kAbsent) {
    return std::nullopt;
  }
  if (const Attribute* scale = NodeCall(analysis, node).attribute("alpha"); scale != nullptr && scale->f != 1)
    return std::nullopt;
  const ValueId first = expressions.operand(product, 0), second = expressions.operand(product, 1);
  if (first == ValueId::kAbsent || second == ValueId::kAbsent) return std::nullopt;
  const bool divided[] = {is_of_unit_length(expressions, first), is_of_unit_length(expressions, second)};
  if (!divided[0] && !divided[1]) return std::nullopt;
  Cosine cosine{node, divided[0] && divided[1], false};
  if (!cosine.both_divided && !is_input(analysis, before_moves(expressions, divided[0] ? second : first)))
    return std::nullopt;
  cosine.is_of_itself = expressions.op(node) == Opcode::kMatMul &&
                        before_stretch(expressions, first) == before_stretch(expressions, second);
  return cosine;
}

AsWritten is_operand_as_written(Reporter& out, const Expressions& expressions, NodeId user, ValueId value,
                                ValueId from) {
  AsWritten found = AsWritten::kYes;
  for (int step = 0; step < kMaxSteps && user != NodeId::kNone && value != ValueId::kAbsent; ++step) {
    const std::string_view written = out.locations().metadata(user, "pkg.torch.onnx.fx_node");
    // It is searched up to three times.
    expressions.charge(16 + 4 * std::min(written.size(), kMaxWritten));
    if (written.size() > kMaxWritten) {
      found = AsWritten::kUnknown;
    } else if (!written.empty()) {
      const bool named = names(written, expressions.analysis().model().name_of(value));
      // Several nodes may be what the exporter wrote for one call: what lies between them is its own.
      const NodeId before = expressions.producer(value);
      const bool of_one_call =
          before != NodeId::kNone && out.locations().metadata(before, "pkg.torch.onnx.fx_node") == written;
      // Of two equal casts an exporter keeps one, under the name of the first.
      const bool of_equal_cast = expressions.op(before) == Opcode::kCast && names_cast(written);
      if (!named && !of_one_call && !of_equal_cast) return AsWritten::kNo;
    } else if (!out.locations().metadata(user, "pkg.torch.onnx.stack_trace").empty()) {
      found = AsWritten::kUnknown;
    }
    if (value == from) return found;
    user = expressions.producer(value);
    value = expressions.operand(user, 0);
  }
  return AsWritten::kNo;
}

bool are_computed_alike(const Expressions& expressions, ValueId a, ValueId b, int steps) {
  int left = 400;
  return are_alike(expressions, a, b, steps, left);
}

bool is_product(const Expressions& expressions, NodeId node) {
  return expressions.op(node) == Opcode::kOther && has_trait(expressions.entry(node), ops::OpTrait::kReduction);
}

bool is_chosen_from(const Expressions& expressions, ValueId value) {
  return std::ranges::any_of(expressions.users(value),
                             [&](NodeId user) { return expressions.op(user) == Opcode::kWhere; });
}

bool is_kept_finite(const Expressions& expressions, ValueId result) {
  return is_clamped(expressions.analysis(), result) || is_chosen_from(expressions, result);
}

bool is_rectifier(const Expressions& expressions, NodeId node) {
  const Opcode opcode = expressions.op(node);
  if (opcode == Opcode::kClip || opcode == Opcode::kMax)
    return expressions.analysis().operands(node).size() >= 2 &&
           expressions.is_number(expressions.operand(node, 1), 0) && expressions.operand(node, 2) == ValueId::kAbsent;
  const ops::ElementValue element = dataflow::element_function(expressions.analysis(), node, 1);
  const auto at = [&](double number) { return element({std::array{number}, {}}); };
  return element != nullptr && at(-1) == 0 && at(2) == 2;
}

bool has_minus_infinity(const Expressions& expressions, ValueId scores) {
  const dataflow::Analysis& analysis = expressions.analysis();
  const auto is_minus_infinity = [&](ValueId value) {
    return value != ValueId::kAbsent && expressions.number(value) == -HUGE_VAL;
  };
  const auto hides = [&](ValueId value) {
    value = before_stretch(expressions, value);
    const NodeId node = expressions.producer(value);
    if (expressions.op(node) == Opcode::kWhere)
      return is_minus_infinity(expressions.operand(node, 1)) || is_minus_infinity(expressions.operand(node, 2));
    return analysis.model().value(value).initializer != nullptr && analysis.fact(value).range.lo == -HUGE_VAL &&
           !analysis.fact(value).range.nan;
  };
  for (int step = 0; step < kMaxSteps && scores != ValueId::kAbsent; ++step) {
    scores = before_stretch(expressions, scores);
    const NodeId node = expressions.producer(scores);
    const Opcode opcode = expressions.op(node);
    if (opcode == Opcode::kWhere) {
      if (is_minus_infinity(expressions.operand(node, 1)) || is_minus_infinity(expressions.operand(node, 2)))
        return true;
      scores = expressions.operand(node, expressions.number(expressions.operand(node, 1)) ? 2 : 1);
    } else if (opcode == Opcode::kAdd) {
      if (hides(expressions.operand(node, 0)) || hides(expressions.operand(node, 1))) return true;
      scores = expressions.operand(node, 0);
    } else if (opcode == Opcode::kDiv || opcode == Opcode::kMul) {
      const auto scaled = with_number(expressions, node);
      if (!scaled || !(scaled->number > 0)) return false;
      scores = scaled->value;
    } else {
      return false;
    }
  }
  return false;
}

NodeId overlap_of_intervals(const Expressions& expressions, ValueId value) {
  if (value == ValueId::kAbsent) return NodeId::kNone;
  const auto is_of_two = [&](ValueId operand, Opcode opcode) {
    if (operand == ValueId::kAbsent) return false;
    const NodeId node = expressions.producer(before_moves(expressions, operand));
    return expressions.op(node) == opcode && expressions.operand(node, 1) != ValueId::kAbsent &&
           expressions.operand(node, 2) == ValueId::kAbsent && !with_number(expressions, node);
  };
  const NodeId node = expressions.producer(before_moves(expressions, value));
  const bool is_overlap = expressions.op(node) == Opcode::kSub &&
                          is_of_two(expressions.operand(node, 0), Opcode::kMin) &&
                          is_of_two(expressions.operand(node, 1), Opcode::kMax);
  return is_overlap ? node : NodeId::kNone;
}

}  // namespace tensorlint::rules
