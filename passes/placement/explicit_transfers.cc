#include "passes/placement/explicit_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/graph/region_op.h"
#include "passes/dataflow/order.h"
#include "passes/placement/device_name.h"
#include "passes/placement/minimum_cut.h"
#include "passes/placement/operator_traits.h"
#include "passes/placement/tensor_facts.h"
#include "passes/placement/transfer.h"

namespace tensorlint::placement {
namespace {

using Vertex = MinimumCut::Vertex;
constexpr Vertex kAccelerator = MinimumCut::kSource, kCpu = MinimumCut::kSink, kNowhere = ~Vertex{0};
/// Multiplications that the cpu makes while it reads a byte: 10^11 a second, 12 GB a second.
constexpr double kProductsPerByte = 8;
/// The most that one tensor or node weighs, so that no sum of weights comes near MinimumCut::kInfinite.
constexpr double kMaxWeight = 0x1p36;

std::int64_t weight(double bytes, double times) {
  return static_cast<std::int64_t>(std::min(bytes * times, kMaxWeight));
}

/// Where a value is read: operand `index` of a node, or, without a node, as result `index` of the graph that makes it.
struct Use {
  NodeId node = NodeId::kNone;
  std::uint32_t index = 0;
  Vertex side = kNowhere;     // has to be there; kNowhere: may be anywhere
  bool is_host_read = false;  // by the host itself: from an accelerator that costs a copy, but no Transfer is needed
};

class TransferPlanner {
 public:
  TransferPlanner(const dataflow::Analysis& analysis, const PlacementOptions& options, const ProviderTable& provider)
      : analysis_(analysis),
        model_(analysis.model()),
        sources_(analysis, without_providers(options)),
        provider_(provider),
        cpu_(built_in_provider("cpu")),
        choices_(choose_providers(analysis, options.providers)),
        homes_(model_.values.size(), kNowhere),
        uses_(model_.values.size()),
        handed_out_(model_.values.size(), 0),
        is_stored_(model_.values.size(), false),
        node_sides_(model_.nodes.size(), kNowhere),
        reads_data_(model_.nodes.size(), false) {
    plan_.accelerator = provider.device;
  }

  Result<TransferPlan> run() {
    if (auto error = check_model()) return *std::move(error);
    const std::vector<GraphId> order = order_of_functions();
    for (const ValueId input : model_.graph(GraphId::kMain).inputs)
      homes_[index(input)] = side_of(sources_.value(input), model_.name_of(input), true);
    for (const GraphId function : order) visit_graph(function);
    visit_graph(GraphId::kMain);
    if (problem_) return *std::move(problem_);
    for (std::size_t v = 1; v < model_.values.size(); ++v) add_copies(static_cast<ValueId>(v));
    if (cut_.solve() >= MinimumCut::kInfinite) return Error{"no copies can satisfy the placement of this model", {}};
    for (std::size_t n = 0; n < node_sides_.size(); ++n)
      if (node_sides_[n] != kNowhere) ++(is_on_accelerator(node_sides_[n]) ? plan_.on_accelerator : plan_.on_cpu);
    place_what_follows_nothing();
    for (std::size_t v = 1; v < model_.values.size(); ++v) copy_where_needed(static_cast<ValueId>(v));
    return std::move(plan_);
  }

 private:
  static PlacementOptions without_providers(PlacementOptions options) {
    options.providers.clear();
    return options;
  }
  static std::size_t index(ValueId value) { return static_cast<std::size_t>(value); }
  bool is_on_accelerator(Vertex side) const {
    return side == kAccelerator || (side != kCpu && cut_.on_source_side(side));
  }
  std::string device(bool accelerator) const { return accelerator ? plan_.accelerator : "cpu"; }

  void stop(std::string why) {
    if (!problem_) problem_ = Error{std::move(why), {}};
  }

  std::optional<Error> check_model() const {
    if (analysis_.fatal_violation() != nullptr || !analysis_.early_uses().empty() || !model_.faults.empty() ||
        model_.graphs.empty())
      return Error{"the model has errors, which `tensorlint check` lists: it cannot be placed", {}};
    for (const ValueId operand : model_.operand_list)
      if (operand != ValueId::kAbsent && model_.value(operand).origin == ValueOrigin::kUndefined)
        return Error{fmt::format("`{}` is used but never defined", model_.name_of(operand)), {}};
    return std::nullopt;
  }

  /// The side that a source names; `by_default`: what no source places is on the default device, else on no side yet.
  Vertex side_of(int number, std::string_view what, bool by_default) {
    if (number == DeviceSources::kUnplaced) {
      if (!by_default) return kNowhere;
      number = sources_.default_device();
    }
    const std::string& name =
        number < DeviceSources::kManyDevices ? sources_.names()[static_cast<std::size_t>(number)] : std::string();
    if (name == "cpu") return kCpu;
    if (name != plan_.accelerator)
      stop(fmt::format("`{}` is placed on {}; a model is split between the cpu and {}", what,
                       name.empty() ? "a device too many" : name, plan_.accelerator));
    return kAccelerator;
  }

  // ---- how often a graph runs

  /// Every function that is called, callees first; fills in times_.
  std::vector<GraphId> order_of_functions() {
    std::vector<std::vector<std::pair<GraphId, double>>> inner(
        model_.graphs.size());  // graphs that one visit of a graph visits
    std::vector<std::uint32_t> waiting(model_.graphs.size(), 0);
    const auto visits = [&](GraphId from, GraphId to, double times) {
      inner[static_cast<std::size_t>(from)].emplace_back(to, times);
      ++waiting[static_cast<std::size_t>(to)];
    };
    for (std::size_t g = 0; g < model_.graphs.size(); ++g) {
      const Graph& graph = model_.graphs[g];
      if (graph.kind == GraphKind::kSubgraph) visits(graph.parent, static_cast<GraphId>(g), trips_of(graph.owner));
    }
    for (const Node& node : model_.nodes)
      if (const GraphId function = model_.op(node).function; function != GraphId::kNone)
        visits(node.graph, function, 1);
    times_.assign(model_.graphs.size(), 0);
    times_[0] = 1;
    std::vector<GraphId> ready, functions;
    for (std::size_t g = 0; g < model_.graphs.size(); ++g)
      if (waiting[g] == 0) ready.push_back(static_cast<GraphId>(g));
    for (std::size_t at = 0; at < ready.size(); ++at) {
      const auto graph = static_cast<std::size_t>(ready[at]);
      if (model_.graphs[graph].kind == GraphKind::kFunction && times_[graph] > 0) functions.push_back(ready[at]);
      for (const auto& [body, times] : inner[graph]) {
        times_[static_cast<std::size_t>(body)] += times_[graph] * times;
        if (--waiting[static_cast<std::size_t>(body)] == 0) ready.push_back(body);
      }
    }
    if (ready.size() < model_.graphs.size()) stop("functions call themselves");
    std::reverse(functions.begin(), functions.end());
    return functions;
  }

  double trips_of(NodeId owner) const {
    const Node& node = model_.node(owner);
    const RegionOp region = region_op(model_, node);
    if (region.kind == RegionKind::kIf) return 1;
    if (const auto known = known_integer(analysis_, value_at(model_.operands(node), region.trip_count_operand)))
      return static_cast<double>(std::clamp<std::int64_t>(*known, 0, 1'000'000));
    return static_cast<double>(kNominalExtent);
  }

  double times(GraphId graph) const { return times_[static_cast<std::size_t>(graph)]; }

  // ---- where values are and have to be

  void use(NodeId node, std::size_t operand, Vertex side, bool is_host_read = false) {
    const ValueId value = model_.operands(model_.node(node))[operand];
    if (value != ValueId::kAbsent)
      uses_[index(value)].push_back({node, static_cast<std::uint32_t>(operand), side, is_host_read});
  }

  /// A body hands `value` out at a place that is on `side`.
  void hand_out(GraphId body, std::size_t output, Vertex side) {
    const ValueId value = model_.graph(body).outputs[output];
    if (value == ValueId::kAbsent) return;
    uses_[index(value)].push_back({NodeId::kNone, static_cast<std::uint32_t>(output), side, false});
    // Only what the body itself makes, and hands out once, can be renamed to make room for a Transfer.
    const Value& made = model_.value(value);
    handed_out_[index(value)] += made.graph == body && made.origin == ValueOrigin::kNode ? 1 : 2;
  }

  void visit_graph(GraphId id) {
    const Graph& graph = model_.graph(id);
    if (graph.kind == GraphKind::kFunction)
      for (const ValueId input : graph.inputs) homes_[index(input)] = cut_.add_vertex();
    for (const ValueId initializer : graph.initializers) {
      const bool is_free = model_.value(initializer).initializer != nullptr;  // a sparse one stays where it is
      const Vertex placed = side_of(sources_.value(initializer), model_.name_of(initializer), !is_free);
      homes_[index(initializer)] = placed == kNowhere ? cut_.add_vertex() : placed;
      is_stored_[index(initializer)] = placed == kNowhere;
    }
    for (std::uint32_t n = 0; n < graph.node_count && !problem_; ++n) visit(static_cast<NodeId>(graph.first_node + n));
  }

  void visit(NodeId id) {
    const Node& node = model_.node(id);
    const Operator& op = model_.op(node);
    if (const RegionOp region = region_op(model_, node); region.kind != RegionKind::kNone)
      return visit_region(id, region);
    const auto operands = model_.operands(node);
    const auto results_on = [&](Vertex side) {
      for (const ValueId result : model_.results(node))
        if (result != ValueId::kAbsent) homes_[index(result)] = side;
    };
    const OperatorTraits traits = traits_of(model_, op);
    if (traits.devices.rule == DeviceRule::kArgument) {
      const Attribute* to = model_.attribute(node, "device");
      const auto target = to == nullptr ? std::nullopt : canonical_device(to->s);
      if (!target) return stop(fmt::format("the Transfer `{}` names no device", model_.label(id)));
      for (std::size_t i = 0; i < operands.size(); ++i) use(id, i, kNowhere);
      return results_on(side_of(sources_.number(*target), model_.label(id), true));
    }
    if (traits.devices.has_host_results()) {
      for (std::size_t i = 0; i < operands.size(); ++i) use(id, i, kNowhere);
      return results_on(kCpu);
    }
    const Vertex side = cut_.add_vertex();
    node_sides_[static_cast<std::size_t>(id)] = side;
    bind(id, side);
    double touched = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] == ValueId::kAbsent) continue;
      use(id, i, traits.devices.is_host(i) ? kCpu : side);
      if (traits.devices.is_host(i)) continue;
      touched += bytes_of(operands[i]);
      reads_data_[static_cast<std::size_t>(id)] = true;
    }
    for (const ValueId result : model_.results(node))
      if (result != ValueId::kAbsent) touched += bytes_of(result);
    results_on(side);
    if (traits.opcode == Opcode::kConstant) {
      for (const ValueId result : model_.results(node))
        if (result != ValueId::kAbsent) is_stored_[index(result)] = true;
    } else {
      cut_.add_edge(kAccelerator, side,
                    weight(touched + products_of(node, traits.opcode) / kProductsPerByte, times(node.graph)));
    }
  }

  /// Ties a node to a side that a source names or that alone has a kernel.
  void bind(NodeId id, Vertex side) {
    const Vertex placed = side_of(sources_.node(id), model_.label(id), false);
    const auto choice = choices_.find(id);
    const Node& node = model_.node(id);
    const bool bound = placed == kNowhere && choice != choices_.end();  // Constant has no kernels
    if (placed == kCpu || (bound && !choice->second.missing.empty())) cut_.add_edge(side, kCpu, MinimumCut::kInfinite);
    const bool only_there =
        bound && missing_kernel(analysis_, node, provider_).empty() && !missing_kernel(analysis_, node, *cpu_).empty();
    if (placed == kAccelerator || only_there) cut_.add_edge(kAccelerator, side, MinimumCut::kInfinite);
  }

  void visit_region(NodeId id, const RegionOp& region) {
    if (!region.has_graphs()) return stop(fmt::format("`{}` lacks a body or operands", model_.label(id)));
    switch (region.kind) {
      case RegionKind::kNone:
        return;
      case RegionKind::kCall:
        return call(id, region);
      case RegionKind::kIf:
        return branch(id, region);
      case RegionKind::kLoop:
      case RegionKind::kScan:
        return loop(id, region);
      case RegionKind::kSequenceMap:
        return stop("SequenceMap cannot be placed yet");
    }
  }

  void call(NodeId id, const RegionOp& region) {
    const Node& node = model_.node(id);
    const Graph& graph = model_.graph(region.body());
    for (std::size_t i = 0; i < node.operand_count; ++i)
      use(id, i, i < graph.inputs.size() ? homes_[index(graph.inputs[i])] : kNowhere);
    const auto results = model_.results(node);
    for (std::size_t r = 0; r < std::min(results.size(), graph.outputs.size()); ++r)
      if (results[r] != ValueId::kAbsent) homes_[index(results[r])] = homes_[index(graph.outputs[r])];
  }

  void branch(NodeId id, const RegionOp& region) {
    const Node& node = model_.node(id);
    const auto results = model_.results(node);
    std::vector<Vertex> slots(results.size());
    for (Vertex& slot : slots) slot = cut_.add_vertex();
    for (std::size_t i = 0; i < node.operand_count; ++i) use(id, i, kNowhere, true);
    for (const GraphId body : region.graphs) {
      visit_graph(body);
      for (std::size_t r = 0; r < std::min(results.size(), model_.graph(body).outputs.size()); ++r)
        hand_out(body, r, slots[r]);
    }
    for (std::size_t r = 0; r < results.size(); ++r)
      if (results[r] != ValueId::kAbsent) homes_[index(results[r])] = slots[r];
  }

  void loop(NodeId id, const RegionOp& region) {
    const Node& node = model_.node(id);
    const auto operands = model_.operands(node);
    const Graph& body = model_.graph(region.body());
    if (!region.fits(body)) return stop(fmt::format("the body of `{}` does not fit it", model_.label(id)));
    const auto set_home = [&](ValueId value, Vertex side) {
      if (value != ValueId::kAbsent) homes_[index(value)] = side;
    };
    for (std::size_t i = 0; i < region.control_operands; ++i) use(id, i, kNowhere, true);
    for (std::size_t i = 0; i < region.control_inputs; ++i) set_home(body.inputs[i], kCpu);
    std::vector<Vertex> slots(region.carried);
    for (std::size_t i = 0; i < region.carried; ++i) {
      slots[i] = cut_.add_vertex();
      use(id, region.carried_operand(i), slots[i]);
      set_home(body.inputs[region.carried_input(i)], slots[i]);
    }
    for (std::size_t s = 0; s < region.scanned; ++s) {
      const ValueId sequence = operands[region.scanned_operand(s)];
      if (sequence == ValueId::kAbsent) return stop(fmt::format("`{}` scans nothing", model_.label(id)));
      use(id, region.scanned_operand(s), kNowhere);  // a slice is where the sequence is
      set_home(body.inputs[region.slice_input(s)], homes_[index(sequence)]);
    }
    visit_graph(region.body());
    for (std::size_t i = 0; i < region.carried; ++i) hand_out(region.body(), region.carried_output(i), slots[i]);
    const auto results = model_.results(node);
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (region.is_carried_result(r)) {
        set_home(results[r], slots[r]);
      } else if (region.output_of_result(r) < body.outputs.size()) {
        set_home(results[r], homes_[index(body.outputs[region.output_of_result(r)])]);
      }
    }
  }

  // ---- what it costs

  double bytes_of(ValueId value) const {
    const DimPool& dims = analysis_.facts().dims();
    const auto known = dims.evaluate(tensor_bytes(analysis_, value), [](Dim) { return std::optional(kNominalExtent); });
    return known ? static_cast<double>(std::max<std::int64_t>(*known, 0))
                 : static_cast<double>(kNominalExtent * kNominalExtent);
  }

  double nominal(Dim extent) const {
    const auto known = analysis_.facts().dims().evaluate(extent, [](Dim) { return std::optional(kNominalExtent); });
    return static_cast<double>(std::max<std::int64_t>(known.value_or(kNominalExtent), 0));
  }

  /// Extents of an operand or result; empty where its rank is not known.
  std::vector<double> extents_of(ValueId value) const {
    std::vector<double> extents;
    if (value == ValueId::kAbsent || analysis_.fact(value).shape == ShapeId::kUnranked) return extents;
    for (const Dim extent : analysis_.facts().dims_of(analysis_.fact(value).shape)) extents.push_back(nominal(extent));
    return extents;
  }

  /// Multiplications of a MatMul, Gemm or Conv: the result's elements, each a sum over what is contracted.
  double products_of(const Node& node, Opcode opcode) const {
    const bool is_conv = opcode == Opcode::kConv;
    if (!(is_conv || opcode == Opcode::kMatMul) || node.operand_count < 2 || node.result_count == 0) return 0;
    const std::vector<double> operand = extents_of(model_.operands(node)[is_conv ? 1 : 0]),
                              result = extents_of(model_.results(node)[0]);
    if (operand.empty()) return 0;
    double products = 1;
    for (const double extent : result) products *= extent;
    if (!is_conv) {
      const Attribute* transposed = model_.attribute(node, "transA");
      return products * (transposed != nullptr && transposed->i != 0 ? operand.front() : operand.back());
    }
    for (std::size_t axis = 1; axis < operand.size(); ++axis) products *= operand[axis];  // channels of a group, kernel
    return products;
  }

  /// One copy serves all that read a value on the other side: the value's vertex, those of its readers, and one vertex
  /// for the copy in either direction, which is cut once.
  void add_copies(ValueId value) {
    const Vertex home = homes_[index(value)];
    std::set<Vertex> readers;
    std::int64_t host_reads = 0;
    for (const Use& one : uses_[index(value)]) {
      if (one.is_host_read) ++host_reads;
      if (one.side != kNowhere && one.side != home) readers.insert(one.side);
      if (one.side != kNowhere && one.node == NodeId::kNone && handed_out_[index(value)] > 1) {
        cut_.add_edge(home, one.side, MinimumCut::kInfinite);
        cut_.add_edge(one.side, home, MinimumCut::kInfinite);
      }
    }
    if (home == kNowhere) return;
    const double often = times(model_.value(value).graph);
    if (host_reads > 0) cut_.add_edge(home, kCpu, weight(static_cast<double>(kCopyOverhead * host_reads), often));
    if (readers.empty()) return;
    const std::int64_t bytes = weight(bytes_of(value) + static_cast<double>(kCopyOverhead), often);
    const Vertex down = cut_.add_vertex(), up = cut_.add_vertex();
    cut_.add_edge(home, down, bytes);
    cut_.add_edge(up, home, bytes);
    for (const Vertex reader : readers) {
      cut_.add_edge(down, reader, MinimumCut::kInfinite);
      cut_.add_edge(reader, up, MinimumCut::kInfinite);
    }
  }

  // ---- edits

  std::string new_name(std::string_view base) {
    std::string name = unused_name(model_, base);
    for (int i = 2; !new_names_.insert(name).second; ++i) name = unused_name(model_, fmt::format("{}_{}", base, i));
    return name;
  }

  /// Tags what would be on the default device otherwise: stored values, and nodes that read no data.
  void place_what_follows_nothing() {
    const bool by_default = sources_.names()[static_cast<std::size_t>(sources_.default_device())] != "cpu";
    for (std::size_t v = 1; v < model_.values.size(); ++v) {
      const Value& value = model_.values[v];
      if (!is_stored_[v] || value.origin != ValueOrigin::kInitializer || is_on_accelerator(homes_[v]) == by_default)
        continue;
      plan_.edits.push_back(
          AddMetadata{NodeId::kNone, static_cast<ValueId>(v), "tensorlint.device", device(!by_default)});
    }
    for (std::size_t n = 0; n < model_.nodes.size(); ++n) {
      const auto id = static_cast<NodeId>(n);
      if (node_sides_[n] == kNowhere || is_on_accelerator(node_sides_[n]) == by_default ||
          sources_.node(id) != DeviceSources::kUnplaced)
        continue;
      if (!reads_data_[n])
        plan_.edits.push_back(AddMetadata{id, ValueId::kAbsent, "tensorlint.device", device(!by_default)});
    }
  }

  int depth(GraphId graph) const {
    int depth = 0;
    for (; model_.graph(graph).kind == GraphKind::kSubgraph; graph = model_.graph(graph).parent) ++depth;
    return depth;
  }

  /// The node before which one copy of `value` serves all `readers`: out of all loops, as far into branches as can be;
  /// in the value's own graph where that hands the copy out.
  NodeId place_of_transfer(ValueId value, const std::vector<Use>& readers, bool hands_out) const {
    const auto owner = [&](NodeId node) { return model_.graph(model_.node(node).graph).owner; };
    std::vector<NodeId> places;
    for (const Use& reader : readers) {
      NodeId before = outermost_loop(model_, reader.node, value);
      while (hands_out && model_.node(before).graph != model_.value(value).graph) before = owner(before);
      places.push_back(before);
    }
    const auto deepest = [&] {
      return std::ranges::max_element(places, {}, [&](NodeId node) { return depth(model_.node(node).graph); });
    };
    const auto is_one_graph = [&] {
      return std::ranges::all_of(places,
                                 [&](NodeId node) { return model_.node(node).graph == model_.node(places[0]).graph; });
    };
    while (!is_one_graph()) {
      const auto at = deepest();
      *at = owner(*at);
    }
    return *std::ranges::min_element(places);
  }

  void copy_where_needed(ValueId value) {
    const Vertex home = homes_[index(value)];
    if (home == kNowhere) return;
    const bool from = is_on_accelerator(home);
    std::vector<Use> away, here;
    bool hands_out = false;
    for (const Use& one : uses_[index(value)]) {
      const bool apart = one.side != kNowhere && is_on_accelerator(one.side) != from;
      if (one.node == NodeId::kNone)
        hands_out = hands_out || apart;
      else
        (apart ? away : here).push_back(one);
    }
    if (away.empty() && !hands_out) return;
    ++plan_.transfers;
    const std::string to = device(!from), name(model_.name_of(value));
    std::string original = name, copied;
    if (hands_out) {
      // The body hands the copy out, under the name that its results have.
      copied = name;
      original = new_name(name_with_device(name, "before", to));
      const Value& made = model_.value(value);
      plan_.edits.push_back(SetResult{made.producer, made.result_index, original});
      for (const Use& one : here) plan_.edits.push_back(SetOperand{one.node, one.index, original});
    } else {
      copied = new_name(name_with_device(name, "on", to));
      for (const Use& one : away) plan_.edits.push_back(SetOperand{one.node, one.index, copied});
    }
    const NodeId before = away.empty() ? NodeId::kNone : place_of_transfer(value, away, hands_out);
    const GraphId graph = before == NodeId::kNone ? model_.value(value).graph : model_.node(before).graph;
    for (GraphEdit& edit :
         insert_transfer(new_name(name_with_device(name, "to", to)), original, copied, to, before, graph))
      plan_.edits.push_back(std::move(edit));
  }

  const dataflow::Analysis& analysis_;
  const Model& model_;
  DeviceSources sources_;
  const ProviderTable& provider_;
  std::shared_ptr<const ProviderTable> cpu_;
  std::map<NodeId, ProviderChoice> choices_;
  MinimumCut cut_;
  std::vector<Vertex> homes_;              // by value
  std::vector<std::vector<Use>> uses_;     // by value
  std::vector<std::uint32_t> handed_out_;  // by value: 1 where a Transfer may stand between, more where it cannot
  std::vector<bool> is_stored_;            // by value: a constant that nothing places
  std::vector<Vertex> node_sides_;         // by node; kNowhere: computes nothing itself
  std::vector<bool> reads_data_;           // by node: an operand decides where it runs
  std::vector<double> times_;              // by graph
  std::set<std::string> new_names_;
  std::optional<Error> problem_;
  TransferPlan plan_;
};

}  // namespace

Result<TransferPlan> make_transfers_explicit(const dataflow::Analysis& analysis, const PlacementOptions& options) {
  if (options.providers.size() != 1) return Error{"a model is split between the cpu and one provider", {}};
  if (options.providers[0]->device == "cpu")
    return Error{"a model is split between the cpu and a provider of another device", {}};
  return TransferPlanner(analysis, options, *options.providers[0]).run();
}

}  // namespace tensorlint::placement
