#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

constexpr std::int64_t kMaxExactTrips = 16;  // constant trip counts up to this are followed iteration by iteration
constexpr int kJoinsBeforeWidening = 3;

const ops::Constraint kBodyInput{"body_input_type", ops::ConstraintKind::kDeclaredType,
                                 "what a body declares of its inputs agrees with what it is handed"};
const ops::Constraint kStackAxis{"scan_output_axis_in_range", ops::ConstraintKind::kAxisRange,
                                 "-rank <= axis < rank of what is stacked"};
const ops::Constraint kBodyCondition{"body_condition_is_bool", ops::ConstraintKind::kTypeConstraint,
                                     "the condition that a body yields is bool"};
const ops::Constraint kScanLengths{"scan_lengths", ops::ConstraintKind::kShapes,
                                   "all scanned operands have one length"};
const ops::Constraint kCarriedKeepsType{"carried_keeps_type", ops::ConstraintKind::kLoopCarriedType,
                                        "a carried value keeps its type"};

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
  if (!(before.range == fact.range)) fact.range = range_of(fact.dtypes);
  if (before.content != fact.content) fact.content = ContentId::kNone;
  if (before.element != fact.element) fact.element = FactId::kTop;
  return facts.intern(fact);
}

/// [trips] + shape, the results that a Loop or Scan stacks up.
AbstractValue stack(FactStore& facts, const AbstractValue& element, Dim trips, std::int64_t axis) {
  Fact fact = facts.fact(element.fact);
  fact.content = ContentId::kNone;
  if (fact.kind != ValueKind::kTensor) return {FactId::kTop, element.taint};
  if (fact.shape != ShapeId::kUnranked) {
    ops::Dims dims = ops::copy_dims(facts.dims_of(fact.shape));
    const auto rank = static_cast<std::int64_t>(dims.size()) + 1;
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank || dims.size() >= ops::kMaxRank) return {FactId::kTop, element.taint};
    dims.insert(dims.begin() + at, trips);
    fact.shape = facts.intern_shape(dims);
  }
  return {facts.intern(fact), element.taint};
}

/// One element of a batch, whose extent comes first; it is kept in `batch` where it is not known yet.
FactId without_batch(FactStore& facts, FactId id, Dim& batch) {
  Fact fact = facts.fact(id);
  fact.content = ContentId::kNone;
  if (fact.kind == ValueKind::kTensor && fact.shape != ShapeId::kUnranked) {
    const auto dims = facts.dims_of(fact.shape);
    if (!dims.empty() && batch.is_unknown()) batch = dims[0];
    fact.shape = dims.empty() ? ShapeId::kUnranked : facts.intern_shape(dims.subspan(1));
  }
  return facts.intern(fact);
}

/// One slice along an axis, whose extent is kept in `trips` where that is not known yet.
FactId without_axis(FactStore& facts, FactId id, std::int64_t axis, Dim& trips) {
  Fact fact = facts.fact(id);
  fact.content = ContentId::kNone;
  if (fact.kind == ValueKind::kTensor && fact.shape != ShapeId::kUnranked) {
    ops::Dims dims = ops::copy_dims(facts.dims_of(fact.shape));
    const auto rank = static_cast<std::int64_t>(dims.size());
    if (axis >= -rank && axis < rank) {
      axis += axis < 0 ? rank : 0;
      if (trips.is_unknown()) trips = dims[static_cast<std::size_t>(axis)];
      dims.erase(dims.begin() + axis);
      fact.shape = facts.intern_shape(dims);
    } else {
      fact.shape = ShapeId::kUnranked;
    }
  }
  return facts.intern(fact);
}

}  // namespace

/// What a Loop or Scan body does with its carried values, iteration by iteration where that is cheap, else joined.
struct Solver::Iteration {
  GraphId body = GraphId::kNone;
  std::size_t lead = 0;                   ///< inputs before the carried ones (Loop: number and condition)
  std::size_t lead_out = 0;               ///< outputs before the carried ones (Loop: condition)
  std::vector<AbstractValue> carried{};   ///< initial values
  std::vector<AbstractValue> trailing{};  ///< inputs after the carried ones, the same in each iteration
  std::optional<std::int64_t> trips{};    ///< exact number of iterations, where it is constant
  bool has_number = false;                ///< input 0 is the number of the iteration
  bool may_stop = false;                  ///< the body's first output decides whether to go on
};

struct Solver::Outcome {
  std::vector<AbstractValue> carried;  ///< after the last iteration
  std::vector<AbstractValue> stacked;  ///< per iteration: join over all
  std::optional<std::int64_t> trips;
  bool visited = false;
};

bool Solver::body_takes(NodeId id, GraphId body, std::size_t inputs, std::size_t outputs) {
  const Graph& graph = model_.graph(body);
  if (graph.inputs.size() != inputs) {
    record_arity(id, fmt::format("the body takes {} value{}, it is handed {}", graph.inputs.size(),
                                 graph.inputs.size() == 1 ? "" : "s", inputs));
    return false;
  }
  if (graph.outputs.size() != outputs) {
    record_arity(id, fmt::format("the body gives {} value{}, its node takes {}", graph.outputs.size(),
                                 graph.outputs.size() == 1 ? "" : "s", outputs));
    return false;
  }
  return true;
}

Solver::Outcome Solver::iterate(NodeId id, const Iteration& loop) {
  Outcome outcome;
  outcome.carried = loop.carried;
  outcome.trips = loop.trips;
  if (loop.trips == 0) return outcome;
  const std::uint32_t checkpoint = facts_.dims().checkpoint();
  const std::int64_t outer_iteration = iteration_;
  const std::size_t count = loop.carried.size();
  std::vector<AbstractValue> header = loop.carried, after;
  bool exact = loop.trips && *loop.trips <= kMaxExactTrips;
  const bool uses_number = loop.has_number && !out_.users(model_.graph(loop.body).inputs[0]).empty();
  int joins = 0;
  for (std::int64_t k = 0;; ++k) {
    std::vector<AbstractValue> inputs(loop.lead);
    if (loop.has_number) {
      const double last = loop.trips ? static_cast<double>(*loop.trips - 1) : HUGE_VAL;
      inputs[0].fact =
          exact ? exact_number(facts_, DType::kInt64, k) : scalar_fact(facts_, DType::kInt64, {0, last, false});
      inputs[1].fact = exact_number(facts_, DType::kBool, 1);  // the body runs only while the condition holds
    }
    inputs.insert(inputs.end(), header.begin(), header.end());
    inputs.insert(inputs.end(), loop.trailing.begin(), loop.trailing.end());
    iteration_ = k + 1;
    ++conditional_;  // it may run no iteration, or not this one
    const std::vector<AbstractValue> outputs = follow_body(loop.body, inputs);
    --conditional_;
    outcome.visited = true;

    after.assign(count, AbstractValue{});
    for (std::size_t i = 0; i < count && loop.lead_out + i < outputs.size(); ++i) after[i] = outputs[loop.lead_out + i];
    report_carried(id, loop, after);
    for (std::size_t i = loop.lead_out + count; i < outputs.size(); ++i) {
      const std::size_t s = i - loop.lead_out - count;
      if (s >= outcome.stacked.size()) {
        outcome.stacked.push_back(outputs[i]);
      } else {
        outcome.stacked[s] = join(facts_, outcome.stacked[s], outputs[i]);
      }
    }
    if (loop.may_stop && !outputs.empty()) check_condition(id, outputs[0]);
    // An early end makes the number of iterations unknown, so what was followed exactly is only a prefix.
    if (loop.may_stop && (outputs.empty() || single_constant(facts_, outputs[0].fact) != 1)) {
      exact = false;
      outcome.trips = std::nullopt;
    }
    if (exact) {
      if (k + 1 == *loop.trips || (after == header && !uses_number)) {
        if (loop.has_number && k + 1 < *loop.trips && !speculative_) {
          // The iterations left out differ in their number alone, which nothing reads.
          const ValueId number = model_.graph(loop.body).inputs[0];
          const FactId all = scalar_fact(facts_, DType::kInt64, {0, static_cast<double>(*loop.trips - 1), false});
          if (number != ValueId::kAbsent)
            out_.value_facts_[index(number)] = facts_.join(out_.value_facts_[index(number)], all);
        }
        outcome.carried = after;
        break;
      }
      header = after;
      continue;
    }
    std::vector<AbstractValue> next(count);
    for (std::size_t i = 0; i < count; ++i) {
      next[i] =
          join(facts_, loop.carried[i],
               {without_symbols_since(facts_, join(facts_, header[i], after[i]).fact, checkpoint), after[i].taint});
      next[i].taint |= header[i].taint;
      if (joins >= kJoinsBeforeWidening) next[i].fact = widen(facts_, header[i].fact, next[i].fact);
    }
    ++joins;
    if (next == header) {
      const bool may_be_none = !(loop.trips && *loop.trips > 0);
      outcome.carried = after;
      for (std::size_t i = 0; i < count; ++i)
        if (may_be_none || loop.trips != 1)
          outcome.carried[i].fact = without_symbols_since(facts_, join(facts_, header[i], after[i]).fact, checkpoint);
      break;
    }
    header = std::move(next);
    if (budget_.is_spent() || joins > kJoinsBeforeWidening + 8) {
      outcome.carried.assign(count, AbstractValue{});
      break;
    }
  }
  iteration_ = outer_iteration;
  return outcome;
}

void Solver::check_condition(NodeId id, const AbstractValue& condition) {
  const Fact& fact = facts_.fact(condition.fact);
  if (fact.kind != ValueKind::kTensor || condition.taint.has(Aspect::kDtype) || fact.dtypes.contains(DType::kBool))
    return;
  record(id, {&kBodyCondition,
              ops::Certainty::kMust,
              {},
              fmt::format("the condition that the body yields is {}, it has to be bool", fact.dtypes.to_text()),
              {}});
}

/// Compares the length of a scanned operand with that of the first one, which counts the iterations: with a shorter one
/// no execution gets to the end, the rest of a longer one is left out by some runtimes.
void Solver::check_scan_length(NodeId id, const AbstractValue& operand, int index, int first, Dim length, Dim trips) {
  DimPool& pool = facts_.dims();
  if (operand.taint.has(Aspect::kShape) || !pool.never_equal(length, trips)) return;
  const bool is_shorter = pool.bounds(pool.sub(length, trips)).hi < 0;
  record(id, {&kScanLengths,
              is_shorter ? ops::Certainty::kMust : ops::Certainty::kMay,
              {index, first},
              fmt::format("{{{}}} is scanned over {} elements, {{{}}} over {}", first, pool.to_text(trips), index,
                          pool.to_text(length)),
              is_shorter ? "" : "the runtime compares the lengths, as onnxruntime does"});
}

/// What changes its type goes on tainted: the following iterations and the node's results repeat the same mistake.
void Solver::report_carried(NodeId id, const Iteration& loop, std::span<AbstractValue> after) {
  for (std::size_t i = 0; i < after.size(); ++i) {
    Taint tainted = loop.carried[i].taint;
    tainted |= after[i].taint;
    if (tainted.has(Aspect::kDtype) || !types_clash(facts_, loop.carried[i].fact, after[i].fact)) continue;
    record(id, {&kCarriedKeepsType,
                ops::Certainty::kMust,
                {},
                fmt::format("{{r{}}} enters the first iteration as {} and leaves it as {}", i,
                            facts_.to_text(loop.carried[i].fact), facts_.to_text(after[i].fact)),
                {}});
    after[i].taint |= Aspect::kDtype;
    after[i].taint |= Aspect::kShape;
  }
}

/// Compares what a body declares of input `at` with what it is handed from `operand` on: the dtype, and of what stays
/// the same in each iteration the shape.
void Solver::check_body_input(NodeId id, GraphId body, std::size_t at, const AbstractValue& given, int operand,
                              bool with_shape) {
  const ValueId input = model_.graph(body).inputs[at];
  const TypeDecl* type = input == ValueId::kAbsent ? nullptr : model_.value(input).type;
  if (type == nullptr || type->kind != TypeKind::kTensor) return;
  const Fact declared = facts_.fact(initial_facts_.declared(*type, 0)), fact = facts_.fact(given.fact);
  if (fact.kind != ValueKind::kTensor) return;
  if (!given.taint.has(Aspect::kDtype) && !fact.dtypes.intersects(declared.dtypes)) {
    // The operator itself rejects the operand: once is enough.
    const auto rejected = [&](const NodeFailure& failure) {
      return failure.node == id && ops::aspect_of(failure.failure.constraint->kind) == Aspect::kDtype &&
             std::ranges::find(failure.failure.operands, operand) != failure.failure.operands.end();
    };
    if (std::ranges::any_of(out_.failures_, rejected)) return;
    record(id, {&kBodyInput,
                ops::Certainty::kMust,
                {operand},
                fmt::format("{{{}}} enters the body as {}, which declares it as {}", operand, fact.dtypes.to_text(),
                            declared.dtypes.to_text()),
                {}});
    return;
  }
  if (!with_shape || given.taint.has(Aspect::kShape) || fact.shape == ShapeId::kUnranked ||
      declared.shape == ShapeId::kUnranked)
    return;
  const auto have = facts_.dims_of(fact.shape), wanted = facts_.dims_of(declared.shape);
  const auto agrees = [this](Dim a, Dim b) {
    const auto x = facts_.dims().as_constant(a), y = facts_.dims().as_constant(b);
    return !x || !y || *x == *y;
  };
  if (std::ranges::equal(have, wanted, agrees)) return;
  record(id, {&kBodyInput,
              ops::Certainty::kMust,
              {operand},
              fmt::format("{{{}}} enters the body with shape {}, which declares {}", operand,
                          facts_.shape_text(fact.shape), facts_.shape_text(declared.shape)),
              {}});
}

void Solver::visit_loop(NodeId id, const Application& call, std::span<const AbstractValue> operands) {
  const GraphId body = body_of(call, "body");
  if (body == GraphId::kNone || operands.size() < 2) return;
  Iteration loop{.body = body, .lead = 2, .lead_out = 1, .has_number = true};
  loop.carried.assign(operands.begin() + 2, operands.end());
  const std::size_t count = loop.carried.size();
  if (!body_takes(id, body, count + 2, std::max<std::size_t>(count, call.result_count) + 1)) return;
  const bool has_limit = call.has_operand(0);
  const auto limit = single_constant(facts_, operands[0].fact);
  const auto condition = single_constant(facts_, operands[1].fact);
  if (has_limit && limit) loop.trips = std::max<std::int64_t>(*limit, 0);
  if (call.has_operand(1)) {
    if (condition == 0) loop.trips = 0;
    if (!condition) loop.trips = loop.trips == 0 ? loop.trips : std::nullopt;
  }
  loop.may_stop = true;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (call.has_operand(i)) check_body_input(id, body, i, operands[i], static_cast<int>(i), i == 1);
  Outcome outcome = iterate(id, loop);
  std::vector<AbstractValue> results = outcome.carried;
  if (!outcome.visited) {
    const Graph& graph = model_.graph(body);
    for (std::size_t i = count + 1; i < graph.outputs.size(); ++i)
      results.push_back({stacked_without_visit(graph.outputs[i]), {}});
  } else {
    const Dim trips = outcome.trips ? facts_.dims().constant(*outcome.trips)
                                    : facts_.dims().fresh(call.site, 0x10000, Unknown::kDataDependent);
    for (const AbstractValue& element : outcome.stacked) results.push_back(stack(facts_, element, trips, 0));
  }
  set_results(id, results);
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

void Solver::check_stack_axis(NodeId id, const AbstractValue& element, std::size_t result, std::int64_t axis) {
  const Fact& fact = facts_.fact(element.fact);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked || element.taint.has(Aspect::kShape)) return;
  const auto rank = static_cast<std::int64_t>(facts_.dims_of(fact.shape).size()) + 1;
  if (axis >= -rank && axis < rank) return;
  record(id, {&kStackAxis,
              ops::Certainty::kMust,
              {},
              fmt::format("`scan_output_axes` stacks {{r{}}} along axis {}, it has rank {}", result, axis, rank),
              {}});
}

void Solver::visit_scan(NodeId id, const Application& call, std::span<const AbstractValue> operands) {
  const GraphId body = body_of(call, "body");
  const Attribute* inputs_attribute = call.attribute("num_scan_inputs");
  if (body == GraphId::kNone || inputs_attribute == nullptr) return;
  const bool batched = call.opset < 9;  // opset 8: operand 0 is sequence_lens, every value has a batch axis first
  const std::size_t first = batched ? 1 : 0;
  const std::int64_t scanned = inputs_attribute->i;
  if (scanned < 1 || operands.size() < first || static_cast<std::uint64_t>(scanned) > operands.size() - first) return;
  const std::size_t state_count = operands.size() - first - static_cast<std::size_t>(scanned);
  if (!body_takes(id, body, operands.size() - first, std::max<std::size_t>(state_count, call.result_count))) return;
  const bool cut_short = batched && call.has_operand(0);  // batch elements may end earlier; what is missing is 0
  const auto list = [&](std::string_view name) {
    const Attribute* attribute = call.attribute(name);
    return attribute != nullptr && attribute->kind == AttributeKind::kInts ? attribute->ints
                                                                           : std::span<const std::int64_t>();
  };
  Iteration loop{.body = body};
  loop.carried.assign(operands.begin() + static_cast<std::ptrdiff_t>(first),
                      operands.begin() + static_cast<std::ptrdiff_t>(first + state_count));
  const auto input_axes = list("scan_input_axes"), output_axes = list("scan_output_axes");
  Dim trips, batch;
  int counting = 0;  // the operand that `trips` is of
  if (batched) {
    for (AbstractValue& state : loop.carried) state.fact = without_batch(facts_, state.fact, batch);
  }
  for (std::size_t s = 0; s < static_cast<std::size_t>(scanned); ++s) {
    AbstractValue operand = operands[first + state_count + s];
    if (batched) operand.fact = without_batch(facts_, operand.fact, batch);
    Dim length;
    operand.fact = without_axis(facts_, operand.fact, s < input_axes.size() ? input_axes[s] : 0, length);
    const auto at = static_cast<int>(first + state_count + s);
    if (trips.is_unknown()) {
      trips = length;
      counting = at;
    } else if (!operands[static_cast<std::size_t>(counting)].taint.has(Aspect::kShape)) {
      check_scan_length(id, operand, at, counting, length, trips);
    }
    loop.trailing.push_back(operand);
  }
  for (std::size_t i = 0; i < operands.size() - first; ++i) {
    const bool is_state = i < state_count;
    check_body_input(id, body, i, is_state ? loop.carried[i] : loop.trailing[i - state_count],
                     static_cast<int>(first + i), !is_state);
  }
  if (!cut_short) loop.trips = facts_.dims().as_constant(trips);
  const Outcome outcome = iterate(id, loop);
  std::vector<AbstractValue> results = outcome.carried;
  if (outcome.visited) {
    for (std::size_t s = 0; s < std::min(outcome.stacked.size(), output_axes.size()); ++s)
      check_stack_axis(id, outcome.stacked[s], state_count + s, output_axes[s]);
    for (std::size_t s = 0; s < outcome.stacked.size(); ++s)
      results.push_back(stack(facts_, outcome.stacked[s], trips, s < output_axes.size() ? output_axes[s] : 0));
  }
  if (batched) {
    for (AbstractValue& result : results) {
      result = stack(facts_, result, batch, 0);
      Fact fact = facts_.fact(result.fact);
      if (cut_short) fact.range = range_of(fact.dtypes);
      result.fact = facts_.intern(fact);
    }
  }
  set_results(id, results);
}

void Solver::visit_sequence_map(NodeId id, const Application& call, std::span<const AbstractValue> operands) {
  const GraphId body = body_of(call, "body");
  if (body == GraphId::kNone || operands.empty()) return;
  if (!body_takes(id, body, operands.size(), call.result_count)) return;
  std::vector<AbstractValue> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Fact& fact = facts_.fact(operands[i].fact);
    inputs.push_back(fact.kind == ValueKind::kSequence ? AbstractValue{fact.element, operands[i].taint} : operands[i]);
  }
  const std::uint32_t checkpoint = facts_.dims().checkpoint();
  ++conditional_;
  const std::vector<AbstractValue> outputs = visit_body(body, inputs);
  --conditional_;
  commit(body);
  std::vector<AbstractValue> results;
  for (const AbstractValue& output : outputs) {
    Fact fact;
    fact.kind = ValueKind::kSequence;
    fact.element = without_symbols_since(facts_, output.fact, checkpoint);
    fact.shape = facts_.fact(operands[0].fact).shape;  // as many elements as the first sequence
    results.push_back({facts_.intern(fact), output.taint});
  }
  set_results(id, results);
}

}  // namespace tensorlint::dataflow
