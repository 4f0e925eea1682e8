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

/// As many kinds of inputs as a program that pads to a few lengths has.
constexpr std::size_t kKeptPlans = 8;

/// Of a node in the interpreter: its message names the node.
struct NodeFault : RunFault {};

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
  if (auto failed = choose_plan(inputs)) return *std::move(failed);
  Result<std::vector<HostValue>> outputs = std::vector<HostValue>{};
  try {
    refuse_too_large();
    const tensorlint_device_counts before = device_.counts();
    run_planned(std::move(inputs));
    outputs = take_outputs();
    check_copies(before);
  } catch (const RunFault& fault) {
    outputs = Error{fault.message, {}};
  } catch (const std::bad_alloc&) {
    outputs = Error{"the system has no memory left", {}};
  }
  for (const ValueId value : model_.values.ids(kFirstValue))
    if (model_.value(value).graph == GraphId::kMain) interpreter_.hold(value, {});
  return outputs;
}

std::optional<Error> Executor::choose_plan(std::span<const HostValue> inputs) {
  Kinds kinds = kinds_of(inputs);
  auto found = std::ranges::find(plans_, kinds, &std::pair<Kinds, ExecutionPlan>::first);
  if (found == plans_.end()) {
    Result<ExecutionPlan> plan = plan_execution(model_, inputs);
    if (!plan) return plan.error();
    if (plans_.size() == kKeptPlans) plans_.pop_back();
    found = plans_.emplace(plans_.end(), std::move(kinds), *std::move(plan));
  }
  plans_.splice(plans_.begin(), plans_, found);
  plan_ = &found->second;
  return std::nullopt;
}

/// Before anything runs: what will be on the device at one time, with the node at which that is most.
void Executor::refuse_too_large() const {
  const std::uint64_t bytes = plan_->schedule.memory.bytes;
  if (bytes <= device_.memory_limit()) return;
  const NodeId node = plan_->peak_node();
  const std::string_view op = model_.text(model_.op(model_.node(node)).name);
  throw RunFault{fmt::format("node `{}` ({}): {}: {} bytes of the device are needed and the limit is {}",
                             model_.label(node), op, device_.name(), bytes, device_.memory_limit())};
}

void Executor::run_planned(std::vector<HostValue> inputs) {
  const Graph& main = model_.graph(GraphId::kMain);
  seconds_.assign(plan_->steps.size(), 0);
  for (std::size_t i = 0; i < main.inputs.size(); ++i)
    interpreter_.hold(main.inputs[i], i < inputs.size() ? std::move(inputs[i]) : HostValue());
  inputs.clear();
  try {
    run_commands();
  } catch (...) {
    release();
    throw;
  }
  release();
}

/// Nothing of the device is under way afterwards, whatever happened.
void Executor::release() {
  try {
    if (!values_.empty()) device_.synchronize();
  } catch (const RunFault&) {
    // An earlier fault is being reported; without one the work was waited for before.
  }
  values_.clear();
  block_ = {};
}

void Executor::run_commands() {
  const Schedule& schedule = plan_->schedule;
  reports_.clear();
  if (!schedule.lifetimes.empty()) {
    try {
      block_ = device_.allocate(schedule.memory.bytes);
      device_.make_events(schedule.events);
    } catch (const RunFault& fault) {
      throw RunFault{fmt::format("before the first node: {}", fault.message)};
    }
  }
  values_.resize(schedule.lifetimes.size());
  const auto explain = [&](const DeviceFault& fault, std::string_view otherwise) {
    return RunFault{(fault.step ? described(schedule.commands[*fault.step]) : std::string(otherwise)) + fault.message};
  };
  for (std::size_t at = 0; at < schedule.commands.size(); ++at) {
    const Command& command = schedule.commands[at];
    const auto start = std::chrono::steady_clock::now();
    try {
      run_command(at);
      const bool is_last = at + 1 == schedule.commands.size() || schedule.commands[at + 1].step != command.step;
      if (is_timed_ && is_last && !values_.empty()) device_.synchronize();
    } catch (const DeviceFault& fault) {
      throw explain(fault, described(command));
    } catch (const NodeFault&) {
      check_labels_so_far();
      throw;
    } catch (const RunFault& fault) {
      check_labels_so_far();
      throw RunFault{described(command) + fault.message};
    }
    seconds_[command.step] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  try {
    if (!values_.empty()) device_.synchronize();
  } catch (const DeviceFault& fault) {
    throw explain(fault, "after the last node: ");
  }
  check_labels();
}

void Executor::run_command(std::size_t at) {
  const Command& command = plan_->schedule.commands[at];
  const PlanStep& step = plan_->steps[command.step];
  device_.set_step(at);
  for (const Command::Event event : command.host_waits) device_.host_wait(event);
  for (const Command::Slot slot : command.begins)
    values_[slot] = device_.place(block_, plan_->schedule.memory.offsets[slot], plan_->schedule.lifetimes[slot].bytes);
  const auto stream = stream_of(command.kind);
  for (const Command::Event event : command.waits) device_.wait(*stream, event);
  switch (command.kind) {
    case Command::Kind::kCopyIn: {
      const HostTensor tensor = host_tensor(command.value);
      const std::uint64_t bytes = plan_->schedule.lifetimes[command.slot].bytes;
      if (tensor.bytes() != bytes)
        throw RunFault{fmt::format("`{}` has {} bytes, not the {} that follow from the shapes of the inputs",
                                   model_.name_of(command.value), tensor.bytes(), bytes)};
      device_.copy_in(values_[command.slot], tensor.raw(), bytes);
      break;
    }
    case Command::Kind::kPrepare: {
      const HostTensor prepared = prepare(step.call->operands[command.operand], step.call->dtype);
      device_.copy_in(values_[command.slot], prepared.raw(), prepared.bytes());
      break;
    }
    case Command::Kind::kKernel:
      launch(step, command);
      kinds_[step.call->result] = {step.call->dtype, step.call->extents};
      break;
    case Command::Kind::kCopyOut:
      copy_out(command);
      break;
    case Command::Kind::kReport:
      device_.copy_out(reports_[command.slot].data(), values_[command.slot], sizeof(LabelReport));
      break;
    case Command::Kind::kHost:
      run_node(step);
      break;
  }
  if (command.record) device_.record(*stream, *command.record);
  for (const Command::Slot slot : command.ends) values_[slot] = {};
  if (command.kind == Command::Kind::kHost || command.kind == Command::Kind::kKernel)
    for (const ValueId value : step.host_drops) interpreter_.hold(value, {});
}

void Executor::run_node(const PlanStep& step) {
  Result<std::vector<HostValue>> results = interpreter_.evaluate(step.node);
  if (!results) throw NodeFault{{results.error().message}};
  const auto names = model_.results(model_.node(step.node));
  for (std::size_t r = 0; r < names.size(); ++r)
    if (names[r] != ValueId::kAbsent) interpreter_.hold(names[r], std::move((*results)[r]));
}

void Executor::copy_out(const Command& command) {
  const auto& [dtype, extents] = kinds_.at(command.value);
  HostTensor tensor(dtype, extents, memory_);
  device_.copy_out(tensor.mutable_raw(), values_[command.slot], tensor.bytes());
  interpreter_.hold(command.value, HostValue(std::move(tensor)));
}

std::vector<HostValue> Executor::take_outputs() {
  std::vector<HostValue> outputs;
  for (const ValueId output : model_.graph(GraphId::kMain).outputs) {
    Result<HostValue> held = interpreter_.held(output);
    if (!held) throw RunFault{held.error().message};
    if (held->is_absent()) throw RunFault{fmt::format("the output `{}` has no value", model_.name_of(output))};
    outputs.push_back(*std::move(held));
  }
  return outputs;
}

void Executor::check_copies(const tensorlint_device_counts& before) {
  const tensorlint_device_counts after = device_.counts();
  copies_ = {.in = after.copies_in - before.copies_in,
             .bytes_in = after.bytes_in - before.bytes_in,
             .out = after.copies_out - before.copies_out,
             .bytes_out = after.bytes_out - before.bytes_out};
  const ExecutionPlan::Copies planned = plan_->copies();
  if (copies_ != planned)
    throw RunFault{fmt::format("{}: {} copies of {} bytes were planned and {} of {} bytes made: please report it",
                               device_.name(), planned.in + planned.out, planned.bytes_in + planned.bytes_out,
                               copies_.in + copies_.out, copies_.bytes_in + copies_.bytes_out)};
}

void Executor::check_labels_so_far() {
  if (values_.empty()) return;
  try {
    for (const Command& command : plan_->schedule.commands)
      if (command.kind == Command::Kind::kKernel && command.report != Command::kNoSlot &&
          values_[command.report].data() != nullptr)
        device_.copy_out(reports_[command.report].data(), values_[command.report], sizeof(LabelReport));
    device_.synchronize();
  } catch (const DeviceFault&) {
    return;  // the host's fault is reported
  }
  check_labels();
}

void Executor::check_labels() {
  for (const Command& command : plan_->schedule.commands) {
    const auto found = command.kind == Command::Kind::kKernel ? reports_.find(command.report) : reports_.end();
    if (found == reports_.end() || found->second[0] == 0) continue;
    const auto& request = std::get<kernels::ClassLoss>(plan_->steps[command.step].call->request);
    throw RunFault{fmt::format("{}{} labels lie outside of the {} classes, the first one at position {}",
                               described(command), found->second[0], request.classes, found->second[1])};
  }
}

std::string Executor::described(const Command& command) const {
  const auto copy = [&](std::string_view text) {
    return fmt::format("{} `{}`: ", text, model_.name_of(command.value));
  };
  if (command.is_output) return copy("the output");
  const NodeId node = plan_->steps[command.step].node;
  std::string text =
      fmt::format("node `{}` ({}): ", model_.label(node), model_.text(model_.op(model_.node(node)).name));
  if (command.kind == Command::Kind::kCopyIn || command.kind == Command::Kind::kCopyOut) text += copy("copy of");
  return text;
}

HostTensor Executor::host_tensor(ValueId value) {
  Result<HostValue> held = interpreter_.held(value);
  if (!held) throw RunFault{held.error().message};
  if (!held->is_tensor()) throw RunFault{fmt::format("`{}` is not a tensor", model_.name_of(value))};
  return held->tensor();
}

/// What the host makes of an operand.
HostTensor Executor::prepare(const CallOperand& operand, DType dtype) {
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
  return prepared;
}

void Executor::launch(const PlanStep& step, const Command& command) {
  const KernelCall& call = *step.call;
  std::vector<const void*> operands(call.operands.size());
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    if (command.operands[i] != Command::kNoSlot) operands[i] = values_[command.operands[i]].data();
  const DeviceValue& result = values_[command.slot];
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
  } else if (const auto* product = std::get_if<kernels::MatrixProduct>(&call.request)) {
    kernels::MatrixProduct request = *product;
    request.a.data = operands[0];
    request.b.data = operands[1];
    request.addend.data = operands[2];
    request.result = result.data();
    device_.matrix_product(request);
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
    if (indices) request.bad_labels = static_cast<std::int64_t*>(values_[command.report].data());
    device_.class_loss(request);
  }
}

}  // namespace tensorlint::runtime
