#include "runtime/executor/executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/values/codec.h"
#include "runtime/values/guarded.h"

namespace tensorlint::runtime {
namespace {

/// As many kinds of inputs as a program that pads to a few lengths has.
constexpr std::size_t kKeptPlans = 8;

/// Instead of an offset in an arena.
constexpr std::uint64_t kOwnBlock = UINT64_MAX;

/// One function for each kind of request; a kind without one does not compile.
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

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

Executor::Executor(const Model& model, Memory& memory, Device& device, std::uint64_t seed, Sides sides)
    : Executor(model, memory, std::vector<Device*>{&device}, seed, sides) {}

Executor::Executor(const Model& model, Memory& memory, std::vector<Device*> devices, std::uint64_t seed, Sides sides)
    : model_(model),
      memory_(memory),
      devices_(std::move(devices)),
      sides_(sides),
      interpreter_(model, memory,
                   {.seed = seed,
                    .observer = {},
                    .graph_runner = [this](GraphId graph, std::span<const HostValue> given,
                                           std::size_t most) -> std::optional<std::vector<HostValue>> {
                      const auto body = plan_->bodies.find(graph);
                      if (body == plan_->bodies.end() || !body->second.has_kernels()) return std::nullopt;
                      return run_graph(body->second, given, most);
                    }}),
      arenas_(devices_.size()),
      values_of_(model.graphs.size()) {
  for (const ValueId value : model.values.ids(kFirstValue))
    if (model.value(value).origin != ValueOrigin::kInput) values_of_[model.value(value).graph].push_back(value);
}

Executor::~Executor() = default;

Result<std::vector<HostValue>> Executor::run(std::vector<HostValue> inputs) {
  if (auto failed = choose_plan(inputs)) return *std::move(failed);
  planned_ = {};
  seconds_.assign(plan_->steps.size(), 0);
  gradients_.clear();
  gradients_left_out_ = 0;
  Result<std::vector<HostValue>> outputs = guarded([&] {
    refuse_too_large();
    const GraphExecution::Copies before = counted();
    std::vector<HostValue> results = run_graph(*plan_, inputs, kAllOutputs);
    check_copies(before);
    return results;
  });
  if (!outputs) release_memory();
  return outputs;
}

void Executor::release_memory() {
  for (Arena& arena : arenas_) arena = {};
}

std::optional<Error> Executor::choose_plan(std::span<const HostValue> inputs) {
  Kinds kinds = kinds_of(inputs);
  auto found = std::ranges::find(plans_, kinds, &std::pair<Kinds, ExecutionPlan>::first);
  if (found == plans_.end()) {
    std::vector<std::string> names;
    std::uint64_t shared_bytes = UINT64_MAX;
    for (const Device* const device : devices_) {
      names.push_back(device->name());
      shared_bytes = std::min(shared_bytes, device->shared_bytes());
    }
    CublasLtChoice cublaslt;
    if (with_cublaslt_)
      cublaslt = [&](const kernels::MatrixProduct& request, bool has_addend) {
        return devices_[0]->why_not_cublaslt(request, has_addend);
      };
    Result<ExecutionPlan> plan = plan_execution(model_, inputs, names,
                                                {.sides = sides_,
                                                 .with_gradients = with_gradients_,
                                                 .cublaslt = std::move(cublaslt),
                                                 .shared_bytes = shared_bytes,
                                                 .meter = dataflow::options_with(allowances_).meter});
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
  for (std::size_t at = 0; at < devices_.size(); ++at) {
    const Device& device = *devices_[at];
    const std::uint64_t bytes = plan_->device_bytes[at];
    if (bytes <= device.memory_limit()) continue;
    NodeId node = plan_->peak_node(at);
    for (const auto& [id, body] : plan_->bodies)
      if (node == NodeId::kNone) node = body.peak_node(at);
    throw RunFault{fmt::format("node `{}` ({}): {}: {} bytes of the device are needed and the limit is {}",
                               model_.label(node), model_.text(model_.op(model_.node(node)).name), device.name(), bytes,
                               device.memory_limit())};
  }
}

std::vector<HostValue> Executor::run_graph(const GraphExecution& plan, std::span<const HostValue> inputs,
                                           std::size_t most) {
  const Graph& graph = model_.graph(plan.graph);
  const auto given = std::span(graph.inputs).first(std::min(inputs.size(), graph.inputs.size()));
  for (std::size_t i = 0; i < given.size(); ++i) interpreter_.hold(given[i], inputs[i]);
  Frame frame{.plan = plan};
  const auto clear = [&] {
    release(frame);
    for (const ValueId input : given) interpreter_.hold(input, {});
    for (const ValueId value : values_of_[plan.graph])
      if (plan.graph == GraphId::kMain || model_.value(value).initializer == nullptr) interpreter_.hold(value, {});
  };
  std::vector<HostValue> outputs;
  try {
    run_commands(frame);
    for (const ValueId output : std::span(graph.outputs).first(std::min(most, graph.outputs.size()))) {
      Result<HostValue> held = interpreter_.held(output);
      if (!held) throw RunFault{held.error().message};
      if (held->is_absent() && graph.kind != GraphKind::kFunction)
        throw RunFault{fmt::format("the output `{}` has no value", model_.name_of(output))};
      outputs.push_back(*std::move(held));
    }
  } catch (...) {
    clear();
    throw;
  }
  clear();
  planned_ += plan.copies();
  return outputs;
}

void Executor::synchronize() {
  for (Device* const device : devices_) device->synchronize();
}

/// Nothing of the devices is under way afterwards, whatever happened.
void Executor::release(Frame& frame) {
  for (Device* const device : devices_) {
    try {
      if (!frame.values.empty()) device->synchronize();
    } catch (const RunFault&) {
      // An earlier fault is being reported; without one the work was waited for before.
    }
  }
  frame.values.clear();
  frame.blocks.clear();
  for (std::size_t at = 0; at < frame.used_before.size(); ++at) arenas_[at].used = frame.used_before[at];
  frame.used_before.clear();
}

/// After that of the graphs around it. A function that calls itself finds no room there, and has a block of its own.
void Executor::take_memory(Frame& frame) {
  const Schedule& schedule = frame.plan.schedule;
  for (std::size_t at = 0; at < devices_.size() && !schedule.lifetimes.empty(); ++at) {
    Arena& arena = arenas_[at];
    if (arena.used == 0 && (!arena.is_held || arena.bytes < plan_->device_bytes[at])) {
      arena = {};
      arena.block = devices_[at]->allocate(plan_->device_bytes[at]);
      arena.bytes = plan_->device_bytes[at];
      arena.is_held = true;
    }
    const std::uint64_t bytes = schedule.memory[at].bytes;
    const std::uint64_t base = offset_within(arena.used, bytes);
    const bool has_room = base <= arena.bytes && bytes <= arena.bytes - base;
    frame.blocks.push_back(has_room ? DeviceBlock() : devices_[at]->allocate(bytes));
    frame.bases.push_back(has_room ? base : kOwnBlock);
    frame.used_before.push_back(arena.used);
    if (has_room) arena.used = base + bytes;
  }
}

void Executor::run_commands(Frame& frame) {
  const GraphExecution& plan = frame.plan;
  const Schedule& schedule = plan.schedule;
  const bool is_main = plan.graph == GraphId::kMain;
  try {
    take_memory(frame);
    for (Device* const device : devices_)
      if (is_main && plan_->events > 0) device->make_events(plan_->events);
  } catch (const DeviceFault& fault) {
    throw explained(fault, "before the first node: ");
  }
  frame.values.resize(schedule.lifetimes.size());
  for (std::size_t at = 0; at < schedule.commands.size(); ++at) {
    const Command& command = schedule.commands[at];
    const auto start = std::chrono::steady_clock::now();
    try {
      run_command(frame, at);
      const Command* const next = at + 1 < schedule.commands.size() ? &command + 1 : nullptr;
      const bool is_last = next == nullptr || next->step != command.step || next->is_output || command.is_output;
      if (is_timed_ && is_main && is_last && !frame.values.empty()) synchronize();
    } catch (const DeviceFault& fault) {
      throw explained(fault, described(plan, command), is_timed_ && is_main);
    } catch (const NodeFault&) {
      check_indices_so_far(frame);
      throw;
    } catch (const RunFault& fault) {
      check_indices_so_far(frame);
      throw RunFault{described(plan, command) + fault.message};
    }
    if (is_main)
      seconds_[command.step] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  try {
    if (!frame.values.empty()) synchronize();
  } catch (const DeviceFault& fault) {
    throw explained(fault, "after the last node: ");
  }
  check_indices(frame);
  const std::size_t kept = std::min(frame.gradients.size(), kMostGradients - gradients_.size());
  std::move(frame.gradients.begin(), frame.gradients.begin() + static_cast<std::ptrdiff_t>(kept),
            std::back_inserter(gradients_));
  gradients_left_out_ += frame.gradients.size() - kept;
}

void Executor::run_command(Frame& frame, std::size_t at) {
  const GraphExecution& plan = frame.plan;
  const Command& command = plan.schedule.commands[at];
  const PlanStep& step = plan.steps[command.step];
  Device& device = *devices_[command.device];
  device.set_step(plan.first_command + at);
  for (const auto& [of, event] : command.host_waits) {
    devices_[of]->set_step(plan.first_command + at);
    devices_[of]->host_wait(plan.first_event + event);
  }
  for (const Command::Slot slot : command.begins) {
    const std::uint64_t base = frame.bases[command.device];
    const DeviceBlock& block = base == kOwnBlock ? frame.blocks[command.device] : arenas_[command.device].block;
    frame.values[slot] = device.place(block, (base == kOwnBlock ? 0 : base) + plan.schedule.offsets[slot],
                                      plan.schedule.lifetimes[slot].bytes);
  }
  const auto stream = stream_of(command.kind);
  for (const Command::Event event : command.waits) device.wait(*stream, plan.first_event + event);
  switch (command.kind) {
    case Command::Kind::kCopyIn: {
      const HostTensor tensor = host_tensor(command.value);
      const std::uint64_t bytes = plan.schedule.lifetimes[command.slot].bytes;
      if (tensor.bytes() != bytes)
        throw RunFault{
            fmt::format("`{}` has {} bytes, not the {} that follow from the inputs' shapes and what the model declares",
                        model_.name_of(command.value), tensor.bytes(), bytes)};
      device.copy_in(frame.values[command.slot], tensor.raw(), bytes);
      break;
    }
    case Command::Kind::kPrepare: {
      const HostTensor prepared = prepare(step.call->operands[command.operand], step.call->results[0].dtype);
      device.copy_in(frame.values[command.slot], prepared.raw(), prepared.bytes());
      break;
    }
    case Command::Kind::kKernel:
      launch(frame, step, command);
      [[fallthrough]];
    case Command::Kind::kView:
      for (const CallResult& result : step.call->results) kinds_[result.value] = {result.dtype, result.extents};
      break;
    case Command::Kind::kCopyOut:
      copy_out(frame, command);
      break;
    case Command::Kind::kReport:
      device.copy_out(frame.reports[command.slot].data(), frame.values[command.slot], sizeof(IndexReport));
      break;
    case Command::Kind::kGradient: {
      const CallResult& kind = *step.call->gradient;
      Gradient& gradient = frame.gradients.emplace_back(step.call->node, step.call->results[0].value, kind.value,
                                                        HostTensor(kind.dtype, kind.extents, memory_));
      device.copy_out(gradient.tensor.mutable_raw(), frame.values[command.slot], gradient.tensor.bytes());
      break;
    }
    case Command::Kind::kHost:
      run_node(step);
      break;
  }
  if (command.record) device.record(*stream, plan.first_event + *command.record);
  for (const Command::Slot slot : command.ends) frame.values[slot] = {};
  if (command.kind == Command::Kind::kHost || command.kind == Command::Kind::kKernel ||
      command.kind == Command::Kind::kView)
    for (const ValueId value : step.host_drops) interpreter_.hold(value, {});
}

void Executor::run_node(const PlanStep& step) {
  Result<std::vector<HostValue>> results = interpreter_.evaluate(step.node);
  if (!results) throw NodeFault{{results.error().message}};
  const auto names = model_.results(model_.node(step.node));
  for (std::size_t r = 0; r < names.size(); ++r)
    if (names[r] != ValueId::kAbsent) interpreter_.hold(names[r], std::move((*results)[r]));
}

void Executor::copy_out(const Frame& frame, const Command& command) {
  const auto& [dtype, extents] = kinds_.at(command.value);
  HostTensor tensor(dtype, extents, memory_);
  devices_[command.device]->copy_out(tensor.mutable_raw(), frame.values[command.slot], tensor.bytes());
  interpreter_.hold(command.value, HostValue(std::move(tensor)));
}

GraphExecution::Copies Executor::counted() const {
  GraphExecution::Copies all;
  for (const Device* const device : devices_) {
    const tensorlint_device_counts counts = device->counts();
    all +=
        {.in = counts.copies_in, .bytes_in = counts.bytes_in, .out = counts.copies_out, .bytes_out = counts.bytes_out};
  }
  return all;
}

void Executor::check_copies(const GraphExecution::Copies& before) {
  const GraphExecution::Copies after = counted();
  copies_ = {.in = after.in - before.in,
             .bytes_in = after.bytes_in - before.bytes_in,
             .out = after.out - before.out,
             .bytes_out = after.bytes_out - before.bytes_out};
  if (copies_ != planned_)
    throw RunFault{fmt::format("{} copies of {} bytes were planned and {} of {} bytes made: please report it",
                               planned_.in + planned_.out, planned_.bytes_in + planned_.bytes_out,
                               copies_.in + copies_.out, copies_.bytes_in + copies_.bytes_out)};
}

void Executor::check_indices_so_far(Frame& frame) {
  if (frame.values.empty()) return;
  try {
    synchronize();  // copies of reports wait for no event
    for (const Command& command : frame.plan.schedule.commands)
      if (command.kind == Command::Kind::kKernel && command.report != Command::kNoSlot &&
          frame.values[command.report].data() != nullptr)
        devices_[command.device]->copy_out(frame.reports[command.report].data(), frame.values[command.report],
                                           sizeof(IndexReport));
    synchronize();
  } catch (const DeviceFault&) {
    return;  // the host's fault is reported
  }
  check_indices(frame);
}

void Executor::check_indices(const Frame& frame) {
  for (const Command& command : frame.plan.schedule.commands) {
    if (command.kind != Command::Kind::kKernel) continue;
    const auto found = frame.reports.find(command.report);
    if (found == frame.reports.end() || found->second[0] == 0) continue;
    const auto* const loss = std::get_if<kernels::ClassLoss>(&frame.plan.steps[command.step].call->request);
    const std::string where =
        loss == nullptr ? std::string("their axis") : fmt::format("the {} classes", loss->classes);
    const bool one = found->second[0] == 1;
    throw RunFault{
        fmt::format("{}{} {} outside of {}, {} at position {}", described(frame.plan, command), found->second[0],
                    loss == nullptr ? (one ? "index lies" : "indices lie") : (one ? "label lies" : "labels lie"), where,
                    one ? "that" : "the first one", found->second[1])};
  }
}

std::string Executor::described(const GraphExecution& plan, const Command& command) const {
  const auto copy = [&](std::string_view text) {
    return fmt::format("{} `{}`: ", text, model_.name_of(command.value));
  };
  if (command.is_output && plan.graph == GraphId::kMain) return copy("the output");
  const NodeId node = plan.steps[command.step].node;
  std::string text =
      fmt::format("node `{}` ({}): ", model_.label(node), model_.text(model_.op(model_.node(node)).name));
  if (command.kind == Command::Kind::kCopyIn || command.kind == Command::Kind::kCopyOut) text += copy("copy of");
  return text;
}

/// With the node whose work failed, where that is known.
RunFault Executor::explained(const DeviceFault& fault, std::string_view moment, bool is_exact) const {
  if (fault.is_of_earlier_work && !is_exact)
    return {fmt::format("earlier work on the device failed (--timings names its node), noticed {}{}{}",
                        moment.starts_with("node ") || moment.starts_with("the output ") ? "at " : "", moment,
                        fault.message)};
  const GraphExecution* const plan = fault.step ? plan_->graph_of(*fault.step) : nullptr;
  if (plan == nullptr) return {std::string(moment) + fault.message};
  return {described(*plan, plan->schedule.commands[*fault.step - plan->first_command]) + fault.message};
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

void Executor::launch(const Frame& frame, const PlanStep& step, const Command& command) {
  const KernelCall& call = *step.call;
  std::vector<const void*> operands(call.operands.size());
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    if (command.operands[i] != Command::kNoSlot) operands[i] = frame.values[command.operands[i]].data();
  Device& device = *devices_[command.device];
  const DeviceValue& result = frame.values[command.results[0]];
  const auto report = [&] { return static_cast<std::int64_t*>(frame.values[command.report].data()); };
  const auto gradient = [&] { return call.gradient ? frame.values[command.gradient].data() : nullptr; };
  std::visit(Overloaded{
                 [&](const ReductionCall& reduction) {
                   kernels::Reduction request;
                   request.kind = reduction.kind;
                   request.dtype = reduction.dtype;
                   request.result_dtype = reduction.result_dtype;
                   request.extents = reduction.extents.data();
                   request.rank = static_cast<int>(reduction.extents.size());
                   request.axes = reduction.axes.data();
                   request.axis_count = static_cast<int>(reduction.axes.size());
                   request.last_of_equals = reduction.last_of_equals;
                   device.reduce(request, operands[0], result.data());
                 },
                 [&](kernels::Softmax request) {
                   request.input = operands[0];
                   request.output = result.data();
                   device.softmax(request);
                 },
                 [&](const std::shared_ptr<const kernels::MatrixProduct>& product) {
                   kernels::MatrixProduct request = *product;
                   request.a.data = operands[0];
                   request.b.data = operands[1];
                   request.addend.data = operands[2];
                   request.result = result.data();
                   call.uses_cublaslt ? device.cublaslt_product(request) : device.matrix_product(request);
                 },
                 [&](const std::shared_ptr<const kernels::Attention>& attention) {
                   kernels::Attention request = *attention;
                   request.query.data = operands[0];
                   request.key.data = operands[1];
                   request.value.data = operands[2];
                   request.mask.data = operands[3];
                   request.result = result.data();
                   device.attention(request);
                 },
                 [&](kernels::Convolution request) {
                   request.data = operands[0];
                   request.weight = operands[1];
                   request.bias = operands[2];
                   request.result = result.data();
                   device.convolution(request);
                 },
                 [&](kernels::Pooling request) {
                   request.data = operands[0];
                   request.result = result.data();
                   device.pooling(request);
                 },
                 [&](kernels::Normalization request) {
                   request.data = operands[0];
                   request.scale = operands[1];
                   request.bias = operands[2];
                   request.mean = operands[3];
                   request.variance = operands[4];
                   request.result = result.data();
                   device.normalization(request);
                 },
                 [&](kernels::PointwiseLoss request) {
                   request.input = operands[0];
                   request.target = operands[1];
                   request.weight = operands[2];
                   request.positive_weight = operands[3];
                   (request.averaging == kernels::Averaging::kNone ? request.losses : request.total) = result.data();
                   request.gradient = gradient();
                   device.pointwise_loss(request);
                 },
                 [&](kernels::ClassLoss request) {
                   request.logits = operands[0];
                   const bool indices = request.kind != kernels::ClassLossKind::kCrossEntropyProbabilities;
                   (indices ? request.labels : request.probabilities) = operands[1];
                   request.weight = operands[2];
                   (request.averaging == kernels::Averaging::kNone ? request.losses : request.total) = result.data();
                   request.gradient = gradient();
                   if (indices) request.bad_labels = report();
                   device.class_loss(request);
                 },
                 [&](const ElementwiseCall& elementwise) {
                   kernels::Elementwise request = elementwise.request();
                   for (int k = 0; k < request.operand_count; ++k)
                     request.operands[k].data = operands[static_cast<std::size_t>(k)];
                   request.result = result.data();
                   device.elementwise(request);
                 },
                 [&](const MovementCall& movement) {
                   for (const MovementCall::Part& part : movement.parts) {
                     kernels::Movement request = part.movement.request();
                     if (part.source >= 0) request.source = operands[static_cast<std::size_t>(part.source)];
                     request.destination = frame.values[command.results[static_cast<std::size_t>(part.result)]].data();
                     if (part.indices >= 0) {
                       request.indices = operands[static_cast<std::size_t>(part.indices)];
                       if (!part.skips_bad_indices) request.bad_indices = report();
                     }
                     device.move(request);
                   }
                 },
                 [&](const ViewCall&) {},  // the data, where it is
             },
             call.request);
}

}  // namespace tensorlint::runtime
