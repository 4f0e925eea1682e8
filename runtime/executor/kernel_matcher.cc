#include "runtime/executor/kernel_matcher.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/executor/kernel_registry.h"

namespace tensorlint::runtime {
namespace {

/// Reductions and changes of shape that are looked at after a loss.
constexpr int kMaxTail = 8;
/// Nodes that one call may stand for, and those beside it that may go unused.
constexpr std::size_t kMaxNodes = 512;

void sort_unique(std::vector<NodeId>& nodes) {
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

}  // namespace

bool kernel_dtype(DType dtype, kernels::Dtype& to) {
  switch (dtype) {
    case DType::kFloat64:
      return to = kernels::Dtype::kFloat64, true;
    case DType::kFloat32:
      return to = kernels::Dtype::kFloat32, true;
    case DType::kFloat16:
      return to = kernels::Dtype::kFloat16, true;
    case DType::kBFloat16:
      return to = kernels::Dtype::kBFloat16, true;
    case DType::kInt8:
      return to = kernels::Dtype::kInt8, true;
    case DType::kInt16:
      return to = kernels::Dtype::kInt16, true;
    case DType::kInt32:
      return to = kernels::Dtype::kInt32, true;
    case DType::kInt64:
      return to = kernels::Dtype::kInt64, true;
    case DType::kUint8:
      return to = kernels::Dtype::kUInt8, true;
    case DType::kBool:
      return to = kernels::Dtype::kBool, true;
    default:
      return false;
  }
}

KernelMatcher::KernelMatcher(const dataflow::Analysis& analysis, const Readers& readers, std::uint64_t shared_bytes,
                             const IdVector<NodeId, std::size_t>& places)
    : analysis_(analysis),
      model_(analysis.model()),
      readers_(readers),
      shared_bytes_(shared_bytes),
      places_(places),
      expressions_(analysis, losses::Expressions::Defaults::kReplaceable),
      taken_(model_.nodes.size()),
      registered_(model_.nodes.size()),
      is_described_(model_.nodes.size()) {}

std::map<NodeId, KernelCall> KernelMatcher::find() {
  find_constants();
  // A node that fails may lack operands.
  for (const NodeId node : model_.nodes.ids())
    registered_[node] = analysis_.is_visited(node) && !fails(node) && is_registered(node);
  // Losses first: what they are written out with has kernels of its own.
  for (const losses::LossSite& site : losses::find_losses(analysis_)) {
    if (site.anchor == NodeId::kNone || !analysis_.is_visited(site.anchor) || is_spent()) continue;
    if (site.evidence == losses::LossEvidence::kOperator) {
      if (registered_[site.anchor]) add_operator(site.anchor);
    } else {
      add_classes(site);
      add_pointwise(site);
    }
  }
  // Before the products and the softmax that it is written out with.
  const auto is_open = [&](NodeId node) { return !is_taken(node) && registered_[node] && !is_spent(); };
  for (const NodeId node : model_.nodes.ids())
    if (is_open(node) && expressions_.op(node) == Opcode::kSoftmax) add_written_attention(node);
  for (const NodeId node : model_.nodes.ids())
    if (is_open(node)) add_operator(node);
  // Products read what was transposed as it was.
  for (const NodeId node : model_.nodes.ids())
    if (is_open(node)) add_movement(node);
  add_elementwise();
  return std::move(calls_);
}

std::string_view KernelMatcher::reason(NodeId node) const {
  const auto found = reasons_.find(node);
  if (found != reasons_.end()) return found->second;
  return is_cut_off_ && registered_[node] ? "the model needs more work than its size allows" : std::string_view();
}

bool KernelMatcher::is_registered(NodeId node) {
  using Kind = placement::MissingKernel::Kind;
  const Operator& op = model_.op(model_.node(node));
  const placement::MissingKernel missing =
      placement::find_missing_kernel(analysis_, model_.node(node), kernel_registry());
  if (missing.kind == Kind::kDtypes)
    leave(node, fmt::format("there is no kernel for {}", missing.dtypes.to_text()));
  else if (missing.kind == Kind::kVersion)
    leave(node, fmt::format("there is no kernel for version {} of its operator", op.schema->since_version));
  else if (op.function != GraphId::kNone && model_.text(op.domain) != "tensorlint")
    leave(node, "a call of a function, whose nodes have places of their own");
  else if (missing.kind == Kind::kNothing)
    return true;
  else if (constants_.contains(node))
    leave(node, model_.operands(model_.node(node)).empty() ? "it is a constant" : "its operands are constants");
  else if (std::ranges::all_of(model_.results(model_.node(node)), [&](ValueId result) {
             return result == ValueId::kAbsent || analysis_.fact(result).content != ContentId::kNone;
           }))
    leave(node, "its elements are known before the run");
  return false;
}

void KernelMatcher::leave(NodeId node, std::string reason) {
  analysis_.meter().charge(16);
  if (registered_[node] && is_spent()) return;  // it may be for want of an operand that Expressions did not say
  reasons_[node] = std::move(reason);
}

bool KernelMatcher::is_spent() {
  is_cut_off_ = is_cut_off_ || analysis_.meter().is_spent();
  return is_cut_off_;
}

std::optional<DType> KernelMatcher::dtype(ValueId value) const {
  if (value == ValueId::kAbsent) return std::nullopt;
  const Fact& fact = analysis_.fact(value);
  return fact.kind == ValueKind::kTensor ? fact.dtypes.single() : std::nullopt;
}

std::optional<Extents> KernelMatcher::extents(ValueId value) const {
  if (value == ValueId::kAbsent) return std::nullopt;
  const Fact& fact = analysis_.fact(value);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked) return std::nullopt;
  Extents known;
  std::int64_t elements = 1;
  for (const Dim dim : analysis_.facts().dims_of(fact.shape)) {
    const auto extent = analysis_.facts().dims().as_constant(dim);
    if (!extent || *extent < 0 || known.size() == kMaxAxes) return std::nullopt;
    known.push_back(*extent);
    // More than memory has: the interpreter refuses it in its own words. 0 elsewhere does not make it less.
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(*extent, 1), &elements) || elements > INT64_MAX / 64)
      return std::nullopt;
  }
  return known;
}

bool KernelMatcher::knows_elements(ValueId value) const {
  if (value == ValueId::kAbsent) return true;
  const auto shape = extents(value);
  if (shape && count(*shape) == 0) return true;
  const FactStore& facts = analysis_.facts();
  const Content* const content = facts.content(analysis_.fact(value).content);
  if (content != nullptr) analysis_.meter().charge(content->size());
  return content != nullptr && std::ranges::all_of(content->integers, [&](Dim element) {
           return facts.dims().as_constant(element).has_value();
         });
}

bool KernelMatcher::needs_more_results(NodeId node) const {
  const auto results = model_.results(model_.node(node));
  return std::any_of(results.begin() + (results.empty() ? 0 : 1), results.end(),
                     [&](ValueId result) { return result != ValueId::kAbsent && is_read(result); });
}

std::int64_t KernelMatcher::count(std::span<const std::int64_t> extents) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) elements *= extent;
  return elements;
}

std::optional<kernels::Dtype> KernelMatcher::float_dtype(DType dtype) {
  kernels::Dtype found{};
  if (!kernel_dtype(dtype, found) || found > kernels::Dtype::kBFloat16) return std::nullopt;
  return found;
}

std::optional<std::int64_t> KernelMatcher::period(const Extents& part, const Extents& whole) {
  std::size_t first = 0;
  while (first < part.size() && part[first] == 1) ++first;
  const std::size_t axes = part.size() - first;
  if (axes > whole.size()) return std::nullopt;
  for (std::size_t i = 0; i < axes; ++i)
    if (part[first + i] != whole[whole.size() - axes + i]) return std::nullopt;
  return std::max<std::int64_t>(count(part), 1);
}

std::vector<KernelMatcher::Tail> KernelMatcher::tails(ValueId value) const {
  std::vector<Tail> found{{.result = value, .nodes = {}}};
  const std::optional<DType> kept = dtype(value);
  for (int i = 0; i < kMaxTail; ++i) {
    Tail tail = found.back();
    const auto readers = readers_.of(tail.result);
    if (readers.size() != 1 || readers_.is_output(tail.result)) break;
    const NodeId node = readers.front();
    const Opcode opcode = expressions_.op(node);
    if (expressions_.operand(node, 0) != tail.result || model_.results(model_.node(node)).size() != 1) break;
    if (opcode == Opcode::kReduceMean || opcode == Opcode::kReduceSum) {
      const auto axes = expressions_.axes_of(node);
      const auto before = extents(tail.result);
      if (!axes || axes->empty() || !before) break;
      tail.is_reduced = true;
      if (opcode == Opcode::kReduceMean)
        for (const std::size_t axis : *axes)
          if (__builtin_mul_overflow(tail.divisor, (*before)[axis], &tail.divisor)) return found;
    } else if (opcode == Opcode::kNeg) {
      tail.is_negated = !tail.is_negated;
    } else if (!ops::keeps_elements(opcode)) {
      break;
    }
    tail.result = expressions_.result(node);
    if (tail.result == ValueId::kAbsent || dtype(tail.result) != kept || !extents(tail.result)) break;
    tail.nodes.push_back(node);
    found.push_back(std::move(tail));
  }
  return found;
}

bool KernelMatcher::take_nodes(std::span<const ValueId> operands, const std::set<NodeId>& formula, KernelCall& call) {
  Meter& meter = analysis_.meter();
  meter.charge(4 + 8 * operands.size() + 8 * formula.size());
  for (const NodeId node : formula)
    if (is_taken(node) || refers_to_call(node) || is_elsewhere(node, *formula.begin())) return false;
  const std::set<ValueId> given(operands.begin(), operands.end());
  std::set<ValueId> made;
  for (const CallResult& result : call.results) made.insert(result.value);
  meter.charge(8 * made.size());
  const GraphId graph = model_.value(call.results[0].value).graph;

  // From the node that makes the results back to the operands: nodes of which all readers are among those that were
  // found before. Others are computed as they were, and so is what they read.
  Nodes found;
  std::set<NodeId> among;
  /// Where the search for a reader that is not among them goes on, since there will only be more of them.
  struct Search {
    std::size_t result = 0, reader = 0;
  };
  std::map<NodeId, Search> searches;
  const auto is_needed = [&](NodeId node) {
    const auto results = model_.results(model_.node(node));
    for (Search& at = searches[node]; at.result < results.size(); ++at.result, at.reader = 0) {
      meter.charge(8);
      const ValueId value = results[at.result];
      if (value == ValueId::kAbsent || made.contains(value)) continue;
      if (readers_.is_output(value) || given.contains(value)) return true;
      const auto readers = readers_.of(value);
      for (; at.reader < readers.size(); ++at.reader) {
        meter.charge(8);
        if (!among.contains(readers[at.reader])) return true;
      }
    }
    return false;
  };
  const auto visit = [&](NodeId node) {
    meter.charge(8);
    if (node == NodeId::kNone || is_taken(node) || among.contains(node) || found.size() == kMaxNodes) return;
    if (model_.node(node).graph != graph) return;  // which a body or function reads, and does not compute
    if (is_needed(node)) return;
    found.push_back(node);
    among.insert(node);
  };
  visit(call.node);
  for (std::size_t at = 0; at < found.size() && !meter.is_spent(); ++at) {
    const auto read = [&](ValueId value) {
      meter.charge(8);
      if (value != ValueId::kAbsent && !given.contains(value)) visit(expressions_.producer(value));
    };
    for (const ValueId operand : model_.operands(model_.node(found[at]))) read(operand);
    for (const ValueId captured : readers_.captured(found[at])) read(captured);
  }
  if (!std::ranges::all_of(formula, [&](NodeId node) { return among.contains(node); })) return false;
  call.nodes.assign(formula.begin(), formula.end());
  sort_unique(call.nodes);
  for (const NodeId node : among)
    if (!formula.contains(node)) call.unused.push_back(node);
  return true;
}

bool KernelMatcher::is_elsewhere(NodeId node, NodeId from) const {
  return !places_.empty() && places_[node] != places_[from];
}

bool KernelMatcher::fails(NodeId node) const {
  const auto& violations = analysis_.violations();
  auto violation = std::ranges::lower_bound(violations, node, {}, &dataflow::NodeViolation::node);
  for (; violation != violations.end() && violation->node == node; ++violation)
    if (violation->certainty == ops::Certainty::kMust && !ops::is_about_declared_shape(violation->kind())) return true;
  return false;
}

bool KernelMatcher::complete(KernelCall call, std::span<const ValueId> operands, const std::set<NodeId>& formula) {
  if (is_spent()) return false;
  call.node = expressions_.producer(call.results[0].value);
  for (CallResult& result : call.results) {
    const auto type = dtype(result.value);
    const auto shape = extents(result.value);
    if (!type || !shape) return false;
    result.dtype = *type;
    result.extents = *shape;
  }
  if (!take_nodes(operands, formula, call) || is_spent()) return false;
  for (const Nodes* const nodes : {&call.nodes, &call.unused})
    if (std::ranges::any_of(*nodes, [&](NodeId node) { return fails(node); })) return false;
  for (const Nodes* const nodes : {&call.nodes, &call.unused})
    for (const NodeId node : *nodes) {
      taken_[node] = true;
      element_nodes_.erase(node);
    }
  calls_.emplace(call.node, std::move(call));
  return true;
}

}  // namespace tensorlint::runtime
