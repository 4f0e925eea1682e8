#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "ir/facts/equalities.h"
#include "ir/facts/hash.h"
#include "ir/graph/name_table.h"
#include "ir/ops/shape_functions.h"
#include "passes/dataflow/analysis.h"

namespace tensorlint {
namespace {

constexpr std::size_t kMaxFloatContent = 64;      // Resize scales, Clip bounds, quantisation constants
constexpr std::size_t kMaxRangeScan = 1 << 16;    // integer initializers whose hull is taken: labels, token ids
constexpr int kMaxNesting = 192;                  // of bodies and calls: the solver's own recursion
constexpr std::int64_t kMaxExactTrips = 16;       // constant trip counts up to this are followed iteration by iteration
constexpr int kJoinsBeforeWidening = 3;
constexpr std::uint8_t kVisitsBeforeKept = 4;     // of one Loop's or Scan's body: few loops stand in others
constexpr std::size_t kMaxKeptVisits = 64;        // of one body
constexpr std::size_t kRoomAtLeast = 1 << 20, kRoomPerNode = 8;  // values of kept visits: 8 bytes each
constexpr std::int64_t kContentsAtLeast = 1 << 20;  // elements of contents and shapes that are computed with; then only small contents are
constexpr std::int64_t kElementsPerDim = 16;      // what a new dimension expression costs, in elements of contents
constexpr std::int64_t kSmallContent = 16;        // shapes, axes, pads
constexpr std::size_t kSharpVisits = 8;           // of one body: later visits take any floating value, so that they repeat
constexpr int kMaxTrials = 8;                     // Ifs of which both branches are followed on their own
constexpr std::size_t kMaxTrialNodes = 4096;      // after such an If
constexpr std::size_t kMaxSummaries = 64;         // of one function
constexpr std::size_t kSharpSummaries = 32;       // of one function: later calls take any floating value, so that they repeat

const Constraint kDeclared{"declared_type", ConstraintKind::kDeclaredType, "what is declared agrees with what is inferred"};
const Constraint kDeclaredShape{"declared_shape", ConstraintKind::kDeclaredShape, "a declared shape agrees with what is inferred"};
const Constraint kBranchesAgree{"branches_agree", ConstraintKind::kBranchTypes, "both branches give results of one type"};
const Constraint kCarriedKeepsType{"carried_keeps_type", ConstraintKind::kLoopCarriedType, "a carried value keeps its type"};
const Constraint kBodyArity{"body_arity", ConstraintKind::kOperandCount, "a body takes and gives as many values as its node hands it"};
const Constraint kCallArity{"call_arity", ConstraintKind::kOperandCount, "a call has as many operands as the function has inputs"};

struct AbstractValue {
  FactId fact = FactId::kTop;
  Taint taint;
  friend bool operator==(const AbstractValue&, const AbstractValue&) = default;
};

/// False for what exporters write for an extent that they do not know: "?" (Paddle), "-1", "None". One such word stands for
/// many extents.
bool is_extent_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80; };
  return name != "None" && std::any_of(name.begin(), name.end(), is_letter);
}

/// True when every bit of two attribute lists agrees; lists with tensors, graphs or types are never equal.
bool same_attributes(std::span<const Attribute> a, std::span<const Attribute> b) {
  const auto plain = [](const Attribute& x) {
    return x.tensor == nullptr && x.tensors.empty() && x.sparse == nullptr && x.graph == GraphId::kNone && x.graphs.empty() &&
           x.type == nullptr && x.types.empty();
  };
  const auto equal_lists = [](auto x, auto y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Attribute& x, const Attribute& y) {
    return plain(x) && plain(y) && x.name == y.name && x.kind == y.kind && x.reference == y.reference && x.i == y.i &&
           std::memcmp(&x.f, &y.f, sizeof x.f) == 0 && x.s == y.s && equal_lists(x.ints, y.ints) &&
           equal_lists(x.floats, y.floats) && equal_lists(x.strings, y.strings);
  });
}

std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = text.size();
  for (const char c : text) hash = mix(hash, static_cast<unsigned char>(c));
  return hash;
}

std::uint64_t hash_of(std::span<const Attribute> attributes) {
  std::uint64_t hash = attributes.size();
  for (const Attribute& x : attributes) {
    hash = mix(hash, hash_text(x.name) + static_cast<std::uint64_t>(x.kind));
    hash = mix(hash, static_cast<std::uint64_t>(x.i) ^ hash_text(x.s));
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x.f, sizeof bits);
    hash = mix(hash, bits);
    for (const std::int64_t i : x.ints) hash = mix(hash, static_cast<std::uint64_t>(i));
  }
  return hash;
}

}  // namespace

/// Iterates the operators' inference over graphs, bodies and functions. One Solver, one analysis.
class Solver {
 public:
  static Analysis solve(const Model& model, const AnalysisOptions& options) {
    Analysis analysis;
    analysis.model_ = &model;
    analysis.facts_ = std::make_unique<FactStore>();
    analysis.value_facts_.assign(model.values.size(), FactId::kTop);
    analysis.taints_.resize(model.values.size());
    analysis.visited_.resize(model.nodes.size());
    Solver(model, options, analysis).run();
    return analysis;
  }

 private:
  Solver(const Model& model, const AnalysisOptions& options, Analysis& out)
      : model_(model), options_(options), out_(out), facts_(*out.facts_), current_(model.values.size()), orders_(model.graphs.size()),
        has_order_(model.graphs.size()), has_initializers_(model.graphs.size()), active_(model.graphs.size()), summaries_(model.graphs.size()),
        bodies_(bodies_by_graph(model)), body_visits_(model.graphs.size()),
        budget_(std::max<std::uint64_t>(kVisitsAtLeast, kVisitsPerNode * model.nodes.size())) {}

  void run() {
    for (const Operator& op : model_.operators)
      out_.entries_.push_back(find_entry(model_.text(op.domain), model_.text(op.name), op.opset));
    if (model_.graphs.empty()) return;
    for (const StructureFault& fault : model_.faults)
      if (fault.kind == StructureFault::Kind::kDuplicateDefinition) defined_twice_.insert(fault.value);
    const Graph& main = model_.graph(GraphId::kMain);
    for (const ValueId input : main.inputs) current_[index(input)] = seed_input(input);
    visit_graph(GraphId::kMain);
    settle(GraphId::kMain);
    std::stable_sort(out_.failures_.begin(), out_.failures_.end(), [](const NodeFailure& a, const NodeFailure& b) { return a.node < b.node; });
    for (std::size_t g = 0; g < model_.graphs.size(); ++g) {
      const NodeOrder& order = this->order(static_cast<GraphId>(g));
      out_.early_uses_.insert(out_.early_uses_.end(), order.early_uses.begin(), order.early_uses.end());
    }
  }

  static std::size_t index(ValueId value) { return static_cast<std::size_t>(value); }
  static std::size_t index(GraphId graph) { return static_cast<std::size_t>(graph); }

  const NodeOrder& order(GraphId graph) {
    if (!has_order_[index(graph)]) {
      orders_[index(graph)] = order_nodes(model_, graph, bodies_);
      has_order_[index(graph)] = true;
    }
    return orders_[index(graph)];
  }

  AbstractValue read(ValueId value) const {
    if (value == ValueId::kAbsent) return {FactId::kAbsent, {}};
    return current_[index(value)];
  }

  // ---- seeds

  FactId fact_of(const Tensor& tensor) {
    Fact fact;
    fact.kind = ValueKind::kTensor;
    if (is_known_dtype(tensor.dtype_code)) fact.dtypes = static_cast<DType>(tensor.dtype_code);
    Dims dims;
    for (const std::int64_t extent : tensor.dims) dims.push_back(extent < 0 ? Dim() : facts_.dims().constant(extent));
    fact.shape = facts_.intern_shape(dims);
    fact.range = range_of(fact.dtypes);
    if (const auto integers = tensor.integers(kMaxRangeScan)) {
      if (integers->size() <= kMaxContent) {
        Content content;
        for (const std::int64_t element : *integers) content.integers.push_back(facts_.dims().constant(element));
        if (!content.integers.empty()) fact.range = range_of(facts_.dims(), content.integers);
        fact.content = facts_.intern_content(std::move(content));
      } else {
        const auto [lo, hi] = std::minmax_element(integers->begin(), integers->end());
        const Dim ends[] = {facts_.dims().constant(*lo), facts_.dims().constant(*hi)};
        fact.range = range_of(facts_.dims(), ends);
      }
    } else if (auto floats = tensor.floats(kMaxFloatContent); floats && !floats->empty()) {
      Range range{HUGE_VAL, -HUGE_VAL, false};
      for (const double element : *floats) {
        range.nan = range.nan || std::isnan(element);
        range.lo = std::isnan(element) ? range.lo : std::min(range.lo, element);
        range.hi = std::isnan(element) ? range.hi : std::max(range.hi, element);
      }
      if (range.lo <= range.hi) fact.range = range;
      fact.content = facts_.intern_content({{}, std::move(*floats)});
    }
    return facts_.intern(fact);
  }

  /// Fact of a declared type. `site` names the dims that have neither number nor name.
  FactId fact_of(const TypeDecl& type, std::uint64_t site) {
    Fact fact;
    switch (type.kind) {
      case TypeKind::kNone:
      case TypeKind::kOpaque: return FactId::kTop;
      case TypeKind::kTensor:
      case TypeKind::kSparseTensor:
        fact.kind = type.kind == TypeKind::kTensor ? ValueKind::kTensor : ValueKind::kSparseTensor;
        if (is_known_dtype(type.element_code)) fact.dtypes = static_cast<DType>(type.element_code);
        fact.range = range_of(fact.dtypes);
        if (type.ranked) fact.shape = facts_.intern_shape(dims_of(type, site));
        break;
      case TypeKind::kMap:
        fact.kind = ValueKind::kMap;
        if (is_known_dtype(type.element_code)) fact.key = static_cast<DType>(type.element_code);
        break;
      case TypeKind::kSequence: fact.kind = ValueKind::kSequence; break;
      case TypeKind::kOptional: fact.kind = ValueKind::kOptional; break;
    }
    // Elements of one sequence may differ in what the declaration leaves open: no shared symbols (site 0).
    if (type.element != nullptr) fact.element = fact_of(*type.element, 0);
    return facts_.intern(fact);
  }

  Dims dims_of(const TypeDecl& type, std::uint64_t site) {
    Dims dims;
    for (std::uint32_t axis = 0; axis < type.dims.size(); ++axis) {
      const DimDecl& dim = type.dims[axis];
      if (dim.has_extent && dim.extent >= 0) {
        dims.push_back(facts_.dims().constant(dim.extent));
      } else if (!dim.has_extent && is_extent_name(model_.text(dim.name)) && site != 0) {
        dims.push_back(facts_.dims().symbol(model_.text(dim.name)));
      } else {
        dims.push_back(site == 0 ? Dim() : facts_.dims().fresh(site, axis, Unknown::kNotTracked));
      }
    }
    return dims;
  }

  AbstractValue seed_input(ValueId id) {
    const Value& value = model_.value(id);
    const std::uint64_t site = mix(0x1090, static_cast<std::uint64_t>(id)) | 1;
    FactId fact = value.type != nullptr ? fact_of(*value.type, site) : FactId::kTop;
    if (value.initializer != nullptr) {
      // Until IR version 3 every initializer had to be an input too; from 4 on an input's initializer is a default.
      const FactId constant = fact_of(*value.initializer);
      if (model_.ir_version < 4) {
        fact = constant;
      } else if (fact == FactId::kTop) {
        Fact widest = facts_.fact(constant);
        widest.content = ContentId::kNone;
        widest.range = range_of(widest.dtypes);
        fact = facts_.intern(widest);
      }
    }
    const auto declared = options_.values.find(model_.text(value.name));
    if (declared != options_.values.end()) fact = refine(fact, declared->second, site);
    return {fact, {}};
  }

  FactId refine(FactId base, const InputDeclaration& declared, std::uint64_t site) {
    Fact fact = facts_.fact(base);
    if (declared.dtypes) {
      fact.kind = ValueKind::kTensor;
      fact.dtypes = *declared.dtypes;
      fact.range = range_of(fact.dtypes);
      fact.content = ContentId::kNone;
    }
    if (declared.has_shape) {
      fact.kind = ValueKind::kTensor;
      fact.content = ContentId::kNone;
      Dims dims;
      for (std::uint32_t axis = 0; axis < declared.dims.size(); ++axis) {
        const std::string& text = declared.dims[axis];
        std::int64_t extent = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
        if (error == std::errc() && end == text.data() + text.size() && extent >= 0) {
          dims.push_back(facts_.dims().constant(extent));
        } else {
          dims.push_back(text == "?" ? facts_.dims().fresh(site, axis, Unknown::kNotTracked) : facts_.dims().symbol(text));
        }
      }
      fact.shape = facts_.intern_shape(dims);
    }
    if (declared.range) fact.range = *declared.range;
    return facts_.intern(fact);
  }

  // ---- graphs

  /// Infers all nodes of a graph whose inputs are in current_. `site` distinguishes visits of one body.
  void visit_graph(GraphId id) {
    active_[index(id)] = true;
    const Graph& graph = model_.graph(id);
    const Equalities outer_equalities = equalities_;
    const std::uint64_t outer_state = equality_state_;
    // Nothing changes them: the facts of the first visit hold in all. What a trial notes is taken back.
    const bool has_initializers = has_initializers_[index(id)];
    if (!trial_) has_initializers_[index(id)] = true;
    for (const ValueId initializer : has_initializers ? std::span<const ValueId>() : std::span(graph.initializers)) {
      const Value& value = model_.value(initializer);
      current_[index(initializer)] = {value.initializer != nullptr ? fact_of(*value.initializer) : fact_of_sparse(value), {}};
    }
    const NodeOrder& nodes = order(id);
    for (const NodeId node : nodes.cyclic) {
      out_.reasons_.try_emplace(node, "stands on a cycle, or depends on one");
      for (const ValueId result : model_.results(model_.node(node)))
        if (result != ValueId::kAbsent) current_[index(result)] = {FactId::kTop, everything_tainted()};
    }
    for (std::size_t i = 0; i < nodes.nodes.size() && !doomed_; ++i) {
      visit_node(nodes.nodes[i]);
      if (const auto clash = std::exchange(rank_clash_, std::nullopt)) choose_branch(*clash, std::span(nodes.nodes).subspan(i));
    }
    // What holds after a body ran need not hold where it did not.
    equalities_ = outer_equalities;
    equality_state_ = outer_state;
    active_[index(id)] = false;
  }

  // ---- branches whose results differ in rank

  /// What an If would give if only one of its branches were ever taken.
  struct RankClash {
    std::vector<AbstractValue> then_results, else_results;
  };

  /// Where one branch's rank makes an operator fail further down in the same graph, every run that gets to the end took the
  /// other: exported chains of `if x.dim() == 2` are like that. `nodes`: the If and all that come after it. Both are tried,
  /// with nothing recorded; where just one gets through, the If has its results from here on.
  void choose_branch(const RankClash& clash, std::span<const NodeId> nodes) {
    const std::uint64_t allowance = budget_ / 16;
    if (trial_ || trials_ >= kMaxTrials || nodes.size() > kMaxTrialNodes || allowance < nodes.size()) return;
    ++trials_;
    const std::vector<AbstractValue> values = current_;
    const Equalities equalities = equalities_;
    const std::uint64_t state = equality_state_;
    const int conditional = std::exchange(conditional_, 0);
    const auto gets_through = [&](const std::vector<AbstractValue>& results) {
      const std::uint64_t rest = std::exchange(budget_, allowance) - allowance;
      trial_ = true;
      set_results(nodes.front(), results);
      for (std::size_t i = 1; i < nodes.size() && !doomed_ && budget_ > 0; ++i) {
        visit_node(nodes[i]);
        rank_clash_.reset();
      }
      trial_ = false;
      budget_ += rest;
      current_ = values;
      equalities_ = equalities;
      equality_state_ = state;
      return !std::exchange(doomed_, false);
    };
    const bool then_works = gets_through(clash.then_results), else_works = gets_through(clash.else_results);
    conditional_ = conditional;
    if (then_works != else_works) set_results(nodes.front(), then_works ? clash.then_results : clash.else_results);
  }

  bool ranks_clash(const AbstractValue& a, const AbstractValue& b) const {
    const Fact &x = facts_.fact(a.fact), &y = facts_.fact(b.fact);
    return x.kind == ValueKind::kTensor && y.kind == ValueKind::kTensor && a.taint == Taint() && b.taint == Taint() && facts_.is_ranked(x.shape) &&
           facts_.is_ranked(y.shape) && facts_.dims_of(x.shape).size() != facts_.dims_of(y.shape).size();
  }

  FactId fact_of_sparse(const Value& value) {
    Fact fact;
    fact.kind = ValueKind::kSparseTensor;
    const SparseTensor* sparse = value.sparse_initializer;
    if (sparse == nullptr || sparse->values == nullptr) return FactId::kTop;
    if (is_known_dtype(sparse->values->dtype_code)) fact.dtypes = static_cast<DType>(sparse->values->dtype_code);
    Dims dims;
    for (const std::int64_t extent : sparse->dims) dims.push_back(extent < 0 ? Dim() : facts_.dims().constant(extent));
    fact.shape = facts_.intern_shape(dims);
    // A constant of the model is used like a dense tensor (onnx.GraphProto.sparse_initializer).
    fact.kind = ValueKind::kTensor;
    return facts_.intern(fact);
  }

  static Taint everything_tainted() {
    Taint taint(Aspect::kDtype);
    taint |= Aspect::kShape;
    taint |= Aspect::kValue;
    return taint;
  }

  /// Moves the facts of the last visit into the result, joined with those of earlier visits.
  void settle(GraphId id) {
    if (trial_) return;
    const bool first = settled_.empty() || !settled_[index(id)];
    if (settled_.empty()) settled_.resize(model_.graphs.size());
    settled_[index(id)] = true;
    const Graph& graph = model_.graph(id);
    const auto move = [&](ValueId value) {
      if (value == ValueId::kAbsent) return;
      const AbstractValue& from = current_[index(value)];
      FactId& to = out_.value_facts_[index(value)];
      to = first ? from.fact : facts_.join(to, from.fact);
      out_.taints_[index(value)] |= from.taint;
    };
    for (const ValueId value : graph.inputs) move(value);
    for (const ValueId value : graph.initializers) move(value);
    for (std::uint32_t n = graph.first_node; n < graph.first_node + graph.node_count; ++n)
      for (const ValueId value : model_.results(model_.nodes[n])) move(value);
  }

  // ---- nodes

  void visit_node(NodeId id) {
    const Node& node = model_.node(id);
    const Operator& op = model_.op(node);
    if (!trial_) out_.visited_[static_cast<std::size_t>(id)] = true;
    Frame& frame = this->frame();
    frame.operands.clear();
    frame.taints.clear();
    Taint any;
    for (const ValueId value : model_.operands(node)) {
      const AbstractValue operand = read_operand(value);
      const FactId fact = equalities_.empty() ? operand.fact : canonical(operand.fact);
      frame.operands.push_back(contents_left_ > 0 ? fact : without_large_content(fact));
      frame.taints.push_back(operand.taint);
      any |= operand.taint;
    }
    const std::uint64_t cost = depth_ == 0 ? 1 : 1 + weight_of(node) / 16;  // what is visited once costs no more than its reading
    if (budget_ < cost) {
      budget_ = 0;
      give_up(id, "the model needs more inferences than the budget allows");
      return;
    }
    budget_ -= cost;

    Application call{.domain = model_.text(op.domain),
                     .name = model_.text(op.name),
                     .opset = op.opset,
                     .schema = op.schema,
                     .attributes = attributes_of(node, frame),
                     .operands = frame.operands,
                     .operand_taints = frame.taints,
                     .results = {},
                     .result_count = node.result_count,
                     .facts = &facts_,
                     .site = mix(static_cast<std::uint64_t>(id) + 1, visit_serial_) | 1};
    if (op.function != GraphId::kNone) {
      call_function(id, op.function, call);
      check_declarations(id);
      return;
    }

    const bool memoisable = any == Taint() && op.schema != nullptr;
    std::uint64_t key = 0;
    if (memoisable) {
      key = mix(hash_of(call.attributes), static_cast<std::uint64_t>(node.op) << 32 | node.result_count);
      for (const FactId operand : frame.operands) key = mix(key, static_cast<std::uint64_t>(operand));
      if (const Memo* known = find_memo(key, node, call)) {
        const std::span<const ValueId> results = model_.results(node);
        for (std::size_t r = 0; r < results.size(); ++r)
          if (results[r] != ValueId::kAbsent) current_[index(results[r])] = {memo_facts_[known->first_result + r], {}};
        if (has_declarations(node)) check_declarations(id);
        return;
      }
    }

    const std::uint32_t mark = facts_.dims().mark();
    const OpEntry* entry = out_.entries_[static_cast<std::size_t>(node.op)];
    const Signature* signature = op.schema == nullptr && op.opset > 0 ? signature_of(call) : nullptr;
    if (signature != nullptr) {
      infer_signature(*signature, call, frame.result);
    } else {
      infer(call, entry, frame.result);
    }
    std::int64_t size = 0;
    for (const FactId operand : frame.operands) size += size_of(operand);
    for (const FactId result : frame.result.results) size += size_of(result);
    const std::uint32_t new_dims = facts_.dims().mark() - mark;
    contents_left_ -= size + kElementsPerDim * static_cast<std::int64_t>(new_dims);
    if (depth_ != 0) charge(node.result_count / 2 + static_cast<std::uint64_t>(size) / 4 + 2 * std::uint64_t{new_dims});
    for (Failure& failure : frame.result.failures) record(id, std::move(failure));
    const bool clean = frame.result.failures.empty();
    if (clean && any == Taint()) {
      for (const auto& [a, b] : frame.result.equalities)
        if (equalities_.learn(facts_.dims(), a, b)) equality_state_ = ++equality_states_;
    }
    const std::span<const ValueId> results = model_.results(node);
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (results[r] == ValueId::kAbsent) continue;
      current_[index(results[r])] = {frame.result.results[r], frame.result.taints[r]};
    }
    if (signature != nullptr) {
      out_.declared_.insert(id);
    } else if (op.schema == nullptr) {
      out_.reasons_.try_emplace(id, "the operator is not known");
    } else if (entry == nullptr && !is_control_flow(call.name)) {
      out_.reasons_.try_emplace(id, "no inference is written for the operator");
    }
    if (call.domain.empty() && is_control_flow(call.name)) {
      visit_control_flow(id, call);
    } else if (memoisable && clean && frame.result.repeatable && call.attributes.data() == model_.attributes(node).data()) {
      remember(key, id, frame);
    }
    if (has_declarations(node)) check_declarations(id);
  }

  void charge(std::uint64_t cost) { budget_ -= std::min(budget_, cost); }

  /// What a node costs in each visit by its own size.
  std::uint64_t weight_of(const Node& node) const {
    std::uint64_t weight = std::uint64_t{node.operand_count} + node.result_count;
    for (const Attribute& attribute : model_.attributes(node)) {
      weight += attribute.ints.size() + attribute.floats.size() + attribute.s.size() / 16;
      if (attribute.tensor != nullptr) weight += attribute.tensor->inline_bytes() / 16;
    }
    for (const ValueId result : model_.results(node))
      if (result != ValueId::kAbsent && model_.value(result).type != nullptr) weight += model_.value(result).type->dims.size();
    return weight;
  }

  std::int64_t content_size(FactId id) const {
    if (id == FactId::kAbsent || id == FactId::kTop) return 0;
    const Content* content = facts_.content(facts_.fact(id).content);
    return content == nullptr ? 0 : static_cast<std::int64_t>(content->size());
  }

  std::int64_t size_of(FactId id) const {
    if (id == FactId::kAbsent || id == FactId::kTop) return 0;
    const ShapeId shape = facts_.fact(id).shape;
    return content_size(id) + (shape == ShapeId::kUnranked ? 0 : static_cast<std::int64_t>(facts_.dims_of(shape).size()));
  }

  FactId without_large_content(FactId id) {
    if (content_size(id) <= kSmallContent) return id;
    Fact fact = facts_.fact(id);
    fact.content = ContentId::kNone;
    return facts_.intern(fact);
  }

  const Signature* signature_of(const Application& call) const {
    if (options_.signatures == nullptr) return nullptr;
    const auto found = options_.signatures->find(std::pair(std::string(call.domain), std::string(call.name)));
    return found == options_.signatures->end() ? nullptr : &found->second;
  }

  AbstractValue read_operand(ValueId value) const {
    if (value == ValueId::kAbsent) return {FactId::kAbsent, {}};
    if (model_.value(value).origin == ValueOrigin::kUndefined) return {FactId::kTop, everything_tainted()};
    // Which of its definitions is meant cannot be known.
    if (!defined_twice_.empty() && defined_twice_.contains(value)) return {current_[index(value)].fact, everything_tainted()};
    return current_[index(value)];
  }

  static bool is_control_flow(std::string_view name) { return name == "If" || name == "Loop" || name == "Scan" || name == "SequenceMap"; }

  /// The fact with its extents and elements in terms of the symbols that are left by the equalities known here.
  FactId canonical(FactId id) {
    if (id == FactId::kAbsent || id == FactId::kTop) return id;
    const std::uint64_t key = equality_state_ << 32 | static_cast<std::uint64_t>(id);
    if (const auto found = canonical_.find(key); found != canonical_.end()) return found->second;
    Fact fact = facts_.fact(id);
    const auto rewritten = [this](std::span<const Dim> dims) {
      Dims result = copy_dims(dims);
      for (Dim& dim : result) dim = equalities_.apply(facts_.dims(), dim);
      return result;
    };
    if (fact.shape != ShapeId::kUnranked) fact.shape = facts_.intern_shape(rewritten(facts_.dims_of(fact.shape)));
    if (const Content* content = facts_.content(fact.content); content != nullptr && !content->integers.empty())
      fact.content = facts_.intern_content({rewritten(content->integers), {}});
    if (fact.element != FactId::kTop) fact.element = canonical(fact.element);
    const FactId result = facts_.intern(fact);
    canonical_.emplace(key, result);
    return result;
  }

  void give_up(NodeId id, std::string_view reason) {
    if (!trial_) out_.reasons_.try_emplace(id, std::string(reason));
    for (const ValueId result : model_.results(model_.node(id)))
      if (result != ValueId::kAbsent) current_[index(result)] = {FactId::kTop, {}};
  }

  void record(NodeId id, Failure failure) {
    if (trial_) {
      // Ranks are known or not; a failure for want of equal extents may be meant for all but the smallest.
      const bool rank = failure.constraint->label.find("rank") != std::string_view::npos;
      doomed_ = doomed_ || (rank && failure.certainty == Certainty::kMust && conditional_ == 0);
      return;
    }
    // The same node fails once for all its visits; the first one has the sharpest facts.
    if (!recorded_.emplace(id, failure.constraint).second) return;
    out_.failures_.push_back({id, std::move(failure), calls_, iteration_});
  }

  /// Attributes as they are in this call: inside a function references become the caller's values.
  struct Frame {
    std::vector<FactId> operands;
    std::vector<Taint> taints;
    std::vector<Attribute> attributes;
    InferenceResult result;
  };

  Frame& frame() {
    while (frames_.size() <= static_cast<std::size_t>(depth_)) frames_.emplace_back();
    return frames_[static_cast<std::size_t>(depth_)];
  }

  std::span<const Attribute> attributes_of(const Node& node, Frame& frame) {
    const std::span<const Attribute> given = model_.attributes(node);
    if (std::none_of(given.begin(), given.end(), [](const Attribute& x) { return !x.reference.empty(); })) return given;
    frame.attributes.clear();
    for (const Attribute& attribute : given) {
      if (attribute.reference.empty()) {
        frame.attributes.push_back(attribute);
        continue;
      }
      const auto found = std::find_if(caller_attributes_.begin(), caller_attributes_.end(), [&](const Attribute& x) { return x.name == attribute.reference; });
      if (found == caller_attributes_.end()) continue;  // the caller left it out: so does the node
      Attribute value = *found;
      value.name = attribute.name;
      frame.attributes.push_back(value);
    }
    return frame.attributes;
  }

  // ---- memo of single nodes

  struct Memo {
    NodeId node;
    std::uint32_t first_operand, first_result;
  };

  // Nodes that share a key stand under the keys that follow it.
  const Memo* find_memo(std::uint64_t key, const Node& node, const Application& call) const {
    for (; const std::uint32_t number = memo_index_.find(key); ++key) {
      const Memo& memo = memos_[number - 1];
      const Node& known = model_.node(memo.node);
      if (known.op != node.op || known.result_count != node.result_count || known.operand_count != node.operand_count) continue;
      if (!std::equal(call.operands.begin(), call.operands.end(), memo_facts_.begin() + memo.first_operand)) continue;
      if (same_attributes(call.attributes, model_.attributes(known))) return &memo;
    }
    return nullptr;
  }

  void remember(std::uint64_t key, NodeId id, const Frame& frame) {
    Memo memo{id, static_cast<std::uint32_t>(memo_facts_.size()), 0};
    memo_facts_.insert(memo_facts_.end(), frame.operands.begin(), frame.operands.end());
    memo.first_result = static_cast<std::uint32_t>(memo_facts_.size());
    memo_facts_.insert(memo_facts_.end(), frame.result.results.begin(), frame.result.results.end());
    memos_.push_back(memo);
    while (memo_index_.find(key) != 0) ++key;
    memo_index_[key] = static_cast<std::uint32_t>(memos_.size());
  }

  // ---- declarations of results

  bool has_declarations(const Node& node) const {
    for (const ValueId result : model_.results(node))
      if (result != ValueId::kAbsent && model_.value(result).type != nullptr) return true;
    return false;
  }

  void check_declarations(NodeId id) {
    const std::span<const ValueId> results = model_.results(model_.node(id));
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (results[r] == ValueId::kAbsent) continue;
      const Value& value = model_.value(results[r]);
      if (value.type == nullptr || value.type->kind == TypeKind::kNone) continue;
      check_declaration(id, results[r], static_cast<int>(r), *value.type);
    }
  }

  /// Compares a declaration with what was inferred, and takes from it what is not known better.
  void check_declaration(NodeId id, ValueId value, int result, const TypeDecl& type) {
    AbstractValue& current = current_[index(value)];
    const FactId declared_id = fact_of(type, mix(0x0dec, static_cast<std::uint64_t>(value)) | 1);
    const Fact declared = facts_.fact(declared_id);
    Fact fact = facts_.fact(current.fact);
    if (declared.kind == ValueKind::kUnknown) return;
    if (fact.kind == ValueKind::kUnknown) {
      fact = declared;
      fact.shape = ShapeId::kUnranked;  // taken below
    }
    const auto contradiction = [&](std::string message, const Constraint& constraint = kDeclared) {
      if (current.taint == Taint()) record(id, {&constraint, Certainty::kMust, {}, std::move(message), {}});
    };
    const auto other_shape = [&] {
      contradiction(fmt::format("{{r{}}} is declared with shape {} but has shape {}", result, facts_.shape_text(declared.shape),
                                facts_.shape_text(fact.shape)), kDeclaredShape);
    };
    if (fact.kind != declared.kind) {
      contradiction(fmt::format("{{r{}}} is declared as {} but is a {}", result, facts_.to_text(declared_id), to_text(fact.kind)));
      return;
    }
    if (fact.kind != ValueKind::kTensor && fact.kind != ValueKind::kSparseTensor) return;
    if (!fact.dtypes.intersects(declared.dtypes)) {
      contradiction(fmt::format("{{r{}}} is declared as {} but is {}", result, declared.dtypes.to_text(), fact.dtypes.to_text()));
      return;
    }
    fact.dtypes = fact.dtypes & declared.dtypes;
    if (declared.shape != ShapeId::kUnranked) {
      const auto wanted = facts_.dims_of(declared.shape);
      // A name in a body or function means another extent in each visit: there only numbers are taken.
      const bool main = model_.value(value).graph == GraphId::kMain;
      if (fact.shape == ShapeId::kUnranked) {
        Dims dims = copy_dims(wanted);
        for (Dim& dim : dims)
          if (!main && !facts_.dims().as_constant(dim)) dim = Dim();
        fact.shape = facts_.intern_shape(dims);
      } else {
        const auto have = facts_.dims_of(fact.shape);
        if (have.size() != wanted.size()) {
          other_shape();
          return;
        }
        Dims merged = copy_dims(have);
        for (std::size_t axis = 0; axis < merged.size(); ++axis) {
          const auto x = facts_.dims().as_constant(have[axis]), y = facts_.dims().as_constant(wanted[axis]);
          if (x && y && *x != *y) {
            other_shape();
            return;
          }
          if (have[axis].is_unknown() && (main || y)) merged[axis] = wanted[axis];
        }
        fact.shape = facts_.intern_shape(merged);
      }
    }
    current.fact = facts_.intern(fact);
  }

  // ---- functions

  struct Summary {
    std::vector<AbstractValue> operands, results;
    NodeId call;
  };

  void call_function(NodeId id, GraphId function, const Application& call) {
    const Graph& graph = model_.graph(function);
    if (active_[index(function)]) {
      give_up(id, "the function calls itself");
      return;
    }
    if (depth_ + 1 >= kMaxNesting) {
      give_up(id, "bodies and calls are nested too deep");
      return;
    }
    if (call.operands.size() > graph.inputs.size())
      record(id, {&kCallArity, Certainty::kMust, {}, fmt::format("`{}` takes {} operand{}, {} given", call.name,
          graph.inputs.size(), graph.inputs.size() == 1 ? "" : "s", call.operands.size()), {}});
    if (call.result_count > graph.outputs.size())
      record(id, {&kCallArity, Certainty::kMust, {}, fmt::format("`{}` gives {} result{}, {} asked for", call.name,
          graph.outputs.size(), graph.outputs.size() == 1 ? "" : "s", call.result_count), {}});

    std::vector<AbstractValue> operands(graph.inputs.size(), AbstractValue{FactId::kAbsent, {}});
    for (std::size_t i = 0; i < std::min(operands.size(), call.operands.size()); ++i) operands[i] = {call.operands[i], call.operand_taints[i]};
    const std::span<const ValueId> results = model_.results(model_.node(id));
    std::vector<Attribute> attributes(call.attributes.begin(), call.attributes.end());
    for (const Attribute& fallback : graph.attribute_defaults)
      if (call.attribute(fallback.name) == nullptr) attributes.push_back(fallback);

    // Functions that call each other with ranges which differ a little in each call would be followed 2^n times.
    if (summaries_[index(function)].size() >= kSharpSummaries)
      for (AbstractValue& operand : operands) operand.fact = any_floating_value(operand.fact);

    for (const Summary& summary : summaries_[index(function)]) {
      if (summary.operands != operands || !same_attributes(call.attributes, model_.attributes(model_.node(summary.call)))) continue;
      for (std::size_t r = 0; r < std::min(results.size(), summary.results.size()); ++r)
        if (results[r] != ValueId::kAbsent) current_[index(results[r])] = summary.results[r];
      return;
    }

    for (std::size_t i = 0; i < operands.size(); ++i) {
      // An absent operand is absent inside too; its value is never read as a tensor.
      current_[index(graph.inputs[i])] = operands[i];
    }
    const std::uint32_t mark = facts_.dims().mark();
    const std::uint64_t outer_serial = std::exchange(visit_serial_, ++serials_), outer_call = std::exchange(call_serial_, serials_);
    std::vector<Attribute> outer_attributes = std::exchange(caller_attributes_, std::move(attributes));
    calls_.push_back(id);
    ++depth_;
    visit_graph(function);
    settle(function);
    --depth_;
    calls_.pop_back();
    caller_attributes_ = std::move(outer_attributes);
    visit_serial_ = outer_serial;
    call_serial_ = outer_call;

    Summary summary{operands, {}, id};
    for (const ValueId output : graph.outputs) summary.results.push_back(read(output));
    for (std::size_t r = 0; r < std::min(results.size(), summary.results.size()); ++r)
      if (results[r] != ValueId::kAbsent) current_[index(results[r])] = summary.results[r];
    const bool own_symbols = facts_.dims().mark() != mark && has_symbols_since(summary.results, mark);
    const bool own_attributes = model_.attributes(model_.node(id)).data() == call.attributes.data();
    if (!trial_ && !own_symbols && own_attributes && summaries_[index(function)].size() < kMaxSummaries) summaries_[index(function)].push_back(std::move(summary));
  }

  FactId any_floating_value(FactId id) {
    if (id == FactId::kAbsent || id == FactId::kTop) return id;
    Fact fact = facts_.fact(id);
    if (fact.kind != ValueKind::kTensor || !fact.dtypes.proves(DTypeSet::floats())) return id;
    fact.range = range_of(fact.dtypes);
    fact.content = ContentId::kNone;
    return facts_.intern(fact);
  }

  bool is_younger(Dim dim, std::uint32_t mark) const {
    if (dim.is_unknown() || facts_.dims().as_constant(dim)) return false;
    const std::vector<Dim> symbols = facts_.dims().symbols(dim);
    return std::any_of(symbols.begin(), symbols.end(), [&](Dim symbol) { return symbol.id() >= mark; });
  }

  bool has_symbols_since(std::span<const AbstractValue> values, std::uint32_t mark) {
    return std::any_of(values.begin(), values.end(), [&](const AbstractValue& value) { return forget_since(value.fact, mark) != value.fact; });
  }

  /// The fact without symbols made since the mark: these stand for other values in the next iteration.
  FactId forget_since(FactId id, std::uint32_t mark) {
    if (id == FactId::kAbsent || id == FactId::kTop) return id;
    Fact fact = facts_.fact(id);
    if (fact.shape != ShapeId::kUnranked) {
      Dims dims = copy_dims(facts_.dims_of(fact.shape));
      for (Dim& dim : dims)
        if (is_younger(dim, mark)) dim = Dim(Unknown::kLoopCarried);
      fact.shape = facts_.intern_shape(dims);
    }
    if (const Content* content = facts_.content(fact.content); content != nullptr && !content->integers.empty()) {
      Content kept = *content;
      for (Dim& dim : kept.integers)
        if (is_younger(dim, mark)) dim = Dim(Unknown::kLoopCarried);
      fact.content = facts_.intern_content(std::move(kept));
    }
    if (fact.element != FactId::kTop) fact.element = forget_since(fact.element, mark);
    return facts_.intern(fact);
  }

  // ---- control flow

  void visit_control_flow(NodeId id, const Application& call) {
    if (depth_ + 1 >= kMaxNesting) {
      give_up(id, "bodies and calls are nested too deep");
      return;
    }
    ++depth_;
    std::vector<AbstractValue> values;
    for (std::size_t i = 0; i < call.operands.size(); ++i) values.push_back({call.operands[i], call.operand_taints[i]});
    if (call.name == "If") visit_if(id, call, values);
    if (call.name == "Loop") visit_loop(id, call, values);
    if (call.name == "Scan") visit_scan(id, call, values);
    if (call.name == "SequenceMap") visit_sequence_map(id, call, values);
    --depth_;
  }

  GraphId body_of(const Application& call, std::string_view attribute) const {
    const Attribute* found = call.attribute(attribute);
    return found != nullptr && found->kind == AttributeKind::kGraph ? found->graph : GraphId::kNone;
  }

  /// A body that declares an optional may be handed what the optional holds (backend test loop16_seq_none).
  AbstractValue as_input(ValueId input, AbstractValue given) {
    const TypeDecl* type = model_.value(input).type;
    const ValueKind kind = facts_.fact(given.fact).kind;
    if (type == nullptr || type->kind != TypeKind::kOptional || (kind != ValueKind::kTensor && kind != ValueKind::kSequence)) return given;
    Fact fact;
    fact.kind = ValueKind::kOptional;
    fact.element = given.fact;
    return {facts_.intern(fact), given.taint};
  }

  /// One visit of a body with these inputs; the outputs' values. Inputs past the given ones are top.
  std::vector<AbstractValue> visit_body(GraphId body, std::span<const AbstractValue> inputs) {
    const Graph& graph = model_.graph(body);
    charge((graph.inputs.size() + graph.outputs.size()) / 16);
    const std::uint64_t outer_serial = std::exchange(visit_serial_, ++serials_);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i)
      current_[index(graph.inputs[i])] = i < inputs.size() ? as_input(graph.inputs[i], inputs[i]) : AbstractValue{};
    visit_graph(body);
    visit_serial_ = outer_serial;
    std::vector<AbstractValue> outputs;
    for (const ValueId output : graph.outputs) outputs.push_back(output == ValueId::kAbsent ? AbstractValue{} : read_operand(output));
    return outputs;
  }

  /// What a body did when it was handed these inputs and met these values of the graphs around it.
  struct BodyVisit {
    std::vector<AbstractValue> given;  ///< inputs, then captures
    std::vector<AbstractValue> outputs;
  };
  struct BodyVisits {
    std::vector<ValueId> captures;
    bool is_too_large = false;
    std::uint64_t call = 0;  ///< of the function around it: another call may have other attributes
    std::vector<BodyVisit> known;
  };

  /// visit_body and settle, unless the same was done before: loops within loops would be followed 2^depth times.
  /// Visits that made symbols are not kept, since these stand for other extents each time; the rest repeats word for word.
  std::vector<AbstractValue> follow_body(GraphId body, std::span<const AbstractValue> inputs) {
    const auto follow = [&](std::span<const AbstractValue> values) {
      std::vector<AbstractValue> outputs = visit_body(body, values);
      settle(body);
      return outputs;
    };
    if (trial_) return follow(inputs);
    std::uint8_t& visits = body_visits_[index(body)];
    if (visits < kVisitsBeforeKept) {
      ++visits;
      return follow(inputs);
    }
    const auto [place, is_new] = kept_visits_.try_emplace(body);
    BodyVisits& kept = place->second;
    if (is_new) {
      kept.captures = captures_of(body);
      kept.is_too_large = !take_room(kept.captures.size());
      if (kept.is_too_large) kept.captures = {};
    }
    if (kept.is_too_large) return follow(inputs);
    if (std::exchange(kept.call, call_serial_) != call_serial_) {
      for (const BodyVisit& visit : kept.known) room_ += visit.given.size() + visit.outputs.size();
      kept.known.clear();
    }
    std::vector<AbstractValue> given(inputs.begin(), inputs.end());
    for (const ValueId capture : kept.captures) given.push_back(read_operand(capture));
    charge(given.size() / 16);
    // In terms of the symbols that are left, what a body does no longer depends on the equalities known around it.
    if (!equalities_.empty())
      for (AbstractValue& value : given) value.fact = canonical(value.fact);
    // States of loops around it multiply, mostly in their ranges: later visits take any floating value, so that they repeat.
    const bool is_sharp = kept.known.size() < kSharpVisits;
    if (!is_sharp)
      for (AbstractValue& value : given) value.fact = any_floating_value(value.fact);
    for (const BodyVisit& visit : kept.known)
      if (visit.given == given) return visit.outputs;
    const std::uint32_t mark = facts_.dims().mark();
    std::vector<FactId> before;
    const auto exchange_captures = [&](auto replacement) {
      for (std::size_t i = 0; !is_sharp && i < kept.captures.size(); ++i) replacement(current_[index(kept.captures[i])].fact, i);
    };
    exchange_captures([&](FactId& fact, std::size_t i) { before.push_back(std::exchange(fact, given[inputs.size() + i].fact)); });
    std::vector<AbstractValue> outputs = follow(std::span(given).first(inputs.size()));
    exchange_captures([&](FactId& fact, std::size_t i) { fact = before[i]; });
    if (facts_.dims().mark() == mark && budget_ != 0 && kept.known.size() < kMaxKeptVisits && take_room(given.size() + outputs.size()))
      kept.known.push_back({std::move(given), outputs});
    return outputs;
  }

  bool take_room(std::size_t values) {
    if (values > room_) return false;
    room_ -= values;
    return true;
  }

  /// Values of other graphs that a body, or what is nested in it, reads.
  std::vector<ValueId> captures_of(GraphId body) const {
    std::vector<GraphId> graphs{body};
    for (std::size_t g = 0; g < graphs.size(); ++g) graphs.insert(graphs.end(), bodies_[index(graphs[g])].begin(), bodies_[index(graphs[g])].end());
    std::vector<GraphId> inside = graphs;
    std::sort(inside.begin(), inside.end());
    std::vector<ValueId> captures;
    const auto add = [&](ValueId value) {
      if (value != ValueId::kAbsent && !std::binary_search(inside.begin(), inside.end(), model_.value(value).graph)) captures.push_back(value);
    };
    for (const GraphId id : graphs) {
      const Graph& graph = model_.graph(id);
      for (std::uint32_t n = graph.first_node; n < graph.first_node + graph.node_count; ++n)
        for (const ValueId operand : model_.operands(model_.nodes[n])) add(operand);
      for (const ValueId output : graph.outputs) add(output);
    }
    std::sort(captures.begin(), captures.end());
    captures.erase(std::unique(captures.begin(), captures.end()), captures.end());
    return captures;
  }

  void set_results(NodeId id, std::span<const AbstractValue> values) {
    const std::span<const ValueId> results = model_.results(model_.node(id));
    for (std::size_t r = 0; r < results.size(); ++r)
      if (results[r] != ValueId::kAbsent) current_[index(results[r])] = r < values.size() ? values[r] : AbstractValue{};
  }

  AbstractValue join(const AbstractValue& a, const AbstractValue& b) {
    AbstractValue result{facts_.join(a.fact, b.fact), a.taint};
    result.taint |= b.taint;
    return result;
  }

  bool types_clash(FactId a_id, FactId b_id) const {
    const Fact &a = facts_.fact(a_id), &b = facts_.fact(b_id);
    if (a.kind == ValueKind::kUnknown || b.kind == ValueKind::kUnknown) return false;
    // An optional and what it holds may take turns (backend test loop16_seq_none).
    if (a.kind == ValueKind::kOptional && b.kind != ValueKind::kOptional) return types_clash(a.element, b_id);
    if (b.kind == ValueKind::kOptional && a.kind != ValueKind::kOptional) return types_clash(a_id, b.element);
    if (a.kind != b.kind) return true;
    const bool tensor = a.kind == ValueKind::kTensor || a.kind == ValueKind::kSparseTensor;
    return tensor ? !a.dtypes.intersects(b.dtypes) : a.element != FactId::kTop && b.element != FactId::kTop && types_clash(a.element, b.element);
  }

  std::optional<std::int64_t> single_constant(FactId id) const {
    if (id == FactId::kAbsent) return std::nullopt;
    const Content* content = facts_.content(facts_.fact(id).content);
    if (content == nullptr || content->integers.size() != 1) return std::nullopt;
    return facts_.dims().as_constant(content->integers.front());
  }

  void visit_if(NodeId id, const Application& call, std::span<const AbstractValue> operands) {
    const auto condition = operands.empty() ? std::nullopt : single_constant(operands[0].fact);
    std::vector<AbstractValue> merged;
    std::optional<RankClash> clash;
    bool first = true;
    for (const std::string_view name : {"then_branch", "else_branch"}) {
      const GraphId body = body_of(call, name);
      if (body == GraphId::kNone) return;
      const std::size_t gives = model_.graph(body).outputs.size();
      if (gives != call.result_count)
        record(id, {&kBodyArity, Certainty::kMust, {}, fmt::format("`{}` gives {} value{}, If has {} result{}", name,
            gives, gives == 1 ? "" : "s", call.result_count, call.result_count == 1 ? "" : "s"), {}});
      if (condition && (*condition != 0) != (name == "then_branch")) continue;
      conditional_ += condition ? 0 : 1;
      const std::vector<AbstractValue> outputs = visit_body(body, {});
      conditional_ -= condition ? 0 : 1;
      settle(body);
      if (first) {
        merged = outputs;
        first = false;
        continue;
      }
      const auto clashes = [this](const AbstractValue& a, const AbstractValue& b) { return ranks_clash(a, b); };
      if (merged.size() == outputs.size() && !std::ranges::equal(merged, outputs, std::not_fn(clashes))) clash = RankClash{merged, outputs};
      for (std::size_t r = 0; r < std::min(merged.size(), outputs.size()); ++r) {
        const Taint tainted = [&] { Taint both = merged[r].taint; both |= outputs[r].taint; return both; }();
        if (types_clash(merged[r].fact, outputs[r].fact)) {
          if (!tainted.has(Aspect::kDtype))
            record(id, {&kBranchesAgree, Certainty::kMust, {},
                fmt::format("{{r{}}} is {} from `then_branch` and {} from `else_branch`", r,
                facts_.to_text(merged[r].fact), facts_.to_text(outputs[r].fact)), {}});
          merged[r].taint |= Aspect::kDtype;
        }
        merged[r] = join(merged[r], outputs[r]);
      }
      if (outputs.size() < merged.size()) merged.resize(outputs.size());
    }
    if (condition) check_other_branch(id, body_of(call, *condition != 0 ? "else_branch" : "then_branch"), *condition != 0, merged);
    set_results(id, merged);
    rank_clash_ = std::move(clash);
  }

  /// A branch that a constant condition leaves out is not looked at; what it declares still has to be of the same type.
  void check_other_branch(NodeId id, GraphId left_out, bool taken_is_then, std::vector<AbstractValue>& taken) {
    const std::vector<ValueId>& outputs = model_.graph(left_out).outputs;
    for (std::size_t r = 0; r < std::min(taken.size(), outputs.size()); ++r) {
      if (outputs[r] == ValueId::kAbsent || model_.value(outputs[r]).type == nullptr || taken[r].taint.has(Aspect::kDtype)) continue;
      const FactId other = fact_of(*model_.value(outputs[r]).type, 0);
      const Fact &a = facts_.fact(taken[r].fact), &b = facts_.fact(other);
      if (a.kind != ValueKind::kTensor || b.kind != ValueKind::kTensor || !types_clash(taken[r].fact, other)) continue;
      const std::string given = facts_.to_text(taken[r].fact), declared = facts_.to_text(other);
      record(id, {&kBranchesAgree, Certainty::kMust, {},
          fmt::format("{{r{}}} is {} from `then_branch` and {} from `else_branch`", r, taken_is_then ? given : declared, taken_is_then ? declared : given), {}});
      taken[r].taint |= Aspect::kDtype;
    }
  }

  FactId scalar_fact(DType dtype, Range range) {
    Fact fact;
    fact.kind = ValueKind::kTensor;
    fact.dtypes = dtype;
    fact.shape = facts_.intern_shape({});
    fact.range = range;
    return facts_.intern(fact);
  }

  /// What a Loop or Scan body does with its carried values, iteration by iteration where that is cheap, else joined.
  struct Iteration {
    GraphId body = GraphId::kNone;
    std::size_t lead = 0;                    ///< inputs before the carried ones (Loop: number and condition)
    std::size_t lead_out = 0;                ///< outputs before the carried ones (Loop: condition)
    std::vector<AbstractValue> carried{};    ///< initial values
    std::vector<AbstractValue> trailing{};   ///< inputs after the carried ones, the same in each iteration
    std::optional<std::int64_t> trips{};     ///< exact number of iterations, where it is constant
    bool has_number = false;                 ///< input 0 is the number of the iteration
    bool may_stop = false;                   ///< the body's first output decides whether to go on
  };
  struct Outcome {
    std::vector<AbstractValue> carried;  ///< after the last iteration
    std::vector<AbstractValue> stacked;  ///< per iteration: join over all
    std::optional<std::int64_t> trips;
    bool visited = false;
  };

  Outcome iterate(NodeId id, const Iteration& loop) {
    Outcome outcome;
    outcome.carried = loop.carried;
    outcome.trips = loop.trips;
    if (loop.trips == 0) return outcome;
    const std::uint32_t mark = facts_.dims().mark();
    const std::int64_t outer_iteration = iteration_;
    const std::size_t count = loop.carried.size();
    std::vector<AbstractValue> header = loop.carried, after;
    bool exact = loop.trips && *loop.trips <= kMaxExactTrips;
    const bool uses_number = loop.has_number && !out_.users(model_.graph(loop.body).inputs[0]).empty();
    int joins = 0;
    for (std::int64_t k = 0;; ++k) {
      std::vector<AbstractValue> inputs(loop.lead);
      if (loop.has_number) {
        const double last = loop.trips ? static_cast<double>(*loop.trips - 1) : HUGE_VAL;
        inputs[0].fact = exact ? exact_number(DType::kInt64, k) : scalar_fact(DType::kInt64, {0, last, false});
        inputs[1].fact = exact_number(DType::kBool, 1);  // the body runs only while the condition holds
      }
      inputs.insert(inputs.end(), header.begin(), header.end());
      inputs.insert(inputs.end(), loop.trailing.begin(), loop.trailing.end());
      iteration_ = k + 1;
      ++conditional_;  // it may run no iteration, or not this one
      const std::vector<AbstractValue> outputs = follow_body(loop.body, inputs);
      --conditional_;
      outcome.visited = true;

      after.assign(count, AbstractValue{});
      for (std::size_t i = 0; i < count && loop.lead_out + i < outputs.size(); ++i) after[i] = outputs[loop.lead_out + i];
      report_carried(id, loop, after);
      for (std::size_t i = loop.lead_out + count; i < outputs.size(); ++i) {
        const std::size_t s = i - loop.lead_out - count;
        if (s >= outcome.stacked.size()) {
          outcome.stacked.push_back(outputs[i]);
        } else {
          outcome.stacked[s] = join(outcome.stacked[s], outputs[i]);
        }
      }
      // An early end makes the number of iterations unknown, so what was followed exactly is only a prefix.
      if (loop.may_stop && (outputs.empty() || single_constant(outputs[0].fact) != 1)) {
        exact = false;
        outcome.trips = std::nullopt;
      }
      if (exact) {
        if (k + 1 == *loop.trips || (after == header && !uses_number)) {
          if (loop.has_number && k + 1 < *loop.trips && !trial_) {
            // The iterations left out differ in their number alone, which nothing reads.
            const ValueId number = model_.graph(loop.body).inputs[0];
            const FactId all = scalar_fact(DType::kInt64, {0, static_cast<double>(*loop.trips - 1), false});
            if (number != ValueId::kAbsent) out_.value_facts_[index(number)] = facts_.join(out_.value_facts_[index(number)], all);
          }
          outcome.carried = after;
          break;
        }
        header = after;
        continue;
      }
      std::vector<AbstractValue> next(count);
      for (std::size_t i = 0; i < count; ++i) {
        next[i] = join(loop.carried[i], {forget_since(join(header[i], after[i]).fact, mark), after[i].taint});
        next[i].taint |= header[i].taint;
        if (joins >= kJoinsBeforeWidening) next[i].fact = widen(header[i].fact, next[i].fact);
      }
      ++joins;
      if (next == header) {
        const bool may_be_none = !(loop.trips && *loop.trips > 0);
        outcome.carried = after;
        for (std::size_t i = 0; i < count; ++i) outcome.carried[i].fact = may_be_none || loop.trips != 1 ? forget_since(join(header[i], after[i]).fact, mark) : after[i].fact;
        break;
      }
      header = std::move(next);
      if (budget_ == 0 || joins > kJoinsBeforeWidening + 8) {
        outcome.carried.assign(count, AbstractValue{});
        break;
      }
    }
    iteration_ = outer_iteration;
    return outcome;
  }

  FactId exact_number(DType dtype, std::int64_t k) {
    Fact fact = facts_.fact(scalar_fact(dtype, {static_cast<double>(k), static_cast<double>(k), false}));
    fact.content = facts_.intern_content({{facts_.dims().constant(k)}, {}});
    return facts_.intern(fact);
  }

  /// What changes its type goes on tainted: the following iterations and the node's results repeat the same mistake.
  void report_carried(NodeId id, const Iteration& loop, std::span<AbstractValue> after) {
    for (std::size_t i = 0; i < after.size(); ++i) {
      Taint tainted = loop.carried[i].taint;
      tainted |= after[i].taint;
      if (tainted.has(Aspect::kDtype) || !types_clash(loop.carried[i].fact, after[i].fact)) continue;
      record(id, {&kCarriedKeepsType, Certainty::kMust, {},
          fmt::format("{{r{}}} enters the first iteration as {} and leaves it as {}", i,
          facts_.to_text(loop.carried[i].fact), facts_.to_text(after[i].fact)), {}});
      after[i].taint |= Aspect::kDtype;
      after[i].taint |= Aspect::kShape;
    }
  }

  /// Gives up what still changes after several joins, so that the iteration ends.
  FactId widen(FactId before_id, FactId after_id) {
    if (before_id == after_id) return after_id;
    const Fact before = facts_.fact(before_id);
    Fact fact = facts_.fact(after_id);
    if (fact.kind == ValueKind::kUnknown) return after_id;
    if (!(before.range == fact.range)) fact.range = range_of(fact.dtypes);
    if (before.content != fact.content) fact.content = ContentId::kNone;
    if (before.element != fact.element) fact.element = FactId::kTop;
    return facts_.intern(fact);
  }

  /// [trips] + shape, the results that a Loop or Scan stacks up.
  AbstractValue stack(const AbstractValue& element, Dim trips, std::int64_t axis) {
    Fact fact = facts_.fact(element.fact);
    fact.content = ContentId::kNone;
    if (fact.kind != ValueKind::kTensor) return {FactId::kTop, element.taint};
    if (fact.shape != ShapeId::kUnranked) {
      Dims dims = copy_dims(facts_.dims_of(fact.shape));
      const auto rank = static_cast<std::int64_t>(dims.size()) + 1;
      const std::int64_t at = axis < 0 ? axis + rank : axis;
      if (at < 0 || at >= rank) return {FactId::kTop, element.taint};
      dims.insert(dims.begin() + at, trips);
      fact.shape = facts_.intern_shape(dims);
    }
    return {facts_.intern(fact), element.taint};
  }

  bool body_takes(NodeId id, GraphId body, std::size_t inputs, std::size_t outputs_at_least) {
    const Graph& graph = model_.graph(body);
    if (graph.inputs.size() != inputs) {
      record(id, {&kBodyArity, Certainty::kMust, {}, fmt::format("the body takes {} value{}, it is handed {}",
          graph.inputs.size(), graph.inputs.size() == 1 ? "" : "s", inputs), {}});
      return false;
    }
    if (graph.outputs.size() < outputs_at_least) {
      record(id, {&kBodyArity, Certainty::kMust, {}, fmt::format("the body gives {} value{}, at least {} are needed",
          graph.outputs.size(), graph.outputs.size() == 1 ? "" : "s", outputs_at_least), {}});
      return false;
    }
    return true;
  }

  void visit_loop(NodeId id, const Application& call, std::span<const AbstractValue> operands) {
    const GraphId body = body_of(call, "body");
    if (body == GraphId::kNone || operands.size() < 2) return;
    Iteration loop{.body = body, .lead = 2, .lead_out = 1, .has_number = true};
    loop.carried.assign(operands.begin() + 2, operands.end());
    const std::size_t count = loop.carried.size();
    if (!body_takes(id, body, count + 2, count + 1)) return;
    const bool has_limit = call.has_operand(0);
    const auto limit = single_constant(operands[0].fact);
    const auto condition = single_constant(operands[1].fact);
    if (has_limit && limit) loop.trips = std::max<std::int64_t>(*limit, 0);
    if (call.has_operand(1)) {
      if (condition == 0) loop.trips = 0;
      if (!condition) loop.trips = loop.trips == 0 ? loop.trips : std::nullopt;
    }
    loop.may_stop = true;
    Outcome outcome = iterate(id, loop);
    std::vector<AbstractValue> results = outcome.carried;
    if (!outcome.visited) {
      const Graph& graph = model_.graph(body);
      for (std::size_t i = count + 1; i < graph.outputs.size(); ++i) results.push_back({stacked_without_visit(graph.outputs[i]), {}});
    } else {
      const Dim trips = outcome.trips ? facts_.dims().constant(*outcome.trips) : facts_.dims().fresh(call.site, 0x10000, Unknown::kDataDependent);
      for (const AbstractValue& element : outcome.stacked) results.push_back(stack(element, trips, 0));
    }
    set_results(id, results);
  }

  /// A loop that never runs stacks nothing: only the declared element type is known.
  FactId stacked_without_visit(ValueId output) {
    const TypeDecl* type = output == ValueId::kAbsent ? nullptr : model_.value(output).type;
    if (type == nullptr || type->kind != TypeKind::kTensor) return FactId::kTop;
    Fact fact = facts_.fact(fact_of(*type, 0));
    if (fact.shape != ShapeId::kUnranked) {
      Dims dims = copy_dims(facts_.dims_of(fact.shape));
      dims.insert(dims.begin(), facts_.dims().constant(0));
      fact.shape = facts_.intern_shape(dims);
    }
    return facts_.intern(fact);
  }

  /// One element of a batch, whose extent comes first; it is kept in `batch` where it is not known yet.
  FactId without_batch(FactId id, Dim& batch) {
    Fact fact = facts_.fact(id);
    fact.content = ContentId::kNone;
    if (fact.kind == ValueKind::kTensor && fact.shape != ShapeId::kUnranked) {
      const auto dims = facts_.dims_of(fact.shape);
      if (!dims.empty() && batch.is_unknown()) batch = dims[0];
      fact.shape = dims.empty() ? ShapeId::kUnranked : facts_.intern_shape(dims.subspan(1));
    }
    return facts_.intern(fact);
  }

  void visit_scan(NodeId id, const Application& call, std::span<const AbstractValue> operands) {
    const GraphId body = body_of(call, "body");
    const Attribute* inputs_attribute = call.attribute("num_scan_inputs");
    if (body == GraphId::kNone || inputs_attribute == nullptr) return;
    const bool batched = call.opset < 9;  // opset 8: operand 0 is sequence_lens, every value has a batch axis first
    const std::size_t first = batched ? 1 : 0;
    const std::int64_t scanned = inputs_attribute->i;
    if (scanned < 1 || operands.size() < first || static_cast<std::uint64_t>(scanned) > operands.size() - first) return;
    const std::size_t state_count = operands.size() - first - static_cast<std::size_t>(scanned);
    if (!body_takes(id, body, operands.size() - first, state_count)) return;
    const bool cut_short = batched && call.has_operand(0);  // batch elements may end earlier; what is missing is 0
    const auto list = [&](std::string_view name) {
      const Attribute* attribute = call.attribute(name);
      return attribute != nullptr && attribute->kind == AttributeKind::kInts ? attribute->ints : std::span<const std::int64_t>();
    };
    Iteration loop{.body = body};
    loop.carried.assign(operands.begin() + static_cast<std::ptrdiff_t>(first), operands.begin() + static_cast<std::ptrdiff_t>(first + state_count));
    Dim trips, batch;
    if (batched) {
      for (AbstractValue& state : loop.carried) state.fact = without_batch(state.fact, batch);
    }
    for (std::size_t s = 0; s < static_cast<std::size_t>(scanned); ++s) {
      AbstractValue operand = operands[first + state_count + s];
      if (batched) operand.fact = without_batch(operand.fact, batch);
      Fact fact = facts_.fact(operand.fact);
      fact.content = ContentId::kNone;
      if (fact.kind == ValueKind::kTensor && fact.shape != ShapeId::kUnranked) {
        Dims dims = copy_dims(facts_.dims_of(fact.shape));
        const auto axes = list("scan_input_axes");
        std::int64_t axis = s < axes.size() ? axes[s] : 0;
        const auto rank = static_cast<std::int64_t>(dims.size());
        if (axis >= -rank && axis < rank) {
          axis += axis < 0 ? rank : 0;
          if (trips.is_unknown()) trips = dims[static_cast<std::size_t>(axis)];
          dims.erase(dims.begin() + axis);
          fact.shape = facts_.intern_shape(dims);
        } else {
          fact.shape = ShapeId::kUnranked;
        }
      }
      loop.trailing.push_back({facts_.intern(fact), operand.taint});
    }
    if (!cut_short) loop.trips = facts_.dims().as_constant(trips);
    const Outcome outcome = iterate(id, loop);
    std::vector<AbstractValue> results = outcome.carried;
    const auto axes = list("scan_output_axes");
    if (outcome.visited) {
      for (std::size_t s = 0; s < outcome.stacked.size(); ++s) results.push_back(stack(outcome.stacked[s], trips, s < axes.size() ? axes[s] : 0));
    }
    if (batched) {
      for (AbstractValue& result : results) {
        result = stack(result, batch, 0);
        Fact fact = facts_.fact(result.fact);
        if (cut_short) fact.range = range_of(fact.dtypes);
        result.fact = facts_.intern(fact);
      }
    }
    set_results(id, results);
  }

  void visit_sequence_map(NodeId id, const Application& call, std::span<const AbstractValue> operands) {
    const GraphId body = body_of(call, "body");
    if (body == GraphId::kNone || operands.empty()) return;
    if (!body_takes(id, body, operands.size(), call.result_count)) return;
    std::vector<AbstractValue> inputs;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Fact& fact = facts_.fact(operands[i].fact);
      inputs.push_back(fact.kind == ValueKind::kSequence ? AbstractValue{fact.element, operands[i].taint} : operands[i]);
    }
    const std::uint32_t mark = facts_.dims().mark();
    ++conditional_;
    const std::vector<AbstractValue> outputs = visit_body(body, inputs);
    --conditional_;
    settle(body);
    std::vector<AbstractValue> results;
    for (const AbstractValue& output : outputs) {
      Fact fact;
      fact.kind = ValueKind::kSequence;
      fact.element = forget_since(output.fact, mark);
      fact.shape = facts_.fact(operands[0].fact).shape;  // as many elements as the first sequence
      results.push_back({facts_.intern(fact), output.taint});
    }
    set_results(id, results);
  }

  const Model& model_;
  const AnalysisOptions& options_;
  Analysis& out_;
  FactStore& facts_;
  std::vector<AbstractValue> current_;  // by value: facts of the visit under way
  std::set<ValueId> defined_twice_;
  std::optional<RankClash> rank_clash_; // of the If visited last
  bool trial_ = false;                  // following one branch on its own: nothing is recorded
  bool doomed_ = false;                 // in a trial: a node failed for certain
  int conditional_ = 0;                 // bodies around the node that may not be run, since the trial began
  int trials_ = 0;
  Equalities equalities_;               // of the scope under way
  std::uint64_t equality_state_ = 0, equality_states_ = 0;  // tells sets of equalities apart, below 2^32
  std::unordered_map<std::uint64_t, FactId> canonical_;     // by state and fact
  std::vector<NodeOrder> orders_;       // by graph, made on first use
  std::vector<bool> has_order_;
  std::vector<bool> has_initializers_;  // by graph: their facts are in current_
  std::vector<bool> active_;            // by graph: being visited now
  std::vector<bool> settled_;           // by graph
  std::vector<std::vector<Summary>> summaries_;  // by function
  std::vector<std::vector<GraphId>> bodies_;
  std::vector<Memo> memos_;
  FlatMap memo_index_;                  // from a key to the place in memos_, plus 1
  std::vector<FactId> memo_facts_;
  std::set<std::pair<NodeId, const Constraint*>> recorded_;
  std::vector<NodeId> calls_;
  std::vector<Attribute> caller_attributes_;
  std::deque<Frame> frames_;            // by depth; where one stands does not change
  std::uint64_t visit_serial_ = 0, serials_ = 0;
  std::uint64_t call_serial_ = 0;  // visit_serial_ of the innermost function
  std::vector<std::uint8_t> body_visits_;  // by graph, at most kVisitsBeforeKept
  std::unordered_map<GraphId, BodyVisits> kept_visits_;
  std::size_t room_ = std::max<std::size_t>(kRoomAtLeast, kRoomPerNode * model_.nodes.size());  // for the values of kept visits
  std::int64_t iteration_ = 0;
  std::uint64_t budget_;
  std::int64_t contents_left_ = std::max<std::int64_t>(kContentsAtLeast, static_cast<std::int64_t>(kVisitsPerNode * model_.nodes.size()));
  int depth_ = 0;
};

Analysis analyse(const Model& model, const AnalysisOptions& options) { return Solver::solve(model, options); }

}  // namespace tensorlint
