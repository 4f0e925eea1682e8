#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "runtime/interpreter/interpreter_impl.h"
#include "runtime/values/codec.h"
#include "runtime/values/movement.h"
#include "runtime/values/nesting.h"

namespace tensorlint::runtime {
namespace {

bool is_true(const HostValue& value) {
  if (!value.is_tensor() || value.tensor().size() != 1 || value.tensor().dtype() != DType::kBool)
    throw RunFault{"a condition is not one element of dtype bool"};
  return integer_at(value.tensor(), 0) != 0;
}

const HostTensor& tensor_of(const HostValue& value, std::string_view what) {
  if (!value.is_tensor()) throw RunFault{fmt::format("{} is not a tensor", what)};
  return value.tensor();
}

std::int64_t trip_count(const HostValue& value) {
  const HostTensor& count = tensor_of(value, "the trip count");
  if (count.size() != 1 || count.dtype() != DType::kInt64)
    throw RunFault{"the trip count is not one element of dtype int64"};
  return integer_at(count, 0);
}

HostValue scalar(DType dtype, std::int64_t value, Memory& memory) {
  HostTensor tensor(dtype, {}, memory);
  store(tensor, 0, 1, &value);
  return tensor;
}

/// The axis in [0, rank).
std::size_t axis_in(std::int64_t axis, std::size_t rank) {
  const auto axes = static_cast<std::int64_t>(rank);
  if (axis < -axes || axis >= axes) throw RunFault{fmt::format("axis {} of a tensor of rank {}", axis, rank)};
  return static_cast<std::size_t>(axis < 0 ? axis + axes : axis);
}

template <typename Value>
std::vector<std::pmr::vector<Value>> counted_lists(std::size_t count, Memory& memory) {
  std::vector<std::pmr::vector<Value>> lists;
  for (std::size_t i = 0; i < count; ++i) lists.emplace_back(memory.resource());
  return lists;
}

std::size_t scan_outputs(const Graph& body, const RegionOp& region) {
  return body.outputs.size() - region.control_outputs - region.carried;
}

}  // namespace

HostTensor Interpreter::Impl::joined(std::span<const HostTensor> parts, std::int64_t axis, ValueId scan_output) {
  if (!parts.empty()) return stacked(parts, axis_in(axis, parts.front().rank() + 1), memory_);
  const TypeDecl* const declared = model_.value(scan_output).type;
  Extents extents;
  std::optional<DType> dtype;
  if (declared != nullptr && declared->kind == TypeKind::kTensor && is_known_dtype(declared->element_code))
    dtype = static_cast<DType>(declared->element_code);
  if (dtype && declared->ranked)
    for (const DimDecl& dim : declared->dims)
      extents.push_back(dim.has_extent ? std::max<std::int64_t>(dim.extent, 0) : 0);
  if (!analysis_) analysis_.emplace(dataflow::analyse(model_, dataflow::options_with(options_.allowances)));
  const FactStore& facts = analysis_->facts();
  const Fact& fact = analysis_->fact(scan_output);
  if (fact.kind == ValueKind::kTensor && !dtype) dtype = fact.dtypes.single();
  if (facts.is_ranked(fact.shape)) {
    const auto dims = facts.dims_of(fact.shape);
    if (extents.size() != dims.size()) extents.assign(dims.size(), 0);
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      extents[axis] = facts.dims().as_constant(dims[axis]).value_or(extents[axis]);
  }
  if (!dtype) throw RunFault{"no iteration runs, and the dtype of a scan output is not known without one"};
  extents.insert(extents.begin() + static_cast<std::ptrdiff_t>(axis_in(axis, extents.size() + 1)), 0);
  return {*dtype, std::move(extents), memory_};
}

std::vector<HostValue> Interpreter::Impl::run_region(const Application& call, const RegionOp& region,
                                                     std::span<const HostValue> operands) {
  if (!region.has_graphs()) throw RunFault{"a graph or an operand is missing"};
  const Nesting nesting(depth_);
  switch (region.kind) {
    case RegionKind::kIf:
      return run_graph(region.graphs[is_true(operands[*region.condition_operand]) ? 0 : 1], {});
    case RegionKind::kLoop:
      return run_loop(region, operands);
    case RegionKind::kScan:
      check_reach(operands, 0);
      return region.is_batched() ? run_batched_scan(call, region, operands) : run_scan(call, region, operands);
    default:
      return run_sequence_map(region, operands);
  }
}

Interpreter::Impl::Iterations Interpreter::Impl::iterations_of(const RegionOp& region) {
  Iterations iterations;
  iterations.collected = counted_lists<HostTensor>(scan_outputs(model_.graph(region.body()), region), memory_);
  return iterations;
}

std::vector<HostValue> Interpreter::Impl::iterate(const RegionOp& region, std::vector<HostValue> inputs,
                                                  Iterations& iterations) {
  for (std::size_t i = 0; i < region.carried; ++i) inputs[region.carried_input(i)] = std::move(iterations.carried[i]);
  std::vector<HostValue> outputs = run_graph(region.body(), inputs);
  for (std::size_t i = 0; i < region.carried; ++i) iterations.carried[i] = std::move(outputs[region.carried_output(i)]);
  for (std::size_t s = 0; s < iterations.collected.size(); ++s)
    iterations.collected[s].push_back(tensor_of(outputs[region.scan_output(s)], "a scan output"));
  return outputs;
}

std::vector<HostValue> Interpreter::Impl::run_loop(const RegionOp& region, std::span<const HostValue> operands) {
  const Graph& body = model_.graph(region.body());
  if (!region.fits(body)) throw RunFault{"the body has other inputs or outputs than the loop"};
  const HostValue& count = operands[*region.trip_count_operand];
  const HostValue& condition = operands[*region.condition_operand];
  const std::int64_t most = count.is_absent() ? std::numeric_limits<std::int64_t>::max() : trip_count(count);
  bool goes_on = condition.is_absent() || is_true(condition);

  Iterations iterations = iterations_of(region);
  for (std::size_t i = 0; i < region.carried; ++i) iterations.carried.push_back(operands[region.carried_operand(i)]);
  for (std::int64_t k = 0; k < most && goes_on; ++k) {
    std::vector<HostValue> inputs(body.inputs.size());
    inputs[*region.iteration_input] = scalar(DType::kInt64, k, memory_);
    inputs[*region.condition_input] = scalar(DType::kBool, 1, memory_);
    const std::vector<HostValue> outputs = iterate(region, std::move(inputs), iterations);
    goes_on = is_true(outputs[*region.condition_output]);
  }
  std::vector<HostValue> results = std::move(iterations.carried);
  for (std::size_t s = 0; s < iterations.collected.size(); ++s)
    results.push_back(joined(iterations.collected[s], 0, body.outputs[region.scan_output(s)]));
  return results;
}

std::vector<HostValue> Interpreter::Impl::run_scan(const Application& call, const RegionOp& region,
                                                   std::span<const HostValue> operands) {
  const Graph& body = model_.graph(region.body());
  if (!region.fits(body)) throw RunFault{"the body has other inputs or outputs than the scan"};
  const ScanAxes axes = scan_axes([&](std::string_view name) { return call.attribute(name); });
  std::int64_t trips = -1;
  std::vector<std::size_t> scan_axis;
  for (std::size_t s = 0; s < region.scanned; ++s) {
    const HostTensor& scanned = tensor_of(operands[region.scanned_operand(s)], "a scanned operand");
    scan_axis.push_back(axis_in(axes.input(s), scanned.rank()));
    const std::int64_t extent = scanned.extent(scan_axis.back());
    if (trips >= 0 && extent != trips)
      throw RunFault{fmt::format("one operand is scanned over {} elements, another over {}", trips, extent)};
    trips = extent;
  }
  Iterations iterations = iterations_of(region);
  for (std::size_t i = 0; i < region.carried; ++i) iterations.carried.push_back(operands[region.carried_operand(i)]);
  for (std::int64_t k = 0; k < trips; ++k) {
    std::vector<HostValue> inputs(body.inputs.size());
    for (std::size_t s = 0; s < region.scanned; ++s) {
      const std::int64_t index = axes.reads_backwards(s) ? trips - 1 - k : k;
      inputs[region.slice_input(s)] =
          slice_of(operands[region.scanned_operand(s)].tensor(), scan_axis[s], index, memory_);
    }
    iterate(region, std::move(inputs), iterations);
  }
  std::vector<HostValue> results = std::move(iterations.carried);
  for (std::size_t s = 0; s < iterations.collected.size(); ++s) {
    std::pmr::vector<HostTensor>& parts = iterations.collected[s];
    if (axes.writes_backwards(s)) std::reverse(parts.begin(), parts.end());
    results.push_back(joined(parts, axes.output(s), body.outputs[region.scan_output(s)]));
  }
  return results;
}

/// Opset 8: every value has a batch axis first, and each element of the batch a length of its own; what is missing of
/// its scan outputs is 0.
std::vector<HostValue> Interpreter::Impl::run_batched_scan(const Application& call, const RegionOp& region,
                                                           std::span<const HostValue> operands) {
  const Graph& body = model_.graph(region.body());
  if (!region.fits(body)) throw RunFault{"the body has other inputs or outputs than the scan"};
  const ScanAxes axes = scan_axes([&](std::string_view name) { return call.attribute(name); });
  const HostTensor& first = tensor_of(operands[region.scanned_operand(0)], "a scanned operand");
  if (first.rank() < 2) throw RunFault{"a scanned operand has no batch axis"};
  const std::int64_t batch = first.extent(0), longest = first.extent(1);
  for (std::size_t i = 1; i < operands.size(); ++i)
    if (const HostTensor& each = tensor_of(operands[i], "an operand"); each.rank() == 0 || each.extent(0) != batch)
      throw RunFault{fmt::format("operand {} of a scan over a batch of {} has another batch axis", i, batch)};
  for (std::size_t s = 0; s < region.scanned; ++s)
    if (const HostTensor& each = operands[region.scanned_operand(s)].tensor();
        each.rank() < 2 || each.extent(1) != longest)
      throw RunFault{fmt::format("the scanned operands have different lengths")};
  const HostValue& lengths = operands[*region.lengths_operand];
  if (!lengths.is_absent()) {
    const HostTensor& each = tensor_of(lengths, "the lengths");
    if (each.size() != static_cast<std::size_t>(batch) || each.dtype() != DType::kInt64)
      throw RunFault{fmt::format("{} lengths for a batch of {}", each.size(), batch)};
  }
  const std::size_t scans = scan_outputs(body, region);
  auto by_result = counted_lists<HostTensor>(region.carried + scans, memory_);
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int64_t trips =
        lengths.is_absent() ? longest : integer_at(lengths.tensor(), static_cast<std::size_t>(b));
    if (trips < 0 || trips > longest) throw RunFault{fmt::format("the length {} is outside [0, {}]", trips, longest)};
    const auto element = [&](std::size_t operand) {
      return slice_of(tensor_of(operands[operand], "an operand"), 0, b, memory_);
    };
    Iterations iterations = iterations_of(region);
    for (std::size_t i = 0; i < region.carried; ++i) iterations.carried.push_back(element(region.carried_operand(i)));
    std::vector<HostTensor> rows;
    for (std::size_t s = 0; s < region.scanned; ++s) rows.push_back(element(region.scanned_operand(s)));
    for (std::int64_t k = 0; k < trips; ++k) {
      std::vector<HostValue> inputs(body.inputs.size());
      for (std::size_t s = 0; s < region.scanned; ++s)
        inputs[region.slice_input(s)] = slice_of(rows[s], 0, axes.reads_backwards(s) ? trips - 1 - k : k, memory_);
      iterate(region, std::move(inputs), iterations);
    }
    for (std::size_t i = 0; i < region.carried; ++i)
      by_result[i].push_back(tensor_of(iterations.carried[i], "a loop-carried value"));
    for (std::size_t s = 0; s < scans; ++s) {
      std::pmr::vector<HostTensor>& parts = iterations.collected[s];
      while (!parts.empty() && static_cast<std::int64_t>(parts.size()) < longest) {
        parts.push_back(zeros(parts.front().dtype(), parts.front().extents(), memory_));
      }
      HostTensor scanned = joined(parts, 0, body.outputs[region.scan_output(s)]);
      if (parts.empty() && longest > 0) {
        Extents extents = scanned.extents();
        extents.front() = longest;
        scanned = zeros(scanned.dtype(), std::move(extents), memory_);
      }
      by_result[region.carried + s].push_back(std::move(scanned));
    }
  }
  std::vector<HostValue> results;
  for (std::pmr::vector<HostTensor>& parts : by_result) {
    if (parts.empty()) throw RunFault{"the batch is empty"};
    results.push_back(stacked(parts, 0, memory_));
  }
  return results;
}

std::vector<HostValue> Interpreter::Impl::run_sequence_map(const RegionOp& region,
                                                           std::span<const HostValue> operands) {
  const Graph& body = model_.graph(region.body());
  const HostValue& first = operands[region.scanned_operand(0)];
  if (first.kind() != ValueKind::kSequence) throw RunFault{"the first operand is not a sequence"};
  auto by_result = counted_lists<HostValue>(body.outputs.size(), memory_);
  for (std::size_t k = 0; k < first.elements().size(); ++k) {
    std::vector<HostValue> inputs;
    for (const HostValue& operand : operands) {
      const bool is_sequence = operand.kind() == ValueKind::kSequence;
      if (is_sequence && k >= operand.elements().size()) throw RunFault{"the sequences have different lengths"};
      inputs.push_back(is_sequence ? operand.elements()[k] : operand);
    }
    std::vector<HostValue> outputs = run_graph(region.body(), inputs);
    for (std::size_t r = 0; r < outputs.size(); ++r) by_result[r].push_back(std::move(outputs[r]));
  }
  std::vector<HostValue> results;
  for (std::size_t r = 0; r < by_result.size(); ++r) {
    DType dtype = by_result[r].empty() ? DType::kUndefined : by_result[r].front().dtype();
    const TypeDecl* const declared = model_.value(body.outputs[r]).type;
    if (dtype == DType::kUndefined && declared != nullptr && is_known_dtype(declared->element_code))
      dtype = static_cast<DType>(declared->element_code);
    std::vector<HostValue> elements(std::move_iterator(by_result[r].begin()), std::move_iterator(by_result[r].end()));
    by_result[r] = std::pmr::vector<HostValue>(memory_.resource());
    results.push_back(bounded(HostValue::sequence(std::move(elements), dtype, memory_)));
  }
  return results;
}

}  // namespace tensorlint::runtime
