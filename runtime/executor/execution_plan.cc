#include "runtime/executor/execution_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "passes/dataflow/analysis.h"
#include "passes/losses/loss_sites.h"
#include "passes/placement/placement.h"
#include "runtime/executor/kernel_matcher.h"
#include "runtime/executor/readers.h"
#include "runtime/interpreter/graph_plan.h"

namespace tensorlint::runtime {
namespace {

constexpr std::size_t kNever = static_cast<std::size_t>(-1);
/// Values between the operand of a loss and what the program hands to it: casts and changes of shape.
constexpr std::size_t kNearest = 64;

/// The inputs of a run as declarations, so that facts have its extents.
dataflow::AnalysisOptions options_of(const Model& model, std::span<const HostValue> inputs,
                                     std::shared_ptr<Meter> meter) {
  dataflow::AnalysisOptions options;
  options.believes_shapes = false;
  options.meter = std::move(meter);
  const Graph& main = model.graph(GraphId::kMain);
  for (std::size_t i = 0; i < inputs.size() && i < main.inputs.size(); ++i) {
    if (!inputs[i].is_tensor()) continue;
    const HostTensor& tensor = inputs[i].tensor();
    dataflow::InputDeclaration declared{
        .dtypes = tensor.dtype(), .has_shape = true, .dims = {}, .range = {}, .device = {}};
    for (const std::int64_t extent : tensor.extents()) declared.dims.push_back(fmt::format("{}", extent));
    options.values.emplace(std::string(model.name_of(main.inputs[i])), std::move(declared));
  }
  return options;
}

/// Decides which copies the steps of a graph need, from where values are after each. Its tables are as wide as the
/// model, which may have any number of graphs: each puts back what it changed.
class CopyPlanner {
 public:
  CopyPlanner(const Model& model, const dataflow::Analysis& analysis, const Readers& readers, std::size_t devices)
      : model_(model),
        analysis_(analysis),
        readers_(readers),
        on_host_(model.values.size(), true),
        on_device_(devices, IdVector<ValueId, bool>(model.values.size())),
        last_host_read_(model.values.size(), kNever),
        last_device_read_(devices, IdVector<ValueId, std::size_t>(model.values.size(), kNever)) {}

  void plan(GraphExecution& graph) {
    find_last_reads(graph);
    std::vector<ValueId> used;
    for (std::size_t at = 0; at < graph.steps.size(); ++at) {
      PlanStep& step = graph.steps[at];
      std::vector<ValueId> touched;
      if (step.call) {
        plan_call(step, touched);
      } else {
        touched = host_reads(step);
        for (const ValueId value : touched)
          if (!on_host_[value]) copy_out(value, step.copies);
        for (const ValueId result : model_.results(model_.node(step.node)))
          if (result != ValueId::kAbsent) touched.push_back(result);
      }
      for (const ValueId value : touched) drop(value, at, graph.graph, step);
      used.insert(used.end(), touched.begin(), touched.end());
    }
    for (const ValueId output : model_.graph(graph.graph).outputs)
      if (output != ValueId::kAbsent && !on_host_[output]) copy_out(output, graph.last_copies);
    for (const ValueId value : used) forget(value);
  }

 private:
  std::vector<ValueId> host_reads(const PlanStep& step) const {
    std::vector<ValueId> values;
    for (const ValueId operand : model_.operands(model_.node(step.node)))
      if (operand != ValueId::kAbsent) values.push_back(operand);
    const auto captured = readers_.captured(step.node);
    values.insert(values.end(), captured.begin(), captured.end());
    return values;
  }

  void find_last_reads(const GraphExecution& graph) {
    for (std::size_t at = 0; at < graph.steps.size(); ++at) {
      const PlanStep& step = graph.steps[at];
      if (!step.call) {
        for (const ValueId value : host_reads(step)) last_host_read_[value] = at;
        continue;
      }
      for (const CallResult& result : step.call->results) on_host_[result.value] = false;
      for (const CallOperand& operand : step.call->operands)
        if (operand.value != ValueId::kAbsent)
          (operand.is_prepared() ? last_host_read_ : last_device_read_[step.call->device])[operand.value] = at;
    }
  }

  void plan_call(PlanStep& step, std::vector<ValueId>& touched) {
    const KernelCall& call = *step.call;
    for (const CallOperand& operand : call.operands) {
      if (!operand.is_given()) continue;
      if (operand.value != ValueId::kAbsent) touched.push_back(operand.value);
      if (operand.is_prepared()) {
        if (operand.value != ValueId::kAbsent && !on_host_[operand.value]) copy_out(operand.value, step.copies);
        const std::uint64_t bytes =
            operand.value == ValueId::kAbsent ? element_bytes(call.results[0].dtype) : bytes_of(operand.value);
        step.call_copies.push_back({.value = operand.value, .to_device = true, .device = call.device, .bytes = bytes});
      } else if (!on_device_[call.device][operand.value]) {
        // From one device to another through the host.
        if (!on_host_[operand.value]) copy_out(operand.value, step.copies);
        step.copies.push_back(
            {.value = operand.value, .to_device = true, .device = call.device, .bytes = bytes_of(operand.value)});
        on_device_[call.device][operand.value] = true;
      }
    }
    if (const std::uint64_t bytes = report_bytes(call); bytes > 0)
      step.call_copies.push_back({.to_device = false, .device = call.device, .bytes = bytes});
    for (const CallResult& result : call.results) {
      on_device_[call.device][result.value] = true;
      touched.push_back(result.value);
      step.result_bytes.push_back(bytes_of(result.value));
    }
    if (call.gradient) {
      step.gradient_bytes = bytes_of(call.gradient->value);
      step.call_copies.push_back({.to_device = false, .device = call.device, .bytes = step.gradient_bytes});
    }
  }

  void copy_out(ValueId value, std::vector<PlannedCopy>& copies) {
    std::size_t device = 0;
    while (!on_device_[device][value]) ++device;
    copies.push_back({.value = value, .to_device = false, .device = device, .bytes = bytes_of(value)});
    on_host_[value] = true;
  }

  /// Gives back what the value takes on the host, where nothing after the step needs it there. What a body reads of
  /// the graphs around it is theirs.
  void drop(ValueId value, std::size_t at, GraphId graph, PlanStep& step) {
    if (model_.value(value).graph != graph) return;
    const auto is_after = [&](std::size_t read) { return read != kNever && read > at; };
    const bool host = readers_.is_output(value) || is_after(last_host_read_[value]);
    bool device = false;  // that will read it and does not have it
    for (std::size_t each = 0; each < on_device_.size(); ++each)
      device = device || (is_after(last_device_read_[each][value]) && !on_device_[each][value]);
    if (on_host_[value] && !host && !device) {
      on_host_[value] = false;
      step.host_drops.push_back(value);
    }
  }

  void forget(ValueId value) {
    on_host_[value] = true;
    last_host_read_[value] = kNever;
    for (auto& values : on_device_) values[value] = false;
    for (auto& reads : last_device_read_) reads[value] = kNever;
  }

  std::uint64_t bytes_of(ValueId value) const {
    const Fact& fact = analysis_.fact(value);
    std::uint64_t bytes = element_bytes(*fact.dtypes.single());
    for (const Dim dim : analysis_.facts().dims_of(fact.shape))
      bytes *= static_cast<std::uint64_t>(*analysis_.facts().dims().as_constant(dim));
    return bytes;
  }

  const Model& model_;
  const dataflow::Analysis& analysis_;
  const Readers& readers_;
  IdVector<ValueId, bool> on_host_;
  std::vector<IdVector<ValueId, bool>> on_device_;  ///< by device
  IdVector<ValueId, std::size_t> last_host_read_;
  std::vector<IdVector<ValueId, std::size_t>> last_device_read_;
};

}  // namespace

GraphExecution::Copies GraphExecution::copies() const {
  Copies all;
  const auto add = [&](const PlannedCopy& copy) {
    (copy.to_device ? all.in : all.out) += 1;
    (copy.to_device ? all.bytes_in : all.bytes_out) += copy.bytes;
  };
  for (const PlanStep& step : steps) {
    std::ranges::for_each(step.copies, add);
    std::ranges::for_each(step.call_copies, add);
  }
  std::ranges::for_each(last_copies, add);
  return all;
}

NodeId GraphExecution::peak_node(std::size_t device) const {
  const MemoryPlan& memory = schedule.memory[device];
  const std::size_t at = memory.live_at;
  return memory.bytes > 0 && at < schedule.commands.size() ? steps[schedule.commands[at].step].node : NodeId::kNone;
}

std::uint64_t report_bytes(const KernelCall& call) {
  if (const auto* const movement = std::get_if<MovementCall>(&call.request))
    return movement->parts.back().indices >= 0 && !movement->parts.back().skips_bad_indices ? 2 * sizeof(std::int64_t)
                                                                                            : 0;
  const auto* const loss = std::get_if<kernels::ClassLoss>(&call.request);
  return loss != nullptr && loss->kind != kernels::ClassLossKind::kCrossEntropyProbabilities ? 2 * sizeof(std::int64_t)
                                                                                             : 0;
}

const GraphExecution* ExecutionPlan::graph_of(std::uint64_t command) const {
  const auto has = [&](const GraphExecution& graph) {
    return command >= graph.first_command && command - graph.first_command < graph.schedule.commands.size();
  };
  if (has(*this)) return this;
  for (const auto& [id, graph] : bodies)
    if (has(graph)) return &graph;
  return nullptr;
}

namespace {

/// What a node that does not run by itself belongs to.
struct Part {
  NodeId call = NodeId::kNone;
  bool is_unused = false;
};

class Planner {
 public:
  Planner(const Model& model, std::span<const HostValue> inputs, std::span<const std::string> devices,
          const PlanOptions& options)
      : model_(model),
        order_(model),
        devices_(devices),
        analysis_(dataflow::analyse(model, options_of(model, inputs, options.meter))),
        readers_(model),
        copies_(model, analysis_, readers_, devices.size()),
        with_gradients_(options.with_gradients),
        places_(devices.size() > 1 ? find_places() : IdVector<NodeId, std::size_t>()),
        matcher_(analysis_, readers_, options.shared_bytes, places_),
        calls_(matcher_.find()) {
    if (!places_.empty()) {
      follow_places();
    } else if (options.sides == Sides::kCost) {
      leave_what_is_not_worth_copies();
    }
    if (options.cublaslt) choose_cublaslt(options.cublaslt);
    for (const auto& [node, call] : calls_) {
      for (const NodeId each : call.nodes) parts_[each] = {node, false};
      for (const NodeId each : call.unused) parts_[each] = {node, true};
    }
  }

  Result<ExecutionPlan> run() {
    if (order_.steps(GraphId::kMain).is_cyclic) return Error{"nodes of the graph depend on each other", {}};
    if (with_gradients_)
      if (auto missing = add_gradients()) return *std::move(missing);
    ExecutionPlan plan;
    plan_graph(plan);
    for (const GraphId graph : model_.graphs.ids()) {
      const NodeList& nodes = model_.graph(graph).nodes;
      const bool may_run = std::ranges::any_of(nodes, [&](NodeId node) { return analysis_.is_visited(node); });
      if (graph == GraphId::kMain || !may_run || order_.steps(graph).is_cyclic || !takes_inputs_as_they_are(graph))
        continue;
      GraphExecution& body = plan.bodies[graph];
      body.graph = graph;
      plan_graph(body);
    }
    std::uint64_t commands = plan.schedule.commands.size();
    plan.events = plan.schedule.events;
    for (auto& [id, graph] : plan.bodies) {
      graph.first_command = std::exchange(commands, commands + graph.schedule.commands.size());
      graph.first_event = std::exchange(plan.events, plan.events + graph.schedule.events);
    }
    plan.device_bytes = device_bytes(plan);
    plan.calls = std::move(calls_);
    return plan;
  }

 private:
  static bool is_loss(const KernelCall& call) {
    return std::holds_alternative<kernels::PointwiseLoss>(call.request) ||
           std::holds_alternative<kernels::ClassLoss>(call.request);
  }

  /// Asks the call of each loss for its gradient.
  std::optional<Error> add_gradients() {
    bool has_loss = false;
    for (const losses::LossSite& site : losses::find_losses(analysis_)) {
      if (site.anchor == NodeId::kNone || !analysis_.is_visited(site.anchor)) continue;
      has_loss = true;
      const auto part = parts_.find(site.anchor);
      KernelCall* const call = part == parts_.end() || part->second.is_unused ? nullptr : &calls_.at(part->second.call);
      const auto refuse = [&](std::string_view why) {
        return Error{
            fmt::format("node `{}` ({}): no kernel computes the gradient of this {}: {}", model_.label(site.anchor),
                        model_.text(model_.op(model_.node(site.anchor)).name), ops::to_text(site.kind), why),
            {}};
      };
      if (call == nullptr || !is_loss(*call)) {
        const auto left = left_.find(site.anchor);
        const std::string_view reason = left != left_.end() ? left->second : matcher_.reason(site.anchor);
        return refuse(call != nullptr  ? fmt::format("it is computed by `{}`", call->kernel)
                      : reason.empty() ? std::string("it runs in the interpreter")
                                       : std::string(reason));
      }
      if (call->gradient) continue;
      if (!takes_prediction_first(site, *call)) return refuse("its kernel gives the one by another operand");
      const Fact& fact = analysis_.fact(call->operands[0].value);
      CallResult& gradient = call->gradient.emplace();
      gradient.value = call->operands[0].value;
      gradient.dtype = *fact.dtypes.single();
      for (const Dim dim : analysis_.facts().dims_of(fact.shape))
        gradient.extents.push_back(*analysis_.facts().dims().as_constant(dim));
    }
    if (!has_loss) return Error{"no node of the model is known as a loss, so there is no gradient to compute", {}};
    return std::nullopt;
  }

  /// The first operand is the prediction, or made of it, or what the call makes it of; operands of a loss that is
  /// symmetric are swapped for that. A target may be what the prediction is made of, as that of an autoencoder.
  bool takes_prediction_first(const losses::LossSite& site, KernelCall& call) const {
    const auto likeness = [&](const CallOperand& operand) {
      const ValueId value = operand.value;
      if (operand.is_prepared() || value == ValueId::kAbsent) return 0;
      if (value == site.prediction || value == site.prediction_source) return 3;
      if (value == site.target || value == site.target_source) return 0;
      if (is_made_of(value, site.prediction, site.prediction_source)) return 2;
      return is_made_of(site.prediction, value, value) ? 1 : 0;
    };
    const int first = likeness(call.operands[0]), second = likeness(call.operands[1]);
    const bool is_first = first > 0 && first >= second, is_second = second > first;
    const auto* const pointwise = std::get_if<kernels::PointwiseLoss>(&call.request);
    if (pointwise == nullptr || is_first || !is_second) return is_first;
    using Kind = kernels::PointwiseKind;
    if (pointwise->kind != Kind::kSquared && pointwise->kind != Kind::kAbsolute && pointwise->kind != Kind::kHuber &&
        pointwise->kind != Kind::kSmoothL1)
      return false;
    if (call.operands[0].is_prepared()) return false;
    std::swap(call.operands[0], call.operands[1]);
    return true;
  }

  /// One of the two, or computed from it by the nearest nodes.
  bool is_made_of(ValueId value, ValueId one, ValueId other) const {
    if (value == ValueId::kAbsent) return false;
    std::set<ValueId> seen{value};
    std::vector<ValueId> pending{value};
    for (std::size_t at = 0; at < pending.size() && pending.size() < kNearest; ++at) {
      if (pending[at] == one || pending[at] == other) return true;
      const NodeId node = model_.value(pending[at]).producer;
      if (node == NodeId::kNone) continue;
      const auto operands = model_.operands(model_.node(node));
      for (const ValueId operand : operands.first(std::min(operands.size(), kNearest)))
        if (operand != ValueId::kAbsent && seen.insert(operand).second) pending.push_back(operand);
    }
    return false;
  }

  /// The name of a call says which it is, and why.
  void choose_cublaslt(const CublasLtChoice& choice) {
    for (auto& [node, call] : calls_) {
      const auto* const product = std::get_if<std::shared_ptr<const kernels::MatrixProduct>>(&call.request);
      if (product == nullptr) continue;
      const std::string why_not = choice(**product, call.operands[2].is_given());
      call.uses_cublaslt = why_not.empty();
      call.kernel +=
          why_not.empty() ? std::string(", by cublasLt") : fmt::format(", not by cublasLt because {}", why_not);
    }
  }

  void leave_what_is_not_worth_copies() {
    for (const NodeId left : calls_not_worth_copies(analysis_, readers_, calls_)) {
      const KernelCall& call = calls_.at(left);
      if (with_gradients_ && is_loss(call)) continue;
      for (const NodeId node : call.nodes)
        left_[node] = fmt::format("copies for `{}` cost more than running here", call.kernel);
      calls_.erase(left);
    }
  }

  /// Tags and Transfers of the model say where values are, and so where calls run: numbers of `place_names_`. None
  /// where it has none of them.
  IdVector<NodeId, std::size_t> find_places() {
    const placement::Placement placement = placement::place(analysis_, {});
    if (!placement.any_source()) return {};
    IdVector<NodeId, std::size_t> places(model_.nodes.size());
    std::map<std::set<std::string>, std::size_t> numbers;
    for (const NodeId node : model_.nodes.ids()) {
      std::set<std::string> names;
      for (const ValueId result : model_.results(model_.node(node)))
        if (result != ValueId::kAbsent) names.merge(set_of(placement.devices(result)));
      const auto [known, is_new] = numbers.emplace(names, place_names_.size());
      if (is_new) place_names_.push_back(std::move(names));
      places[node] = known->second;
    }
    return places;
  }

  void follow_places() {
    for (auto call = calls_.begin(); call != calls_.end();) {
      const std::set<std::string>& names = place_names_[places_[call->first]];
      const auto device = names.size() == 1 ? std::ranges::find(devices_, *names.begin()) : devices_.end();
      if (device != devices_.end()) {
        call->second.device = static_cast<std::size_t>(device - devices_.begin());
        ++call;
        continue;
      }
      const std::string why = names.size() != 1 ? "the model does not place it on one device"
                                                : fmt::format("the model places it on {}", *names.begin());
      for (const NodeId node : call->second.nodes) left_[node] = why;
      call = calls_.erase(call);
    }
  }
  static std::set<std::string> set_of(const std::vector<std::string>& names) { return {names.begin(), names.end()}; }

  /// An input that is optional may be handed a tensor, which only the interpreter wraps.
  bool takes_inputs_as_they_are(GraphId graph) const {
    return std::ranges::none_of(model_.graph(graph).inputs, [&](ValueId input) {
      const TypeDecl* const type = model_.value(input).type;
      return type != nullptr && type->kind == TypeKind::kOptional;
    });
  }

  /// As much of it as is shown.
  std::string label_of(NodeId node) const {
    constexpr std::size_t kShown = 256;
    return model_.label(node).substr(0, kShown);
  }

  void plan_graph(GraphExecution& plan) {
    const auto& nodes = order_.steps(plan.graph).nodes;
    plan.places.reserve(nodes.size());
    plan.steps.reserve(static_cast<std::size_t>(std::ranges::count_if(nodes, [&](NodeId node) {
      const auto part = parts_.find(node);
      return part == parts_.end() || part->second.call == node;
    })));
    for (const NodeId node : nodes) {
      const auto part = parts_.find(node);
      NodePlace place{.node = node, .reason = {}};
      const bool is_call = part != parts_.end() && part->second.call == node;
      if (part == parts_.end()) {
        const auto left = left_.find(node);
        place.reason = left != left_.end() ? left->second : std::string(matcher_.reason(node));
        if (place.reason.empty()) place.reason = "no kernel";
      } else if (part->second.is_unused) {
        place.kind = NodePlace::Kind::kUnused;
        place.reason = fmt::format("read only by nodes that `{}` replaces", label_of(part->second.call));
      } else {
        place.kind = NodePlace::Kind::kKernel;
        place.device = calls_.at(part->second.call).device;
        place.reason = is_call ? calls_.at(node).kernel : fmt::format("part of `{}`", label_of(part->second.call));
      }
      plan.places.push_back(std::move(place));
      if (part != parts_.end() && !is_call) continue;
      PlanStep& step = plan.steps.emplace_back();
      step.node = node;
      if (is_call) step.call = &calls_.at(node);
    }
    copies_.plan(plan);
    plan.schedule = make_schedule(plan.steps, plan.last_copies, devices_.size(), pairs_left_);
  }

  /// Of graphs that run within another. Any number of functions may call each other.
  std::vector<GraphId> graphs_within(GraphId graph) const {
    std::vector<GraphId> graphs;
    for (const NodeId node : model_.graph(graph).nodes) {
      const GraphId function = model_.op(model_.node(node)).function;
      if (function != GraphId::kNone) graphs.push_back(function);
      for (const Attribute& attribute : model_.attributes(model_.node(node))) {
        if (attribute.graph != GraphId::kNone) graphs.push_back(attribute.graph);
        graphs.insert(graphs.end(), attribute.graphs.begin(), attribute.graphs.end());
      }
    }
    return graphs;
  }

  /// By graph: its own, and those of the largest one that runs within it. For each device.
  std::vector<std::uint64_t> device_bytes(const ExecutionPlan& plan) const {
    enum class State : std::uint8_t { kNew, kOpen, kDone };
    IdVector<GraphId, State> states(model_.graphs.size(), State::kNew);
    // 0 until it is known: of a function that calls itself, as if it did not.
    std::vector<IdVector<GraphId, std::uint64_t>> bytes(devices_.size(),
                                                        IdVector<GraphId, std::uint64_t>(model_.graphs.size(), 0));
    std::vector<GraphId> pending{GraphId::kMain};
    while (!pending.empty()) {
      const GraphId graph = pending.back();
      const std::vector<GraphId> inner = states[graph] == State::kDone ? std::vector<GraphId>() : graphs_within(graph);
      if (states[graph] == State::kNew) {
        states[graph] = State::kOpen;
        std::ranges::copy_if(inner, std::back_inserter(pending),
                             [&](GraphId each) { return states[each] == State::kNew; });
        continue;
      }
      pending.pop_back();
      if (std::exchange(states[graph], State::kDone) == State::kDone) continue;
      const auto body = plan.bodies.find(graph);
      const GraphExecution* const own = graph == GraphId::kMain     ? &plan
                                        : body == plan.bodies.end() ? nullptr
                                                                    : &body->second;
      for (std::size_t device = 0; device < devices_.size(); ++device) {
        std::uint64_t within = 0;
        for (const GraphId each : inner) within = std::max(within, bytes[device][each]);
        const std::uint64_t used = own == nullptr ? 0 : own->schedule.memory[device].bytes;
        std::uint64_t& all = bytes[device][graph];
        if (__builtin_add_overflow(offset_within(used, within), within, &all)) all = UINT64_MAX;
      }
    }
    std::vector<std::uint64_t> of_devices;
    for (const auto& of_device : bytes) of_devices.push_back(of_device[GraphId::kMain]);
    return of_devices;
  }

  const Model& model_;
  const GraphPlan order_;
  const std::span<const std::string> devices_;
  std::size_t pairs_left_ = kMostPairs;  // of memory plans, of all graphs together
  const dataflow::Analysis analysis_;
  const Readers readers_;
  CopyPlanner copies_;
  const bool with_gradients_;
  std::vector<std::set<std::string>> place_names_;  ///< of devices
  const IdVector<NodeId, std::size_t> places_;      ///< by node; empty: the model places none
  KernelMatcher matcher_;
  std::map<NodeId, KernelCall> calls_;
  std::map<NodeId, std::string> left_;  ///< why calls that there are were left to the interpreter
  std::map<NodeId, Part> parts_;
};

}  // namespace

Result<ExecutionPlan> plan_execution(const Model& model, std::span<const HostValue> inputs,
                                     std::span<const std::string> devices, const PlanOptions& options) {
  return Planner(model, inputs, devices, options).run();
}

}  // namespace tensorlint::runtime
