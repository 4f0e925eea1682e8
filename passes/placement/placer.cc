#include "passes/placement/placer.h"

#include <algorithm>

#include "passes/placement/tensor_facts.h"

namespace tensorlint::placement {
namespace {

constexpr std::uint64_t kStepsPerVisit = 64;

}  // namespace

Placer::Placer(const dataflow::Analysis& analysis, const dataflow::NodeOrders& orders, Placement& out,
               std::map<std::uint64_t, TripClasses>& classes)
    : analysis_(analysis),
      model_(analysis.model()),
      out_(out),
      sources_(out.sources_),
      classes_(classes),
      lattice_(analysis.facts().meter()),
      store_(lattice_.store()),
      symbols_(analysis, store_),
      loop_states_(store_, symbols_),
      records_(model_, sources_, lattice_, symbols_, analysis.facts().meter()),
      current_(model_.values.size()),
      orders_(orders),
      graphs_(model_.graphs.size()),
      attributes_(model_, analysis.facts().meter()),
      budget_(std::max<std::uint64_t>(dataflow::kVisitsAtLeast, dataflow::kVisitsPerNode * model_.nodes.size())) {
  for (const Operator& op : model_.operators) traits_.push_back(traits_of(model_, op));
  out_.devices_.assign(model_.values.size(), 0);
}

bool Placer::run() {
  if (model_.graphs.empty()) return true;
  for (const ValueId input : model_.graph(GraphId::kMain).inputs) {
    const Bdd place = home(input);
    set(input, {place, symbols_.open(input)}, kTrue);
  }
  visit_graph(GraphId::kMain, kTrue);
  if (needs_another_pass_) return false;
  if (store_.is_full() || analysis_.facts().meter().is_spent()) {
    out_.limits_.clear();
    out_.limits_.emplace_back(NodeId::kNone, "this model has too many choices to distinguish: devices are not checked");
    return true;
  }
  out_.violations_ = records_.violations(traits_);
  out_.changes_ = records_.changes();
  return true;
}

void Placer::visit_graph(GraphId id, Bdd guard) {
  GraphState& state = this->state(id);
  if (analysis_.facts().meter().is_spent()) return;  // nothing of what is found will be reported
  const dataflow::NodeOrder& nodes = orders_[id];
  state.is_active = true;
  for (const ValueId initializer : model_.graph(id).initializers) {
    const Bdd place = home(initializer);
    set(initializer, {place, symbols_.open(initializer)}, guard);
  }
  analysis_.facts().meter().charge(nodes.cyclic.size());
  for (const NodeId node : nodes.cyclic)
    for (const ValueId result : model_.results(model_.node(node))) set(result, {lattice_.unknown(), {}}, guard);
  for (const NodeId node : nodes.nodes) visit_node(node, guard);
  state.is_active = false;
}

void Placer::visit_node(NodeId id, Bdd guard) {
  const Node& node = model_.node(id);
  analysis_.facts().meter().charge(kStepsPerVisit);
  if (budget_ == 0 || analysis_.facts().meter().is_spent()) {
    give_up(id, guard, "the model has more contexts than are followed");
    return;
  }
  --budget_;
  const OperatorTraits& traits = traits_[node.op];
  if (traits.region == RegionKind::kNone) return visit_plain(id, node, traits, guard);
  if (depth_ + 1 >= kMaxNesting) {
    give_up(id, guard, "bodies and calls are nested too deep");
    return;
  }
  ++depth_;
  const RegionOp region = region_op(model_, node, [&](std::string_view name) { return attributes_.find(node, name); });
  switch (region.kind) {
    case RegionKind::kNone:
    case RegionKind::kCall:
      call_function(id, node, guard);
      break;
    case RegionKind::kIf:
      visit_if(id, node, region, guard);
      break;
    case RegionKind::kLoop:
    case RegionKind::kScan:
      visit_loop(id, node, region, guard);
      break;
    case RegionKind::kSequenceMap:
      visit_sequence_map(id, node, region, guard);
      break;
  }
  --depth_;
}

/// The device that the attribute of a Transfer names.
Bdd Placer::argument_device(NodeId id, const Node& node) {
  const Attribute* to = attributes_.find(node, "device");
  if (to == nullptr || to->kind != AttributeKind::kString) return lattice_.unknown();
  const auto [known, added] = targets_.try_emplace({to->s.data(), to->s.size()}, 0);
  if (added) known->second = sources_.transfer_target(id, to->s);
  return lattice_.on(known->second);
}

/// A small integer constant that nothing places, in a model that lives on an accelerator as a whole. Exporters compute
/// shapes with such constants, on the cpu, where Shape leaves them; only the data is meant by --device.
bool Placer::goes_anywhere(ValueId constant) const {
  constexpr std::size_t kMostElements = 64;
  if (sources_.default_device() == 0 || constant == ValueId::kAbsent ||
      model_.value(constant).origin == ValueOrigin::kInput)
    return false;
  const Fact& fact = analysis_.fact(constant);
  const Content* content = analysis_.facts().content(fact.content);
  return fact.dtypes.proves(DTypeSet::integers()) && content != nullptr && content->integers.size() <= kMostElements;
}

void Placer::visit_plain(NodeId id, const Node& node, const OperatorTraits& traits, Bdd guard) {
  const auto operands = model_.operands(node);
  const DeviceSignature& devices = traits.devices;
  const int tag = sources_.node(id);
  const bool tagged = tag != DeviceSources::kUnplaced && devices.rule != DeviceRule::kArgument;
  std::optional<Bdd> own;
  if (devices.rule == DeviceRule::kArgument) own = argument_device(id, node);
  if (tagged) own = lattice_.on(tag);
  const auto device_of = [&](std::size_t i) {
    return operands[i] == ValueId::kAbsent ? std::nullopt : std::optional(read(operands[i]).device);
  };
  const Bdd together = infer_device(devices, lattice_, own, operands.size(), device_of, [&] {
    const bool anywhere = node.result_count == 1 && goes_anywhere(model_.results(node)[0]);
    return anywhere ? lattice_.unknown() : default_place();
  });
  const auto set_results = [&](Bdd device) {
    for (const ValueId result : model_.results(node))
      if (result != ValueId::kAbsent) set(result, {device, result_content(node, traits.opcode, result)}, guard);
  };

  if (devices.rule != DeviceRule::kTogether) {
    if (devices.rule != DeviceRule::kIndependent && !operands.empty())
      records_.reach(id, store_.and_(guard, lattice_.untainted(read(operands[0]).device)));
    return set_results(together);
  }
  // In most models nearly every node: on one device, whatever is chosen.
  if (node.graph == GraphId::kMain && lattice_.is_sound_leaf(together)) return set_results(together);
  const Bdd fails = lattice_.fails(together);
  if (fails != kFalse || node.graph != GraphId::kMain) {
    records_.reach(id, store_.and_(guard, lattice_.untainted(together)));
    fail(id, store_.and_(guard, fails), [&](ViolatingVisit& visit) {
      if (tagged) visit.sides.emplace_back(ValueId::kAbsent, lattice_.on(tag));
      for (const bool host : {false, true}) {
        for (std::size_t i = 0; i < operands.size(); ++i)
          if (operands[i] != ValueId::kAbsent && devices.is_host(i) == host)
            visit.sides.emplace_back(operands[i], read(operands[i]).device);
        if (visit.sides.empty()) visit.sides.emplace_back(ValueId::kAbsent, default_place());  // no tag and no data
      }
    });
  }
  set_results(lattice_.result(together, tagged));
}

/// A tag on the input of a body or function: a claim about what it is handed by `owner`.
Bdd Placer::claim(NodeId owner, ValueId input, ValueId handed, Bdd device, Bdd guard) {
  const int tag = sources_.value(input);
  if (tag == DeviceSources::kUnplaced || tag >= DeviceSources::kManyDevices) return device;
  const Bdd together = lattice_.meet(lattice_.on(tag), device);
  records_.reach(owner, store_.and_(guard, lattice_.untainted(device)));
  const Bdd fails = lattice_.fails(together);
  fail(owner, store_.and_(guard, fails), [&](ViolatingVisit& visit) {
    visit.sides = {{input, lattice_.on(tag)}, {handed, device}};
    visit.is_claim = true;
  });
  return lattice_.result(together);
}

std::optional<Bdd> Placer::condition(ValueId value) {
  if (const auto number = known_integer(analysis_, value)) return *number != 0 ? kTrue : kFalse;
  Placed& placed = current_[value];
  if (placed.content.kind == Element::Kind::kNone) placed.content = symbols_.fresh(value);
  return symbols_.formula(placed.content);
}

Element Placer::result_content(const Node& node, Opcode opcode, ValueId result) {
  const Element open = symbols_.open(result);
  if (open.kind != Element::Kind::kSymbol) return open;
  const auto operand = [&](std::size_t i) {
    const auto operands = model_.operands(node);
    return i < operands.size() && operands[i] != ValueId::kAbsent ? current_[operands[i]].content : Element();
  };
  return symbols_.apply(opcode, operand(0), operand(1), open);
}

void Placer::give_up(NodeId id, Bdd guard, std::string_view why) {
  if (!why.empty()) limit(id, std::string(why));
  for (const ValueId result : model_.results(model_.node(id)))
    set(result, {lattice_.unknown(), result == ValueId::kAbsent ? Element() : symbols_.open(result)}, guard);
}

}  // namespace tensorlint::placement
