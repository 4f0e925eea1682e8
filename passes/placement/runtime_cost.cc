#include "passes/placement/runtime_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/id_vector.h"
#include "ir/graph/region_op.h"
#include "passes/dataflow/order.h"
#include "passes/placement/call_attributes.h"
#include "passes/placement/device_name.h"
#include "passes/placement/operator_traits.h"
#include "passes/placement/tensor_facts.h"
#include "passes/placement/transfer.h"

namespace tensorlint::placement {
namespace {

constexpr int kMaxNesting = 192;
constexpr std::string_view kTooManyDevices = "there are too many devices";
constexpr std::string_view kTooManyCases = "more combinations of conditions are open than are counted";
/// Of all runs together, whatever was spent before them: a cost stays known where another search has ended early. The
/// costs of several models that one meter is for (`place`) reach no further beyond its allowance.
constexpr std::uint64_t kMaxCostSteps = std::uint64_t{24} << 20;
/// Buffers, and copies by node, beyond what the analysis may take.
constexpr std::uint64_t kMemory = std::uint64_t{56} << 20;
constexpr std::uint64_t kStepsPerBuffer = 4, kStepsPerName = 1, kStepsPerVisit = 16;

/// A tensor at run time: the same one under every name that hands it on.
struct Buffer {
  int home = 0;
  std::uint64_t held = 0;  // devices that have it
  bool stored = false;     // an initializer
  ValueId made_as = ValueId::kAbsent;
  std::optional<std::int64_t> number;  // conditions and trip counts, where they are known
};

/// Answers for open conditions, tried one after the other.
struct Answers {
  std::vector<bool> given;
  std::size_t at = 0;
  bool ask() {
    if (at == given.size()) given.push_back(false);
    return given[at++];
  }
  bool next() {
    at = 0;
    while (!given.empty() && given.back()) given.pop_back();
    if (given.empty()) return false;
    given.back() = true;
    return true;
  }
};

class Run {
 public:
  Run(const dataflow::Analysis& analysis, DeviceSources& sources, TensorBytes& bytes,
      const dataflow::NodeOrders& orders, Answers& answers, std::uint64_t& budget, std::uint64_t last_step)
      : analysis_(analysis),
        model_(analysis.model()),
        sources_(sources),
        bytes_(bytes),
        orders_(orders),
        answers_(answers),
        budget_(budget),
        last_step_(last_step),
        meter_(analysis.facts().meter()),
        current_(model_.values.size()) {
    case_.cost.bytes = case_.cost.setup_bytes = dims().constant(0);
    constexpr std::uint64_t kStepsPerOperator = 32;
    meter_.charge(kStepsPerOperator * model_.operators.size() + model_.values.size() / 16);
    for (const Operator& op : model_.operators) traits_.push_back(traits_of(model_, op));
  }

  CostCase run() {
    if (model_.graphs.empty()) return case_;
    for (const ValueId input : model_.graph(GraphId::kMain).inputs) {
      make(input, home(input));
      buffer(input).stored = model_.value(input).initializer != nullptr;
    }
    visit_graph(GraphId::kMain);
    for (const auto& [condition, holds] : conditions_) case_.conditions[model_.name_of(condition)] = holds;
    return std::move(case_);
  }

  const std::string& problem() const { return problem_; }

 private:
  DimPool& dims() { return analysis_.facts().dims(); }
  int home(ValueId value) const {
    const int device = sources_.value(value);
    return device == DeviceSources::kUnplaced ? sources_.default_device() : device;
  }
  Buffer& buffer(ValueId value) { return buffers_[current_[value]]; }

  void make(ValueId value, int device) {
    if (value == ValueId::kAbsent) return;
    meter_.charge(kStepsPerBuffer);
    current_[value] = static_cast<std::uint32_t>(buffers_.size());
    buffers_.push_back({device, std::uint64_t{1} << device, false, value, known_integer(analysis_, value)});
  }

  /// Of the attribute of a Transfer, which a loop reads in each iteration.
  std::optional<int> target_named(std::string_view text) {
    const auto [known, is_new] = targets_.try_emplace({text.data(), text.size()});
    if (is_new)
      if (const auto device = canonical_device(text)) known->second = sources_.number(*device);
    return known->second;
  }

  void copy(NodeId id, ValueId value, int to, bool keep) {
    Buffer& tensor = buffer(value);
    if (tensor.home >= DeviceSources::kManyDevices) return stop(std::string(kTooManyDevices));
    if (keep && ((tensor.held >> to) & 1U) != 0) return;
    if (keep) tensor.held |= std::uint64_t{1} << to;
    if (!spend(1)) return;
    const Dim bytes = bytes_.of(tensor.made_as);
    if (tensor.stored) {
      ++case_.cost.setup_copies;
      case_.cost.setup_bytes = dims().add(case_.cost.setup_bytes, bytes);
      return;
    }
    ++case_.cost.copies;
    case_.cost.bytes = dims().add(case_.cost.bytes, bytes);
    NodeCopies& node =
        case_.nodes.try_emplace(id, NodeCopies{0, dims().constant(0), 0, tensor.home, to, value}).first->second;
    ++node.copies;
    node.bytes = dims().add(node.bytes, bytes);
    if (later_iterations_ > 0) ++node.in_loop;
  }

  void stop(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
  }

  /// Of the budget, for buffers that are made; stops where it, or the work, does not reach.
  bool spend(std::uint64_t buffers) {
    meter_.charge(kStepsPerVisit);
    // Halves: what is allowed may be all that there is.
    const bool is_full = meter_.most_heap() / 2 > meter_.memory_allowed() / 2 + kMemory / 2;
    if (budget_ < buffers || meter_.steps() > last_step_ || is_full) stop("a run has more nodes than are followed");
    budget_ -= std::min(budget_, buffers);
    return problem_.empty();
  }

  void visit_graph(GraphId id) {
    if (!spend(model_.graph(id).initializers.size())) return;
    for (const ValueId initializer : model_.graph(id).initializers) {
      make(initializer, home(initializer));
      buffer(initializer).stored = true;
    }
    const dataflow::NodeOrder& order = orders_[id];
    if (!order.cyclic.empty()) return stop("the graph has a cycle");
    for (const NodeId node : order.nodes) {
      if (!problem_.empty()) return;
      visit(node);
    }
  }

  bool decide(NodeId id, ValueId condition) {
    Buffer& tensor = buffer(condition);
    if (tensor.home != 0) copy(id, condition, 0, /*keep=*/false);  // the host reads it each time
    if (const auto known = known_integer(analysis_, condition)) return *known != 0;
    if (!tensor.number) {
      // Each of these is one more combination at least.
      if (conditions_.size() == kMaxCostCases) return stop(std::string(kTooManyCases)), false;
      tensor.number = answers_.ask() ? 1 : 0;
      conditions_[tensor.made_as] = *tensor.number != 0;
    }
    return *tensor.number != 0;
  }

  void visit(NodeId id) {
    const Node& node = model_.node(id);
    // By what it reads and makes: bodies may be small and their nodes wide.
    std::uint64_t cost =
        std::max<std::uint64_t>(1, node.result_count) + node.operand_count / 16 + node.attribute_count / 2;
    if (const GraphId function = model_.op(node).function; function != GraphId::kNone)
      cost += model_.graph(function).attribute_defaults.size() / 2;
    meter_.charge(node.operand_count);
    if (!spend(cost)) return;
    const auto operands = model_.operands(node);
    const auto results = model_.results(node);
    if (std::any_of(operands.begin(), operands.end(), [&](ValueId value) {
          return value != ValueId::kAbsent && model_.value(value).origin == ValueOrigin::kUndefined;
        }))
      return stop("an operand is not defined");
    const RegionOp region =
        region_op(model_, node, [&](std::string_view attribute) { return attributes_.find(node, attribute); });
    if (region.kind != RegionKind::kNone) return nested([&] { run_region(id, node, region); });

    const OperatorTraits& traits = traits_[node.op];
    const DeviceSignature& devices = traits.devices;
    if (devices.has_host_results()) {
      for (const ValueId result : results) make(result, 0);
      return;
    }
    // A runtime that chooses where nodes run keeps constants as it does initializers.
    if (traits.opcode == Opcode::kConstant && !sources_.provider_choices().empty() &&
        sources_.node(id) == DeviceSources::kUnplaced) {
      for (const ValueId result : results) {
        make(result, sources_.default_device());
        if (result != ValueId::kAbsent) buffer(result).stored = true;
      }
      return;
    }
    const bool moves = devices.rule == DeviceRule::kArgument;
    int where = moves ? DeviceSources::kUnplaced : sources_.node(id);
    if (moves) {
      const Attribute* to = attributes_.find(node, "device");
      const auto target = to == nullptr ? std::nullopt : target_named(to->s);
      if (!target) return stop("a Transfer names no device");
      where = *target;
    }
    for (std::size_t i = 0; i < operands.size() && where == DeviceSources::kUnplaced; ++i)
      if (operands[i] != ValueId::kAbsent && !devices.is_host(i)) where = buffer(operands[i]).home;
    if (where == DeviceSources::kUnplaced) where = sources_.default_device();
    if (where >= DeviceSources::kManyDevices) return stop(std::string(kTooManyDevices));
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] == ValueId::kAbsent) continue;
      if (devices.is_host(i) && (buffer(operands[i]).held & 1U) != 0) continue;
      copy(id, operands[i], where, true);
    }
    const std::optional<std::int64_t> handed_on =
        keeps_elements(traits.opcode) && !operands.empty() && operands[0] != ValueId::kAbsent
            ? buffer(operands[0]).number
            : std::nullopt;
    for (const ValueId result : results) {
      make(result, where);
      if (result != ValueId::kAbsent && !buffer(result).number) buffer(result).number = handed_on;
    }
  }

  template <typename Visit>
  void nested(const Visit& visit) {
    if (depth_ + 1 >= kMaxNesting) return stop("bodies and calls are nested too deep");
    ++depth_;
    visit();
    --depth_;
  }

  void bind(ValueId name, ValueId from) {
    meter_.charge(kStepsPerName);
    if (name != ValueId::kAbsent && from != ValueId::kAbsent) current_[name] = current_[from];
  }

  void bind_results(const Node& node, GraphId graph) {
    const auto results = model_.results(node);
    const std::vector<ValueId>& outputs = model_.graph(graph).outputs;
    for (std::size_t r = 0; r < std::min(results.size(), outputs.size()); ++r) bind(results[r], outputs[r]);
  }

  void run_region(NodeId id, const Node& node, const RegionOp& region) {
    switch (region.kind) {
      case RegionKind::kNone:
        return;
      case RegionKind::kCall:
        return call(node, region);
      case RegionKind::kIf:
        return branch(id, node, region);
      case RegionKind::kLoop:
      case RegionKind::kScan:
        return loop(id, node, region);
      case RegionKind::kSequenceMap:
        return stop("SequenceMap is not counted");
    }
  }

  void call(const Node& node, const RegionOp& region) {
    const Graph& function = model_.graph(region.body());
    const auto operands = model_.operands(node);
    meter_.charge(function.inputs.size());
    for (std::size_t i = 0; i < function.inputs.size(); ++i)
      if (const auto operand = region.operand_of_input(i)) bind(function.inputs[i], operands[*operand]);
    std::vector<Attribute> attributes = attributes_.of_call(node, function);
    std::vector<Attribute> outer = attributes_.enter(std::move(attributes));
    visit_graph(region.body());
    attributes_.enter(std::move(outer));
    bind_results(node, region.body());
  }

  void branch(NodeId id, const Node& node, const RegionOp& region) {
    const auto operands = model_.operands(node);
    const ValueId condition = value_at(operands, region.condition_operand);
    if (condition == ValueId::kAbsent) return stop("an If has no condition");
    const GraphId body = region.graphs[decide(id, condition) ? 0 : 1];
    if (body == GraphId::kNone) return stop("an If has no such branch");
    visit_graph(body);
    bind_results(node, body);
  }

  /// How often a Loop runs at most, or a Scan runs; nullopt: no limit. Stops where the number is not known.
  std::optional<std::int64_t> trips_of(NodeId id, const Node& node, const RegionOp& region) {
    const auto operands = model_.operands(node);
    std::optional<std::int64_t> trips;
    if (region.kind == RegionKind::kScan) {
      trips = dims().as_constant(
          scanned_extent(analysis_, operands[region.scanned_operand(0)],
                         scan_axes([&](std::string_view name) { return attributes_.find(node, name); })));
      if (!trips) stop(fmt::format("how often the scan `{}` runs is not known", model_.label(id)));
    } else if (const ValueId count = value_at(operands, region.trip_count_operand); count != ValueId::kAbsent) {
      Buffer& tensor = buffer(count);
      if (tensor.home != 0) copy(id, count, 0, false);
      trips = tensor.number;
      if (!trips) stop(fmt::format("how often the loop `{}` runs is not known", model_.label(id)));
    }
    return trips;
  }

  /// Gives the body of iteration `k` (from 0) its inputs; `carried`: the buffers of the loop-carried values.
  void enter_body(const Node& node, const RegionOp& region, std::int64_t k, std::span<const std::uint32_t> carried) {
    const Graph& body = model_.graph(region.body());
    const auto operands = model_.operands(node);
    for (std::size_t i = 0; i < region.control_inputs; ++i) {
      make(body.inputs[i], 0);
      if (body.inputs[i] != ValueId::kAbsent) buffer(body.inputs[i]).number = region.iteration_input == i ? k : 1;
    }
    for (std::size_t i = 0; i < region.carried; ++i)
      if (const ValueId input = body.inputs[region.carried_input(i)]; input != ValueId::kAbsent)
        current_[input] = carried[i];
    for (std::size_t s = 0; s < region.scanned; ++s)
      make(body.inputs[region.slice_input(s)], buffer(operands[region.scanned_operand(s)]).home);
  }

  void loop(NodeId id, const Node& node, const RegionOp& region) {
    if (!region.has_graphs()) return stop("a loop has no body, or no operands that fit one");
    const Graph& body = model_.graph(region.body());
    const auto operands = model_.operands(node);
    const std::optional<std::int64_t> trips = trips_of(id, node, region);
    if (!problem_.empty()) return;
    const ValueId start = value_at(operands, region.condition_operand);
    bool going = start == ValueId::kAbsent || decide(id, start);
    if (region.is_batched()) return stop("a Scan of opset 8 is not counted");
    if (!region.fits(body)) return stop("a body does not fit its loop");
    std::vector<std::uint32_t> carried;
    for (std::size_t i = 0; i < region.carried; ++i) {
      const ValueId value = operands[region.carried_operand(i)];
      if (value == ValueId::kAbsent) return stop("a carried value is left out");
      carried.push_back(current_[value]);
    }
    std::vector<int> stacked;  // devices
    for (std::int64_t k = 0; going && (!trips || k < *trips); ++k) {
      meter_.charge(kStepsPerName * region.carried);
      if (!spend(1 + region.control_inputs + region.scanned)) return;
      enter_body(node, region, k, carried);
      later_iterations_ += k > 0 ? 1 : 0;
      visit_graph(region.body());
      if (!problem_.empty()) return;
      for (std::size_t i = 0; i < region.carried; ++i) carried[i] = current_[body.outputs[region.carried_output(i)]];
      if (stacked.empty())
        for (std::size_t o = region.scan_output(0); o < body.outputs.size(); ++o)
          stacked.push_back(buffer(body.outputs[o]).home);
      if (const ValueId next = value_at(body.outputs, region.condition_output); next != ValueId::kAbsent)
        going = decide(id, next);
      later_iterations_ -= k > 0 ? 1 : 0;
    }
    const auto results = model_.results(node);
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (results[r] == ValueId::kAbsent) continue;
      if (region.is_carried_result(r)) {
        current_[results[r]] = carried[r];
      } else {
        const std::size_t s = r - region.carried;
        make(results[r], s < stacked.size() ? stacked[s] : sources_.default_device());
      }
    }
  }

  const dataflow::Analysis& analysis_;
  const Model& model_;
  DeviceSources& sources_;
  TensorBytes& bytes_;
  const dataflow::NodeOrders& orders_;
  Answers& answers_;
  std::uint64_t& budget_;
  std::uint64_t last_step_;  // of the meter
  Meter& meter_;
  IdVector<ValueId, std::uint32_t> current_;            // its buffer
  std::deque<Buffer> buffers_ = std::deque<Buffer>(1);  // [0]: of values that nothing made
  IdVector<OperatorId, OperatorTraits> traits_;
  std::map<std::pair<const char*, std::size_t>, std::optional<int>> targets_;  // by where in the model their text is
  CallAttributes attributes_{model_, meter_};
  std::map<ValueId, bool> conditions_;  // as they were answered
  CostCase case_;
  std::string problem_;
  int depth_ = 0;
  std::int64_t later_iterations_ = 0;
};

/// Sorts by bytes where these are numbers, else by copies.
bool is_less(const FactStore& facts, const CostCase& a, const CostCase& b) {
  const auto x = facts.dims().as_constant(a.cost.bytes), y = facts.dims().as_constant(b.cost.bytes);
  if (x && y && *x != *y) return *x < *y;
  return a.cost.copies < b.cost.copies;
}

}  // namespace

const CostCase& RuntimeCost::cheapest(const FactStore& facts) const {
  return *std::min_element(cases.begin(), cases.end(),
                           [&](const CostCase& a, const CostCase& b) { return is_less(facts, a, b); });
}
const CostCase& RuntimeCost::dearest(const FactStore& facts) const {
  return *std::max_element(cases.begin(), cases.end(),
                           [&](const CostCase& a, const CostCase& b) { return is_less(facts, a, b); });
}

RuntimeCost runtime_cost(const dataflow::Analysis& analysis, const PlacementOptions& options) {
  RuntimeCost cost;
  DeviceSources sources(analysis, options);
  TensorBytes bytes(analysis);
  const dataflow::NodeOrders orders = dataflow::order_all_nodes(analysis.model(), analysis.meter());
  Answers answers;
  std::size_t dearest = 0;
  std::uint64_t budget = kMaxCostVisits;
  const Meter& meter = analysis.meter();
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() - kMaxCostSteps;
  const std::uint64_t last_step = std::min({meter.steps(), meter.steps_allowed(), kMost}) + kMaxCostSteps;
  do {
    if (cost.cases.size() == kMaxCostCases) cost.unknown = kTooManyCases;
    if (!cost.unknown.empty()) break;
    Run run(analysis, sources, bytes, orders, answers, budget, last_step);
    CostCase found = run.run();
    cost.unknown = run.problem();
    // Hundreds of cases may have thousands of nodes each.
    const std::size_t at = cost.cases.size(), dearest_before = dearest;
    if (at == 0 || is_less(analysis.facts(), cost.cases[dearest], found)) dearest = at;
    cost.cases.push_back(std::move(found));
    for (const std::size_t known : {dearest_before, at})
      if (known != dearest) cost.cases[known].nodes.clear();
  } while (answers.next());
  if (!cost.unknown.empty()) cost.cases.clear();
  cost.devices = sources.names();
  return cost;
}

}  // namespace tensorlint::placement
