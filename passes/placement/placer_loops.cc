#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "passes/placement/placer.h"
#include "passes/placement/tensor_facts.h"

namespace tensorlint::placement {
namespace {

constexpr std::int64_t kExactIterations = 4;  // from then on, choices of earlier iterations are forgotten

/// Carried values of all iterations of a loop that are kept, 32 bytes each.
constexpr std::int64_t kMaxKeptValues = std::int64_t{1} << 18;

std::int64_t most_iterations(const RegionOp& region) {
  return std::clamp<std::int64_t>(kMaxKeptValues / std::max<std::int64_t>(1, static_cast<std::int64_t>(region.carried)),
                                  1, kMaxContexts);
}

}  // namespace

/// A Loop or Scan.
struct Placer::Loop {
  NodeId id;
  RegionOp region;
  std::vector<Placed> carried{};          ///< before the first iteration
  std::vector<Placed> slices{};           ///< Scan: what the body gets of each scanned operand
  Bdd start = kTrue;                      ///< condition of the first iteration
  std::optional<std::int64_t> trips{};    ///< known number
  std::optional<std::uint32_t> symbol{};  ///< unknown number
  std::uint64_t key = 0;                  ///< of the symbol's classes
};

/// The iterations of a loop while they are followed, one after the other.
struct Placer::Iterations {
  std::vector<std::vector<Placed>> states;  ///< loop-carried values before the first iteration, after it, ...
  std::vector<Bdd> entered{kTrue};          ///< by iteration from 1: when it is entered
  std::map<LoopStates::Signature, std::int64_t> seen{};  ///< the state before an iteration -> iterations before it
  std::optional<TripClasses> period{};                   ///< states repeat like this
  std::int64_t most = kMaxContexts;                      ///< iterations that are followed
  std::int64_t last = kMaxContexts;                      ///< the last iteration to follow
  Bdd going = kTrue;                                     ///< when all conditions so far have held
  Bdd goes_on = kTrue;                                   ///< when the last body asked for another iteration
  std::vector<std::optional<Bdd>> scan_outputs{};        ///< where all slices of each are; nullopt: there are none yet
  bool uses_number = false;  ///< a condition depends on the iteration number: equal states may go on differently
  bool is_exact = true;      ///< every condition could be expressed
  Symbols::Count outer;      ///< symbols from before the loop

  std::int64_t followed() const { return static_cast<std::int64_t>(states.size()) - 1; }
};

struct Placer::LoopResults {
  std::vector<Placed> carried;
  std::vector<std::optional<Bdd>> scan_outputs;  ///< where all slices of each are; nullopt: there are none
};

void Placer::visit_loop(NodeId id, const Node& node, const RegionOp& region, Bdd guard) {
  const auto operands = model_.operands(node);
  // Elements of a batch may end at lengths of their own, which this does not follow.
  if (!region.has_graphs() || region.is_batched() || !region.fits(model_.graph(region.body())))
    return give_up(id, guard, {});
  Loop loop{.id = id, .region = region};
  for (std::size_t i = 0; i < region.carried; ++i) loop.carried.push_back(read(operands[region.carried_operand(i)]));
  for (std::size_t i = 0; i < region.scanned; ++i) {
    loop.slices.push_back(read(operands[region.scanned_operand(i)]));
    loop.slices.back().content = {};
  }
  records_.reach(id, guard);
  if (region.kind == RegionKind::kScan) {
    set_trips_of_scan(loop, node, operands[region.scanned_operand(0)]);
  } else {
    const ValueId count = value_at(operands, region.trip_count_operand),
                  condition = value_at(operands, region.condition_operand);
    if (count != ValueId::kAbsent) set_trips(loop, count);
    if (condition != ValueId::kAbsent) loop.start = start_condition(id, condition);
  }
  set_loop_results(node, iterate(loop, guard), guard);
}

void Placer::set_trips(Loop& loop, ValueId count) {
  note_number_use(count);
  Element& trips = current_[count].content;
  if (const auto number = known_integer(analysis_, count))
    trips = {.kind = Element::Kind::kNumber, .is_iteration = false, .number = *number};
  if (trips.kind != Element::Kind::kNumber && trips.kind != Element::Kind::kSymbol) trips = symbols_.fresh(count);
  if (trips.kind == Element::Kind::kNumber) {
    loop.trips = std::max<std::int64_t>(trips.number, 0);
  } else {
    loop.symbol = trips.symbol;
    loop.key = symbols_.source(trips.symbol);
  }
}

Bdd Placer::start_condition(NodeId loop, ValueId value) {
  note_number_use(value);
  const auto start = condition(value);
  if (!start) limit_choices(loop);
  return start.value_or(kTrue);
}

/// A Scan runs once per element of the scanned axis; the same dim is the same number everywhere.
void Placer::set_trips_of_scan(Loop& loop, const Node& node, ValueId sequence) {
  const Dim extent = scanned_extent(analysis_, sequence,
                                    scan_axes([&](std::string_view name) { return attributes_.find(node, name); }));
  loop.trips = analysis_.facts().dims().as_constant(extent);
  if (loop.trips) return;
  loop.symbol = extent.is_unknown() ? symbols_.fresh(sequence).symbol : symbols_.of_dim(extent);
  loop.key = symbols_.source(*loop.symbol);
}

void Placer::set_loop_results(const Node& node, const LoopResults& after, Bdd guard) {
  const auto results = model_.results(node);
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r] == ValueId::kAbsent) continue;
    if (r < after.carried.size()) {
      set(results[r], after.carried[r], guard);
    } else {
      const std::size_t slice = r - after.carried.size();
      const auto device = slice < after.scan_outputs.size() ? after.scan_outputs[slice] : std::nullopt;
      set(results[r], {device.value_or(lattice_.unknown()), {}}, guard);
    }
  }
}

/// Follows iterations until the states of the loop-carried values repeat, or until no more can be entered.
Placer::LoopResults Placer::iterate(const Loop& loop, Bdd guard) {
  const std::size_t outputs = model_.graph(loop.region.body()).outputs.size();
  Iterations run{.states = {loop.carried}, .going = loop.start, .outer = symbols_.count()};
  run.last = run.most = most_iterations(loop.region);
  run.scan_outputs.resize(outputs - loop.region.scan_output(0));
  if (loop.trips) run.last = std::min(run.last, *loop.trips);
  while (run.followed() < run.last && follow_iteration(loop, run, guard)) {
  }
  // A loop that ends by its condition before its states repeat distinguishes as many trip counts as it has iterations.
  if (loop.symbol) need_classes(loop.key, run.period.value_or(TripClasses{run.followed(), 1}));
  return {carried_after(loop, run), std::move(run.scan_outputs)};
}

/// Follows the next iteration; false where it cannot be entered, or shows nothing new.
bool Placer::follow_iteration(const Loop& loop, Iterations& run, Bdd guard) {
  const std::int64_t k = run.followed() + 1;
  const Graph& body = model_.graph(loop.region.body());
  const Bdd entered = store_.and_(run.going, may_begin(loop, run, k));
  const Bdd inside = store_.and_(guard, entered);
  if (inside == kFalse || store_.is_full()) return false;
  std::vector<Placed> before = run.states.back();
  if (k > kExactIterations)
    loop_states_.forget_choices(before, inside, run.outer, value_at(body.inputs, loop.region.carried_input(0)));
  if (!run.period && !run.uses_number) {
    find_period(loop, run, before, k);
    if (k > run.last) return false;
  }
  loops_.push_back({loop.id, k});
  enter_body(loop, k, before, inside);
  visit_graph(loop.region.body(), inside);
  run.uses_number = run.uses_number || loops_.back().uses_number;
  run.states.push_back(leave_body(loop, k, run.scan_outputs, inside));
  loops_.pop_back();
  run.entered.push_back(entered);
  run.goes_on = next_condition(loop, run);
  run.going = store_.and_(entered, run.goes_on);
  return true;
}

/// When the trip count lets iteration `k` begin.
Bdd Placer::may_begin(const Loop& loop, Iterations& run, std::int64_t k) {
  if (!loop.symbol) return kTrue;
  const auto more = symbols_.above(*loop.symbol, k - 1, true);
  run.is_exact = run.is_exact && more.has_value();
  return more.value_or(kFalse);
}

/// When the body's condition asks for another iteration.
Bdd Placer::next_condition(const Loop& loop, Iterations& run) {
  const ValueId output = value_at(model_.graph(loop.region.body()).outputs, loop.region.condition_output);
  if (output == ValueId::kAbsent) return kTrue;
  const auto next = condition(output);
  run.is_exact = run.is_exact && next.has_value();
  return next.value_or(kTrue);
}

/// Where the state before iteration `k` was met before: sets the period, and the last iteration that shows anything
/// new.
void Placer::find_period(const Loop& loop, Iterations& run, std::span<const Placed> before, std::int64_t k) {
  const auto [at, added] = run.seen.emplace(loop_states_.signature(before, run.goes_on, run.outer), k - 1);
  if (added) return;
  run.period = TripClasses{at->second, k - 1 - at->second};
  if (loop.trips) {
    // The state after all trips is the one after as many as are left of the last whole cycle.
    const std::int64_t whole = run.period->count();
    if (*loop.trips > whole)
      run.last = std::min(run.last, whole + (*loop.trips - run.period->prefix) % run.period->cycle);
  } else if (!loop.symbol) {
    run.last = std::min(run.last, k - 1 + run.period->cycle);
  } else {
    const TripClasses& classes = classes_.try_emplace(loop.key, *run.period).first->second;
    run.last = std::max(k - 1, std::min(run.last, classes.count()));
  }
}

/// Hands the body of iteration `k` its inputs.
void Placer::enter_body(const Loop& loop, std::int64_t k, std::span<const Placed> before, Bdd inside) {
  const Graph& body = model_.graph(loop.region.body());
  const auto operands = model_.operands(model_.node(loop.id));
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    const ValueId input = body.inputs[i];
    Placed placed{lattice_.unknown(), {}};
    const auto operand = loop.region.operand_of_input(i), output = loop.region.next_output_of_input(i);
    if (!operand) {
      placed.device = lattice_.on(0);
      placed.content = loop.region.iteration_input == i
                           ? Element{.kind = Element::Kind::kNumber, .is_iteration = true, .number = k - 1}
                           : Element{.kind = Element::Kind::kNumber, .number = 1};
    } else {
      placed = output ? before[i - loop.region.control_inputs] : loop.slices[i - loop.region.slice_input(0)];
      const ValueId from = output && k > 1 ? body.outputs[*output] : operands[*operand];
      placed.device = claim(loop.id, input, from, placed.device, inside);
    }
    set(input, placed, inside);
  }
}

/// The loop-carried values after iteration `k`; its scan outputs are added to `all`.
std::vector<Placed> Placer::leave_body(const Loop& loop, std::int64_t k, std::span<std::optional<Bdd>> all,
                                       Bdd inside) {
  const RegionOp& region = loop.region;
  const Graph& body = model_.graph(region.body());
  const std::vector<Placed> outputs = outputs_of(region.body());
  std::vector<Placed> after;
  for (std::size_t i = 0; i < region.carried; ++i) {
    after.push_back(outputs[region.carried_output(i)]);
    if (after[i].content.is_iteration) after[i].content = symbols_.fresh(body.outputs[region.carried_output(i)]);
    records_.note_carried(loop.id, i, k, loop.carried[i].device, after[i].device, inside);
  }
  constexpr std::uint64_t kStepsOfSlice = 96;
  for (std::size_t s = 0; s < all.size(); ++s) {
    analysis_.facts().meter().charge(kStepsOfSlice);
    if (analysis_.facts().meter().is_spent()) break;  // nothing of what is found will be reported
    const std::size_t output = region.scan_output(s);
    add_slice(loop, all[s], outputs[output].device, body.outputs[output], inside);
  }
  return after;
}

void Placer::add_slice(const Loop& loop, std::optional<Bdd>& all, Bdd slice, ValueId value, Bdd inside) {
  if (!all) {
    all = slice;
    return;
  }
  const Bdd together = lattice_.meet(*all, slice);
  const Bdd fails = lattice_.fails(together);
  records_.reach(loop.id, store_.and_(inside, lattice_.untainted(together)));
  fail(loop.id, store_.and_(inside, fails),
       [&](ViolatingVisit& visit) { visit.sides = {{value, *all}, {value, slice}}; });
  all = store_.ite(inside, lattice_.result(together), *all);
}

void Placer::need_classes(std::uint64_t key, const TripClasses& own) {
  TripClasses& all = classes_.emplace(key, own).first->second;
  const std::int64_t before = all.count();
  all.prefix = std::min(std::max(all.prefix, own.prefix), kMaxContexts);
  all.cycle = std::min(std::lcm(all.cycle, own.cycle), kMaxContexts);
  needs_another_pass_ = needs_another_pass_ || all.count() != before;
}

/// The loop-carried values after the loop: the state before the first iteration that was not entered. Where that is not
/// known, a value may be wherever it was in some state.
std::vector<Placed> Placer::carried_after(const Loop& loop, const Iterations& run) {
  const Graph& body = model_.graph(loop.region.body());
  std::vector<Placed> carried = run.states.back();
  for (std::size_t s = run.states.size() - 1; s-- > 0;) {
    const Bdd more = run.entered[s + 1];
    for (std::size_t i = 0; i < carried.size(); ++i) {
      const Placed& earlier = run.states[s][i];
      carried[i].device = store_.ite(more, carried[i].device, earlier.device);
      carried[i].content =
          symbols_.merge(more, carried[i].content, earlier.content, body.inputs[loop.region.carried_input(i)]);
    }
  }
  const bool is_cut_short = !run.period && run.followed() == run.most && (!loop.trips || *loop.trips > run.most);
  if (is_cut_short || !run.is_exact) {
    limit(loop.id,
          fmt::format(
              "followed for {} iterations only: devices, or the conditions that decide them, do not repeat before",
              run.followed()));
    for (std::size_t i = 0; i < carried.size(); ++i)
      for (const std::vector<Placed>& state : run.states)
        carried[i] = {lattice_.join(carried[i].device, state[i].device), {}};
  }
  return carried;
}

}  // namespace tensorlint::placement
