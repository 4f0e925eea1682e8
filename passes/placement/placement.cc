#include "passes/placement/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "passes/dataflow/order.h"
#include "passes/placement/call_attributes.h"
#include "passes/placement/diagram.h"
#include "passes/placement/host_operands.h"
#include "passes/placement/tensor_facts.h"
#include "passes/placement/transfer.h"

namespace tensorlint {
namespace {

constexpr int kMaxNesting = 192;       // of bodies and calls: the placer's own recursion
constexpr std::size_t kMaxVariables = 1024;
constexpr std::size_t kMaxSummaries = 64;  // of one function
constexpr std::int64_t kExactIterations = 4;  // from then on, choices of earlier iterations are forgotten
constexpr std::size_t kMaxOutcomes = 16;      // of a forgotten choice
constexpr int kMaxPasses = 8;          // until every trip count has enough classes

/// Where a value is, for given choices: what the leaves of a diagram number.
struct State {
  std::uint64_t bits = 0;  // devices it may be on; one, unless choices were not told apart
  bool tainted = false;
  bool apart = false;      // only while operands are compared: they are on different devices
  friend auto operator<=>(const State&, const State&) = default;
};

constexpr std::uint64_t kAnywhere = ~std::uint64_t{0};

// Leaves of State diagrams. A full store answers 0: unknown, so that nothing is reported.
constexpr std::uint32_t kUnknownLeaf = 0;

// Keys of DiagramStore::map.
enum : std::uint32_t { kJoin = 16, kJoinHost, kFails, kUntainted, kResult, kTaggedResult, kDiffers, kBits, kUnion, kClaimBase = 256 };

/// What is known of the one element of a condition or trip count.
struct Element {
  enum class Kind : std::uint8_t { kNone, kFormula, kNumber, kSymbol } kind = Kind::kNone;
  bool is_iteration = false;   // kNumber: the number of the iteration under way
  Diagram formula{};           // kFormula: when the condition holds
  std::uint32_t symbol = 0;    // kSymbol: an open condition or number
  std::int64_t number = 0;     // kNumber; conditions too
  friend bool operator==(const Element&, const Element&) = default;
};

struct Placed {
  Diagram device;
  Element content;
  friend bool operator==(const Placed&, const Placed&) = default;
};

enum class NodeKind : std::uint8_t { kPlain, kTransfer, kCall, kIf, kLoop, kScan, kSequenceMap };
/// What the operator does to a condition or number in its operands.
enum class ContentRule : std::uint8_t { kNone, kSame, kNot, kAnd, kOr, kXor };

struct OperatorTraits {
  NodeKind kind = NodeKind::kPlain;
  ContentRule content = ContentRule::kNone;
  bool is_collection = false;  // sequences and optionals: elements may be anywhere
  OperandPlacement operands;
};

OperatorTraits traits_of(const Model& model, const Operator& op) {
  OperatorTraits traits;
  const std::string_view name = model.text(op.name);
  if (op.function != GraphId::kNone) {
    traits.kind = NodeKind::kCall;
    return traits;
  }
  traits.operands = operand_placement(model, op);
  if (is_transfer(model, op)) {
    traits.kind = NodeKind::kTransfer;
    traits.content = ContentRule::kSame;
  }
  if (op.domain != NameId::kEmpty) return traits;
  if (name == "If") traits.kind = NodeKind::kIf;
  if (name == "Loop") traits.kind = NodeKind::kLoop;
  if (name == "Scan") traits.kind = NodeKind::kScan;
  if (name == "SequenceMap") traits.kind = NodeKind::kSequenceMap;
  for (const std::string_view same : {"Identity", "Squeeze", "Unsqueeze", "Reshape"})
    if (name == same) traits.content = ContentRule::kSame;
  if (name == "Not") traits.content = ContentRule::kNot;
  if (name == "And") traits.content = ContentRule::kAnd;
  if (name == "Or") traits.content = ContentRule::kOr;
  if (name == "Xor") traits.content = ContentRule::kXor;
  traits.is_collection = name.starts_with("Sequence") || name.starts_with("Optional") || name == "SplitToSequence" || name == "ConcatFromSequence";
  return traits;
}

struct LoopFrame {
  NodeId node;
  std::int64_t iteration;
  bool uses_number = false;  // what the body does depends on the iteration's number
};

/// A visit in which a node fails.
struct Visit {
  Diagram fails;
  std::vector<std::pair<ValueId, Diagram>> sides;  // kAbsent first: the tag
  std::vector<LoopFrame> loops;
  std::vector<NodeId> calls;
  bool is_claim = false;

  std::int64_t latest() const {
    std::int64_t latest = 0;
    for (const LoopFrame& frame : loops) latest = std::max(latest, frame.iteration);
    return latest;
  }
};

struct Record {
  Diagram reached, fails;
  std::optional<Visit> first;
};

/// How many trip counts have to be told apart: all below `prefix`, then as many as `cycle`.
struct Classes {
  std::int64_t prefix = 0, cycle = 1;
  std::int64_t count() const { return prefix + cycle; }
};

}  // namespace

/// One Placer, one pass over the model. Passes are repeated with more classes of trip counts until these are enough.
class Placer {
 public:
  Placer(const Analysis& analysis, Placement& out, std::map<std::uint64_t, Classes>& classes)
      : analysis_(analysis), model_(analysis.model()), out_(out), sources_(out.sources_), classes_(classes), current_(model_.values.size()),
        bodies_(bodies_by_graph(model_)), orders_(model_.graphs.size()), has_order_(model_.graphs.size()), active_(model_.graphs.size()),
        summaries_(model_.graphs.size()), budget_(std::max<std::uint64_t>(kVisitsAtLeast, kVisitsPerNode * model_.nodes.size())) {
    states_ = {{kAnywhere, false, false}, {kAnywhere, true, false}};
    for (std::uint32_t s = 0; s < states_.size(); ++s) state_ids_[states_[s]] = s;
    for (const Operator& op : model_.operators) traits_.push_back(traits_of(model_, op));
    out_.devices_.assign(model_.values.size(), 0);
  }

  /// False when trip counts need more classes, which `classes` has now: the results are to be thrown away.
  bool run() {
    if (model_.graphs.empty()) return true;
    const Graph& main = model_.graph(GraphId::kMain);
    for (const ValueId input : main.inputs) {
      Placed placed{home(input), {}};
      placed.content = open_content(input);
      set(input, placed, kAlways);
    }
    visit_graph(GraphId::kMain, kAlways);
    if (needs_another_pass_) return false;
    finish();
    return true;
  }

 private:
  static std::size_t index(ValueId value) { return static_cast<std::size_t>(value); }
  static std::size_t index(GraphId graph) { return static_cast<std::size_t>(graph); }

  // ---- states

  std::uint32_t leaf_of(const State& state) {
    const auto [at, added] = state_ids_.emplace(state, static_cast<std::uint32_t>(states_.size()));
    if (added) states_.push_back(state);
    return at->second;
  }
  Diagram on(int device) {
    return store_.leaf(device >= DeviceSources::kManyDevices ? kUnknownLeaf : leaf_of({std::uint64_t{1} << device, false, false}));
  }
  Diagram unknown() { return store_.leaf(kUnknownLeaf); }
  Diagram default_place() { return on(sources_.default_device()); }

  /// Two operands (or what earlier ones gave, and one more) meet.
  std::uint32_t join(std::uint32_t a, std::uint32_t b) {
    const State x = states_[a], y = states_[b];
    const std::uint64_t common = x.bits & y.bits;
    const bool apart = x.apart || common == 0;
    return leaf_of({apart ? x.bits : common, x.tainted || y.tainted, apart});
  }

  Diagram join(Diagram a, Diagram b) {
    if (a == b) return a;
    return store_.map2(kJoin, a, b, [this](std::uint32_t x, std::uint32_t y) { return join(x, y); });
  }

  /// An operand that is read by the host and may be on the cpu or with the data.
  Diagram join_host(Diagram data, Diagram operand) {
    if (store_.is_leaf(operand) && (states_[store_.value(operand)].bits & 1U) != 0) return data;
    return store_.map2(kJoinHost, data, operand, [this](std::uint32_t x, std::uint32_t y) {
      return (states_[y].bits & 1U) != 0 ? x : join(x, y);
    });
  }

  // ---- values

  /// Where a graph's own input or initializer lives.
  Diagram home(ValueId value) {
    const int device = sources_.value(value);
    return device == DeviceSources::kUnplaced ? default_place() : on(device);
  }

  void set(ValueId value, const Placed& placed, Diagram guard) {
    if (value == ValueId::kAbsent) return;
    current_[index(value)] = placed;
    std::uint64_t& bits = out_.devices_[index(value)];
    if (store_.is_leaf(placed.device)) {
      bits |= states_[store_.value(placed.device)].bits;
    } else {
      for_each_state(placed.device, guard, [&](const State& state) { bits |= state.bits; });
    }
  }

  template <typename Visit>
  void for_each_state(Diagram device, Diagram guard, const Visit& visit) {
    const Diagram nothing = store_.leaf(leaf_of({0, false, false}));
    store_.for_each_leaf(store_.choose(guard, device, nothing), [&](std::uint32_t leaf) {
      if (states_[leaf].bits != 0) visit(states_[leaf]);
    });
  }

  // ---- conditions and trip counts

  /// The element of a value whose inferred fact is a constant, else an open one; nothing for what is no bool or integer
  /// of one element.
  Element open_content(ValueId value) {
    const Fact& fact = analysis_.fact(value);
    const bool is_bool = fact.dtypes == DTypeSet(DType::kBool);
    if (!is_bool && !(fact.dtypes == DTypeSet(DType::kInt64)) && !(fact.dtypes == DTypeSet(DType::kInt32))) return {};
    if (fact.shape != ShapeId::kUnranked) {
      for (const Dim dim : analysis_.facts().dims_of(fact.shape))
        if (const auto extent = analysis_.facts().dims().as_constant(dim); extent && *extent != 1) return {};
    }
    if (const auto number = known_integer(analysis_, value)) return {.kind = Element::Kind::kNumber, .number = *number};
    return fresh(value);
  }

  Element fresh(ValueId value) {
    Element content{.kind = Element::Kind::kSymbol, .symbol = static_cast<std::uint32_t>(symbols_.size())};
    symbols_.push_back(static_cast<std::uint64_t>(value));
    return content;
  }

  /// The variable "`symbol` > k"; of a condition (k = 0) simply "it holds". nullopt past the number that is told apart.
  std::optional<Diagram> above(std::uint32_t symbol, std::int64_t k, bool is_trip_count) {
    const auto known = variable_of_.find({symbol, k});
    if (known != variable_of_.end()) return store_.choice(known->second);
    if (variables_.size() >= kMaxVariables) return std::nullopt;
    const auto variable = static_cast<std::uint32_t>(variables_.size());
    variables_.push_back({symbol, k, is_trip_count});
    variable_of_.emplace(std::pair(symbol, k), variable);
    return store_.choice(variable);
  }

  /// When a condition holds; nullopt when it is not told apart.
  std::optional<Diagram> formula(const Element& content) {
    switch (content.kind) {
      case Element::Kind::kFormula: return content.formula;
      case Element::Kind::kNumber: return content.number != 0 ? kAlways : kNever;
      case Element::Kind::kSymbol: return above(content.symbol, 0, false);
      case Element::Kind::kNone: return std::nullopt;
    }
    return std::nullopt;
  }

  std::optional<Diagram> condition(ValueId value) {
    if (const auto number = known_integer(analysis_, value)) return *number != 0 ? kAlways : kNever;
    Placed& placed = current_[index(value)];
    if (placed.content.kind == Element::Kind::kNone) placed.content = fresh(value);
    return formula(placed.content);
  }

  Element result_content(const Node& node, ContentRule rule, ValueId result) {
    const Element open = open_content(result);
    if (open.kind != Element::Kind::kSymbol || rule == ContentRule::kNone) return open;
    const auto operand = [&](std::size_t i) {
      const auto operands = model_.operands(node);
      return i < operands.size() && operands[i] != ValueId::kAbsent ? current_[index(operands[i])].content : Element();
    };
    if (rule == ContentRule::kSame) return operand(0).kind == Element::Kind::kNone ? open : operand(0);
    const auto a = formula(operand(0));
    if (!a) return open;
    if (rule == ContentRule::kNot) return {.kind = Element::Kind::kFormula, .formula = store_.inverse(*a)};
    const auto b = formula(operand(1));
    if (!b) return open;
    switch (rule) {
      case ContentRule::kAnd: return {.kind = Element::Kind::kFormula, .formula = store_.both(*a, *b)};
      case ContentRule::kOr: return {.kind = Element::Kind::kFormula, .formula = store_.either(*a, *b)};
      default: return {.kind = Element::Kind::kFormula, .formula = store_.choose(*a, store_.inverse(*b), *b)};
    }
  }

  /// The content of a value that is `yes` under a condition, else `no`.
  Element merge(Diagram chosen, const Element& yes, const Element& no, ValueId result) {
    if (yes == no || chosen == kAlways) return yes;
    if (chosen == kNever) return no;
    const bool is_condition = analysis_.fact(result).dtypes == DTypeSet(DType::kBool);
    if (is_condition && yes.kind != Element::Kind::kNone && no.kind != Element::Kind::kNone) {
      const auto a = formula(yes), b = formula(no);
      if (a && b) return {.kind = Element::Kind::kFormula, .formula = store_.choose(chosen, *a, *b)};
    }
    return open_content(result);
  }

  // ---- graphs

  const NodeOrder& order(GraphId graph) {
    if (!has_order_[index(graph)]) {
      orders_[index(graph)] = order_nodes(model_, graph, bodies_);
      has_order_[index(graph)] = true;
    }
    return orders_[index(graph)];
  }

  void visit_graph(GraphId id, Diagram guard) {
    active_[index(id)] = true;
    for (const ValueId initializer : model_.graph(id).initializers) {
      Placed placed{home(initializer), {}};
      placed.content = open_content(initializer);
      set(initializer, placed, guard);
    }
    const NodeOrder& nodes = order(id);
    for (const NodeId node : nodes.cyclic)
      for (const ValueId result : model_.results(model_.node(node))) set(result, {unknown(), {}}, guard);
    for (const NodeId node : nodes.nodes) visit_node(node, guard);
    active_[index(id)] = false;
  }

  void give_up(NodeId id, Diagram guard, std::string_view why) {
    if (!why.empty()) limit(id, std::string(why));
    for (const ValueId result : model_.results(model_.node(id))) set(result, {unknown(), open_or_none(result)}, guard);
  }

  Element open_or_none(ValueId result) { return result == ValueId::kAbsent ? Element() : open_content(result); }

  void limit(NodeId id, std::string why) {
    if (limited_.insert(id).second) out_.limits_.emplace_back(id, std::move(why));
  }

  Placed read(ValueId value) {
    if (value == ValueId::kAbsent || model_.value(value).origin == ValueOrigin::kUndefined) return {unknown(), {}};
    return current_[index(value)];
  }

  void visit_node(NodeId id, Diagram guard) {
    const Node& node = model_.node(id);
    if (budget_ == 0) {
      give_up(id, guard, "the model has more contexts than are followed");
      return;
    }
    --budget_;
    const OperatorTraits& traits = traits_[static_cast<std::size_t>(node.op)];
    switch (traits.kind) {
      case NodeKind::kPlain: return visit_plain(id, node, traits, guard);
      case NodeKind::kTransfer: return visit_transfer(id, node, guard);
      default: break;
    }
    if (depth_ + 1 >= kMaxNesting) {
      give_up(id, guard, "bodies and calls are nested too deep");
      return;
    }
    ++depth_;
    switch (traits.kind) {
      case NodeKind::kCall: call_function(id, node, guard); break;
      case NodeKind::kIf: visit_if(id, node, guard); break;
      case NodeKind::kLoop: visit_loop(id, node, guard); break;
      case NodeKind::kScan: visit_scan(id, node, guard); break;
      default: visit_sequence_map(id, node, guard); break;
    }
    --depth_;
  }

  void visit_transfer(NodeId id, const Node& node, Diagram guard) {
    const auto operands = model_.operands(node);
    const Placed operand = operands.empty() ? Placed{unknown(), {}} : read(operands[0]);
    reach(id, store_.both(guard, untainted(operand.device)));
    const Attribute* to = attributes_.find(node, "device");
    const int device = to == nullptr || to->kind != AttributeKind::kString ? DeviceSources::kManyDevices : transfer_target(id, to->s);
    for (const ValueId result : model_.results(node))
      if (result != ValueId::kAbsent) set(result, {on(device), result_content(node, ContentRule::kSame, result)}, guard);
  }

  int transfer_target(NodeId id, std::string_view text) {
    const auto known = targets_.find(text);
    if (known != targets_.end()) return known->second;
    return targets_[text] = sources_.transfer_target(id, text);
  }

  /// One state, that follows from no failure and is none.
  bool is_sound_leaf(Diagram device) const {
    if (!store_.is_leaf(device)) return false;
    const State& state = states_[store_.value(device)];
    return !state.apart && !state.tainted;
  }

  Diagram untainted(Diagram device) {
    return store_.map(kUntainted, device, [this](std::uint32_t leaf) { return states_[leaf].tainted ? 0U : 1U; });
  }

  void visit_plain(NodeId id, const Node& node, const OperatorTraits& traits, Diagram guard) {
    const auto operands = model_.operands(node);
    const int tag = sources_.node(id);
    if (traits.operands.results_on_host) {
      if (!operands.empty()) reach(id, store_.both(guard, untainted(read(operands[0]).device)));
      for (const ValueId result : model_.results(node))
        if (result != ValueId::kAbsent) set(result, {on(0), result_content(node, traits.content, result)}, guard);
      return;
    }
    if (traits.operands.is_opaque || traits.is_collection) return visit_opaque(node, tag, traits, guard);

    Diagram together = tag == DeviceSources::kUnplaced ? kNever : on(tag);
    bool any = tag != DeviceSources::kUnplaced;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] == ValueId::kAbsent || traits.operands.is_host(i)) continue;
      const Diagram operand = model_.value(operands[i]).origin == ValueOrigin::kUndefined ? unknown() : current_[index(operands[i])].device;
      together = any ? join(together, operand) : operand;
      any = true;
    }
    if (!any) together = default_place();
    if (traits.operands.host != 0) {
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (operands[i] != ValueId::kAbsent && traits.operands.is_host(i)) together = join_host(together, read(operands[i]).device);
    }

    const bool tagged = tag != DeviceSources::kUnplaced;
    // In most models nearly every node: on one device, whatever is chosen.
    if (node.graph == GraphId::kMain && is_sound_leaf(together)) {
      for (const ValueId result : model_.results(node))
        if (result != ValueId::kAbsent) set(result, {together, result_content(node, traits.content, result)}, guard);
      return;
    }
    const Diagram fails = store_.map(kFails, together, [this](std::uint32_t leaf) { return states_[leaf].apart && !states_[leaf].tainted ? 1U : 0U; });
    if (fails != kNever || node.graph != GraphId::kMain) {
      reach(id, store_.both(guard, untainted(together)));
      fail(id, store_.both(guard, fails), [&](Visit& visit) {
        if (tag != DeviceSources::kUnplaced) visit.sides.emplace_back(ValueId::kAbsent, on(tag));
        for (int host = 0; host < 2; ++host)
          for (std::size_t i = 0; i < operands.size(); ++i)
            if (operands[i] != ValueId::kAbsent && traits.operands.is_host(i) == (host == 1)) visit.sides.emplace_back(operands[i], read(operands[i]).device);
        if (!any || visit.sides.empty()) visit.sides.insert(visit.sides.begin(), {ValueId::kAbsent, default_place()});
      });
    }
    const Diagram result_device = store_.map(tagged ? kTaggedResult : kResult, together, [&](std::uint32_t leaf) {
      const State& state = states_[leaf];
      // A node that passes on its own tag is where it says, whatever its operands follow from.
      return leaf_of({state.bits, state.apart || (state.tainted && !tagged), false});
    });
    for (const ValueId result : model_.results(node))
      if (result != ValueId::kAbsent) set(result, {result_device, result_content(node, traits.content, result)}, guard);
  }

  /// Operands are not compared: the results are with them where they are together, else anywhere.
  void visit_opaque(const Node& node, int tag, const OperatorTraits& traits, Diagram guard) {
    Diagram device = tag == DeviceSources::kUnplaced ? unknown() : on(tag);
    if (tag == DeviceSources::kUnplaced) {
      bool any = false;
      for (const ValueId operand : model_.operands(node)) {
        if (operand == ValueId::kAbsent) continue;
        const Diagram next = read(operand).device;
        device = any ? store_.map2(kUnion, device, next, [this](std::uint32_t x, std::uint32_t y) {
          return x == y ? x : leaf_of({kAnywhere, states_[x].tainted || states_[y].tainted, false});
        }) : next;
        any = true;
      }
    }
    for (const ValueId result : model_.results(node))
      if (result != ValueId::kAbsent) set(result, {device, result_content(node, traits.content, result)}, guard);
  }

  // ---- what fails

  void reach(NodeId id, Diagram reached) {
    if (reached == kNever) return;
    Record& record = records_[id];
    record.reached = store_.either(record.reached, reached);
  }

  template <typename Describe>
  void fail(NodeId id, Diagram fails, const Describe& describe) {
    if (fails == kNever) return;
    Record& record = records_[id];
    record.fails = store_.either(record.fails, fails);
    Visit visit{fails, {}, loops_, calls_};
    if (record.first && record.first->latest() <= visit.latest()) return;
    describe(visit);
    record.first = std::move(visit);
  }

  /// A tag on the input of a body or function: a claim about what it is handed by `owner`.
  Diagram claim(NodeId owner, ValueId input, ValueId handed, Diagram device, Diagram guard) {
    const int tag = sources_.value(input);
    if (tag == DeviceSources::kUnplaced || tag >= DeviceSources::kManyDevices) return device;
    const Diagram together = join(on(tag), device);
    reach(owner, store_.both(guard, untainted(device)));
    const Diagram fails = store_.map(kFails, together, [this](std::uint32_t leaf) { return states_[leaf].apart && !states_[leaf].tainted ? 1U : 0U; });
    fail(owner, store_.both(guard, fails), [&](Visit& visit) {
      visit.sides = {{input, on(tag)}, {handed, device}};
      visit.is_claim = true;
    });
    return store_.map(kResult, together, [&](std::uint32_t leaf) {
      return leaf_of({states_[leaf].bits, states_[leaf].apart || states_[leaf].tainted, false});
    });
  }

  // ---- functions

  struct Summary {
    NodeId call;
    Diagram guard;
    std::vector<Placed> operands, results;
  };

  void call_function(NodeId id, const Node& node, Diagram guard) {
    const GraphId function = model_.op(node).function;
    const Graph& graph = model_.graph(function);
    if (active_[index(function)]) return give_up(id, guard, "the function calls itself");
    const auto given = model_.operands(node);
    std::vector<Placed> operands(graph.inputs.size(), Placed{unknown(), {}});
    for (std::size_t i = 0; i < std::min(operands.size(), given.size()); ++i) operands[i] = read(given[i]);
    const auto results = model_.results(node);
    const bool plain = model_.attributes(node).empty();
    if (plain) {
      for (const Summary& summary : summaries_[index(function)]) {
        if (summary.guard != guard || summary.operands != operands) continue;
        for (std::size_t r = 0; r < std::min(results.size(), summary.results.size()); ++r) set(results[r], summary.results[r], guard);
        return;
      }
    }
    std::vector<Attribute> attributes = attributes_.of_call(node, graph);

    Summary summary{id, guard, operands, {}};
    const std::size_t symbols = symbols_.size(), variables = variables_.size();
    calls_.push_back(id);
    std::vector<Attribute> outer = attributes_.enter(std::move(attributes));
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const ValueId input = graph.inputs[i];
      if (input == ValueId::kAbsent) continue;
      const ValueId handed = i < given.size() ? given[i] : ValueId::kAbsent;
      operands[i].device = claim(id, input, handed, operands[i].device, guard);
      set(input, operands[i], guard);
    }
    visit_graph(function, guard);
    attributes_.enter(std::move(outer));
    calls_.pop_back();
    bool repeatable = plain && variables == variables_.size();
    for (const ValueId output : graph.outputs) {
      summary.results.push_back(read(output));
      const Element& content = summary.results.back().content;
      repeatable = repeatable && (content.kind != Element::Kind::kSymbol || content.symbol < symbols);
    }
    for (std::size_t r = 0; r < results.size(); ++r) set(results[r], r < summary.results.size() ? summary.results[r] : Placed{unknown(), {}}, guard);
    if (repeatable && summaries_[index(function)].size() < kMaxSummaries) summaries_[index(function)].push_back(std::move(summary));
  }

  // ---- control flow

  GraphId body_of(const Node& node, std::string_view name) const {
    const Attribute* found = attributes_.find(node, name);
    return found != nullptr && found->kind == AttributeKind::kGraph ? found->graph : GraphId::kNone;
  }

  std::vector<Placed> outputs_of(GraphId body) {
    std::vector<Placed> outputs;
    for (const ValueId output : model_.graph(body).outputs) outputs.push_back(read(output));
    return outputs;
  }

  void visit_if(NodeId id, const Node& node, Diagram guard) {
    const auto operands = model_.operands(node);
    const GraphId branches[] = {body_of(node, "then_branch"), body_of(node, "else_branch")};
    if (operands.empty() || operands[0] == ValueId::kAbsent || branches[0] == GraphId::kNone || branches[1] == GraphId::kNone)
      return give_up(id, guard, {});
    const std::optional<Diagram> taken = condition(operands[0]);
    note_number_use(operands[0]);
    reach(id, guard);
    std::vector<Placed> outputs[2];
    Diagram guards[2] = {guard, guard};
    if (taken) {
      guards[0] = store_.both(guard, *taken);
      guards[1] = store_.without(guard, *taken);
    } else {
      limit(id, fmt::format("more than {} choices are open: this condition is not told apart from others", kMaxVariables));
    }
    for (int b = 0; b < 2; ++b) {
      if (guards[b] == kNever) continue;
      visit_graph(branches[b], guards[b]);
      outputs[b] = outputs_of(branches[b]);
    }
    const auto results = model_.results(node);
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (results[r] == ValueId::kAbsent) continue;
      const Placed* sides[2] = {r < outputs[0].size() ? &outputs[0][r] : nullptr, r < outputs[1].size() ? &outputs[1][r] : nullptr};
      if (sides[0] == nullptr && sides[1] == nullptr) {
        set(results[r], {unknown(), open_content(results[r])}, guard);
      } else if (sides[0] == nullptr || sides[1] == nullptr) {
        // The other branch is never taken (or malformed: then it says nothing).
        set(results[r], sides[0] == nullptr ? *sides[1] : *sides[0], guard);
      } else if (taken) {
        set(results[r], {store_.choose(*taken, sides[0]->device, sides[1]->device), merge(*taken, sides[0]->content, sides[1]->content, results[r])}, guard);
        for (int b = 0; b < 2; ++b)
          for_each_state(sides[b]->device, guards[b], [&](const State& state) {
            if (!state.tainted) branch_devices_[{id, r}][static_cast<std::size_t>(b)] |= state.bits;
          });
      } else {
        set(results[r], {either_place(sides[0]->device, sides[1]->device), open_content(results[r])}, guard);
      }
    }
  }

  /// On the devices of both: choices are not told apart.
  Diagram either_place(Diagram a, Diagram b) {
    return store_.map2(kBits, a, b, [this](std::uint32_t x, std::uint32_t y) {
      return leaf_of({states_[x].bits | states_[y].bits, states_[x].tainted || states_[y].tainted, false});
    });
  }

  /// Marks the loops under way when a condition or trip count is the number of the iteration.
  void note_number_use(ValueId value) {
    if (value == ValueId::kAbsent || !current_[index(value)].content.is_iteration) return;
    for (LoopFrame& frame : loops_) frame.uses_number = true;
  }

  struct Loop {
    NodeId id;
    GraphId body;
    std::size_t lead = 0;      // body inputs before the carried values: iteration number and condition
    std::size_t lead_out = 0;  // body outputs before them: the condition
    std::vector<Placed> carried{};
    std::vector<ValueId> handed{};       // operands that start the carried values
    std::vector<Placed> trailing{};    // Scan: elements
    std::vector<ValueId> trailing_from{};
    Diagram start = kAlways;           // condition of the first iteration
    std::optional<std::int64_t> trips{}; // known number
    std::optional<std::uint32_t> symbol{};
    std::uint64_t key = 0;             // of the symbol's classes
  };

  /// A loop's state but for the names of what the iterations made: equal states go on alike.
  std::vector<std::uint64_t> signature(std::span<const Placed> state, Diagram going, std::size_t old_symbols, std::size_t old_variables) {
    std::vector<std::uint64_t> text;
    std::map<std::uint64_t, std::uint64_t> names;
    const auto renamed = [&](std::uint32_t symbol) {
      return symbol < old_symbols ? symbol : (std::uint64_t{1} << 40) + names.emplace(symbol, names.size()).first->second;
    };
    const auto add = [&](Diagram d) {
      std::map<std::uint32_t, std::uint64_t> numbers;
      const std::vector<Diagram> nodes = store_.nodes_of(d);
      for (std::size_t i = 0; i < nodes.size(); ++i) numbers[nodes[i].id] = i;
      text.push_back(nodes.size());
      for (const Diagram node : nodes) {
        if (store_.is_leaf(node)) {
          text.push_back(store_.value(node));
          continue;
        }
        const std::uint32_t variable = store_.variable(node);
        if (variable < old_variables) {
          text.push_back((std::uint64_t{1} << 41) + variable);
        } else {
          text.push_back((std::uint64_t{1} << 42) + static_cast<std::uint64_t>(variables_[variable].above));
          text.push_back(renamed(variables_[variable].symbol));
        }
        text.push_back(numbers[store_.when_false(node).id]);
        text.push_back(numbers[store_.when_true(node).id]);
      }
    };
    for (const Placed& placed : state) {
      add(placed.device);
      text.push_back(static_cast<std::uint64_t>(placed.content.kind));
      if (placed.content.kind == Element::Kind::kFormula) add(placed.content.formula);
      if (placed.content.kind == Element::Kind::kNumber) text.push_back(static_cast<std::uint64_t>(placed.content.number));
      if (placed.content.kind == Element::Kind::kSymbol) text.push_back(renamed(placed.content.symbol));
    }
    add(going);
    return text;
  }

  /// What a loop carries, as a choice between its possible outcomes instead of by the choices that earlier iterations made,
  /// which would be one more in each. Choices from outside the loop stay as they are. `inside`: when the loop goes on.
  void forget_choices(std::vector<Placed>& state, Diagram inside, std::size_t old_symbols, ValueId named) {
    std::vector<std::vector<std::uint32_t>> outcomes{{}};
    std::map<std::vector<std::uint32_t>, std::uint32_t> outcome_ids{{{}, 0}};
    const auto outcome = [&](std::vector<std::uint32_t> leaves) {
      const auto [at, added] = outcome_ids.emplace(std::move(leaves), static_cast<std::uint32_t>(outcomes.size()));
      if (added) outcomes.push_back(at->first);
      return at->second;
    };
    const std::uint32_t key = next_key_;
    next_key_ += 3;
    std::vector<Diagram> parts;
    for (const Placed& placed : state) {
      parts.push_back(placed.device);
      if (placed.content.kind == Element::Kind::kFormula) parts.push_back(placed.content.formula);
    }
    Diagram joint = store_.leaf(0);
    for (const Diagram part : parts)
      joint = store_.map2(key, joint, part, [&](std::uint32_t known, std::uint32_t leaf) {
        std::vector<std::uint32_t> leaves = outcomes[known];
        leaves.push_back(leaf);
        return outcome(std::move(leaves));
      });
    // Leaves are sets of outcomes from here on; 0 is the empty one.
    std::vector<std::set<std::uint32_t>> sets{{}};
    std::map<std::set<std::uint32_t>, std::uint32_t> set_ids{{{}, 0}};
    const auto set_of = [&](std::set<std::uint32_t> items) {
      const auto [at, added] = set_ids.emplace(std::move(items), static_cast<std::uint32_t>(sets.size()));
      if (added) sets.push_back(at->first);
      return at->second;
    };
    joint = store_.choose(inside, store_.map(key + 1, joint, [&](std::uint32_t item) { return set_of({item}); }), kNever);
    std::map<std::uint32_t, Diagram> done;
    const std::function<Diagram(Diagram)> forget = [&](Diagram d) -> Diagram {
      if (store_.is_leaf(d)) return d;
      if (const auto known = done.find(d.id); known != done.end()) return known->second;
      const Diagram low = forget(store_.when_false(d)), high = forget(store_.when_true(d));
      const bool keep = variables_[store_.variable(d)].symbol < old_symbols && low != kNever && high != kNever;
      const Diagram result = keep ? store_.choose(store_.choice(store_.variable(d)), high, low)
                                  : store_.map2(key + 2, low, high, [&](std::uint32_t a, std::uint32_t b) {
                                     std::set<std::uint32_t> items = sets[a];
                                     items.insert(sets[b].begin(), sets[b].end());
                                     return set_of(std::move(items));
                                   });
      done.emplace(d.id, result);
      return result;
    };
    joint = forget(joint);
    std::size_t most = 1;
    store_.for_each_leaf(joint, [&](std::uint32_t leaf) { most = std::max(most, sets[leaf].size()); });
    if (most > kMaxOutcomes || store_.is_full()) return;
    std::vector<Diagram> selectors;
    for (std::size_t i = 1; i < most; ++i) {
      const auto selector = above(fresh(named).symbol, 0, false);
      if (!selector) return;
      selectors.push_back(*selector);
    }
    const auto part = [&](std::size_t index) {
      std::map<std::uint32_t, Diagram> chosen;
      store_.for_each_leaf(joint, [&](std::uint32_t leaf) {
        // By content, so that the same set is told apart in the same way in every iteration.
        std::vector<std::vector<std::uint32_t>> items;
        for (const std::uint32_t item : sets[leaf]) items.push_back(outcomes[item]);
        std::sort(items.begin(), items.end());
        Diagram d = items.empty() ? kNever : store_.leaf(items.back()[index]);
        for (std::size_t i = items.size(); i-- > 1;) d = store_.choose(selectors[i - 1], store_.leaf(items[i - 1][index]), d);
        chosen[leaf] = d;
      });
      const std::function<Diagram(Diagram)> decode = [&](Diagram d) -> Diagram {
        if (store_.is_leaf(d)) return chosen[store_.value(d)];
        return store_.choose(store_.choice(store_.variable(d)), decode(store_.when_true(d)), decode(store_.when_false(d)));
      };
      return decode(joint);
    };
    std::size_t at = 0;
    for (Placed& placed : state) {
      placed.device = part(at++);
      if (placed.content.kind == Element::Kind::kFormula) placed.content.formula = part(at++);
    }
  }

  bool depends_on_new(std::span<const Placed> state, std::size_t old_symbols) const {
    const auto is_new = [&](Diagram d) {
      const std::vector<Diagram> nodes = store_.nodes_of(d);
      return std::any_of(nodes.begin(), nodes.end(), [&](Diagram node) { return !store_.is_leaf(node) && variables_[store_.variable(node)].symbol >= old_symbols; });
    };
    return std::any_of(state.begin(), state.end(), [&](const Placed& placed) {
      return is_new(placed.device) || (placed.content.kind == Element::Kind::kFormula && is_new(placed.content.formula));
    });
  }

  struct Iterated {
    std::vector<Placed> carried;                 // after the loop
    std::vector<std::pair<Diagram, bool>> slices; // of each scan output: where all of them are; false: none was made
    bool gave_up = false;
  };

  Iterated iterate(const Loop& loop, Diagram guard) {
    const Graph& body = model_.graph(loop.body);
    const std::size_t count = loop.carried.size();
    const std::size_t slice_count = body.outputs.size() - std::min(body.outputs.size(), loop.lead_out + count);
    Iterated result;
    result.slices.assign(slice_count, {unknown(), false});
    std::vector<std::vector<Placed>> states{loop.carried};
    std::vector<Diagram> entered{kAlways};  // by iteration from 1: when it is begun
    std::map<std::vector<std::uint64_t>, std::int64_t> seen;
    const std::size_t old_symbols = symbols_.size(), old_variables = variables_.size();
    std::int64_t last = kMaxContexts;
    const Classes* classes = nullptr;
    if (loop.trips) last = std::min(last, *loop.trips);
    if (loop.symbol) {
      const auto known = classes_.find(loop.key);
      if (known != classes_.end()) classes = &known->second;
    }
    std::optional<Classes> period;
    Diagram going = loop.start, goes_on = kAlways;
    bool uses_number = false;
    bool told_apart = true;
    const auto may_begin = [&](std::int64_t k) -> Diagram {
      if (!loop.symbol) return kAlways;
      const auto more = above(*loop.symbol, k - 1, true);
      told_apart = told_apart && more.has_value();
      return more.value_or(kNever);
    };

    std::int64_t k = 1;
    for (; k <= last; ++k) {
      const Diagram begun = store_.both(going, may_begin(k));
      const Diagram inside = store_.both(guard, begun);
      if (inside == kNever || store_.is_full()) break;
      std::vector<Placed> before = states.back();
      if (k > kExactIterations && depends_on_new(before, old_symbols)) forget_choices(before, inside, old_symbols, body.inputs[loop.lead]);
      if (!period && !uses_number) {
        const auto [at, added] = seen.emplace(signature(before, goes_on, old_symbols, old_variables), k - 1);
        if (!added) {
          period = Classes{at->second, k - 1 - at->second};
          if (loop.trips) {
            const std::int64_t whole = period->count();
            if (*loop.trips > whole) last = std::min(last, whole + (*loop.trips - period->prefix) % period->cycle);
          } else if (!loop.symbol) {
            last = std::min(last, k - 1 + period->cycle);
          } else {
            if (classes == nullptr) classes = &(classes_[loop.key] = *period);
            last = std::max(k - 1, std::min(last, classes->count()));
          }
          if (k > last) break;
        }
      }
      going = begun;
      loops_.push_back({loop.id, k});
      for (std::size_t i = 0; i < body.inputs.size(); ++i) {
        const ValueId input = body.inputs[i];
        Placed placed{unknown(), {}};
        if (i < loop.lead) {
          placed.device = on(0);
          placed.content = i == 0 ? Element{.kind = Element::Kind::kNumber, .is_iteration = true, .number = k - 1} : Element{.kind = Element::Kind::kNumber, .number = 1};
        } else if (i < loop.lead + count) {
          placed = before[i - loop.lead];
          const bool first = k == 1;
          placed.device = claim(loop.id, input, first ? loop.handed[i - loop.lead] : body.outputs[loop.lead_out + i - loop.lead], placed.device, inside);
        } else if (i - loop.lead - count < loop.trailing.size()) {
          placed = loop.trailing[i - loop.lead - count];
          placed.device = claim(loop.id, input, loop.trailing_from[i - loop.lead - count], placed.device, inside);
        }
        set(input, placed, inside);
      }
      visit_graph(loop.body, inside);
      uses_number = uses_number || loops_.back().uses_number;
      const std::vector<Placed> outputs = outputs_of(loop.body);
      std::vector<Placed> after(count, Placed{unknown(), {}});
      for (std::size_t i = 0; i < count && loop.lead_out + i < outputs.size(); ++i) {
        after[i] = outputs[loop.lead_out + i];
        if (after[i].content.is_iteration) after[i].content = fresh(body.outputs[loop.lead_out + i]);
        note_change(loop, i, k, states.front()[i].device, after[i].device, inside);
      }
      for (std::size_t s = 0; s < slice_count; ++s) {
        const Diagram slice = outputs[loop.lead_out + count + s].device;
        add_slice(loop, k, result.slices[s], slice, body.outputs[loop.lead_out + count + s], inside);
      }
      loops_.pop_back();
      states.push_back(after);
      entered.push_back(going);

      goes_on = kAlways;
      if (loop.lead_out == 1 && !body.outputs.empty() && body.outputs[0] != ValueId::kAbsent) {
        const auto next = condition(body.outputs[0]);
        told_apart = told_apart && next.has_value();
        goes_on = next.value_or(kAlways);
      }
      going = store_.both(going, goes_on);
    }
    if (loop.symbol) {
      // A loop that ends by its condition before it repeats tells as many trip counts apart as it has iterations.
      const Classes own = period.value_or(Classes{static_cast<std::int64_t>(states.size()) - 1, 1});
      const auto [at, added] = classes_.emplace(loop.key, own);
      Classes& all = at->second;
      const std::int64_t before = all.count();
      all.prefix = std::min(std::max(all.prefix, own.prefix), kMaxContexts);
      all.cycle = std::min(std::lcm(all.cycle, own.cycle), kMaxContexts);
      needs_another_pass_ = needs_another_pass_ || all.count() != before;
    }
    const bool cut_short = !period && k > last && last == kMaxContexts && (!loop.trips || *loop.trips > kMaxContexts);
    if (cut_short || !told_apart) {
      limit(loop.id, fmt::format("followed for {} iterations only: devices, or the conditions that decide them, do not repeat before", states.size() - 1));
    }

    // After the loop: the state before the first iteration that was not begun.
    result.carried = states.back();
    for (std::size_t s = states.size() - 1; s-- > 0;) {
      for (std::size_t i = 0; i < count; ++i) {
        const Diagram more = entered[s + 1];
        result.carried[i].device = store_.choose(more, result.carried[i].device, states[s][i].device);
        result.carried[i].content = merge(more, result.carried[i].content, states[s][i].content, body.inputs[loop.lead + i]);
      }
    }
    if (cut_short || !told_apart) {
      for (std::size_t i = 0; i < count; ++i)
        for (const std::vector<Placed>& state : states) result.carried[i] = {either_place(result.carried[i].device, state[i].device), {}};
    }
    return result;
  }

  void note_change(const Loop& loop, std::size_t i, std::int64_t k, Diagram first, Diagram now, Diagram inside) {
    if (first == now) return;
    const Diagram differs = store_.map2(kDiffers, first, now, [this](std::uint32_t x, std::uint32_t y) {
      return !states_[x].tainted && !states_[y].tainted && (states_[x].bits & states_[y].bits) == 0 ? 1U : 0U;
    });
    const auto where = store_.example(store_.both(inside, differs));
    if (!where) return;
    changes_.emplace(std::pair(loop.id, i), PlacementChange{loop.id, i, k + 1, device_at(first, *where), device_at(now, *where)});
  }

  void add_slice(const Loop& loop, std::int64_t, std::pair<Diagram, bool>& all, Diagram slice, ValueId value, Diagram inside) {
    if (!all.second) {
      all = {slice, true};
      return;
    }
    const Diagram together = join(all.first, slice);
    const Diagram fails = store_.map(kFails, together, [this](std::uint32_t leaf) { return states_[leaf].apart && !states_[leaf].tainted ? 1U : 0U; });
    reach(loop.id, store_.both(inside, untainted(together)));
    fail(loop.id, store_.both(inside, fails), [&](Visit& visit) { visit.sides = {{value, all.first}, {value, slice}}; });
    all.first = store_.choose(inside, store_.map(kResult, together, [&](std::uint32_t leaf) {
      return leaf_of({states_[leaf].bits, states_[leaf].apart || states_[leaf].tainted, false});
    }), all.first);
  }

  void set_loop_results(const Node& node, const Iterated& after, Diagram guard) {
    const auto results = model_.results(node);
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (results[r] == ValueId::kAbsent) continue;
      if (r < after.carried.size()) {
        set(results[r], after.carried[r], guard);
      } else {
        const std::size_t slice = r - after.carried.size();
        set(results[r], {slice < after.slices.size() ? after.slices[slice].first : unknown(), {}}, guard);
      }
    }
  }

  void visit_loop(NodeId id, const Node& node, Diagram guard) {
    const auto operands = model_.operands(node);
    Loop loop{.id = id, .body = body_of(node, "body"), .lead = 2, .lead_out = 1};
    if (loop.body == GraphId::kNone || operands.size() < 2) return give_up(id, guard, {});
    for (const ValueId value : operands.subspan(2)) {
      loop.carried.push_back(read(value));
      loop.handed.push_back(value);
    }
    const Graph& body = model_.graph(loop.body);
    if (body.inputs.size() != loop.carried.size() + 2 || body.outputs.size() < loop.carried.size() + 1) return give_up(id, guard, {});
    reach(id, guard);
    if (operands[0] != ValueId::kAbsent) {
      note_number_use(operands[0]);
      Element& trips = current_[index(operands[0])].content;
      if (const auto number = known_integer(analysis_, operands[0])) trips = {.kind = Element::Kind::kNumber, .is_iteration = false, .number = *number};
      if (trips.kind != Element::Kind::kNumber && trips.kind != Element::Kind::kSymbol) trips = fresh(operands[0]);
      if (trips.kind == Element::Kind::kNumber) {
        loop.trips = std::max<std::int64_t>(trips.number, 0);
      } else {
        loop.symbol = trips.symbol;
        loop.key = symbols_[trips.symbol];
      }
    }
    if (operands[1] != ValueId::kAbsent) {
      note_number_use(operands[1]);
      const auto start = condition(operands[1]);
      if (!start) limit(id, fmt::format("more than {} choices are open: this condition is not told apart from others", kMaxVariables));
      loop.start = start.value_or(kAlways);
    }
    set_loop_results(node, iterate(loop, guard), guard);
  }

  void visit_scan(NodeId id, const Node& node, Diagram guard) {
    const auto operands = model_.operands(node);
    Loop loop{.id = id, .body = body_of(node, "body")};
    const Attribute* scanned_attribute = attributes_.find(node, "num_scan_inputs");
    const std::int64_t scanned = scanned_attribute == nullptr ? 0 : scanned_attribute->i;
    if (loop.body == GraphId::kNone || model_.op(node).opset < 9 || scanned < 1 || static_cast<std::uint64_t>(scanned) > operands.size())
      return give_up(id, guard, {});
    const std::size_t count = operands.size() - static_cast<std::size_t>(scanned);
    const Graph& body = model_.graph(loop.body);
    if (body.inputs.size() != operands.size() || body.outputs.size() < count) return give_up(id, guard, {});
    for (std::size_t i = 0; i < operands.size(); ++i) {
      (i < count ? loop.carried : loop.trailing).push_back(read(operands[i]));
      (i < count ? loop.handed : loop.trailing_from).push_back(operands[i]);
    }
    for (Placed& element : loop.trailing) element.content = {};
    reach(id, guard);
    set_trips(loop, node, operands[count]);
    set_loop_results(node, iterate(loop, guard), guard);
  }

  /// A Scan runs once per element of the scanned axis; the same dim is the same number everywhere.
  void set_trips(Loop& loop, const Node& node, ValueId sequence) {
    const Attribute* axes = attributes_.find(node, "scan_input_axes");
    std::int64_t axis = axes != nullptr && !axes->ints.empty() ? axes->ints[0] : 0;
    const Fact* fact = sequence == ValueId::kAbsent ? nullptr : &analysis_.fact(sequence);
    if (fact != nullptr && fact->kind == ValueKind::kTensor && fact->shape != ShapeId::kUnranked) {
      const auto dims = analysis_.facts().dims_of(fact->shape);
      const auto rank = static_cast<std::int64_t>(dims.size());
      axis += axis < 0 ? rank : 0;
      if (axis >= 0 && axis < rank) {
        const Dim dim = dims[static_cast<std::size_t>(axis)];
        loop.trips = analysis_.facts().dims().as_constant(dim);
        if (loop.trips) return;
        if (!dim.is_unknown()) {
          const auto [at, added] = dim_symbols_.emplace(dim.id(), static_cast<std::uint32_t>(symbols_.size()));
          if (added) {
            symbols_.push_back((std::uint64_t{1} << 32) + dim.id());
            dim_names_[at->second] = analysis_.facts().dims().to_text(dim);
          }
          loop.symbol = at->second;
        }
      }
    }
    if (!loop.symbol) loop.symbol = fresh(sequence).symbol;
    loop.key = symbols_[*loop.symbol];
  }

  void visit_sequence_map(NodeId id, const Node& node, Diagram guard) {
    const GraphId body_id = body_of(node, "body");
    const auto operands = model_.operands(node);
    if (body_id == GraphId::kNone) return give_up(id, guard, {});
    const Graph& body = model_.graph(body_id);
    reach(id, guard);
    for (std::size_t i = 0; i < body.inputs.size(); ++i) {
      Placed element = i < operands.size() ? read(operands[i]) : Placed{unknown(), {}};
      element.content = {};
      set(body.inputs[i], element, guard);
    }
    visit_graph(body_id, guard);
    const std::vector<Placed> outputs = outputs_of(body_id);
    const auto results = model_.results(node);
    for (std::size_t r = 0; r < results.size(); ++r)
      set(results[r], {r < outputs.size() ? outputs[r].device : unknown(), {}}, guard);
  }

  // ---- the results

  using Choices = std::vector<std::pair<std::uint32_t, bool>>;

  State state_at(Diagram device, const Choices& choices) const {
    while (!store_.is_leaf(device)) {
      const auto found = std::find_if(choices.begin(), choices.end(), [&](const auto& choice) { return choice.first == store_.variable(device); });
      device = found != choices.end() && found->second ? store_.when_true(device) : store_.when_false(device);
    }
    return states_[store_.value(device)];
  }

  std::string device_at(Diagram device, const Choices& choices) const {
    const State state = state_at(device, choices);
    for (std::size_t d = 0; d < sources_.names().size(); ++d)
      if ((state.bits >> d) & 1U) return sources_.names()[d];
    return {};
  }

  bool depends_on(Diagram device, bool trip_counts) const {
    for (const Diagram node : store_.nodes_of(device)) {
      if (store_.is_leaf(node)) continue;
      const Variable& variable = variables_[store_.variable(node)];
      if (variable.is_trip_count == trip_counts) return true;
    }
    return false;
  }

  void finish() {
    if (store_.is_full()) {
      out_.limits_.clear();
      out_.limits_.emplace_back(NodeId::kNone, "the choices of this model are too many to be told apart: devices are not checked");
      return;
    }
    for (auto& [id, record] : records_) {
      if (!record.first) continue;
      const Visit& visit = *record.first;
      PlacementFailure failure;
      failure.node = id;
      failure.certainty = store_.without(record.reached, record.fails) == kNever ? Certainty::kMust : Certainty::kMay;
      const Choices choices = *store_.example(visit.fails);
      describe(failure, visit, choices);
      out_.failures_.push_back(std::move(failure));
    }
    for (auto& [key, change] : changes_) out_.changes_.push_back(std::move(change));
    for (const auto& [key, bits] : branch_devices_) {
      if (bits[0] == 0 || bits[1] == 0 || bits[0] == bits[1] || bits[0] == kAnywhere || bits[1] == kAnywhere) continue;
      out_.changes_.push_back({key.first, key.second, 0, name_of(bits[0] & ~bits[1] ? bits[0] & ~bits[1] : bits[0]), name_of(bits[1] & ~bits[0] ? bits[1] & ~bits[0] : bits[1])});
    }
    std::stable_sort(out_.changes_.begin(), out_.changes_.end(), [](const PlacementChange& a, const PlacementChange& b) { return a.node < b.node; });
  }

  std::string name_of(std::uint64_t bits) const {
    for (std::size_t d = 0; d < sources_.names().size(); ++d)
      if ((bits >> d) & 1U) return sources_.names()[d];
    return {};
  }

  void describe(PlacementFailure& failure, const Visit& visit, const Choices& choices) const {
    PlacementWitness& witness = failure.witness;
    const std::uint64_t home = state_at(visit.sides[0].second, choices).bits;
    std::size_t other = 1;
    for (std::size_t s = 1; s < visit.sides.size(); ++s) {
      // An operand of the host that is on the cpu is where it may be; the sides say nothing about that, so it comes last.
      if ((state_at(visit.sides[s].second, choices).bits & home) != 0) continue;
      other = s;
      break;
    }
    failure.first = visit.sides[0].first;
    failure.second = visit.sides[other].first;
    witness.device = device_at(visit.sides[0].second, choices);
    witness.other = device_at(visit.sides[other].second, choices);
    for (const LoopFrame& frame : visit.loops) {
      witness.loops.push_back(frame.node);
      witness.iterations.push_back(frame.iteration);
    }
    witness.iteration = visit.latest();
    witness.calls = visit.calls;
    std::map<std::uint32_t, std::int64_t> trips;
    for (const auto& [variable, choice] : choices) {
      const Variable& known = variables_[variable];
      if (known.is_trip_count) {
        trips[known.symbol] = std::max(trips[known.symbol], choice ? known.above + 1 : 0);
      } else {
        witness.conditions[symbol_name(known.symbol)] = choice;
      }
    }
    for (const auto& [symbol, count] : trips) witness.trip_counts[symbol_name(symbol)] = count;

    const Diagram a = visit.sides[0].second, b = visit.sides[other].second;
    const OperatorTraits& traits = traits_[static_cast<std::size_t>(model_.node(failure.node).op)];
    if (visit.is_claim) {
      failure.cause = PlacementCause::kClaim;
    } else if (witness.iteration > 1 || depends_on(a, true) || depends_on(b, true)) {
      failure.cause = PlacementCause::kLoop;
    } else if (depends_on(a, false) || depends_on(b, false)) {
      failure.cause = PlacementCause::kBranch;
    } else if (traits.operands.is_index && failure.first != ValueId::kAbsent) {
      failure.cause = PlacementCause::kIndex;
    }
  }

  std::string symbol_name(std::uint32_t symbol) const {
    if (const auto dim = dim_names_.find(symbol); dim != dim_names_.end()) return dim->second;
    return std::string(model_.name_of(static_cast<ValueId>(symbols_[symbol])));
  }

  struct Variable {
    std::uint32_t symbol;
    std::int64_t above;  // trip counts: the number is greater than this
    bool is_trip_count;
  };

  const Analysis& analysis_;
  const Model& model_;
  Placement& out_;
  DeviceSources& sources_;
  std::map<std::uint64_t, Classes>& classes_;  // by symbol's value or dim; kept between passes
  DiagramStore store_;
  std::vector<State> states_;
  std::map<State, std::uint32_t> state_ids_;
  std::vector<OperatorTraits> traits_;          // by operator
  std::vector<Placed> current_;                 // by value: of the visit under way
  std::vector<std::vector<GraphId>> bodies_;
  std::vector<NodeOrder> orders_;               // by graph, made on first use
  std::vector<bool> has_order_, active_;        // by graph
  std::vector<std::vector<Summary>> summaries_; // by function
  std::vector<std::uint64_t> symbols_;          // the value (or 2^32 + dim) of each open condition or number
  std::vector<Variable> variables_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> variable_of_;
  std::map<std::uint32_t, std::uint32_t> dim_symbols_;
  std::map<std::uint32_t, std::string> dim_names_;
  std::map<std::string_view, int> targets_;     // devices of Transfers, as written
  std::map<NodeId, Record> records_;
  std::map<std::pair<NodeId, std::size_t>, PlacementChange> changes_;
  std::map<std::pair<NodeId, std::size_t>, std::array<std::uint64_t, 2>> branch_devices_;
  std::set<NodeId> limited_;
  std::uint32_t next_key_ = kClaimBase;
  std::vector<LoopFrame> loops_;
  std::vector<NodeId> calls_;
  CallAttributes attributes_{model_};  // of the call that is being followed
  std::uint64_t budget_;
  int depth_ = 0;
  bool needs_another_pass_ = false;
};

std::vector<std::string> Placement::devices(ValueId value) const {
  if (!any_source_) return {sources_.names()[static_cast<std::size_t>(sources_.default_device())]};
  const std::uint64_t bits = devices_[static_cast<std::size_t>(value)];
  std::vector<std::string> names;
  if (bits == kAnywhere) return names;
  for (std::size_t d = 0; d < sources_.names().size(); ++d)
    if ((bits >> d) & 1U) names.push_back(sources_.names()[d]);
  std::sort(names.begin(), names.end());
  return names;
}

Origin Placement::origin(const Analysis& analysis, ValueId value, std::string_view device) const {
  const Model& model = analysis.model();
  const auto& names = sources_.names();
  const auto at = std::find(names.begin(), names.end(), device);
  const int number = at == names.end() ? -1 : static_cast<int>(at - names.begin());
  if (number < 0 || devices_.empty()) return {value, model.value(value).producer};
  const auto on_device = [&](ValueId candidate) { return candidate != ValueId::kAbsent && on(candidate, number); };
  // Walks from body to body: bounded, since carried values lead back to themselves.
  for (std::size_t steps = 0; steps < 10'000; ++steps) {
    const Value& self = model.value(value);
    if (self.origin != ValueOrigin::kNode) {
      const Graph& graph = model.graph(self.graph);
      if (self.origin != ValueOrigin::kInput || graph.kind != GraphKind::kSubgraph || graph.owner == NodeId::kNone) return {value, NodeId::kNone};
      // A body's input: the carried value's start, else what the body hands on.
      const Node& owner = model.node(graph.owner);
      const std::string_view op = model.text(model.op(owner).name);
      const auto operands = model.operands(owner);
      const std::size_t start = self.result_index;
      if (start < operands.size() && on_device(operands[start])) {
        value = operands[start];
        continue;
      }
      const std::size_t output = op == "Loop" ? start - std::min<std::size_t>(start, 1) : start;
      if (output < graph.outputs.size() && on_device(graph.outputs[output])) {
        value = graph.outputs[output];
        continue;
      }
      return {value, NodeId::kNone};
    }
    const NodeId producer = self.producer;
    const Node& node = model.node(producer);
    const std::string_view op = model.text(model.op(node).name);
    if (sources_.node(producer) != DeviceSources::kUnplaced || op == "Transfer") return {value, producer};
    ValueId source = ValueId::kAbsent;
    const std::string_view domain = model.text(model.op(node).domain);
    if (domain.empty() && (op == "If" || op == "Loop" || op == "Scan")) {
      for (const Attribute& attribute : model.attributes(node)) {
        if (attribute.kind != AttributeKind::kGraph || attribute.graph == GraphId::kNone || source != ValueId::kAbsent) continue;
        const Graph& body = model.graph(attribute.graph);
        const std::size_t output = self.result_index + (op == "Loop" ? 1 : 0);
        if (output < body.outputs.size() && on_device(body.outputs[output])) source = body.outputs[output];
      }
      const std::size_t start = self.result_index + (op == "Loop" ? 2 : 0);
      if (source == ValueId::kAbsent && op != "If" && start < node.operand_count && on_device(model.operands(node)[start])) source = model.operands(node)[start];
    } else if (op != "Shape" && op != "Size") {
      for (const ValueId operand : model.operands(node))
        if (source == ValueId::kAbsent && on_device(operand)) source = operand;
    }
    if (source == ValueId::kAbsent) return {value, producer};
    value = source;
  }
  return {value, model.value(value).producer};
}

Placement place(const Analysis& analysis, const PlacementOptions& options) {
  std::map<std::uint64_t, Classes> classes;
  for (int pass = 1;; ++pass) {
    Placement placement(analysis, options);
    placement.any_source_ = placement.sources_.any() || options.default_device != "cpu";
    if (!placement.any_source_) return placement;
    if (Placer(analysis, placement, classes).run() || pass == kMaxPasses) return placement;
  }
}

}  // namespace tensorlint
