#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "runtime/executor/kernel_matcher.h"
#include "runtime/values/codec.h"

namespace tensorlint::runtime {

using kernels::ElementOp;

struct KernelMatcher::ElementProgram {
  kernels::Elementwise request;
  Extents extents;
  ElementClass computed = ElementClass::kFloat;
  NodeId root = NodeId::kNone;
  std::vector<CallOperand> operands;
  std::map<NodeId, int> sources;  ///< the last step of each node
  std::vector<std::string> names;
};

namespace {

struct ElementOperator {
  std::string_view name;
  ElementOp op;
  /// Attributes that are alpha and beta, with their defaults.
  std::string_view alpha_name = {};
  float alpha = 0;
  std::string_view beta_name = {};
  float beta = 0;
};

constexpr ElementOperator kOperators[] = {
    {"Add", ElementOp::kAdd},
    {"Sub", ElementOp::kSub},
    {"Mul", ElementOp::kMul},
    {"Div", ElementOp::kDiv},
    {"Mod", ElementOp::kFlooredMod},
    {"Pow", ElementOp::kPow},
    {"Min", ElementOp::kMin},
    {"Max", ElementOp::kMax},
    {"Sum", ElementOp::kAdd},
    {"Neg", ElementOp::kNeg},
    {"Abs", ElementOp::kAbs},
    {"Sign", ElementOp::kSign},
    {"Relu", ElementOp::kRelu},
    {"Clip", ElementOp::kClip},
    {"Equal", ElementOp::kEqual},
    {"Greater", ElementOp::kGreater},
    {"Less", ElementOp::kLess},
    {"GreaterOrEqual", ElementOp::kGreaterOrEqual},
    {"LessOrEqual", ElementOp::kLessOrEqual},
    {"And", ElementOp::kAnd},
    {"Or", ElementOp::kOr},
    {"Xor", ElementOp::kXor},
    {"Not", ElementOp::kNot},
    {"Where", ElementOp::kWhere},
    {"Cast", ElementOp::kCast},
    {"CastLike", ElementOp::kCast},
    {"Exp", ElementOp::kExp},
    {"Log", ElementOp::kLog},
    {"Sqrt", ElementOp::kSqrt},
    {"Reciprocal", ElementOp::kReciprocal},
    {"Erf", ElementOp::kErf},
    {"Tanh", ElementOp::kTanh},
    {"Sigmoid", ElementOp::kSigmoid},
    {"LeakyRelu", ElementOp::kLeakyRelu, "alpha", 0.01F},
    {"Elu", ElementOp::kElu, "alpha", 1},
    {"Gelu", ElementOp::kGelu},
    {"HardSigmoid", ElementOp::kHardSigmoid, "alpha", 0.2F, "beta", 0.5F},
    {"HardSwish", ElementOp::kHardSwish},
    {"Softplus", ElementOp::kSoftplus},
    {"Swish", ElementOp::kSwish, "alpha", 1},
    {"Floor", ElementOp::kFloor},
    {"Ceil", ElementOp::kCeil},
    {"Round", ElementOp::kRound},
    {"Sin", ElementOp::kSin},
    {"Cos", ElementOp::kCos},
    {"IsNaN", ElementOp::kIsNaN},
};

constexpr unsigned kEveryClass = 7;
/// Operators and names of one call that a plan shows.
constexpr std::size_t kShownNames = 6;

template <typename Class>
constexpr unsigned bit(Class computed) {
  return 1U << static_cast<unsigned>(computed);
}

/// Values of the dtype are values of the class's compute type, and results of its steps.
template <typename Class>
bool holds(Class computed, DType dtype) {
  if (dtype == DType::kBool) return true;
  const bool floats = DTypeSet::floats().contains(dtype);
  return computed == Class::kInteger ? !floats : floats && (computed == Class::kDouble || dtype != DType::kFloat64);
}

/// Integers that float32 holds, all of them.
bool is_small_integer(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kUint8 || dtype == DType::kInt16; }

}  // namespace

std::optional<double> KernelMatcher::exact_number(ValueId value) const {
  if (value == ValueId::kAbsent) return std::nullopt;
  const NodeId node = expressions_.producer(value);
  const bool is_given = model_.value(value).origin == ValueOrigin::kInitializer ||
                        (node != NodeId::kNone && model_.text(model_.op(model_.node(node)).name) == "Constant");
  const auto type = dtype(value);
  const auto shape = extents(value);
  if (!is_given || !type || !shape || count(*shape) != 1) return std::nullopt;
  const std::optional<double> number = expressions_.number(value);
  if (!number) return std::nullopt;
  bool is_exact = std::fabs(*number) < 0x1p53;  // above it an integer was rounded, and to it perhaps
  if (*type == DType::kFloat64) is_exact = true;
  if (*type == DType::kFloat32) is_exact = static_cast<double>(static_cast<float>(*number)) == *number;
  if (*type == DType::kFloat16 || *type == DType::kBFloat16)
    is_exact = decode(*type, encode(*type, *number)) == *number;
  return is_exact ? number : std::nullopt;
}

bool KernelMatcher::is_constant(ValueId value) const {
  if (value == ValueId::kAbsent) return true;
  const NodeId node = expressions_.producer(value);
  return node == NodeId::kNone ? model_.value(value).origin == ValueOrigin::kInitializer : constants_.contains(node);
}

void KernelMatcher::find_constants() {
  for (const NodeId node : model_.nodes.ids()) {
    const auto operands = model_.operands(model_.node(node));
    const bool is_made_of_constants =
        std::ranges::all_of(operands, [&](ValueId value) { return is_constant(value); }) &&
        std::ranges::all_of(readers_.captured(node), [&](ValueId value) { return is_constant(value); });
    if (operands.empty() ? model_.text(model_.op(model_.node(node)).name) == "Constant" : is_made_of_constants)
      constants_.insert(node);
  }
}

template <typename Holds>
bool KernelMatcher::all_integers(ValueId value, const Holds& holds_for) const {
  const Content* const content = analysis_.facts().content(analysis_.fact(value).content);
  if (content == nullptr || content->size() == 0) return false;
  analysis_.meter().charge(content->size());
  return std::ranges::all_of(content->integers, [&](Dim dim) {
    const auto constant = analysis_.facts().dims().as_constant(dim);
    return constant && holds_for(*constant);
  });
}

ElementwiseCall::ElementwiseCall(const kernels::Elementwise& request)
    : compute(request.compute),
      result_dtype(request.result_dtype),
      extents(request.extents, request.extents + request.rank),
      operands(request.operands, request.operands + request.operand_count),
      steps(request.steps, request.steps + request.step_count) {}

kernels::Elementwise ElementwiseCall::request() const {
  kernels::Elementwise whole;
  whole.compute = compute;
  whole.result_dtype = result_dtype;
  whole.rank = static_cast<int>(extents.size());
  std::ranges::copy(extents, whole.extents);
  whole.operand_count = static_cast<int>(operands.size());
  std::ranges::copy(operands, whole.operands);
  whole.step_count = static_cast<int>(steps.size());
  std::ranges::copy(steps, whole.steps);
  return whole;
}

bool KernelMatcher::refers_to_call(NodeId node) const {
  const auto attributes = model_.attributes(model_.node(node));
  analysis_.meter().charge(1 + attributes.size() / 4);
  return std::ranges::any_of(attributes, [](const Attribute& attribute) { return !attribute.reference.empty(); });
}

std::size_t KernelMatcher::ElementNode::steps() const {
  return kernels::arity_of(op) == 2 ? std::max<std::size_t>(arguments.size(), 2) - 1 : 1;
}

const KernelMatcher::ElementNode* KernelMatcher::element_node(NodeId node) {
  if (node == NodeId::kNone || is_taken(node) || !registered_[node]) return nullptr;
  if (!is_described_[node]) {
    is_described_[node] = true;
    if (std::optional<ElementNode> described = describe(node)) element_nodes_.emplace(node, *std::move(described));
  }
  const auto found = element_nodes_.find(node);
  return found == element_nodes_.end() ? nullptr : &found->second;
}

std::optional<KernelMatcher::ElementNode> KernelMatcher::describe(NodeId node) {
  const Operator& op = model_.op(model_.node(node));
  const auto known = std::ranges::find(kOperators, model_.text(op.name), &ElementOperator::name);
  if (known == std::end(kOperators)) return std::nullopt;
  const auto refuse = [&](std::string reason) -> std::optional<ElementNode> {
    leave(node, std::move(reason));
    return std::nullopt;
  };
  if (refers_to_call(node)) return refuse("an attribute is that of the function's call");
  const ValueId result = expressions_.result(node);
  const auto type = dtype(result);
  const auto shape = extents(result);
  if (!type || !shape) return refuse("its extents are not known before the run");
  if (shape->size() > kernels::kMaxElementRank)
    return refuse(fmt::format("its result has more than {} axes", kernels::kMaxElementRank));
  if (fails(node)) return refuse("it fails");
  const auto operands = model_.operands(model_.node(node));
  analysis_.meter().charge(16 + 8 * operands.size());
  const bool is_float_result = DTypeSet::floats().contains(*type);
  if (!is_float_result && analysis_.fact(result).content != ContentId::kNone)
    return refuse("its elements are known before the run");
  if (std::ranges::all_of(operands, [&](ValueId value) { return is_constant(value); }))
    return refuse("its operands are constants");
  ElementNode element{.node = node, .op = known->op, .arguments = {}};
  for (const ValueId operand : operands) {
    element.arguments.push_back({.value = operand});
    if (operand == ValueId::kAbsent) continue;
    const auto operand_type = dtype(operand);
    kernels::Dtype as_kernel{};
    if (!operand_type || !extents(operand)) return refuse("its extents are not known before the run");
    if (!kernel_dtype(*operand_type, as_kernel))
      return refuse(fmt::format("there is no kernel for {}", DTypeSet(*operand_type).to_text()));
  }
  kernels::Dtype as_kernel{};
  if (!kernel_dtype(*type, as_kernel))
    return refuse(fmt::format("there is no kernel for {}", DTypeSet(*type).to_text()));
  if (element.op == ElementOp::kCast) {
    element.arguments.resize(1);
    describe_cast(*dtype(operands[0]), *type, element);
    return element;
  }
  const ValueId data = operands[element.op == ElementOp::kWhere ? 1 : 0];
  const DType computed = *dtype(data);
  const bool is_integer = !DTypeSet::floats().contains(computed);
  if (computed == DType::kBool) {
    element.classes = kEveryClass;
  } else {
    element.classes = bit(is_integer                    ? ElementClass::kInteger
                          : computed == DType::kFloat64 ? ElementClass::kDouble
                                                        : ElementClass::kFloat);
  }
  const auto number_attribute = [&](std::string_view name, float otherwise) {
    const Attribute* const attribute = name.empty() ? nullptr : model_.attribute(model_.node(node), name);
    return static_cast<double>(attribute == nullptr ? otherwise : attribute->f);
  };
  element.alpha = number_attribute(known->alpha_name, known->alpha);
  element.beta = number_attribute(known->beta_name, known->beta);
  if (op.opset < 7 && model_.attribute(model_.node(node), "axis") != nullptr)
    return refuse("its second operand is aligned by an axis");
  switch (element.op) {
    case ElementOp::kAdd:
      // The sum of more is rounded once.
      if (known->name == "Sum" && operands.size() > 2) return refuse("there is no kernel for more than two operands");
      [[fallthrough]];
    case ElementOp::kMin:
    case ElementOp::kMax:
      if (operands.size() == 1) element.op = ElementOp::kCast;
      break;
    case ElementOp::kFlooredMod: {
      const Attribute* const truncates = model_.attribute(model_.node(node), "fmod");
      if (truncates != nullptr && truncates->i != 0) element.op = ElementOp::kTruncatedMod;
      if (!is_integer && element.op == ElementOp::kFlooredMod)
        return refuse("there is no kernel for remainders of floats with the sign of the divisor");
      [[fallthrough]];
    }
    case ElementOp::kDiv:
      if (is_integer && !all_integers(operands[1], [](std::int64_t x) { return x != 0; }))
        return refuse("its divisor may be 0");
      break;
    case ElementOp::kPow: {
      const DType exponent = *dtype(operands[1]);
      const auto number = exact_number(operands[1]);
      if (is_integer) {
        if (DTypeSet::floats().contains(exponent)) return refuse("there is no kernel for powers between dtypes");
        if (!all_integers(operands[1], [](std::int64_t x) { return x >= 0; }))
          return refuse("its exponent may be negative");
      } else if (exponent != computed) {
        if (!number || (computed != DType::kFloat64 && static_cast<double>(static_cast<float>(*number)) != *number))
          return refuse("there is no kernel for powers between dtypes");
      }
      break;
    }
    case ElementOp::kClip:
      describe_clip(op.opset, is_integer, element);
      break;
    case ElementOp::kGelu: {
      const Attribute* const approximate = model_.attribute(model_.node(node), "approximate");
      if (approximate != nullptr && approximate->s == "tanh") element.op = ElementOp::kTanhGelu;
      break;
    }
    default:
      break;
  }
  return element;
}

/// Bounds are attributes until opset 10, then operands.
void KernelMatcher::describe_clip(std::int64_t opset, bool is_integer, ElementNode& element) const {
  using Argument = ElementNode::Argument;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  element.arguments.resize(3);
  Argument& least = element.arguments[1];
  Argument& most = element.arguments[2];
  if (opset < 11) {
    const Attribute* const min = model_.attribute(model_.node(element.node), "min");
    const Attribute* const max = model_.attribute(model_.node(element.node), "max");
    least.number = min == nullptr ? -kInfinity : static_cast<double>(min->f);
    most.number = max == nullptr ? kInfinity : static_cast<double>(max->f);
    return;
  }
  const bool has_least = least.value != ValueId::kAbsent, has_most = most.value != ValueId::kAbsent;
  if (!is_integer) {
    if (!has_least) least.number = -kInfinity;
    if (!has_most) most.number = kInfinity;
    return;
  }
  if (has_least && has_most) return;
  // No float64 is the largest integer.
  element.op = has_least ? ElementOp::kMax : has_most ? ElementOp::kMin : ElementOp::kCast;
  if (has_most) element.arguments.erase(element.arguments.begin() + 1);
  element.arguments.resize(has_least || has_most ? 2 : 1);
}

void KernelMatcher::describe_cast(DType from, DType to, ElementNode& element) {
  const bool from_float = DTypeSet::floats().contains(from), to_float = DTypeSet::floats().contains(to);
  const ElementClass of_from = !from_float               ? ElementClass::kInteger
                               : from == DType::kFloat64 ? ElementClass::kDouble
                                                         : ElementClass::kFloat;
  const ElementClass of_to = !to_float               ? ElementClass::kInteger
                             : to == DType::kFloat64 ? ElementClass::kDouble
                                                     : ElementClass::kFloat;
  if (from == DType::kBool) {
    element.classes = to == DType::kBool ? kEveryClass : bit(of_to);
  } else if (from_float && to_float) {
    element.classes = bit(of_from == ElementClass::kDouble ? of_from : of_to);
  } else if (to == DType::kBool) {
    element.classes = bit(of_from);
  } else if (from_float) {
    element.as_root = bit(of_from);
  } else if (!to_float) {
    element.classes = bit(ElementClass::kInteger);
  } else {
    element.as_root = bit(ElementClass::kInteger);
    // Read as a float32, an integer of more bits would be rounded twice on its way to fewer.
    if (of_to == ElementClass::kDouble || to == DType::kFloat32 || is_small_integer(from)) element.as_leaf = bit(of_to);
  }
}

void KernelMatcher::add_elementwise() {
  std::vector<NodeId> latest_first;
  for (const NodeId node : model_.nodes.ids())
    if (analysis_.is_visited(node)) latest_first.push_back(node);
  std::ranges::reverse(latest_first);
  for (const NodeId node : latest_first) {
    if (is_spent()) return;
    const ElementNode* const root = element_node(node);
    if (root == nullptr) continue;
    // What truth values are computed as is what most of what comes before is computed as.
    ElementClass computed = ElementClass::kFloat;
    const unsigned possible = root->classes | root->as_root;
    if (possible != kEveryClass) {
      computed = static_cast<ElementClass>(std::countr_zero(possible));
    } else {
      for (const ElementNode::Argument& argument : root->arguments)
        if (const ElementNode* const before = element_node(expressions_.producer(argument.value));
            before != nullptr && before->classes != 0 && before->classes != kEveryClass)
          computed = static_cast<ElementClass>(std::countr_zero(before->classes));
    }
    add_program(*root, computed);
  }
}

void KernelMatcher::add_program(const ElementNode& root, ElementClass computed) {
  std::set<NodeId> members{root.node};
  std::optional<ElementProgram> whole = program(root, members, computed);
  if (!whole) return leave(root.node, "it does not fit into a call of the kernel");
  const Extents shape = whole->extents;
  // What comes before, as long as nothing else reads it.
  std::vector<NodeId> open{root.node};
  while (!open.empty()) {
    const ElementNode* const reader = element_node(open.back());
    open.pop_back();
    if (reader == nullptr || (reader->node != root.node && (reader->classes & bit(computed)) == 0)) continue;
    std::set<ValueId> seen;
    for (const ElementNode::Argument& argument : reader->arguments) {
      analysis_.meter().charge(16);
      if (!seen.insert(argument.value).second) continue;
      const NodeId before = expressions_.producer(argument.value);
      if (before == NodeId::kNone || members.contains(before) || readers_.is_output(argument.value)) continue;
      if (model_.node(before).graph != model_.node(root.node).graph) continue;  // which this body reads
      if (is_elsewhere(before, root.node)) continue;
      if (!std::ranges::all_of(readers_.of(argument.value), [&](NodeId node) {
            analysis_.meter().charge(4);
            return members.contains(node);
          }))
        continue;  // tried again from its last reader
      const ElementNode* const element = element_node(before);
      if (element == nullptr || ((element->classes | element->as_leaf) & bit(computed)) == 0 ||
          expressions_.result(before) != argument.value || extents(argument.value) != shape)
        continue;
      members.insert(before);
      if (std::optional<ElementProgram> larger = program(root, members, computed)) {
        whole = std::move(larger);
        open.push_back(before);
      } else {
        members.erase(before);
      }
    }
  }
  KernelCall call{
      .kernel = fmt::format("elementwise {}{}",
                            fmt::join(std::span(whole->names).first(std::min(kShownNames, whole->names.size())), ", "),
                            whole->names.size() > kShownNames ? ", ..." : ""),
      .results = {{.value = expressions_.result(root.node)}},
      .operands = whole->operands,
      .request = ElementwiseCall(whole->request)};
  std::vector<ValueId> values;
  for (const CallOperand& operand : whole->operands)
    if (operand.value != ValueId::kAbsent) values.push_back(operand.value);
  if (!complete(std::move(call), values, members)) leave(root.node, "its call would compute what others read");
}

std::optional<KernelMatcher::ElementProgram> KernelMatcher::program(const ElementNode& root,
                                                                    const std::set<NodeId>& members,
                                                                    ElementClass computed) {
  ElementProgram program;
  program.computed = computed;
  program.root = root.node;
  const ValueId result = expressions_.result(root.node);
  program.extents = *extents(result);
  kernels::Elementwise& request = program.request;
  request.compute = computed == ElementClass::kFloat    ? kernels::Dtype::kFloat32
                    : computed == ElementClass::kDouble ? kernels::Dtype::kFloat64
                                                        : kernels::Dtype::kInt64;
  request.rank = static_cast<int>(program.extents.size());
  std::ranges::copy(program.extents, request.extents);
  kernel_dtype(*dtype(result), request.result_dtype);
  if (!add_steps(root, members, program)) return std::nullopt;
  if (kernels::kept_results(request) > kernels::kMaxKeptResults) return std::nullopt;
  return program;
}

bool KernelMatcher::add_steps(const ElementNode& element, const std::set<NodeId>& members, ElementProgram& program) {
  kernels::Elementwise& request = program.request;
  // Before its arguments are looked at: there may be any number of them.
  if (element.steps() > kernels::kMaxElementSteps - static_cast<std::size_t>(request.step_count)) return false;
  analysis_.meter().charge(16 + 32 * element.arguments.size());
  std::vector<int> sources;
  for (const ElementNode::Argument& argument : element.arguments) {
    const NodeId before = expressions_.producer(argument.value);
    if (before != NodeId::kNone && members.contains(before)) {
      if (!program.sources.contains(before)) {
        const ElementNode* const inner = element_node(before);
        if (inner == nullptr || !add_steps(*inner, members, program)) return false;
      }
      sources.push_back(program.sources.at(before));
    } else {
      const std::optional<int> operand = add_operand(argument.value, argument.number, program);
      if (!operand) return false;
      sources.push_back(*operand);
    }
  }
  kernels::ElementStep step{.op = element.op, .alpha = element.alpha, .beta = element.beta};
  const DType result = *dtype(expressions_.result(element.node));
  if (holds(program.computed, result)) {
    kernel_dtype(result, step.dtype);
  } else {
    step.dtype = request.compute;  // the last step: its result is converted
  }
  const auto arity = static_cast<std::size_t>(kernels::arity_of(element.op));
  // More than two operands of a function of two: what there is with the next one.
  for (std::size_t first = 0; first == 0 || first + 1 < sources.size(); first += std::max<std::size_t>(arity - 1, 1)) {
    if (request.step_count == kernels::kMaxElementSteps) return false;
    for (std::size_t i = 0; i < arity; ++i)
      step.operands[i] =
          first > 0 && i == 0 ? kernels::kMaxElementOperands + request.step_count - 1 : sources[first + i];
    request.steps[request.step_count++] = step;
    if (arity != 2) break;
  }
  program.sources[element.node] = kernels::kMaxElementOperands + request.step_count - 1;
  program.names.push_back(std::string(model_.text(model_.op(model_.node(element.node)).name)));
  return true;
}

/// A value that is the operand of several steps is one operand.
std::optional<int> KernelMatcher::add_operand(ValueId value, double number, ElementProgram& program) {
  kernels::Elementwise& request = program.request;
  bool is_number = value == ValueId::kAbsent;
  if (const std::optional<double> constant = exact_number(value)) {
    number = *constant;
    is_number = true;
  }
  kernels::ElementOperand operand;
  operand.is_number = is_number;
  operand.number = number;
  if (is_number) {
    // Of which dtype does not matter: it is converted from float64.
    for (int k = 0; k < request.operand_count; ++k)
      if (request.operands[k].is_number && request.operands[k].number == number &&
          std::signbit(request.operands[k].number) == std::signbit(number))
        return k;
  } else {
    for (std::size_t k = 0; k < program.operands.size(); ++k)
      if (program.operands[k].value == value) return static_cast<int>(k);
    if (!kernel_dtype(*dtype(value), operand.dtype)) return std::nullopt;
    const Extents shape = *extents(value);
    const std::size_t rank = program.extents.size();
    std::int64_t stride = 1;
    for (std::size_t back = 1; back <= shape.size(); ++back) {
      const std::int64_t extent = shape[shape.size() - back];
      if (extent != 1) {
        if (back > rank || extent != program.extents[rank - back]) return std::nullopt;
        operand.strides[rank - back] = stride;
      }
      stride *= extent;
    }
  }
  if (request.operand_count == kernels::kMaxElementOperands) return std::nullopt;
  program.operands.push_back({.value = is_number ? ValueId::kAbsent : value});
  request.operands[request.operand_count] = operand;
  return request.operand_count++;
}

}  // namespace tensorlint::runtime
