#include "passes/placement/runtime_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "passes/dataflow/order.h"
#include "passes/placement/call_attributes.h"
#include "passes/placement/device_name.h"
#include "passes/placement/host_operands.h"
#include "passes/placement/tensor_facts.h"
#include "passes/placement/transfer.h"

namespace tensorlint {
namespace {

constexpr int kMaxNesting = 192;

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
  Run(const Analysis& analysis, DeviceSources& sources, const std::vector<std::vector<GraphId>>& bodies,
      Answers& answers, std::uint64_t& budget, std::map<GraphId, NodeOrder>& orders)
      : analysis_(analysis),
        model_(analysis.model()),
        sources_(sources),
        bodies_(bodies),
        answers_(answers),
        budget_(budget),
        orders_(orders),
        current_(model_.values.size()) {
    case_.cost.bytes = case_.cost.setup_bytes = dims().constant(0);
    for (const Operator& op : model_.operators) operands_.push_back(operand_placement(model_, op));
  }

  CostCase run() {
    if (model_.graphs.empty()) return case_;
    for (const ValueId input : model_.graph(GraphId::kMain).inputs) {
      make(input, home(input));
      buffer(input).stored = model_.value(input).initializer != nullptr;
    }
    visit_graph(GraphId::kMain);
    return std::move(case_);
  }

  const std::string& problem() const { return problem_; }

 private:
  DimPool& dims() { return analysis_.facts().dims(); }
  int home(ValueId value) const {
    const int device = sources_.value(value);
    return device == DeviceSources::kUnplaced ? sources_.default_device() : device;
  }
  static std::size_t index(ValueId value) { return static_cast<std::size_t>(value); }
  Buffer& buffer(ValueId value) { return buffers_[current_[index(value)]]; }

  void make(ValueId value, int device) {
    if (value == ValueId::kAbsent) return;
    current_[index(value)] = static_cast<std::uint32_t>(buffers_.size());
    buffers_.push_back({device, std::uint64_t{1} << device, false, value, known_integer(analysis_, value)});
  }

  void copy(NodeId id, ValueId value, int to, bool keep) {
    Buffer& tensor = buffer(value);
    if (keep && ((tensor.held >> to) & 1U) != 0) return;
    if (keep) tensor.held |= std::uint64_t{1} << to;
    const Dim bytes = tensor_bytes(analysis_, tensor.made_as);
    if (tensor.stored) {
      ++case_.cost.setup_copies;
      case_.cost.setup_bytes = dims().add(case_.cost.setup_bytes, bytes);
      return;
    }
    ++case_.cost.copies;
    case_.cost.bytes = dims().add(case_.cost.bytes, bytes);
    auto& direction = case_.directions
                          .try_emplace({sources_.names()[static_cast<std::size_t>(tensor.home)],
                                        sources_.names()[static_cast<std::size_t>(to)]},
                                       0, dims().constant(0))
                          .first->second;
    ++direction.first;
    direction.second = dims().add(direction.second, bytes);
    NodeCopies& node = case_.nodes
                           .try_emplace(id, NodeCopies{0, dims().constant(0), 0,
                                                       sources_.names()[static_cast<std::size_t>(tensor.home)],
                                                       sources_.names()[static_cast<std::size_t>(to)], value})
                           .first->second;
    ++node.copies;
    node.bytes = dims().add(node.bytes, bytes);
    if (later_iterations_ > 0) ++node.in_loop;
  }

  void stop(std::string why) {
    if (problem_.empty()) problem_ = std::move(why);
  }

  void visit_graph(GraphId id) {
    for (const ValueId initializer : model_.graph(id).initializers) {
      make(initializer, home(initializer));
      buffer(initializer).stored = true;
    }
    const auto [known, added] = orders_.try_emplace(id);
    if (added) known->second = order_nodes(model_, id, bodies_);
    const NodeOrder& order = known->second;
    if (!order.cyclic.empty()) return stop("the graph has a cycle");
    for (const NodeId node : order.nodes) {
      if (!problem_.empty()) return;
      visit(node);
    }
  }

  GraphId body_of(const Node& node, std::string_view name) const {
    const Attribute* found = attributes_.find(node, name);
    return found != nullptr && found->kind == AttributeKind::kGraph ? found->graph : GraphId::kNone;
  }

  bool decide(NodeId id, ValueId condition) {
    Buffer& tensor = buffer(condition);
    if (tensor.home != 0) copy(id, condition, 0, /*keep=*/false);  // the host reads it each time
    if (const auto known = known_integer(analysis_, condition)) return *known != 0;
    if (!tensor.number) {
      tensor.number = answers_.ask() ? 1 : 0;
      case_.conditions[std::string(model_.name_of(tensor.made_as))] = *tensor.number != 0;
    }
    return *tensor.number != 0;
  }

  void visit(NodeId id) {
    const Node& node = model_.node(id);
    // By what it reads and makes: bodies may be small and their nodes wide.
    const std::uint64_t cost = std::max<std::uint64_t>(1, node.result_count) + node.operand_count / 16;
    if (budget_ < cost) return stop("a run has more nodes than are followed");
    budget_ -= cost;
    const Operator& op = model_.op(node);
    const auto operands = model_.operands(node);
    const auto results = model_.results(node);
    if (std::any_of(operands.begin(), operands.end(), [&](ValueId value) {
          return value != ValueId::kAbsent && model_.value(value).origin == ValueOrigin::kUndefined;
        }))
      return stop("an operand is not defined");
    const std::string_view name = model_.text(op.name);
    if (op.function != GraphId::kNone) return nested([&] { call(node, op.function); });
    if (op.domain == NameId::kEmpty && name == "If") return nested([&] { branch(id, node); });
    if (op.domain == NameId::kEmpty && (name == "Loop" || name == "Scan"))
      return nested([&] { loop(id, node, name == "Loop"); });
    if (op.domain == NameId::kEmpty && name == "SequenceMap") return stop("SequenceMap is not counted");

    const OperandPlacement& placement = operands_[static_cast<std::size_t>(node.op)];
    if (placement.results_on_host) {
      for (const ValueId result : results) make(result, 0);
      return;
    }
    // A runtime that chooses where nodes run keeps constants as it does initializers.
    if (op.domain == NameId::kEmpty && name == "Constant" && !sources_.provider_choices().empty() &&
        sources_.node(id) == DeviceSources::kUnplaced) {
      for (const ValueId result : results) {
        make(result, sources_.default_device());
        if (result != ValueId::kAbsent) buffer(result).stored = true;
      }
      return;
    }
    const bool moves = is_transfer(model_, op);
    int where = moves ? DeviceSources::kUnplaced : sources_.node(id);
    if (moves) {
      const Attribute* to = attributes_.find(node, "device");
      const auto device = to == nullptr ? std::nullopt : canonical_device(to->s);
      if (!device) return stop("a Transfer names no device");
      where = sources_.number(*device);
    }
    for (std::size_t i = 0; i < operands.size() && where == DeviceSources::kUnplaced; ++i)
      if (operands[i] != ValueId::kAbsent && !placement.is_host(i)) where = buffer(operands[i]).home;
    if (where == DeviceSources::kUnplaced) where = sources_.default_device();
    if (where >= DeviceSources::kManyDevices) return stop("there are too many devices");
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] == ValueId::kAbsent) continue;
      if (placement.is_host(i) && (buffer(operands[i]).held & 1U) != 0) continue;
      copy(id, operands[i], where, true);
    }
    const std::optional<std::int64_t> handed_on =
        name == "Identity" && !operands.empty() && operands[0] != ValueId::kAbsent ? buffer(operands[0]).number
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
    if (name != ValueId::kAbsent && from != ValueId::kAbsent) current_[index(name)] = current_[index(from)];
  }

  void call(const Node& node, GraphId function) {
    const Graph& graph = model_.graph(function);
    const auto operands = model_.operands(node);
    const auto results = model_.results(node);
    for (std::size_t i = 0; i < std::min(operands.size(), graph.inputs.size()); ++i) bind(graph.inputs[i], operands[i]);
    std::vector<Attribute> attributes = attributes_.of_call(node, graph);
    std::vector<Attribute> outer = attributes_.enter(std::move(attributes));
    visit_graph(function);
    attributes_.enter(std::move(outer));
    for (std::size_t r = 0; r < std::min(results.size(), graph.outputs.size()); ++r) bind(results[r], graph.outputs[r]);
  }

  void branch(NodeId id, const Node& node) {
    const auto operands = model_.operands(node);
    if (operands.empty() || operands[0] == ValueId::kAbsent) return stop("an If has no condition");
    const GraphId body = body_of(node, decide(id, operands[0]) ? "then_branch" : "else_branch");
    if (body == GraphId::kNone) return stop("an If has no such branch");
    visit_graph(body);
    const auto results = model_.results(node);
    const Graph& graph = model_.graph(body);
    for (std::size_t r = 0; r < std::min(results.size(), graph.outputs.size()); ++r) bind(results[r], graph.outputs[r]);
  }

  void loop(NodeId id, const Node& node, bool is_loop) {
    const auto operands = model_.operands(node);
    const auto results = model_.results(node);
    const GraphId body_id = body_of(node, "body");
    if (body_id == GraphId::kNone) return stop("a loop has no body");
    const Graph& body = model_.graph(body_id);
    const std::size_t lead = is_loop ? 2 : 0, lead_out = is_loop ? 1 : 0;
    std::optional<std::int64_t> trips;
    bool going = true;
    std::size_t count = 0, scanned = 0;
    if (is_loop) {
      if (operands.size() < 2) return stop("a Loop has too few operands");
      count = operands.size() - 2;
      if (operands[0] != ValueId::kAbsent) {
        Buffer& tensor = buffer(operands[0]);
        if (tensor.home != 0) copy(id, operands[0], 0, false);
        trips = tensor.number;
        if (!trips) return stop(fmt::format("how often the loop `{}` runs is not known", model_.label(id)));
      }
      going = operands[1] == ValueId::kAbsent || decide(id, operands[1]);
    } else {
      const Attribute* inputs = attributes_.find(node, "num_scan_inputs");
      if (inputs == nullptr || inputs->i < 1 || static_cast<std::uint64_t>(inputs->i) > operands.size())
        return stop("a Scan scans nothing");
      scanned = static_cast<std::size_t>(inputs->i);
      count = operands.size() - scanned;
      const Attribute* axes = attributes_.find(node, "scan_input_axes");
      const Fact& sequence = analysis_.fact(operands[count]);
      if (sequence.shape != ShapeId::kUnranked) {
        const auto extents = analysis_.facts().dims_of(sequence.shape);
        std::int64_t axis = axes != nullptr && !axes->ints.empty() ? axes->ints[0] : 0;
        axis += axis < 0 ? static_cast<std::int64_t>(extents.size()) : 0;
        if (axis >= 0 && axis < static_cast<std::int64_t>(extents.size()))
          trips = analysis_.facts().dims().as_constant(extents[static_cast<std::size_t>(axis)]);
      }
      if (!trips) return stop(fmt::format("how often the scan `{}` runs is not known", model_.label(id)));
    }
    if (body.inputs.size() != lead + count + scanned || body.outputs.size() < lead_out + count)
      return stop("a body does not fit its loop");
    std::vector<std::uint32_t> carried;
    for (std::size_t i = 0; i < count; ++i) {
      const ValueId value = operands[lead + i];
      if (value == ValueId::kAbsent) return stop("a carried value is left out");
      carried.push_back(current_[index(value)]);
    }
    std::vector<int> slices;
    for (std::int64_t k = 0; going && (!trips || k < *trips); ++k) {
      if (budget_ == 0 || !problem_.empty()) return stop("a run has more nodes than are followed");
      --budget_;
      if (is_loop) {
        make(body.inputs[0], 0);
        make(body.inputs[1], 0);
        if (body.inputs[0] != ValueId::kAbsent) buffer(body.inputs[0]).number = k;
        if (body.inputs[1] != ValueId::kAbsent) buffer(body.inputs[1]).number = 1;
      }
      for (std::size_t i = 0; i < count; ++i)
        if (body.inputs[lead + i] != ValueId::kAbsent) current_[index(body.inputs[lead + i])] = carried[i];
      for (std::size_t s = 0; s < scanned; ++s) make(body.inputs[lead + count + s], buffer(operands[count + s]).home);
      later_iterations_ += k > 0 ? 1 : 0;
      visit_graph(body_id);
      if (!problem_.empty()) return;
      for (std::size_t i = 0; i < count; ++i) carried[i] = current_[index(body.outputs[lead_out + i])];
      if (slices.empty())
        for (std::size_t o = lead_out + count; o < body.outputs.size(); ++o)
          slices.push_back(buffer(body.outputs[o]).home);
      if (is_loop && body.outputs[0] != ValueId::kAbsent) going = decide(id, body.outputs[0]);
      later_iterations_ -= k > 0 ? 1 : 0;
    }
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (results[r] == ValueId::kAbsent) continue;
      if (r < count) {
        current_[index(results[r])] = carried[r];
      } else {
        make(results[r], r - count < slices.size() ? slices[r - count] : sources_.default_device());
      }
    }
  }

  const Analysis& analysis_;
  const Model& model_;
  DeviceSources& sources_;
  const std::vector<std::vector<GraphId>>& bodies_;
  Answers& answers_;
  std::uint64_t& budget_;
  std::map<GraphId, NodeOrder>& orders_;
  std::vector<std::uint32_t> current_;                  // by value: its buffer
  std::deque<Buffer> buffers_ = std::deque<Buffer>(1);  // [0]: of values that nothing made
  std::vector<OperandPlacement> operands_;              // by operator
  CallAttributes attributes_{model_};
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

RuntimeCost runtime_cost(const Analysis& analysis, const PlacementOptions& options) {
  RuntimeCost cost;
  DeviceSources sources(analysis, options);
  const std::vector<std::vector<GraphId>> bodies = bodies_by_graph(analysis.model());
  Answers answers;
  std::uint64_t budget = kMaxCostVisits;
  std::map<GraphId, NodeOrder> orders;
  do {
    if (cost.cases.size() == kMaxCostCases) cost.unknown = "more combinations of conditions are open than are counted";
    if (!cost.unknown.empty()) break;
    Run run(analysis, sources, bodies, answers, budget, orders);
    CostCase found = run.run();
    cost.unknown = run.problem();
    cost.cases.push_back(std::move(found));
  } while (answers.next());
  if (!cost.unknown.empty()) cost.cases.clear();
  return cost;
}

}  // namespace tensorlint
