#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "passes/placement/placer.h"
#include "passes/placement/tensor_facts.h"

namespace tensorlint {
namespace {

constexpr std::int64_t kExactIterations = 4;  // from then on, choices of earlier iterations are forgotten

}  // namespace

/// A Loop or Scan.
struct Placer::Loop {
  NodeId id;
  GraphId body;
  std::size_t lead = 0;      ///< body inputs before the carried values: iteration number and condition
  std::size_t lead_out = 0;  ///< body outputs before them: the condition
  std::vector<Placed> carried{};
  std::vector<ValueId> handed{};   ///< operands that start the carried values
  std::vector<Placed> trailing{};  ///< Scan: elements
  std::vector<ValueId> trailing_from{};
  Bdd start = kTrue;                    ///< condition of the first iteration
  std::optional<std::int64_t> trips{};  ///< known number
  std::optional<std::uint32_t> symbol{};
  std::uint64_t key = 0;  ///< of the symbol's classes
};

struct Placer::Iterated {
  std::vector<Placed> carried;               ///< after the loop
  std::vector<std::pair<Bdd, bool>> slices;  ///< of each scan output: where all of them are; false: none was made
};

void Placer::visit_loop(NodeId id, const Node& node, Bdd guard) {
  const auto operands = model_.operands(node);
  Loop loop{.id = id, .body = body_of(node, "body"), .lead = 2, .lead_out = 1};
  if (loop.body == GraphId::kNone || operands.size() < 2) return give_up(id, guard, {});
  for (const ValueId value : operands.subspan(2)) {
    loop.carried.push_back(read(value));
    loop.handed.push_back(value);
  }
  const Graph& body = model_.graph(loop.body);
  if (body.inputs.size() != loop.carried.size() + 2 || body.outputs.size() < loop.carried.size() + 1)
    return give_up(id, guard, {});
  records_.reach(id, guard);
  if (operands[0] != ValueId::kAbsent) {
    note_number_use(operands[0]);
    Element& trips = current_[index(operands[0])].content;
    if (const auto number = known_integer(analysis_, operands[0]))
      trips = {.kind = Element::Kind::kNumber, .is_iteration = false, .number = *number};
    if (trips.kind != Element::Kind::kNumber && trips.kind != Element::Kind::kSymbol)
      trips = symbols_.fresh(operands[0]);
    if (trips.kind == Element::Kind::kNumber) {
      loop.trips = std::max<std::int64_t>(trips.number, 0);
    } else {
      loop.symbol = trips.symbol;
      loop.key = symbols_.source(trips.symbol);
    }
  }
  if (operands[1] != ValueId::kAbsent) {
    note_number_use(operands[1]);
    const auto start = condition(operands[1]);
    if (!start) limit_choices(id);
    loop.start = start.value_or(kTrue);
  }
  set_loop_results(node, iterate(loop, guard), guard);
}

void Placer::visit_scan(NodeId id, const Node& node, Bdd guard) {
  const auto operands = model_.operands(node);
  Loop loop{.id = id, .body = body_of(node, "body")};
  const Attribute* scanned_attribute = attributes_.find(node, "num_scan_inputs");
  const std::int64_t scanned = scanned_attribute == nullptr ? 0 : scanned_attribute->i;
  if (loop.body == GraphId::kNone || model_.op(node).opset < 9 || scanned < 1 ||
      static_cast<std::uint64_t>(scanned) > operands.size())
    return give_up(id, guard, {});
  const std::size_t count = operands.size() - static_cast<std::size_t>(scanned);
  const Graph& body = model_.graph(loop.body);
  if (body.inputs.size() != operands.size() || body.outputs.size() < count) return give_up(id, guard, {});
  for (std::size_t i = 0; i < operands.size(); ++i) {
    (i < count ? loop.carried : loop.trailing).push_back(read(operands[i]));
    (i < count ? loop.handed : loop.trailing_from).push_back(operands[i]);
  }
  for (Placed& element : loop.trailing) element.content = {};
  records_.reach(id, guard);
  set_trips(loop, node, operands[count]);
  set_loop_results(node, iterate(loop, guard), guard);
}

/// A Scan runs once per element of the scanned axis; the same dim is the same number everywhere.
void Placer::set_trips(Loop& loop, const Node& node, ValueId sequence) {
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
      if (!dim.is_unknown()) loop.symbol = symbols_.of_dim(dim);
    }
  }
  if (!loop.symbol) loop.symbol = symbols_.fresh(sequence).symbol;
  loop.key = symbols_.source(*loop.symbol);
}

void Placer::set_loop_results(const Node& node, const Iterated& after, Bdd guard) {
  const auto results = model_.results(node);
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r] == ValueId::kAbsent) continue;
    if (r < after.carried.size()) {
      set(results[r], after.carried[r], guard);
    } else {
      const std::size_t slice = r - after.carried.size();
      set(results[r], {slice < after.slices.size() ? after.slices[slice].first : lattice_.unknown(), {}}, guard);
    }
  }
}

Placer::Iterated Placer::iterate(const Loop& loop, Bdd guard) {
  const Graph& body = model_.graph(loop.body);
  const std::size_t count = loop.carried.size();
  const std::size_t slice_count = body.outputs.size() - std::min(body.outputs.size(), loop.lead_out + count);
  Iterated result;
  result.slices.assign(slice_count, {lattice_.unknown(), false});
  std::vector<std::vector<Placed>> states{loop.carried};
  std::vector<Bdd> entered{kTrue};  // by iteration from 1: when it is begun
  std::map<std::vector<std::uint64_t>, std::int64_t> seen;
  const Symbols::Count old = symbols_.count();
  std::int64_t last = kMaxContexts;
  const TripClasses* classes = nullptr;
  if (loop.trips) last = std::min(last, *loop.trips);
  if (loop.symbol) {
    const auto known = classes_.find(loop.key);
    if (known != classes_.end()) classes = &known->second;
  }
  std::optional<TripClasses> period;
  Bdd going = loop.start, goes_on = kTrue;
  bool uses_number = false;
  bool told_apart = true;
  const auto may_begin = [&](std::int64_t k) -> Bdd {
    if (!loop.symbol) return kTrue;
    const auto more = symbols_.above(*loop.symbol, k - 1, true);
    told_apart = told_apart && more.has_value();
    return more.value_or(kFalse);
  };

  std::int64_t k = 1;
  for (; k <= last; ++k) {
    const Bdd begun = store_.and_(going, may_begin(k));
    const Bdd inside = store_.and_(guard, begun);
    if (inside == kFalse || store_.is_full()) break;
    std::vector<Placed> before = states.back();
    if (k > kExactIterations && loop_states_.depends_on_new(before, old))
      loop_states_.forget_choices(before, inside, old, body.inputs[loop.lead]);
    if (!period && !uses_number) {
      const auto [at, added] = seen.emplace(loop_states_.signature(before, goes_on, old), k - 1);
      if (!added) {
        period = TripClasses{at->second, k - 1 - at->second};
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
    enter_body(loop, k, before, inside);
    visit_graph(loop.body, inside);
    uses_number = uses_number || loops_.back().uses_number;
    states.push_back(leave_body(loop, k, result.slices, inside));
    loops_.pop_back();
    entered.push_back(going);

    goes_on = kTrue;
    if (loop.lead_out == 1 && !body.outputs.empty() && body.outputs[0] != ValueId::kAbsent) {
      const auto next = condition(body.outputs[0]);
      told_apart = told_apart && next.has_value();
      goes_on = next.value_or(kTrue);
    }
    going = store_.and_(going, goes_on);
  }
  // A loop that ends by its condition before it repeats tells as many trip counts apart as it has iterations.
  if (loop.symbol)
    need_classes(loop.key, period.value_or(TripClasses{static_cast<std::int64_t>(states.size()) - 1, 1}));
  const bool cut_short = !period && k > last && last == kMaxContexts && (!loop.trips || *loop.trips > kMaxContexts);
  if (cut_short || !told_apart) {
    limit(loop.id,
          fmt::format(
              "followed for {} iterations only: devices, or the conditions that decide them, do not repeat before",
              states.size() - 1));
  }

  result.carried = carried_after(loop, states, entered);
  if (cut_short || !told_apart) {
    for (std::size_t i = 0; i < count; ++i)
      for (const std::vector<Placed>& state : states)
        result.carried[i] = {lattice_.join(result.carried[i].device, state[i].device), {}};
  }
  return result;
}

/// Hands the body of iteration `k` its inputs.
void Placer::enter_body(const Loop& loop, std::int64_t k, std::span<const Placed> before, Bdd inside) {
  const Graph& body = model_.graph(loop.body);
  const std::size_t count = loop.carried.size();
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    const ValueId input = body.inputs[i];
    Placed placed{lattice_.unknown(), {}};
    if (i < loop.lead) {
      placed.device = lattice_.on(0);
      placed.content = i == 0 ? Element{.kind = Element::Kind::kNumber, .is_iteration = true, .number = k - 1}
                              : Element{.kind = Element::Kind::kNumber, .number = 1};
    } else if (i < loop.lead + count) {
      placed = before[i - loop.lead];
      const bool first = k == 1;
      placed.device =
          claim(loop.id, input, first ? loop.handed[i - loop.lead] : body.outputs[loop.lead_out + i - loop.lead],
                placed.device, inside);
    } else if (i - loop.lead - count < loop.trailing.size()) {
      placed = loop.trailing[i - loop.lead - count];
      placed.device = claim(loop.id, input, loop.trailing_from[i - loop.lead - count], placed.device, inside);
    }
    set(input, placed, inside);
  }
}

/// What the body of iteration `k` carries on; what it stacks up goes to `slices`.
std::vector<Placed> Placer::leave_body(const Loop& loop, std::int64_t k, std::span<std::pair<Bdd, bool>> slices,
                                       Bdd inside) {
  const Graph& body = model_.graph(loop.body);
  const std::size_t count = loop.carried.size();
  const std::vector<Placed> outputs = outputs_of(loop.body);
  std::vector<Placed> after(count, Placed{lattice_.unknown(), {}});
  for (std::size_t i = 0; i < count && loop.lead_out + i < outputs.size(); ++i) {
    after[i] = outputs[loop.lead_out + i];
    if (after[i].content.is_iteration) after[i].content = symbols_.fresh(body.outputs[loop.lead_out + i]);
    records_.note_carried(loop.id, i, k, loop.carried[i].device, after[i].device, inside);
  }
  for (std::size_t s = 0; s < slices.size(); ++s) {
    add_slice(loop, slices[s], outputs[loop.lead_out + count + s].device, body.outputs[loop.lead_out + count + s],
              inside);
  }
  return after;
}

void Placer::add_slice(const Loop& loop, std::pair<Bdd, bool>& all, Bdd slice, ValueId value, Bdd inside) {
  if (!all.second) {
    all = {slice, true};
    return;
  }
  const Bdd together = lattice_.meet(all.first, slice);
  const Bdd fails = lattice_.fails(together);
  records_.reach(loop.id, store_.and_(inside, lattice_.untainted(together)));
  fail(loop.id, store_.and_(inside, fails),
       [&](FailedVisit& visit) { visit.sides = {{value, all.first}, {value, slice}}; });
  all.first = store_.ite(inside, lattice_.result(together), all.first);
}

void Placer::need_classes(std::uint64_t key, const TripClasses& own) {
  TripClasses& all = classes_.emplace(key, own).first->second;
  const std::int64_t before = all.count();
  all.prefix = std::min(std::max(all.prefix, own.prefix), kMaxContexts);
  all.cycle = std::min(std::lcm(all.cycle, own.cycle), kMaxContexts);
  needs_another_pass_ = needs_another_pass_ || all.count() != before;
}

/// The state before the first iteration that was not begun. `entered`: by iteration from 1, when it is begun.
std::vector<Placed> Placer::carried_after(const Loop& loop, std::span<const std::vector<Placed>> states,
                                          std::span<const Bdd> entered) {
  const Graph& body = model_.graph(loop.body);
  std::vector<Placed> carried = states.back();
  for (std::size_t s = states.size() - 1; s-- > 0;) {
    const Bdd more = entered[s + 1];
    for (std::size_t i = 0; i < carried.size(); ++i) {
      carried[i].device = store_.ite(more, carried[i].device, states[s][i].device);
      carried[i].content = symbols_.merge(more, carried[i].content, states[s][i].content, body.inputs[loop.lead + i]);
    }
  }
  return carried;
}

}  // namespace tensorlint
