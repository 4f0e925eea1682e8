#include "passes/placement/explicit_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/id_vector.h"
#include "ir/graph/region_op.h"
#include "passes/placement/device_name.h"
#include "passes/placement/graph_visits.h"
#include "passes/placement/minimum_cut.h"
#include "passes/placement/nominal_work.h"
#include "passes/placement/operator_traits.h"
#include "passes/placement/transfer.h"

namespace tensorlint::placement {
namespace {

using Vertex = MinimumCut::Vertex;
constexpr Vertex kAccelerator = MinimumCut::kSource, kCpu = MinimumCut::kSink, kNowhere = ~Vertex{0};

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
        cpu_(built_in_provider(provider.host)),
        choices_(choose_providers(analysis, options.providers)),
        work_(analysis),
        value_sides_(model_.values.size(), kNowhere),
        uses_(model_.values.size()),
        yields_(model_.values.size(), 0),
        is_stored_(model_.values.size(), false),
        node_sides_(model_.nodes.size(), kNowhere),
        reads_data_(model_.nodes.size(), false) {
    plan_.accelerator = provider.device;
  }

  Result<TransferPlan> run() {
    if (auto error = check_model()) return *std::move(error);
    auto visits = count_visits(analysis_);
    if (!visits) return Error{"functions call themselves", {}};
    visits_ = *std::move(visits);
    for (const ValueId input : model_.graph(GraphId::kMain).inputs)
      value_sides_[input] = side_of(sources_.value(input), model_.name_of(input), true);
    for (const GraphId function : visits_.functions) visit_graph(function);
    visit_graph(GraphId::kMain);
    if (problem_) return *std::move(problem_);
    const auto values = ids_below(model_.values.size(), ValueId{1});
    for (const ValueId value : values) add_copies(value);
    const auto cost = cut_.solve(kCutSteps + kCutStepsPerEdge * cut_.edges());
    if (!cost) return Error{"splitting this model needs more work than its size allows", {}};
    if (*cost >= MinimumCut::kInfinite) return Error{"no copies can satisfy the placement of this model", {}};
    for (const Vertex side : node_sides_)
      if (side != kNowhere) ++(is_on_accelerator(side) ? plan_.on_accelerator : plan_.on_cpu);
    place_what_follows_nothing();
    for (const ValueId value : values) copy_where_needed(value);
    if (problem_) return *std::move(problem_);
    return std::move(plan_);
  }

 private:
  static PlacementOptions without_providers(PlacementOptions options) {
    options.providers.clear();
    return options;
  }
  bool is_on_accelerator(Vertex side) const {
    return side == kAccelerator || (side != kCpu && cut_.on_source_side(side));
  }
  std::string device(bool accelerator) const { return accelerator ? plan_.accelerator : "cpu"; }

  /// Of the memory that a plan may take: each operand may need an edit, of some fifty times its bytes in the file.
  bool take(std::size_t bytes) {
    if (bytes > room_) stop("placing this model takes more memory than its size allows");
    if (problem_) return false;
    room_ -= bytes;
    return true;
  }

  void stop(std::string why) {
    if (!problem_) problem_ = Error{std::move(why), {}};
  }

  Error never_defined(ValueId value) const {
    return {fmt::format("`{}` is used but never defined", model_.name_of(value)), {}};
  }

  std::optional<Error> check_model() const {
    if (analysis_.fatal_violation() != nullptr || !analysis_.early_uses().empty() || !model_.faults.empty() ||
        model_.graphs.empty())
      return Error{"the model has errors, which `tensorlint check` lists: it cannot be placed", {}};
    for (const ValueId operand : model_.operand_list)
      if (operand != ValueId::kAbsent && model_.value(operand).origin == ValueOrigin::kUndefined)
        return never_defined(operand);
    for (const Graph& graph : model_.graphs)
      for (const ValueId output : graph.outputs)
        if (output != ValueId::kAbsent && model_.value(output).origin == ValueOrigin::kUndefined)
          return never_defined(output);
    return std::nullopt;
  }

  /// The side that a source names; `by_default`: what no source places is on the default device, else on no side yet.
  Vertex side_of(int number, std::string_view what, bool by_default) {
    if (number == DeviceSources::kUnplaced) {
      if (!by_default) return kNowhere;
      number = sources_.default_device();
    }
    const std::string& name = sources_.name(number);
    if (name == "cpu") return kCpu;
    if (name != plan_.accelerator)
      stop(fmt::format("`{}` is placed on {}; a model is split between the cpu and {}", what,
                       name.empty() ? "one of too many devices" : name, plan_.accelerator));
    return kAccelerator;
  }

  // ---- where values are and have to be

  void use(NodeId node, std::size_t operand, Vertex side, bool is_host_read = false) {
    const ValueId value = model_.operands(model_.node(node))[operand];
    if (value == ValueId::kAbsent || !take(2 * sizeof(Use))) return;
    uses_[value].push_back({node, static_cast<std::uint32_t>(operand), side, is_host_read});
  }

  /// Output `output` of a body is to be on `side`.
  void yield(GraphId body, std::size_t output, Vertex side) {
    const ValueId value = model_.graph(body).outputs[output];
    if (value == ValueId::kAbsent) return;
    uses_[value].push_back({NodeId::kNone, static_cast<std::uint32_t>(output), side, false});
    // Only what the body itself makes, and yields once, can be renamed to make room for a Transfer.
    const Value& made = model_.value(value);
    yields_[value] += made.graph == body && made.origin == ValueOrigin::kNode ? 1 : 2;
  }

  void visit_graph(GraphId id) {
    const Graph& graph = model_.graph(id);
    if (graph.kind == GraphKind::kFunction)
      for (const ValueId input : graph.inputs) value_sides_[input] = cut_.add_vertex();
    for (const ValueId initializer : graph.initializers) {
      const bool is_free = model_.value(initializer).initializer != nullptr;  // a sparse one stays where it is
      const Vertex placed = side_of(sources_.value(initializer), model_.name_of(initializer), !is_free);
      value_sides_[initializer] = placed == kNowhere ? cut_.add_vertex() : placed;
      is_stored_[initializer] = placed == kNowhere;
    }
    for (std::size_t n = 0; n < graph.nodes.size() && !problem_; ++n) visit(graph.nodes[n]);
  }

  void visit(NodeId id) {
    const Node& node = model_.node(id);
    const Operator& op = model_.op(node);
    if (const RegionOp region = region_op(model_, node); region.kind != RegionKind::kNone)
      return visit_region(id, region);
    const auto operands = model_.operands(node);
    const auto results_on = [&](Vertex side) {
      for (const ValueId result : model_.results(node))
        if (result != ValueId::kAbsent) value_sides_[result] = side;
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
    node_sides_[id] = side;
    bind(id, side);
    double touched = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] == ValueId::kAbsent) continue;
      use(id, i, traits.devices.is_host(i) ? kCpu : side);
      if (traits.devices.is_host(i)) continue;
      touched += work_.bytes_of(operands[i]);
      reads_data_[id] = true;
    }
    for (const ValueId result : model_.results(node))
      if (result != ValueId::kAbsent) touched += work_.bytes_of(result);
    results_on(side);
    if (traits.opcode == Opcode::kConstant) {
      for (const ValueId result : model_.results(node))
        if (result != ValueId::kAbsent) is_stored_[result] = true;
    } else {
      cut_.add_edge(
          kAccelerator, side,
          cut_weight(touched + work_.products_of(node, traits.opcode) / kProductsPerByte, visits_.times[node.graph]));
    }
  }

  /// Ties a node to a side that a source names or that alone has a kernel.
  void bind(NodeId id, Vertex side) {
    const Vertex placed = side_of(sources_.node(id), model_.label(id), false);
    const auto choice = std::ranges::lower_bound(choices_, id, {}, &ProviderChoices::value_type::first);
    const Node& node = model_.node(id);
    const bool bound =
        placed == kNowhere && choice != choices_.end() && choice->first == id;  // Constant has no kernels
    if (placed == kCpu || (bound && choice->second.missing.any())) cut_.add_edge(side, kCpu, MinimumCut::kInfinite);
    const bool only_there = bound && !find_missing_kernel(analysis_, node, provider_).any() &&
                            find_missing_kernel(analysis_, node, *cpu_).any();
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
      use(id, i, i < graph.inputs.size() ? value_sides_[graph.inputs[i]] : kNowhere);
    const auto results = model_.results(node);
    for (std::size_t r = 0; r < std::min(results.size(), graph.outputs.size()); ++r)
      if (results[r] != ValueId::kAbsent) value_sides_[results[r]] = value_sides_[graph.outputs[r]];
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
        yield(body, r, slots[r]);
    }
    for (std::size_t r = 0; r < results.size(); ++r)
      if (results[r] != ValueId::kAbsent) value_sides_[results[r]] = slots[r];
  }

  void loop(NodeId id, const RegionOp& region) {
    const Node& node = model_.node(id);
    const auto operands = model_.operands(node);
    const Graph& body = model_.graph(region.body());
    if (!region.fits(body)) return stop(fmt::format("the body of `{}` does not fit it", model_.label(id)));
    const auto set_side = [&](ValueId value, Vertex side) {
      if (value != ValueId::kAbsent) value_sides_[value] = side;
    };
    for (std::size_t i = 0; i < region.control_operands; ++i) use(id, i, kNowhere, true);
    for (std::size_t i = 0; i < region.control_inputs; ++i) set_side(body.inputs[i], kCpu);
    std::vector<Vertex> slots(region.carried);
    for (std::size_t i = 0; i < region.carried; ++i) {
      slots[i] = cut_.add_vertex();
      use(id, region.carried_operand(i), slots[i]);
      set_side(body.inputs[region.carried_input(i)], slots[i]);
    }
    for (std::size_t s = 0; s < region.scanned; ++s) {
      const ValueId sequence = operands[region.scanned_operand(s)];
      if (sequence == ValueId::kAbsent) return stop(fmt::format("`{}` scans nothing", model_.label(id)));
      use(id, region.scanned_operand(s), kNowhere);  // a slice is where the sequence is
      set_side(body.inputs[region.slice_input(s)], value_sides_[sequence]);
    }
    visit_graph(region.body());
    for (std::size_t i = 0; i < region.carried; ++i) yield(region.body(), region.carried_output(i), slots[i]);
    const auto results = model_.results(node);
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (region.is_carried_result(r)) {
        set_side(results[r], slots[r]);
      } else if (region.output_of_result(r) < body.outputs.size()) {
        set_side(results[r], value_sides_[body.outputs[region.output_of_result(r)]]);
      }
    }
  }

  // ---- what it costs

  /// One copy serves all that read a value on the other side: the value's vertex, those of its readers, and one vertex
  /// for the copy in either direction, which is cut once.
  void add_copies(ValueId value) {
    const Vertex own = value_sides_[value];
    if (own == kNowhere) return;
    std::set<Vertex> readers;
    std::int64_t host_reads = 0;
    for (const Use& one : uses_[value]) {
      if (one.is_host_read) ++host_reads;
      if (one.side != kNowhere && one.side != own) readers.insert(one.side);
      if (one.side != kNowhere && one.node == NodeId::kNone && yields_[value] > 1) {
        cut_.add_edge(own, one.side, MinimumCut::kInfinite);
        cut_.add_edge(one.side, own, MinimumCut::kInfinite);
      }
    }
    const double often = visits_.times[model_.value(value).graph];
    if (host_reads > 0) cut_.add_edge(own, kCpu, cut_weight(static_cast<double>(kCopyOverhead * host_reads), often));
    if (readers.empty()) return;
    const std::int64_t bytes = cut_weight(work_.bytes_of(value) + static_cast<double>(kCopyOverhead), often);
    const Vertex down = cut_.add_vertex(), up = cut_.add_vertex();
    cut_.add_edge(own, down, bytes);
    cut_.add_edge(up, own, bytes);
    for (const Vertex reader : readers) {
      cut_.add_edge(down, reader, MinimumCut::kInfinite);
      cut_.add_edge(reader, up, MinimumCut::kInfinite);
    }
  }

  // ---- edits

  std::string new_name(std::string_view base) {
    std::string name = unused_name(model_, base);
    if (new_names_.insert(name).second) return name;
    int& number = last_numbers_.try_emplace(std::string(base), 1).first->second;
    do name = unused_name(model_, fmt::format("{}_{}", base, ++number));
    while (!new_names_.insert(name).second);
    return name;
  }

  /// Tags what would be on the default device otherwise: stored values, and nodes that read no data.
  void place_what_follows_nothing() {
    const bool by_default = sources_.name(sources_.default_device()) != "cpu";
    for (const ValueId id : ids_below(model_.values.size(), ValueId{1})) {
      const bool is_initializer = model_.value(id).origin == ValueOrigin::kInitializer;
      if (is_stored_[id] && is_initializer && is_on_accelerator(value_sides_[id]) != by_default)
        tag(NodeId::kNone, id, device(!by_default));
    }
    for (const NodeId id : ids_below<NodeId>(model_.nodes.size())) {
      if (node_sides_[id] == kNowhere || is_on_accelerator(node_sides_[id]) == by_default ||
          sources_.node(id) != DeviceSources::kUnplaced)
        continue;
      if (!reads_data_[id]) tag(id, ValueId::kAbsent, device(!by_default));
    }
  }

  /// What is written of it is longer than most of what it is written to.
  void tag(NodeId node, ValueId value, std::string device) {
    constexpr std::size_t kTag = 2 * sizeof(GraphEdit) + 512;
    if (take(kTag)) plan_.edits.push_back(AddMetadata{node, value, "tensorlint.device", std::move(device)});
  }

  static std::vector<NodeId> readers_of(const std::vector<Use>& uses) {
    std::vector<NodeId> readers;
    for (const Use& one : uses) readers.push_back(one.node);
    return readers;
  }

  void redirect(const std::vector<Use>& uses, const std::string& name) {
    for (const Use& one : uses) {
      if (!take(2 * sizeof(GraphEdit))) return;
      plan_.edits.push_back(SetOperand{one.node, one.index, name});
    }
  }

  void copy_where_needed(ValueId value) {
    const Vertex own = value_sides_[value];
    if (own == kNowhere || problem_) return;
    const bool from = is_on_accelerator(own);
    std::vector<Use> away, here;
    bool is_yielded = false;
    for (const Use& one : uses_[value]) {
      const bool apart = one.side != kNowhere && is_on_accelerator(one.side) != from;
      if (one.node == NodeId::kNone)
        is_yielded = is_yielded || apart;
      else
        (apart ? away : here).push_back(one);
    }
    if (away.empty() && !is_yielded) return;
    ++plan_.transfers;
    const std::string to = device(!from), name(model_.name_of(value));
    std::string original = name, copied;
    if (is_yielded) {
      // The body yields the copy, under the name of its output.
      copied = name;
      original = new_name(name_with_device(name, "before", to));
      const Value& made = model_.value(value);
      plan_.edits.push_back(SetResult{made.producer, made.result_index, original});
      redirect(here, original);
    } else {
      copied = new_name(name_with_device(name, "on", to));
      redirect(away, copied);
    }
    const NodeId before = away.empty() ? NodeId::kNone : transfer_before(model_, value, readers_of(away), is_yielded);
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
  ProviderChoices choices_;
  MinimumCut cut_;
  NominalWork work_;
  GraphVisits visits_;
  IdVector<ValueId, Vertex> value_sides_;
  IdVector<ValueId, std::vector<Use>> uses_;
  IdVector<ValueId, std::uint32_t> yields_;  // 1 where there is room for a Transfer before the output, more where not
  IdVector<ValueId, bool> is_stored_;        // a constant that nothing places
  IdVector<NodeId, Vertex> node_sides_;      // kNowhere: computes nothing itself
  IdVector<NodeId, bool> reads_data_;        // an operand decides where it runs
  std::set<std::string> new_names_;
  std::map<std::string, int> last_numbers_;  // of new names that begin alike: of many functions with the same names
  std::optional<Error> problem_;
  std::size_t room_ = (std::size_t{48} << 20) + 8 * model_.input_bytes;
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
