#include "runtime/executor/execution_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "passes/dataflow/analysis.h"
#include "runtime/executor/kernel_matcher.h"
#include "runtime/executor/readers.h"
#include "runtime/interpreter/graph_plan.h"

namespace tensorlint::runtime {
namespace {

constexpr std::size_t kNever = static_cast<std::size_t>(-1);

/// The inputs of a run as declarations, so that facts have its extents.
dataflow::AnalysisOptions options_of(const Model& model, std::span<const HostValue> inputs) {
  dataflow::AnalysisOptions options;
  const Graph& main = model.graph(GraphId::kMain);
  for (std::size_t i = 0; i < inputs.size() && i < main.inputs.size(); ++i) {
    if (!inputs[i].is_tensor()) continue;
    const HostTensor& tensor = inputs[i].tensor();
    dataflow::InputDeclaration declared{
        .dtypes = tensor.dtype(), .has_shape = true, .dims = {}, .range = {}, .device = {}};
    for (const std::int64_t extent : tensor.extents()) declared.dims.push_back(fmt::format("{}", extent));
    options.values.emplace(std::string(model.name_of(main.inputs[i])), std::move(declared));
  }
  return options;
}

/// Decides which copies the steps need, from where values are after each.
class CopyPlanner {
 public:
  CopyPlanner(const Model& model, const dataflow::Analysis& analysis, const Readers& readers, ExecutionPlan& plan)
      : model_(model),
        analysis_(analysis),
        readers_(readers),
        plan_(plan),
        on_host_(model.values.size(), true),
        on_device_(model.values.size()),
        last_host_read_(model.values.size(), kNever),
        last_device_read_(model.values.size(), kNever) {}

  void run() {
    find_last_reads();
    for (std::size_t at = 0; at < plan_.steps.size(); ++at) {
      PlanStep& step = plan_.steps[at];
      std::vector<ValueId> touched;
      if (step.call) {
        plan_call(step, touched);
      } else {
        touched = host_reads(step);
        for (const ValueId value : touched)
          if (!on_host_[value]) copy_out(value, step.copies);
        for (const ValueId result : model_.results(model_.node(step.node)))
          if (result != ValueId::kAbsent) touched.push_back(result);
      }
      for (const ValueId value : touched) drop(value, at, step);
    }
    for (const ValueId output : model_.graph(GraphId::kMain).outputs)
      if (output != ValueId::kAbsent && !on_host_[output]) copy_out(output, plan_.last_copies);
  }

 private:
  std::vector<ValueId> host_reads(const PlanStep& step) const {
    std::vector<ValueId> values;
    for (const ValueId operand : model_.operands(model_.node(step.node)))
      if (operand != ValueId::kAbsent) values.push_back(operand);
    const auto captured = readers_.captured(step.node);
    values.insert(values.end(), captured.begin(), captured.end());
    return values;
  }

  void find_last_reads() {
    for (std::size_t at = 0; at < plan_.steps.size(); ++at) {
      const PlanStep& step = plan_.steps[at];
      if (!step.call) {
        for (const ValueId value : host_reads(step)) last_host_read_[value] = at;
        continue;
      }
      on_host_[step.call->result] = false;
      for (const CallOperand& operand : step.call->operands)
        if (operand.value != ValueId::kAbsent)
          (operand.is_prepared() ? last_host_read_ : last_device_read_)[operand.value] = at;
    }
  }

  void plan_call(PlanStep& step, std::vector<ValueId>& touched) {
    const KernelCall& call = *step.call;
    for (const CallOperand& operand : call.operands) {
      if (!operand.is_given()) continue;
      if (operand.value != ValueId::kAbsent) touched.push_back(operand.value);
      if (operand.is_prepared()) {
        if (operand.value != ValueId::kAbsent && !on_host_[operand.value]) copy_out(operand.value, step.copies);
        const std::uint64_t bytes =
            operand.value == ValueId::kAbsent ? element_bytes(call.dtype) : bytes_of(operand.value);
        step.call_copies.push_back({.value = operand.value, .to_device = true, .bytes = bytes});
      } else if (!on_device_[operand.value]) {
        step.copies.push_back({.value = operand.value, .to_device = true, .bytes = bytes_of(operand.value)});
        on_device_[operand.value] = true;
      }
    }
    if (const std::uint64_t bytes = report_bytes(call); bytes > 0)
      step.call_copies.push_back({.to_device = false, .bytes = bytes});
    on_device_[call.result] = true;
    touched.push_back(call.result);
    step.result_bytes = bytes_of(call.result);
  }

  void copy_out(ValueId value, std::vector<PlannedCopy>& copies) {
    copies.push_back({.value = value, .to_device = false, .bytes = bytes_of(value)});
    on_host_[value] = true;
  }

  /// Gives back what the value takes on the host, where nothing after the step needs it there.
  void drop(ValueId value, std::size_t at, PlanStep& step) {
    const auto is_after = [&](std::size_t read) { return read != kNever && read > at; };
    const bool host = readers_.is_output(value) || is_after(last_host_read_[value]);
    const bool device = is_after(last_device_read_[value]);
    if (on_host_[value] && !host && (!device || on_device_[value])) {
      on_host_[value] = false;
      step.host_drops.push_back(value);
    }
  }

  std::uint64_t bytes_of(ValueId value) const {
    const Fact& fact = analysis_.fact(value);
    std::uint64_t bytes = element_bytes(*fact.dtypes.single());
    for (const Dim dim : analysis_.facts().dims_of(fact.shape))
      bytes *= static_cast<std::uint64_t>(*analysis_.facts().dims().as_constant(dim));
    return bytes;
  }

  const Model& model_;
  const dataflow::Analysis& analysis_;
  const Readers& readers_;
  ExecutionPlan& plan_;
  IdVector<ValueId, bool> on_host_, on_device_;
  IdVector<ValueId, std::size_t> last_host_read_, last_device_read_;
};

}  // namespace

ExecutionPlan::Copies ExecutionPlan::copies() const {
  Copies all;
  const auto add = [&](const PlannedCopy& copy) {
    (copy.to_device ? all.in : all.out) += 1;
    (copy.to_device ? all.bytes_in : all.bytes_out) += copy.bytes;
  };
  for (const PlanStep& step : steps) {
    std::ranges::for_each(step.copies, add);
    std::ranges::for_each(step.call_copies, add);
  }
  std::ranges::for_each(last_copies, add);
  return all;
}

NodeId ExecutionPlan::peak_node() const {
  const std::size_t at = schedule.memory.live_at;
  return at < schedule.commands.size() ? steps[schedule.commands[at].step].node : NodeId::kNone;
}

std::uint64_t report_bytes(const KernelCall& call) {
  const auto* const loss = std::get_if<kernels::ClassLoss>(&call.request);
  return loss != nullptr && loss->kind != kernels::ClassLossKind::kCrossEntropyProbabilities ? 2 * sizeof(std::int64_t)
                                                                                             : 0;
}

Result<ExecutionPlan> plan_execution(const Model& model, std::span<const HostValue> inputs) {
  const GraphPlan order(model);
  const GraphPlan::Steps& steps = order.steps(GraphId::kMain);
  if (steps.is_cyclic) return Error{"nodes of the graph depend on each other", {}};
  const dataflow::Analysis analysis = dataflow::analyse(model, options_of(model, inputs));
  const Readers readers(model);
  KernelMatcher matcher(analysis, readers);
  std::map<NodeId, KernelCall> calls = matcher.find();
  /// What a node that does not run by itself belongs to.
  struct Part {
    NodeId call = NodeId::kNone;
    bool is_unused = false;
  };
  std::map<NodeId, Part> parts;
  for (const auto& [node, call] : calls) {
    for (const NodeId each : call.nodes) parts[each] = {node, false};
    for (const NodeId each : call.unused) parts[each] = {node, true};
  }
  ExecutionPlan plan;
  for (const NodeId node : steps.nodes) {
    const auto part = parts.find(node);
    NodePlace place{.node = node, .reason = {}};
    if (part == parts.end()) {
      place.reason = matcher.reason(node);
      if (place.reason.empty()) place.reason = "no kernel";
      plan.steps.emplace_back().node = node;
    } else if (part->second.is_unused) {
      place.kind = NodePlace::Kind::kUnused;
      place.reason = fmt::format("nothing else reads it than what `{}` stands for", model.label(part->second.call));
    } else {
      place.kind = NodePlace::Kind::kKernel;
      const KernelCall& call = calls.at(part->second.call);
      place.reason =
          part->second.call == node ? call.kernel : fmt::format("part of `{}`", model.label(part->second.call));
    }
    plan.places.push_back(std::move(place));
    if (part != parts.end() && part->second.call == node) {
      PlanStep& step = plan.steps.emplace_back();
      step.node = node;
      step.call = std::move(calls.at(node));
    }
  }
  CopyPlanner(model, analysis, readers, plan).run();
  plan.schedule = make_schedule(plan.steps, plan.last_copies);
  return plan;
}

}  // namespace tensorlint::runtime
