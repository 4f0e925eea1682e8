#include "passes/contract/demanding_calls.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/id_vector.h"
#include "base/name_table.h"
#include "ir/ops/inference.h"
#include "ir/ops/shape_functions.h"
#include "passes/dataflow/attributes.h"

namespace tensorlint::contract {
namespace {

constexpr std::size_t kMaxResults = 64;

/// The fact with sizes instead of open extents.
FactId with_sizes(const Prober& prober, FactStore& facts, FactId id, const Sizes& sizes) {
  if (id == FactId::kAbsent || id == FactId::kTop) return id;
  Fact fact = facts.fact(id);
  const auto replaced = [&](std::span<const Dim> dims) {
    ops::Dims result = ops::copy_dims(dims);
    for (Dim& dim : result)
      if (const auto value = dim.is_unknown() ? std::nullopt : prober.evaluate(dim, sizes))
        dim = facts.dims().constant(*value);
    return result;
  };
  if (facts.is_ranked(fact.shape)) fact.shape = facts.intern_shape(replaced(facts.dims_of(fact.shape)));
  if (const Content* content = facts.content(fact.content); content != nullptr && !content->integers.empty())
    fact.content = facts.intern_content({replaced(content->integers), {}});
  return facts.intern(fact);
}

class DemandingCalls {
 public:
  explicit DemandingCalls(const dataflow::Analysis& analysis)
      : analysis_(analysis), model_(analysis.model()), facts_(analysis.facts()) {}

  std::vector<NodeId> find() {
    std::vector<NodeId> found;
    for (const NodeId id : ids_below<NodeId>(model_.nodes.size())) {
      const Node& node = model_.node(id);
      if (!drops_extent(node) || !analysis_.is_visited(id)) continue;
      if (model_.graph(node.graph).kind != GraphKind::kSubgraph && is_first(id)) found.push_back(id);
    }
    return found;
  }

 private:
  bool is_first(NodeId id) {
    const Node& node = model_.node(id);
    std::uint64_t key = table_hash(dataflow::hash_of(model_.attributes(node)), static_cast<std::uint64_t>(node.op));
    for (const ValueId operand : model_.operands(node))
      key = table_hash(
          key, operand == ValueId::kAbsent ? ~std::uint64_t{} : static_cast<std::uint64_t>(analysis_.fact_id(operand)));
    return seen_.insert(key).second;
  }

  bool drops_extent(const Node& node) {
    const ops::OpEntry* entry = analysis_.entry(node);
    // What they drop they ask nothing of.
    if (ops::has_trait(entry, ops::OpTrait::kReduction) || ops::has_trait(entry, ops::OpTrait::kShapeOf)) return false;
    // Which of very many results has an extent would take long to find.
    const std::span<const ValueId> results =
        model_.results(node).first(std::min<std::size_t>(node.result_count, kMaxResults));
    const ShapeId first = results.empty() ? ShapeId::kUnranked : shape_of(results.front());
    ++asking_;
    return std::ranges::any_of(model_.operands(node), [&](ValueId operand) {
      const ShapeId shape = shape_of(operand);
      return is_open(shape) && shape != first && !facts_.meter().is_spent() && is_asked_first(shape) &&
             !keeps(results, shape);
    });
  }

  ShapeId shape_of(ValueId value) const {
    if (value == ValueId::kAbsent) return ShapeId::kUnranked;
    const Fact& fact = analysis_.fact(value);
    return fact.kind == ValueKind::kTensor ? fact.shape : ShapeId::kUnranked;
  }

  /// Some extent is not a number.
  bool is_open(ShapeId shape) {
    if (shape == ShapeId::kUnranked) return false;
    const auto at = static_cast<std::size_t>(shape);
    if (at >= open_.size()) open_.resize(at + 1, Known::kNotYet);
    if (open_[at] == Known::kNotYet)
      open_[at] =
          std::ranges::any_of(facts_.dims_of(shape), [&](Dim dim) { return is_open(dim); }) ? Known::kYes : Known::kNo;
    return open_[at] == Known::kYes;
  }
  /// Of one node: its operands may be many, and of few shapes.
  bool is_asked_first(ShapeId shape) {
    const auto at = static_cast<std::size_t>(shape);
    if (at >= asked_.size()) asked_.resize(at + 1, 0);
    return std::exchange(asked_[at], asking_) != asking_;
  }
  bool is_open(Dim dim) const { return !dim.is_unknown() && !facts_.dims().as_constant(dim); }

  /// Each open extent of the shape is one of a result as often, or an element.
  bool keeps(std::span<const ValueId> results, ShapeId shape) const {
    const std::span<const Dim> dims = facts_.dims_of(shape);
    return std::ranges::all_of(dims, [&](Dim dim) {
      if (!is_open(dim) || facts_.meter().is_spent()) return true;
      facts_.meter().charge(1 + dims.size() / 4);
      const std::ptrdiff_t times = std::ranges::count(dims, dim);
      return std::ranges::any_of(results, [&](ValueId result) { return has(result, dim, times); });
    });
  }
  bool has(ValueId result, Dim dim, std::ptrdiff_t times) const {
    if (result == ValueId::kAbsent) return false;
    const Fact& fact = analysis_.fact(result);
    const std::span<const Dim> dims = facts_.dims_of(fact.shape);
    const Content* content = facts_.content(fact.content);
    facts_.meter().charge(2 + (dims.size() + (content != nullptr ? content->integers.size() : 0)) / 4);
    if (std::ranges::count(dims, dim) >= times) return true;
    return content != nullptr && std::ranges::find(content->integers, dim) != content->integers.end();
  }

  enum class Known : std::uint8_t { kNotYet, kNo, kYes };

  const dataflow::Analysis& analysis_;
  const Model& model_;
  const FactStore& facts_;
  std::vector<Known> open_;           // by shape
  std::vector<std::uint32_t> asked_;  // by shape: for which node it was asked last
  std::uint32_t asking_ = 0;
  std::unordered_set<std::uint64_t> seen_;  // hashes of calls
};

}  // namespace

std::vector<NodeId> find_demanding_calls(const dataflow::Analysis& analysis) { return DemandingCalls(analysis).find(); }

bool fails_alone(const Prober& prober, NodeId id, const Sizes& sizes) {
  const dataflow::Analysis& analysis = prober.analysis();
  const Model& model = analysis.model();
  FactStore& facts = analysis.facts();
  const dataflow::Analysis::NodeApplication found(analysis, id);
  std::vector<FactId> operands(found->operands.begin(), found->operands.end());
  // A call may have thousands of operands, and few facts.
  std::unordered_map<FactId, FactId> sized;
  for (FactId& operand : operands) {
    const auto [at, is_new] = sized.try_emplace(operand, FactId::kTop);
    if (is_new) at->second = with_sizes(prober, facts, operand, sizes);
    operand = at->second;
  }
  Application call = *found;
  call.operands = operands;
  call.results = {};
  ops::InferenceResult result;
  ops::infer(call, analysis.entry(model.node(id)), result);
  return std::ranges::any_of(result.violations, [&](const ops::Violation& violation) {
    return violation.certainty == ops::Certainty::kMust && !prober.fails_anyway(id, *violation.constraint);
  });
}

}  // namespace tensorlint::contract
