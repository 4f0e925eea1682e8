#include "passes/placement/records.h"

#include <algorithm>

#include "base/escape.h"

namespace tensorlint::placement {
namespace {

/// Conditions and trip counts of one witness: nobody reads more of them.
constexpr std::size_t kMostConditions = 20;
/// Some bytes of memory, and steps, that each takes besides its name.
constexpr std::uint64_t kBytesOfCondition = 96, kStepsOfCondition = 32;

std::int64_t latest(std::span<const LoopFrame> loops) {
  std::int64_t latest = 0;
  for (const LoopFrame& frame : loops) latest = std::max(latest, frame.iteration);
  return latest;
}

}  // namespace

void PlacementRecords::reach(NodeId id, Bdd reached) {
  if (reached == kFalse) return;
  Record& record = records_[id];
  record.reached = lattice_.store().or_(record.reached, reached);
}

ViolatingVisit* PlacementRecords::fail(NodeId id, Bdd fails, std::span<const LoopFrame> loops,
                                       std::span<const NodeId> calls) {
  if (fails == kFalse) return nullptr;
  Record& record = records_[id];
  record.fails = lattice_.store().or_(record.fails, fails);
  if (record.first && latest(record.first->loops) <= latest(loops)) return nullptr;
  memory_.add(loops.size_bytes() + calls.size_bytes());
  record.first = ViolatingVisit{fails, {}, {loops.begin(), loops.end()}, {calls.begin(), calls.end()}};
  return &*record.first;
}

void PlacementRecords::note_carried(NodeId loop, std::size_t result, std::int64_t iteration, Bdd first, Bdd now,
                                    Bdd inside) {
  if (first == now || changes_.contains({loop, result})) return;
  meter_.charge(kStepsOfCondition);
  const auto where = lattice_.store().example(lattice_.store().and_(inside, lattice_.differs(first, now)));
  if (!where) return;
  changes_.emplace(std::pair(loop, result),
                   PlacementChange{loop, result, iteration + 1, device_at(first, *where), device_at(now, *where)});
}

std::vector<PlacementViolation> PlacementRecords::violations(const IdVector<OperatorId, OperatorTraits>& traits) const {
  std::vector<PlacementViolation> violations;
  for (const auto& [id, record] : records_) {
    if (!record.first) continue;
    if (!violations.empty() && meter_.is_spent()) break;  // which says so: the report is partial
    PlacementViolation& violation = violations.emplace_back();
    violation.node = id;
    violation.certainty =
        lattice_.store().without(record.reached, record.fails) == kFalse ? ops::Certainty::kMust : ops::Certainty::kMay;
    describe(violation, *record.first, *lattice_.store().example(record.first->fails), traits);
  }
  return violations;
}

std::vector<PlacementChange> PlacementRecords::changes() const {
  std::vector<PlacementChange> changes;
  for (const auto& [key, change] : changes_) changes.push_back(change);
  for (const auto& [key, bits] : branch_devices_) {
    if (bits[0] == 0 || bits[1] == 0 || bits[0] == bits[1] || bits[0] == kAnywhere || bits[1] == kAnywhere) continue;
    changes.push_back({key.first, key.second, 0, name_of(bits[0] & ~bits[1] ? bits[0] & ~bits[1] : bits[0]),
                       name_of(bits[1] & ~bits[0] ? bits[1] & ~bits[0] : bits[1])});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const PlacementChange& a, const PlacementChange& b) { return a.node < b.node; });
  return changes;
}

std::string PlacementRecords::device_at(Bdd device, const Choices& choices) const {
  return name_of(lattice_.state_at(device, choices).bits);
}

const std::string& PlacementRecords::symbol_name(std::uint32_t symbol) const {
  const auto [known, is_new] = symbol_names_.try_emplace(symbol);
  if (is_new) known->second = symbols_.name(symbol);
  if (known->second.size() > kShownLength) known->second = escape_for_display(known->second);
  return known->second;
}

std::string PlacementRecords::name_of(std::uint64_t bits) const {
  for (std::size_t d = 0; d < sources_.names().size(); ++d)
    if ((bits >> d) & 1U) return sources_.names()[d];
  return {};
}

PlacementRecords::Deciders PlacementRecords::deciders_of(Bdd device) const {
  const auto [known, is_new] = deciders_.try_emplace(device.id);
  if (!is_new) return known->second;
  for (const Bdd node : lattice_.store().nodes_of(device)) {
    if (lattice_.store().is_leaf(node)) continue;
    const bool is_trip_count = symbols_.variable(lattice_.store().variable(node)).is_trip_count;
    (is_trip_count ? known->second.trip_counts : known->second.conditions) = true;
  }
  return known->second;
}

void PlacementRecords::describe(PlacementViolation& violation, const ViolatingVisit& visit, const Choices& choices,
                                const IdVector<OperatorId, OperatorTraits>& traits) const {
  PlacementWitness& witness = violation.witness;
  const std::uint64_t home = lattice_.state_at(visit.sides[0].second, choices).bits;
  std::size_t other = 1;
  for (std::size_t s = 1; s < visit.sides.size(); ++s) {
    // An operand of the host that is on the cpu is where it may be; the sides say nothing about that, so it comes last.
    if ((lattice_.state_at(visit.sides[s].second, choices).bits & home) != 0) continue;
    other = s;
    break;
  }
  violation.first = visit.sides[0].first;
  violation.second = visit.sides[other].first;
  witness.device = device_at(visit.sides[0].second, choices);
  witness.other = device_at(visit.sides[other].second, choices);
  for (const LoopFrame& frame : visit.loops) {
    witness.loops.push_back(frame.node);
    witness.iterations.push_back(frame.iteration);
  }
  witness.iteration = latest(visit.loops);
  witness.calls = visit.calls;
  std::uint64_t kept =
      visit.loops.size() * (sizeof(NodeId) + sizeof(std::int64_t)) + visit.calls.size() * sizeof(NodeId);
  const auto keep = [&](auto& named, std::uint32_t symbol, auto value) {
    if (named.size() == kMostConditions) {
      ++witness.left_out;
      return;
    }
    const std::string& name = symbol_name(symbol);
    named[name] = value;
    kept += kBytesOfCondition + name.size();
    meter_.charge(kStepsOfCondition);
  };
  std::map<std::uint32_t, std::int64_t> trips;
  for (const auto& [variable, choice] : choices) {
    const Symbols::Variable& known = symbols_.variable(variable);
    if (known.is_trip_count) {
      trips[known.symbol] = std::max(trips[known.symbol], choice ? known.above + 1 : 0);
    } else {
      keep(witness.conditions, known.symbol, choice);
    }
  }
  for (const auto& [symbol, count] : trips) keep(witness.trip_counts, symbol, count);
  meter_.charge(choices.size());
  meter_.keep(kept);  // as long as the placement, which is as long as the input

  const Deciders a = deciders_of(visit.sides[0].second), b = deciders_of(visit.sides[other].second);
  const Node& node = model_.node(violation.node);
  const DeviceSignature& devices = traits[node.op].devices;
  const auto operands = model_.operands(node);
  const auto position = std::ranges::find(operands, violation.second);
  const bool is_indexed =
      position != operands.end() && devices.is_index(static_cast<std::size_t>(position - operands.begin()));
  if (visit.is_claim) {
    violation.cause = PlacementCause::kClaim;
  } else if (witness.iteration > 1 || a.trip_counts || b.trip_counts) {
    violation.cause = PlacementCause::kLoop;
  } else if (a.conditions || b.conditions) {
    violation.cause = PlacementCause::kBranch;
  } else if (is_indexed && violation.first != ValueId::kAbsent) {
    violation.cause = PlacementCause::kIndex;
  }
}

}  // namespace tensorlint::placement
