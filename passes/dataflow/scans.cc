#include <algorithm>
#include <utility>

#include "passes/dataflow/slices.h"
#include "passes/dataflow/solver.h"

namespace tensorlint::dataflow {
namespace {

const ops::Constraint kStackAxis{"scan_output_axis_in_range", ops::ConstraintKind::kAxisRange,
                                 "-rank <= axis < rank of what is stacked"};
const ops::Constraint kScanLengths{"scan_lengths", ops::ConstraintKind::kShapes,
                                   "all scanned operands have one length"};

}  // namespace

/// Compares the length of a scanned operand with that of the first one, which counts the iterations: with a shorter one
/// no execution gets to the end, the rest of a longer one is left out by some runtimes.
void Solver::check_scan_length(NodeId id, const AbstractValue& operand, int index, int first, Dim length, Dim trips) {
  DimPool& pool = facts_.dims();
  if (operand.taint.has(Aspect::kShape) || !pool.never_equal(length, trips)) return;
  facts_.meter().charge(ops::kStepsOfViolation);
  const bool is_shorter = pool.bounds(pool.sub(length, trips)).hi < 0;
  record(id,
         {&kScanLengths,
          is_shorter ? ops::Certainty::kMust : ops::Certainty::kMay,
          {index, first},
          {"{} is scanned over {} elements, {} over {}", ops::OperandRef(first), trips, ops::OperandRef(index), length},
          is_shorter ? ops::Message() : ops::Message("the engine compares the lengths, as onnxruntime does"),
          !is_shorter});
}

/// A scan output, with the iterations along `axis`, has to have that axis.
void Solver::check_stack_axis(NodeId id, const AbstractValue& element, std::size_t result, std::int64_t axis) {
  const Fact& fact = facts_.fact(element.fact);
  if (fact.kind != ValueKind::kTensor || fact.shape == ShapeId::kUnranked || element.taint.has(Aspect::kShape)) return;
  const auto rank = static_cast<std::int64_t>(facts_.dims_of(fact.shape).size()) + 1;
  if (axis >= -rank && axis < rank) return;
  record(id, kStackAxis, {},
         {"`scan_output_axes` stacks {} along axis {}, it has rank {}", ops::ResultRef(result), ops::Axis(axis), rank});
}

/// Gives the loop a slice of each scanned operand. The extent that they are scanned over.
Dim Solver::take_slices(NodeId id, Loop& loop, const ScanAxes& axes, std::span<const AbstractValue> operands,
                        Dim& batch) {
  const RegionOp& region = loop.region;
  Dim trips;
  std::size_t counting = 0;  // the operand that `trips` is of
  for (std::size_t s = 0; s < region.scanned; ++s) {
    const std::size_t at = region.scanned_operand(s);
    AbstractValue slice = operands[at];
    if (region.is_batched()) slice.fact = without_batch(facts_, slice.fact, batch);
    Dim length;
    slice.fact = without_axis(facts_, slice.fact, axes.input(s), length);
    if (trips.is_unknown()) {
      trips = length;
      counting = at;
    } else if (!operands[counting].taint.has(Aspect::kShape)) {
      check_scan_length(id, slice, static_cast<int>(at), static_cast<int>(counting), length, trips);
    }
    loop.slices.push_back(slice);
  }
  return trips;
}

void Solver::visit_scan(NodeId id, const Application& call, const RegionOp& region,
                        std::span<const AbstractValue> operands) {
  if (!region.has_graphs() || !body_fits(id, region, call.result_count)) return;
  const ScanAxes axes = scan_axes([&](std::string_view name) { return call.attribute(name); });
  Loop loop{.region = region, .carried = carried_operands(region, operands)};
  Dim batch;
  if (region.is_batched())
    for (AbstractValue& value : loop.carried) value.fact = without_batch(facts_, value.fact, batch);
  const Dim trips = take_slices(id, loop, axes, operands, batch);
  check_body_inputs(id, loop, operands);
  // Elements of a batch may end earlier; what is missing of their results is 0.
  const bool cut_short = region.lengths_operand && call.has_operand(*region.lengths_operand);
  if (!cut_short) loop.trips = facts_.dims().as_constant(trips);
  LoopResults after = iterate(id, loop);
  std::vector<AbstractValue> results = std::move(after.carried);
  for (std::size_t s = 0; s < after.scan_outputs.size(); ++s) {
    if (s < axes.outputs.size()) check_stack_axis(id, after.scan_outputs[s], region.carried + s, axes.outputs[s]);
    results.push_back(with_axis(facts_, after.scan_outputs[s], axes.output(s), trips));
  }
  if (region.is_batched()) {
    for (AbstractValue& result : results) {
      result = with_axis(facts_, result, 0, batch);
      Fact fact = facts_.fact(result.fact);
      if (cut_short) fact.range = range_of(fact.dtypes);
      result.fact = facts_.intern(fact);
    }
  }
  set_results(id, results);
}

void Solver::visit_sequence_map(NodeId id, const Application& call, const RegionOp& region,
                                std::span<const AbstractValue> operands) {
  if (!region.has_graphs() || !body_fits(id, region, call.result_count)) return;
  std::vector<AbstractValue> inputs;
  for (const AbstractValue& operand : operands) {
    const Fact& fact = facts_.fact(operand.fact);
    inputs.push_back(fact.kind == ValueKind::kSequence ? AbstractValue{fact.element, operand.taint} : operand);
  }
  const std::uint32_t checkpoint = facts_.dims().checkpoint();
  ++conditional_;
  const std::vector<AbstractValue> outputs = visit_body(region.body(), inputs);
  --conditional_;
  commit(region.body());
  std::vector<AbstractValue> results;
  for (const AbstractValue& output : outputs) {
    Fact fact;
    fact.kind = ValueKind::kSequence;
    fact.element = without_symbols_since(facts_, output.fact, checkpoint);
    fact.shape = facts_.fact(operands[region.scanned_operand(0)].fact).shape;  // as many elements as the first sequence
    results.push_back({facts_.intern(fact), output.taint});
  }
  set_results(id, results);
}

}  // namespace tensorlint::dataflow
