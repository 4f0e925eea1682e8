#include <algorithm>
#include <cmath>
#include <utility>

#include "passes/dataflow/slices.h"
#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

constexpr std::int64_t kMaxExactTrips = 16;  // constant trip counts up to this are followed iteration by iteration
constexpr int kJoinsBeforeWidening = 3;
constexpr int kMaxJoins = kJoinsBeforeWidening + 8;

const ops::Constraint kBodyCondition{"body_condition_is_bool", ops::ConstraintKind::kTypeConstraint,
                                     "the condition that a body yields is bool"};
const ops::Constraint kCarriedKeepsType{"carried_keeps_type", ops::ConstraintKind::kLoopCarriedType,
                                        "a carried value keeps its type"};

const ops::Constraint kStateKeepsShape{"state_keeps_shape", ops::ConstraintKind::kIterationShapes,
                                       "a state of a Scan keeps its shape"};
const ops::Constraint kSlicesAreAlike{"slices_are_alike", ops::ConstraintKind::kIterationShapes,
                                      "what iterations give to be stacked has one shape"};

FactId scalar_fact(FactStore& facts, DType dtype, Range range) {
  Fact fact;
  fact.kind = ValueKind::kTensor;
  fact.dtypes = dtype;
  fact.shape = facts.intern_shape({});
  fact.range = range;
  return facts.intern(fact);
}

FactId exact_number(FactStore& facts, DType dtype, std::int64_t k) {
  Fact fact = facts.fact(scalar_fact(facts, dtype, {static_cast<double>(k), static_cast<double>(k), false}));
  fact.content = facts.intern_content({{facts.dims().constant(k)}, {}});
  return facts.intern(fact);
}

/// Gives up what still changes after several joins, so that the iteration ends.
FactId widen(FactStore& facts, FactId before_id, FactId after_id) {
  if (before_id == after_id) return after_id;
  const Fact before = facts.fact(before_id);
  Fact fact = facts.fact(after_id);
  if (fact.kind == ValueKind::kUnknown) return after_id;
  fact.attains = false;
  if (!(before.range == fact.range)) fact.range = range_of(fact.dtypes);
  if (before.content != fact.content) fact.content = ContentId::kNone;
  if (before.element != fact.element) fact.element = FactId::kTop;
  return facts.intern(fact);
}

}  // namespace

/// The iterations of a loop while they are followed: one by one where their number is constant and small, else one for
/// all of them, with what enters it joined until nothing new leaves it.
struct Solver::Iterations {
  std::vector<AbstractValue> before;          ///< loop-carried values that enter the iteration
  std::vector<AbstractValue> after{};         ///< those that leave it
  std::vector<AbstractValue> scan_outputs{};  ///< joined over the iterations so far
  std::optional<std::int64_t> trips;          ///< their exact number, where it is constant
  bool is_exact = false;                      ///< each iteration is followed on its own
  bool was_exact = false;                     ///< the last one was
  bool uses_number = false;                   ///< the body reads the number of the iteration
  int joins = 0;
  std::uint32_t checkpoint = 0;  ///< symbols made since are of one iteration: the next one has others
};

Solver::LoopResults Solver::iterate(NodeId id, const Loop& loop) {
  if (loop.trips == 0) {
    infer_unrun(id, loop.region.body());
    return {.carried = loop.carried, .scan_outputs = {}, .trips = 0};
  }
  const ValueId number = value_at(model_.graph(loop.region.body()).inputs, loop.region.iteration_input);
  Iterations run{.before = loop.carried,
                 .trips = loop.trips,
                 .is_exact = loop.trips && *loop.trips <= kMaxExactTrips,
                 .uses_number = reads_iteration(loop.region.body(), number),
                 .checkpoint = facts_.dims().checkpoint()};
  const std::int64_t outer_iteration = iteration_;
  std::optional<std::vector<AbstractValue>> carried;
  for (std::int64_t k = 0; !carried; ++k) {
    iteration_ = k + 1;
    run_body(id, loop, run, k);
    carried = run.is_exact ? next_iteration(loop, run, k) : join_iteration(loop, run);
  }
  iteration_ = outer_iteration;
  return {.carried = std::move(*carried), .scan_outputs = std::move(run.scan_outputs), .trips = run.trips};
}

/// The body, or one in it, takes the number of the iteration, or gives it as an output.
bool Solver::reads_iteration(GraphId body, ValueId number) {
  if (number == ValueId::kAbsent) return false;
  std::optional<bool>& known = state(body).reads_iteration;
  if (known) return *known;
  std::vector<GraphId> graphs{body};
  bool reads = false;
  for (std::size_t g = 0; g < graphs.size() && !reads; ++g) {
    const std::vector<GraphId>& nested = bodies_[graphs[g]];
    graphs.insert(graphs.end(), nested.begin(), nested.end());
    const Graph& graph = model_.graph(graphs[g]);
    const auto takes = [&](NodeId node) {
      return std::ranges::find(model_.operands(model_.node(node)), number) != model_.operands(model_.node(node)).end();
    };
    reads = std::ranges::find(graph.outputs, number) != graph.outputs.end() ||
            std::any_of(graph.nodes.begin(), graph.nodes.end(), takes);
  }
  known = reads;
  return reads;
}

/// What enters the body in iteration `k`, or in all of them.
std::vector<AbstractValue> Solver::body_inputs(const Loop& loop, const Iterations& run, std::int64_t k) {
  const RegionOp& region = loop.region;
  std::vector<AbstractValue> inputs(region.control_inputs);
  if (region.iteration_input) {
    const double last = loop.trips ? static_cast<double>(*loop.trips - 1) : HUGE_VAL;
    inputs[*region.iteration_input].fact =
        run.is_exact ? exact_number(facts_, DType::kInt64, k) : scalar_fact(facts_, DType::kInt64, {0, last, false});
  }
  if (region.condition_input)  // the body runs only while the condition holds
    inputs[*region.condition_input].fact = exact_number(facts_, DType::kBool, 1);
  inputs.insert(inputs.end(), run.before.begin(), run.before.end());
  inputs.insert(inputs.end(), loop.slices.begin(), loop.slices.end());
  return inputs;
}

/// Follows the body once, and notes what leaves it.
void Solver::run_body(NodeId id, const Loop& loop, Iterations& run, std::int64_t k) {
  const RegionOp& region = loop.region;
  run.was_exact = run.is_exact;
  ++conditional_;  // it may run no iteration, or not this one
  const std::vector<AbstractValue> outputs = follow_body(region.body(), body_inputs(loop, run, k));
  --conditional_;

  const auto first_carried = outputs.begin() + static_cast<std::ptrdiff_t>(region.carried_output(0));
  const auto first_scan_output = outputs.begin() + static_cast<std::ptrdiff_t>(region.scan_output(0));
  run.after.assign(first_carried, first_scan_output);
  report_carried(id, loop, run.after);
  if (k == 0) {
    if (region.kind == RegionKind::kScan) check_states(id, loop, run.after);
    run.scan_outputs.assign(first_scan_output, outputs.end());
  } else {
    for (std::size_t s = 0; s < run.scan_outputs.size(); ++s) {
      const AbstractValue& slice = outputs[region.scan_output(s)];
      if (run.was_exact) check_slices(id, region.carried + s, run.scan_outputs[s], slice);
      run.scan_outputs[s] = join(facts_, run.scan_outputs[s], slice);
    }
  }
  if (!region.condition_output) return;
  const AbstractValue& condition = outputs[*region.condition_output];
  if (loop.trips != 1) check_condition(id, condition);  // nobody reads it after the only iteration
  // An early end makes the number of iterations unknown, so what was followed exactly is only a prefix.
  if (single_constant(facts_, condition.fact) != 1) {
    run.is_exact = false;
    run.trips = std::nullopt;
  }
}

/// After iteration `k`, followed on its own: the final values of a loop that ends here, or repeats from here on.
std::optional<std::vector<AbstractValue>> Solver::next_iteration(const Loop& loop, Iterations& run, std::int64_t k) {
  const bool is_last = k + 1 == *run.trips;
  if (!is_last && (run.after != run.before || run.uses_number)) {
    run.before = run.after;
    return std::nullopt;
  }
  if (!is_last) leave_out_iterations(loop);
  return run.after;
}

/// The iterations that are not followed differ in their number alone, which nothing reads.
void Solver::leave_out_iterations(const Loop& loop) {
  const ValueId number = value_at(model_.graph(loop.region.body()).inputs, loop.region.iteration_input);
  if (number == ValueId::kAbsent || speculative_) return;
  const FactId all = scalar_fact(facts_, DType::kInt64, {0, static_cast<double>(*loop.trips - 1), false});
  out_.value_facts_[number] = facts_.join(out_.value_facts_[number], all);
}

/// After an iteration that stands for all: the final values, once the iteration yields nothing that did not enter it.
std::optional<std::vector<AbstractValue>> Solver::join_iteration(const Loop& loop, Iterations& run) {
  const auto joined = [&](std::size_t i) {
    return without_symbols_since(facts_, join(facts_, run.before[i], run.after[i]).fact, run.checkpoint);
  };
  std::vector<AbstractValue> next(loop.carried.size());
  for (std::size_t i = 0; i < next.size(); ++i) {
    next[i] = join(facts_, loop.carried[i], {joined(i), run.after[i].taint});
    next[i].taint |= run.before[i].taint;
    if (run.joins >= kJoinsBeforeWidening) next[i].fact = widen(facts_, run.before[i].fact, next[i].fact);
  }
  ++run.joins;
  // An iteration that was followed on its own had its own number, which is not that of those after it.
  const bool has_others = run.was_exact && *loop.trips > 1;
  if (next == run.before && !(has_others && run.uses_number)) {
    if (has_others) leave_out_iterations(loop);
    std::vector<AbstractValue> carried = run.after;
    for (std::size_t i = 0; i < carried.size() && loop.trips != 1; ++i) carried[i].fact = joined(i);
    return carried;
  }
  run.before = std::move(next);
  if (!budget_.is_spent() && run.joins <= kMaxJoins) return std::nullopt;
  forget(loop.region.body());
  std::ranges::fill(run.scan_outputs, AbstractValue{});
  return std::vector<AbstractValue>(loop.carried.size());
}

void Solver::check_condition(NodeId id, const AbstractValue& condition) {
  const Fact& fact = facts_.fact(condition.fact);
  if (fact.kind != ValueKind::kTensor || condition.taint.has(Aspect::kDtype) || fact.dtypes.contains(DType::kBool))
    return;
  record(id, kBodyCondition, {}, {"the condition that the body yields is {}, it has to be bool", fact.dtypes});
}

/// What changes its type goes on tainted: the following iterations and the node's results repeat the same mistake.
void Solver::report_carried(NodeId id, const Loop& loop, std::span<AbstractValue> after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    Taint tainted = loop.carried[i].taint;
    tainted |= after[i].taint;
    if (tainted.has(Aspect::kDtype) || !types_clash(facts_, loop.carried[i].fact, after[i].fact)) continue;
    record(id, kCarriedKeepsType, {},
           {"{} enters the first iteration as {} and leaves it as {}", ops::ResultRef(i), loop.carried[i].fact,
            after[i].fact});
    after[i].taint |= Aspect::kDtype;
    after[i].taint |= Aspect::kShape;
  }
}

/// ONNX asks a Scan, not a Loop, to give the states of all iterations one shape.
void Solver::check_states(NodeId id, const Loop& loop, std::span<const AbstractValue> after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (!shapes_never_equal(facts_, loop.carried[i], after[i])) continue;
    facts_.meter().charge(ops::kStepsOfViolation);
    record(id, {&kStateKeepsShape,
                ops::Certainty::kMay,
                {static_cast<int>(loop.region.carried_operand(i))},
                {"{} enters the first iteration as {} and leaves it as {}", ops::ResultRef(i),
                 facts_.fact(loop.carried[i].fact).shape, facts_.fact(after[i].fact).shape},
                ops::Message("the engine keeps the shapes of states, as onnxruntime does"),
                true});
  }
}

/// Compares what an iteration gives to be stacked with what those before it gave.
void Solver::check_slices(NodeId id, std::size_t result, const AbstractValue& before, const AbstractValue& slice) {
  if (!shapes_never_equal(facts_, before, slice)) return;
  record(id, kSlicesAreAlike, {},
         {"{} stacks {} of one iteration on {} of another", ops::ResultRef(result), facts_.fact(slice.fact).shape,
          facts_.fact(before.fact).shape});
}

/// Compares what the body declares of its inputs with what enters the first iteration.
void Solver::check_body_inputs(NodeId id, const Loop& loop, std::span<const AbstractValue> operands) {
  const RegionOp& region = loop.region;
  // The number of the iteration is of the trip count's type, the condition of the condition's.
  for (std::size_t i = 0; i < region.control_inputs; ++i)
    check_body_input(id, region.body(), i, operands[i], static_cast<int>(i), region.condition_input == i);
  for (std::size_t i = 0; i < region.carried; ++i)
    check_body_input(id, region.body(), region.carried_input(i), loop.carried[i],
                     static_cast<int>(region.carried_operand(i)), false);
  for (std::size_t i = 0; i < region.scanned; ++i)
    check_body_input(id, region.body(), region.slice_input(i), loop.slices[i],
                     static_cast<int>(region.scanned_operand(i)), true);
}

void Solver::visit_loop(NodeId id, const Application& call, const RegionOp& region,
                        std::span<const AbstractValue> operands) {
  if (!region.has_graphs() || !body_fits(id, region, call.result_count)) return;
  Loop loop{.region = region, .carried = carried_operands(region, operands)};
  loop.trips = trip_count(call, region);
  check_body_inputs(id, loop, operands);
  LoopResults after = iterate(id, loop);
  std::vector<AbstractValue> results = std::move(after.carried);
  if (after.trips == 0) {
    const std::vector<ValueId>& outputs = model_.graph(region.body()).outputs;
    for (std::size_t o = region.scan_output(0); o < outputs.size(); ++o)
      results.push_back({stacked_without_visit(outputs[o]), {}});
  } else {
    const Dim trips = after.trips ? facts_.dims().constant(*after.trips)
                                  : facts_.dims().fresh(call.site, 0x10000, Unknown::kDataDependent);
    for (const AbstractValue& element : after.scan_outputs) results.push_back(with_axis(facts_, element, 0, trips));
  }
  set_results(id, results);
}

std::vector<AbstractValue> Solver::carried_operands(const RegionOp& region, std::span<const AbstractValue> operands) {
  const auto carried = operands.subspan(region.carried_operand(0), region.carried);
  return {carried.begin(), carried.end()};
}

/// How often a Loop runs at most, where that is constant: 0 where its condition is false to begin with.
std::optional<std::int64_t> Solver::trip_count(const Application& call, const RegionOp& region) const {
  const auto constant = [&](RegionOp::Index operand) { return single_constant(facts_, call.operands[*operand]); };
  std::optional<std::int64_t> trips;
  if (call.has_operand(*region.trip_count_operand)) trips = constant(region.trip_count_operand);
  if (trips) trips = std::max<std::int64_t>(*trips, 0);
  if (!call.has_operand(*region.condition_operand)) return trips;
  const auto condition = constant(region.condition_operand);
  if (condition == 0) return 0;
  return condition || trips == 0 ? trips : std::nullopt;
}

/// A loop that never runs stacks nothing: only the declared element type is known.
FactId Solver::stacked_without_visit(ValueId output) {
  const TypeDecl* type = output == ValueId::kAbsent ? nullptr : model_.value(output).type;
  if (type == nullptr || type->kind != TypeKind::kTensor) return FactId::kTop;
  Fact fact = facts_.fact(initial_facts_.declared(*type, 0));
  if (fact.shape != ShapeId::kUnranked) {
    ops::Dims dims = ops::copy_dims(facts_.dims_of(fact.shape));
    dims.insert(dims.begin(), facts_.dims().constant(0));
    fact.shape = facts_.intern_shape(dims);
  }
  return facts_.intern(fact);
}

}  // namespace tensorlint::dataflow
