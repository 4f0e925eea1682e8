#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/region_op.h"
#include "passes/dataflow/analysis.h"
#include "passes/dataflow/order.h"
#include "passes/placement/call_attributes.h"
#include "passes/placement/device_lattice.h"
#include "passes/placement/loop_states.h"
#include "passes/placement/operator_traits.h"
#include "passes/placement/placement.h"
#include "passes/placement/records.h"
#include "passes/placement/sources.h"
#include "passes/placement/symbols.h"

namespace tensorlint::placement {

/// How many trip counts have to be told apart: all below `prefix`, then as many as `cycle`.
struct TripClasses {
  std::int64_t prefix = 0, cycle = 1;
  std::int64_t count() const { return prefix + cycle; }
};

/// Follows devices through a model. One Placer, one pass over the model; passes are repeated with more classes of trip
/// counts until these are enough. Private to this folder: users call `place`.
///
/// What has state of its own is a class of its own: where values are (DeviceLattice), what decides that (Symbols),
/// states of loops (LoopStates), what was seen (PlacementRecords). The rest is told in this order:
///   placer.cc         graphs and nodes; claims
///   placer_bodies.cc  calls of functions, If, SequenceMap
///   placer_loops.cc   Loop and Scan
class Placer {
 public:
  /// `classes`: by Symbols::source; kept between passes.
  /// `orders`: order_all_nodes of the model.
  Placer(const dataflow::Analysis& analysis, const dataflow::NodeOrders& orders, Placement& out,
         std::map<std::uint64_t, TripClasses>& classes);
  Placer(const Placer&) = delete;
  Placer& operator=(const Placer&) = delete;

  /// False when trip counts need more classes, which `classes` has now: the results are to be thrown away.
  bool run();

 private:
  static constexpr int kMaxNesting = 192;  // of bodies and calls: the placer's own recursion
  static constexpr std::uint64_t kStepsPerValue = 4;

  struct Loop;
  struct Iterations;
  struct LoopResults;
  struct Summary {
    Bdd guard;
    std::vector<Placed> operands, results;
  };
  struct GraphState {
    bool is_active = false;          // being visited now
    std::vector<Summary> summaries;  // of a function
  };

  GraphState& state(GraphId graph) { return graphs_[static_cast<std::size_t>(graph)]; }

  // ---- values

  Bdd default_place() { return lattice_.on(sources_.default_device()); }
  /// Where a graph's own input or initializer lives.
  Bdd home(ValueId value) {
    const int device = sources_.value(value);
    if (device != DeviceSources::kUnplaced) return lattice_.on(device);
    return goes_anywhere(value) ? lattice_.unknown() : default_place();
  }
  bool goes_anywhere(ValueId constant) const;
  void set(ValueId value, const Placed& placed, Bdd guard) {
    analysis_.facts().meter().charge(kStepsPerValue);
    if (value == ValueId::kAbsent) return;
    current_[value] = placed;
    std::uint64_t& bits = out_.devices_[value];
    if (store_.is_leaf(placed.device)) {
      bits |= lattice_.state(store_.value(placed.device)).bits;
    } else {
      lattice_.for_each_state(placed.device, guard, [&](const DeviceState& state) { bits |= state.bits; });
    }
  }
  Placed read(ValueId value) {
    analysis_.facts().meter().charge(kStepsPerValue);
    if (value == ValueId::kAbsent || model_.value(value).origin == ValueOrigin::kUndefined)
      return {lattice_.unknown(), {}};
    return current_[value];
  }
  std::optional<Bdd> condition(ValueId value);
  Element result_content(const Node& node, Opcode opcode, ValueId result);

  // ---- graphs and nodes

  void visit_graph(GraphId id, Bdd guard);
  void visit_node(NodeId id, Bdd guard);
  void visit_plain(NodeId id, const Node& node, const OperatorTraits& traits, Bdd guard);
  Bdd argument_device(NodeId id, const Node& node);
  Bdd claim(NodeId owner, ValueId input, ValueId handed, Bdd device, Bdd guard);
  void give_up(NodeId id, Bdd guard, std::string_view why);
  void limit(NodeId id, std::string why) {
    if (limited_.insert(id).second) out_.limits_.emplace_back(id, std::move(why));
  }
  template <typename Describe>
  void fail(NodeId id, Bdd fails, const Describe& describe) {
    if (ViolatingVisit* visit = records_.fail(id, fails, loops_, calls_)) describe(*visit);
  }

  // ---- bodies

  void call_function(NodeId id, const Node& node, Bdd guard);
  std::vector<Placed> outputs_of(GraphId body);
  void visit_if(NodeId id, const Node& node, const RegionOp& region, Bdd guard);
  void visit_sequence_map(NodeId id, const Node& node, const RegionOp& region, Bdd guard);
  void note_number_use(ValueId value);
  void limit_choices(NodeId id);

  // ---- loops

  void visit_loop(NodeId id, const Node& node, const RegionOp& region, Bdd guard);
  void set_trips(Loop& loop, ValueId count);
  void set_trips_of_scan(Loop& loop, const Node& node, ValueId sequence);
  Bdd start_condition(NodeId loop, ValueId value);
  void set_loop_results(const Node& node, const LoopResults& after, Bdd guard);
  LoopResults iterate(const Loop& loop, Bdd guard);
  bool follow_iteration(const Loop& loop, Iterations& run, Bdd guard);
  Bdd may_begin(const Loop& loop, Iterations& run, std::int64_t k);
  Bdd next_condition(const Loop& loop, Iterations& run);
  void find_period(const Loop& loop, Iterations& run, std::span<const Placed> before, std::int64_t k);
  void enter_body(const Loop& loop, std::int64_t k, std::span<const Placed> before, Bdd inside);
  std::vector<Placed> leave_body(const Loop& loop, std::int64_t k, std::span<std::optional<Bdd>> all, Bdd inside);
  void add_slice(const Loop& loop, std::optional<Bdd>& all, Bdd slice, ValueId value, Bdd inside);
  void need_classes(std::uint64_t key, const TripClasses& own);
  std::vector<Placed> carried_after(const Loop& loop, const Iterations& run);

  const dataflow::Analysis& analysis_;
  const Model& model_;
  Placement& out_;
  DeviceSources& sources_;
  std::map<std::uint64_t, TripClasses>& classes_;
  DeviceLattice lattice_;
  BddStore& store_;  // of lattice_
  Symbols symbols_;
  LoopStates loop_states_;
  PlacementRecords records_;
  IdVector<OperatorId, OperatorTraits> traits_;
  IdVector<ValueId, Placed> current_;  // of the visit under way
  const dataflow::NodeOrders& orders_;
  std::vector<GraphState> graphs_;
  std::map<std::pair<const char*, std::size_t>, int> targets_;  // devices of Transfers, by where their text is
  std::set<NodeId> limited_;
  std::vector<LoopFrame> loops_;
  std::vector<NodeId> calls_;
  CallAttributes attributes_;  // of the call that is being followed
  std::uint64_t budget_;
  int depth_ = 0;
  bool needs_another_pass_ = false;
};

}  // namespace tensorlint::placement
