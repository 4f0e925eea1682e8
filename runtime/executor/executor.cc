#include "runtime/executor/executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "runtime/values/codec.h"

namespace tensorlint::runtime {
namespace {

/// What runs are planned by; of values that are not tensors nothing is known before a run.
std::vector<std::pair<DType, Extents>> kinds_of(std::span<const HostValue> inputs) {
  std::vector<std::pair<DType, Extents>> kinds;
  for (const HostValue& input : inputs) {
    if (input.is_tensor()) {
      kinds.emplace_back(input.tensor().dtype(), input.tensor().extents());
    } else {
      kinds.emplace_back(DType::kUndefined, Extents{});
    }
  }
  return kinds;
}

}  // namespace

Executor::Executor(const Model& model, Memory& memory, Device& device, std::uint64_t seed)
    : model_(model), memory_(memory), device_(device), interpreter_(model, memory, {.seed = seed, .observer = {}}) {}

Executor::~Executor() = default;

Result<std::vector<HostValue>> Executor::run(std::vector<HostValue> inputs) {
  auto kinds = kinds_of(inputs);
  if (!plan_ || planned_for_ != kinds) {
    Result<ExecutionPlan> plan = plan_execution(model_, inputs);
    if (!plan) return plan.error();
    plan_ = *std::move(plan);
    planned_for_ = std::move(kinds);
  }
  Result<std::vector<HostValue>> outputs = std::vector<HostValue>{};
  try {
    refuse_too_large();
    outputs = run_planned(std::move(inputs));
  } catch (const RunFault& fault) {
    outputs = Error{fault.message, {}};
  } catch (const std::bad_alloc&) {
    outputs = Error{"the system has no memory left", {}};
  }
  blocks_.clear();
  for (const ValueId value : model_.values.ids(kFirstValue))
    if (model_.value(value).graph == GraphId::kMain) interpreter_.hold(value, {});
  return outputs;
}

/// Before anything runs: what will be on the device at one time, with the node at which that is most.
void Executor::refuse_too_large() const {
  if (plan_->device_peak <= device_.memory_limit()) return;
  const std::string_view op = model_.text(model_.op(model_.node(plan_->peak_node)).name);
  throw RunFault{fmt::format("node `{}` ({}): {}: {} bytes of the device are needed and the limit is {}",
                             model_.label(plan_->peak_node), op, device_.name(), plan_->device_peak,
                             device_.memory_limit())};
}

std::vector<HostValue> Executor::run_planned(std::vector<HostValue> inputs) {
  const Graph& main = model_.graph(GraphId::kMain);
  const tensorlint_device_counts before = device_.counts();
  seconds_.assign(plan_->steps.size(), 0);
  for (std::size_t i = 0; i < main.inputs.size(); ++i)
    interpreter_.hold(main.inputs[i], i < inputs.size() ? std::move(inputs[i]) : HostValue());
  for (std::size_t at = 0; at < plan_->steps.size(); ++at) {
    const PlanStep& step = plan_->steps[at];
    const auto start = std::chrono::steady_clock::now();
    run_step(step);
    seconds_[at] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::vector<HostValue> outputs;
  for (const PlannedCopy& copy : plan_->last_copies) {
    try {
      this->copy(copy);
    } catch (const RunFault& fault) {
      throw RunFault{fmt::format("the output `{}`: {}", model_.name_of(copy.value), fault.message)};
    }
  }
  for (const ValueId output : main.outputs) {
    Result<HostValue> held = interpreter_.held(output);
    if (!held) throw RunFault{held.error().message};
    if (held->is_absent()) throw RunFault{fmt::format("the output `{}` has no value", model_.name_of(output))};
    outputs.push_back(*std::move(held));
  }
  const tensorlint_device_counts after = device_.counts();
  copies_ = {.in = after.copies_in - before.copies_in,
             .bytes_in = after.bytes_in - before.bytes_in,
             .out = after.copies_out - before.copies_out,
             .bytes_out = after.bytes_out - before.bytes_out};
  if (copies_ != plan_->copies())
    throw RunFault{fmt::format("{}: {} copies of {} bytes were planned and {} of {} bytes made: please report it",
                               device_.name(), plan_->copies().in + plan_->copies().out,
                               plan_->copies().bytes_in + plan_->copies().bytes_out, copies_.in + copies_.out,
                               copies_.bytes_in + copies_.bytes_out)};
  return outputs;
}

void Executor::run_step(const PlanStep& step) {
  const auto in_node = [&](const RunFault& fault) {
    const std::string_view op = model_.text(model_.op(model_.node(step.node)).name);
    return RunFault{fmt::format("node `{}` ({}): {}", model_.label(step.node), op, fault.message)};
  };
  try {
    for (const PlannedCopy& planned : step.copies) copy(planned);
    if (step.call) run_call(step);
  } catch (const RunFault& fault) {
    throw in_node(fault);
  }
  if (!step.call) {
    Result<std::vector<HostValue>> results = interpreter_.evaluate(step.node);
    if (!results) throw RunFault{results.error().message};  // which names the node
    const auto names = model_.results(model_.node(step.node));
    for (std::size_t r = 0; r < names.size(); ++r)
      if (names[r] != ValueId::kAbsent) interpreter_.hold(names[r], std::move((*results)[r]));
  }
  for (const ValueId value : step.device_drops) blocks_.erase(value);
  for (const ValueId value : step.host_drops) interpreter_.hold(value, {});
}

HostTensor Executor::host_tensor(ValueId value) {
  Result<HostValue> held = interpreter_.held(value);
  if (!held) throw RunFault{held.error().message};
  if (!held->is_tensor()) throw RunFault{fmt::format("`{}` is not a tensor", model_.name_of(value))};
  return held->tensor();
}

void Executor::copy(const PlannedCopy& planned) {
  if (planned.to_device) {
    const HostTensor tensor = host_tensor(planned.value);
    if (tensor.bytes() != planned.bytes)
      throw RunFault{fmt::format("`{}` has {} bytes, not the {} that follow from the shapes of the inputs",
                                 model_.name_of(planned.value), tensor.bytes(), planned.bytes)};
    DeviceBlock block = device_.allocate(tensor.bytes());
    device_.copy_in(block, tensor.raw(), tensor.bytes());
    blocks_[planned.value] = std::move(block);
    return;
  }
  const auto& [dtype, extents] = kinds_[planned.value];
  HostTensor tensor(dtype, extents, memory_);
  device_.copy_out(tensor.mutable_raw(), blocks_[planned.value], tensor.bytes());
  interpreter_.hold(planned.value, HostValue(std::move(tensor)));
}

/// What the host makes of an operand, on the device.
DeviceBlock Executor::prepare(const CallOperand& operand, DType dtype) {
  HostTensor prepared;
  if (operand.is_number) {
    prepared = HostTensor(dtype, {}, memory_);
    store(prepared, 0, 1, &operand.offset);
  } else {
    const HostTensor given = host_tensor(operand.value);
    prepared = HostTensor(given.dtype(), given.extents(), memory_);
    for (std::size_t first = 0; first < given.size(); first += kRow) {
      const std::size_t count = std::min(kRow, given.size() - first);
      if (operand.counts_from_end != 0) {
        std::array<std::int64_t, kRow> row;
        load(given, first, count, row.data());
        for (std::size_t i = 0; i < count; ++i)
          if (row[i] < 0 && row[i] >= -operand.counts_from_end) row[i] += operand.counts_from_end;
        store(prepared, first, count, row.data());
      } else {
        std::array<double, kRow> row;
        load(given, first, count, row.data());
        for (std::size_t i = 0; i < count; ++i) {
          row[i] = row[i] * operand.scale + operand.offset;
          if (operand.drops_negative && !(row[i] > 0)) row[i] = 0;
        }
        store(prepared, first, count, row.data());
      }
    }
  }
  DeviceBlock block = device_.allocate(prepared.bytes());
  device_.copy_in(block, prepared.raw(), prepared.bytes());
  return block;
}

void Executor::run_call(const PlanStep& step) {
  const KernelCall& call = *step.call;
  std::vector<DeviceBlock> own(call.operands.size());
  std::vector<const void*> operands(call.operands.size());
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const CallOperand& operand = call.operands[i];
    if (!operand.is_given()) continue;
    if (operand.is_prepared()) own[i] = prepare(operand, call.dtype);
    operands[i] = (operand.is_prepared() ? own[i] : blocks_[operand.value]).data();
  }
  std::size_t elements = 1;
  for (const std::int64_t extent : call.extents) elements *= static_cast<std::size_t>(extent);
  DeviceBlock result = device_.allocate(elements * element_bytes(call.dtype));
  if (const auto* reduction = std::get_if<ReductionCall>(&call.request)) {
    kernels::Reduction request;
    request.kind = reduction->kind;
    request.dtype = reduction->dtype;
    request.result_dtype = reduction->result_dtype;
    request.extents = reduction->extents.data();
    request.rank = static_cast<int>(reduction->extents.size());
    request.axes = reduction->axes.data();
    request.axis_count = static_cast<int>(reduction->axes.size());
    request.last_of_equals = reduction->last_of_equals;
    device_.reduce(request, operands[0], result.data());
  } else if (const auto* softmax = std::get_if<kernels::Softmax>(&call.request)) {
    kernels::Softmax request = *softmax;
    request.input = operands[0];
    request.output = result.data();
    device_.softmax(request);
  } else if (const auto* pointwise = std::get_if<kernels::PointwiseLoss>(&call.request)) {
    kernels::PointwiseLoss request = *pointwise;
    request.input = operands[0];
    request.target = operands[1];
    request.weight = operands[2];
    request.positive_weight = operands[3];
    (request.averaging == kernels::Averaging::kNone ? request.losses : request.total) = result.data();
    device_.pointwise_loss(request);
  } else if (const auto* classes = std::get_if<kernels::ClassLoss>(&call.request)) {
    kernels::ClassLoss request = *classes;
    request.logits = operands[0];
    const bool indices = request.kind != kernels::ClassLossKind::kCrossEntropyProbabilities;
    (indices ? request.labels : request.probabilities) = operands[1];
    request.weight = operands[2];
    (request.averaging == kernels::Averaging::kNone ? request.losses : request.total) = result.data();
    DeviceBlock report;
    if (indices) {
      report = device_.allocate(report_bytes(call));
      request.bad_labels = static_cast<std::int64_t*>(report.data());
    }
    device_.class_loss(request);
    if (indices) {
      std::array<std::int64_t, 2> bad{};
      device_.copy_out(bad.data(), report, sizeof bad);
      if (bad[0] > 0)
        throw RunFault{fmt::format("{} labels lie outside of the {} classes, the first one at position {}", bad[0],
                                   request.classes, bad[1])};
    }
  }
  kinds_[call.result] = {call.dtype, call.extents};
  blocks_[call.result] = std::move(result);
}

}  // namespace tensorlint::runtime
